//! SMTP and LMTP: mails that were acknowledged are there, however the two halves meet.

use proptest::prelude::*;
use proto::smtp::{
    Asked, Client, ClientEvent, Config, Extensions, MailFrom, Protocol, RcptTo, Reply, Server, ServerEvent,
};
use stream::Window;

use super::{Host, Link, Meeting, Random, meet};

/// How long the client waits for the server.
const PATIENCE_MS: u64 = 600_000;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mail {
    recipients: Vec<String>,
    content: Vec<u8>,
}

/// Some mails. Of recipients with a "no" in them none is taken, of mails that begin with a tab none either.
fn mails(seed: u64) -> Vec<Mail> {
    let mut random = Random(seed);
    let mail = |random: &mut Random| {
        let recipients = 1 + random.below(3);
        let recipients =
            (0..recipients).map(|at| format!("{}{at}@there", if random.below(5) == 0 { "no" } else { "to" }));
        let recipients = recipients.collect();
        let mark: &[u8] = if random.below(5) == 0 { b"\t" } else { b"" };
        Mail { recipients, content: [mark, &b"\r\n"[..], &random.message()[..]].concat() }
    };
    (0..1 + random.below(4)).map(|_| mail(&mut random)).collect()
}

fn is_known(recipient: &str) -> bool {
    !recipient.starts_with("no")
}

/// Mails that should be delivered if all goes well.
fn deliverable(mails: &[Mail]) -> Vec<Mail> {
    let known = |mail: &Mail| Mail {
        recipients: mail.recipients.iter().filter(|recipient| is_known(recipient)).cloned().collect(),
        content: mail.content.clone(),
    };
    mails.iter().map(known).filter(|mail| !mail.recipients.is_empty() && !mail.content.starts_with(b"\t")).collect()
}

/// Protocol and extensions of a session.
#[derive(Debug, Clone, Copy)]
struct Manner {
    protocol: Protocol,
    pipelining: bool,
    chunking: bool,
}

/// The client and its mails.
struct Sender {
    client: Client,
    manner: Manner,
    mails: Vec<Mail>,
    steps: Vec<Step>,
    /// Mail in progress, and how many of its recipients were accepted.
    mail: usize,
    taken: u32,
    /// Replies to the end of the mail in progress, and how many of them were positive.
    done: (u32, u32),
    acknowledged: Vec<Mail>,
    /// Mails that are decided, one way or the other.
    decided: usize,
    heard: u64,
    over: bool,
}

/// Commands to send; the last comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Mail,
    Recipient(usize),
    Data,
    Content,
    Quit,
}

impl Sender {
    fn new(manner: Manner, mails: &[Mail]) -> Sender {
        Sender {
            client: Client::new("client.test", manner.protocol),
            manner,
            mails: mails.to_vec(),
            steps: Vec::new(),
            mail: 0,
            taken: 0,
            done: (0, 0),
            acknowledged: Vec::new(),
            decided: 0,
            heard: 0,
            over: false,
        }
    }

    fn next_mail(&mut self) {
        self.mail = self.decided;
        (self.taken, self.done) = (0, (0, 0));
        self.steps = match self.mails.get(self.mail) {
            None => vec![Step::Quit],
            Some(mail) => {
                let mut steps = vec![Step::Content];
                if !self.manner.chunking {
                    steps.push(Step::Data);
                }
                steps.extend((0..mail.recipients.len()).rev().map(Step::Recipient));
                steps.push(Step::Mail);
                steps
            }
        };
    }

    /// Says what can be said now.
    fn go(&mut self) {
        while let Some(&step) = self.steps.last() {
            let waits = self.client.is_waiting() && (!self.manner.pipelining || step == Step::Content);
            if waits {
                return;
            }
            self.steps.pop();
            match step {
                Step::Mail => self.client.mail(&MailFrom::default()).expect("nothing special"),
                Step::Recipient(at) => {
                    let path = self.mails[self.mail].recipients[at].parse().expect("a path");
                    self.client.recipient(&RcptTo { path, ..RcptTo::default() }).expect("nothing special");
                }
                Step::Data => self.client.data(),
                Step::Content => self.content(),
                Step::Quit => self.client.quit(),
            }
        }
    }

    fn content(&mut self) {
        let content = self.mails[self.mail].content.clone();
        if self.taken == 0 {
            // DATA has been refused by then.
            return self.client.reset();
        }
        let middle = content.len() / 2;
        if self.manner.chunking {
            self.client.chunk(&content[..middle], None);
            self.client.chunk(&content[middle..], Some(self.taken));
        } else {
            self.client.content(&content[..middle]);
            self.client.content(&content[middle..]);
            self.client.end(self.taken);
        }
    }

