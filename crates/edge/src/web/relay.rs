//! The messages of one body, each inspected as a body of its own, and handed on before the body ends.
//!
//! A message that fits into the head window goes on when all of it was inspected; a larger one goes on as it is inspected, but for its
//! end. What is spread over several messages is not found.

use flow::{Action, State, Unfinished, Verdict};
use proto::http::{Fields, Framing, Request, Response};
use proto::messages::{Event, Form, Head, Reader};
use stream::{ContentCoding, Object};

use super::object;
use super::session::Session;
use super::subject::{Outcome, Subject};
use super::vet::Order;
use crate::porch::filter::Pass;
use crate::settings::UnknownCodings;

/// Whether a request is a call of gRPC: its messages go on before its end, beside those of the response.
pub(super) fn is_call(request: &Request) -> bool {
    form(&request.fields, request.framing) == Some(Form::Grpc)
}

/// The form of the messages in a response, where it is a stream of messages.
pub(super) fn form_of_response(order: &Order, response: &Response) -> Option<Form> {
    let form = form(&response.fields, response.framing)?;
    let asked = order.request.fields.get("content-type").and_then(Form::of);
    let is_asked = form == Form::Events || asked == Some(form);
    (response.status.0 == 200 && order.part.is_none() && is_asked).then_some(form)
}

/// The form of the messages in a body of which these fields speak. A body whose length is known is no stream, and what is to be saved as
/// a file, or is compressed as a whole, is one object.
fn form(fields: &Fields, framing: Framing) -> Option<Form> {
    let is_plain = object::codings(fields).is_some_and(|codings| codings.is_empty());
    let is_open = matches!(framing, Framing::Chunked | Framing::Close);
    let is_stream = is_plain && is_open && fields.get("content-disposition").is_none();
    fields.get("content-type").filter(|_| is_stream).and_then(Form::of)
}

/// The reason why no more messages go on.
pub(super) enum Stopped {
    /// Something was found in a message, or it could not be inspected.
    Found(Box<(Subject, Result<Verdict, Unfinished>)>),
    /// The bytes are no messages.
    Malformed(&'static str),
}

/// The messages of one body on their way.
pub(super) struct Relay<'a> {
    session: &'a Session,
    order: &'a Order,
    fields: Fields,
    pass: Pass,
    form: Form,
    reader: Reader,
    message: Option<Message>,
    /// Messages that have gone on.
    pub messages: u64,
    /// Bytes that have come.
    pub bytes: u64,
}

/// A message on its way.
struct Message {
    /// Its head, until that has gone on.
    head: Head,
    /// None as long as it has no content.
    subject: Option<Subject>,
}

impl<'a> Relay<'a> {
    /// The messages of a body that begins behind these fields, on these terms.
    pub(super) fn new(session: &'a Session, order: &'a Order, fields: &Fields, pass: Pass, form: Form) -> Relay<'a> {
        let reader = Reader::new(form);
        Relay { session, order, fields: fields.clone(), pass, form, reader, message: None, messages: 0, bytes: 0 }
    }

    /// True when the rest of the body is one message: it is of another form than its type says.
    pub(super) fn is_other(&self) -> bool {
        self.reader.is_other()
    }

    /// Takes more of the body, and appends to `out` what may go on.
    ///
    /// # Errors
    /// When nothing more may go on.
    pub(super) async fn take(&mut self, mut input: &[u8], out: &mut Vec<u8>) -> Result<(), Stopped> {
        self.bytes = self.bytes.saturating_add(input.len() as u64);
        loop {
            let (taken, event) = self.reader.step(input);
            let (piece, rest) = input.split_at(taken);
            input = rest;
            match event {
                Event::Idle if taken == 0 => return Ok(()),
                Event::Idle => {}
                Event::Begin(head) => self.message = Some(Message { head, subject: None }),
                Event::Content => self.feed(piece, out).await?,
                Event::End => self.finish(out).await?,
                Event::Refused => return Err(Stopped::Malformed("a malformed message of gRPC")),
            }
        }
    }

    /// Has content inspected, and hands on what may go.
    async fn feed(&mut self, mut rest: &[u8], out: &mut Vec<u8>) -> Result<(), Stopped> {
        let is_blank = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let Some(message) = &mut self.message else { return Ok(()) };
        if message.subject.is_none() {
            if self.form == Form::Events && rest.iter().all(is_blank) {
                out.extend_from_slice(rest);
                return Ok(());
            }
            let object = described(self.session, self.order, &self.fields, message.head, self.form)?;
            let runtime = self.session.shared.runtime.borrow().clone();
            message.subject = Some(self.session.message(&runtime, object, self.order, &self.pass));
        }
        let Some(subject) = &mut message.subject else { return Ok(()) };
        while !rest.is_empty() {
            let count = subject.passage.hold().piece_bytes(rest.len()).min(rest.len());
            let (piece, behind) = rest.split_at(count);
            subject.passage.take(piece, false).await;
            rest = behind;
            if subject.passage.is_hopeless() {
                self.finish(out).await?;
                return Err(Stopped::Malformed("the inspection was broken off"));
            }
            if subject.passage.state() == State::Streaming {
                subject.has_begun = true;
                out.extend(message.head.bytes.take().iter().flatten());
                while subject.go_on(false, |piece| out.extend_from_slice(piece)) {}
            }
        }
        Ok(())
    }

    /// The message under way is over, or the body: hands on the rest of it under its verdict.
    ///
    /// # Errors
    /// As [`Relay::take`].
    pub(super) async fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Stopped> {
        let Some(Message { mut head, subject }) = self.message.take() else { return Ok(()) };
        let Some(mut subject) = subject else {
            self.messages += u64::from(head.bytes.is_some());
            out.extend(head.bytes.take().iter().flatten());
            return Ok(());
        };
        let verdict = subject.passage.finish().await;
        if subject.outcome(&verdict, true) != Outcome::Passed {
            return Err(Stopped::Found(Box::new((subject, verdict))));
        }
        subject.count(&self.session.shared.runtime.borrow().metrics, Action::Pass);
        out.extend(head.bytes.take().iter().flatten());
        while subject.go_on(true, |piece| out.extend_from_slice(piece)) {}
        self.messages += 1;
        Ok(())
    }
}

