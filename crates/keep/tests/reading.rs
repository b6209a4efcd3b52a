//! Search, threads, FETCH and views over a volume in memory, with faults: commits that fail, reads that are short or fail.

use std::cell::Cell;
use std::fmt::Display;
use std::ops::ControlFlow;

use keep::content::{Messages, Reader};
use keep::digest::{Digest, Text};
use keep::fetch::{self, Reply, Running, Section, Share, Unread};
use keep::find::{Answer, Finder, INSPECTIONS_MAX, Index, Key, NoIndex, Place};
use keep::list::Listing;
use keep::sort::{self, By, Criterion};
use keep::thread::{Forest, Piece, Post};
use keep::view::View;
use keep::volume::{Machine, Own};
use keep::{Keep, name};
use proto::imap::acl::Rights;
use store::memory::{Faults, Memory};
use store::{Arrival, Change, Error, Flags, Format, Options, Refused, SpecialUse, Uids, Volume};

struct Clock;

impl Machine for Clock {
    fn now(&self) -> i64 {
        1_800_000_000
    }

    fn random(&mut self) -> [u8; 16] {
        [7; 16]
    }

    fn hostname(&self) -> &str {
        "mx.example.org"
    }

    fn owner(&self, _: &str) -> Option<(&str, u64)> {
        None
    }

    fn log(&self, _: &str, _: &dyn Display) {}
}

type Server = Own<Memory, Clock>;

/// A volume with an account, number 1, whose INBOX holds mails.
fn server(mails: &[&str]) -> Server {
    let format = Format { segment_bytes: 256 << 10, ..Format::new(1, 1) };
    let device = Volume::format(Memory::new(8 << 20), &format).unwrap();
    let mut server = Own::new(Volume::open(device, Options::default()).unwrap(), Clock);
    server.transact(|transaction| keep::ensure(transaction, "ann", 0)).unwrap();
    mails.iter().for_each(|mail| deliver(&mut server, mail));
    server
}

fn deliver(server: &mut Server, mail: &str) {
    let mail = mail.replace('\n', "\r\n").into_bytes();
    let mut digest = Digest::default();
    digest.read(&mail);
    let deliver = server.deliver(mail, digest.finish(), |transaction, sealed| {
        let inbox = transaction.state().mailbox_named(1, b"INBOX").ok_or(Refused::NoSuchMailbox)?.0;
        transaction.deliver(sealed, inbox, &Arrival { date: 86_400, now: 86_400, ..Arrival::default() })
    });
    deliver.unwrap();
}

fn view(server: &Server) -> View {
    let state = server.state();
    let (number, mailbox) = state.mailbox_named(1, b"INBOX").unwrap();
    View::open(number, mailbox.clone(), false, Rights::ALL)
}

/// The UIDs that match, with slices that are over at once.
fn found<M: Messages, I: Index>(messages: &M, server: &Server, index: I, key: &Key) -> Vec<u32> {
    let view = view(server);
    let (mut uids, mut slices) = (Vec::new(), 0);
    let mut finder = Finder::new(messages, index, server.state(), &view, key, 86_460);
    while !finder.go_on(|| true, |message| uids.push(message.uid())) {
        slices += 1;
        assert!(slices < 1_000, "each slice does something");
    }
    let mut at_once = Vec::new();
    assert!(uids.is_sorted());
    if slices > 0 {
        let all = Key::And(Vec::new());
        let mut finder = Finder::new(messages, NoIndex, server.state(), &view, &all, 86_460);
        assert!(finder.go_on(|| false, |message| at_once.push(message.uid())), "all in one slice");
        assert_eq!(at_once, view.uids);
    }
    uids
}

const MAILS: [&str; 3] = [
    "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nFrom: Zoe <zoe@example.org>\nDate: Fri, 2 Jan 1970 10:00:00 +0000\n\nfar away\n",
    "Subject: Re: b\nFrom: adam@example.org\nMessage-ID: <2@x>\nContent-Transfer-Encoding: base64\n\naGlkZGVuIHdvcmRz\n",
    "Subject: b\nFrom: Mia <mia@example.org>\nReferences: <2@x>\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\none\n--x\nContent-Type: \
     application/pdf; name=a.pdf\nContent-Transfer-Encoding: quoted-printable\n\na=3Db\n--x--\n",
];

