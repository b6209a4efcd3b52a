//! Clients that send much and do not finish: others have room, and theirs comes back.

use crate::harness::{Client, Door, Server};

/// A line of 1,000 bytes.
fn line() -> Vec<u8> {
    let mut line = vec![b'x'; 998];
    line.extend_from_slice(b"\r\n");
    line
}

/// A mail to these of which so many bytes come, and no end.
async fn begin(server: &Server, to: &str, lines: usize) -> Client {
    let mut client = server.connect(Door::Lmtp);
    client.talk("S: 220 ...\nC: LHLO x").await;
    client.skip_to("250 ").await;
    write(client, to, lines).await
}

/// The same, as the gateway of this process brings it for a client.
async fn begin_for(server: &Server, address: &str, to: &str, lines: usize) -> Client {
    let mut client = server.connect(Door::Gateway);
    client.talk("S: 220 ...\nC: LHLO x").await;
    client.skip_to("250 ").await;
    client.talk(&format!("C: XFORWARD ADDR={address} PORT=1\nS: 250 ...")).await;
    write(client, to, lines).await
}

async fn write(mut client: Client, to: &str, lines: usize) -> Client {
    client.talk(&format!("C: MAIL FROM:<>\nS: 250 ...\nC: RCPT TO:<{to}>\nS: 250 ...\nC: DATA\nS: 354 ...")).await;
    client.send(&line().repeat(lines)).await;
    client
}

/// Reply to a mail of so many lines.
async fn answer(server: &Server, to: &str, lines: usize) -> String {
    let mut client = begin(server, to, lines).await;
    client.send(b".\r\n").await;
    client.line().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_mails_leave_room_to_others_and_give_theirs_back() {
    // The store has 64 MiB; 8 mails of 10 MB would be more.
    let server = Server::start();
    let mut strangers = Vec::new();
    for _ in 0..8 {
        strangers.push(begin(&server, "ann", 10_000).await);
    }
    assert!(answer(&server, "bob", 10).await.starts_with("250 "), "a small mail");
    let refused = {
        let mut answers = Vec::new();
        for client in &mut strangers {
            client.send(b".\r\n").await;
            answers.push(client.line().await);
        }
        answers.iter().filter(|answer| answer.starts_with("452 4.3.1")).count()
    };
    assert!((1..8).contains(&refused), "{refused} of 8");
    drop(strangers);
    let mut strangers = Vec::new();
    for _ in 0..8 {
        strangers.push(begin(&server, "ann", 10_000).await);
    }
    drop(strangers);
    // Sessions end when they see that the client has gone.
    let mut told = String::new();
    for _ in 0..100 {
        told = answer(&server, "bob", 10_000).await;
        if told.starts_with("250 ") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(told.starts_with("250 "), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_before_the_gateway_takes_nothing_from_those_to_whom_he_writes() {
    let server = Server::start();
    let mut strangers = Vec::new();
    for _ in 0..4 {
        strangers.push(begin_for(&server, "198.51.100.1", "ann", 10_000).await);
    }
    let mut other = begin_for(&server, "198.51.100.2", "ann", 10).await;
    other.send(b".\r\n").await;
    let told = other.line().await;
    assert!(told.starts_with("250 "), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_ends_where_a_quota_does() {
    let server = Server::start();
    // By LMTP: no more than the quota is written.
    let told = answer(&server, "eve", 20_000).await;
    assert!(told.starts_with("452 4.2.2"), "{told}");
    // By IMAP: the size of all messages of a command is asked for before each comes.
    let mut imap = server.imap("eve").await;
    imap.talk("C: b APPEND INBOX {5000}\nS: b NO [OVERQUOTA] ...").await;
    imap.talk("C: c APPEND INBOX {1500}\nS: + ...").await;
    imap.send(&b"x".repeat(1_500)).await;
    imap.talk("C:  {1500}\nS: + ...").await;
    imap.send(&b"x".repeat(1_500)).await;
    imap.talk("C:  {1500}\nS: c NO [OVERQUOTA] ...").await;
    imap.talk("C: d APPEND INBOX {1500}\nS: + ...").await;
    imap.send(&b"x".repeat(1_500)).await;
    imap.talk("C: \nS: d OK ...").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_command_of_many_messages_does_not_fill_the_store() {
    let server = Server::start();
    let mut imap = server.imap("ann").await;
    let message = b"x".repeat(2_000_000);
    imap.send(b"b APPEND INBOX {2000000+}\r\n").await;
    imap.send(&message).await;
    for _ in 0..40 {
        imap.send(b" {2000000+}\r\n").await;
        imap.send(&message).await;
    }
    assert!(answer(&server, "bob", 10_000).await.starts_with("250 "), "others have room");
    imap.talk("C: \nS: b NO [UNAVAILABLE] ...").await;
    imap.send(b"c APPEND INBOX {2000000+}\r\n").await;
    imap.send(&message).await;
    imap.talk("C: ").await;
    imap.skip_to("c OK").await;
}
