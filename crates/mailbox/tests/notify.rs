//! NOTIFY (RFC 5465), line by line.

use crate::harness::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_elsewhere_is_told_without_being_asked_for() {
    let server = Server::start();
    let mut client = server.imap("ann").await;
    client
        .talk(
            "C: b NOTIFY SET (personal (AnnotationChange))
             S: b NO [BADEVENT ...
             C: c NOTIFY SET (selected (MessageNew))
             S: c BAD ...
             C: d CREATE Work
             S: d OK ...
             C: e NOTIFY SET STATUS (selected (MessageNew (UID PREVIEW) MessageExpunge FlagChange)) (mailboxes Work NONE) (personal (MessageNew MessageExpunge FlagChange MailboxName SubscriptionChange))",
        )
        .await;
    assert_eq!(client.skip_to("e OK").await.len(), 7, "of the six first mailboxes");
    client.talk("C: f SELECT Sent").await;
    client.skip_to("f OK").await;
    server.deliver(&["ann"], "Subject: 1\n\none").await;
    let told = client.line().await;
    assert!(told.starts_with("* STATUS \"INBOX\" (MESSAGES 1 UIDNEXT 2 UIDVALIDITY "), "{told}");
    let mut other = server.imap("ann").await;
    other.talk("C: b SELECT INBOX").await;
    other.skip_to("b OK").await;
    other.talk("C: c STORE 1 +FLAGS.SILENT (\\Seen)\nS: c OK ...").await;
    let told = client.line().await;
    assert!(
        told.starts_with("* STATUS \"INBOX\" (UIDVALIDITY ") && told.contains(" UNSEEN 0 HIGHESTMODSEQ "),
        "{told}"
    );
    // The selected one as it happens, with what was asked for.
    other.talk("C: d COPY 1 Sent\nS: d OK ...").await;
    client.talk("S: * 1 EXISTS\nS: * 1 RECENT\nS: * 1 FETCH (UID 1 PREVIEW \"one\")").await;
    other.talk("C: e COPY 1 Work\nS: e OK ...\nC: f CREATE New/One\nS: f OK ...").await;
    client.talk("S: * LIST () \"/\" \"New/One\"").await;
    other.talk("C: g RENAME New/One Newer\nS: g OK ...").await;
    client.talk("S: * LIST () \"/\" \"Newer\" (\"OLDNAME\" (\"New/One\"))").await;
    other.talk("C: h SUBSCRIBE Newer\nS: h OK ...").await;
    client.talk("S: * LIST (\\Subscribed) \"/\" \"Newer\"").await;
    other.talk("C: i DELETE Newer\nS: i OK ...").await;
    client.talk("S: * LIST (\\NonExistent) \"/\" \"Newer\"").await;
    other.talk("C: j SELECT Sent").await;
    other.skip_to("j OK").await;
    other.talk("C: k STORE 1 +FLAGS.SILENT (\\Deleted)\nS: k OK ...\nC: l EXPUNGE\nS: * 1 EXPUNGE\nS: l OK ...").await;
    while client.line().await != "* 1 EXPUNGE" {}
    client.talk("C: g NOTIFY NONE\nS: g OK ...").await;
    server.deliver(&["ann"], "Subject: 2\n\ntwo").await;
    client.talk("C: h NOOP\nS: h OK ...").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flags_are_told_to_whom_wants_them_and_to_who_changes_them() {
    let server = Server::start();
    server.deliver(&["ann"], "Subject: 1\n\none").await;
    let (mut client, mut other) = (server.imap("ann").await, server.imap("ann").await);
    client.talk("C: b NOTIFY SET (selected (MessageNew MessageExpunge))\nS: b OK ...\nC: c SELECT INBOX").await;
    client.skip_to("c OK").await;
    other.talk("C: b SELECT INBOX").await;
    other.skip_to("b OK").await;
    other.talk("C: c STORE 1 +FLAGS.SILENT (\\Flagged)\nS: c OK ...").await;
    client.talk("C: d NOOP\nS: d OK ...\nC: e IDLE\nS: + ...").await;
    other.talk("C: d STORE 1 +FLAGS.SILENT (\\Answered)\nS: d OK ...").await;
    server.deliver(&["ann"], "Subject: 2\n\ntwo").await;
    client.talk("S: * 2 EXISTS\nS: * 2 RECENT\nC: DONE\nS: e OK ...").await;
    client
        .talk(
            "C: f STORE 1 +FLAGS (\\Seen)
             S: * 1 FETCH (UID 1 FLAGS (\\Recent \\Seen \\Answered \\Flagged))
             S: f OK ...",
        )
        .await;
}
