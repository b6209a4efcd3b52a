//! A mail server on a volume in memory: mail comes in, is read, moved, written and sent, and is there after the power has failed.

use std::fmt::Display;

use ::webmail::Mail as _;
use ::webmail::mail::{Failure, Flag, Origin, Purpose, Row, Sending};
use keep::Keep;
use keep::digest::Digest;
use keep::volume::{Machine, Own};
use keep::webmail::{Mail, User};
use store::memory::{Faults, Memory};
use store::{Format, Options, Quota, SpecialUse, Volume};

#[derive(Debug, Default)]
struct Room;

impl Machine for Room {
    fn now(&self) -> i64 {
        1_800_000_000
    }

    fn random(&mut self) -> [u8; 16] {
        [7; 16]
    }

    fn hostname(&self) -> &str {
        "mx.example.org"
    }

    fn owner(&self, address: &str) -> Option<(&str, u64)> {
        match address {
            "ann@example.org" => Some(("ann", 0)),
            "bob@example.org" => Some(("bob", 20_000)),
            _ => None,
        }
    }

    fn log(&self, _: &str, _: &dyn Display) {}
}

type Server = Own<Memory, Room>;

fn server() -> Server {
    let format = Format { segment_bytes: 256 << 10, ..Format::new(1, 1) };
    let device = Volume::format(Memory::new(8 << 20), &format).unwrap();
    Own::new(Volume::open(device, Options::default()).unwrap(), Room)
}

fn accounts(names: &[&str]) -> Vec<(String, u64)> {
    names.iter().map(|name| ((*name).into(), if *name == "bob" { 20_000 } else { 0 })).collect()
}

fn arrive(server: &mut Server, to: &[&str], content: &[u8]) -> Result<(), store::Error> {
    let (mut append, mut digest) = (server.begin()?, Digest::default());
    for piece in content.chunks(100) {
        server.write(&mut append, piece)?;
        digest.read(piece);
    }
    server.arrive(append, &digest.finish(), &accounts(to))
}

fn user(server: &mut Server, name: &str) -> User {
    let quota = if name == "bob" { 20_000 } else { 0 };
    let owned = name.to_owned();
    let number = server.transact(move |transaction| keep::ensure(transaction, &owned, quota)).unwrap();
    User { number, name: name.into(), addresses: vec![format!("{name}@example.org")] }
}

fn mail<'a>(server: &'a mut Server, name: &str) -> Mail<'a, Server> {
    let user = user(server, name);
    Mail::new(server, user)
}

fn folder(mail: &mut Mail<'_, Server>, purpose: Purpose) -> u32 {
    mail.folders().iter().find(|folder| folder.purpose == purpose).unwrap().number
}

/// The whole text of the newest message of a folder.
fn newest(mail: &mut Mail<'_, Server>, folder: u32) -> Vec<u8> {
    let uid = mail.rows(folder, u32::MAX, 1).first().unwrap().uid;
    let message = mail.message(folder, uid).unwrap();
    let (mut content, mut piece) = (Vec::new(), [0; 1000]);
    loop {
        match mail.read(message.number, content.len() as u64, &mut piece) {
            0 => return content,
            length => content.extend_from_slice(&piece[..length]),
        }
    }
}

const MAIL: &[u8] =
    b"From: eve@example.net\r\nTo: ann@example.org\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\r\nA rare word\r\n";

#[test]
fn mail_to_two_is_stored_once_and_read_by_both() {
    let mut server = server();
    arrive(&mut server, &["ann", "bob"], MAIL).unwrap();
    assert_eq!(server.volume().usage().messages, 1);
    for name in ["ann", "bob"] {
        let mut mail = mail(&mut server, name);
        let inbox = folder(&mut mail, Purpose::Inbox);
        assert_eq!(newest(&mut mail, inbox), MAIL);
    }
    assert!(arrive(&mut server, &["ann", "bob"], &[b'x'; 30_000]).is_err(), "bob has no room");
    let mut mail = mail(&mut server, "ann");
    let inbox = folder(&mut mail, Purpose::Inbox);
    assert_eq!(mail.rows(inbox, u32::MAX, 9).len(), 1, "nobody has what one had no room for");
}

