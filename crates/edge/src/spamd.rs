//! The spamd door: a client hands over a mail and asks whether it is spam, or for the mail with its fields.
//!
//! Only the score counts here: signatures are matched as everywhere, and nothing is refused for them. A mail that is larger than is
//! scored is refused, as unavailable; spamc then hands it on as it came.
//!
//! Bounds: a mail that is wanted back is held whole, up to `size_max`; what is compressed is undone as it comes, up to the same.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flate2::{Decompress, FlushDecompress, Status};
use flow::{Action, Flow, Protocol, Score, Scoring, State, Terms, Unfinished, Wants};
use proto::spamd::{Answer, Refusal, Request, Server, ServerEvent, Verb, Verdict};
use tokio::time::timeout;

use crate::door::{Door, Ticket};
use crate::message::journal;
use crate::message::passage::{Asked, Passage};
use crate::message::spam;
use crate::message::trace::{self, new_id};
use crate::metrics::SessionOpen;
use crate::net::stream::Stream;
use crate::net::wire::Wire;
use crate::settings::Spam;
use crate::shared::Shared;

/// How long a client may say nothing.
const SILENCE_WAIT: Duration = Duration::from_secs(300);

/// How much is read of what is refused, and how long is waited for more of it.
const DRAINED_BYTES_MAX: usize = 64 << 20;
const DRAIN_WAIT: Duration = Duration::from_secs(1);

/// Bytes that are undone at a time.
const PIECE_BYTES: usize = 16 << 10;

/// Runs a connection from its first byte to its last.
pub async fn run(shared: Rc<Shared>, door: Arc<Door>, peer: SocketAddr, ticket: Ticket, stream: Stream) {
    let _open = SessionOpen::new(&shared.runtime.borrow().metrics);
    let session = Session { shared, door, peer, wire: Wire::new(stream), server: Server::default(), mail: None };
    if let Err(error) = session.converse().await {
        tracing::debug!(%peer, %error, "connection aborted");
    }
    drop(ticket);
}

struct Session {
    shared: Rc<Shared>,
    door: Arc<Door>,
    peer: SocketAddr,
    wire: Wire,
    server: Server,
    mail: Option<Box<Mail>>,
}

/// A mail that comes.
struct Mail {
    request: Request,
    spam: Spam,
    passage: Passage,
    inflater: Option<Decompress>,
}

impl Session {
    async fn converse(mut self) -> io::Result<()> {
        loop {
            let (taken, event) = self.server.step(self.wire.input());
            let event = match event {
                ServerEvent::Idle if taken == 0 && !timeout(SILENCE_WAIT, self.wire.read()).await?? => {
                    self.server.finish()
                }
                event => event,
            };
            match event {
                ServerEvent::Idle => {}
                ServerEvent::Asked(request) => self.begin(request),
                ServerEvent::Content => self.take(taken).await,
                ServerEvent::End => self.end().await,
                ServerEvent::Closed => {
                    self.wire.take(taken);
                    if self.server.is_refused() {
                        self.drain().await;
                    }
                    self.wire.write(self.server.outbox()).await?;
                    self.wire.close().await;
                    return Ok(());
                }
            }
            self.wire.take(taken);
        }
    }

    /// Reads on until the client has sent all: what is answered before might be lost with the connection.
    async fn drain(&mut self) {
        let mut bytes = 0;
        while bytes < DRAINED_BYTES_MAX && matches!(timeout(DRAIN_WAIT, self.wire.read()).await, Ok(Ok(true))) {
            let count = self.wire.input().len();
            self.wire.take(count);
            bytes += count;
        }
    }

    fn refuse(&mut self, why: &str) {
        self.server.refuse(&Refusal::Unavailable(why.into()));
    }

