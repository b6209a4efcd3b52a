//! Mail from commands: `sluice sendmail` as cron, PHP and mutt call it, with a server and without one.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::{Arrived, Behaviour, Gateway, Sink, base64, eicar, mail_with, wait_for};

const NOBODY: u32 = 65_534;

/// A folder that outlives servers, with the configuration that commands read.
struct Machine {
    folder: tempfile::TempDir,
    sink: Sink,
}

impl Machine {
    fn new() -> Machine {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let sink = Sink::start(Behaviour { extensions: &["DSN"], ..Behaviour::default() });
        let machine = Machine { folder, sink };
        std::fs::write(machine.config(), machine.settings()).unwrap();
        symlink(env!("CARGO_BIN_EXE_sluice"), machine.folder.path().join("sendmail")).unwrap();
        machine
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("sluice.toml")
    }

    fn maildrop(&self) -> PathBuf {
        self.folder.path().join("maildrop")
    }

    fn settings(&self) -> String {
        let at = self.folder.path().display();
        format!(
            "hostname = \"mx.test\"\nthreads = 1\n[store]\nfolder = \"{at}/store\"\nsize = \"64M\"\nrelay = \"{}\"\n\
             maildrop = \"{at}/maildrop\"\n[[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\n",
            self.sink.forward()
        )
    }

    fn serve(&self) -> Gateway {
        Gateway::with(&self.settings())
    }

    /// Runs sendmail; its exit status.
    fn sendmail(&self, user: Option<u32>, words: &[&str], input: &str) -> Option<i32> {
        let mut command = Command::new(self.folder.path().join("sendmail"));
        command.arg("-C").arg(self.config()).args(words);
        user.map(|user| command.uid(user).gid(user));
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // One that is wrong does not read.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait().unwrap().code()
    }

    fn next(&self) -> Arrived {
        wait_for(|| self.sink.take(), "a mail")
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The user that runs the tests, at the host.
fn us() -> String {
    let id = Command::new("id").arg("-un").output().unwrap();
    format!("{}@mx.test", String::from_utf8(id.stdout).unwrap().trim())
}

#[test]
fn a_command_sends_a_mail_as_its_user_with_what_the_mail_lacks() {
    let machine = Machine::new();
    let _gateway = machine.serve();
    // As PHP does it.
    let mail = "To: Ann <ann@example.org>, bob@example.org\nBcc: eve@example.org\nSubject: hi\n\n.\nbody\n";
    assert_eq!(machine.sendmail(None, &["-t", "-i"], mail), Some(0));
    let Arrived { from, to, .. } = machine.next();
    assert_eq!(
        (from, to),
        (us(), vec!["ann@example.org".to_owned(), "bob@example.org".into(), "eve@example.org".into()])
    );
    // As cron does it: text without a header, to a name of this machine.
    assert_eq!(machine.sendmail(None, &["-FCron Daemon", "-i", "-B8BITMIME", "-oem", "root"], "text\n\n:\n"), Some(0));
    let mail = machine.next();
    let text = mail.text();
    assert_eq!(mail.to, ["root@mx.test"]);
    assert!(text.starts_with("Received: by mx.test (from user "), "{text}");
    for field in ["\r\nDate: ", "\r\nMessage-ID: <", &format!("\r\nFrom: \"Cron Daemon\" <{}>\r\n", us())] {
        assert!(text.contains(field), "{field}: {text}");
    }
    assert!(text.ends_with("\r\n\r\ntext\r\n\r\n:\r\n"), "{text}");
    // As mutt does it.
    let words = ["-oem", "-oi", "-f", "<>", "-N", "never", "-R", "hdrs", "-V", "a b", "--", "carl@example.org"];
    let mail = "Date: x\nFrom: y@z\nMessage-ID: <m@z>\nBcc: eve@example.org\n\nbody\n";
    assert_eq!(machine.sendmail(None, &words, mail), Some(0));
    let mail = machine.next();
    assert_eq!((mail.from.as_str(), mail.to.as_slice()), ("", &["carl@example.org".to_owned()][..]));
    assert!(mail.text().ends_with("Date: x\r\nFrom: y@z\r\nMessage-ID: <m@z>\r\n\r\nbody\r\n"), "{}", mail.text());
    let commands = machine.sink.commands().join("\n");
    assert!(
        commands.contains("RET=HDRS ENVID=a+20b") && commands.contains("<carl@example.org> NOTIFY=NEVER"),
        "{commands}"
    );
    wait_for(|| std::fs::read_dir(machine.maildrop()).unwrap().next().is_none().then_some(()), "an empty maildrop");
}

#[test]
fn a_word_is_one_address_and_the_help_is_there() {
    let machine = Machine::new();
    drop(machine.serve());
    for wrong in ["c@x.example d@x.example", "a b", ":include:/etc/passwd"] {
        assert_eq!(machine.sendmail(None, &[wrong], "A: b\n\n"), Some(65), "{wrong}");
    }
    assert!(crate::harness::files(&machine.maildrop()).is_empty());
    let help = Command::new(env!("CARGO_BIN_EXE_sluice")).args(["sendmail", "--help"]).output().unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(help.status.success() && text.contains("-R full|hdrs") && text.contains("sluice sendmail"), "{text}");
}

#[test]
fn users_send_as_themselves_unless_they_are_trusted_and_see_nothing_of_each_other() {
    if !is_root() {
        return eprintln!("skipped: only root becomes other users");
    }
    let machine = Machine::new();
    let _gateway = machine.serve();
    for (user, from) in [(None, "boss@example.org"), (Some(NOBODY), "nobody@mx.test")] {
        assert_eq!(machine.sendmail(user, &["-f", "boss@example.org", "x@example.org"], "A: b\n\n"), Some(0));
        assert_eq!(machine.next().from, from);
    }
    assert_eq!(machine.sendmail(Some(NOBODY), &["-f", "nobody+x@mx.test", "x@example.org"], "A: b\n\n"), Some(0));
    assert_eq!(machine.next().from, "nobody+x@mx.test");
    assert_eq!(machine.maildrop().metadata().unwrap().mode() & 0o7777, 0o3733);
    let list = Command::new("ls").arg(machine.maildrop()).uid(NOBODY).gid(NOBODY).output().unwrap();
    assert!(!list.status.success());
}

#[test]
fn mail_waits_for_a_server_that_is_stopped() {
    let machine = Machine::new();
    // Before the first start there is no maildrop, and a command says so.
    assert_eq!(machine.sendmail(None, &["x@example.org"], "A: b\n\n"), Some(69));
    drop(machine.serve());
    for number in 0..3 {
        assert_eq!(machine.sendmail(None, &["x@example.org"], &format!("N: {number}\n\n")), Some(0));
    }
    let files = crate::harness::files(&machine.maildrop());
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|file| file.metadata().unwrap().mode() & 0o777 == 0o640));
    assert!(machine.sink.mails().is_empty());
    let gateway = machine.serve();
    let mut numbers: Vec<String> = machine.sink.wait(3).iter().map(|mail| mail.text()).collect();
    numbers.sort_by_key(|text| text.find("N: ").map(|at| text[at..].to_owned()));
    assert!((0..3).all(|number| numbers[number].contains(&format!("N: {number}\r\n"))), "{numbers:?}");
    // Whatever else is put there is kept, and said.
    std::fs::write(machine.maildrop().join("x"), "to a@b\n\n").unwrap();
    std::fs::set_permissions(machine.maildrop().join("x"), std::fs::Permissions::from_mode(0o640)).unwrap();
    gateway.wait_for_log("mail in the maildrop refused");
    assert!(machine.maildrop().join("x.refused").exists());
}