#[test]
fn words_are_found_in_envelopes_and_texts() {
    let mut server = server();
    arrive(&mut server, &["ann"], MAIL).unwrap();
    arrive(&mut server, &["ann"], b"Subject: other\r\n\r\nnothing\r\n").unwrap();
    let mut mail = mail(&mut server, "ann");
    for (words, count) in [
        ("GRÜSSE", 0),
        ("grüße", 1),
        ("RARE word", 1),
        ("subject:other", 1),
        ("from:eve rare", 1),
        ("subject:rare", 0),
        ("", 0),
    ] {
        assert_eq!(mail.search(words, 10).0.len(), count, "{words}");
    }
}

#[test]
fn messages_are_flagged_moved_and_removed_and_others_folders_are_none() {
    let mut server = server();
    arrive(&mut server, &["ann"], MAIL).unwrap();
    let foreign = {
        let mut mail = mail(&mut server, "bob");
        folder(&mut mail, Purpose::Inbox)
    };
    let mut mail = mail(&mut server, "ann");
    let (inbox, trash) = (folder(&mut mail, Purpose::Inbox), folder(&mut mail, Purpose::Trash));
    mail.flag(inbox, &[1], Flag::Flagged, true).unwrap();
    assert!(mail.rows(inbox, u32::MAX, 9)[0].flags.flagged);
    assert_eq!(mail.move_to(inbox, &[1], foreign), Err(Failure::Gone));
    assert_eq!(mail.flag(foreign, &[1], Flag::Seen, true), Err(Failure::Gone));
    assert!(mail.rows(foreign, u32::MAX, 9).is_empty() && mail.message(foreign, 1).is_none());
    mail.move_to(inbox, &[1], trash).unwrap();
    assert!(mail.rows(inbox, u32::MAX, 9).is_empty());
    mail.expunge(trash, &[1]).unwrap();
    assert!(mail.rows(trash, u32::MAX, 9).is_empty());
    mail.create("Work").unwrap();
    assert_eq!(mail.create("Work"), Err(Failure::Exists));
    assert_eq!(mail.create("Other Users/bob"), Err(Failure::Name));
    // Letters of INBOX in either case, and an accent in either way, are no other folders.
    for (name, again) in [("Inbox/x", "INBOX/x"), ("caf\u{e9}", "cafe\u{301}")] {
        assert_eq!((mail.create(name), mail.create(again)), (Ok(()), Err(Failure::Exists)), "{name}");
    }
    assert_eq!(mail.delete(inbox), Err(Failure::Inbox));
}

#[test]
fn conversations_are_of_one_thread_and_one_account() {
    let mut server = server();
    for (id, field) in [("1@x", ""), ("2@x", ""), ("3@x", "References: <1@x>\r\n"), ("4@x", "References: <2@x>\r\n")] {
        let content = format!("Subject: a\r\nMessage-ID: <{id}>\r\n{field}\r\nText\r\n");
        arrive(&mut server, &["ann", "bob"], content.as_bytes()).unwrap();
    }
    let foreign = {
        let mut mail = mail(&mut server, "bob");
        folder(&mut mail, Purpose::Inbox)
    };
    let mut mail = mail(&mut server, "ann");
    let (inbox, archive) = (folder(&mut mail, Purpose::Inbox), folder(&mut mail, Purpose::Archive));
    mail.flag(inbox, &[3], Flag::Seen, true).unwrap();
    let of = |rows: Vec<Row>| rows.iter().map(|row| (row.uid, row.count, row.flags.seen)).collect::<Vec<_>>();
    assert_eq!(of(mail.conversations(inbox, u32::MAX, 9)), [(4, 2, false), (3, 2, false)], "one of each is unread");
    assert_eq!(of(mail.conversations(inbox, 4, 9)), [(3, 2, false)]);
    assert_eq!(mail.of_conversations(inbox, &[3]), [3, 1]);
    mail.move_to(inbox, &[1], archive).unwrap();
    assert_eq!(of(mail.conversations(inbox, u32::MAX, 1)), [(4, 2, false)]);
    assert_eq!(of(mail.conversations(inbox, 4, 9)), [(3, 1, true)]);
    let whole: Vec<(u32, u32)> = mail.conversation(inbox, 3, 9).iter().map(|row| (row.folder, row.uid)).collect();
    assert_eq!(whole.len(), 2);
    assert!(whole.contains(&(archive, 1)) && whole.contains(&(inbox, 3)), "{whole:?}");
    assert!(mail.conversation(foreign, 1, 9).is_empty() && mail.conversations(foreign, u32::MAX, 9).is_empty());
    assert!(mail.of_conversations(foreign, &[1]).is_empty());
    mail.set_contacts(b"BEGIN:VCARD").unwrap();
    assert_eq!(mail.contacts(), b"BEGIN:VCARD");
}

