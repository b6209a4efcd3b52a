//! Scripts of users over mails that come in.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use mailbox::queue::{self, Patience};
use mailbox::{Fate, Health, Outcome, Outgoing, Relay, Report, Sending, scripts};

use crate::harness::{Door, Server};

/// A next hop that takes what is not for `refused@`, unless it is down.
#[derive(Default, Clone)]
struct Hop(Arc<Mutex<Vec<(String, String, String)>>>, Arc<AtomicBool>);

impl Relay for Hop {
    fn send(&self, mail: Outgoing) -> Sending {
        let hop = self.clone();
        Box::pin(async move {
            let all = |fate: Fate| Report::all(mail.recipients.len(), &fate, Health::Unknown);
            if mail.recipients[0].path.as_str().starts_with("refused@") {
                return all(Fate::never((5, 1, 1), "refused"));
            }
            if hop.1.load(Relaxed) {
                return all(Fate::later((4, 4, 1), "down"));
            }
            let mut content = Vec::new();
            while let Some(piece) = mail.content.read(content.len() as u64).await.filter(|piece| !piece.is_empty()) {
                content.extend_from_slice(&piece);
            }
            assert_eq!(content.len() as u64, mail.bytes);
            let content = String::from_utf8(content).unwrap();
            for to in &mail.recipients {
                let (from, to) = (mail.mail.path.as_str().to_owned(), to.path.as_str().to_owned());
                hop.0.lock().unwrap().push((from, to, content.clone()));
            }
            all(Fate { outcome: Outcome::Taken, host: Some("hop.test".into()), ..Fate::later((2, 0, 0), "250 Ok") })
        })
    }
}

struct Site {
    server: Server,
    hop: Hop,
}

impl Site {
    fn start() -> Site {
        let hop = Hop::default();
        Site { server: Server::start_with(Some(Arc::new(hop.clone()))), hop }
    }

    /// Gives an account a script that is active.
    async fn script(&self, account: &str, text: &str) {
        let store = self.server.store();
        self.server.imap(account).await.talk("C: z LOGOUT").await;
        let (number, _) = store.state().account_named(account.as_bytes()).map(|(n, a)| (n, a.clone())).unwrap();
        scripts::put(store, &self.server.scripts, number, "main", text.into()).await.unwrap();
        scripts::activate(store, &self.server.scripts, number, Some("main")).await.unwrap();
    }

    /// Delivers a mail and returns the replies.
    async fn deliver(&self, from: &str, to: &[&str], mail: &str) -> Vec<String> {
        let mut client = self.server.connect(Door::Lmtp);
        client.talk("S: 220 ...\nC: LHLO client.test").await;
        client.skip_to("250 ").await;
        client.talk(&format!("C: MAIL FROM:<{from}>\nS: 250 ...")).await;
        for to in to {
            client.talk(&format!("C: RCPT TO:<{to}>\nS: 250 ...")).await;
        }
        client.talk("C: DATA\nS: 354 ...").await;
        let mail = mail.trim_end_matches('\n').replace('\n', "\r\n");
        client.send(format!("{mail}\r\n.\r\n").as_bytes()).await;
        let mut replies = Vec::new();
        while replies.len() < to.len() {
            let line = client.line().await;
            if line.as_bytes().get(3) != Some(&b'-') {
                replies.push(line);
            }
        }
        replies
    }

    /// Mailboxes of an account that have messages, with the flags and subjects.
    async fn stored(&self, account: &str) -> String {
        let state = self.server.store().state();
        let (_, account) = state.account_named(account.as_bytes()).unwrap();
        let mut told = Vec::new();
        for (name, &number) in account.mailboxes.iter() {
            let mailbox = state.mailbox(number).unwrap();
            for (_, entry) in mailbox.from(0) {
                let mut flags: Vec<&str> = mailbox.keywords_of(entry.flags).collect();
                if entry.flags.has(store::Flags::SEEN) {
                    flags.push("\\Seen");
                }
                let flags = if flags.is_empty() { String::new() } else { format!(" {}", flags.join(" ")) };
                told.push(format!("{}{flags}", String::from_utf8_lossy(name)));
            }
        }
        told.join(", ")
    }

