//! Commands at a store that a server has open, and backups of it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::harness::imap::ask;
use crate::harness::{Gateway, Wire, free_port};

/// A gateway with a store and the account `ann`, in which mails can be put by LMTP.
struct Served {
    gateway: Gateway,
    lmtp: u16,
    imap: u16,
}

impl Served {
    fn start() -> Served {
        let (lmtp, imap) = (free_port(), free_port());
        let gateway = Gateway::with(&format!(
            "hostname = \"mx.test\"\nthreads = 1\n[store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\n\
             lmtp = [\"127.0.0.1:{lmtp}\"]\nimap = [\"127.0.0.1:{imap}\"]\n\
             [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\n"
        ));
        let accounts = gateway.folder.path().join("store/accounts");
        // As `sluice account` writes it, with the password `secret`.
        let mut add = Command::new(env!("CARGO_BIN_EXE_sluice"));
        add.args(["account", "--accounts", accounts.to_str().unwrap(), "add", "ann"]);
        let mut child = add.stdin(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"secret\n").unwrap();
        assert!(child.wait().unwrap().success());
        // The server sees the account within a second.
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        Served { gateway, lmtp, imap }
    }

    fn deliver(&self, subject: &str) {
        let mut wire = Wire::connect(([127, 0, 0, 1], self.lmtp).into());
        wire.line();
        wire.command("LHLO x");
        assert!(wire.command("MAIL FROM:<a@example.org>").starts_with("250"));
        assert!(wire.command("RCPT TO:<ann>").starts_with("250"));
        assert!(wire.command("DATA").starts_with("354"));
        let body = "line\r\n".repeat(20_000);
        wire.send(format!("Subject: {subject}\r\n\r\n{body}").as_bytes());
        assert!(wire.command(".").starts_with("250"));
    }

    fn imap(&self) -> Wire {
        let mut wire = Wire::connect(([127, 0, 0, 1], self.imap).into());
        wire.line();
        assert!(ask(&mut wire, "LOGIN ann secret").status.starts_with("OK"));
        wire
    }

    /// `sluice store` with the configuration of the server.
    fn run(&self, words: &[&str]) -> Output {
        let config = self.gateway.folder.path().join("sluice.toml");
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        command.arg("store").arg(words[0]).arg("--config").arg(config).args(&words[1..]).output().unwrap()
    }

    fn said(&self, words: &[&str]) -> String {
        said(&self.run(words))
    }
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn first_of(folder: &Path) -> PathBuf {
    fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
}

/// The mails of a Maildir and its subfolders, with their flags.
fn mails(folder: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let below = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for folder in below.filter(|path| path.join("cur").is_dir()).chain([folder.to_owned()]) {
        for entry in fs::read_dir(folder.join("cur")).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let subject = text.split("Subject: ").nth(1).unwrap().lines().next().unwrap().to_owned();
            let flags = path.to_str().unwrap().split_once(":2,").unwrap().1.to_owned();
            assert_eq!(text.matches("line\r\n").count(), 20_000, "{subject} is not whole");
            all.insert(format!("{subject} {flags}").trim().to_owned());
        }
    }
    all
}

#[test]
fn a_server_shows_the_store_that_it_has_open() {
    let served = Served::start();
    ["one", "two", "three"].iter().for_each(|subject| served.deliver(subject));
    let stat = served.said(&["stat"]);
    assert!(stat.contains("3 messages in 3 places") && stat.contains("a server has it open"), "{stat}");
    let json: serde_json::Value = serde_json::from_str(&served.said(&["stat", "--json"])).unwrap();
    assert_eq!((&json["messages"], &json["is_served"]), (&3.into(), &true.into()));
    assert!(served.said(&["ls"]).contains("ann\t3 messages\t"), "{}", served.said(&["ls"]));
    assert!(served.said(&["ls", "ann"]).contains("INBOX\t3 messages\t3 unseen\t"));
    let listed = served.said(&["ls", "ann", "INBOX"]);
    assert!(listed.starts_with("UIDVALIDITY ") && listed.lines().count() == 4, "{listed}");
    assert!(served.said(&["ls", "--json", "ann", "INBOX"]).lines().all(|line| line.starts_with('{')));
    let mail = served.said(&["cat", "ann", "INBOX", "2"]);
    assert!(mail.contains("Subject: two\r\n") && mail.matches("line\r\n").count() == 20_000);
    assert_eq!(served.said(&["check"]), "3 messages, 0 damaged\n");
    for (words, wanted) in [
        (&["cat", "ann", "INBOX", "9"][..], "no message with this UID"),
        (&["cat", "ann", "INBOX", "x"], "\"x\" is not a valid number"),
        (&["ls", "bob"], "no such account"),
        (&["ls", "ann", "Nowhere"], "no such mailbox"),
        (&["check", "--salvage"], "another process has it open"),
    ] {
        let output = served.run(words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(wanted), "{words:?}: {error}");
    }
    // With the store in front, and without a server, the answers are the same.
    let volume = served.gateway.folder.path().join("store/mail");
    let volume = volume.to_str().unwrap();
    assert_eq!(served.said(&["ls", volume, "ann", "INBOX"]), listed);
    let Served { mut gateway, .. } = served;
    gateway.signal("TERM");
    gateway.wait();
    let run = |words: &[&str]| Command::new(env!("CARGO_BIN_EXE_sluice")).arg("store").args(words).output().unwrap();
    assert_eq!(said(&run(&["ls", volume, "ann", "INBOX"])), listed);
    assert_eq!(said(&run(&["cat", volume, "ann", "INBOX", "2"])), mail);
    assert!(said(&run(&["stat", volume])).contains("; closed"));
    // Somebody else has it, and answers nothing.
    let lock = fs::File::options().read(true).write(true).open(volume).unwrap();
    lock.lock().unwrap();
    let output = run(&["stat", volume]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("another process has it open, and no server answers at") && error.contains("mail.control"));
}

