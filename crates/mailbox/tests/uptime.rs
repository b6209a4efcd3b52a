//! Servers that have been running for long: every door still talks.

use std::time::Duration;

use crate::harness::{Door, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_door_talks_after_50_and_after_500_days() {
    for days in [49, 50, 500, 5_000] {
        let server = Server::start_aged(Duration::from_secs(days * 86_400));
        // A connection waits a moment before it speaks, so a deadline that is over ends it.
        let wait = || tokio::time::sleep(Duration::from_millis(50));
        let mut lmtp = server.connect(Door::Lmtp);
        let mut pop3 = server.connect(Door::Pop3);
        let mut imap = server.connect(Door::Imap);
        let mut sieve = server.connect(Door::Sieve);
        wait().await;
        lmtp.talk("S: 220 mail.test LMTP ...\nC: NOOP\nS: 250 ...").await;
        pop3.talk("S: +OK ...\nC: USER ann\nS: +OK ...\nC: PASS secret\nS: +OK ...").await;
        imap.talk("S: * OK ...\nC: a LOGIN ann secret\nS: a OK ...\nC: b IDLE\nS: + ...").await;
        sieve.skip_to("OK ").await;
        sieve.talk("C: NOOP\nS: OK ...").await;
        wait().await;
        server.deliver(&["bob"], "Subject: x\n\ny").await;
        lmtp.talk("C: NOOP\nS: 250 ...").await;
        pop3.talk("C: NOOP\nS: +OK ...").await;
        imap.talk("C: DONE\nS: b OK ...").await;
        sieve.talk("C: NOOP\nS: OK ...").await;
    }
}