/// A message as an object.
fn described(session: &Session, order: &Order, fields: &Fields, head: Head, form: Form) -> Result<Object, Stopped> {
    if form == Form::Events {
        return Ok(object::described(order.request.path(), fields));
    }
    let codings = match coding(fields).filter(|_| head.is_packed) {
        Some(Some(coding)) => vec![coding],
        Some(None) if session.settings.unknown_codings == UnknownCodings::Refuse => {
            return Err(Stopped::Malformed("a message of gRPC in a coding that is not known here"));
        }
        Some(None) | None => Vec::new(),
    };
    let media_type = Some("application/octet-stream".into());
    Ok(Object { media_type, content_codings: codings.into(), ..Object::default() })
}

/// The coding of packed messages of gRPC, as the head of their body says: none where there is none, and nothing within where it is not
/// known.
fn coding(fields: &Fields) -> Option<Option<ContentCoding>> {
    let name = fields.get("grpc-encoding").unwrap_or_default().trim_ascii().to_ascii_lowercase();
    match &*name {
        b"identity" => None,
        b"gzip" => Some(Some(ContentCoding::Gzip)),
        b"deflate" => Some(Some(ContentCoding::Deflate)),
        b"zstd" => Some(Some(ContentCoding::Zstd)),
        _ => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(fields: &[(&str, &str)]) -> Fields {
        let mut made = Fields::default();
        fields.iter().for_each(|(name, value)| assert!(made.push(name, value.as_bytes())));
        made
    }

    #[test]
    fn a_stream_has_no_length_and_is_no_file() {
        let events = ("Content-Type", "text/event-stream");
        for (said, framing, is_stream) in [
            (&[events][..], Framing::Chunked, true),
            (&[events], Framing::Close, true),
            (&[events], Framing::Length(9), false),
            (&[events, ("Content-Encoding", "gzip")], Framing::Chunked, false),
            (&[events, ("Content-Encoding", "odd")], Framing::Chunked, false),
            (&[events, ("Content-Encoding", "identity")], Framing::Chunked, true),
            (&[events, ("Content-Disposition", "attachment; filename=x.exe")], Framing::Chunked, false),
            (&[("Content-Type", "text/html")], Framing::Chunked, false),
            (&[], Framing::Chunked, false),
        ] {
            assert_eq!(form(&fields(said), framing), is_stream.then_some(Form::Events), "{said:?}");
        }
    }

    #[test]
    fn packed_messages_are_decoded_as_their_head_says() {
        let of = |name: &str| coding(&fields(&[("grpc-encoding", name)]));
        assert_eq!(of("Gzip"), Some(Some(ContentCoding::Gzip)));
        assert_eq!(of("identity"), None);
        assert_eq!(of("snappy"), Some(None));
        assert_eq!(coding(&Fields::default()), Some(None));
    }
}