#[test]
fn what_is_written_is_kept_as_a_draft_and_sent_without_what_only_the_sender_sees() {
    let mut server = server();
    let mut mail = mail(&mut server, "ann");
    let drafts = folder(&mut mail, Purpose::Drafts);
    let draft = mail.save(drafts, b"Subject: a\r\n\r\n1\r\n".to_vec(), None, [1; 16]).unwrap();
    let draft = mail.save(drafts, b"Subject: a\r\n\r\n2\r\n".to_vec(), Some(draft), [2; 16]).unwrap();
    assert_eq!(mail.rows(drafts, u32::MAX, 9).len(), 1);
    let hidden = b"Bcc: bob@example.org\r\n";
    let sending = |to: &str| Sending {
        origin: Origin { id: [1; 16], draft: Some((drafts, draft)), ..Origin::default() },
        from: "ann@example.org".into(),
        to: vec!["ann@example.org".into(), to.into()],
        content: [hidden, &b"Subject: a\r\n\r\n2\r\n"[..]].concat(),
        private: hidden.len() as u64,
    };
    assert_eq!(mail.send(sending("eve@example.net")), Err(Failure::Elsewhere));
    assert_eq!(mail.rows(drafts, u32::MAX, 9).len(), 1, "what is not sent stays");
    // Twice from one form, as after a double click.
    mail.send(sending("bob@example.org")).unwrap();
    mail.send(sending("bob@example.org")).unwrap();
    assert!(mail.rows(drafts, u32::MAX, 9).is_empty());
    let sent = folder(&mut mail, Purpose::Sent);
    assert_eq!(mail.rows(sent, u32::MAX, 9).len(), 1);
    assert!(newest(&mut mail, sent).starts_with(hidden));
    let mut mail = self::mail(&mut server, "bob");
    let inbox = folder(&mut mail, Purpose::Inbox);
    assert!(newest(&mut mail, inbox).starts_with(b"Subject"));
}

#[test]
fn what_was_acknowledged_is_there_after_the_power_has_failed() {
    for seed in 1..40 {
        let mut server = server();
        let mut acknowledged = 0;
        for number in 0..20u64 {
            let content =
                format!("Subject: {number}\r\n\r\n{}\r\n", "x".repeat(usize::try_from(number * 400).unwrap()));
            arrive(&mut server, &["ann"], content.as_bytes()).unwrap();
            acknowledged += 1;
            if number == seed % 20 {
                break;
            }
        }
        // One more is under way.
        let mut append = server.begin().unwrap();
        server.write(&mut append, MAIL).unwrap();
        let device = server.volume().device().after_power_failure(seed);
        let mut server = Own::new(Volume::open(device, Options::default()).unwrap(), Room);
        let mut mail = mail(&mut server, "ann");
        let inbox = folder(&mut mail, Purpose::Inbox);
        assert_eq!(mail.rows(inbox, u32::MAX, 100).len(), acknowledged, "seed {seed}");
        assert!(newest(&mut mail, inbox).starts_with(format!("Subject: {}", acknowledged - 1).as_bytes()));
    }
}

#[test]
fn a_device_that_fails_loses_nothing_silently() {
    let mut server = server();
    arrive(&mut server, &["ann"], MAIL).unwrap();
    let faults = Faults { flushes_until_failure: Some(0), ..Faults::default() };
    server.device_mut().faults = faults;
    assert!(arrive(&mut server, &["ann"], MAIL).is_err());
    let user = User { number: 1, name: "ann".into(), addresses: Vec::new() };
    let mut mail = Mail::new(&mut server, user);
    assert_eq!(mail.create("Work"), Err(Failure::Store));
}

#[test]
fn a_message_without_a_stored_digest_is_listed_by_what_it_says() {
    let mut server = server();
    let mut append = server.begin().unwrap();
    server.write(&mut append, MAIL).unwrap();
    server.arrive(append, &[], &accounts(&["ann"])).unwrap();
    let mut mail = mail(&mut server, "ann");
    let inbox = folder(&mut mail, Purpose::Inbox);
    let row = mail.rows(inbox, u32::MAX, 1).remove(0);
    assert!(String::from_utf8(row.envelope).unwrap().contains("=?utf-8?q?Gr=C3=BC=C3=9Fe?="));
}

