//! `sluice store`: mail in and out byte for byte, and a delivering process that is killed again and again.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn run(volume: &Path, command: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sluice")).args(["store", command]).arg(volume).args(args).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A folder with an empty volume in it.
fn volume(size: &str, segment: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let volume = folder.path().join("volume");
    text(&run(&volume, "create", &["--size", size, "--segment", segment]));
    (folder, volume)
}

fn stat(volume: &Path) -> Value {
    serde_json::from_str(&text(&run(volume, "stat", &["--json"]))).unwrap()
}

#[test]
fn a_mail_is_delivered_to_all_and_stored_once() {
    let (folder, volume) = volume("64M", "1M");
    let mail = folder.path().join("mail");
    let content = [&b"Subject: x\r\n\r\n"[..], &[0, 255, 13, 10].repeat(500_000)].concat();
    fs::write(&mail, &content).unwrap();
    let path = mail.to_str().unwrap();
    let told = text(&run(&volume, "deliver", &["--to", "ann", "--to", "bob", "--to", "eve", path, path]));
    let expected: String =
        (1..=2).flat_map(|uid| ["ann", "bob", "eve"].map(|to| format!("{path}: {to} {uid}\n"))).collect();
    assert_eq!(told, expected);
    let stat = stat(&volume);
    assert_eq!((&stat["messages"], &stat["links"], &stat["was_closed"]), (&2.into(), &6.into(), &true.into()));
    assert!(stat["live_bytes"].as_u64().unwrap() < 4_100_000, "{stat}");
    assert!(run(&volume, "cat", &["eve", "INBOX", "2"]).stdout == content);
    let inbox = format!("INBOX\t2 messages\t2 unseen\t{} bytes\n", 2 * content.len());
    assert!(text(&run(&volume, "ls", &["bob"])).contains(&inbox));
    assert_eq!(text(&run(&volume, "check", &[])), "2 messages, 0 damaged\n");
    // What is damaged is named, with those who have it.
    let bytes = fs::read(&volume).unwrap();
    let at = bytes.windows(10).rposition(|window| window == b"Subject: x").unwrap();
    let mut damaged = bytes.clone();
    damaged[at] ^= 1;
    fs::write(&volume, damaged).unwrap();
    let check = run(&volume, "check", &[]);
    assert_eq!(check.status.code(), Some(1));
    let told = String::from_utf8(check.stdout).unwrap();
    assert!(told.contains("    bob INBOX UID 2\n") && told.contains("2 messages, 1 damaged"), "{told}");
    assert!(!run(&volume, "cat", &["eve", "INBOX", "2"]).status.success());
    assert!(run(&volume, "cat", &["eve", "INBOX", "1"]).stdout == content);
}

#[test]
fn maildirs_and_mboxes_come_out_as_they_went_in() {
    let (folder, volume) = volume("64M", "1M");
    let source = folder.path().join("Maildir");
    let mails = [
        ("cur/1.a:2,FS", "Subject: one\n\nFrom here\n>From there\n"),
        ("new/2.b", "Subject: two\r\n\r\nno end"),
        (".Sent/cur/3.c:2,S", "Subject: three\n\n\n"),
        (".Lists.rust/new/4.d", ""),
    ];
    for (name, content) in mails {
        let path = source.join(name);
        for part in ["cur", "new", "tmp"] {
            fs::create_dir_all(path.parent().unwrap().parent().unwrap().join(part)).unwrap();
        }
        fs::write(path, content).unwrap();
    }
    assert_eq!(text(&run(&volume, "import", &["--account", "ann", source.to_str().unwrap()])), "4 messages\n");
    let listed = text(&run(&volume, "ls", &["ann"]));
    assert_eq!(
        listed.lines().map(|line| line.split('\t').next().unwrap()).collect::<Vec<_>>(),
        ["Archive", "Drafts", "INBOX", "Junk", "Lists/rust", "Sent", "Trash"]
    );
    assert!(text(&run(&volume, "ls", &["ann", "INBOX"])).contains("\\Seen \\Flagged"));
    // Out as a Maildir and in again for another account, and the same as mbox files.
    let out = folder.path().join("out");
    text(&run(&volume, "export", &["--account", "ann", out.to_str().unwrap()]));
    assert_eq!(text(&run(&volume, "import", &["--account", "bob", out.to_str().unwrap()])), "4 messages\n");
    let boxes = folder.path().join("boxes");
    text(&run(&volume, "export", &["--account", "bob", "--format", "mbox", boxes.to_str().unwrap()]));
    for (file, mailbox) in [("INBOX.mbox", "INBOX"), ("Sent.mbox", "Sent"), ("Lists_rust.mbox", "Lists/rust")] {
        let path = boxes.join(file);
        text(&run(&volume, "import", &["--account", "eve", "--mailbox", mailbox, path.to_str().unwrap()]));
    }
    for account in ["ann", "bob", "eve"] {
        let mut found = Vec::new();
        for (mailbox, uid) in [("INBOX", "1"), ("INBOX", "2"), ("Sent", "1"), ("Lists/rust", "1")] {
            found.push(text(&run(&volume, "cat", &[account, mailbox, uid])));
        }
        // An mbox ends its mails with a line end.
        let last = |content: &str| if account == "eve" && content.ends_with("no end") { "\n" } else { "" };
        let whole = |content: &str| format!("{content}{}", last(content)).replace("\r\n", "\n").replace('\n', "\r\n");
        let expected: Vec<_> = mails.iter().map(|(_, content)| whole(content)).collect();
        found.sort();
        let mut expected = expected;
        expected.sort();
        assert_eq!(found, expected, "{account}");
    }
    assert!(text(&run(&volume, "ls", &["bob", "INBOX"])).contains("\\Seen \\Flagged"));
}

