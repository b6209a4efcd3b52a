//! Extensions of IMAP, line by line.

use crate::harness::{Door, Server};

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
        .talk("C: e STORE 1 +FLAGS (\\Seen \\Recent)\nS: e BAD ...\nC: e STORE 1 +FLAGS (\\Seen)\nS: * 1 FETCH (UID 1 FLAGS (\\Recent \\Seen))\nS: e OK ...")
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
