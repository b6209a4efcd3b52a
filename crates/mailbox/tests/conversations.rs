//! Conversations with the mail server, line by line.

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

/// The fields in front of a text do not make it a part of the header.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_without_a_header_is_the_text_of_its_mail() {
    let server = Server::start();
    server.deliver(&["ann"], "no header at all\nnote: this").await;
    server.deliver(&["ann"], "Subject: x\nhello\n\nend").await;
    let mut client = server.imap("ann").await;
    client.talk("C: b EXAMINE INBOX").await;
    client.skip_to("b OK").await;
    client
        .talk(
            "C: c FETCH 1:2 (BODY.PEEK[TEXT] BODY.PEEK[HEADER.FIELDS (SUBJECT NOTE)])
             S: * 1 FETCH (BODY[TEXT] {30}
             S: no header at all
             S: note: this
             S:  BODY[HEADER.FIELDS (SUBJECT NOTE)] {2}
             S:
             S: )
             S: * 2 FETCH (BODY[TEXT] {14}
             S: hello
             S:
             S: end
             S:  BODY[HEADER.FIELDS (SUBJECT NOTE)] {14}
             S: Subject: x
             S:
             S: )
             S: c OK ...",
        )
        .await;
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

/// However many pieces it is read in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_mail_is_fetched_whole_by_pop3() {
    let server = Server::start();
    let lengths = [1, 300, 900, 1_100, 2_600, 9_000];
    let text = |lines: usize| (0..lines).map(|at| format!("..{at:032}\n")).collect::<String>();
    for lines in lengths {
        server.deliver(&["ann"], &format!("Subject: {lines}\n\n{}", text(lines).trim_end())).await;
    }
    let mut client = server.connect(Door::Pop3);
    client.talk("S: +OK ...\nC: USER ann\nS: +OK\nC: PASS secret\nS: +OK 6 messages ...").await;
    for (number, lines) in (1..).zip(lengths) {
        client.send(format!("RETR {number}\r\n").as_bytes()).await;
        client.skip_to("Subject:").await;
        assert_eq!(client.line().await, "");
        for line in text(lines).lines() {
            assert_eq!(client.line().await, line, "{lines}");
        }
        assert_eq!(client.line().await, ".", "{lines}");
    }
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
             C: p RENAME Nothing Somewhere
             S: p NO [NONEXISTENT] No such mailbox
             C: p RENAME Nowhere Sent
             S: p NO [ALREADYEXISTS] ...
             C: p RENAME Nowhere Somewhere
             S: p OK Renamed
             C: p LIST '' *where*
             S: * LIST (\Noselect \NonExistent \HasChildren) '/' 'Somewhere'
             S: * LIST (\HasNoChildren) '/' 'Somewhere/Else'
             S: p OK ...
             C: q EXPUNGE
             S: * 1 EXPUNGE
             S: q OK ...
             C: r FETCH 1 FLAGS
             S: r BAD No such message
             C: s SELECT &
             S: * OK [CLOSED] The mailbox before is closed
             S: s NO [CANNOT] ...
             C: t FETCH 1 FLAGS
             S: t BAD Select a mailbox first
             C: u LOGOUT
             S: * BYE Logging out
             S: u OK Logged out
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
           C: f APPEND INBOX {4+}
           C: cd
           C:  {0+}
           C:
           S: f NO An empty message is not appended, nor are those before it
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
    back.talk("C: a EXAMINE INBOX").await;
    back.skip_to("a OK").await;
    back.talk("C: a UID FETCH 1:2 (FLAGS) (CHANGEDSINCE 1 VANISHED)\nS: a BAD ENABLE QRESYNC first").await;
    back.talk("C: b ENABLE QRESYNC\nS: * ENABLED ...\nS: b OK ...").await;
    back.talk(&format!("C: c SELECT INBOX (QRESYNC ({validity} {modseq}))")).await;
    let opening = back.skip_to("c OK").await;
    let told = &opening[opening.len() - 3..];
    assert_eq!(told[0], "* VANISHED (EARLIER) 2:3");
    assert!(told[1].starts_with("* 2 FETCH (UID 4 FLAGS (\\Flagged) MODSEQ ("), "{opening:?}");
    back.talk(&format!("C: d UID FETCH 1:* (FLAGS) (CHANGEDSINCE {modseq} VANISHED)\nS: * VANISHED (EARLIER) 2:3\nS: * 2 FETCH (UID 4 ...\nS: d OK ...")).await;
    // Of the UIDs that a client names, only those are told.
    let opening = |known: &str| format!("C: c SELECT INBOX (QRESYNC ({validity} {modseq} {known}))");
    for (known, told) in [("3:4,9", vec!["* VANISHED (EARLIER) 3", "* 2 FETCH (UID 4 "]), ("1,5 (1 1)", vec![])] {
        back.talk(&opening(known)).await;
        let opening = back.skip_to("c OK").await;
        let lines: Vec<_> = opening.iter().filter(|line| line.contains("VANISHED") || line.contains("FETCH")).collect();
        assert!(
            lines.len() == told.len() && lines.iter().zip(told).all(|(line, told)| line.starts_with(told)),
            "{opening:?}"
        );
    }
    // Numbers do not change under a client that uses them.
    client.talk("C: i UID STORE 1 +FLAGS.SILENT (\\Deleted)\nS: * 1 FETCH ...\nS: i OK ...\nC: j EXPUNGE\nS: * VANISHED 1\nS: j OK ...").await;
    back.talk("C: e FETCH 1 (UID)\nS: e NO [EXPUNGEISSUED] ...\nC: f NOOP\nS: * VANISHED 1\nS: f OK ...").await;
    // UIDs of messages that are gone are no error, and their numbers go with the answer.
    client.talk("C: k UID STORE 4 +FLAGS.SILENT (\\Deleted)\nS: * 1 FETCH ...\nS: k OK ...\nC: l EXPUNGE\nS: * VANISHED 4\nS: l OK ...").await;
    back.talk("C: g UID FETCH 1:* (UID)\nS: * 2 FETCH (UID 5)\nS: * VANISHED 4\nS: g OK ...\nC: h UID FETCH 1:* (UID)\nS: * 1 FETCH (UID 5)\nS: h OK ...").await;
    client.talk("C: m UID MOVE 5 Trash\nS: * OK [COPYUID ...\nS: * VANISHED 5\nS: m OK [HIGHESTMODSEQ ...").await;
    client.talk("C: n SEARCH OLDER 0\nS: n BAD ...\nC: o SEARCH YOUNGER 0\nS: o BAD ...").await;
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