#[test]
fn a_backup_of_a_served_store_is_brought_up_to_date() {
    let served = Served::start();
    ["one", "two", "three"].iter().for_each(|subject| served.deliver(subject));
    let mut wire = served.imap();
    for command in ["CREATE a/b", "CREATE a.b", "CREATE a_b", "SELECT INBOX", "COPY 1 a/b", "COPY 2 a.b", "COPY 3 a_b"]
    {
        assert!(ask(&mut wire, command).status.starts_with("OK"), "{command}");
    }
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("backup");
    let backup = || served.said(&["export", "--incremental", folder.to_str().unwrap()]);
    assert_eq!(backup(), "6 messages: 6 written, 0 removed\n");
    let own = folder.join("ann");
    let set = |mails: &[&str]| mails.iter().map(|&mail| mail.to_owned()).collect::<BTreeSet<String>>();
    assert_eq!(mails(&own), set(&["one", "two", "three"]));
    for (mailbox, subject) in [(".a.b", "one"), (".a%2Eb", "two"), (".a_b", "three")] {
        assert_eq!(mails(&own.join(mailbox)), set(&[subject]));
    }
    for (path, mode) in [(folder.clone(), 0o700), (own.join("cur"), 0o700), (first_of(&own.join("cur")), 0o600)] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
    }
    assert_eq!(backup(), "6 messages: 0 written, 0 removed\n");
    // A flag, a mail that goes, one that comes, and a mailbox that goes; and a file that a power failure has left short.
    served.deliver("four");
    for command in
        ["STORE 1 +FLAGS (\\Flagged)", "STORE 2 +FLAGS (\\Deleted)", "EXPUNGE", "DELETE a_b", "STORE 2 +FLAGS (\\Seen)"]
    {
        assert!(ask(&mut wire, command).status.starts_with("OK"), "{command}");
    }
    let short = first_of(&own.join(".a.b/cur"));
    fs::File::options().write(true).open(short).unwrap().set_len(7).unwrap();
    fs::write(own.join("cur/of-another"), "kept").unwrap();
    assert_eq!(backup(), "5 messages: 2 written, 2 removed\n");
    assert!(own.join("cur/of-another").exists() && !own.join(".a_b").exists());
    fs::remove_file(own.join("cur/of-another")).unwrap();
    assert_eq!(mails(&own), set(&["one", "one F", "two", "three S", "four"]));
    let one =
        served.run(&["export", "--account", "ann", "--mailbox", "INBOX", place.path().join("one").to_str().unwrap()]);
    assert_eq!(said(&one), "3 messages\n");
    let wrong = served.run(&["export", "--incremental", "--format", "mbox", folder.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("--incremental is for Maildir folders"));
    // It goes into another store as it is.
    let volume = place.path().join("other");
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        said(&command.arg("store").arg(words[0]).arg("--store").arg(&volume).args(&words[1..]).output().unwrap())
    };
    let mut create = Command::new(env!("CARGO_BIN_EXE_sluice"));
    said(&create.args(["store", "create", "--size", "64M"]).arg(&volume).output().unwrap());
    assert_eq!(run(&["import", "--account", "ann", own.to_str().unwrap()]), "5 messages\n");
    let names: Vec<String> = run(&["ls", "ann"]).lines().map(|line| line.split('\t').next().unwrap().into()).collect();
    assert!(["INBOX", "a.b", "a/b"].iter().all(|name| names.contains(&(*name).to_owned())), "{names:?}");
}