    /// Waits for something to be so, of the tries so far and of the mails that wait.
    async fn until(&self, is_so: impl Fn(u32, usize) -> bool) {
        for _ in 0..2_000 {
            let waiting = queue::waiting(&self.server.store().state());
            if is_so(waiting.iter().flat_map(|(_, entry)| &entry.recipients).map(|one| one.tries).sum(), waiting.len())
            {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("{:?}", queue::waiting(&self.server.store().state()));
    }

    /// Waits until so many mails were sent, and returns them.
    async fn sent(&self, count: usize) -> Vec<(String, String, String)> {
        for _ in 0..2_000 {
            if self.hop.0.lock().unwrap().len() >= count {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        self.hop.0.lock().unwrap().clone()
    }
}

const MAIL: &str = "From: eve@example.org\nTo: ann@example.org\nSubject: hello\nMessage-ID: <1@example.org>\n\nbody\n";

#[tokio::test(flavor = "multi_thread")]
async fn mail_is_filed_where_a_script_says() {
    let site = Site::start();
    site.script(
        "ann",
        r#"require ["fileinto", "mailbox", "imap4flags", "body", "envelope", "special-use"];
        if body :contains "make" { fileinto :create :flags ["\\Seen", "$Work"] "Work/New"; }
        elsif body :contains "nowhere" { fileinto "Nowhere"; }
        elsif body :contains "trash" { fileinto :specialuse "\\Trash" "Elsewhere"; }
        elsif body :contains "both" { keep; fileinto "Archive"; }
        elsif envelope "from" "list@example.org" { discard; }
        elsif mailboxexists "Work/New" { fileinto "Work/New"; }"#,
    )
    .await;
    let body = |text: &str| format!("Subject: x\n\n{text}\n");
    for text in ["make", "nowhere", "trash", "both"] {
        assert!(site.deliver("a@b", &["ann", "bob"], &body(text)).await.iter().all(|reply| reply.starts_with("250 ")));
    }
    site.deliver("list@example.org", &["ann"], &body("plain")).await;
    assert_eq!(site.stored("ann").await, "Archive, INBOX, INBOX, Trash, Work/New $Work \\Seen");
    assert_eq!(site.stored("bob").await, "INBOX, INBOX, INBOX, INBOX", "others have no script");
    site.deliver("a@b", &["ann"], &body("plain")).await;
    assert!(site.stored("ann").await.ends_with("Work/New $Work \\Seen, Work/New"));
    let mut client = site.server.imap("ann").await;
    client.talk("C: b LSUB \"\" Work/*\nS: * LSUB () \"/\" \"Work/New\"\nS: b OK ...").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_fails_keeps_the_mail() {
    let site = Site::start();
    // The name is none, which is known only then.
    site.script("ann", r#"require ["fileinto", "variables"]; set "x" ""; fileinto "Archive"; fileinto "${x}";"#).await;
    assert!(site.deliver("a@b", &["ann"], MAIL).await[0].starts_with("250 "));
    assert_eq!(site.stored("ann").await, "INBOX");
}

#[tokio::test(flavor = "multi_thread")]
async fn spam_goes_to_the_mailbox_for_it_unless_a_script_says_otherwise() {
    let site = Site::start();
    let spam = format!("X-Spam-Status: Yes, score=9.0 required=5.0\n{MAIL}");
    let ham = format!("X-Spam-Status: No, score=1.0 required=5.0\n{MAIL}");
    site.deliver("a@b", &["bob", "ann"], &spam).await;
    site.deliver("a@b", &["bob"], &ham).await;
    assert_eq!(site.stored("bob").await, "INBOX, Junk");
    site.script(
        "ann",
        r#"require ["spamtestplus", "relational", "comparator-i;ascii-numeric", "fileinto"];
        if spamtest :percent :value "gt" :comparator "i;ascii-numeric" "80" { fileinto "Trash"; }
        elsif header :contains "subject" "kept" { keep; }"#,
    )
    .await;
    site.deliver("a@b", &["ann"], &spam).await;
    site.deliver("a@b", &["ann"], &spam.replace("9.0", "6.0")).await;
    site.deliver("a@b", &["ann"], &spam.replace("9.0", "6.0").replace("hello", "kept")).await;
    assert_eq!(site.stored("ann").await, "INBOX, Junk, Junk, Trash");
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_is_sent_on_or_kept() {
    let site = Site::start();
    site.script(
        "ann",
        r#"require ["copy", "editheader"];
        if header :contains "subject" "copy" { redirect :copy "carl@example.net"; }
        elsif header :contains "subject" "refused" { redirect "refused@example.net"; }
        else { redirect "carl@example.net"; }"#,
    )
    .await;
    assert!(site.deliver("eve@example.org", &["ann"], MAIL).await[0].starts_with("250 "));
    assert_eq!(site.stored("ann").await, "");
    let (from, to, content) = site.sent(1).await.remove(0);
    assert_eq!((&*from, &*to), ("eve@example.org", "carl@example.net"));
    assert!(content.starts_with("X-Sieve-Redirected-From: ann\r\nDelivered-To: ann\r\nReceived: "), "{content}");
    assert!(content.ends_with(&MAIL.replace('\n', "\r\n")), "{content}");
    site.deliver("eve@example.org", &["ann"], &MAIL.replace("hello", "refused")).await;
    site.until(|_, waiting| waiting == 0).await;
    assert_eq!(site.stored("ann").await, "INBOX");
    site.deliver("eve@example.org", &["ann"], &MAIL.replace("hello", "copy")).await;
    assert_eq!(site.stored("ann").await, "INBOX, INBOX");
    assert_eq!(site.sent(2).await.len(), 2);
    // One that comes back is not sent on again.
    site.deliver("eve@example.org", &["ann"], content.trim_end().replace("\r\n", "\n").as_str()).await;
    assert_eq!(site.stored("ann").await, "INBOX, INBOX, INBOX");
    assert_eq!(site.sent(2).await.len(), 2);
    // A large one, in pieces.
    let large = format!("{MAIL}{}", "0123456789\n".repeat(60_000));
    site.deliver("eve@example.org", &["ann"], &large).await;
    assert!(site.sent(3).await[2].2.ends_with(&large.replace('\n', "\r\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_relay_what_is_redirected_is_kept() {
    let site = Site { server: Server::start_with(None), hop: Hop::default() };
    site.script("ann", r#"redirect "carl@example.net";"#).await;
    assert!(site.deliver("eve@example.org", &["ann"], MAIL).await[0].starts_with("250 "));
    assert_eq!(site.stored("ann").await, "INBOX");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_the_answer_to_the_recipient() {
    let site = Site::start();
    site.script("ann", "require \"ereject\"; ereject \"Not for me.\r\nNor for äny one\";").await;
    let replies = site.deliver("a@b", &["bob", "ann"], MAIL).await;
    assert!(replies[0].starts_with("250 "), "{replies:?}");
    assert_eq!(replies[1], "550 5.7.1 Nor for ?ny one");
    assert_eq!(site.stored("ann").await, "");
    // In a group that others are in it cannot be said.
    assert!(site.deliver("a@b", &["team"], MAIL).await[0].starts_with("250 "));
    assert_eq!((&*site.stored("ann").await, &*site.stored("bob").await), ("INBOX", "INBOX, INBOX"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_is_answered_once() {
    let site = Site::start();
    site.script("ann", r#"require "vacation"; vacation :addresses "ann@example.org" "Away.";"#).await;
    for from in ["eve@example.org", "EVE@example.org", "", "owner-list@example.org"] {
        site.deliver(from, &["a.nn@example.org"], MAIL).await;
    }
    for field in ["List-Id: <x>", "Auto-Submitted: auto-generated", "Precedence: bulk"] {
        site.deliver("new@example.org", &["a.nn@example.org"], &format!("{field}\n{MAIL}")).await;
    }
    // Not even that it is away is told to a sender of spam, who is somebody else.
    let spam = format!("X-Spam-Flag: YES\n{MAIL}");
    site.deliver("new@example.org", &["a.nn@example.org"], &spam).await;
    site.deliver("bob@example.org", &["a.nn@example.org"], MAIL).await;
    let sent = site.sent(2).await;
    assert_eq!(sent.iter().map(|mail| &*mail.1).collect::<Vec<_>>(), ["eve@example.org", "bob@example.org"]);
    assert_eq!(sent[0].0, "");
    assert!(sent[0].2.starts_with("Message-ID: <vacation."), "{}", sent[0].2);
    assert!(sent[0].2.contains("\r\nSubject: Auto: hello\r\n") && sent[0].2.ends_with("\r\n\r\nAway.\r\n"));
    // It is known behind a restart.
    let mut site = site;
    site.server.restart().await;
    site.deliver("eve@example.org", &["a.nn@example.org"], MAIL).await;
    assert_eq!(site.sent(2).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_header_is_what_is_stored() {
    let site = Site::start();
    site.script(
        "ann",
        r#"require ["editheader", "fileinto"];
        addheader "X-Seen" "yes"; deleteheader "subject"; fileinto "Archive"; deleteheader "x-seen";"#,
    )
    .await;
    let large = format!("{MAIL}{}", "0123456789\n".repeat(20_000));
    assert!(site.deliver("a@b", &["ann", "bob"], &large).await.iter().all(|reply| reply.starts_with("250 ")));
    let mut client = site.server.imap("ann").await;
    client.talk("C: a SELECT Archive").await;
    client.skip_to("a OK").await;
    client.talk("C: b FETCH 1 (ENVELOPE BODY.PEEK[HEADER.FIELDS (X-Seen Subject)])").await;
    let lines = client.skip_to("b OK").await.join("\n");
    assert!(lines.contains("ENVELOPE (") && lines.contains("X-Seen: yes") && !lines.contains("hello"), "{lines}");
    let mut client = site.server.imap("bob").await;
    client.talk("C: a SELECT INBOX").await;
    client.skip_to("a OK").await;
    client.talk("C: b FETCH 1 BODY.PEEK[HEADER.FIELDS (X-Seen Subject)]").await;
    let lines = client.skip_to("b OK").await.join("\n");
    assert!(lines.contains("Subject: hello") && !lines.contains("X-Seen: yes"), "{lines}");
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_are_bounded_and_checked() {
    let site = Site::start();
    site.script("ann", "keep;").await;
    let store = site.server.store();
    let number = store.state().account_named(b"ann").unwrap().0;
    let none = scripts::SiteScripts::default();
    let put = |name: &str, text: String| scripts::put(store, &none, number, &name.to_owned().leak()[..], text.into());
    assert!(matches!(put("x", "keep".into()).await, Err(scripts::Failure::Wrong(_))));
    for name in ["", "a\0b", "a\nb", &"x".repeat(500)] {
        assert_eq!(put(name, "keep;".into()).await, Err(scripts::Failure::Name));
    }
    assert_eq!(put("x", " ".repeat(300 << 10)).await, Err(scripts::Failure::TooLarge));
    for at in 1..scripts::SCRIPTS_MAX {
        put(&format!("../{at}"), "keep;".into()).await.unwrap();
    }
    assert_eq!(put("one more", "keep;".into()).await, Err(scripts::Failure::TooMany));
    let large = format!("keep; #{}\n", "x".repeat(200 << 10));
    let mut fitted = 0;
    while put(&format!("../{}", fitted + 1), large.clone()).await.is_ok() {
        fitted += 1;
    }
    assert_eq!(fitted, 10, "2 MiB of an account");
    assert_eq!(scripts::rename(store, number, "main", "../1").await, Err(scripts::Failure::Exists));
    scripts::rename(store, number, "main", "other").await.unwrap();
    assert_eq!(scripts::delete(store, number, "other").await, Err(scripts::Failure::Active));
    assert_eq!(scripts::delete(store, number, "main").await, Err(scripts::Failure::Nonexistent));
    scripts::activate(store, &none, number, None).await.unwrap();
    scripts::delete(store, number, "other").await.unwrap();
    let state = store.state();
    assert!(scripts::list(state.account(number).unwrap()).iter().all(|(_, is_active)| !is_active));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_taken_waits_and_is_tried_again() {
    let mut site = Site::start();
    site.script(
        "ann",
        r#"require "vacation"; vacation :addresses "ann@example.org" "Away."; redirect "carl@example.net";"#,
    )
    .await;
    site.hop.1.store(true, Relaxed);
    assert!(site.deliver("eve@example.org", &["ann"], MAIL).await[0].starts_with("250 "));
    assert_eq!(site.stored("ann").await, "", "neither here nor there, but in the queue");
    site.until(|tries, waiting| tries >= 2 && waiting == 2).await;
    site.server.restart().await;
    let waiting = queue::waiting(&site.server.store().state());
    let of = |to: &str| {
        waiting.iter().find(|(_, entry)| entry.recipients[0].to == to).map(|(_, entry)| entry.clone()).unwrap()
    };
    assert_eq!((&*of("carl@example.net").from, &*of("carl@example.net").account), ("eve@example.org", "ann"));
    assert_eq!((&*of("eve@example.org").from, of("eve@example.org").is_answer), ("", true));
    // One copy of the mail for all of that.
    assert_eq!(site.server.store().state().messages().count(), 2);
    site.hop.1.store(false, Relaxed);
    assert_eq!(queue::retry(site.server.site()).await, Ok(2));
    assert_eq!(site.sent(2).await.len(), 2);
    site.until(|_, waiting| waiting == 0).await;
    assert_eq!(site.server.store().state().messages().count(), 0);
    let sent = site.sent(2).await;
    let redirected = sent.iter().find(|(_, to, _)| to == "carl@example.net").unwrap();
    assert!(redirected.2.starts_with("X-Sieve-Redirected-From: ann\r\n") && redirected.2.ends_with("\r\nbody\r\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_was_taken_back_is_not_sent() {
    let mut site = Site::start();
    site.script("ann", r#"redirect "carl@example.net";"#).await;
    site.hop.1.store(true, Relaxed);
    site.deliver("eve@example.org", &["ann"], MAIL).await;
    site.until(|tries, _| tries > 0).await;
    let found = mailbox::recall::recall(site.server.store(), "1@example.org").await.unwrap();
    assert_eq!(found.places.len(), 1);
    site.hop.1.store(false, Relaxed);
    site.server.restart().await;
    site.deliver("eve@example.org", &["ann"], &MAIL.replace("1@example.org", "2@example.org")).await;
    assert_eq!(site.sent(1).await.len(), 1);
    assert!(site.sent(1).await[0].2.contains("<2@example.org>"));
    site.until(|_, waiting| waiting == 0).await;
    let state = site.server.store().state();
    assert_eq!(state.mailboxes().map(|(_, mailbox)| mailbox.notes.len()).sum::<usize>(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_sent_a_mail_that_is_never_taken_is_told() {
    let mut server = Server::start_with(None);
    let hop = Hop::default();
    server.relay = Some(Arc::new(hop.clone()));
    server.patience = Patience { whole: 1, first: 1, longest: 1, ..Patience::default() };
    server.restart().await;
    let site = Site { server, hop };
    site.script("ann", r#"require "copy"; if header :contains "subject" "copy" { redirect :copy "carl@example.net"; } else { redirect "carl@example.net"; }"#).await;
    site.hop.1.store(true, Relaxed);
    let spam = format!("X-Spam-Flag: YES\n{MAIL}");
    for (from, mail) in [("", MAIL), ("eve@example.org", &spam), ("eve@example.org", &MAIL.replace("hello", "copy"))] {
        assert!(site.deliver(from, &["ann"], mail).await[0].starts_with("250 "));
    }
    site.until(|_, waiting| waiting == 0).await;
    assert_eq!(site.stored("ann").await, "INBOX, INBOX, INBOX", "nobody is told of these, and they are kept");
    site.deliver("eve@example.org", &["ann+x"], MAIL).await;
    // The notice itself waits.
    let is_notice =
        |entry: &queue::Entry| entry.is_answer && entry.recipients[0].to == "eve@example.org" && entry.from.is_empty();
    for _ in 0..4_000 {
        if queue::waiting(&site.server.store().state()).iter().any(|(_, entry)| is_notice(entry)) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    site.hop.1.store(false, Relaxed);
    queue::retry(site.server.site()).await.unwrap();
    let (from, to, notice) = site.sent(1).await.remove(0);
    assert_eq!((&*from, &*to), ("", "eve@example.org"));
    assert!(notice.contains("\r\nFinal-Recipient: rfc822; ann+x\r\nAction: failed\r\n"), "{notice}");
    assert!(
        notice.contains("\r\nSubject: hello\r\n") && !notice.contains("carl@") && !notice.contains("\r\nbody"),
        "{notice}"
    );
    assert_eq!(site.stored("ann").await, "INBOX, INBOX, INBOX");
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_of_the_site_run_before_and_after_those_of_users() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    };
    let before = write(
        "before",
        r#"require ["fileinto", "reject", "copy"]; if header :contains "subject" "forbidden" { reject "No."; }
        elsif header :contains "subject" "held" { fileinto "Trash"; }
        elsif header :contains "subject" "audit" { fileinto :copy "Archive"; }"#,
    );
    let after = write("after", r#"require "fileinto"; if header :contains "subject" "late" { fileinto "Sent"; }"#);
    write(
        "global/lists.sieve",
        r#"require ["fileinto", "mailbox"]; if exists "list-id" { fileinto :create "Lists"; }"#,
    );
    let global = folder.path().join("global");
    let read = |before: &std::path::Path| scripts::SiteScripts::read(Some(&global), Some(before), Some(&after));
    let wrong = write("wrong", "keep");
    assert!(read(&wrong).unwrap_err().contains("wrong: line 1"));
    let mut server = Server::start();
    server.scripts = read(&before).unwrap();
    server.restart().await;
    let site = Site { server, hop: Hop::default() };
    site.script("ann", r#"require ["include", "fileinto"]; include :global "lists"; if header :contains "subject" "mine" { fileinto "Drafts"; }"#).await;
    let mail = |subject: &str| format!("Subject: {subject}\n\nbody\n");
    for subject in ["held", "audit mine", "late", "plain", "mine late"] {
        assert!(site.deliver("a@b", &["ann"], &mail(subject)).await[0].starts_with("250 "));
    }
    site.deliver("a@b", &["ann"], &format!("List-Id: <x>\n{}", mail("late"))).await;
    assert_eq!(site.stored("ann").await, "Archive, Drafts, Drafts, INBOX, Lists, Sent, Trash");
    // Who has none of his own, or no mail yet, has those of the site.
    assert_eq!(site.deliver("a@b", &["bob"], &mail("forbidden")).await[0], "550 5.7.1 No.");
    site.deliver("a@b", &["bob"], &mail("late")).await;
    assert_eq!(site.stored("bob").await, "Sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_came_before_is_known() {
    let mut site = Site::start();
    site.script(
        "ann",
        r#"require ["duplicate", "fileinto", "variables"];
        if header :matches "x-ticket" "*" { set "ticket" "${1}"; }
        if duplicate { fileinto "Trash"; }
        elsif duplicate :handle "tickets" :uniqueid "${ticket}" :seconds 1000 { fileinto "Archive"; }"#,
    )
    .await;
    let mail = |id: &str, ticket: &str| format!("Message-ID: <{id}>\nX-Ticket: {ticket}\n\nbody\n");
    for (id, ticket) in [("1", "a"), ("1", "a"), ("2", "a"), ("3", "b")] {
        site.deliver("a@b", &["ann"], &mail(id, ticket)).await;
    }
    site.server.restart().await;
    site.deliver("a@b", &["ann"], &mail("3", "c")).await;
    // Without an id nothing is known.
    site.deliver("a@b", &["ann"], "Subject: x\n\nbody\n").await;
    site.deliver("a@b", &["ann"], "Subject: x\n\nbody\n").await;
    assert_eq!(site.stored("ann").await, "Archive, INBOX, INBOX, INBOX, INBOX, Trash, Trash");
}