/// As other programs write them: flags in fields and in names, dates, folders without dots, and what is no mail any more.
#[test]
fn mailboxes_of_others_come_in_with_their_flags_and_dates() {
    let (folder, volume) = volume("64M", "1M");
    let source = folder.path().join("mail");
    let from = "From a@b.c Mon Feb  3 10:00:00 2020\n";
    let note = "Subject: DON'T DELETE THIS MESSAGE\nX-IMAP: 1 2\n\nThis is no mail.\n\n";
    let seen = "Subject: one\nStatus: RO\nX-Keywords: Work\n\nFrom here to there\n\n";
    let gone = "Subject: gone\nX-Mozilla-Status: 0009\n\nx\n";
    fs::write(&source, format!("{from}{note}{from}{seen}{from}{gone}{from}Subject: two\n\nx\n")).unwrap();
    assert_eq!(text(&run(&volume, "import", &["--account", "ann", source.to_str().unwrap()])), "2 messages\n");
    let rows: Vec<Value> = text(&run(&volume, "ls", &["--json", "ann", "INBOX"]))
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|row| row["uid"].is_u64())
        .collect();
    assert_eq!(rows.iter().map(|row| row["date"].as_i64()).collect::<Vec<_>>(), [Some(1_580_724_000); 2], "{rows:?}");
    let listed = text(&run(&volume, "ls", &["ann", "INBOX"]));
    let lines: Vec<&str> = listed.lines().skip(1).collect();
    assert!(lines[0].contains("\\Seen") && lines[0].contains("Work") && !lines[1].contains("Seen"), "{listed}");
    assert_eq!(text(&run(&volume, "cat", &["ann", "INBOX", "1"])), "Subject: one\r\n\r\nFrom here to there\r\n");

    let maildir = folder.path().join("Maildir");
    for (name, content) in [("cur/1:2,Sb", "Subject: 1\n\n"), ("Work/Sub/cur/2;2,S", "Subject: 2\n\n")] {
        let path = maildir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::write(maildir.join("dovecot-keywords"), "0 $Label1\n1 Todo\n").unwrap();
    let import = ["--account", "bob", maildir.to_str().unwrap()];
    assert_eq!(text(&run(&volume, "import", &import)), "2 messages\n");
    assert!(text(&run(&volume, "ls", &["bob", "INBOX"])).contains("Todo"));
    assert!(text(&run(&volume, "ls", &["bob", "Work/Sub"])).contains("\\Seen"));
    fs::write(maildir.join("cur/3:2,SZ"), b"\x1f\x8b\x08\0rest").unwrap();
    let refused = run(&volume, "import", &import);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("cur/3:2,SZ: compressed"));
    fs::write(&source, "Subject: no mailbox\n\n").unwrap();
    assert!(!run(&volume, "import", &["--account", "eve", source.to_str().unwrap()]).status.success());
    assert!(!text(&run(&volume, "ls", &[])).contains("eve"), "nothing is made");
}

