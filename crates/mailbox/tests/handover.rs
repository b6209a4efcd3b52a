//! Mails that commands hand over: taken once by their key, and told of where they never are.

use std::io::Read as _;
use std::sync::Arc;

use mailbox::queue::{self, Handover, Untaken};
use mailbox::{Outgoing, Relay, Sending};

use crate::harness::Server;

const MAIL: &[u8] = b"Subject: x\n\nbody\n";

/// A next hop that never answers: whatever goes out stays in the queue.
struct Mute;

impl Relay for Mute {
    fn send(&self, _mail: Outgoing) -> Sending {
        Box::pin(std::future::pending())
    }
}

async fn hand_over(server: &Server, key: &str, to: &[&str]) -> Result<(), Untaken> {
    let recipients = to.iter().map(|to| (*to).to_owned()).collect();
    let mail = Handover { key: key.into(), user: "ann".into(), recipients, ..Handover::default() };
    let mut content = MAIL;
    queue::hand_over(server.site(), mail, move |piece| content.read(piece)).await
}

fn waiting(server: &Server) -> Vec<queue::Entry> {
    queue::waiting(&server.site().store.state()).into_iter().map(|(_, entry)| entry).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_is_taken_once_by_its_key_until_the_queue_forgets_it() {
    let mut server = Server::start();
    hand_over(&server, "7.1.0", &["x@elsewhere.test"]).await.unwrap();
    // As after a kill before the file was removed.
    server.restart().await;
    assert_eq!(queue::taken(&server.site().store.state()), ["7.1.0"]);
    hand_over(&server, "7.1.0", &["x@elsewhere.test"]).await.unwrap();
    assert_eq!(waiting(&server).len(), 1);
    queue::forget(server.site(), vec!["7.1.0".into()]).await.unwrap();
    assert_eq!(queue::taken(&server.site().store.state()), [""; 0]);
    hand_over(&server, "7.1.0", &["x@elsewhere.test"]).await.unwrap();
    assert_eq!(waiting(&server).len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sender_of_a_mail_that_is_never_taken_is_told() {
    let mut server = Server::start_with(Some(Arc::new(Mute)));
    server.recipients_hour_max = 2;
    server.restart().await;
    let outcome = hand_over(&server, "8.1.0", &["a@example.org", "b@example.org", "c@example.org"]).await;
    assert!(matches!(outcome, Err(Untaken::Never(_))), "{outcome:?}");
    let waiting = waiting(&server);
    let [notice] = waiting.as_slice() else { panic!("{waiting:?}") };
    assert_eq!((notice.from.as_str(), notice.recipients[0].to.as_str()), ("", "ann@mail.test"));
    assert!(queue::taken(&server.site().store.state()).is_empty());
}