#[test]
fn two_clicks_make_one_draft_and_two_forms_make_two() {
    let mut server = server();
    let mut mail = mail(&mut server, "ann");
    let drafts = folder(&mut mail, Purpose::Drafts);
    let mut save = |form: u8| mail.save(drafts, b"Subject: a\r\n\r\n1\r\n".to_vec(), None, [form; 16]).unwrap();
    let saved = [1, 1, 2, 1].map(&mut save);
    let uids: Vec<u32> = mail.rows(drafts, u32::MAX, 9).iter().map(|row| row.uid).collect();
    assert_eq!(uids, [saved[3], saved[2]]);
    for form in 3..60 {
        mail.save(drafts, b"Subject: b\r\n\r\n".to_vec(), None, [form; 16]).unwrap();
    }
    assert_eq!(mail.rows(drafts, u32::MAX, 99).len(), 59);
}

#[test]
fn lists_of_one_page_read_so_many_bytes_of_messages_without_a_digest() {
    let mut server = server();
    let mut append = server.begin().unwrap();
    let large = [MAIL, &vec![b'x'; 200 << 10]].concat();
    server.write(&mut append, &large).unwrap();
    server.arrive(append, &[], &accounts(&["ann"])).unwrap();
    let is_told = |mail: &mut Mail<'_, Server>| {
        let inbox = folder(mail, Purpose::Inbox);
        let row = mail.rows(inbox, u32::MAX, 1).remove(0);
        String::from_utf8(row.envelope).unwrap().contains("=?utf-8?q?Gr=C3=BC=C3=9Fe?=")
    };
    let mut page = mail(&mut server, "ann");
    assert_eq!((0..300).filter(|_| is_told(&mut page)).count(), 256);
    assert!(is_told(&mut mail(&mut server, "ann")), "the next page");
}

#[test]
fn an_account_whose_folders_are_for_nothing_is_furnished() {
    let mut server = server();
    server
        .transact(|transaction| {
            let account = transaction.add_account(b"ann", Quota::default())?;
            for name in [&b"INBOX"[..], b"Deleted", b"Sent Messages", b"sent items", b"Work"] {
                transaction.create(account, name, SpecialUse::default())?;
            }
            Ok(())
        })
        .unwrap();
    let mut mail = mail(&mut server, "ann");
    let names = |mail: &mut Mail<'_, Server>, purpose| {
        let of = mail.folders().into_iter().filter(|folder| folder.purpose == purpose);
        of.map(|folder| folder.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&mut mail, Purpose::Sent), ["sent items"]);
    assert_eq!(names(&mut mail, Purpose::Trash), ["Trash"]);
    assert_eq!(names(&mut mail, Purpose::Other), ["Deleted", "Sent Messages", "Work"]);
    // What its user deletes stays deleted, until it is needed.
    let trash = folder(&mut mail, Purpose::Trash);
    mail.delete(trash).unwrap();
    let mut mail = self::mail(&mut server, "ann");
    assert_eq!(names(&mut mail, Purpose::Trash), [""; 0]);
    let trash = mail.provide(Purpose::Trash).unwrap();
    assert_eq!(
        (mail.provide(Purpose::Trash).unwrap(), names(&mut mail, Purpose::Trash)),
        (trash, vec!["Trash".into()])
    );
}

#[test]
fn inbox_is_listed_in_letters_of_either_case_and_names_below_it_are_not() {
    let mut server = server();
    let number = user(&mut server, "ann").number;
    server.transact(move |transaction| transaction.create(number, b"INBOX/Sub", SpecialUse::default())).unwrap();
    let state = Keep::state(&server);
    for (pattern, wanted) in [
        ("%nbox", "INBOX"),
        ("i%x", "INBOX"),
        ("*box", "INBOX"),
        ("inb*", "INBOX INBOX/Sub"),
        ("inbox/%", "INBOX/Sub"),
        ("*sub", ""),
        ("i*SUB", ""),
    ] {
        let mut listing = keep::list::Listing::new(&state, number, &[], &[pattern.into()]);
        assert!(listing.go_on(|| false));
        let found = listing.found().into_iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned());
        assert_eq!(found.collect::<Vec<_>>().join(" "), wanted, "{pattern}");
    }
}
