//! `sluice store serve`: real clients, and a server that is killed while mail comes in.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::harness::imap::ask;
use crate::harness::{Wire, free_port};

struct Server {
    child: Child,
    folder: PathBuf,
    lmtp: SocketAddr,
    pop3: SocketAddr,
    imap: SocketAddr,
    sieve: SocketAddr,
}

fn sluice(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
    command.args(arguments).env("SLUICE_LOG", "warn");
    command
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A folder with an empty volume, and the accounts `ann` and `bob` with the password `secret`.
fn site(size: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (volume, accounts) = (folder.path().join("mail"), folder.path().join("mail.accounts"));
    said(&sluice(&["store", "create", "--size", size, "--segment", "1M"]).arg(&volume).output().unwrap());
    for name in ["ann", "bob"] {
        let mut child = sluice(&["account", "--accounts", accounts.to_str().unwrap(), "add", name]);
        let mut child = child.stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"secret\n").unwrap();
        assert!(child.wait().unwrap().success());
    }
    folder
}

impl Server {
    fn start(folder: &Path) -> Server {
        let [lmtp, pop3, imap, sieve] = [(); 4].map(|()| SocketAddr::from(([127, 0, 0, 1], free_port())));
        let mut command = sluice(&["store", "serve", "--lmtp", &lmtp.to_string(), "--pop3", &pop3.to_string()]);
        command.args(["--imap", &imap.to_string(), "--hostname", "mail.test", "--sieve", &sieve.to_string()]);
        command.arg(folder.join("mail"));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        while line != "ready\n" {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "it does not start");
        }
        Server { child, folder: folder.into(), lmtp, pop3, imap, sieve }
    }

    fn deliver(&self, to: &str, mail: &[u8]) {
        assert!(self.reply_to(to, mail).starts_with("250"));
    }

    fn reply_to(&self, to: &str, mail: &[u8]) -> String {
        let mut wire = Wire::connect(self.lmtp);
        assert!(wire.line().starts_with("220 "));
        wire.command("LHLO x");
        assert!(wire.command("MAIL FROM:<a@example.org>").starts_with("250"));
        assert!(wire.command(&format!("RCPT TO:<{to}>")).starts_with("250"));
        assert!(wire.command("DATA").starts_with("354"));
        for line in mail.split_inclusive(|&byte| byte == b'\n') {
            wire.send(if line.starts_with(b".") { b"." } else { b"" });
            wire.send(line);
        }
        wire.command(".")
    }

    /// Ends it as a service manager does.
    fn stop(mut self) {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(self.child.wait().unwrap().success());
        let stat = said(&sluice(&["store", "stat", "--json"]).arg(self.folder.join("mail")).output().unwrap());
        assert!(stat.contains("\"was_closed\": true"), "{stat}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a client; none if it is not there.
fn client(program: &str, arguments: &[&str], home: &Path) -> Option<String> {
    let output = Command::new("timeout").args(["60", program]).args(arguments).env("HOME", home).output().unwrap();
    if is_missing(program, &output) {
        return None;
    }
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {arguments:?}: {out}{error}");
    Some(out.into_owned())
}

/// Whether timeout(1) has not found the program: then it says so, and ends with 127. Some programs end with that when they fail.
fn is_missing(program: &str, output: &Output) -> bool {
    let missing = output.status.code() == Some(127) && output.stderr.starts_with(b"timeout: ");
    if missing {
        eprintln!("skipped: {program} is not installed");
    }
    missing
}

fn mail(number: usize) -> Vec<u8> {
    let body = match number % 4 {
        0 => "short\r\n".into(),
        1 => format!(".dot\r\n..\r\n{}\r\n", "text ".repeat(number * 13 % 5_000)),
        2 => "gr\u{fc}\u{df}e\r\n\r\n\r\n".repeat(number),
        _ => "no end of line is kept as one\r\n".into(),
    };
    format!("From: a@example.org\r\nSubject: number {number}\r\nMessage-ID: <{number}@example.org>\r\n\r\n{body}")
        .into_bytes()
}

/// Runs a client with this standard input.
fn client_with_input(program: &str, arguments: &[&str], home: &Path, input: &str) -> Option<(bool, String)> {
    let mut command = Command::new("timeout");
    command.args(["60", program]).args(arguments).env("HOME", home).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    if is_missing(program, &output) {
        return None;
    }
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Some((output.status.success(), format!("{out}{error}")))
}

#[test]
fn clients_log_in_without_telling_the_password() {
    let folder = site("64M");
    let server = Server::start(folder.path());
    server.deliver("ann", &mail(1));
    let address = server.imap.to_string();
    let gsasl = |password: &str| {
        let words = ["--imap", "--connect", &address, "--mechanism", "SCRAM-SHA-256", "--no-starttls"];
        let words: Vec<&str> = words.into_iter().chain(["-a", "ann", "-p", password]).collect();
        client_with_input("gsasl", &words, folder.path(), "")
    };
    if let Some((_, said)) = gsasl("secret") {
        assert!(said.contains("Logged in"), "{said}");
        let (_, said) = gsasl("Secret").unwrap();
        assert!(!said.contains("Logged in") && said.contains("AUTHENTICATIONFAILED"), "{said}");
    }
    let into = folder.path().join("fetched");
    let port = server.pop3.port().to_string();
    let uidls = format!("--uidls-file={}", folder.path().join("uidls").display());
    let delivery = format!("--delivery=mbox,{}", into.display());
    let words = [
        "--host=127.0.0.1",
        &format!("--port={port}"),
        "--tls=off",
        "--auth=scram-sha-256",
        "--user=ann",
        "--passwordeval=echo secret",
        &uidls,
        "--keep=on",
        &delivery,
    ];
    if client("mpop", &words, folder.path()).is_some() {
        assert!(fs::read_to_string(&into).unwrap().contains("number 1"));
    }
    server.stop();
}

#[test]
fn sieve_connect_keeps_a_script_that_files_mail() {
    let folder = site("64M");
    let server = Server::start(folder.path());
    let path = folder.path().join("filter.sieve");
    fs::write(&path, "require [\"fileinto\", \"mailbox\"];\nfileinto :create \"Lists/one\";\n").unwrap();
    let port = server.sieve.port().to_string();
    let connect = |words: &[&str]| {
        let common = ["--server", "127.0.0.1", "--port", &port, "--user", "ann", "--clearchan", "--passwordfd", "0"];
        let words: Vec<&str> = common.iter().chain(words).copied().collect();
        client_with_input("sieve-connect", &words, folder.path(), "secret\n")
    };
    let Some((put, said)) = connect(&["--localsieve", path.to_str().unwrap(), "--remotesieve", "one", "--upload"])
    else {
        return;
    };
    assert!(put, "{said}");
    let (active, said) = connect(&["--remotesieve", "one", "--activate"]).unwrap();
    assert!(active, "{said}");
    let (_, said) = connect(&["--list"]).unwrap();
    assert!(said.contains("\"one\" ACTIVE"), "{said}");
    let wrong = folder.path().join("wrong.sieve");
    fs::write(&wrong, "fileinto \"x\";\n").unwrap();
    let (put, said) = connect(&["--localsieve", wrong.to_str().unwrap(), "--remotesieve", "two", "--upload"]).unwrap();
    assert!(!put && said.contains("require"), "{said}");
    server.deliver("ann", &mail(1));
    let volume = folder.path().join("mail");
    server.stop();
    let listed = said_of(&["store", "ls"], &[volume.to_str().unwrap(), "ann", "Lists/one"]);
    assert!(listed.contains("UIDNEXT 2"), "{listed}");
}

fn said_of(words: &[&str], more: &[&str]) -> String {
    said(&sluice(words).args(more).output().unwrap())
}

#[test]
fn an_administrator_keeps_scripts_with_a_server_and_without() {
    let folder = site("64M");
    let volume = folder.path().join("mail");
    let path = folder.path().join("filter.sieve");
    fs::write(&path, "require \"fileinto\"; fileinto \"Archive\";\n").unwrap();
    let sieve =
        |words: &[&str]| sluice(&["sieve"]).args(words).args(["--store", volume.to_str().unwrap()]).output().unwrap();
    let server = Server::start(folder.path());
    // An account that has no mail yet.
    said(&sieve(&["put", "ann", "mine", path.to_str().unwrap(), "--activate"]));
    assert_eq!(said(&sieve(&["list", "Ann"])), "mine\tactive\n");
    server.deliver("ann", &mail(1));
    assert!(!sieve(&["list", "nobody"]).status.success());
    server.stop();
    assert_eq!(said(&sieve(&["get", "ann", "mine"])), fs::read_to_string(&path).unwrap());
    assert!(!sieve(&["delete", "ann", "mine"]).status.success(), "it is active");
    said(&sieve(&["activate", "ann"]));
    said(&sieve(&["delete", "ann", "mine"]));
    assert_eq!(said(&sieve(&["list", "ann"])), "");
    fs::write(&path, "fileinto \"Archive\";\n").unwrap();
    let wrong = sieve(&["put", "ann", "mine", path.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("line 1, column 1"), "{wrong:?}");
    let listed = said_of(&["store", "ls"], &[volume.to_str().unwrap(), "ann", "Archive"]);
    assert!(listed.contains("UIDNEXT 2"), "{listed}");
}

#[test]
fn an_administrator_shares_a_mailbox_with_a_server_and_without() {
    let folder = site("64M");
    let volume = folder.path().join("mail");
    let acl = |words: &[&str]| sluice(&["store", "acl"]).arg(&volume).args(words).output().unwrap();
    let server = Server::start(folder.path());
    server.deliver("ann", &mail(1));
    said(&acl(&["ann", "inbox", "Bob", "lr"]));
    assert_eq!(said(&acl(&["ann", "INBOX"])), "bob\tlr\n");
    let missing = acl(&["ann", "Nowhere", "bob", "l"]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("ann has no mailbox Nowhere"), "{missing:?}");
    // It counts for sessions under way.
    let mut bob = Wire::connect(server.imap);
    bob.line();
    assert!(ask(&mut bob, "LOGIN bob secret").status.starts_with("OK"));
    let status = "STATUS \"Other Users/ann/INBOX\" (MESSAGES)";
    let told = ask(&mut bob, status);
    assert_eq!(told.lines, ["* STATUS \"Other Users/ann/INBOX\" (MESSAGES 1)"], "{told:?}");
    said(&acl(&["ann", "INBOX", "bob", "-r"]));
    assert!(ask(&mut bob, status).status.starts_with("NO [NOPERM]"));
    server.stop();
    assert_eq!(said(&acl(&["ann", "INBOX"])), "bob\tl\n");
}

fn maildir(path: &Path) -> Vec<Vec<u8>> {
    let files = ["cur", "new"].into_iter().flat_map(|part| fs::read_dir(path.join(part)).unwrap());
    let mut mails: Vec<Vec<u8>> = files.map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
    mails.sort();
    mails
}

fn without_crs(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().copied().filter(|&byte| byte != b'\r').collect()
}

/// The mail without the fields that a server or mbsync has added in front.
fn bare(mail: &[u8]) -> Vec<u8> {
    let text = without_crs(mail);
    let at = text.windows(5).position(|window| window == b"From:").unwrap();
    let lines: Vec<&[u8]> = text[at..].split_inclusive(|&byte| byte == b'\n').collect();
    lines.into_iter().filter(|line| !line.starts_with(b"X-TUID:")).flatten().copied().collect()
}

#[test]
fn mbsync_has_every_mail_there_and_back() {
    let folder = site("64M");
    let server = Server::start(folder.path());
    for number in 0..200 {
        server.deliver("ann", &mail(number));
    }
    let sync = |name: &str, account: &str, store: &str| {
        let config = folder.path().join(format!("{name}.mbsyncrc"));
        let path = folder.path().display();
        fs::create_dir_all(folder.path().join(store)).unwrap();
        let text = format!(
            "IMAPStore far\nHost 127.0.0.1\nPort {}\nUser {account}\nPass secret\nSSLType None\nAuthMechs LOGIN\n\n\
             MaildirStore near\nPath {path}/{store}/\nInbox {path}/{store}/INBOX\n\n\
             Channel all\nFar :far:\nNear :near:\nPatterns INBOX\nCreate Both\nExpunge Both\nSyncState {path}/{name}-\n",
            server.imap.port()
        );
        fs::write(&config, text).unwrap();
        client("mbsync", &["-c", config.to_str().unwrap(), "all"], folder.path())
    };
    if sync("down", "ann", "first").is_none() {
        return;
    }
    let wanted: BTreeSet<Vec<u8>> = (0..200).map(|number| without_crs(&mail(number))).collect();
    let found = |store: &str| maildir(&folder.path().join(store).join("INBOX"));
    let strip = |mails: Vec<Vec<u8>>| mails.iter().map(|mail| bare(mail)).collect::<BTreeSet<_>>();
    // Not `assert_eq`, which would print all of them.
    assert!(strip(found("first")) == wanted);
    // What came down goes up to somebody else, and down again.
    sync("up", "bob", "first").unwrap();
    sync("again", "bob", "second").unwrap();
    assert!(strip(found("second")) == wanted);
    assert_eq!(found("second").len(), 200);
    server.stop();
}

#[test]
fn clients_read_mail() {
    let folder = site("64M");
    let server = Server::start(folder.path());
    for number in 0..3 {
        server.deliver("ann", &mail(number));
    }
    let (imap, pop3) = (format!("imap://{}", server.imap), format!("pop3://{}", server.pop3));
    if let Some(read) = client("curl", &["-s", "-u", "ann:secret", &format!("{imap}/INBOX;MAILINDEX=2")], folder.path())
    {
        assert_eq!(bare(read.as_bytes()), without_crs(&mail(1)));
        let found = client(
            "curl",
            &["-s", "-u", "ann:secret", &format!("{imap}/INBOX?SUBJECT%20%22number%202%22")],
            folder.path(),
        );
        assert_eq!(found.unwrap().trim(), "* SEARCH 3");
        let read = client("curl", &["-s", "-u", "ann:secret", &format!("{pop3}/3")], folder.path()).unwrap();
        assert_eq!(bare(read.as_bytes()), without_crs(&mail(2)));
    }
    let config = folder.path().join("fetchmailrc");
    let text = format!(
        "poll 127.0.0.1 protocol POP3 port {} uidl user ann password secret is root here sslproto '' keep mda \"cat >> {}\"\n",
        server.pop3.port(),
        folder.path().join("fetched").display()
    );
    fs::write(&config, text).unwrap();
    fs::set_permissions(&config, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    // It takes its file away at the end.
    let pid = folder.path().join("pid");
    if client("fetchmail", &["-f", config.to_str().unwrap(), "--pidfile", pid.to_str().unwrap(), "-s"], folder.path())
        .is_some()
    {
        let fetched = String::from_utf8_lossy(&fs::read(folder.path().join("fetched")).unwrap()).into_owned();
        assert_eq!(fetched.matches("Subject: number ").count(), 3);
    }
    server.stop();
}

#[test]
fn offlineimap_and_mutt_read_mail() {
    let folder = site("64M");
    let server = Server::start(folder.path());
    for number in 0..20 {
        server.deliver("ann", &mail(number));
    }
    let wanted: BTreeSet<Vec<u8>> = (0..20).map(|number| without_crs(&mail(number))).collect();
    let strip = |mails: Vec<Vec<u8>>| mails.iter().map(|mail| bare(mail)).collect::<BTreeSet<_>>();
    let at = folder.path().display();
    let config = format!(
        "[general]\naccounts = a\nmetadata = {at}/offlineimap-state\nui = quiet\n[Account a]\nlocalrepository = l\n\
         remoterepository = r\n[Repository l]\ntype = Maildir\nlocalfolders = {at}/offlineimap\n[Repository r]\n\
         type = IMAP\nremotehost = 127.0.0.1\nremoteport = {}\nremoteuser = ann\nremotepass = secret\nssl = no\n\
         starttls = no\n",
        server.imap.port()
    );
    fs::write(folder.path().join("offlineimaprc"), config).unwrap();
    if client("offlineimap", &["-c", &format!("{at}/offlineimaprc"), "-o"], folder.path()).is_some() {
        assert!(strip(maildir(&folder.path().join("offlineimap/INBOX"))) == wanted);
    }
    let config = format!(
        "set imap_user=ann imap_pass=secret ssl_starttls=no ssl_force_tls=no copy=no confirmappend=no confirmcreate=no\n\
         set folder={at} header_cache=\"\" mbox_type=Maildir\n\
         push \"<tag-pattern>~A<enter><tag-prefix><copy-message><kill-line>{at}/mutt<enter><exit><exit>\"\n"
    );
    fs::write(folder.path().join("muttrc"), config).unwrap();
    let mutt = format!("TERM=xterm mutt -n -F {at}/muttrc -f imap://127.0.0.1:{}/INBOX", server.imap.port());
    let is_there = client("sh", &["-c", "command -v mutt script || true"], folder.path()).unwrap().lines().count() == 2;
    if is_there && client_with_input("script", &["-qec", &mutt, "/dev/null"], folder.path(), "").is_some() {
        assert_eq!(maildir(&folder.path().join("mutt")).len(), 20);
    }
    server.stop();
}

#[test]
fn a_server_that_is_killed_has_kept_what_it_acknowledged() {
    let rounds = std::env::var("SLUICE_STORE_KILLS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(10u32);
    let folder = site("256M");
    let acknowledged = std::sync::Mutex::new(BTreeSet::new());
    let next = AtomicU32::new(0);
    for round in 0..rounds {
        let mut server = Server::start(folder.path());
        let lmtp = server.lmtp;
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let _ = load(lmtp, &next, &acknowledged);
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(u64::from(150 + round * 37 % 200)));
            server.child.kill().unwrap();
        });
        server.child.wait().unwrap();
    }
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() > rounds as usize, "{} mails", acknowledged.len());
    let volume = folder.path().join("mail");
    assert!(said(&sluice(&["store", "check"]).arg(&volume).output().unwrap()).contains(" 0 damaged"));
    for account in ["ann", "bob"] {
        let out = folder.path().join(account);
        said(&sluice(&["store", "export", "--account", account]).arg(&volume).arg(&out).output().unwrap());
        let mut found = BTreeSet::new();
        for mail in maildir(&out) {
            let text = String::from_utf8_lossy(&mail).into_owned();
            let subject: u32 = text.split("Subject: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
            assert_eq!(text.matches("text").count(), subject as usize % 900 + 1, "{subject} is not whole");
            assert!(found.insert(subject), "{subject} came twice");
        }
        assert!(
            acknowledged.is_subset(&found),
            "{account} lacks {:?}",
            acknowledged.difference(&found).collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_disk_that_is_full_for_a_while_costs_no_mail_and_no_login() {
    let folder = site("24M");
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=32m", "none"]).arg(&disk).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        return eprintln!("skipped: no file system of a size may be mounted here");
    }
    let unmounted = Unmounted(disk.clone());
    // A copy has no room for what it does not hold yet.
    let copied = Command::new("cp").arg("--sparse=always").arg(folder.path().join("mail")).arg(&disk).status();
    assert!(copied.unwrap().success());
    fs::copy(folder.path().join("mail.accounts"), disk.join("mail.accounts")).unwrap();
    let others = disk.join("others");
    fs::write(&others, vec![1; 26 << 20]).unwrap();
    let server = Server::start(&disk);
    server.deliver("ann", &mail(0));
    let large = mail(1).repeat(1_000);
    let mut taken = 1;
    let refusal = loop {
        match server.reply_to("ann", &large) {
            reply if reply.starts_with("250") => taken += 1,
            reply => break reply,
        }
        assert!(taken < 1_000, "the disk is not full");
    };
    assert!(refusal.starts_with("452 4.3.1"), "{refusal}");
    let mut wire = Wire::connect(server.imap);
    assert!(wire.line().starts_with("* OK"));
    assert!(ask(&mut wire, "LOGIN ann secret").status.starts_with("OK"));
    assert!(ask(&mut wire, "SELECT INBOX").lines.iter().any(|line| *line == format!("* {taken} EXISTS")));
    fs::remove_file(&others).unwrap();
    let delivered = || server.reply_to("ann", &large).starts_with("250").then_some(());
    crate::harness::wait_for(delivered, "a mail after there is room again");
    assert!(ask(&mut wire, "NOOP").lines.iter().any(|line| *line == format!("* {} EXISTS", taken + 1)));
    drop((wire, server));
    drop(unmounted);
}

/// A mounted folder.
struct Unmounted(PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Delivers to both until the server is gone.
fn load(lmtp: SocketAddr, next: &AtomicU32, acknowledged: &std::sync::Mutex<BTreeSet<u32>>) -> std::io::Result<()> {
    let stream = TcpStream::connect(lmtp)?;
    let (mut read, mut write) = (BufReader::new(stream.try_clone()?), stream);
    let mut line = String::new();
    let mut answer = |read: &mut BufReader<TcpStream>| -> std::io::Result<bool> {
        loop {
            line.clear();
            if read.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok(line.ends_with('\n') && line.starts_with('2'));
            }
        }
    };
    answer(&mut read)?;
    write.write_all(b"LHLO x\r\n")?;
    answer(&mut read)?;
    loop {
        let number = next.fetch_add(1, Relaxed);
        write.write_all(b"MAIL FROM:<>\r\nRCPT TO:<ann>\r\nRCPT TO:<bob>\r\nDATA\r\n")?;
        for _ in 0..4 {
            answer(&mut read)?;
        }
        write.write_all(
            format!("Subject: {number}\r\n\r\n{}text\r\n.\r\n", "text ".repeat(number as usize % 900)).as_bytes(),
        )?;
        if answer(&mut read)? & answer(&mut read)? {
            acknowledged.lock().unwrap().insert(number);
        }
    }
}