    fn reply(&mut self, asked: Asked, reply: &Reply) {
        match asked {
            Asked::Greeting => self.client.hello(),
            Asked::Hello | Asked::Reset => {
                self.decided += usize::from(asked == Asked::Reset);
                self.next_mail();
            }
            Asked::Recipient => self.taken += u32::from(reply.is_positive()),
            Asked::Done => {
                self.done = (self.done.0 + 1, self.done.1 + u32::from(reply.is_positive()));
                let replies = if self.manner.protocol == Protocol::Lmtp { self.taken } else { 1 };
                if self.done.0 == replies {
                    if self.done.1 == replies {
                        self.acknowledged.extend(deliverable(&self.mails[self.mail..=self.mail]));
                    }
                    self.decided += 1;
                    self.next_mail();
                }
            }
            Asked::Quit => self.over = true,
            _ => {}
        }
        self.go();
    }
}

impl Host for Sender {
    fn hear(&mut self, now: u64, bytes: &[u8]) {
        self.heard = now;
        let mut rest = bytes;
        while !rest.is_empty() && !self.over {
            let (taken, event) = self.client.step(rest);
            rest = &rest[taken..];
            match event {
                ClientEvent::Idle => assert!(rest.is_empty(), "bytes are left"),
                ClientEvent::Reply(_, reply) if reply.code == 421 => self.over = true,
                ClientEvent::Reply(asked, reply) => self.reply(asked, &reply),
                ClientEvent::Broken("the hop closes the session") => self.over = true,
                ClientEvent::Broken(reason) => panic!("{reason}"),
            }
        }
    }

    fn say(&mut self) -> Vec<u8> {
        let said = self.client.outbox().to_vec();
        self.client.sent(said.len());
        said
    }

    fn deadline(&self) -> u64 {
        self.heard + PATIENCE_MS
    }

    fn timeout(&mut self, _: u64) {
        self.over = true;
    }

    fn lose(&mut self) {
        self.over = true;
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// The server and what it has stored.
struct Receiver {
    server: Server,
    protocol: Protocol,
    under_way: Mail,
    stored: Vec<Mail>,
    over: bool,
}

impl Receiver {
    fn new(manner: Manner) -> Receiver {
        let extensions =
            Extensions { pipelining: manner.pipelining, chunking: manner.chunking, ..Extensions::default() };
        let config = Config { protocol: manner.protocol, extensions, ..Config::default() };
        let under_way = Mail { recipients: Vec::new(), content: Vec::new() };
        Receiver {
            server: Server::new(config, 0),
            protocol: manner.protocol,
            under_way,
            stored: Vec::new(),
            over: false,
        }
    }

    fn take(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Mail(_) => {
                self.under_way = Mail { recipients: Vec::new(), content: Vec::new() };
                self.server.reply(&Reply::new(250, (2, 1, 0), "Ok"));
            }
            ServerEvent::Recipient(rcpt) if is_known(rcpt.path.as_str()) => {
                self.under_way.recipients.push(rcpt.path.as_str().into());
                self.server.reply(&Reply::new(250, (2, 1, 5), "Ok"));
            }
            ServerEvent::Recipient(_) => self.server.reply(&Reply::new(550, (5, 1, 1), "Nobody")),
            ServerEvent::Data => self.server.begin(),
            ServerEvent::End { .. } => {
                let replies = if self.protocol == Protocol::Lmtp { self.server.recipients() } else { 1 };
                let reply = match self.under_way.content.starts_with(b"\t") {
                    true => Reply::new(550, (5, 7, 1), "No"),
                    false => {
                        self.stored.push(self.under_way.clone());
                        Reply::new(250, (2, 0, 0), "Taken")
                    }
                };
                (0..replies).for_each(|_| self.server.reply(&reply));
            }
            ServerEvent::Closed => self.over = true,
            _ => {}
        }
    }
}

impl Host for Receiver {
    fn hear(&mut self, now: u64, bytes: &[u8]) {
        let mut rest = bytes;
        while !self.over {
            let mut window = Window::with_capacity(16);
            let (taken, event) = self.server.step(now, rest, &mut window);
            rest = &rest[taken..];
            self.under_way.content.extend_from_slice(window.filled());
            if event == ServerEvent::Idle && taken == 0 {
                assert!(rest.is_empty(), "bytes are left");
                return;
            }
            self.take(event);
        }
    }

    fn say(&mut self) -> Vec<u8> {
        let said = self.server.outbox().to_vec();
        self.server.sent(said.len());
        said
    }

    fn deadline(&self) -> u64 {
        self.server.deadline()
    }

