//! A Dovecot with a folder of its own, on ports of its own: POP3 and IMAP for the mailboxes `tim` and `ann`, password
//! `secret`.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::tls::Certificate;
use super::wait_for;

pub struct Dovecot {
    pub folder: TempDir,
    pub pop3: SocketAddr,
    pub imap: SocketAddr,
    /// Where other servers ask whether a password is right.
    pub auth: SocketAddr,
    /// Where mail is taken from who logs in.
    pub submission: Option<SocketAddr>,
    pub certificate: Certificate,
}

impl Dovecot {
    /// Starts one, if it is installed and we may.
    pub fn start() -> Option<Dovecot> {
        Dovecot::begin(None)
    }

    /// The same with a server that takes mail from who logs in, and relays it; if that is installed, too.
    pub fn with_submission(relay: SocketAddr) -> Option<Dovecot> {
        if !Path::new("/usr/lib/dovecot/submission-login").exists() {
            eprintln!("skipped: dovecot-submissiond is not installed");
            return None;
        }
        Dovecot::begin(Some(relay))
    }

    fn begin(relay: Option<SocketAddr>) -> Option<Dovecot> {
        let is_root =
            std::fs::metadata("/proc/self").is_ok_and(|facts| std::os::unix::fs::MetadataExt::uid(&facts) == 0);
        let there = ["pop3-login", "imap-login"].iter().all(|name| Path::new("/usr/lib/dovecot").join(name).exists());
        if !is_root || !there {
            eprintln!("skipped: dovecot-pop3d and dovecot-imapd are not installed, or we are not root");
            return None;
        }
        let free = || SocketAddr::from(([127, 0, 0, 1], super::free_port()));
        let dovecot = Dovecot {
            folder: tempfile::tempdir().unwrap(),
            pop3: free(),
            imap: free(),
            auth: free(),
            submission: relay.map(|_| free()),
            certificate: Certificate::of("localhost"),
        };
        dovecot.configure(relay);
        dovecot.command(&[]);
        wait_for(|| TcpStream::connect(dovecot.pop3).ok(), "Dovecot");
        Some(dovecot)
    }

    fn configure(&self, relay: Option<SocketAddr>) {
        let at = self.folder.path().display().to_string();
        for name in ["run", "state", "mail"] {
            std::fs::create_dir(self.folder.path().join(name)).unwrap();
        }
        open(self.folder.path(), 0o755);
        open(&self.folder.path().join("mail"), 0o777);
        self.certificate.store(self.folder.path(), "server");
        std::fs::write(self.folder.path().join("users"), "tim:{PLAIN}secret\nann:{PLAIN}secret\n").unwrap();
        open(&self.folder.path().join("users"), 0o644);
        let config = format!(
            "base_dir = {at}/run\nstate_dir = {at}/state\nlog_path = {at}/log\nprotocols = pop3 imap\nlisten = 127.0.0.1\n\
             ssl = yes\nssl_cert = <{at}/server.crt\nssl_key = <{at}/server.key\ndisable_plaintext_auth = no\n\
             auth_mechanisms = plain login cram-md5 apop scram-sha-256\nmail_max_userip_connections = 10000\n\
             passdb {{\n driver = passwd-file\n args = {at}/users\n}}\n\
             userdb {{\n driver = static\n args = uid=65534 gid=65534 home={at}/mail/%u mail=maildir:{at}/mail/%u\n}}\n\
             first_valid_uid = 1\nfirst_valid_gid = 1\nnamespace inbox {{\n inbox = yes\n}}\n\
             service pop3-login {{\n chroot =\n inet_listener pop3 {{\n port = {}\n }}\n inet_listener pop3s {{\n port = 0\n }}\n}}\n\
             service imap-login {{\n chroot =\n process_min_avail = 1\n service_count = 0\n client_limit = 10000\n inet_listener imap {{\n port = {}\n }}\n inet_listener imaps {{\n port = 0\n }}\n}}\n\
             service auth {{\n inet_listener {{\n port = {}\n }}\n}}\n",
            self.pop3.port(),
            self.imap.port(),
            self.auth.port(),
        );
        let submission = relay.zip(self.submission).map(|(relay, here)| {
            format!(
                "protocols = pop3 imap submission\nsubmission_relay_host = {}\nsubmission_relay_port = {}\nhostname = x.test\n\
                 service submission-login {{\n chroot =\n inet_listener submission {{\n port = {}\n }}\n inet_listener submissions {{\n port = 0\n }}\n}}\n",
                relay.ip(),
                relay.port(),
                here.port()
            )
        });
        let config = config + &submission.unwrap_or_default();
        std::fs::write(self.folder.path().join("dovecot.conf"), config).unwrap();
    }

    fn command(&self, what: &[&str]) {
        let config = self.folder.path().join("dovecot.conf");
        // Not `output`: the daemon keeps what it inherits open.
        let quiet = Command::new("/usr/sbin/dovecot").arg("-c").arg(config).args(what).stdout(Stdio::null()).status();
        assert!(quiet.unwrap().success(), "{}", self.log());
    }

    /// Puts a mail into a mailbox.
    pub fn deliver(&self, user: &str, name: &str, mail: &[u8]) {
        let folder = self.folder.path().join("mail").join(user);
        for part in ["", "new", "cur", "tmp"] {
            let folder = folder.join(part);
            if !folder.exists() {
                std::fs::create_dir(&folder).unwrap();
                open(&folder, 0o777);
            }
        }
        let text: Vec<u8> = mail.iter().copied().filter(|&byte| byte != b'\r').collect();
        let path: PathBuf = folder.join("new").join(format!("1700000000.{name}.test"));
        std::fs::write(&path, text).unwrap();
        open(&path, 0o666);
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

fn open(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        self.command(&["stop"]);
    }
}
