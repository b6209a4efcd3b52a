//! Searches by the index of an account: the same answers as without, attachments besides, whatever becomes of it.

use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use flow::{Answer, Context, In, Inspecting, Inspector, Out, Progress, Recalled};
use inspect::{Engine, Inspection};
use scan::Database;
use stream::{Fuel, Limits};

use crate::harness::{Client, Server};

/// Inspections in this thread.
struct Here(Arc<Engine>);

struct Running(Inspection);

impl Inspector for Here {
    fn open(&self, context: Context) -> Box<dyn Inspecting> {
        Box::new(Running(Inspection::new(self.0.clone(), context)))
    }

    fn takes_back(&self) -> bool {
        false
    }
}

impl Inspecting for Running {
    fn feed(&mut self, bytes: &[u8]) -> usize {
        self.0.tell(In::Feed(bytes))
    }

    fn finish(&mut self) {
        self.0.tell(In::Finish);
    }

    fn stop(&mut self, name: &'static str) {
        self.0.stop(name);
    }

    fn answer(&mut self, _answer: Answer) {}

    fn recalled(&mut self, _recalled: Option<Recalled>) {}

    fn poll(&mut self, _context: &mut TaskContext<'_>) -> Poll<Progress> {
        Poll::Ready(match self.0.work(&mut Fuel::new(1 << 20)) {
            inspect::Progress::Hungry => Progress::Hungry,
            inspect::Progress::Tired => Progress::Tired,
            inspect::Progress::Done => Progress::Done,
        })
    }

    fn hear(&mut self) -> Option<Out> {
        self.0.hear()
    }
}

fn indexed() -> Server {
    let engine = Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() };
    Server::start_with_index(Arc::new(Here(Arc::new(engine))))
}

/// More than an account may be behind.
const MANY: usize = 40;

const WORDS: [&str; 12] = [
    "invoice",
    "Meeting",
    "Grüße",
    "tomorrow",
    "0815",
    "x",
    "agenda",
    "project-x",
    "密码是",
    "report.pdf",
    "Übung",
    "ann@example.org",
];

fn words(seed: usize) -> String {
    let word = |at: usize| WORDS[(seed * 7 + at * at * 5 + at) % WORDS.len()];
    (0..6).map(word).collect::<Vec<_>>().join(if seed.is_multiple_of(3) { "\n" } else { " " })
}

fn plain(seed: usize) -> String {
    format!(
        "From: Person {seed} <p{seed}@example.org>\nTo: <team@example.org>\nCc: Someone <c{}@example.net>\nSubject: {}\n\
         Content-Type: text/plain; charset=utf-8\n\n{}\n",
        seed % 5,
        words(seed).replace('\n', " "),
        words(seed + 1)
    )
}

/// A zip archive with one member that is stored.
fn zip(name: &str, content: &[u8]) -> Vec<u8> {
    let crc = content.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    });
    let sizes = [!crc, content.len() as u32, content.len() as u32].map(u32::to_le_bytes).concat();
    let name_len = (name.len() as u16).to_le_bytes();
    let local =
        [&b"PK\x03\x04\x0a\0\0\0\0\0\0\0\0\0"[..], &sizes, &name_len, b"\0\0", name.as_bytes(), content].concat();
    let central =
        [&b"PK\x01\x02\x0a\0\x0a\0\0\0\0\0\0\0\0\0"[..], &sizes, &name_len, &[0; 16], name.as_bytes()].concat();
    let place = [central.len() as u32, local.len() as u32].map(u32::to_le_bytes).concat();
    [local, central, [&b"PK\x05\x06\0\0\0\0\x01\0\x01\0"[..], &place, b"\0\0"].concat()].concat()
}

