//! The whole check of a mail.
//!
//! The order of calls: [`Check::new`] when the envelope's sender is known; [`Check::feed`] and [`Check::finish`] as the mail
//! comes; and whenever it suits, [`Check::ask`] until there is no more, and [`Check::answer`] as answers come. Once the mail
//! and the answers are complete there are [`Check::results`]. A host whose time is up calls [`Check::give_up`].

use core::net::IpAddr;

use flow::{Answer, Ask};

use crate::arc::{self, Newest};
use crate::author::Author;
use crate::dkim::{self, Judge, Signature};
use crate::header::Header;
use crate::inquiry::{self, Inquiry};
use crate::message::{self, LineEnds, Message, Progress};
use crate::results::Results;
use crate::{dmarc, report, spf};

/// All bounds of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Limits of SPF's questions and answers.
    pub senders: inquiry::Limits,
    /// Limits of all other questions and answers.
    pub content: inquiry::Limits,
    /// Limits of the header.
    pub message: message::Limits,
    /// Limits of signatures.
    pub dkim: dkim::Limits,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            senders: inquiry::Limits::SENDERS,
            content: inquiry::Limits::CONTENT,
            message: message::Limits::default(),
            dkim: dkim::Limits::default(),
        }
    }
}

/// The number of the first question of keys and policies; those of SPF begin with 0.
const CONTENT_ID: u32 = 1 << 16;

/// Facts about a mail before its content.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Address of the client; without it SPF is not checked.
    pub client: Option<IpAddr>,
    /// HELO name of the client.
    pub helo: Box<str>,
    /// The envelope's sender; empty for the null sender.
    pub sender: Box<str>,
    /// Our name, as `Authentication-Results` of ours have it.
    pub receiver: Box<str>,
    /// Seconds since 1970.
    pub now: u64,
    /// Line ends of the mail.
    pub ends: LineEnds,
}

/// A check under way.
#[derive(Debug)]
pub struct Check {
    context: Context,
    limits: Limits,
    /// Questions of SPF. The client decides their number, so they have their own budget.
    senders: Inquiry,
    /// All other questions.
    inquiry: Inquiry,
    message: Message,
    content: Content,
    /// Something has come in since the parts were asked last.
    is_stirred: bool,
    helo: Option<spf::Report>,
    mailfrom: Option<spf::Report>,
    results: Option<Results>,
}

/// Progress of the mail.
#[derive(Debug)]
enum Content {
    /// The header is not complete.
    Header,
    /// The body is not complete.
    Body(Claims),
    /// All of it is.
    Whole(Claims),
}

/// Claims of a header, and their results.
#[derive(Debug, Default)]
struct Claims {
    header: Header,
    header_cut: bool,
    signatures: Vec<Claim>,
    signatures_left_out: usize,
    chain: Option<Newest>,
    arc: Option<arc::Report>,
}

#[derive(Debug)]
enum Claim {
    Open(Box<Signature>),
    Settled(Box<dkim::Report>),
}

impl Check {
    /// Begins with the envelope.
    pub fn new(context: Context, limits: Limits) -> Check {
        let message = Message::new(context.ends, limits.message);
        let senders = Inquiry::new(limits.senders, 0);
        let inquiry = Inquiry::new(limits.content, CONTENT_ID);
        let unchecked =
            context.client.is_none().then(|| spf::Report { reason: "no client".into(), ..Default::default() });
        Check {
            context,
            limits,
            senders,
            inquiry,
            message,
            content: Content::Header,
            is_stirred: true,
            helo: unchecked.clone(),
            mailfrom: unchecked,
            results: None,
        }
    }