#[test]
fn a_mailbox_is_shared_by_its_list() {
    let (folder, volume) = volume("64M", "1M");
    let mail = folder.path().join("mail");
    fs::write(&mail, "Subject: x\n\nx\n").unwrap();
    text(&run(&volume, "deliver", &["--to", "ann", mail.to_str().unwrap()]));
    for (who, rights) in
        [("Bob", "lrs"), ("bob", "+i"), ("bob", "-s"), ("anyone", "l"), ("-eve", "l"), ("tim", "r"), ("tim", "")]
    {
        text(&run(&volume, "acl", &["ann", "inbox", who, rights]));
    }
    assert_eq!(text(&run(&volume, "acl", &["ann", "INBOX"])), "-eve\tl\nanyone\tl\nbob\tlri\n");
    for (words, wanted) in [
        (&["ann", "Nowhere"][..], "ann has no mailbox Nowhere"),
        (&["ann", "INBOX", "ann", "l"], "the owner has all rights"),
        (&["ann", "INBOX", "bob", "q"], "Unknown right"),
        (&["ann", "INBOX", "b/b", "l"], "is not a name"),
    ] {
        let output = run(&volume, "acl", words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && error.contains(wanted), "{words:?}: {error}");
    }
}

#[test]
fn what_cannot_be_is_said() {
    let (folder, volume) = volume("16M", "1M");
    assert!(!run(&volume, "create", &[]).status.success(), "what is there is not overwritten");
    let none = folder.path().join("none");
    fs::write(&none, "no volume").unwrap();
    let output = run(&none, "stat", &[]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("this is no volume"), "{output:?}");
    let small = folder.path().join("small");
    let output = run(&small, "create", &["--size", "1M", "--segment", "1M"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("at least 12 segments"), "{output:?}");
    assert!(!small.exists(), "what is no store does not look like one");
    for size in ["1M", "64M"] {
        let volume = folder.path().join(size);
        assert!(run(&volume, "create", &["--size", size]).status.success());
        let (mail, to) = (none.to_str().unwrap(), ["--to", "ann"]);
        assert!(run(&volume, "deliver", &[&to[..], &[mail]].concat()).status.success());
        assert!(run(&volume, "check", &[]).status.success());
    }
}

#[test]
fn a_process_that_is_killed_has_kept_what_it_acknowledged() {
    let rounds = std::env::var("SLUICE_STORE_KILLS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(100u32);
    let (folder, volume) = volume("64M", "64K");
    let mails: Vec<PathBuf> = (0..40u32).map(|number| folder.path().join(number.to_string())).collect();
    for (number, path) in mails.iter().enumerate() {
        fs::write(path, format!("Subject: {number}\r\n\r\n{}\r\n", "text ".repeat(number * 37))).unwrap();
    }
    // By account and UID, the mail.
    let mut acknowledged: BTreeMap<(String, u32), PathBuf> = BTreeMap::new();
    for round in 0..rounds {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sluice"))
            .args(["store", "deliver"])
            .arg(&volume)
            .args(["--to", "ann", "--to", "bob", "--to", "eve"])
            .args(&mails)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut told = Vec::new();
        for line in lines.by_ref().take(round as usize * 7 % 111) {
            told.push(line);
        }
        child.kill().unwrap();
        // What it said before it died counts, too.
        told.extend(lines);
        child.wait().unwrap();
        for line in told {
            let (path, rest) = line.split_once(": ").unwrap();
            let (account, uid) = rest.split_once(' ').unwrap();
            let key = (account.to_owned(), uid.parse().unwrap());
            assert!(acknowledged.insert(key, path.into()).is_none(), "round {round}: {line}: a UID given twice");
        }
        if round % 50 == 49 || round + 1 == rounds {
            assert_eq!(run(&volume, "check", &[]).status.code(), Some(0), "round {round}");
            let out = folder.path().join(format!("out{round}"));
            for account in ["ann", "bob", "eve"] {
                text(&run(&volume, "export", &["--account", account, out.join(account).to_str().unwrap()]));
            }
            // Files end in the UID and flags: `U17.sluice:2,`.
            let uid_of = |path: &Path| path.to_str()?.rsplit_once('U')?.1.split_once('.')?.0.parse().ok();
            let mut found: BTreeMap<(String, u32), PathBuf> = BTreeMap::new();
            for account in ["ann", "bob", "eve"] {
                for entry in fs::read_dir(out.join(account).join("cur")).unwrap() {
                    let path = entry.unwrap().path();
                    found.insert((account.to_owned(), uid_of(&path).unwrap()), path);
                }
            }
            for (key, path) in &acknowledged {
                let found = found.get(key).unwrap_or_else(|| panic!("round {round}: {key:?} is lost"));
                assert!(fs::read(found).unwrap() == fs::read(path).unwrap(), "round {round}: {key:?}");
            }
            let stat = stat(&volume);
            assert_eq!(stat["links"].as_u64().unwrap(), 3 * stat["messages"].as_u64().unwrap(), "no half delivery");
            fs::remove_dir_all(out).unwrap();
        }
    }
    assert!(acknowledged.len() as u32 > rounds * 20, "{}", acknowledged.len());
}
