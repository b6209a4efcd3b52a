//! The queue in a full store, and the notifications that it makes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mailbox::queue::{self, Acted, Action, Filter, Handover, Untaken};
use mailbox::{Fate, Health, Outcome, Outgoing, Relay, Report, Sending};
use proto::smtp::Return;
use tokio::sync::watch;

use crate::harness::Server;

/// A next hop that waits with its answers: `taken.test` takes, `later.test` defers, `never.test` and `refused.test` refuse.
#[derive(Clone)]
struct Hop {
    asked: Arc<Mutex<HashMap<String, usize>>>,
    answers: watch::Sender<bool>,
}

impl Hop {
    fn new(answers: bool) -> Hop {
        Hop { asked: Arc::default(), answers: watch::channel(answers).0 }
    }

    fn asked(&self, domain: &str) -> usize {
        self.asked.lock().unwrap().get(domain).copied().unwrap_or(0)
    }

    async fn until_asked(&self, domains: &[&str]) {
        until("attempts", || domains.iter().all(|domain| self.asked(domain) > 0)).await;
    }
}

impl Relay for Hop {
    fn send(&self, mail: Outgoing) -> Sending {
        *self.asked.lock().unwrap().entry(mail.destination.clone()).or_default() += 1;
        let mut answers = self.answers.subscribe();
        Box::pin(async move {
            if !mail.gate.pass() {
                return Report::all(mail.recipients.len(), &Fate::later((4, 3, 2), "closed"), Health::Unknown);
            }
            if mail.destination == "filler.test" {
                std::future::pending::<()>().await;
            }
            let _ = answers.wait_for(|&answers| answers).await;
            let fate = match &*mail.destination {
                "taken.test" => Fate { outcome: Outcome::Taken, ..Fate::later((2, 0, 0), "250 taken") },
                "later.test" => Fate::later((4, 2, 1), "450 not now"),
                _ => Fate::never((5, 1, 1), "550 no"),
            };
            let fate = Fate { host: Some("hop.test".into()), ..fate };
            Report::all(mail.recipients.len(), &fate, Health::Well)
        })
    }
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..4_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}: not within 20 s");
}

async fn send(server: &Server, from: Option<&str>, to: &[&str]) {
    try_send(server, from, to, "To: x@example.org\n\nbody\n").await.unwrap();
}

async fn try_send(server: &Server, from: Option<&str>, to: &[&str], text: &str) -> Result<(), Untaken> {
    use std::io::Read as _;
    let recipients = to.iter().map(|to| (*to).to_owned()).collect();
    let from = from.map(str::to_owned);
    let mail = Handover { user: "ann".into(), is_trusted: true, from, recipients, ..Handover::default() };
    let mut content = text.as_bytes();
    queue::hand_over(server.site(), mail, move |piece| content.read(piece)).await
}

/// Recipients that wait, with their tries, but for those that fill the store.
fn waiting(server: &Server) -> Vec<(String, u32)> {
    let all = queue::waiting(&server.store().state()).into_iter().flat_map(|(_, entry)| entry.recipients);
    all.filter(|one| !one.to.ends_with("@filler.test")).map(|one| (one.to, one.tries)).collect()
}

