//! spamd: a client hands over a mail and asks whether it is spam, or for the mail with its fields.
//!
//! Only the score counts here: signatures are matched as everywhere, and nothing is refused for them. What is refused spamc hands
//! on as it came.

use std::borrow::Cow;

use flow::{Flow, Protocol, Score, State, Verdict};
use proto::spamd::{self, Answer, Places, Request, Server, ServerEvent, Verb};

use super::{Announced, Dialect, Event, Mail, Refusal, Telling};
use crate::message::memory::What;
use crate::message::spam;

impl Dialect for Server {
    type Request = Request;

    const FIELDS: &[Cow<'static, str>] = &[];

    const NEEDS_PASSWORD: bool = false;
    const SCORES_NOTHING: bool = true;

    fn step(&mut self, input: &[u8]) -> (usize, Event<Request>) {
        let (taken, event) = Server::step(self, input);
        (taken, event.into())
    }

    fn finish(&mut self) -> Event<Request> {
        Server::finish(self).into()
    }

    fn user(request: &Request) -> Option<&str> {
        request.user.as_deref()
    }

    fn telling(request: &Request) -> Option<Telling> {
        let what = match request {
            _ if request.verb != Verb::Tell => return None,
            _ if request.set.local => Some(if request.is_spam == Some(true) { What::Spam } else { What::Ham }),
            _ if request.remove.local => Some(What::Forget),
            _ => None,
        };
        Some(Telling { what, password: None })
    }

    fn told(&mut self, request: &Request, has_changed: bool) {
        // Nothing is reported to others.
        let here = |places: Places| Places { local: places.local && has_changed, remote: false };
        Server::told(self, here(request.set), here(request.remove));
    }

    fn announced(request: &Request) -> Announced {
        Announced {
            flow: Flow { protocol: Protocol::Spamd, ..Flow::default() },
            length: request.length,
            is_compressed: request.is_compressed,
            gives_back: matches!(request.verb, Verb::Process | Verb::Headers),
            has_text: matches!(request.verb, Verb::Report | Verb::ReportIfSpam),
            has_links: false,
        }
    }

    fn answer(&mut self, mail: &mut Mail<Request>, _: &Verdict, score: &Score) -> Result<(), &'static str> {
        let body = mail.body(score).ok_or("no memory for the message")?;
        let (shown, required) = (score.shown(), score.required.to_string());
        let verdict = spamd::Verdict { is_spam: score.is_spam(), score: &shown, required: &required };
        Server::answer(self, &Answer { verdict, body: &body });
        Ok(())
    }

    fn refuse(&mut self, refusal: Refusal) {
        Server::refuse(
            self,
            &match refusal {
                Refusal::Malformed(why) => spamd::Refusal::Unavailable(format!("zlib: {why}")),
                Refusal::Untold | Refusal::Forbidden => {
                    spamd::Refusal::Unavailable("TELL commands are not enabled.".into())
                }
                Refusal::TooLarge => spamd::Refusal::Unavailable("the message is too large".into()),
                Refusal::Unavailable(why) => spamd::Refusal::Unavailable(why),
                Refusal::Late => spamd::Refusal::Timeout("(the inspection took too long)".into()),
            },
        );
    }

    fn is_refused(&self) -> bool {
        Server::is_refused(self)
    }

    fn outbox(&self) -> &[u8] {
        Server::outbox(self)
    }

    fn sent(&mut self) {
        Server::sent(self);
    }
}

impl From<ServerEvent> for Event<Request> {
    fn from(event: ServerEvent) -> Event<Request> {
        match event {
            ServerEvent::Idle => Event::Idle,
            ServerEvent::Asked(request) => Event::Asked(request),
            ServerEvent::Content => Event::Content,
            ServerEvent::End => Event::End,
            ServerEvent::Closed => Event::Closed,
        }
    }
}

impl Mail<Request> {
    /// Body of the reply; none where the mail is wanted and could not be held.
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
        let is_crlf = self.ends_in_crlf || is_crlf(hold.front(usize::MAX));
        let line_end = if is_crlf { "\r\n" } else { "\n" };
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
        Some(if is_crlf { with_crlf_header(out) } else { out })
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

/// Whether lines end in CRLF, by the first of them; the last counts as well.
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
    mail.truncate(header_end(&mail));
    mail
}

/// Behind the empty line that ends the header.
fn header_end(mail: &[u8]) -> usize {
    let mut at = 0;
    for line in mail.split_inclusive(|&byte| byte == b'\n') {
        at += line.len();
        if line.trim_ascii().is_empty() {
            break;
        }
    }
    at
}

/// The mail with CRLF at the end of each line of its header, as Mail::SpamAssassin writes it where lines end in CRLF.
fn with_crlf_header(mut mail: Vec<u8>) -> Vec<u8> {
    let end = header_end(&mail);
    let mut header = Vec::with_capacity(end);
    for line in mail[..end].split_inclusive(|&byte| byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(text) if !text.ends_with(b"\r") => header.extend([text, b"\r\n"].concat()),
            _ => header.extend_from_slice(line),
        }
    }
    if header.len() > end {
        mail.splice(..end, header);
    }
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
        assert_eq!(with_crlf_header(b"A: b\nC: d\r\n\nbody\n\r\n".to_vec()), b"A: b\r\nC: d\r\n\r\nbody\n\r\n");
        assert_eq!(with_crlf_header(b"A: b\r\n\r\nx\n".to_vec()), b"A: b\r\n\r\nx\n");
        assert_eq!(header_of(b"A: b\r\n\r\nbody\n".to_vec()), b"A: b\r\n\r\n");
        assert_eq!((is_crlf(b"a\r\n"), is_crlf(b"a\n\r\n"), is_crlf(b"\n")), (true, false, false));
    }
}
