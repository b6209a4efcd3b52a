//! FETCH: what was told once is copied out of digests, and content is streamed.

use std::io;

use proto::imap::operation::FetchItem;
use proto::imap::{Part, Section, date};
use store::{Change, Entry, Flags, Mailbox, State, Uids};

use super::search::{end_of_header, fields};
use super::view::flags_of;
use super::{Done, Refusal, Session, done, no};
use crate::content::{Body, digest};
use crate::digest::{Digest, Known};
use crate::wire::Stream;
use crate::writer::Handle;

/// Bytes of a message read at a time.
const CHUNK_BYTES: usize = 32 << 10;

/// Bytes of a header that fields are picked from.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// A message that is told.
struct Message<'a> {
    store: &'a Handle,
    state: &'a State,
    mailbox: &'a Mailbox,
    uid: u32,
    entry: Entry,
    known: Option<Known>,
    body: Option<Body>,
}

/// What an item comes to.
enum Value {
    Text(Vec<u8>),
    /// A run of the message.
    Range(u64, u64),
    Nil,
}

impl<S: Stream> Session<'_, S> {
    pub(super) async fn fetch(
        &mut self,
        uids: Vec<u32>,
        items: &[FetchItem],
        changed_since: Option<u64>,
    ) -> Result<Done, Refusal> {
        let Some(view) = &self.selected else { return Err(Refusal::Bad("Select a mailbox first")) };
        let (number, read_only) = (view.number, view.read_only);
        if !read_only && items.iter().any(marks_seen) {
            self.mark_seen(number, &uids).await?;
        }
        let state = self.site.store.state();
        let Some(mailbox) = state.mailbox(number) else { return Err(no("[NONEXISTENT] The mailbox is gone")) };
        let (mut is_gone, mut is_broken) = (false, false);
        for uid in uids {
            let Some(entry) = mailbox.entry(uid).copied() else {
                is_gone = true;
                continue;
            };
            if changed_since.is_some_and(|since| entry.modseq <= since) {
                continue;
            }
            let Some(number) = self.selected.as_ref().and_then(|view| view.number_of(uid)) else { continue };
            let store = &self.site.store;
            let mut message = Message { store, state: &state, mailbox, uid, entry, known: None, body: None };
            is_broken |= !self.tell_message(number, &mut message, items).await?;
        }
        match (is_broken, is_gone) {
            (true, _) => Err(no("[SERVERBUG] Some messages cannot be read")),
            (false, true) => Err(no("[EXPUNGEISSUED] Some messages are gone")),
            (false, false) => done("Fetch completed"),
        }
    }

    async fn mark_seen(&mut self, number: u32, uids: &[u32]) -> Result<(), Refusal> {
        let state = self.site.store.state();
        let Some(mailbox) = state.mailbox(number) else { return Ok(()) };
        let is_unseen = |uid: &u32| mailbox.entry(*uid).is_some_and(|entry| !entry.flags.has(Flags::SEEN));
        let unseen: Uids = uids.iter().copied().filter(is_unseen).collect();
        if unseen.is_empty() {
            return Ok(());
        }
        let mark = self
            .site
            .store
            .transact(move |transaction| transaction.store(number, &unseen, Change::Add, (Flags::SEEN, &[]), u64::MAX));
        mark.await?;
        Ok(())
    }

    /// Whether all of it could be told. What cannot be read before it was announced is left out, with the rest of it.
    async fn tell_message(&mut self, number: u32, message: &mut Message<'_>, items: &[FetchItem]) -> io::Result<bool> {
        let mut line = format!("* {number} FETCH (").into_bytes();
        let (mut is_whole, mut is_first) = (true, true);
        for item in items {
            let value = tokio::task::block_in_place(|| message.value(item));
            let Ok(value) = value.inspect_err(|error| {
                tracing::error!(message = message.entry.message.get(), %error, "a message cannot be read");
            }) else {
                is_whole = false;
                continue;
            };
            if !std::mem::take(&mut is_first) {
                line.push(b' ');
            }
            name_of(item, &mut line);
            line.push(b' ');
            match value {
                Value::Nil => line.extend_from_slice(b"NIL"),
                Value::Text(text) => line.extend_from_slice(&text),
                Value::Range(from, to) => {
                    line.extend_from_slice(format!("{{{}}}\r\n", to - from).as_bytes());
                    self.server.bytes(&line);
                    line.clear();
                    self.stream(message, from, to).await?;
                }
            }
        }
        line.extend_from_slice(b")\r\n");
        self.server.bytes(&line);
        self.flush_much().await?;
        Ok(is_whole)
    }

    /// Sends a run of a message whose length was announced.
    async fn stream(&mut self, message: &mut Message<'_>, from: u64, to: u64) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut at = from;
        while at < to {
            let wanted = usize::try_from(to - at).unwrap_or(usize::MAX).min(chunk.len());
            let read = tokio::task::block_in_place(|| message.read(at, &mut chunk[..wanted]))?;
            if read == 0 {
                return Err(io::Error::other("a message is shorter than it was"));
            }
            at += read as u64;
            self.server.bytes(&chunk[..read]);
            self.flush_much().await?;
        }
        Ok(())
    }
}

