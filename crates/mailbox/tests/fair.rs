//! No account keeps others waiting: work is shared by account, ends with its session, and has a time; replies are not gathered.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::harness::{Client, Door, Server};

/// Mails that take long to be searched for a few hundred texts.
async fn fill(server: &Server) {
    let mail = format!("Subject: x\n\n{}", "hello world\n".repeat(20_000));
    for _ in 0..20 {
        server.deliver(&["ann"], &mail).await;
    }
}

fn long_search() -> String {
    let texts: Vec<String> = (0..490).map(|number| format!("NOT BODY nowhere{number}")).collect();
    format!("UID SEARCH {}", texts.join(" "))
}

/// Passes over a long reply.
async fn pass_to(client: &mut Client, start: &str) {
    while !client.line().await.starts_with(start) {}
}

async fn selected(server: &Server) -> Client {
    let mut client = server.imap("ann").await;
    client.talk("C: b EXAMINE INBOX").await;
    client.skip_to("b OK").await;
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_of_another_account_comes_before_many_of_one() {
    let server = Server::start();
    fill(&server).await;
    server.deliver(&["bob"], "Subject: y\n\nhello").await;
    let mut bob = server.imap("bob").await;
    bob.talk("C: b EXAMINE INBOX").await;
    bob.skip_to("b OK").await;
    let mut anns = Vec::new();
    for _ in 0..8 {
        let mut ann = selected(&server).await;
        ann.talk(&format!("C: c {}", long_search())).await;
        anns.push(ann);
    }
    bob.talk("C: c SEARCH BODY hello\nS: * SEARCH 1\nS: c OK ...\nC: d NOOP\nS: d OK ...").await;
    server.deliver(&["bob"], "Subject: z\n\nhello").await;
    let before = server.tasks();
    drop(anns);
    // Minutes of work are left.
    tokio::time::timeout(Duration::from_secs(20), async {
        while server.tasks() + 8 > before {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("work ends with its session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_search_in_many_slices_finds_what_one_in_a_single_one_does() {
    let server = Server::start();
    fill(&server).await;
    server.deliver(&["ann"], "Subject: y\n\nnowhere7").await;
    let mut ann = selected(&server).await;
    ann.talk(&format!(
        "C: c {}\nS: * SEARCH 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20\nS: c OK ...",
        long_search()
    ))
    .await;
    let either: Vec<String> = (0..30).map(|number| format!("OR BODY nowhere{number}")).collect();
    ann.talk(&format!("C: d SEARCH {} BODY nowhere60\nS: * SEARCH 21\nS: d OK ...", either.join(" "))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_works_too_long_is_answered_no() {
    let mut server = Server::start();
    fill(&server).await;
    server.work_max = Some(Duration::from_millis(1));
    server.restart().await;
    let mut ann = selected(&server).await;
    for command in ["", "SORT (SUBJECT) UTF-8", "THREAD REFERENCES UTF-8"] {
        let search = long_search();
        let search = if command.is_empty() { search } else { search.replace("UID SEARCH", command) };
        ann.talk(&format!("C: c {search}\nS: c NO [LIMIT] ...\nC: d NOOP\nS: d OK ...")).await;
    }
    assert_eq!(server.site().numbers.ended.load(Relaxed), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fetch_that_parses_has_a_turn_for_each_slice_of_its_work() {
    let server = Server::start();
    let parts = "--b\nContent-Type: text/html\n\n<p>x</p>\n".repeat(100);
    let mail = format!("Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n");
    for _ in 0..20 {
        server.deliver(&["ann"], &mail).await;
    }
    server.deliver(&["bob"], "Subject: x\n\nx").await;
    let mut bob = server.imap("bob").await;
    bob.talk("C: b EXAMINE INBOX").await;
    bob.skip_to("b OK").await;
    let mut before = 0;
    for _ in 0..2 {
        before = server.site().turns();
        bob.talk("C: c FETCH 1:* (ENVELOPE BODYSTRUCTURE FLAGS)").await;
        pass_to(&mut bob, "c OK").await;
    }
    assert_eq!(server.site().turns(), before, "a small digest in memory is no work");
    let mut ann = selected(&server).await;
    let sizes: Vec<String> = (1..=100).map(|part| format!("BINARY.SIZE[{part}]")).collect();
    for (items, few, many) in [
        ("FLAGS UID INTERNALDATE RFC822.SIZE MODSEQ EMAILID", 0, 0),
        (&sizes.join(" ")[..], 1, 400),
        ("ENVELOPE BODYSTRUCTURE PREVIEW", 1, 60),
        ("BINARY.PEEK[1]", 1, 80),
    ] {
        let before = server.site().turns();
        ann.talk(&format!("C: c FETCH 1:* ({items})")).await;
        pass_to(&mut ann, "c OK").await;
        let turns = server.site().turns() - before;
        assert!((few..=many).contains(&turns), "{items}: {turns} turns");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_patterns_over_many_mailboxes_are_compared_at_once() {
    let server = Server::start();
    let mut ann = server.imap("ann").await;
    for number in 0..300 {
        ann.talk(&format!("C: b CREATE {}{number}\nS: b OK ...", "ab".repeat(400))).await;
    }
    let patterns = vec!["*ab*ac"; 9_000].join(" ");
    ann.talk(&format!("C: c LIST \"\" ({patterns})\nS: c OK ...")).await;
    let patterns: Vec<String> = (0..4_000).map(|number| format!("*b%b*{number}x")).collect();
    ann.talk(&format!("C: d LIST \"\" ({} inbox)\nS: * LIST ...\nS: d OK ...", patterns.join(" "))).await;
    let deep = vec!["a"; 300].join("/");
    ann.talk(&format!("C: e CREATE {deep}\nS: e NO [CANNOT] ...")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_have_a_bound() {
    let server = Server::start();
    let mut ann = server.imap("ann").await;
    let mut refused = 0;
    for number in 0..1_020 {
        ann.talk(&format!("C: b SUBSCRIBE x{number}")).await;
        refused += usize::from(ann.line().await.starts_with("b NO [LIMIT]"));
    }
    assert!(refused > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_are_not_gathered_before_they_are_sent() {
    let server = Server::start();
    let lines = vec!["x".repeat(70); 4_000].join("\n ");
    let parts = "--b\nContent-Type: text/plain; name=\"a long name of a part\"\n\nx\n".repeat(500);
    let mail = format!("Subject: {lines}\nContent-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n");
    server.deliver(&["ann"], &mail).await;
    for _ in 0..8 {
        server.deliver(&["ann"], "Subject: x\n\nx").await;
    }
    let mut copier = server.imap("ann").await;
    copier.talk("C: b SELECT INBOX").await;
    copier.skip_to("b OK").await;
    for _ in 0..9 {
        copier.talk("C: c COPY 2:* INBOX").await;
        copier.skip_to("c OK").await;
    }
    let mut ann = selected(&server).await;
    let fields: Vec<String> = (0..100).map(|number| format!("BODY.PEEK[HEADER.FIELDS (S{number} SUBJECT)]")).collect();
    let structures = vec!["BODYSTRUCTURE ENVELOPE BODY"; 20].join(" ");
    for command in [
        format!("FETCH 1 ({})", fields.join(" ")),
        format!("FETCH 1 ({structures})"),
        "FETCH 1:* (FLAGS UID INTERNALDATE)".into(),
        "SEARCH ALL".into(),
        "SORT (ARRIVAL) UTF-8 ALL".into(),
        "THREAD REFERENCES UTF-8 ALL".into(),
    ] {
        ann.talk(&format!("C: c {command}")).await;
        pass_to(&mut ann, "c OK").await;
    }
    // Flags of all are told in one go.
    let mut other = server.imap("ann").await;
    other.talk("C: b SELECT INBOX").await;
    other.skip_to("b OK").await;
    other.talk("C: c STORE 1:* +FLAGS.SILENT (\\Flagged)").await;
    other.skip_to("c OK").await;
    ann.talk("C: d NOOP").await;
    pass_to(&mut ann, "d OK").await;
    let most = server.site().numbers.reply_bytes_most.load(Relaxed);
    assert!(most <= 68 << 10, "{most} bytes were gathered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_has_so_many_sessions() {
    let server = Server::start();
    let mut sessions = Vec::new();
    for _ in 0..100 {
        sessions.push(server.imap("ann").await);
    }
    let mut more = server.connect(Door::Imap);
    more.talk("S: * OK ...\nC: a LOGIN ann secret\nS: a NO [LIMIT] ...\nC: b LOGIN bob secret\nS: b OK ...").await;
    sessions.pop();
    more = server.connect(Door::Pop3);
    more.talk("S: +OK ...").await;
    for _ in 0..100 {
        more.talk("C: USER ann\nS: +OK\nC: PASS secret").await;
        if more.line().await.starts_with("+OK") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("a session that has ended makes room");
}