#[test]
fn a_search_without_an_index_reads_what_its_conditions_ask_for() {
    let server = server(&MAILS);
    let header = |name: &str, text: &str| Key::Header(name.into(), text.into());
    let uids = |uids: &[u32]| -> Uids { uids.iter().copied().collect() };
    let cases = [
        (Key::And(Vec::new()), &[1, 2, 3][..]),
        (header("subject", "gruesse"), &[][..]),
        (header("subject", "GRÜß"), &[1]),
        (header("FROM", "mia@"), &[3]),
        (header("references", ""), &[3]),
        (Key::Body("far".into()), &[1]),
        (Key::Body("subject".into()), &[]),
        (Key::Text("hidden WORDS".into()), &[2]),
        (Key::Not(Box::new(Key::Text("e".into()))), &[]),
        (Key::Or(Box::new((Key::Numbers(uids(&[2])), Key::Uids(uids(&[3, 9]))))), &[2, 3]),
        (Key::And(vec![Key::Text("b".into()), header("subject", "re:"), Key::Text("words".into())]), &[2]),
        (Key::Sent(1, 2), &[1]),
        (Key::Arrived(1, 2), &[1, 2, 3]),
        (Key::Younger(59), &[]),
        (Key::Flag(Flags::SEEN), &[]),
        (Key::Keyword("x".into()), &[]),
        (Key::Larger(170), &[3]),
    ];
    for (key, wanted) in cases {
        assert_eq!(found(&server, &server, NoIndex, &key), wanted, "{key:?}");
    }
}

/// An index that answers as it is told to, and counts its inspections.
struct Fixed<'a>(Answer, &'a Cell<usize>);

impl Index for Fixed<'_> {
    type Found = ();

    fn find(&self, _: Place<'_>, _: &[u8]) -> Option<()> {
        Some(())
    }

    fn tell(&self, _: u64, _: Option<&()>) -> Answer {
        self.0
    }

    fn inspect(&self, _: u64, text: &str) -> bool {
        self.1.set(self.1.get() + 1);
        text == "in the document"
    }
}

#[test]
fn an_index_is_believed_and_inspects_what_it_cannot_tell() {
    let server = server(&MAILS);
    let inspected = Cell::new(0);
    let find = |answer, text: &str| found(&server, &server, Fixed(answer, &inspected), &Key::Text(text.into()));
    assert_eq!(find(Answer::Present, "nowhere"), [1, 2, 3]);
    assert_eq!(find(Answer::Absent, "far away"), [0u32; 0]);
    assert_eq!(find(Answer::Unknown, "in the document"), [0u32; 0]);
    assert_eq!(inspected.get(), 0);
    // Plain text was read already.
    assert_eq!(find(Answer::Maybe, "in the document"), [3]);
    assert_eq!(find(Answer::Maybe, "nowhere"), [0u32; 0]);
    assert_eq!(inspected.get(), 2);
    assert!(inspected.get() < INSPECTIONS_MAX);
}

/// Messages whose reads have a fault.
struct Faulty<'a> {
    server: &'a Server,
    fault: Fault,
}

#[derive(Clone, Copy)]
enum Fault {
    /// Pieces of one byte.
    Short,
    /// The message ends at an offset.
    Ends(u64),
    /// A read from an offset on fails.
    Fails(u64),
}

struct FaultyReader<R>(R, Fault);

impl<R: Reader> Reader for FaultyReader<R> {
    fn piece(&mut self, offset: u64) -> Result<&[u8], Error> {
        match self.1 {
            Fault::Fails(from) if offset >= from => return Err(Error::Moved),
            Fault::Ends(end) if offset >= end => return Ok(&[]),
            _ => {}
        }
        let piece = self.0.piece(offset)?;
        let most = match self.1 {
            Fault::Short => 1,
            Fault::Ends(end) | Fault::Fails(end) => usize::try_from(end - offset).unwrap(),
        };
        Ok(&piece[..piece.len().min(most)])
    }
}

impl Messages for Faulty<'_> {
    type Reader<'a>
        = FaultyReader<<Server as Messages>::Reader<'a>>
    where
        Self: 'a;

    fn reader(&self, message: u64) -> Option<Self::Reader<'_>> {
        Some(FaultyReader(self.server.reader(message)?, self.fault))
    }

    fn digest(&self, _: u64) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }
}

#[test]
fn short_reads_find_the_same_and_damage_ends_a_message() {
    let server = server(&MAILS);
    let find = |fault, text: &str| found(&Faulty { server: &server, fault }, &server, NoIndex, &Key::Text(text.into()));
    for (text, wanted) in [("far away", &[1][..]), ("hidden words", &[2]), ("grüße", &[1]), ("Mia <mia@", &[3])] {
        assert_eq!(find(Fault::Short, text), wanted, "{text}");
    }
    let short = Faulty { server: &server, fault: Fault::Short };
    assert_eq!(found(&short, &server, NoIndex, &Key::Body("far away".into())), [1], "behind the header");
    assert_eq!(find(Fault::Fails(60), "grüße"), [1], "before the damage");
    assert_eq!(find(Fault::Fails(60), "far away"), [0u32; 0], "behind it");
}