#[test]
fn mailboxes_with_long_names_are_exported_and_come_back() {
    let served = Served::start();
    served.deliver("one");
    let long = ["b".repeat(300), format!("{}c", "b".repeat(300)), "é".repeat(200)];
    let mut wire = served.imap();
    assert!(ask(&mut wire, "ENABLE UTF8=ACCEPT").status.starts_with("OK"));
    for name in &long {
        for command in [format!("CREATE \"{name}\""), "SELECT INBOX".into(), format!("COPY 1 \"{name}\"")] {
            assert!(ask(&mut wire, &command).status.starts_with("OK"), "{command}");
        }
    }
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    for format in ["mbox", "maildir"] {
        assert_eq!(served.said(&["export", "--account", "ann", "--format", format, &at(format)]), "4 messages\n");
    }
    let mut create = Command::new(env!("CARGO_BIN_EXE_sluice"));
    said(&create.args(["store", "create", "--size", "64M", &at("other")]).output().unwrap());
    let run =
        |words: &[&str]| said(&Command::new(env!("CARGO_BIN_EXE_sluice")).arg("store").args(words).output().unwrap());
    assert_eq!(run(&["import", "--account", "ann", &at("other"), &at("maildir")]), "4 messages\n");
    let listed = run(&["ls", &at("other"), "ann"]);
    for name in &long {
        assert!(listed.lines().any(|line| line.starts_with(&format!("{name}\t1 messages"))), "{name}: {listed}");
    }
}

#[test]
fn the_log_says_where_mail_was_filed_and_at_which_door_a_recipient_was_refused() {
    let served = Served::start();
    let mut wire = Wire::connect(([127, 0, 0, 1], served.lmtp).into());
    wire.line();
    wire.command("LHLO x");
    wire.command("MAIL FROM:<a@example.org>");
    wire.command("RCPT TO:<ann>");
    wire.command("DATA");
    wire.send(b"Message-ID: <spam@x>\r\nX-Spam-Status: Yes, score=7.5 required=5.0\r\n\r\nbuy\r\n");
    assert!(wire.command(".").starts_with("250"));
    let log = served.gateway.wait_for_log("<spam@x>");
    let line = log.lines().find(|line| line.contains("delivery") && line.contains("<spam@x>")).unwrap();
    assert!(line.contains(" mailbox=\"Junk\" score=7.5 bytes=") && line.contains("delivery id="), "{line}");
    served.deliver("plain");
    let log = served.gateway.wait_for_log("mailbox=\"INBOX\"");
    assert!(!log.lines().any(|line| line.contains("INBOX") && line.contains("score=")), "{log}");
    let mut wire = served.gateway.connect();
    wire.talk("S: 220 *\nC: EHLO client.test\nS: 250-*");
    wire.command("MAIL FROM:<a@example.org>");
    assert!(wire.command("RCPT TO:<nobody@mx.test>").starts_with("550"));
    let log = served.gateway.wait_for_log("recipient refused");
    let line = log.lines().find(|line| line.contains("recipient refused")).unwrap();
    assert!(line.contains(" door=\"smtp\" client=127.0.0.1 "), "{line}");
}

#[test]
fn what_nobody_sees_is_escaped_in_the_log() {
    for (format, wanted) in
        [("json", "a\\u202eb\\u0085\\u2028\\u007f"), ("human", "a\\u{202e}b\\u{85}\\u{2028}\\u{7f}")]
    {
        let imap = free_port();
        let gateway = Gateway::with(&format!(
            "hostname = \"mx.test\"\nthreads = 1\n[log]\nformat = \"{format}\"\n[store]\nfolder = \"FOLDER/store\"\n\
             size = \"64M\"\nimap = [\"127.0.0.1:{imap}\"]\n"
        ));
        let mut wire = Wire::connect(([127, 0, 0, 1], imap).into());
        wire.line();
        let name = "a\u{202e}b\u{85}\u{2028}\u{7f}";
        wire.send(format!("a LOGIN {{{}+}}\r\n{name} x\r\n", name.len()).as_bytes());
        assert!(wire.line().starts_with("a NO "));
        let log = gateway.wait_for_log(wanted);
        assert!(!log.contains(['\u{202e}', '\u{85}', '\u{2028}', '\u{7f}']), "{log}");
        if format == "json" {
            let line = log.lines().find(|line| line.contains(wanted)).unwrap();
            let entry: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(entry["account"], name);
        }
    }
}