    fn timeout(&mut self, _: u64) {
        self.server.timeout();
        self.over = true;
    }

    fn lose(&mut self) {
        self.over = true;
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// One session: how it went, what was acknowledged, what is stored, how many mails were decided.
fn session(manner: Manner, mails: &[Mail], link: Link) -> (Meeting, Vec<Mail>, Vec<Mail>, usize) {
    let (mut sender, mut receiver) = (Sender::new(manner, mails), Receiver::new(manner));
    let meeting = meet(&mut sender, &mut receiver, link);
    (meeting, sender.acknowledged, receiver.stored, sender.decided)
}

fn manner() -> impl Strategy<Value = Manner> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(lmtp, pipelining, chunking)| Manner {
        protocol: if lmtp { Protocol::Lmtp } else { Protocol::Smtp },
        pipelining,
        chunking,
    })
}

proptest! {
    #[test]
    fn what_is_sent_arrives_however_it_is_cut_and_delayed(
        manner in manner(), seed: u64, piece_bytes_max in 1..200usize, latency_ms_max in 0..2_000u64,
    ) {
        let mails = mails(seed);
        let (meeting, acknowledged, stored, decided) = session(manner, &mails, Link::PLAIN);
        prop_assert_eq!(&stored, &deliverable(&mails));
        prop_assert_eq!(&acknowledged, &stored);
        prop_assert_eq!(decided, mails.len());
        let link = Link { seed, piece_bytes_max, latency_ms_max, ..Link::PLAIN };
        let other = session(manner, &mails, link);
        prop_assert_eq!((other.0.bytes, other.1, other.2, other.3), (meeting.bytes, acknowledged, stored, decided));
    }

    #[test]
    fn a_connection_that_is_lost_costs_nothing_that_was_acknowledged(
        manner in manner(), seed: u64, piece_bytes_max in 1..60usize, is_silent: bool, lost in 0..3_000usize,
    ) {
        // The client comes again with what was not decided, as a queue does.
        let all = mails(seed);
        let (mut left, mut stored, mut acknowledged, mut sessions) = (&all[..], Vec::new(), Vec::new(), 0);
        while sessions == 0 || !left.is_empty() {
            prop_assert!(sessions < 50, "it gets nowhere");
            // It is lost later and later, so that it gets on.
            let lost_after = Some(lost + sessions * 2_000);
            let link = Link { seed: seed ^ sessions as u64, piece_bytes_max, latency_ms_max: 90, lost_after, is_silent };
            let (meeting, said_yes, there, decided) = session(manner, left, link);
            prop_assert!(there.starts_with(&said_yes), "acknowledged and not there");
            prop_assert!(there.len() <= said_yes.len() + 1, "more than one in doubt");
            prop_assert!(meeting.ended <= 2 * PATIENCE_MS, "a deadline is missed");
            stored.extend(there);
            acknowledged.extend(said_yes);
            left = &left[decided..];
            sessions += 1;
        }
        let wanted = deliverable(&all);
        prop_assert_eq!(&acknowledged, &wanted);
        prop_assert!(wanted.iter().all(|mail| stored.contains(mail)));
        prop_assert!(stored.len() < wanted.len() + sessions, "more than one twice a session");
    }
}

#[test]
fn wherever_the_connection_is_lost_what_was_acknowledged_is_there() {
    for (protocol, pipelining, chunking) in
        [(Protocol::Smtp, false, false), (Protocol::Smtp, true, true), (Protocol::Lmtp, true, false)]
    {
        let (manner, mails) = (Manner { protocol, pipelining, chunking }, mails(7));
        let (whole, ..) = session(manner, &mails, Link::PLAIN);
        for lost in 0..whole.bytes {
            let link = Link { lost_after: Some(lost), ..Link::PLAIN };
            let (_, acknowledged, stored, _) = session(manner, &mails, link);
            assert!(stored.starts_with(&acknowledged) && stored.len() <= acknowledged.len() + 1, "{lost}");
        }
    }
}

#[test]
fn a_client_that_falls_silent_is_let_go_at_its_deadline() {
    let (manner, mails) = (Manner { protocol: Protocol::Smtp, pipelining: false, chunking: false }, mails(7));
    let (whole, ..) = session(manner, &mails, Link::PLAIN);
    let config = Config::default();
    for lost in 0..whole.bytes {
        let link = Link { lost_after: Some(lost), is_silent: true, ..Link::PLAIN };
        let mut receiver = Receiver::new(manner);
        meet(&mut Sender::new(manner, &mails), &mut receiver, link);
        assert!(receiver.server.is_closed(), "{lost}");
        assert!(receiver.deadline() <= config.command_ms_max.max(config.content_ms_max), "{lost}");
    }
}
