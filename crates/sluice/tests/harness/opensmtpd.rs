//! A real OpenSMTPD for the tests: `smtpd` where Debian puts it, or what `SLUICE_OPENSMTPD` names (`ci/setup.sh` unpacks one).
//!
//! It has a mount namespace of its own, where its users, its spool and its sockets are.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::{free_port, wait_for};

const SCRIPT: &str = "set -e; mount --make-rprivate /
for folder in /run /var/spool /var/lib; do mount -t tmpfs tmpfs $folder; done
mkdir -p /run/opensmtpd /var/lib/opensmtpd/empty; mkdir -m 711 /var/spool/smtpd
cp /etc/passwd /etc/group /run
for name in opensmtpd opensmtpq; do
    ! id -u $name >/run/known 2>&1 || continue
    number=$((${number:-64900} + 1))
    echo $name:x:$number:$number::/run:/bin/false >>/run/passwd
    echo $name:x:$number: >>/run/group
done
mount --bind /run/passwd /etc/passwd; mount --bind /run/group /etc/group
exec \"$0\" -d -f \"$1\"";

/// An OpenSMTPD with a folder of its own.
pub struct OpenSmtpd {
    folder: tempfile::TempDir,
    child: Child,
    pub port: u16,
}

impl OpenSmtpd {
    /// Starts one with these lines of its configuration, if it is there and we may.
    pub fn start(settings: &str) -> Option<OpenSmtpd> {
        let program = std::env::var("SLUICE_OPENSMTPD").unwrap_or("/usr/sbin/smtpd".into());
        let is_root =
            std::fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
        if !is_root || !Path::new(&program).exists() {
            eprintln!("skipped: opensmtpd is not installed, or we are not root");
            return None;
        }
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let config = folder.path().join("smtpd.conf");
        std::fs::write(&config, format!("listen on 127.0.0.1 port {port} hostname hop.test\n{settings}\n")).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", SCRIPT, &program]).arg(config);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let smtpd = OpenSmtpd { folder, child: command.spawn().unwrap(), port };
        let greets = || std::net::TcpStream::connect(("127.0.0.1", port)).ok();
        wait_for(greets, &format!("OpenSMTPD: {}", smtpd.log()));
        Some(smtpd)
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for OpenSmtpd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