#[test]
fn what_commands_send_is_inspected_and_what_is_wrong_has_its_status() {
    let machine = Machine::new();
    let gateway = machine.serve();
    let infected = mail_with("base64", "eicar.com", &base64(&eicar()));
    assert_eq!(machine.sendmail(None, &["-i", "x@example.org"], &String::from_utf8(infected).unwrap()), Some(0));
    gateway.wait_for_log("it is not sent, since it holds");
    let notice = machine.next();
    assert_eq!((notice.from.as_str(), notice.to[0].clone()), ("", us()));
    for (words, input, status) in [
        (&[][..], "A: b\n\n", 64),
        (&["-t"], "Subject: x\n\n", 64),
        (&["-Z", "a@b"], "", 64),
        (&["a b@[c"], "A: b\n\n", 65),
    ] {
        assert_eq!(machine.sendmail(None, words, input), Some(status), "{words:?}");
    }
    assert_eq!(machine.sendmail(None, &["-bi"], ""), Some(0));
}

#[test]
fn a_mail_that_is_long_in_coming_is_taken_as_soon_as_it_is_whole() {
    let machine = Machine::new();
    let _gateway = machine.serve();
    let mut command = Command::new(machine.folder.path().join("sendmail"));
    command.arg("-C").arg(machine.config()).args(["-i", "ann@example.org"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"Subject: slow\n\n").unwrap();
    input.write_all(&b"a line of the mail\n".repeat(20_000)).unwrap();
    let written = || crate::harness::files(&machine.maildrop()).iter().any(|file| file.metadata().unwrap().len() > 0);
    wait_for(|| written().then_some(()), "a part of the mail");
    // The server looks each second, and sees that it is not whole.
    std::thread::sleep(Duration::from_secs(3));
    drop(input);
    assert!(child.wait().unwrap().success());
    let start = Instant::now();
    assert!(machine.next().text().contains("Subject: slow\r\n"));
    assert!(start.elapsed() < Duration::from_secs(40), "it waited for the next minute");
}

#[test]
fn mutt_sends_by_it() {
    if !Path::new("/usr/bin/mutt").exists() {
        return eprintln!("skipped: mutt is not installed");
    }
    let machine = Machine::new();
    let _gateway = machine.serve();
    let sendmail = format!("{}/sendmail -C {} -oem -oi", machine.folder.path().display(), machine.config().display());
    let mut command = Command::new("mutt");
    command.args([
        "-n",
        "-F",
        "/dev/null",
        "-e",
        &format!("set sendmail='{sendmail}' copy=no use_from=yes from=ann@example.org"),
    ]);
    command.args(["-s", "hello", "-b", "eve@example.org", "bob@example.org"]).env("HOME", machine.folder.path());
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"body of a mail\n").unwrap();
    assert!(child.wait().unwrap().success());
    let mail = machine.next();
    assert_eq!(mail.to, ["bob@example.org", "eve@example.org"]);
    let text = mail.text();
    assert!(text.contains("Subject: hello\r\n") && text.contains("body of a mail") && !text.contains("eve@"), "{text}");
}