impl Message<'_> {
    fn size(&self) -> u64 {
        self.state.message(self.entry.message.get()).map_or(0, |message| message.size)
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let number = self.entry.message.get();
        if self.body.is_none() {
            self.body = Body::open(self.store, number);
        }
        let body = self.body.as_mut().ok_or_else(|| io::Error::other("the message is gone"))?;
        body.read(offset, buffer).map_err(io::Error::other)
    }

    /// What is known of its structure; made anew where nothing was stored.
    fn known(&mut self) -> io::Result<&Known> {
        if self.known.is_none() {
            let stored = digest(self.store, self.entry.message.get()).map_err(io::Error::other)?;
            let known = match Known::decode(&stored) {
                Some(known) => known,
                None => self.derive()?,
            };
            self.known = Some(known);
        }
        self.known.as_ref().ok_or_else(|| io::Error::other("unknown"))
    }

    fn derive(&mut self) -> io::Result<Known> {
        let (mut digest, mut offset) = (Digest::default(), 0);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match self.read(offset, &mut chunk)? {
                0 => return Ok(digest.known()),
                length => {
                    digest.read(&chunk[..length]);
                    offset += length as u64;
                }
            }
        }
    }

    fn value(&mut self, item: &FetchItem) -> io::Result<Value> {
        let text = |text: String| Ok(Value::Text(text.into_bytes()));
        match item {
            FetchItem::Flags => {
                let mut out = Vec::new();
                flags_of(self.mailbox, self.entry.flags, &mut out);
                Ok(Value::Text(out))
            }
            FetchItem::Uid => text(self.uid.to_string()),
            FetchItem::InternalDate => text(format!("\"{}\"", date::internal(self.entry.date))),
            FetchItem::SaveDate => text(format!("\"{}\"", date::internal(self.entry.saved))),
            FetchItem::Size => text(self.size().to_string()),
            FetchItem::Modseq => text(format!("({})", self.entry.modseq)),
            FetchItem::EmailId => {
                let id = self.state.message(self.entry.message.get()).map_or(0, |message| message.id);
                text(format!("(M{id:032x})"))
            }
            FetchItem::ThreadId => {
                match self.state.message(self.entry.message.get()).map_or(0, |message| message.thread) {
                    0 => Ok(Value::Nil),
                    thread => text(format!("(T{thread:x})")),
                }
            }
            FetchItem::Envelope => Ok(Value::Text(self.known()?.envelope.clone())),
            FetchItem::Body => Ok(Value::Text(self.known()?.body.clone())),
            FetchItem::BodyStructure => Ok(Value::Text(self.known()?.body_structure.clone())),
            FetchItem::Section(section) => self.section(section),
        }
    }

    fn section(&mut self, section: &Section) -> io::Result<Value> {
        let Some((from, to)) = self.range(section)? else { return Ok(Value::Nil) };
        if let Part::Fields(wanted) = &section.part {
            let header = self.header(from, to)?;
            let picked = pick(&header, wanted);
            let picked = match section.partial {
                Some((origin, length)) => clip(&picked, origin, length),
                None => &picked,
            };
            let mut out = Vec::new();
            // Always a literal, as content is: clients expect it.
            out.extend_from_slice(format!("{{{}}}\r\n", picked.len()).as_bytes());
            out.extend_from_slice(picked);
            return Ok(Value::Text(out));
        }
        let Some((origin, length)) = section.partial else { return Ok(Value::Range(from, to)) };
        let start = from.saturating_add(origin).min(to);
        Ok(Value::Range(start, to.min(start.saturating_add(length.unwrap_or(u64::MAX)))))
    }

    /// Where a section is; of fields, the header.
    fn range(&mut self, section: &Section) -> io::Result<Option<(u64, u64)>> {
        if section.path.is_empty() && section.part == Part::All {
            return Ok(Some((0, self.size())));
        }
        let root = &self.known()?.root;
        let Some(part) = root.at(&section.path) else { return Ok(None) };
        let message = if section.path.is_empty() { Some(part) } else { part.message() };
        Ok(match (&section.part, message) {
            (Part::All, _) => Some((part.body, part.end)),
            (Part::Mime, _) => Some((part.header, part.body)),
            (Part::Header | Part::Fields(_), Some(message)) => Some((message.header, message.body)),
            (Part::Text, Some(message)) => Some((message.body, message.end)),
            (_, None) => None,
        })
    }

    fn header(&mut self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        let length = usize::try_from((to - from).min(HEADER_BYTES_MAX)).unwrap_or(0);
        let mut header = vec![0; length];
        let mut done = 0;
        while done < length {
            match self.read(from + done as u64, &mut header[done..])? {
                0 => break,
                read => done += read,
            }
        }
        header.truncate(done);
        Ok(header)
    }
}

