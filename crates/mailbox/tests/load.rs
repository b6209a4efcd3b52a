//! Many at once: one flush for all who wait, and nobody waits for a reader.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};

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

/// A packet, and a client that wakes, for each write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_mail_goes_out_by_pop3_in_one_write() {
    let server = Server::start();
    server.deliver(&["ann"], "Subject: one\n\nx").await;
    let (mut ours, theirs) = tokio::io::duplex(16 << 10);
    let writes = Arc::new(AtomicUsize::new(0));
    let stream = Counted { stream: theirs, writes: writes.clone() };
    ours.write_all(b"USER ann\r\nPASS secret\r\nRETR 1\r\nQUIT\r\n").await.unwrap();
    mailbox::pop3::serve(stream, mailbox::Guest::from(None), server.site()).await.unwrap();
    let mut told = String::new();
    ours.read_to_string(&mut told).await.unwrap();
    assert!(told.contains("Subject: one\r\n\r\nx\r\n.\r\n+OK Bye\r\n"), "{told}");
    assert_eq!(writes.load(Relaxed), 2, "the greeting, and all that was asked for in one packet");
}

/// However much is asked for in one packet, a little of the replies is held.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_by_pop3_are_not_kept_until_all_is_answered() {
    let server = Server::start();
    server.deliver(&["ann"], &format!("Subject: one\n\n{}", "text\n".repeat(2_000))).await;
    let (mut ours, theirs) = tokio::io::duplex(1 << 20);
    let writes = Arc::new(AtomicUsize::new(0));
    let stream = Counted { stream: theirs, writes: writes.clone() };
    ours.write_all(format!("USER ann\r\nPASS secret\r\n{}QUIT\r\n", "RETR 1\r\n".repeat(40)).as_bytes()).await.unwrap();
    mailbox::pop3::serve(stream, mailbox::Guest::from(None), server.site()).await.unwrap();
    let mut told = Vec::new();
    ours.read_to_end(&mut told).await.unwrap();
    assert!(told.len() > 40 * 12_000, "{}", told.len());
    assert!(writes.load(Relaxed) >= 12, "{} writes", writes.load(Relaxed));
}

struct Counted {
    stream: DuplexStream,
    writes: Arc<AtomicUsize>,
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.writes.fetch_add(1, Relaxed);
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
