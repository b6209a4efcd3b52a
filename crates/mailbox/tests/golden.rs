//! Mails, and how IMAP tells of them: `tests/golden/*.imap` has a mail and, behind a line `=====`, what a client that has selected
//! the INBOX with that mail in it says (`C:`) and hears (`S:`).

use std::fs;
use std::path::Path;

use crate::harness::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mails_are_told_as_it_is_written_beside_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut count = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let (mail, talk) = text.split_once("=====\n").expect("a mail and a dialogue");
        println!("{}", path.display());
        let server = Server::start();
        server.deliver(&["ann"], mail).await;
        let mut client = server.imap("ann").await;
        client.talk("C: a SELECT INBOX").await;
        client.skip_to("a OK").await;
        client.talk(talk).await;
        count += 1;
    }
    assert!(count >= 8, "only {count}");
}

/// Every capability that is announced, and a command that only a server with it takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_announced_capability_is_there() {
    let server = Server::start();
    server.deliver(&["ann"], "Subject: x\n\nx").await;
    let mut client = server.imap("ann").await;
    client.talk("C: a SELECT INBOX").await;
    client.skip_to("a OK").await;
    client.talk("C: b CAPABILITY").await;
    let told = client.skip_to("b OK").await;
    let capabilities = told.iter().find_map(|line| line.strip_prefix("* CAPABILITY ")).unwrap().to_owned();
    for capability in capabilities.split(' ').map(|word| word.split_once("LIMIT=").map_or(word, |_| "APPENDLIMIT")) {
        let Some((_, command)) = COMMANDS.iter().find(|(name, _)| *name == capability) else {
            panic!("{capability} is announced, and no command of it is tried");
        };
        for command in *command {
            client.send(format!("c {command}\r\n").as_bytes()).await;
            let answer = client.skip_to("c ").await.pop().unwrap_or_default();
            assert!(answer.starts_with("c OK"), "{capability}: {command}: {answer}");
        }
    }
}

/// By capability; none where it is a way to log in, or a form of the whole session.
const COMMANDS: &[(&str, &[&str])] = &[
    ("IMAP4rev1", &["LSUB \"\" *", "CHECK"]),
    ("IMAP4rev2", &["STATUS INBOX (DELETED)"]),
    ("LITERAL+", &["LIST \"\" {1+}\r\n*"]),
    ("SASL-IR", &[]),
    ("ID", &["ID NIL"]),
    ("ENABLE", &["ENABLE CONDSTORE"]),
    ("IDLE", &["IDLE\r\nDONE"]),
    ("NAMESPACE", &["NAMESPACE"]),
    ("UIDPLUS", &["UID EXPUNGE 99"]),
    ("UNSELECT", &["UNSELECT", "SELECT INBOX"]),
    ("MOVE", &["CREATE Moved", "COPY 1 Moved", "UID MOVE 99 Moved"]),
    ("CHILDREN", &["LIST \"\" * RETURN (CHILDREN)"]),
    ("SPECIAL-USE", &["LIST (SPECIAL-USE) \"\" *", "LIST \"\" * RETURN (SPECIAL-USE)"]),
    ("CREATE-SPECIAL-USE", &["CREATE Seldom (USE (\\Flagged))"]),
    ("LIST-EXTENDED", &["LIST (SUBSCRIBED RECURSIVEMATCH) \"\" (\"*\" \"%\") RETURN (SUBSCRIBED)"]),
    ("LIST-STATUS", &["LIST \"\" * RETURN (STATUS (MESSAGES))"]),
    ("STATUS=SIZE", &["STATUS INBOX (SIZE)"]),
    ("ESEARCH", &["SEARCH RETURN (MIN MAX COUNT ALL) ALL"]),
    ("CONDSTORE", &["FETCH 1 (MODSEQ)", "SEARCH MODSEQ 1", "STORE 1 (UNCHANGEDSINCE 99999) +FLAGS (\\Seen)"]),
    ("QRESYNC", &["ENABLE QRESYNC", "UID FETCH 1:* (FLAGS) (CHANGEDSINCE 1 VANISHED)"]),
    ("SORT", &["SORT (ARRIVAL CC DATE FROM SIZE SUBJECT REVERSE TO) UTF-8 ALL"]),
    ("THREAD=ORDEREDSUBJECT", &["THREAD ORDEREDSUBJECT UTF-8 ALL"]),
    ("THREAD=REFERENCES", &["THREAD REFERENCES UTF-8 ALL"]),
    ("MULTIAPPEND", &["APPEND INBOX {1+}\r\nx {1+}\r\ny"]),
    ("WITHIN", &["SEARCH YOUNGER 99 NOT OLDER 99"]),
    ("OBJECTID", &["FETCH 1 (EMAILID THREADID)", "STATUS INBOX (MAILBOXID)", "SEARCH EMAILID x", "SEARCH THREADID x"]),
    ("SAVEDATE", &["FETCH 1 SAVEDATE", "SEARCH SAVEDBEFORE 1-Jan-2020 SAVEDON 1-Jan-2020", "SEARCH SAVEDATESUPPORTED"]),
    ("QUOTA", &["GETQUOTAROOT INBOX", "GETQUOTAROOT Drafts"]),
    ("QUOTA=RES-STORAGE", &[]),
    ("SEARCHRES", &["SEARCH RETURN (SAVE) ALL", "FETCH $ FLAGS"]),
    ("BINARY", &["FETCH 1 (BINARY.PEEK[1] BINARY.SIZE[1] BINARY[1]<0.1>)", "APPEND INBOX ~{1+}\r\nx"]),
    ("PREVIEW", &["FETCH 1 PREVIEW", "FETCH 1 (PREVIEW (LAZY))"]),
    ("ESORT", &["SORT RETURN (COUNT) (DATE) UTF-8 ALL"]),
    ("CONTEXT=SEARCH", &["SEARCH RETURN (PARTIAL 1:2) ALL", "SEARCH RETURN (CONTEXT COUNT) ALL"]),
    ("CONTEXT=SORT", &["SORT RETURN (PARTIAL 1:2) (DATE) UTF-8 ALL"]),
    ("UTF8=ACCEPT", &["ENABLE UTF8=ACCEPT"]),
    ("CATENATE", &["APPEND INBOX CATENATE (TEXT {1+}\r\nx)"]),
    ("REPLACE", &["REPLACE 1 INBOX {1+}\r\nx"]),
    ("COMPRESS=DEFLATE", &[]),
    ("METADATA", &["SETMETADATA INBOX (/private/comment \"x\")", "GETMETADATA INBOX /private/comment"]),
    ("NOTIFY", &["NOTIFY SET (selected (MessageNew MessageExpunge))", "NOTIFY NONE"]),
    ("ACL", &["GETACL INBOX", "LISTRIGHTS INBOX bob", "SETACL INBOX bob lr", "DELETEACL INBOX bob", "MYRIGHTS INBOX"]),
    ("RIGHTS=kxte", &["MYRIGHTS INBOX"]),
    ("APPENDLIMIT", &["STATUS INBOX (APPENDLIMIT)"]),
];