fn marks_seen(item: &FetchItem) -> bool {
    matches!(item, FetchItem::Section(section) if !section.peek)
}

fn name_of(item: &FetchItem, out: &mut Vec<u8>) {
    let name = match item {
        FetchItem::Section(section) => return section.name(out),
        FetchItem::Flags => "FLAGS",
        FetchItem::Uid => "UID",
        FetchItem::InternalDate => "INTERNALDATE",
        FetchItem::Size => "RFC822.SIZE",
        FetchItem::Envelope => "ENVELOPE",
        FetchItem::Body => "BODY",
        FetchItem::BodyStructure => "BODYSTRUCTURE",
        FetchItem::Modseq => "MODSEQ",
        FetchItem::EmailId => "EMAILID",
        FetchItem::ThreadId => "THREADID",
        FetchItem::SaveDate => "SAVEDATE",
    };
    out.extend_from_slice(name.as_bytes());
}

/// The fields that are named, or all others, and the empty line.
fn pick(header: &[u8], wanted: &[u8]) -> Vec<u8> {
    let open = wanted.iter().position(|&byte| byte == b'(').unwrap_or(0);
    let is_not = wanted[..open].to_ascii_uppercase().ends_with(b".NOT ");
    let names = wanted[open..].split(|byte| b" ()\"".contains(byte)).filter(|name| !name.is_empty());
    let names: Vec<&[u8]> = names.collect();
    let mut picked = Vec::new();
    let end = end_of_header(header, 0).unwrap_or(header.len());
    for field in fields(&header[..end]) {
        let Some(colon) = field.iter().position(|&byte| byte == b':') else { continue };
        let name = field[..colon].trim_ascii_end();
        if names.iter().any(|known| known.eq_ignore_ascii_case(name)) != is_not {
            picked.extend_from_slice(field);
        }
    }
    picked.extend_from_slice(b"\r\n");
    picked
}

fn clip(bytes: &[u8], origin: u64, length: Option<u64>) -> &[u8] {
    let start = usize::try_from(origin).unwrap_or(usize::MAX).min(bytes.len());
    let length = usize::try_from(length.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    &bytes[start..start.saturating_add(length).min(bytes.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_picked() {
        let header = b"From: a\r\nTo: b,\r\n c\r\nSubject: d\r\nfrom: e\r\n\r\n";
        assert_eq!(pick(header, b"HEADER.FIELDS (FROM \"to\")"), b"From: a\r\nTo: b,\r\n c\r\nfrom: e\r\n\r\n");
        assert_eq!(pick(header, b"header.fields.not (From To)"), b"Subject: d\r\n\r\n");
        assert_eq!(pick(b"", b"HEADER.FIELDS (X)"), b"\r\n");
        assert_eq!(clip(b"abcdef", 2, Some(3)), b"cde");
        assert_eq!(clip(b"abcdef", 9, None), b"");
    }
}