fn with_document(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let document = format!("<?xml version=\"1.0\"?><w:document><w:p><w:t>{text}</w:t></w:p></w:document>");
    let mut base64 = String::new();
    for three in zip("word/document.xml", document.as_bytes()).chunks(3) {
        let bits = three.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - three.len()));
        (0..4).for_each(|at| {
            base64.push(if at <= three.len() { DIGITS[(bits >> (18 - 6 * at) & 63) as usize].into() } else { '=' })
        });
        if base64.len() % 77 == 76 {
            base64.push('\n');
        }
    }
    format!(
        "Subject: see there\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nhello\n--b\n\
         Content-Type: application/octet-stream; name=Contract2026.docx\nContent-Transfer-Encoding: base64\n\n{base64}\n--b--\n"
    )
}

async fn search(client: &mut Client, key: &str) -> String {
    client.send(format!("s UID SEARCH {key}\r\n").as_bytes()).await;
    let lines = client.skip_to("s ").await;
    assert!(lines.last().unwrap().starts_with("s OK"), "{key}: {lines:?}");
    lines
        .into_iter()
        .find_map(|line| line.strip_prefix("* SEARCH").map(|found| found.trim().to_owned()))
        .unwrap_or_default()
}

/// Has an account indexed by searching it, and waits for it.
async fn bring_up_to_date(server: &Server, client: &mut Client, segments: usize) {
    search(client, "BODY nothing").await;
    for _ in 0..1_000 {
        let state = server.store().state();
        let index = state.account_named(b"sluice index").map_or(0, |(_, account)| account.used_messages);
        if index >= segments as u64 && !server.is_behind() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("there is no index");
}

async fn selected(server: &Server) -> Client {
    let mut client = server.imap("ann").await;
    client.talk("C: a SELECT INBOX").await;
    client.skip_to("a OK").await;
    client
}

const KEYS: [&str; 26] = [
    "BODY invoice",
    "BODY voic",
    "BODY INVOICE",
    "TEXT meeting",
    "TEXT p17",
    "SUBJECT agenda",
    "SUBJECT oject",
    "FROM p3@example.org",
    "FROM \"Person 1\"",
    "TO team",
    "CC c4",
    "HEADER Content-Type utf",
    "BODY \"project-x\"",
    "BODY \"agenda 0815\"",
    "BODY \"invoice agenda\"",
    "NOT BODY invoice",
    "OR BODY invoice SUBJECT x",
    "BODY \"-\"",
    "BODY \"ann@example\"",
    "TEXT absent",
    "BODY report.pdf SUBJECT meeting",
    "SUBJECT \"\"",
    "1:5 BODY invoice",
    "SUBJECT \"e i\"",
    "BODY 0815",
    "HEADER Subject x",
];

#[tokio::test(flavor = "multi_thread")]
async fn searches_are_answered_as_without_an_index() {
    let (server, bare) = (indexed(), Server::start());
    for seed in 0..MANY {
        server.deliver(&["ann"], &plain(seed)).await;
        bare.deliver(&["ann"], &plain(seed)).await;
    }
    let (mut client, mut other) = (selected(&server).await, selected(&bare).await);
    bring_up_to_date(&server, &mut client, 1).await;
    // Some that are not in the index.
    for seed in MANY..MANY + 5 {
        server.deliver(&["ann"], &plain(seed)).await;
        bare.deliver(&["ann"], &plain(seed)).await;
    }
    client.talk("C: n NOOP").await;
    client.skip_to("n OK").await;
    other.talk("C: n NOOP").await;
    other.skip_to("n OK").await;
    for key in KEYS {
        assert_eq!(search(&mut client, key).await, search(&mut other, key).await, "{key}");
    }
    for text in ["grüße", "Übung", "übung", "密码", "码是"] {
        let key = format!("CHARSET UTF-8 BODY {{{}+}}\r\n{text}", text.len());
        assert_eq!(search(&mut client, &key).await, search(&mut other, &key).await, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_attachments_is_found() {
    let mut server = indexed();
    for seed in 0..MANY {
        server.deliver(&["ann"], &plain(seed)).await;
    }
    server.deliver(&["ann"], &with_document("the quick brown fox")).await;
    server.deliver(&["ann"], &with_document("a fox that is brown and quick")).await;
    let mut client = selected(&server).await;
    bring_up_to_date(&server, &mut client, 1).await;
    for (key, found) in [
        ("BODY fox", "41 42"),
        ("BODY uick", "41 42"),
        ("BODY \"brown fox\"", "41"),
        ("TEXT \"is BROWN\"", "42"),
        ("BODY contract2026", "41 42"),
        ("SUBJECT fox", ""),
        ("BODY \"fox brown\"", ""),
    ] {
        assert_eq!(search(&mut client, key).await, found, "{key}");
    }
    // It is kept, and goes with what is expunged.
    client.talk("C: x UID STORE 41 +FLAGS.SILENT (\\Deleted)\nS: x OK ...\nC: y EXPUNGE").await;
    client.skip_to("y OK").await;
    drop(client);
    server.restart().await;
    let mut client = selected(&server).await;
    assert_eq!(search(&mut client, "BODY fox").await, "42");
}

#[tokio::test(flavor = "multi_thread")]
async fn segments_are_merged_and_forget_what_is_gone() {
    let server = indexed();
    let mut client = selected(&server).await;
    for round in 0..6 {
        for seed in 0..MANY {
            server.deliver(&["ann"], &plain(round * MANY + seed)).await;
        }
        client.talk("C: n NOOP").await;
        client.skip_to("n OK").await;
        bring_up_to_date(&server, &mut client, 1).await;
        client.talk("C: x UID STORE 1:20 +FLAGS.SILENT (\\Deleted)\nS: x OK ...\nC: y EXPUNGE").await;
        client.skip_to("y OK").await;
        let found = search(&mut client, "SUBJECT invoice").await;
        let all = search(&mut client, "SUBJECT \"\"").await;
        assert!(!found.is_empty() && found.split(' ').all(|uid| all.split(' ').any(|other| other == uid)), "{found}");
    }
    let state = server.store().state();
    let (_, index) = state.account_named(b"sluice index").unwrap();
    assert!(index.used_messages <= 4, "{} segments", index.used_messages);
    // Of the account's numbers none but its own is there.
    assert_eq!(index.mailboxes.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_index_is_made_again() {
    let server = indexed();
    for seed in 0..MANY {
        server.deliver(&["ann"], &plain(seed)).await;
    }
    let mut client = selected(&server).await;
    bring_up_to_date(&server, &mut client, 1).await;
    let wanted = search(&mut client, "BODY invoice").await;
    // What is there instead is no segment; the account is more than a little behind.
    let state = server.store().state();
    let (index, account) = state.account_named(b"sluice index").unwrap();
    let (&mailbox, _) = (account.mailboxes.values().next().unwrap(), index);
    let before: Vec<u32> = state.mailbox(mailbox).unwrap().from(0).map(|(uid, _)| uid).collect();
    let mut incoming = server.store().incoming();
    incoming.write(b"SlIx but not really a segment").await.unwrap();
    let replace = move |transaction: &mut store::Transaction<'_, mailbox::File>, sealed: &store::Sealed| {
        transaction.deliver(sealed, mailbox, &store::Arrival::default())?;
        transaction.expunge(mailbox, &before.iter().copied().collect())?;
        Ok(())
    };
    incoming.finish(Vec::new(), replace).await.unwrap();
    assert_eq!(search(&mut client, "BODY invoice").await, wanted);
    for _ in 0..1_000 {
        let state = server.store().state();
        let whole = state.mailbox(mailbox).is_none() && !server.is_behind();
        if whole {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(server.store().state().mailbox(mailbox).is_none(), "it is made again");
    assert_eq!(search(&mut client, "BODY invoice").await, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_searches_has_no_index() {
    let server = indexed();
    for seed in 0..MANY {
        server.deliver(&["ann", "bob"], &plain(seed)).await;
    }
    let mut client = selected(&server).await;
    search(&mut client, "UNSEEN SINCE 1-Jan-2020 LARGER 5").await;
    assert!(server.store().state().account_named(b"sluice index").is_none());
    bring_up_to_date(&server, &mut client, 1).await;
    let state = server.store().state();
    let (_, index) = state.account_named(b"sluice index").unwrap();
    let (ann, _) = state.account_named(b"ann").unwrap();
    assert_eq!(index.mailboxes.keys().map(|name| name.to_vec()).collect::<Vec<_>>(), [ann.to_string().into_bytes()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_room_of_a_store_is_left_to_mail() {
    let server = indexed();
    for seed in 0..MANY {
        server.deliver(&["ann"], &plain(seed)).await;
    }
    let large = format!("Subject: large\n\n{}", "0123456789abcdef\n".repeat(60_000));
    for _ in 0..50 {
        server.deliver(&["ann"], &large).await;
    }
    let mut client = selected(&server).await;
    assert_eq!(search(&mut client, "SUBJECT large").await.split(' ').count(), 50);
    for _ in 0..1_000 {
        if !server.is_behind() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!server.is_behind() && server.store().state().account_named(b"sluice index").is_none());
    server.deliver(&["ann"], &plain(0)).await;
}

async fn idle(server: &Server) {
    for _ in 0..1_000 {
        if !server.is_behind() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not come to rest");
}

/// Bytes of all indexes.
fn index_bytes(server: &Server) -> u64 {
    server.store().state().account_named(b"sluice index").map_or(0, |(_, account)| account.used_bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn of_what_is_gone_no_index_stays() {
    let mut server = indexed();
    for seed in 0..4 * MANY {
        server.deliver(&["ann"], &format!("Message-ID: <{seed}@x>\n{}\nsecret{seed}\n", plain(seed))).await;
    }
    let mut client = selected(&server).await;
    bring_up_to_date(&server, &mut client, 1).await;
    let before = index_bytes(&server);
    client.talk("C: x UID STORE 1:150 +FLAGS.SILENT (\\Deleted)\nS: x OK ...\nC: y EXPUNGE").await;
    client.skip_to("y OK").await;
    assert_eq!(search(&mut client, "BODY secret151").await, "152");
    idle(&server).await;
    assert!((1..before / 3).contains(&index_bytes(&server)), "{before} bytes, then {}", index_bytes(&server));
    assert_eq!(search(&mut client, "BODY secret151").await, "152");
    // A mail that is recalled takes the index along.
    let found = mailbox::recall::recall(server.store(), "155@x").await.unwrap();
    assert_eq!((found.places.len(), index_bytes(&server)), (1, 0));
    assert_eq!(search(&mut client, "BODY secret155").await, "");
    // Nor does one stay where there is to be none.
    for seed in 0..MANY {
        server.deliver(&["ann"], &plain(seed)).await;
    }
    client.talk("C: n NOOP").await;
    client.skip_to("n OK").await;
    bring_up_to_date(&server, &mut client, 1).await;
    assert!(index_bytes(&server) > 0);
    drop(client);
    server.lend_no_inspector();
    server.restart().await;
    for _ in 0..1_000 {
        if index_bytes(&server) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the index stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn indexes_go_where_mail_needs_the_room() {
    let mut server = indexed();
    for seed in 0..MANY {
        server.deliver(&["ann"], &plain(seed)).await;
    }
    let mut client = selected(&server).await;
    bring_up_to_date(&server, &mut client, 1).await;
    let large = format!("Subject: large\n\n{}", "0123456789abcdef\n".repeat(60_000));
    for _ in 0..51 {
        server.deliver(&["ann"], &large).await;
    }
    assert!(index_bytes(&server) > 0);
    client.talk("C: n NOOP").await;
    client.skip_to("n OK").await;
    // It is noticed when more is to be indexed, or within a minute.
    search(&mut client, "BODY nothing").await;
    idle(&server).await;
    assert_eq!(index_bytes(&server), 0);
    server.restart().await;
}
