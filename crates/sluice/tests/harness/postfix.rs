//! A real Postfix for the tests.

use std::process::Command;

use super::{files, wait_for};

fn output(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

/// A Postfix with a folder of its own, which delivers into a Maildir.
pub struct Postfix {
    pub folder: tempfile::TempDir,
    pub port: u16,
}

impl Postfix {
    /// Starts one; `settings` are more lines of its main.cf.
    pub fn start(settings: &str) -> Postfix {
        Postfix::with(settings, "")
    }

    /// The same with more lines of its master.cf.
    pub fn with(settings: &str, services: &str) -> Postfix {
        let folder = tempfile::tempdir().unwrap();
        let port = super::free_port();
        let at = folder.path().display().to_string();
        for name in ["etc", "queue", "data", "mail"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let main = format!(
            "compatibility_level = 3.6\nqueue_directory = {at}/queue\ndata_directory = {at}/data\n\
             command_directory = /usr/sbin\ndaemon_directory = /usr/lib/postfix/sbin\nmail_owner = postfix\n\
             setgid_group = postdrop\nmyhostname = hop.test\nmydestination =\nalias_maps =\ninet_interfaces = 127.0.0.1\n\
             inet_protocols = ipv4\nmynetworks = 127.0.0.0/8\nvirtual_mailbox_domains = mx.test\n\
             virtual_mailbox_base = {at}/mail\nvirtual_mailbox_maps = static:box/\nvirtual_uid_maps = static:65534\n\
             virtual_gid_maps = static:65534\nvirtual_minimum_uid = 1\ndisable_dns_lookups = yes\n\
             smtpd_peername_lookup = no\nmaillog_file = {at}/log\nmaillog_file_prefixes = /var, /tmp\n{settings}\n"
        );
        std::fs::write(folder.path().join("etc/main.cf"), main).unwrap();
        let master = format!(
            "127.0.0.1:{port} inet n - n - - smtpd\ncleanup unix n - n - 0 cleanup\nqmgr unix n - n 300 1 qmgr\n\
             rewrite unix - - n - - trivial-rewrite\nbounce unix - - n - 0 bounce\ndefer unix - - n - 0 bounce\n\
             trace unix - - n - 0 bounce\nproxymap unix - - n - - proxymap\nvirtual unix - n n - - virtual\n\
             error unix - - n - - error\nretry unix - - n - - error\nanvil unix - - n - 1 anvil\n\
             postlog unix-dgram n - n - 1 postlogd\nsmtp unix - - n - - smtp\n\
             tlsmgr unix - - n 1000? 1 tlsmgr\n{services}"
        );
        std::fs::write(folder.path().join("etc/master.cf"), master).unwrap();
        let open = |path: &str, mode| {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(folder.path().join(path), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        open("", 0o755);
        open("mail", 0o777);
        let postfix = Postfix { folder, port };
        let (owned, text) = output(Command::new("chown").arg("postfix").arg(format!("{at}/data")));
        assert!(owned, "{text}");
        postfix.command("start");
        wait_for(|| std::net::TcpStream::connect(("127.0.0.1", port)).ok(), "Postfix");
        postfix
    }

    pub fn command(&self, what: &str) {
        let (done, text) =
            output(Command::new("/usr/sbin/postfix").arg("-c").arg(self.folder.path().join("etc")).arg(what));
        assert!(done, "postfix {what}: {text}");
    }

    pub fn mail(&self) -> Option<Vec<u8>> {
        let new = files(&self.folder.path().join("mail/box/new"));
        new.first().and_then(|path| std::fs::read(path).ok())
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        // Of one that did not start the test has told already. What `postfix abort` runs may wait for its own log for ever, so the master is
        // told without it.
        let pid = std::fs::read_to_string(self.folder.path().join("queue/pid/master.pid")).unwrap_or_default();
        let _ = output(Command::new("kill").arg(pid.trim()));
    }
}