    fn begin(&mut self, request: Request) {
        let runtime = self.shared.runtime.borrow().clone();
        let ruling = self.door.rulings.under(None);
        let Some(spam) = ruling.spam.clone() else { return self.refuse("mails are not scored here") };
        let most = spam.scoring.bytes_max;
        if request.length.is_some_and(|length| length > most) {
            return self.refuse("the message is too large");
        }
        let gives_back = matches!(request.verb, Verb::Process | Verb::Headers);
        let has_text = matches!(request.verb, Verb::Report | Verb::ReportIfSpam);
        let asked = Asked {
            flow: Flow { protocol: Protocol::Spamd, client: Some(self.peer.ip()), ..Flow::default() },
            terms: Terms { window_bytes: usize::try_from(most).unwrap_or(usize::MAX), ..Terms::default() },
            wants: Wants { forged: spam::FORGED.into(), ..Wants::default() },
            scoring: Some(Scoring { text: has_text, ..spam.scoring.clone() }),
            heaviest: Action::Reject,
        };
        let mut passage = Passage::mail(&runtime, &new_id(), ruling, asked);
        passage.forgo_copy();
        if !gives_back {
            passage.hold().watch();
        }
        let inflater = request.is_compressed.then(|| Decompress::new(true));
        self.mail = Some(Box::new(Mail { request, spam, passage, inflater }));
    }

    async fn take(&mut self, count: usize) {
        let Some(mail) = &mut self.mail else { return };
        let taken = match &mut mail.inflater {
            None => mail.take(&self.wire.input()[..count]).await,
            Some(_) => mail.inflate(&self.wire.input()[..count]).await,
        };
        if let Err(refusal) = taken {
            self.server.refuse(&refusal);
            self.mail = None;
        }
    }

    async fn end(&mut self) {
        let Some(mut mail) = self.mail.take() else { return self.refuse("no message") };
        if mail.inflater.is_some() {
            return drop(self.server.refuse(&Refusal::Protocol("(compressed message is incomplete)".into())));
        }
        let verdict = match mail.passage.finish().await {
            Ok(verdict) => verdict,
            Err(Unfinished::Late) => {
                self.server.refuse(&Refusal::Timeout("(the inspection took too long)".into()));
                return;
            }
            Err(unfinished) => return self.refuse(unfinished.words()),
        };
        journal::count_score(&self.shared.runtime.borrow().metrics, &mail.passage, &verdict);
        let Some(score) = &verdict.score else { return self.refuse("the message is not scored") };
        tracing::info!(
            id = mail.passage.id(),
            client = %self.peer.ip(),
            verb = ?mail.request.verb,
            user = mail.request.user.as_deref().map(trace::printable),
            bytes = mail.passage.received(),
            score = spam::points(&verdict),
            spam = score.is_spam(),
            hits = spam::hits(&verdict),
            ms = mail.passage.age().as_millis() as u64,
            "message scored"
        );
        let Some(body) = mail.body(score) else { return self.refuse("no memory for the message") };
        let (shown, required) = (score.shown(), score.required.to_string());
        let verdict = Verdict { is_spam: score.is_spam(), score: &shown, required: &required };
        self.server.answer(&Answer { verdict, body: &body });
    }
}

impl Mail {
    async fn take(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let most = self.spam.scoring.bytes_max;
        if self.passage.received() + bytes.len() as u64 > most {
            return Err(Refusal::Unavailable("the message is too large".into()));
        }
        self.passage.take(bytes, false).await;
        // Where there is no memory to hold it, it is scored all the same.
        if self.passage.state() == State::Streaming {
            self.passage.hold().watch();
        }
        Ok(())
    }

    /// Takes what is compressed; at its end there is no more to undo.
    async fn inflate(&mut self, mut bytes: &[u8]) -> Result<(), Refusal> {
        let mut piece = vec![0; PIECE_BYTES];
        while let Some(inflater) = &mut self.inflater {
            let (before, wrote) = (inflater.total_in(), inflater.total_out());
            let status = inflater.decompress(bytes, &mut piece, FlushDecompress::None);
            let status = status.map_err(|_| Refusal::Protocol("(compressed message is malformed)".into()))?;
            let taken = usize::try_from(inflater.total_in() - before).unwrap_or(bytes.len());
            let count = usize::try_from(inflater.total_out() - wrote).unwrap_or(0);
            if status == Status::StreamEnd {
                self.inflater = None;
            }
            bytes = &bytes[taken.min(bytes.len())..];
            self.take(&piece[..count.min(PIECE_BYTES)]).await?;
            if count == 0 && (bytes.is_empty() || taken == 0) {
                break;
            }
        }
        Ok(())
    }