fn message<'a, M: Messages>(messages: &'a M, server: &Server, uid: u32) -> fetch::Message<'a, M> {
    let (state, view) = (server.state(), view(server));
    let number = view.mailbox.entry(uid).unwrap().message.get();
    fetch::Message::new(messages, &state, number)
}

fn section(path: &[u32], share: Share, range: Option<(u64, Option<u64>)>) -> Section {
    Section { path: path.into(), share, range }
}

/// The bytes of a reply.
fn bytes<M: Messages>(message: &mut fetch::Message<'_, M>, reply: Reply) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    match reply {
        Reply::Missing => {}
        Reply::Bytes(all) => bytes = all,
        Reply::Run(mut at, to) => {
            let mut chunk = [0; 7];
            while at < to {
                let most = usize::try_from(to - at).unwrap().min(chunk.len());
                let length = message.read(at, &mut chunk[..most])?;
                if length == 0 {
                    return Err(Unread::Short);
                }
                bytes.extend_from_slice(&chunk[..length]);
                at += length as u64;
            }
        }
        Reply::Decoded(run) => {
            let mut running = Running::new(&run);
            while let piece @ [_, ..] = running.next(message)?.as_slice() {
                bytes.extend_from_slice(piece);
            }
        }
    }
    Ok(bytes)
}

#[test]
fn sections_are_runs_fields_and_decoded_parts() {
    let server = server(&MAILS);
    let mut mail = message(&server, &server, 3);
    let at = |section: &Section, mail: &mut fetch::Message<'_, Server>| mail.section(section).unwrap();
    assert_eq!(at(&section(&[], Share::All, None), &mut mail), Reply::Run(0, mail.size()));
    assert_eq!(at(&section(&[3], Share::All, None), &mut mail), Reply::Missing);
    assert_eq!(at(&section(&[1], Share::Header, None), &mut mail), Reply::Missing);
    let names = |is_not| Share::Fields { names: vec![b"subject".to_vec()], is_not };
    assert_eq!(at(&section(&[], names(false), None), &mut mail), Reply::Bytes(b"Subject: b\r\n\r\n".to_vec()));
    assert_eq!(at(&section(&[], names(true), Some((0, Some(5)))), &mut mail), Reply::Bytes(b"From:".to_vec()));
    let reply = at(&section(&[1], Share::All, Some((1, Some(9)))), &mut mail);
    assert_eq!(bytes(&mut mail, reply).unwrap(), b"ne");
    let reply = mail.decoded(&[2], Some((1, None))).unwrap();
    assert_eq!(bytes(&mut mail, reply).unwrap(), b"=b");
    assert_eq!(mail.decoded_size(&[2]).unwrap(), Some(3));
    assert_eq!(mail.decoded_size(&[9]).unwrap(), None);
    assert_eq!(message(&server, &server, 1).preview().unwrap(), "far away");
}

#[test]
fn a_digest_is_made_again_where_none_is_stored_and_faults_are_errors() {
    let server = server(&MAILS);
    let stored = message(&server, &server, 3).text(Text::BodyStructure).unwrap();
    let short = Faulty { server: &server, fault: Fault::Short };
    assert_eq!(message(&short, &server, 3).text(Text::BodyStructure).unwrap(), stored);
    let broken = Faulty { server: &server, fault: Fault::Fails(20) };
    assert!(matches!(message(&broken, &server, 3).text(Text::Envelope), Err(Unread::Store(Error::Moved))));
    let mut whole = message(&server, &server, 2);
    let reply = whole.decoded(&[1], None).unwrap();
    assert_eq!(bytes(&mut whole, reply.clone()).unwrap(), b"hidden words");
    let ends = Faulty { server: &server, fault: Fault::Ends(100) };
    assert!(matches!(bytes(&mut message(&ends, &server, 2), reply), Err(Unread::Short)));
    let state = server.state();
    assert!(matches!(fetch::Message::new(&server, &state, 77).preview(), Ok(text) if text.is_empty()));
    assert!(matches!(fetch::Message::new(&server, &state, 77).text(Text::Body), Err(Unread::Store(_))));
}

