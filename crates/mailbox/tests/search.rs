//! SEARCH, SORT and THREAD, line by line.

use crate::harness::Server;

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
             C: f SORT (DATE) X-UNKNOWN ALL
             S: f NO [BADCHARSET ...",
        )
        .await;
}

/// One that is read in pieces, and ends in a later one; and a text that begins in one piece and ends in the next.
#[tokio::test(flavor = "multi_thread")]
async fn long_mail_is_searched_whole() {
    let server = Server::start();
    let fields = "X-Filler: 0123456789012345678901234567890123456789\n".repeat(2_000);
    server.deliver(&["ann"], &format!("{fields}Subject: far away\n\nnot far\n")).await;
    server.deliver(&["ann"], &format!("Subject: near\n\n{}", "a needle, ".repeat(30_000))).await;
    let mut client = server.imap("ann").await;
    client.talk("C: a SELECT INBOX").await;
    client.skip_to("a OK").await;
    let again = "needle, a ".repeat(12);
    for (key, found) in [
        ("SUBJECT \"far away\"", " 1"),
        ("SUBJECT \"not far\"", ""),
        ("BODY \"not far\"", " 1"),
        ("BODY \"far away\"", ""),
        ("TEXT \"far away\"", " 1"),
        (&format!("BODY \"{again}\""), " 2"),
        ("BODY \"needle. a\"", ""),
    ] {
        client.talk(&format!("C: b SEARCH {key}\nS: * SEARCH{found}\nS: b OK ...")).await;
    }
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

/// A plain literal has no NUL; only that of BINARY may have one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nul_is_told_only_as_binary() {
    let server = Server::start();
    server.deliver(&["ann"], "Subject: n\0l\n\na\0b").await;
    let mut client = server.imap("ann").await;
    client.talk("C: b EXAMINE INBOX").await;
    client.skip_to("b OK").await;
    client
        .talk(
            "C: c FETCH 1 (BODY.PEEK[TEXT] BODY.PEEK[HEADER.FIELDS (SUBJECT)] BINARY.PEEK[1])
             S: * 1 FETCH (BODY[TEXT] {5}
             S: a\u{fffd}b
             S:  BODY[HEADER.FIELDS (SUBJECT)] {16}
             S: Subject: n\u{fffd}l
             S:
             S:  BINARY[1] ~{5}
             S: a\0b
             S: )
             S: c OK ...",
        )
        .await;
}
