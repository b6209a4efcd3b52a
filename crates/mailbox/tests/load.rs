//! Many at once: one flush for all who wait, and nobody waits for a reader.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::harness::{Door, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_that_come_while_a_flush_runs_share_the_next() {
    let server = Arc::new(Server::start());
    server.deliver(&["ann", "bob"], "Subject: first\n\nx").await;
    let before = (server.store().counts().commits.load(Relaxed), server.store().counts().transactions.load(Relaxed));
    let sessions: Vec<_> = (0..40)
        .map(|session| {
            let server = server.clone();
            tokio::spawn(async move {
                for mail in 0..10 {
                    server
                        .deliver(&["ann", "bob"], &format!("Subject: {session} {mail}\n\n{}", "text ".repeat(50)))
                        .await;
                }
            })
        })
        .collect();
    for session in sessions {
        session.await.unwrap();
    }
    let counts = server.store().counts();
    let (commits, transactions) =
        (counts.commits.load(Relaxed) - before.0, counts.transactions.load(Relaxed) - before.1);
    assert_eq!(transactions, 400);
    assert!(commits < 300, "{commits} flushes for 400 mails");
    let mut client = server.connect(Door::Pop3);
    client.talk("S: +OK ...\nC: USER ann\nS: +OK\nC: PASS secret\nS: +OK 401 messages ...").await;
}