#[test]
fn messages_are_put_in_order_and_in_threads() {
    let server = server(&MAILS);
    let (view, all) = (view(&server), Key::And(Vec::new()));
    let by = |by, reverse| vec![Criterion { by, reverse }];
    for (criteria, wanted) in
        [(by(By::Subject, false), [2, 3, 1]), (by(By::From, true), [1, 3, 2]), (by(By::Arrival, false), [1, 2, 3])]
    {
        let mut lines = Vec::new();
        let mut finder = Finder::new(&server, NoIndex, server.state(), &view, &all, 0);
        finder.go_on(|| false, |message| lines.push(sort::Line::new(message, &criteria)));
        assert_eq!(sort::in_order(lines, &criteria).1, wanted);
    }
    let mut forest = Forest::default();
    let mut finder = Finder::new(&server, NoIndex, server.state(), &view, &all, 0);
    finder.go_on(|| false, |message| forest.place(Post::new(message, message.uid(), true)));
    use Piece::{Close, Message, Open};
    let wanted = [Open, Message(2), Message(3), Close, Open, Message(1), Close];
    assert_eq!(forest.threads().collect::<Vec<_>>(), wanted);
}

#[test]
fn a_view_follows_commits_and_stays_when_one_fails() {
    let mut server = server(&MAILS);
    let mut view = view(&server);
    let number = view.number;
    let inbox = |server: &Server| server.state().mailbox(number).unwrap().clone();
    assert!(view.follow(&inbox(&server), true).is_none(), "nothing is other");
    let uids = |uid: u32| -> Uids { [uid].into_iter().collect() };

    server.device_mut().faults = Faults { flushes_until_failure: Some(0), ..Faults::default() };
    let failed = server.transact(move |transaction| transaction.expunge(number, &uids(1)).map(drop));
    assert!(failed.is_err());
    assert!(view.follow(&inbox(&server), true).is_none(), "a commit that failed is in no snapshot");
    assert_eq!(found(&server, &server, NoIndex, &Key::Body("far".into())), [1]);

    let mut server = self::server(&MAILS);
    let mut view = self::view(&server);
    server
        .transact(move |transaction| {
            transaction.store(number, &uids(2), Change::Add, (Flags::SEEN, &["$x"]), u64::MAX)?;
            transaction.expunge(number, &uids(1)).map(drop)
        })
        .unwrap();
    deliver(&mut server, "Subject: new\n\n");
    let step = view.follow(&inbox(&server), false).unwrap();
    assert!(step.has_other_keywords && step.has_new && step.gone.is_empty());
    assert_eq!(view.uids, [1, 2, 3, 4], "a number stays until it may go");
    let mut shown = Vec::new();
    let has_more = view.flags_changed(&mut step.changes.unwrap(), &[], false, |row, is_silent| {
        shown.push((row.number, row.uid, is_silent));
        ControlFlow::Continue(())
    });
    assert_eq!((shown, has_more), (vec![(2, 2, false)], false));
    let step = view.follow(&inbox(&server), true).unwrap();
    assert_eq!((step.gone, view.uids.as_slice()), (vec![(1, 1)], &[2, 3, 4][..]));
    assert_eq!(view.vanished_since(0, &Uids::all()).runs().collect::<Vec<_>>(), [(1, 1)]);
    assert_eq!(view.uids_numbered(&[(1, 1), (3, 3), (1, 1)]), Some(vec![2, 4]));
    assert_eq!(view.uids_numbered(&[(3, 4)]), None);
    assert_eq!(view.uids_within([(3, u32::MAX)].into_iter()), [3, 4]);
}

#[test]
fn mailboxes_are_made_renamed_and_listed() {
    let mut server = server(&[]);
    let make = |server: &mut Server, path: &'static [u8]| {
        server.transact(move |transaction| name::create(transaction, 1, path, SpecialUse::default()))
    };
    let work = make(&mut server, b"Work/Old").unwrap();
    assert!(matches!(make(&mut server, b"Work/Old"), Err(Error::Refused(Refused::Exists))));
    let taken = server.transact(move |transaction| name::rename(transaction, work, b"INBOX"));
    assert!(matches!(taken, Err(Error::Refused(Refused::Exists))));
    server.transact(move |transaction| name::rename(transaction, work, b"Work/New")).unwrap();
    let state = server.state();
    let mut listing = Listing::new(&state, 1, &[], &[b"W%".to_vec(), b"in*".to_vec()]);
    while !listing.go_on(|| true) {}
    let told: Vec<_> = listing.found().into_iter().map(|(name, found)| (name, found.mailbox.is_some())).collect();
    assert_eq!(told, [(&b"INBOX"[..], true), (b"Work", false)]);
}
