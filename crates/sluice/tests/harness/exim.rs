//! A real Exim for the tests: `exim4` where Debian puts it, or what `SLUICE_EXIM` names (`ci/setup.sh` unpacks one).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{files, wait_for};

/// An Exim with a folder of its own, which delivers into a Maildir.
pub struct Exim {
    pub folder: tempfile::TempDir,
    child: Child,
}

impl Exim {
    /// Starts one, if it is there and we may. It listens on these ports; `settings` stand above its routers, `router`
    /// stands in front of them and `transport` in front of its transports.
    pub fn start(ports: &[u16], settings: &str, router: &str, transport: &str) -> Option<Exim> {
        let program = std::env::var("SLUICE_EXIM").unwrap_or("/usr/sbin/exim4".into());
        let is_root =
            std::fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
        if !is_root || !Path::new(&program).exists() {
            eprintln!("skipped: exim4 is not installed, or we are not root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let at = folder.path().display();
        let listen: Vec<String> = ports.iter().map(|port| format!("127.0.0.1.{port}")).collect();
        let text = format!(
            "primary_hostname = hop.test\nexim_path = {program}\nkeep_environment =\nspool_directory = {at}/spool\nlog_file_path = {at}/log/%slog\n\
             pid_file_path = {at}/pid\nlocal_interfaces = {}\nnever_users =\ntls_advertise_hosts =\n\
             acl_smtp_rcpt = accept\ndomainlist local_domains = mx.test\n{settings}\nbegin routers\n{router}\n\
             local:\n  driver = accept\n  domains = +local_domains\n  transport = box\nbegin transports\n{transport}\n\
             box:\n  driver = appendfile\n  maildir_format\n  create_directory\n  directory = {at}/mail/box\n  \
             user = Debian-exim\n",
            listen.join(" : ")
        );
        std::fs::write(folder.path().join("exim.conf"), text).unwrap();
        for name in ["spool", "log", "mail"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let owned = Command::new("chown").args(["-R", "Debian-exim"]).arg(folder.path()).status().unwrap();
        assert!(owned.success());
        // Not writable by others than root, or Exim does not read it.
        let config = folder.path().join("exim.conf");
        assert!(Command::new("chown").arg("root").arg(&config).status().unwrap().success());
        let mut exim = Command::new(&program);
        exim.arg("-C").arg(&config).args(["-bdf", "-q1s"]).stdin(Stdio::null());
        let child = exim.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let exim = Exim { folder, child };
        wait_for(|| std::net::TcpStream::connect(("127.0.0.1", ports[0])).ok(), &format!("Exim: {}", exim.log()));
        Some(exim)
    }

    pub fn mail(&self) -> Option<Vec<u8>> {
        let new = files(&self.folder.path().join("mail/box/new"));
        new.first().and_then(|path| std::fs::read(path).ok())
    }

    pub fn log(&self) -> String {
        let read = |name| std::fs::read_to_string(self.folder.path().join("log").join(name)).unwrap_or_default();
        read("mainlog") + &read("paniclog")
    }
}

impl Drop for Exim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
