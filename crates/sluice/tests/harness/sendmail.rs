//! A real Sendmail for the tests, with a folder of its own. It cannot be installed beside Postfix; unpacked it runs:
//!
//! ```sh
//! apt-get download sendmail-bin sendmail-cf && for deb in sendmail-*.deb; do dpkg-deb -x $deb FOLDER; done
//! export SLUICE_SENDMAIL=FOLDER                                                  # m4 has to be installed
//! ```

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{files, wait_for};

pub struct Sendmail {
    pub folder: tempfile::TempDir,
    pub port: u16,
    child: Child,
}

impl Sendmail {
    /// Starts one that asks this milter and hands everything to a server on this port; none if it is not there.
    pub fn start(milter: u16, relay: u16) -> Option<Sendmail> {
        let root = std::env::var_os("SLUICE_SENDMAIL").map_or(PathBuf::from("/"), PathBuf::from);
        let (program, macros) = (root.join("usr/libexec/sendmail/sendmail"), root.join("usr/share/sendmail/cf"));
        if !program.exists() || !macros.join("m4/cf.m4").exists() {
            eprintln!("skipped: no Sendmail, neither installed nor in SLUICE_SENDMAIL");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let port = super::free_port();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::create_dir(folder.path().join("queue")).unwrap();
        std::fs::write(folder.path().join("sendmail.cf"), configuration(folder.path(), &macros, port, milter, relay))
            .unwrap();
        // A host name without a dot makes it wait for a minute.
        let child = Command::new("unshare")
            .args(["-u", "sh", "-c", "hostname hop.example.test && exec \"$0\" -C \"$1\" -bD -q1m"])
            .arg(program)
            .arg(folder.path().join("sendmail.cf"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let sendmail = Sendmail { folder, port, child };
        wait_for(|| std::net::TcpStream::connect(("127.0.0.1", port)).ok(), "Sendmail");
        Some(sendmail)
    }

    /// The messages in its queue that are put aside.
    pub fn held(&self) -> usize {
        let is_held = |path: &&PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("hf");
        files(&self.folder.path().join("queue")).iter().filter(is_held).count()
    }
}

fn configuration(folder: &Path, macros: &Path, port: u16, milter: u16, relay: u16) -> Vec<u8> {
    let at = folder.display();
    let source = format!(
        "divert(0)dnl\nOSTYPE(`linux')dnl\ndefine(`QUEUE_DIR', `{at}/queue')dnl\n\
         define(`confPID_FILE', `{at}/pid')dnl\ndefine(`STATUS_FILE', `')dnl\ndefine(`ALIAS_FILE', `')dnl\n\
         define(`confDOMAIN_NAME', `hop.test')dnl\ndefine(`confTO_IDENT', `0')dnl\n\
         FEATURE(`nocanonify')dnl\nFEATURE(`accept_unresolvable_domains')dnl\n\
         FEATURE(`promiscuous_relay')dnl\nFEATURE(`no_default_msa')dnl\n\
         DAEMON_OPTIONS(`Family=inet, Addr=127.0.0.1, Port={port}, Name=MTA')dnl\n\
         INPUT_MAIL_FILTER(`sluice', `S=inet:{milter}@127.0.0.1, F=T, T=C:30s;S:30s;R:150s;E:150s')dnl\n\
         define(`SMART_HOST', `relay:[127.0.0.1]')dnl\ndefine(`RELAY_MAILER_ARGS', `TCP $h {relay}')dnl\n\
         MAILER(`smtp')dnl\n"
    );
    std::fs::write(folder.join("sendmail.mc"), source).unwrap();
    let made = Command::new("m4")
        .arg(format!("-D_CF_DIR_={}/", macros.display()))
        .arg(macros.join("m4/cf.m4"))
        .arg(folder.join("sendmail.mc"))
        .output()
        .expect("m4 is installed");
    made.stdout
}

impl Drop for Sendmail {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
