//! Clients that keep their scripts here.

use crate::harness::{Door, Server};

#[tokio::test(flavor = "multi_thread")]
async fn scripts_are_kept_by_their_clients() {
    let server = Server::start();
    let mut client = server.connect(Door::Sieve);
    let greeting = client.skip_to("OK ").await.join("\n");
    for wanted in ["\"SASL\" \"PLAIN SCRAM-SHA-256\"", "\"SIEVE\" \"", "fileinto", "\"VERSION\" \"1.0\""] {
        assert!(greeting.contains(wanted), "{greeting}");
    }
    client
        .talk(
            "C: LISTSCRIPTS
             S: NO \"Log in first\"
             C: STARTTLS
             S: NO ...
             C: AUTHENTICATE \"PLAIN\"
             S: \"\"
             C: \"AGFubgB3cm9uZw==\"
             S: NO \"Wrong name or password\"
             C: AUTHENTICATE \"PLAIN\" {16+}
             C: AGFubgBzZWNyZXQ=
             S: OK \"Logged in\"
             C: HAVESPACE \"a\" 100
             S: OK ...
             C: HAVESPACE \"a\" 4294967295
             S: NO (QUOTA/MAXSIZE) ...
             C: PUTSCRIPT \"a \\\"b\\\"/..\" {5+}
             C: keep;
             S: OK ...
             C: PUTSCRIPT \"wrong\" \"keep\"
             S: NO ...
             C: CHECKSCRIPT \"require \\\"fileinto\\\"; fileinto \\\"x\\\";\"
             S: OK ...
             C: PUTSCRIPT \"a\\n\" \"keep;\"
             S: NO ...
             C: PUTSCRIPT {2+}
             C: \u{0} \"keep;\"
             S: NO \"a name has 1 to 400 bytes, ...
             C: PUTSCRIPT \"a\" \"keep;\"
             S: OK ...
             C: RENAMESCRIPT \"x\" \"b\"
             S: NO (NONEXISTENT) ...
             C: RENAMESCRIPT \"a\" \"b\"
             S: OK ...
             C: SETACTIVE \"b\"
             S: OK ...
             C: LISTSCRIPTS
             S: \"a \\\"b\\\"/..\"
             S: \"b\" ACTIVE
             S: OK ...
             C: DELETESCRIPT \"b\"
             S: NO (ACTIVE) \"the script is active\"
             C: GETSCRIPT \"b\"
             S: {5}
             S: keep;
             S: OK ...
             C: SETACTIVE \"\"
             S: OK ...
             C: DELETESCRIPT \"b\"
             S: OK ...
             C: GETSCRIPT \"b\"
             S: NO (NONEXISTENT) ...
             C: NOOP \"x\"
             S: OK (TAG \"x\") ...
             C: UNAUTHENTICATE
             S: OK ...
             C: LISTSCRIPTS
             S: NO ...
             C: LOGOUT
             S: OK \"Logged out\"
             S:",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_of_ten_megabytes_is_passed_over() {
    let server = Server::start();
    let mut client = server.connect(Door::Sieve);
    client.skip_to("OK ").await;
    client.talk("C: AUTHENTICATE \"PLAIN\" \"AGFubgBzZWNyZXQ=\"\nS: OK ...").await;
    client.send(b"PUTSCRIPT \"large\" {10000000+}\r\n").await;
    for _ in 0..100 {
        client.send(&[b'x'; 100_000]).await;
    }
    client.talk("C: \nS: NO (QUOTA/MAXSIZE) ...\nC: LISTSCRIPTS\nS: OK ...").await;
    client.talk("C: PUTSCRIPT \"larger\" {4294967295+}\nS: BYE \"Protocol error\"\nS:").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_sent_before_the_next_command_is_looked_at() {
    let server = Server::start();
    let mut client = server.connect(Door::Sieve);
    client.skip_to("OK ").await;
    client.talk("C: AUTHENTICATE \"PLAIN\" \"AGFubgBzZWNyZXQ=\"\nS: OK ...").await;
    let script = format!("keep;\r\n#{}\r\n", "x".repeat(100_000));
    client.send(format!("PUTSCRIPT \"a\" {{{}+}}\r\n{script}\r\n", script.len()).as_bytes()).await;
    client.talk("S: OK ...").await;
    client.send(format!("{}DELETESCRIPT \"a\"\r\n", "GETSCRIPT \"a\"\r\n".repeat(20)).as_bytes()).await;
    client.talk(&format!("S: {{{}}}", script.len())).await;
    let state = server.site().store.state();
    let (_, ann) = state.account_named(b"ann").unwrap();
    assert!(mailbox::scripts::get(ann, "a").is_some(), "19 scripts wait to be read");
    for _ in 0..21 {
        client.skip_to("OK ").await;
    }
    let state = server.site().store.state();
    let (_, ann) = state.account_named(b"ann").unwrap();
    assert!(mailbox::scripts::get(ann, "a").is_none());
}
