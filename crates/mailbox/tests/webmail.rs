//! Browsers and clients of JMAP: memory of requests and answers.

use crate::harness::{Client, Door, Server};

/// Begins an upload of JMAP by `ann`, of which the last byte does not come.
async fn upload(server: &Server, bytes: usize) -> Client {
    let mut client = server.connect(Door::Web);
    let state = server.site().store.state();
    let account = state.account_named(b"ann").map_or(0, |(number, _)| number);
    let login = "Authorization: Basic YW5uOnNlY3JldA==";
    let head =
        format!("POST /jmap/upload/A{account} HTTP/1.1\r\nHost: x\r\n{login}\r\nContent-Length: {bytes}\r\n\r\n");
    client.send(head.as_bytes()).await;
    client.send(&vec![b'x'; bytes - 1]).await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_does_not_end_keeps_out_no_other() {
    let server = Server::start();
    server.deliver(&["ann"], "Subject: x\n\nx").await;
    let mut slow = upload(&server, 1_000_000).await;
    let mut other = upload(&server, 5).await;
    other.send(b"x").await;
    other.talk("S: HTTP/1.1 201 ...").await;
    slow.send(b"x").await;
    slow.talk("S: HTTP/1.1 201 ...").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_of_an_account_have_a_bound_together() {
    let server = Server::start();
    server.deliver(&["ann"], "Subject: x\n\nx").await;
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(upload(&server, 28_000_000).await);
    }
    let mut fifth = upload(&server, 28_000_000).await;
    let answer = String::from_utf8_lossy(&fifth.rest().await).into_owned();
    assert!(answer.starts_with("HTTP/1.1 4") && answer.contains("maxConcurrentUpload"), "{answer}");
    drop(held);
}