    /// Takes the next bytes of the mail.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (taken, progress) = self.message.feed(rest);
            self.progress(progress);
            rest = rest.get(taken..).unwrap_or_default();
        }
    }

    /// The mail is complete.
    pub fn finish(&mut self) {
        let progress = self.message.finish();
        if let Progress::Header(_) = progress {
            self.progress(progress);
            self.message.finish();
        }
        if let Content::Body(claims) = &mut self.content {
            self.content = Content::Whole(core::mem::take(claims));
            self.is_stirred = true;
        }
    }

    /// The next question, if there is one now.
    pub fn ask(&mut self) -> Option<Ask> {
        if self.is_stirred {
            self.is_stirred = false;
            self.advance();
        }
        self.inquiry.ask().or_else(|| self.senders.ask())
    }

    /// Takes an answer.
    pub fn answer(&mut self, answer: Answer) {
        match answer.id < CONTENT_ID {
            true => self.senders.answer(answer),
            false => self.inquiry.answer(answer),
        }
        self.is_stirred = true;
    }

    /// Ends the wait: missing answers are temporary errors.
    pub fn give_up(&mut self) {
        self.senders.give_up();
        self.inquiry.give_up();
        self.is_stirred = true;
    }

    /// The results, once the mail is complete and no question is open.
    pub fn results(&mut self) -> Option<&Results> {
        if self.is_stirred {
            self.is_stirred = false;
            self.advance();
        }
        self.results.as_ref()
    }

    /// How many questions have been asked.
    pub fn questions(&self) -> usize {
        self.senders.questions() + self.inquiry.questions()
    }

    fn progress(&mut self, progress: Progress) {
        let Progress::Header(header) = progress else { return };
        let claims = Claims::read(header, &self.limits.dkim, &mut self.inquiry);
        let signatures = claims.signatures.iter().filter_map(|claim| match claim {
            Claim::Open(signature) => Some(signature.wanted()),
            Claim::Settled(_) => None,
        });
        self.message.begin_body(signatures.chain(claims.chain.as_ref().map(Newest::wanted)));
        self.content = Content::Body(claims);
    }

    /// Asks each part that has no result for one.
    fn advance(&mut self) {
        if self.results.is_some() {
            return;
        }
        let (Some(helo), Some(mailfrom)) = self.senders() else {
            // Signatures can be verified meanwhile.
            if let (Content::Whole(claims), Some(body)) = (&mut self.content, self.message.hashes()) {
                claims.settle(body, self.context.now, self.limits.dkim, &mut self.inquiry);
            }
            return;
        };
        let (Content::Whole(claims), Some(body)) = (&mut self.content, self.message.hashes()) else { return };
        let Some((dkim, arc)) = claims.settle(body, self.context.now, self.limits.dkim, &mut self.inquiry) else {
            return;
        };
        let author = match claims.header_cut {
            true => Author::Unclear("the header is too long"),
            false => Author::of(&claims.header),
        };
        let identifiers = dmarc::Identifiers { spf: &mailfrom, dkim: &dkim };
        let Ok(dmarc) = dmarc::check(&author, identifiers, &mut self.inquiry) else { return };
        let told = claims.header.values("authentication-results").enumerate();
        let forged =
            told.filter(|(_, value)| report::is_forged(value, &self.context.receiver)).map(|(at, _)| at).collect();
        let Claims { signatures_left_out, header_cut, .. } = *claims;
        self.results = Some(Results { helo, mailfrom, dkim, signatures_left_out, arc, dmarc, forged, header_cut });
    }

    /// SPF for both names, as far as it is known.
    fn senders(&mut self) -> (Option<spf::Report>, Option<spf::Report>) {
        let Context { client, helo, sender, receiver, now, .. } = &self.context;
        if let Some(client) = *client {
            let query = spf::Query { client, helo, sender, receiver, now: *now };
            let own = spf::Query { sender: "", ..query };
            if self.helo.is_none() {
                self.helo = spf::check(&own, &mut self.senders).ok();
            }
            if self.mailfrom.is_none() {
                self.mailfrom = match sender.is_empty() {
                    true => self.helo.clone(),
                    false => spf::check(&query, &mut self.senders).ok(),
                };
            }
        }
        (self.helo.clone(), self.mailfrom.clone())
    }
}

impl Claims {
    /// Reads a header, and asks the questions that it needs.
    fn read(header: Option<Header>, limits: &dkim::Limits, inquiry: &mut Inquiry) -> Claims {
        let header_cut = header.is_none();
        let header = header.unwrap_or_default();
        let fields = header.named("dkim-signature");
        let signatures: Vec<Claim> = fields
            .iter()
            .take(limits.signatures_max)
            .map(|&index| match Signature::parse(&header, index) {
                Ok(signature) => Claim::Open(Box::new(signature)),
                Err(report) => Claim::Settled(report),
            })
            .collect();
        let signatures_left_out = fields.len() - signatures.len();
        let (chain, arc) = match Newest::read(&header) {
            Ok(Some(chain)) => (Some(chain), None),
            Ok(None) => (None, Some(arc::Report::default())),
            Err(reason) => {
                let reason = reason.into();
                (None, Some(arc::Report { outcome: arc::Outcome::Fail, reason, ..arc::Report::default() }))
            }
        };
        let claims = Claims { header, header_cut, signatures, signatures_left_out, chain, arc };
        claims.ask(inquiry);
        claims
    }

    fn ask(&self, inquiry: &mut Inquiry) {
        for claim in &self.signatures {
            if let Claim::Open(signature) = claim {
                signature.ask(inquiry);
            }
        }
        if let Some(chain) = &self.chain {
            chain.ask(inquiry);
        }
        if let Some(domain) = Author::of(&self.header).domain() {
            let _ = dmarc::walk::record_at(domain, inquiry);
        }
    }

    /// Verifies everything whose answers are present. Returns the results once they are complete.
    fn settle(
        &mut self,
        body: &crate::body::BodyHashes,
        now: u64,
        limits: dkim::Limits,
        inquiry: &mut Inquiry,
    ) -> Option<(Vec<dkim::Report>, arc::Report)> {
        let judge = Judge { header: &self.header, body, now, limits };
        for claim in &mut self.signatures {
            if let Claim::Open(signature) = claim
                && let Ok(report) = signature.verify(&judge, inquiry)
            {
                *claim = Claim::Settled(Box::new(report));
            }
        }
        if let (None, Some(chain)) = (&self.arc, &self.chain) {
            self.arc = chain.verify(&judge, inquiry).ok();
        }
        let reports = self.signatures.iter().map(|claim| match claim {
            Claim::Open(_) => None,
            Claim::Settled(report) => Some((**report).clone()),
        });
        Some((reports.collect::<Option<_>>()?, self.arc.clone()?))
    }
}