    /// What goes with the verdict; none where the mail is wanted and could not be held.
    fn body(&mut self, score: &Score) -> Option<Vec<u8>> {
        match self.request.verb {
            Verb::Symbols => {
                let mut rules: Vec<&str> = score.hits.iter().map(|hit| &*hit.rule).collect();
                rules.sort_unstable();
                Some(rules.join(",").into_bytes())
            }
            Verb::Report => Some(score.text.as_bytes().to_vec()),
            Verb::ReportIfSpam if score.is_spam() => Some(score.text.as_bytes().to_vec()),
            Verb::Process => self.marked(score),
            Verb::Headers => self.marked(score).map(header_of),
            _ => Some(Vec::new()),
        }
    }

    /// The mail as it came, with its fields and without those that are forged.
    fn marked(&mut self, score: &Score) -> Option<Vec<u8>> {
        if self.passage.state() != State::Holding {
            return None;
        }
        let hold = self.passage.hold();
        let line_end = if is_crlf(hold.front(usize::MAX)) { "\r\n" } else { "\n" };
        let fields = spam::fields(&self.spam, score, line_end);
        let fields: String = fields.into_iter().map(|(name, value)| format!("{name}: {value}{line_end}")).collect();
        let after = before_fields(hold.front(usize::MAX));
        let subject = spam::subject(&self.spam, score).map(|(at, tag)| (at.max(after), tag.replace("\r\n", line_end)));
        let mut out = Vec::with_capacity(hold.held() + fields.len());
        put(hold, after, &mut out);
        out.extend_from_slice(fields.as_bytes());
        if let Some((at, tag)) = subject {
            put(hold, at, &mut out);
            out.extend_from_slice(tag.as_bytes());
        }
        put(hold, u64::MAX, &mut out);
        Some(out)
    }
}

/// Puts what is held before this offset of the mail.
fn put(hold: &mut flow::Hold<crate::message::pool::Pool>, before: u64, out: &mut Vec<u8>) {
    while hold.held() > 0 && hold.sent() < before {
        let most = usize::try_from(before - hold.sent()).unwrap_or(usize::MAX);
        let gone = hold.left_out(most);
        if gone > 0 {
            hold.forget(gone);
            continue;
        }
        let piece = hold.redacted(most);
        let count = piece.len();
        out.extend_from_slice(piece);
        hold.forget(count);
    }
}

/// Whether lines end in CRLF, by the first of them.
fn is_crlf(start: &[u8]) -> bool {
    let end = start.iter().position(|&byte| byte == b'\n');
    end.and_then(|end| end.checked_sub(1)).is_some_and(|before| start[before] == b'\r')
}

/// Where the fields go: behind the line of a mailbox and `Return-Path`, where those come first.
fn before_fields(start: &[u8]) -> u64 {
    const RETURN_PATH: &[u8] = b"return-path:";
    let mut at = 0;
    for line in start.split_inclusive(|&byte| byte == b'\n') {
        let is_path = line.get(..RETURN_PATH.len()).is_some_and(|name| name.eq_ignore_ascii_case(RETURN_PATH));
        let is_fold = at > 0 && line.starts_with(b" ") | line.starts_with(b"\t");
        let goes_first = at == 0 && line.starts_with(b"From ") || is_path || is_fold;
        if !goes_first || !line.ends_with(b"\n") {
            break;
        }
        at += line.len() as u64;
    }
    at
}

/// The header of a mail, with the empty line behind it.
fn header_of(mut mail: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    for line in mail.split_inclusive(|&byte| byte == b'\n') {
        at += line.len();
        if line.trim_ascii().is_empty() {
            break;
        }
    }
    mail.truncate(at);
    mail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_go_behind_what_has_to_come_first() {
        for (start, wanted) in [
            (&b"A: b\n"[..], 0),
            (b"From x\nA: b\n", 7),
            (b"Return-Path: <a>\r\n\tx\r\nA: b\r\n", 22),
            (b" A: b\n", 0),
            (b"Return-Path: cut", 0),
        ] {
            assert_eq!(before_fields(start), wanted, "{start:?}");
        }
        assert_eq!(header_of(b"A: b\r\n\r\nbody\n".to_vec()), b"A: b\r\n\r\n");
        assert_eq!((is_crlf(b"a\r\n"), is_crlf(b"a\n\r\n"), is_crlf(b"\n")), (true, false, false));
    }
}