/// Puts mails for a host that does not answer into the queue until nothing finds room.
async fn fill(server: &Server) {
    let mut count = 0;
    for size in [1_000_000, 50_000, 2_000, 10] {
        loop {
            count += 1;
            let text = format!("A: {count}\n\n{}", "0123456789abcde\n".repeat(size / 16));
            if try_send(server, None, &["x@filler.test"], &text).await.is_err() {
                break;
            }
        }
    }
    assert!(count > 20, "{count} mails fill it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_full_store_a_mail_that_was_taken_is_not_sent_again() {
    let hop = Hop::new(false);
    let mut server = Server::start_with(Some(Arc::new(hop.clone())));
    server.patience.first = 3_600;
    server.patience.longest = 3_600;
    server.restart().await;
    send(&server, None, &["a@taken.test", "b@later.test"]).await;
    hop.until_asked(&["taken.test", "later.test"]).await;
    fill(&server).await;
    hop.answers.send_replace(true);
    until("what was deferred waits, and no other", || waiting(&server) == [("b@later.test".to_owned(), 1)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_of_one_round_are_one_notification() {
    let hop = Hop::new(false);
    let server = Server::start_with(Some(Arc::new(hop.clone())));
    send(&server, Some("bob"), &["a@never.test", "b@refused.test", "c@taken.test", "d@gone.test"]).await;
    hop.until_asked(&["never.test", "refused.test", "taken.test", "gone.test"]).await;
    hop.answers.send_replace(true);
    until("all are told of", || hop.asked("mail.test") > 0 && waiting(&server).is_empty()).await;
    assert_eq!(hop.asked("mail.test"), 1, "one notification");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_waits_for_the_answer_to_a_final_dot() {
    let hop = Hop::new(false);
    let mut server = Server::start_with(Some(Arc::new(hop.clone())));
    send(&server, None, &["a@taken.test"]).await;
    hop.until_asked(&["taken.test"]).await;
    server.site().queue.set_stop_seconds(30);
    let answers = hop.answers.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(3)).await;
        answers.send_replace(true);
    });
    server.restart().await;
    assert!(waiting(&server).is_empty());
    assert_eq!(hop.asked("taken.test"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_follows_waits_for_answers_left_to_it() {
    let hop = Hop::new(false);
    let mut server = Server::start_with(Some(Arc::new(hop.clone())));
    server.leaves = Some(Duration::from_secs(30));
    server.restart().await;
    send(&server, None, &["a@taken.test", "b@later.test"]).await;
    hop.until_asked(&["taken.test", "later.test"]).await;
    server.restart().await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(hop.asked("taken.test"), 1, "the process before it waits for the answer");
    hop.answers.send_replace(true);
    until("what was taken is gone", || waiting(&server).iter().all(|(to, _)| to == "b@later.test")).await;
    assert_eq!(hop.asked("taken.test"), 1);
    until("what was deferred is tried again", || hop.asked("later.test") > 1).await;
    let folder = server.path().parent().unwrap().to_owned();
    let is_list = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("volume.sent");
    assert!(!std::fs::read_dir(folder).unwrap().any(|entry| is_list(entry.unwrap())), "the list is removed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_without_an_answer_is_tried_again_when_its_list_is_let_go() {
    let hop = Hop::new(false);
    let mut server = Server::start_with(Some(Arc::new(hop.clone())));
    server.leaves = Some(Duration::from_millis(1_500));
    server.restart().await;
    send(&server, None, &["a@taken.test"]).await;
    hop.until_asked(&["taken.test"]).await;
    server.restart().await;
    assert_eq!(hop.asked("taken.test"), 1);
    until("it is tried again", || hop.asked("taken.test") == 2).await;
}

/// What an operator does to a mail whose final dot was sent.
async fn act(server: &Server, action: Action) {
    let acted = queue::act(server.site(), &Filter::default(), action).await.unwrap();
    assert_eq!(acted, Acted { mails: 1, under_way: 1 });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_that_is_bounced_while_it_is_sent_comes_back_if_it_was_not_taken() {
    for (to, comes_back) in [("a@taken.test", 0), ("a@later.test", 1)] {
        let hop = Hop::new(false);
        let server = Server::start_with(Some(Arc::new(hop.clone())));
        send(&server, Some("bob"), &[to]).await;
        hop.until_asked(&[&to[2..]]).await;
        assert!(queue::is_under_way(server.site(), 1, &to[2..]));
        act(&server, Action::Bounce).await;
        assert_eq!(hop.asked("mail.test"), 0, "its answer is waited for");
        hop.answers.send_replace(true);
        until("it is gone", || waiting(&server).is_empty()).await;
        assert_eq!((hop.asked(&to[2..]), hop.asked("mail.test")), (1, comes_back), "{to}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_that_is_held_while_it_is_sent_is_held_if_it_was_not_taken() {
    let hop = Hop::new(false);
    let server = Server::start_with(Some(Arc::new(hop.clone())));
    send(&server, None, &["a@later.test"]).await;
    hop.until_asked(&["later.test"]).await;
    act(&server, Action::Hold).await;
    hop.answers.send_replace(true);
    until("it waits", || waiting(&server) == [("a@later.test".to_owned(), 1)]).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!((hop.asked("later.test"), queue::is_under_way(server.site(), 1, "later.test")), (1, false));
    let acted = queue::act(server.site(), &Filter::default(), Action::Bounce).await.unwrap();
    assert_eq!(acted, Acted { mails: 1, under_way: 0 });
    until("it is gone", || waiting(&server).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_in_a_full_store_is_told_and_nobody_is_asked_again() {
    let hop = Hop::new(false);
    let server = Server::start_with(Some(Arc::new(hop.clone())));
    // All of it comes back, for which there is no room before the store has made some.
    let text = format!("To: x@example.org\n\n{}", "0123456789abcde\n".repeat(15_000));
    let recipients = ["a@never.test", "b@taken.test"].map(str::to_owned).to_vec();
    let (user, from, ret) = ("ann".into(), Some("bob".into()), Some(Return::Full));
    let mail = Handover { user, is_trusted: true, from, recipients, ret, ..Handover::default() };
    let mut content = text.as_bytes();
    queue::hand_over(server.site(), mail, move |piece| std::io::Read::read(&mut content, piece)).await.unwrap();
    hop.until_asked(&["never.test", "taken.test"]).await;
    fill(&server).await;
    hop.answers.send_replace(true);
    until("who has it is gone", || waiting(&server).iter().all(|(to, _)| to != "b@taken.test")).await;
    let fillers = Filter { domain: Some("filler.test".into()), ..Filter::default() };
    let refused = Filter { domain: Some("never.test".into()), ..Filter::default() };
    queue::act(server.site(), &fillers, Action::Delete).await.unwrap();
    for _ in 0..200 {
        queue::act(server.site(), &refused, Action::Retry).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        if hop.asked("mail.test") == 1 {
            break;
        }
    }
    until("the notification is sent", || hop.asked("mail.test") == 1 && waiting(&server).is_empty()).await;
    assert_eq!((hop.asked("never.test"), hop.asked("taken.test")), (1, 1), "nobody is asked again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_comes_in_pages() {
    let hop = Hop::new(false);
    let server = Server::start_with(Some(Arc::new(hop)));
    for at in 0..7 {
        send(&server, None, &[if at == 3 { "x@other.test" } else { "x@filler.test" }]).await;
    }
    let filter = Filter { domain: Some("filler.test".into()), ..Filter::default() };
    let (state, mut after, mut sizes) = (server.store().state(), Some(0), Vec::new());
    let mut numbers = Vec::new();
    while let Some(behind) = after {
        let page = queue::page(&state, &filter, behind, 3);
        numbers.extend(page.mails.iter().map(|(mail, _)| *mail));
        (after, _) = (page.next, sizes.push(page.mails.len()));
    }
    let all: Vec<u32> = queue::select(&state, &filter).into_iter().map(|(mail, _)| mail).collect();
    assert_eq!((sizes, numbers, queue::count(&state, &filter)), (vec![3, 3], all, 6));
}
