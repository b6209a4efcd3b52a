//! Mailboxes of others, and rights (RFC 4314), line by line.

use std::time::Instant;

use store::{Quota, SpecialUse};

use crate::harness::Server;

const ALL: &str = "lrswipkxteacd";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_are_given_told_and_taken() {
    let server = Server::start();
    let (mut ann, mut bob) = (server.imap("ann").await, server.imap("bob").await);
    ann.talk(&format!(
        "C: b NAMESPACE
         S: * NAMESPACE ((\"\" \"/\")) ((\"Other Users/\" \"/\")) NIL
         S: b OK ...
         C: c CREATE Team
         S: c OK ...
         C: d MYRIGHTS Team
         S: * MYRIGHTS \"Team\" {ALL}
         S: d OK ...
         C: e GETACL Team
         S: * ACL \"Team\" \"ann\" \"{ALL}\"
         S: e OK ...
         C: f LISTRIGHTS Team ann
         S: * LISTRIGHTS \"Team\" \"ann\" {ALL}
         S: f OK ...
         C: g LISTRIGHTS Team bob
         S: * LISTRIGHTS \"Team\" \"bob\" \"\" l r s w i p k x t e a c d
         S: g OK ...
         C: h SETACL Team bob lrs
         S: h OK ...
         C: i SETACL Team Bob +i
         S: i OK ...
         C: j SETACL Team bob -s
         S: j OK ...
         C: k GETACL Team
         S: * ACL \"Team\" \"ann\" \"{ALL}\" \"bob\" \"lri\"
         S: k OK ...
         C: l SETACL Team ann lr
         S: l NO [CANNOT] The owner has all rights
         C: m SETACL Team whoever lr
         S: m NO [CANNOT] Nobody has an account with this name
         C: n SETACL Team bob lQ
         S: n BAD Unknown right
         C: o SETACL Nowhere bob lr
         S: o NO [NONEXISTENT] ..."
    ))
    .await;
    bob.talk(
        "C: b MYRIGHTS \"Other Users/ann/Team\"
         S: * MYRIGHTS \"Other Users/ann/Team\" lri
         S: b OK ...
         C: c GETACL \"Other Users/ann/Team\"
         S: c NO [NOPERM] You may not
         C: d SETACL \"Other Users/ann/Team\" bob +a
         S: d NO [NOPERM] You may not
         C: e LISTRIGHTS \"Other Users/ann/Team\" bob
         S: e NO [NOPERM] You may not
         C: f MYRIGHTS \"Other Users/ann/INBOX\"
         S: f NO [NONEXISTENT] No such mailbox
         C: g MYRIGHTS \"Other Users/nobody/INBOX\"
         S: g NO [NONEXISTENT] No such mailbox
         C: h LIST \"\" \"Other*\"
         S: * LIST (\\Noselect \\NonExistent \\HasChildren) \"/\" \"Other Users\"
         S: * LIST (\\Noselect \\NonExistent \\HasChildren) \"/\" \"Other Users/ann\"
         S: * LIST (\\HasNoChildren) \"/\" \"Other Users/ann/Team\"
         S: h OK ...
         C: i CREATE \"Other Users/ann/Mine\"
         S: i NO ...
         C: j CREATE \"Other Users\"
         S: j NO [CANNOT] ...
         C: k SUBSCRIBE \"Other Users/ann/Team\"
         S: k OK ...
         C: l LSUB \"\" \"Other*Team\"
         S: * LSUB () \"/\" \"Other Users/ann/Team\"
         S: l OK ...",
    )
    .await;
    ann.talk("C: p DELETEACL Team bob\nS: p OK ...").await;
    bob.talk(
        "C: m STATUS \"Other Users/ann/Team\" (MESSAGES)
         S: m NO [NONEXISTENT] No such mailbox
         C: n LIST \"\" \"Other*Team\" RETURN (STATUS (MESSAGES))
         S: n OK ...",
    )
    .await;
    // All have what anyone has, but for what is denied to one of them.
    ann.talk("C: q SETACL Team anyone lr\nS: q OK ...\nC: r SETACL Team -bob r\nS: r OK ...").await;
    bob.talk("C: o EXAMINE \"Other Users/ann/Team\"\nS: o NO [NOPERM] You may not").await;
    let mut eve = server.imap("eve").await;
    eve.talk("C: b MYRIGHTS \"Other Users/ann/Team\"\nS: * MYRIGHTS \"Other Users/ann/Team\" lr\nS: b OK ...").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_asks_for_its_right() {
    let server = Server::start();
    let (mut ann, mut bob) = (server.imap("ann").await, server.imap("bob").await);
    ann.talk(
        "C: b CREATE Team
         S: b OK ...
         C: c APPEND Team (\\Flagged) {10+}
         C: Subject: x
         S: c OK ...
         C: d SETACL Team bob lr
         S: d OK ...",
    )
    .await;
    let team = "\"Other Users/ann/Team\"";
    bob.talk(&format!("C: b SELECT {team}")).await;
    let lines = bob.skip_to("b ").await;
    assert!(lines.contains(&"* OK [PERMANENTFLAGS ()] Flags permitted".into()), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "b OK [READ-ONLY] Selected");
    bob.talk(&format!(
        "C: c FETCH 1 (RFC822.SIZE FLAGS)
         S: * 1 FETCH (RFC822.SIZE 10 FLAGS (\\Recent \\Flagged))
         S: c OK ...
         C: d STORE 1 +FLAGS (\\Seen)
         S: d NO ...
         C: e APPEND {team} {{1+}}
         C: x
         S: e NO [NOPERM] You may not
         C: f COPY 1 {team}
         S: f NO [NOPERM] You may not
         C: g COPY 1 INBOX
         S: g OK ...
         C: h MOVE 1 INBOX
         S: h NO ...
         C: i RENAME {team} \"Other Users/ann/Teams\"
         S: i NO [NOPERM] You may not
         C: j DELETE {team}
         S: j NO [NOPERM] You may not
         C: k CREATE \"Other Users/ann/Team/Below\"
         S: k NO [NOPERM] You may not
         C: l GETQUOTAROOT {team}
         S: * QUOTAROOT {team}
         S: l OK ..."
    ))
    .await;
    // \Seen alone: of what is put in place of the flags the rest stays as it was.
    ann.talk("C: e SETACL Team bob +s\nS: e OK ...").await;
    bob.talk(&format!("C: m SELECT {team}")).await;
    let lines = bob.skip_to("m ").await;
    assert!(lines.contains(&"* OK [PERMANENTFLAGS (\\Seen)] Flags permitted".into()), "{lines:?}");
    bob.talk(
        "C: n STORE 1 FLAGS (\\Seen \\Deleted $Junk)
         S: * 1 FETCH (UID 1 FLAGS (\\Recent \\Seen \\Flagged))
         S: n OK ...
         C: o STORE 1 -FLAGS.SILENT (\\Flagged)
         S: o OK ...
         C: p STORE 1 FLAGS ()
         S: * 1 FETCH (UID 1 FLAGS (\\Recent \\Flagged))
         S: p OK ...
         C: q EXPUNGE
         S: q NO [NOPERM] You may not",
    )
    .await;
    // What comes there has no flags that may not be set.
    ann.talk("C: f SETACL Team bob +ik\nS: f OK ...").await;
    bob.talk(&format!(
        "C: r APPEND {team} (\\Seen \\Deleted $Junk) {{1+}}
         C: x
         S: * 2 EXISTS
         S: * 2 RECENT
         S: r OK [APPENDUID ...
         C: s FETCH 2 (FLAGS)
         S: * 2 FETCH (FLAGS (\\Recent \\Seen))
         S: s OK ...
         C: t STORE 1 FLAGS ()
         S: t OK ...
         C: u COPY 1 {team}"
    ))
    .await;
    let lines = bob.skip_to("u ").await;
    assert!(lines.last().unwrap().starts_with("u OK [COPYUID"), "{lines:?}");
    bob.talk(
        "C: v FETCH 3 (FLAGS)
         S: * 3 FETCH (FLAGS (\\Recent))
         S: v OK ...
         C: w MOVE 1 INBOX
         S: w NO [NOPERM] You may not
         C: x CREATE \"Other Users/ann/Team/Below\"
         S: x OK ...
         C: y MYRIGHTS \"Other Users/ann/Team/Below\"
         S: * MYRIGHTS \"Other Users/ann/Team/Below\" lrsikc
         S: y OK ...",
    )
    .await;
    // With all of them it is as his own, but for the INBOX and what lies in another account.
    ann.talk(&format!(
        "C: g SETACL Team/Below bob lrswipkxtea\nS: g OK ...\nC: h SETACL INBOX bob {}\nS: h OK ...",
        "lrswipkxtea"
    ))
    .await;
    bob.talk(
        "C: z RENAME \"Other Users/ann/Team/Below\" Mine
         S: z NO [CANNOT] ...
         C: aa RENAME \"Other Users/ann/Team/Below\" \"Other Users/ann/Team/Lower\"
         S: aa OK ...
         C: ab DELETE \"Other Users/ann/Team/Lower\"
         S: ab OK ...
         C: ac DELETE \"Other Users/ann/inbox\"
         S: ac NO [CANNOT] INBOX stays
         C: ad RENAME \"Other Users/ann/INBOX\" \"Other Users/ann/Team/Stolen\"
         S: ad NO [CANNOT] INBOX stays",
    )
    .await;
    // Who may read no more is told nothing more.
    ann.talk("C: i DELETEACL Team bob\nS: i OK ...").await;
    bob.talk("C: ae FETCH 1 (FLAGS)\nS: ae NO [NOPERM] You may not\nC: af CLOSE\nS: af OK ...").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_no_longer_read_is_told_nothing_more() {
    let server = Server::start();
    let (mut ann, mut bob, mut eve) = (server.imap("ann").await, server.imap("bob").await, server.imap("eve").await);
    ann.talk(
        "C: b CREATE Team\nS: b OK ...\nC: c SETACL Team bob lr\nS: c OK ...\nC: d SETACL Team eve lr\nS: d OK ...",
    )
    .await;
    let team = "\"Other Users/ann/Team\"";
    bob.talk(&format!("C: b SELECT {team}")).await;
    bob.skip_to("b OK").await;
    bob.talk("C: c IDLE\nS: + ...").await;
    eve.talk(&format!(
        "C: b NOTIFY SET (selected (MessageNew (UID BODY.PEEK[TEXT]) MessageExpunge))\nS: b OK ...\nC: c EXAMINE {team}"
    ))
    .await;
    eve.skip_to("c OK").await;
    let append = |tag: &str| format!("C: {tag} APPEND Team {{15+}}\nC: Subject: x\nC: \nC: y\nS: {tag} OK ...");
    ann.talk(&append("e")).await;
    bob.talk("S: * 1 EXISTS\nS: * 1 RECENT").await;
    eve.talk("S: * 1 EXISTS").await;
    eve.skip_to("y)").await;
    ann.talk("C: f DELETEACL Team bob\nS: f OK ...\nC: g DELETEACL Team eve\nS: g OK ...").await;
    ann.talk(&append("h")).await;
    bob.talk("C: DONE\nS: c OK ...\nC: d NOOP\nS: d OK ...").await;
    eve.talk("C: d NOOP\nS: d OK ...").await;
    // With the right it goes on where it was.
    ann.talk("C: i SETACL Team bob lr\nS: i OK ...").await;
    bob.talk("C: e NOOP\nS: * 2 EXISTS\nS: * 2 RECENT\nS: e OK ...").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_of_others_mailboxes_is_shared_or_ones_own() {
    let server = Server::start();
    let (mut ann, mut bob) = (server.imap("ann").await, server.imap("bob").await);
    ann.talk(
        "C: b CREATE Team
         S: b OK ...
         C: c SETMETADATA Team (/shared/comment \"of all\" /private/comment \"of ann\")
         S: c OK ...
         C: d SETACL Team bob l
         S: d OK ...",
    )
    .await;
    bob.talk(
        "C: b GETMETADATA \"Other Users/ann/Team\" (/shared/comment)
         S: b NO [NOPERM] ...
         C: c SETMETADATA \"Other Users/ann/Team\" (/private/comment \"of bob\")
         S: c NO [NOPERM] ...
         C: d GETMETADATA \"Other Users/ann/INBOX\" (/shared/comment)
         S: d NO [NONEXISTENT] ...",
    )
    .await;
    ann.talk("C: e SETACL Team bob lr\nS: e OK ...").await;
    bob.talk(
        "C: e GETMETADATA \"Other Users/ann/Team\" (/shared/comment /private/comment)
         S: * METADATA \"Other Users/ann/Team\" (\"/shared/comment\" \"of all\")
         S: e OK ...
         C: f SETMETADATA \"Other Users/ann/Team\" (/shared/comment \"of bob\")
         S: f NO [NOPERM] ...
         C: g SETMETADATA \"Other Users/ann/Team\" (/private/comment \"of bob\")
         S: g OK ...
         C: h GETMETADATA (DEPTH infinity) \"Other Users/ann/Team\" (/private /shared)
         S: * METADATA \"Other Users/ann/Team\" (\"/private/comment\" \"of bob\" \"/shared/comment\" \"of all\")
         S: h OK ...
         C: i GETMETADATA (DEPTH infinity) \"\" (/private)
         S: i OK ...",
    )
    .await;
    ann.talk("C: f SETACL Team bob +w\nS: f OK ...").await;
    bob.talk("C: j SETMETADATA \"Other Users/ann/Team\" (/shared/comment \"of both\")\nS: j OK ...").await;
    ann.talk(
        "C: g GETMETADATA Team (/shared/comment /private/comment)
         S: * METADATA \"Team\" (\"/private/comment\" \"of ann\" \"/shared/comment\" \"of both\")
         S: g OK ...
         C: h DELETE Team
         S: h OK ...",
    )
    .await;
    // What is kept of a mailbox that is gone goes with the next that is set.
    let kept = || {
        let state = server.store().state();
        let (_, bob) = state.account_named(b"bob").unwrap();
        bob.annotations.keys().map(|key| String::from_utf8_lossy(key).into_owned()).collect::<Vec<_>>()
    };
    assert!(matches!(&kept()[..], [key] if key.ends_with("/private/comment")), "{:?}", kept());
    bob.talk("C: k SETMETADATA \"\" (/private/comment \"x\")\nS: k OK ...").await;
    assert_eq!(kept(), ["metadata/private/comment"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_in_others_mailboxes_is_told_to_who_may_know() {
    let server = Server::start();
    let (mut ann, mut bob, mut eve) = (server.imap("ann").await, server.imap("bob").await, server.imap("eve").await);
    ann.talk("C: b CREATE Team\nS: b OK ...\nC: c SETACL Team bob l\nS: c OK ...").await;
    let events = "(MessageNew MessageExpunge FlagChange MailboxName)";
    bob.talk(&format!("C: b NOTIFY SET STATUS (subtree \"Other Users\" {events})\nS: b OK ...")).await;
    // What is others' is not one's own.
    eve.talk(&format!("C: b NOTIFY SET (personal {events})\nS: b OK ...")).await;
    let append = |tag: &str| format!("C: {tag} APPEND Team {{1+}}\nC: x\nS: {tag} OK ...");
    ann.talk(&append("d")).await;
    // Five times a second is looked what has changed.
    let a_look = std::time::Duration::from_millis(300);
    tokio::time::sleep(a_look).await;
    ann.talk("C: e SETACL Team bob lr\nS: e OK ...\nC: f SETACL Team eve lr\nS: f OK ...").await;
    tokio::time::sleep(a_look).await;
    ann.talk(&append("g")).await;
    let line = bob.line().await;
    assert!(line.starts_with("* STATUS \"Other Users/ann/Team\" (MESSAGES 2 "), "{line}");
    ann.talk("C: h RENAME Team Teams\nS: h OK ...").await;
    bob.talk("S: * LIST () \"/\" \"Other Users/ann/Teams\" (\"OLDNAME\" (\"Other Users/ann/Team\"))").await;
    ann.talk("C: i DELETEACL Teams bob\nS: i OK ...").await;
    bob.talk("S: * LIST (\\NonExistent) \"/\" \"Other Users/ann/Teams\"").await;
    ann.talk("C: j CREATE Teams/Below\nS: j OK ...\nC: k SETACL Teams/Below bob l\nS: k OK ...").await;
    bob.talk("S: * LIST () \"/\" \"Other Users/ann/Teams/Below\"\nC: c NOOP\nS: c OK ...").await;
    bob.talk(
        "C: d NOTIFY SET STATUS (mailboxes \"Other Users/ann/Teams/Below\" (MessageNew MessageExpunge))\nS: d OK ...",
    )
    .await;
    ann.talk("C: l SETACL Teams/Below bob lr\nS: l OK ...").await;
    bob.talk("C: e NOTIFY SET STATUS (mailboxes \"Other Users/ann/Teams/Below\" (MessageNew MessageExpunge))").await;
    bob.talk("S: * STATUS \"Other Users/ann/Teams/Below\" (MESSAGES 0 UIDNEXT 1 ...\nS: e OK ...").await;
    eve.talk("C: c NOOP\nS: c OK ...").await;
}

/// `cargo test --release -p sluice-mailbox --test all -- --ignored --nocapture mailboxes_of_all` prints how long LIST takes where there
/// are 10,000 accounts with ten mailboxes each, of which one is shared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn what_list_costs_where_there_are_mailboxes_of_all() {
    let server = Server::start();
    let mut ann = server.imap("ann").await;
    for first in (0..10_000).step_by(100) {
        let add = server.store().transact(move |transaction| {
            for number in first..first + 100 {
                let account = transaction.add_account(format!("user{number}").as_bytes(), Quota::default())?;
                for mailbox in 0..10 {
                    let mailbox =
                        transaction.create(account, format!("m{mailbox}").as_bytes(), SpecialUse::default())?;
                    transaction.annotate(account, Some(mailbox), b"recent", Some(b"1"))?;
                }
            }
            Ok::<_, store::Error>(())
        });
        add.await.unwrap();
    }
    mailbox::acl::set(server.store(), "user5000", "m5", "ann", "lr").await.unwrap();
    for command in ["LIST \"\" \"*\"", "LIST \"\" \"INBOX\"", "NOOP"] {
        let mut times = Vec::new();
        for _ in 0..21 {
            let began = Instant::now();
            ann.talk(&format!("C: x {command}")).await;
            let lines = ann.skip_to("x ").await;
            assert!(!command.contains('*') || lines.iter().any(|line| line.contains("user5000/m5")), "{lines:?}");
            times.push(began.elapsed());
        }
        times.sort();
        println!("{command}: {:?} [{:?}..{:?}]", times[10], times[0], times[20]);
    }
}

/// Annotations of a guest take no room that the owner needs.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_leaves_the_owner_room_to_note() {
    let server = Server::start();
    let mut ann = server.imap("ann").await;
    ann.talk("C: a CREATE Team\nS: a OK ...\nC: b SETACL Team bob lrw\nS: b OK ...").await;
    let mut bob = server.imap("bob").await;
    let mut refused = None;
    for round in 0..22 {
        let entries: Vec<String> = (0..100).map(|at| format!("/shared/n{round}x{at} \"x\"")).collect();
        bob.send(format!("c SETMETADATA \"Other Users/ann/Team\" ({})\r\n", entries.join(" ")).as_bytes()).await;
        let answer = bob.skip_to("c ").await.pop().unwrap();
        if !answer.starts_with("c OK") {
            assert!(answer.starts_with("c NO [METADATA TOOMANY]"), "{answer}");
            refused.get_or_insert(round);
        }
    }
    assert_eq!(refused, Some(9), "half of it, less the list of rights");
    ann.talk("C: d SETACL Team bob lrws\nS: d OK ...\nC: e SETMETADATA Team (/private/comment \"mine\")\nS: e OK ...")
        .await;
    bob.talk("C: f SETMETADATA \"Other Users/ann/Team\" (/shared/n0x0 NIL)\nS: f OK ...").await;
}
