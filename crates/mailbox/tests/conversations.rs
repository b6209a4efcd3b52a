//! What is said, line by line.

use crate::harness::{Door, Server};

const MAIL: &str = "From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n\
    Date: Wed, 17 Jul 1996 02:23:25 -0700\nMessage-ID: <1@example.org>\n\none\ntwo";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_recipient_has_an_answer_and_the_mail_is_stored_once() {
    let server = Server::start();
    let mut client = server.connect(Door::Lmtp);
    client.talk("S: 220 mail.test LMTP ...\nC: EHLO x\nS: 500 ...\nC: LHLO x").await;
    client.skip_to("250 ").await;
    client
        .talk(
            "C: MAIL FROM:<from@example.org>
             S: 250 ...
             C: RCPT TO:<ann@example.org>
             S: 250 ...
             C: RCPT TO:<nobody@example.org>
             S: 550 5.1.1 No such user
             C: RCPT TO:<team@example.org>
             S: 250 ...
             C: RCPT TO:<A.NN+Sent@Example.org>
             S: 250 ...
             C: RCPT TO:<eve@example.org>
             S: 250 ...
             C: DATA
             S: 354 ...",
        )
        .await;
    client.send(format!("Subject: x\r\n\r\n{}..dot\r\n.\r\n", "line\r\n".repeat(1_000)).as_bytes()).await;
    client.talk("S: 250 ...\nS: 250 ...\nS: 250 ...\nS: 452 4.2.2 Mailbox full").await;
    let state = server.store().state();
    let count = |account: &str, mailbox: &str| {
        let (number, _) = state.account_named(account.as_bytes()).unwrap();
        state.mailbox_named(number, mailbox.as_bytes()).unwrap().1.entries.len()
    };
    assert_eq!(
        (count("ann", "INBOX"), count("bob", "INBOX"), count("ann", "Sent"), count("eve", "INBOX")),
        (1, 1, 1, 0)
    );
    assert_eq!(state.messages().count(), 1);
    // Alone, a recipient is named, and it is full before anything is sent.
    server.deliver(&["eve"], &"x".repeat(3_700)).await;
    server.deliver(&["ann+nowhere@example.org"], "Subject: y\n\nz").await;
    let mut pop = server.connect(Door::Pop3);
    pop.talk("S: +OK ...\nC: USER ann\nS: +OK ...\nC: PASS secret\nS: +OK 2 ...\nC: RETR 2\nS: +OK ...").await;
    let lines = pop.skip_to(".").await;
    assert_eq!(lines[..2], ["Return-Path: <from@example.org>", "Delivered-To: ann+nowhere@example.org"]);
    assert!(lines[2].starts_with("Received: from client.test ([192.0.2.1])"), "{lines:?}");
    assert_eq!(lines[4..], ["Subject: y", "", "z", "."]);
    let mut client = server.connect(Door::Lmtp);
    client.talk("S: 220 ...\nC: LHLO x").await;
    client.skip_to("250 ").await;
    client.talk("C: MAIL FROM:<>\nS: 250 ...\nC: RCPT TO:<eve>\nS: 250 ...\nC: DATA\nS: 354 ...").await;
    client.send(format!("{}\r\n.\r\n", "x".repeat(500)).as_bytes()).await;
    client.talk("S: 452 4.2.2 Mailbox full\nC: QUIT\nS: 221 ...\nS:").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_mail_comes_back_byte_for_byte() {
    let server = Server::start();
    let mut client = server.connect(Door::Lmtp);
    client.talk("S: 220 ...\nC: LHLO x").await;
    client.skip_to("250 ").await;
    client.talk("C: MAIL FROM:<>\nS: 250 ...\nC: RCPT TO:<ann>\nS: 250 ...\nC: DATA\nS: 354 ...").await;
    let mut mail = Vec::new();
    for line in 0..600_000u32 {
        mail.extend_from_slice(format!("line {line} of many\r\n").as_bytes());
    }
    client.send(&mail).await;
    client.talk("C: .\nS: 250 ...").await;
    let mut imap = server.imap("ann").await;
    imap.talk("C: b EXAMINE INBOX").await;
    imap.skip_to("b OK").await;
    imap.send(b"c FETCH 1 BODY.PEEK[]\r\n").await;
    let head = imap.line().await;
    let size: usize = head.rsplit_once('{').unwrap().1.trim_end_matches('}').parse().unwrap();
    let content = imap.exactly(size).await;
    assert!(content.ends_with(&mail) && size < mail.len() + 300);
    imap.talk("S: )\nS: c OK ...").await;
    // Too large is refused before it is stored.
    client.talk("C: MAIL FROM:<> SIZE=99999999\nS: 552 ...").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_is_fetched_by_pop3() {
    let mut server = Server::start();
    for subject in ["one", "two", "three"] {
        server.deliver(&["ann"], &format!("Subject: {subject}\n\n{subject}\n.dot\n\nend")).await;
    }
    let mut client = server.connect(Door::Pop3);
    client
        .talk(
            "S: +OK ...
             C: STAT
             S: -ERR Log in first
             C: USER ann
             S: +OK
             C: PASS wrong
             S: -ERR [AUTH] Wrong name or password
             C: AUTH PLAIN AGFubgBzZWNyZXQ=
             S: +OK 3 messages ...
             C: RETR 4
             S: -ERR No such message
             C: TOP 2 1
             S: +OK ...",
        )
        .await;
    let lines = client.skip_to(".").await;
    assert_eq!(lines[lines.len() - 4..], ["Subject: two", "", "two", "."]);
    client.send(b"UIDL\r\n").await;
    let before = client.skip_to(".").await;
    client.talk("C: DELE 1\nS: +OK\nC: DELE 1\nS: -ERR No such message\nC: RSET\nS: +OK\nC: DELE 2\nS: +OK").await;
    client.send(b"STAT\r\nLIST\r\n").await;
    assert!(client.line().await.starts_with("+OK 2 "));
    assert_eq!(client.skip_to(".").await.len(), 4);
    client.talk("C: QUIT\nS: +OK Bye\nS:").await;
    server.restart().await;
    let mut client = server.connect(Door::Pop3);
    client.talk("S: +OK ...\nC: USER ann\nS: +OK\nC: PASS secret\nS: +OK 2 messages ...\nC: UIDL").await;
    let after = client.skip_to(".").await;
    let id = |line: &String| line.split(' ').nth(1).unwrap().to_owned();
    assert_eq!((id(&after[1]), id(&after[2])), (id(&before[1]), id(&before[3])), "ids last");
    // Whoever hangs up has deleted nothing.
    client.talk("C: DELE 1\nS: +OK").await;
    drop(client);
    let mut client = server.connect(Door::Pop3);
    client.talk("S: +OK ...\nC: USER ann\nS: +OK\nC: PASS secret\nS: +OK 2 messages ...").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_told_by_imap() {
    let server = Server::start();
    server.deliver(&["bob"], MAIL).await;
    let mut client = server.connect(Door::Imap);
    client
        .talk(
            "S: * OK [CAPABILITY IMAP4rev1 ...
             C: a SELECT INBOX
             S: a BAD Log in first
             C: b LOGIN bob wrong
             S: b NO [AUTHENTICATIONFAILED] Wrong name or password
             C: c AUTHENTICATE PLAIN
             S: + ...
             C: AGJvYgBzZWNyZXQ=
             S: c OK [CAPABILITY ...
             C: d SELECT inbox
             S: * FLAGS (\\Seen ...",
        )
        .await;
    let opening = client.skip_to("d OK [READ-WRITE]").await;
    assert!(opening.contains(&"* 1 EXISTS".to_owned()), "{opening:?}");
    client
        .talk(
            r#"C: e FETCH 1 (UID FLAGS ENVELOPE BODY BODY.PEEK[HEADER.FIELDS (SUBJECT)] BODY.PEEK[TEXT]<4.3> BODY.PEEK[2])
             S: * 1 FETCH (UID 1 FLAGS (\Recent) ENVELOPE ("Wed, 17 Jul 1996 02:23:25 -0700" "=?utf-8?q?Gr=C3=BC=C3=9Fe?=" (("Ann" NIL "ann" "example.org")) (("Ann" NIL "ann" "example.org")) (("Ann" NIL "ann" "example.org")) ((NIL NIL "bob" "example.org")) NIL NIL NIL "<1@example.org>") BODY ("text" "plain" ("charset" "us-ascii") NIL NIL "7bit" 10 2) BODY[HEADER.FIELDS (SUBJECT)] {40}
             S: Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=
             S:
             S:  BODY[TEXT]<4> {3}
             S: 
             S: tw BODY[2] NIL)
             S: e OK ..."#,
        )
        .await;
    client
        .talk(
            r"C: f FETCH 1 BODY[1]
             S: * 1 FETCH (BODY[1] {10}
             S: one
             S: two
             S: )
             S: * 1 FETCH (UID 1 FLAGS (\Recent \Seen))
             S: f OK ...
             C: g STORE 1 +FLAGS.SILENT (\Deleted $x)
             S: * FLAGS (\Seen \Answered \Flagged \Deleted \Draft $x)
             S: * OK [PERMANENTFLAGS (\Seen \Answered \Flagged \Deleted \Draft $x \*)] Flags permitted
             S: g OK ...
             C: h UID SEARCH KEYWORD $x SEEN SUBJECT grüße BODY TWO SENTON 17-Jul-1996
             S: * SEARCH 1
             S: h OK ...
             C: i SEARCH RETURN (COUNT) NOT KEYWORD $x
             S: * ESEARCH (TAG \x22i\x22) COUNT 0
             S: i OK ..."
                .replace("\\x22", "\"")
                .as_str(),
        )
        .await;
    client
        .talk(
            r"C: j COPY 1 Nowhere
             S: j NO [TRYCREATE] No such mailbox
             C: k CREATE Nowhere/Else
             S: k OK ...
             C: l UID COPY 1 Nowhere/Else
             S: l OK [COPYUID ...
             C: m LIST '' %
             S: * LIST (\HasNoChildren \Archive) '/' 'Archive'
             S: * LIST (\HasNoChildren \Drafts) '/' 'Drafts'
             S: * LIST (\HasNoChildren) '/' 'INBOX'
             S: * LIST (\HasNoChildren \Junk) '/' 'Junk'
             S: * LIST (\Noselect \NonExistent \HasChildren) '/' 'Nowhere'
             S: * LIST (\HasNoChildren \Sent) '/' 'Sent'
             S: * LIST (\HasNoChildren \Trash) '/' 'Trash'
             S: m OK ...
             C: n STATUS nowhere/else (MESSAGES)
             S: n NO [NONEXISTENT] No such mailbox
             C: o STATUS Nowhere/Else (MESSAGES UNSEEN DELETED)
             S: * STATUS 'Nowhere/Else' (MESSAGES 1 UNSEEN 0 DELETED 1)
             S: o OK ...
             C: p RENAME Nowhere Somewhere
             S: p NO [NONEXISTENT] No such mailbox
             C: q EXPUNGE
             S: * 1 EXPUNGE
             S: q OK ...
             C: r FETCH 1 FLAGS
             S: r BAD No such message
             C: s LOGOUT
             S: * BYE Logging out
             S: s OK Logged out
             S:"
            .replace('\'', "\"")
            .as_str(),
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_appended_and_who_idles_is_told() {
    let server = Server::start();
    let mut one = server.imap("ann").await;
    let mut two = server.imap("ann").await;
    for client in [&mut one, &mut two] {
        client.talk("C: b SELECT INBOX").await;
        client.skip_to("b OK").await;
    }
    // Which of them is told first of a message, and has it as recent, is not said.
    two.talk("C: c IDLE\nS: + Idling").await;
    one.talk(
        r#"C: c APPEND Nowhere {4}
           S: c NO [TRYCREATE] No such mailbox
           C: d APPEND INBOX (\Seen $a) "17-Jul-1996 02:44:25 -0700" {4}
           S: + Go on
           C: ab
           C:
           S: * FLAGS (\Seen \Answered \Flagged \Deleted \Draft $a)
           S: * OK [PERMANENTFLAGS ...
           S: * 1 EXISTS
           S: * ...
           S: d OK [APPENDUID ...
           C: e APPEND INBOX {4+}
           C: cd
           C:  {4+}
           C: ef
           C:
           S: * 3 EXISTS
           S: * ...
           S: e OK [APPENDUID ...
           C: f FETCH 1,3 (INTERNALDATE FLAGS BODY.PEEK[])
           S: * 1 FETCH (INTERNALDATE "17-Jul-1996 09:44:25 +0000" FLAGS (...
           S: ab
           S: )
           S: * 3 FETCH (INTERNALDATE ...
           S: ef
           S: )
           S: f OK ...
           C: g APPEND INBOX {40000000+}"#,
    )
    .await;
    two.talk("S: * FLAGS ...\nS: * OK ...\nS: * 1 EXISTS\nS: * ...\nS: * 3 EXISTS\nS: * ...").await;
    two.talk("C: DONE\nS: c OK ...\nC: d STORE 2 +FLAGS (\\Deleted)\nS: * 2 FETCH (UID 2 FLAGS (...\nS: d OK ...")
        .await;
    two.talk("C: e MOVE 1 Trash\nS: * OK [COPYUID ...\nS: * 1 EXPUNGE\nS: e OK ...").await;
    two.talk("C: f CLOSE\nS: f OK ...\nC: g STATUS INBOX (MESSAGES)\nS: * STATUS \"INBOX\" (MESSAGES 1)\nS: g OK ...")
        .await;
    // Over quota.
    let mut eve = server.imap("eve").await;
    eve.talk("C: a APPEND INBOX {5000+}").await;
    eve.send(&[b'x'; 5_000]).await;
    eve.talk("C:\nS: a NO [OVERQUOTA] ...\nC: b GETQUOTAROOT INBOX\nS: * QUOTAROOT \"INBOX\" \"\"\nS: * QUOTA \"\" (STORAGE 0 3)").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_back_is_told_what_changed() {
    let server = Server::start();
    for number in 0..5 {
        server.deliver(&["ann"], &format!("Subject: {number}\n\nx")).await;
    }
    let mut client = server.imap("ann").await;
    client.talk("C: b ENABLE QRESYNC\nS: * ENABLED QRESYNC\nS: b OK ...\nC: c SELECT INBOX").await;
    let opening = client.skip_to("c OK").await;
    let number = |name: &str| -> u64 {
        let line = opening.iter().find(|line| line.contains(name)).unwrap();
        line.split(name).nth(1).unwrap().trim_start().split(']').next().unwrap().parse().unwrap()
    };
    let (validity, modseq) = (number("UIDVALIDITY"), number("HIGHESTMODSEQ"));
    client.talk(&format!("C: d STORE 4 (UNCHANGEDSINCE {modseq}) +FLAGS.SILENT (\\Flagged)\nS: * 4 FETCH (UID 4 MODSEQ ...\nS: d OK Stored")).await;
    client.talk(&format!("C: e STORE 4 (UNCHANGEDSINCE {modseq}) +FLAGS (\\Seen)\nS: e OK [MODIFIED 4] ...")).await;
    client.talk("C: f STORE 2:3 +FLAGS.SILENT (\\Deleted)\nS: * 2 FETCH ...\nS: * 3 FETCH ...\nS: f OK ...").await;
    client.talk("C: g UID EXPUNGE 2\nS: * VANISHED 2\nS: g OK [HIGHESTMODSEQ ...\nC: h EXPUNGE\nS: * VANISHED 3\nS: h OK ...").await;
    let mut back = server.imap("ann").await;
    back.talk("C: b ENABLE QRESYNC\nS: * ENABLED ...\nS: b OK ...").await;
    back.talk(&format!("C: c SELECT INBOX (QRESYNC ({validity} {modseq}))")).await;
    let opening = back.skip_to("c OK").await;
    let told = &opening[opening.len() - 3..];
    assert_eq!(told[0], "* VANISHED (EARLIER) 2:3");
    assert!(told[1].starts_with("* 2 FETCH (UID 4 FLAGS (\\Flagged) MODSEQ ("), "{opening:?}");
    back.talk(&format!("C: d UID FETCH 1:* (FLAGS) (CHANGEDSINCE {modseq} VANISHED)\nS: * VANISHED (EARLIER) 2:3\nS: * 2 FETCH (UID 4 ...\nS: d OK ...")).await;
    // Numbers do not change under a client that uses them.
    client.talk("C: i UID STORE 1 +FLAGS.SILENT (\\Deleted)\nS: * 1 FETCH ...\nS: i OK ...\nC: j EXPUNGE\nS: * VANISHED 1\nS: j OK ...").await;
    back.talk("C: e FETCH 1 (UID)\nS: e NO [EXPUNGEISSUED] ...\nC: f NOOP\nS: * VANISHED 1\nS: f OK ...").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_hostile_is_refused() {
    let server = Server::start();
    server.deliver(&["ann"], MAIL).await;
    let mut client = server.connect(Door::Imap);
    client
        .talk("S: * OK ...\nC: a LOGIN {9000}\nS: a BAD [TOOBIG] ...\nC: b LOGIN {99999999999999999999}\nS: b BAD ...")
        .await;
    client.send(&[b'x'; 20_000]).await;
    client.talk("S: * BYE Protocol error\nS:").await;
    let mut client = server.imap("ann").await;
    client.talk("C: b SELECT INBOX").await;
    client.skip_to("b OK").await;
    for command in
        ["FETCH 4294967296 FLAGS", "FETCH 2 FLAGS", "FETCH 1 BODY[1.", "SEARCH ((((", "UID FETCH 1 BODY[]<9.0>"]
    {
        client.talk(&format!("C: c {command}\nS: c BAD ...")).await;
    }
    for (command, answer) in [
        ("CREATE &", "NO [CANNOT]"),
        ("UID FETCH 4294967295 FLAGS", "OK"),
        ("FETCH 1 BODY.PEEK[]<99999999.5>", "* 1 FETCH (BODY[]<99999999> {0}"),
        ("CREATE a//b", "NO"),
        ("CREATE inbox", "NO"),
        ("DELETE INBOX", "NO"),
        ("RENAME Sent Sent/x", "NO"),
    ] {
        client.send(format!("d {command}\r\n").as_bytes()).await;
        let said = client.line().await;
        assert!(said.starts_with(answer) || said.starts_with(&format!("d {answer}")), "{command}: {said}");
        if said.starts_with('*') {
            client.skip_to("d OK").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mails_are_put_in_order_and_in_threads() {
    let server = Server::start();
    for mail in [
        "Message-ID: <1@x>\nDate: Thu, 1 Jan 2026 10:00:00 +0000\nSubject: b\nFrom: Zoe <zoe@x>\n\n1",
        "Message-ID: <2@x>\nIn-Reply-To: <1@x>\nDate: 1 Jan 2026 10:00 -0100\nSubject: Re: [l] b\nFrom: adam@x\n\n2",
        "Message-ID: <3@x>\nDate: Wed, 31 Dec 2025 23:00:00 +0000\nSubject: a\nFrom: mia@x\n\n3",
    ] {
        server.deliver(&["ann"], mail).await;
    }
    let mut client = server.imap("ann").await;
    client.talk("C: a SELECT INBOX").await;
    client.skip_to("a OK").await;
    client
        .talk(
            "C: a SORT (SUBJECT REVERSE DATE) UTF-8 ALL
             S: * SORT 3 2 1
             S: a OK ...
             C: b UID SORT (FROM) US-ASCII 1:2
             S: * SORT 2 1
             S: b OK ...
             C: c THREAD REFERENCES UTF-8 ALL
             S: * THREAD (3)(1 2)
             S: c OK ...
             C: d UID THREAD ORDEREDSUBJECT UTF-8 ALL
             S: * THREAD (3)(1 2)
             S: d OK ...
             C: e THREAD REFERENCES UTF-8 SUBJECT nothing
             S: * THREAD
             S: e OK ...
             C: f SORT (DATE) KOI8-R ALL
             S: f NO [BADCHARSET ...",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_and_the_last_found_tell_their_own_transaction() {
    let server = Server::start();
    for number in 1..=3 {
        server.deliver(&["ann"], &format!("Subject: {number}\n\nx")).await;
    }
    let mut client = server.imap("ann").await;
    client.talk("C: a SELECT INBOX").await;
    client.skip_to("a OK").await;
    // Whoever asks for it hears what it is now.
    client.talk("C: b FETCH 1 MODSEQ\nS: * OK [HIGHESTMODSEQ ...").await;
    client.skip_to("b OK").await;
    client.talk("C: c STORE 2 +FLAGS (\\Seen)").await;
    client.skip_to("c OK").await;
    let mut modseqs = Vec::new();
    for returns in ["MIN", "MAX", "ALL"] {
        client.talk(&format!("C: d SEARCH RETURN ({returns}) 1:3 MODSEQ 1")).await;
        let line = client.skip_to("d OK").await.remove(0);
        modseqs.push(line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    }
    assert!(modseqs[0] < modseqs[1] && modseqs[1] < modseqs[2], "{modseqs:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_search_has_found_is_used_again() {
    let server = Server::start();
    for number in 1..=4 {
        server.deliver(&["ann"], &format!("Subject: number {number}\n\ntext\n")).await;
    }
    let mut client = server.imap("ann").await;
    client.talk("C: b SELECT INBOX").await;
    client.skip_to("b OK").await;
    client
        .talk(
            "C: c FETCH $ UID
             S: c OK ...
             C: d UID SEARCH RETURN (SAVE) SUBJECT \"number\" NOT 2
             S: d OK ...
             C: e FETCH $ UID
             S: * 1 FETCH (UID 1)
             S: * 3 FETCH (UID 3)
             S: * 4 FETCH (UID 4)
             S: e OK ...
             C: f SEARCH RETURN (MAX SAVE) $ NOT SUBJECT \"4\"
             S: * ESEARCH (TAG \"f\") MAX 3
             S: f OK ...
             C: g STORE $ FLAGS.SILENT (\\Deleted)
             S: g OK ...
             C: h EXPUNGE
             S: * 3 EXPUNGE
             S: h OK ...
             C: i SEARCH UID $
             S: * SEARCH
             S: i OK ...
             C: j SEARCH RETURN (SAVE COUNT) ALL
             S: * ESEARCH (TAG \"j\") COUNT 3
             S: j OK ...
             C: k SEARCH RETURN (SAVE) CHARSET X-ODD ALL
             S: k NO [BADCHARSET ...
             C: l FETCH $ UID
             S: l OK ...",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_are_told_and_searched_without_their_codings() {
    let server = Server::start();
    let mail = "Subject: coded\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\
        Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n\
        Gr=FC=DFe aus K=F6ln\n--b\nContent-Type: application/octet-stream\nContent-Transfer-Encoding: base64\n\n\
        AAECAwQ=\n--b\nContent-Type: text/plain\nContent-Transfer-Encoding: x-odd\n\nodd\n--b--\n";
    server.deliver(&["ann"], mail).await;
    let mut client = server.imap("ann").await;
    client.talk("C: b EXAMINE INBOX").await;
    client.skip_to("b OK").await;
    client
        .talk(
            "C: c FETCH 1 (BINARY.SIZE[1] BINARY.SIZE[2] BINARY.SIZE[9])
             S: * 1 FETCH (BINARY.SIZE[1] 14 BINARY.SIZE[2] 5 BINARY.SIZE[9] NIL)
             S: c OK ...
             C: d FETCH 1 BINARY.PEEK[2]<1.2>
             S: * 1 FETCH (BINARY[2]<1> ~{2}
             S: \u{1}\u{2})
             S: d OK ...
             C: e FETCH 1 BINARY.PEEK[3]
             S: e NO [UNKNOWN-CTE] ...
             C: f FETCH 1 BINARY.PEEK[1.MIME]
             S: f BAD ...
             C: g FETCH 1 (PREVIEW (LAZY))
             S: * 1 FETCH (PREVIEW {17}
             S: Gr\u{fc}\u{df}e aus K\u{f6}ln)
             S: g OK ...
             C: h SEARCH BODY {9+}
             C: GR\u{dc}\u{df}E A
             S: * SEARCH 1
             S: h OK ...
             C: i SEARCH BODY \"nowhere\"
             S: * SEARCH
             S: i OK ...",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_recent_in_the_session_that_is_told_of_it_first() {
    let mut server = Server::start();
    server.deliver(&["ann"], "Subject: 1\n\n1").await;
    server.deliver(&["ann"], "Subject: 2\n\n2").await;
    let mut first = server.imap("ann").await;
    // Who only looks takes it from nobody.
    first.talk("C: b STATUS INBOX (RECENT)\nS: * STATUS \"INBOX\" (RECENT 2)\nS: b OK ...\nC: c EXAMINE INBOX").await;
    assert!(first.skip_to("c OK").await.contains(&"* 2 RECENT".to_owned()));
    first.talk("C: d SELECT INBOX").await;
    assert!(first.skip_to("d OK").await.contains(&"* 2 RECENT".to_owned()));
    first
        .talk("C: e STORE 1 +FLAGS (\\Seen \\Recent)\nS: * 1 FETCH (UID 1 FLAGS (\\Recent \\Seen))\nS: e OK ...")
        .await;
    let mut second = server.imap("ann").await;
    second.talk("C: b SELECT INBOX").await;
    assert!(second.skip_to("b OK").await.contains(&"* 0 RECENT".to_owned()));
    second.talk("C: c SEARCH RECENT\nS: * SEARCH\nS: c OK ...\nC: d FETCH 2 FLAGS").await;
    second.talk("S: * 2 FETCH (FLAGS ())\nS: d OK ...").await;
    server.deliver(&["ann"], "Subject: 3\n\n3").await;
    second.talk("C: e NOOP\nS: * 3 EXISTS\nS: * 1 RECENT\nS: e OK ...").await;
    first
        .talk("C: f NOOP\nS: * 3 EXISTS\nS: * 2 RECENT\nS: f OK ...\nC: g SEARCH NEW\nS: * SEARCH 2\nS: g OK ...")
        .await;
    first.talk("C: h EXPUNGE\nS: h OK ...\nC: i LOGOUT\nS: * BYE ...\nS: i OK ...\nS:").await;
    drop(second);
    server.restart().await;
    server.deliver(&["ann"], "Subject: 4\n\n4").await;
    let mut third = server.imap("ann").await;
    third.talk("C: b SELECT INBOX").await;
    assert!(third.skip_to("b OK").await.contains(&"* 1 RECENT".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_the_second_revision_is_spoken_to_in_it() {
    let server = Server::start();
    server.deliver(&["ann"], "Subject: 1\n\n1").await;
    let mut client = server.imap("ann").await;
    client
        .talk(
            "C: b ENABLE IMAP4rev2 X-ODD
             S: * ENABLED IMAP4rev2
             S: b OK ...
             C: c CREATE \"Entwürfe\"
             S: c OK ...
             C: d STATUS \"Entwürfe\" (MESSAGES)
             S: * STATUS \"Entwürfe\" (MESSAGES 0)
             S: d OK ...
             C: e SELECT inbox",
        )
        .await;
    let opening = client.skip_to("e OK").await;
    assert!(opening.contains(&"* LIST () \"/\" \"INBOX\"".to_owned()), "{opening:?}");
    assert!(!opening.iter().any(|line| line.contains("RECENT") || line.contains("[UNSEEN")), "{opening:?}");
    client
        .talk(
            "C: f SEARCH CHARSET UTF-8 ALL
             S: * ESEARCH (TAG \"f\") ALL 1
             S: f OK ...
             C: g FETCH 1 FLAGS
             S: * 1 FETCH (FLAGS ())
             S: g OK ...",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_and_headers_are_utf8_for_who_has_enabled_it() {
    let server = Server::start();
    let mut client = server.imap("ann").await;
    client
        .talk(
            "C: b CREATE Entw&APw-rfe
             S: b OK ...
             C: c APPEND INBOX UTF8 (~{4+}
             C: ab
             C: )
             S: c BAD UTF-8 is not enabled
             C: d ENABLE UTF8=ACCEPT
             S: * ENABLED UTF8=ACCEPT
             S: d OK ...
             C: e LIST \"\" \"Entwü*\"
             S: * LIST (\\HasNoChildren) \"/\" \"Entwürfe\"
             S: e OK ...
             C: f APPEND \"Entwürfe\" (\\Seen) UTF8 (~{18+}
             C: Subject: Grüße
             C: )
             S: f OK [APPENDUID ...
             C: g SELECT \"Entwürfe\"",
        )
        .await;
    client.skip_to("g OK").await;
    client
        .talk(
            "C: h SEARCH CHARSET UTF-8 SUBJECT \"grü\"
             S: h BAD UTF-8 is enabled: no charset
             C: i SEARCH SUBJECT \"Grü\"
             S: * SEARCH 1
             S: i OK ...",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_takes_the_place_of_another() {
    let server = Server::start();
    for subject in ["one", "two", "three"] {
        server.deliver(&["ann"], &format!("Subject: {subject}\n\n{subject}")).await;
    }
    let mut client = server.imap("ann").await;
    client.talk("C: b REPLACE 1 INBOX {1}\nS: b BAD Select a mailbox first\nC: c SELECT INBOX").await;
    client.skip_to("c OK").await;
    let mut other = server.imap("ann").await;
    other.talk("C: c SELECT INBOX").await;
    other.skip_to("c OK").await;
    client
        .talk(
            "C: d REPLACE 2 INBOX (\\Seen) {5+}
             C: hello
             S: * OK [APPENDUID ...
             S: * 2 EXPUNGE
             S: * 3 EXISTS
             S: * ...
             S: d OK Replaced
             C: e UID REPLACE 3 Sent CATENATE (URL \"/INBOX/;UID=3/;SECTION=HEADER\" TEXT {3+}
             C: new)
             S: * OK [APPENDUID ...
             S: * 2 EXPUNGE
             S: e OK Replaced
             C: f UID REPLACE 3 Sent {1+}
             C: x
             S: f NO Not one message
             C: g REPLACE 1:2 Sent {1}
             S: g NO Not one message
             C: h REPLACE 1 Nowhere {1}
             S: h NO [TRYCREATE] No such mailbox
             C: i REPLACE 1 Sent CATENATE (URL /INBOX/;UID=9)
             S: i NO [BADURL \"/INBOX/;UID=9\"] Nothing is there
             C: j REPLACE 1 Sent CATENATE (URL /INBOX/;UID=4 URL /INBOX;UIDVALIDITY=1/;UID=4)
             S: j NO [BADURL ...
             C: k UID FETCH 2:* BODY.PEEK[]
             S: * 2 FETCH (UID 4 BODY[] {5}
             S: hello)
             S: k OK ...",
        )
        .await;
    // Somebody was faster.
    client.talk("C: l UID STORE 4 +FLAGS.SILENT (\\Deleted)\nS: l OK ...\nC: m EXPUNGE").await;
    client.skip_to("m OK").await;
    other.talk("C: d UID REPLACE 3 Sent {1+}\nC: x").await;
    assert!(other.skip_to("d ").await.last().unwrap().starts_with("d NO"));
    client
        .talk("C: n STATUS Sent (MESSAGES)\nS: * STATUS \"Sent\" (MESSAGES 1)\nS: n OK ...\nC: o EXAMINE INBOX")
        .await;
    client.skip_to("o OK").await;
    client.talk("C: p REPLACE 1 Sent {1}\nS: p NO [READ-ONLY] ...").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_compressed_from_the_answer_on() {
    let packed = |text: &[u8]| {
        let mut out = vec![0; text.len() + 100];
        let mut deflate = zlib_rs::Deflate::new(6, false, 15);
        deflate.compress(text, &mut out, zlib_rs::DeflateFlush::SyncFlush).unwrap();
        out.truncate(usize::try_from(deflate.total_out()).unwrap());
        out
    };
    let server = Server::start();
    server.deliver(&["ann"], &format!("Subject: 1\n\n{}", "a long line of text\n".repeat(5_000))).await;
    let mut client = server.connect(Door::Imap);
    client.talk("S: * OK ...\nC: a COMPRESS DEFLATE\nS: a BAD Log in first\nC: b LOGIN ann secret\nS: b OK ...").await;
    client.talk("C: c COMPRESS LZ4\nS: c BAD Unknown mechanism").await;
    // What comes with the command is compressed already.
    let commands = b"e COMPRESS DEFLATE\r\nf SELECT INBOX\r\ng FETCH 1 BODY.PEEK[TEXT]\r\nh LOGOUT\r\n";
    client.send(&[b"d COMPRESS DEFLATE\r\n", packed(commands).as_slice()].concat()).await;
    client.talk("S: d OK ...").await;
    let sent = client.rest().await;
    let mut plain = vec![0; 1 << 20];
    let mut inflate = zlib_rs::Inflate::new(false, 15);
    inflate.decompress(&sent, &mut plain, zlib_rs::InflateFlush::NoFlush).unwrap();
    let text = String::from_utf8_lossy(&plain[..usize::try_from(inflate.total_out()).unwrap()]).into_owned();
    assert!(text.starts_with("e NO [COMPRESSIONACTIVE]") && text.ends_with("h OK Logged out\r\n"), "{text}");
    assert_eq!(text.matches("a long line of text\r\n").count(), 5_000);
    assert!(sent.len() < text.len() / 10, "{} of {}", sent.len(), text.len());
    // What is not compressed then ends the session.
    let mut client = server.imap("ann").await;
    client.talk("C: b COMPRESS DEFLATE\nS: b OK ...\nC: c NOOP").await;
    client.send(&[0xff; 100]).await;
    assert!(client.rest().await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_clients_note_is_kept() {
    let mut server = Server::start();
    let mut client = server.imap("ann").await;
    client
        .talk(
            "C: b SETMETADATA INBOX (/private/Comment \"of \\\"INBOX\\\"\" /shared/vendor/x/a {3+}
             C: a b /private/gone NIL)
             S: b OK ...
             C: c SETMETADATA \"\" (/private/vendor/x/b ~{2+}",
        )
        .await;
    client.send(b"a\0)\r\n").await;
    client
        .talk(
            "S: c OK ...
             C: d SETMETADATA \"\" (/shared/comment \"x\")
             S: d NO [NOPERM] ...
             C: e SETMETADATA Nowhere (/shared/comment \"x\")
             S: e NO [NONEXISTENT] ...
             C: f LOGOUT
             S: * BYE ...
             S: f OK ...",
        )
        .await;
    server.restart().await;
    let mut client = server.imap("ann").await;
    client
        .talk(
            "C: b RENAME INBOX Old
             S: b OK ...
             C: c GETMETADATA INBOX /private/comment
             S: * METADATA \"INBOX\" (\"/private/comment\" \"of \\\"INBOX\\\"\")
             S: c OK ...
             C: d GETMETADATA (DEPTH infinity) INBOX (/shared /private)
             S: * METADATA \"INBOX\" (\"/private/comment\" \"of \\\"INBOX\\\"\" \"/shared/vendor/x/a\" \"a b\")
             S: d OK ...
             C: e GETMETADATA (MAXSIZE 5) INBOX (/shared/vendor/x/a /private/comment)
             S: * METADATA \"INBOX\" (\"/shared/vendor/x/a\" \"a b\")
             S: e OK [METADATA LONGENTRIES 10] ...
             C: f GETMETADATA Sent /private/comment
             S: f OK ...
             C: g GETMETADATA \"\" /private/vendor/x/b
             S: * METADATA \"\" (\"/private/vendor/x/b\" ~{2}",
        )
        .await;
    assert_eq!(client.exactly(2).await, b"a\0");
    client.talk("S: )\nS: g OK ...\nC: h SETMETADATA INBOX (/private/comment NIL)\nS: h OK ...").await;
    client.talk("C: i GETMETADATA INBOX /private/comment\nS: i OK ...").await;
    // No more than an account may have, and nothing of a command that asks for more.
    let value = "x".repeat(60_000);
    let mut number = 0;
    loop {
        client
            .send(format!("j{number} SETMETADATA INBOX (/private/{number} {{60000+}}\r\n{value})\r\n").as_bytes())
            .await;
        let answer = client.line().await;
        if answer.contains("NO") {
            assert!(answer.contains("[METADATA TOOMANY]") && number > 10, "{number}: {answer}");
            break;
        }
        number += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_elsewhere_is_told_without_being_asked_for() {
    let server = Server::start();
    let mut client = server.imap("ann").await;
    client
        .talk(
            "C: b NOTIFY SET (personal (AnnotationChange))
             S: b NO [BADEVENT ...
             C: c NOTIFY SET (selected (MessageNew))
             S: c BAD ...
             C: d CREATE Work
             S: d OK ...
             C: e NOTIFY SET STATUS (selected (MessageNew (UID PREVIEW) MessageExpunge FlagChange)) (mailboxes Work NONE) (personal (MessageNew MessageExpunge FlagChange MailboxName SubscriptionChange))",
        )
        .await;
    assert_eq!(client.skip_to("e OK").await.len(), 7, "of the six first mailboxes");
    client.talk("C: f SELECT Sent").await;
    client.skip_to("f OK").await;
    server.deliver(&["ann"], "Subject: 1\n\none").await;
    let told = client.line().await;
    assert!(told.starts_with("* STATUS \"INBOX\" (MESSAGES 1 UIDNEXT 2 UIDVALIDITY "), "{told}");
    let mut other = server.imap("ann").await;
    other.talk("C: b SELECT INBOX").await;
    other.skip_to("b OK").await;
    other.talk("C: c STORE 1 +FLAGS.SILENT (\\Seen)\nS: c OK ...").await;
    let told = client.line().await;
    assert!(
        told.starts_with("* STATUS \"INBOX\" (UIDVALIDITY ") && told.contains(" UNSEEN 0 HIGHESTMODSEQ "),
        "{told}"
    );
    // The selected one as it happens, with what was asked for.
    other.talk("C: d COPY 1 Sent\nS: d OK ...").await;
    client.talk("S: * 1 EXISTS\nS: * 1 RECENT\nS: * 1 FETCH (UID 1 PREVIEW \"one\")").await;
    other.talk("C: e COPY 1 Work\nS: e OK ...\nC: f CREATE New/One\nS: f OK ...").await;
    client.talk("S: * LIST () \"/\" \"New/One\"").await;
    other.talk("C: g RENAME New/One Newer\nS: g OK ...").await;
    client.talk("S: * LIST () \"/\" \"Newer\" (\"OLDNAME\" (\"New/One\"))").await;
    other.talk("C: h SUBSCRIBE Newer\nS: h OK ...").await;
    client.talk("S: * LIST (\\Subscribed) \"/\" \"Newer\"").await;
    other.talk("C: i DELETE Newer\nS: i OK ...").await;
    client.talk("S: * LIST (\\NonExistent) \"/\" \"Newer\"").await;
    other.talk("C: j SELECT Sent").await;
    other.skip_to("j OK").await;
    other.talk("C: k STORE 1 +FLAGS.SILENT (\\Deleted)\nS: k OK ...\nC: l EXPUNGE\nS: * 1 EXPUNGE\nS: l OK ...").await;
    while client.line().await != "* 1 EXPUNGE" {}
    client.talk("C: g NOTIFY NONE\nS: g OK ...").await;
    server.deliver(&["ann"], "Subject: 2\n\ntwo").await;
    client.talk("C: h NOOP\nS: h OK ...").await;
}
