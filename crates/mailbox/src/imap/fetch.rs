//! FETCH: what was told once is copied out of digests, and content is streamed.

use std::io;

use keep::content::Reader as _;
use keep::header::{end_of_header, fields};
use keep::view::{email_id, thread_id};
use proto::imap::acl::Rights;
use proto::imap::items::FetchItem;
use proto::imap::url::Url;
use proto::imap::{Item, Part, Section, date, response};
use store::{Change, Entry, Flags, Mailbox, State, Uids};
use stream::Coding;

use super::decode::{self, Decoding};
use super::labour::turn;
use super::render::{self, flags_of};
use super::{Done, Refusal, Session, done, no};
use crate::content::{Body, cached_digest, digest};
use crate::digest::{Digest, Known, Text};
use crate::wire::Stream;
use crate::writer::Handle;

/// Bytes of a message read at a time.
const CHUNK_BYTES: usize = 32 << 10;

/// Bytes of a message that its preview is made of.
const PREVIEW_BYTES_MAX: u64 = 256 << 10;

/// Bytes of a header that fields are picked from.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// A message that is told.
struct Message<'a> {
    store: &'a Handle,
    state: &'a State,
    mailbox: &'a Mailbox,
    uid: u32,
    is_recent: bool,
    entry: Entry,
    /// Its digest as it was stored, if that was in memory.
    stored: Option<Vec<u8>>,
    known: Option<Known>,
    body: Option<Body<'a>>,
}

/// How much of a message was told.
enum Told {
    Whole,
    Broken,
    UnknownCoding,
}

/// What an item comes to.
enum Value {
    Text(Vec<u8>),
    /// Bytes of a literal.
    Literal(Vec<u8>),
    /// A run of the message.
    Range(u64, u64),
    /// A run of it without its transfer coding: from a byte of that on, so many; whether it is no text.
    Decoded {
        part: (u64, u64),
        coding: Coding,
        skipped: u64,
        length: u64,
        is_binary: bool,
    },
    Nil,
}

/// A run of bytes of a message that a URL names, being read.
pub(super) struct Source<'a> {
    message: Message<'a>,
    at: u64,
    end: u64,
}

impl<'a> Source<'a> {
    /// None if nothing is there.
    pub fn find(store: &'a Handle, state: &'a State, account: u32, url: &Url) -> Option<Source<'a>> {
        let (_, mailbox) = state.mailbox_named(account, &url.mailbox)?;
        let is_same = url.uid_validity.is_none_or(|validity| validity == mailbox.uid_validity);
        let (uid, entry) = (url.uid, mailbox.entry(url.uid).copied().filter(|_| is_same)?);
        let mut message =
            Message { store, state, mailbox, uid, is_recent: false, entry, stored: None, known: None, body: None };
        match tokio::task::block_in_place(|| message.section(&url.section)) {
            Ok(Value::Range(at, end)) => Some(Source { message, at, end }),
            _ => None,
        }
    }

    /// Bytes that are not read yet.
    pub fn left(&self) -> u64 {
        self.end.saturating_sub(self.at)
    }

    /// Reads more; 0 at the end.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = usize::try_from(self.left()).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.message.read(self.at, &mut buffer[..length])?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<S: Stream> Session<'_, S> {
    pub(super) async fn fetch(
        &mut self,
        uids: Vec<u32>,
        items: &[FetchItem],
        changed_since: Option<u64>,
    ) -> Result<Done, Refusal> {
        let view = self.view()?;
        let (number, read_only) = (view.number, view.read_only);
        if !read_only && items.iter().any(marks_seen) && self.rights_here().has(Rights::SEEN) {
            self.mark_seen(number, &uids).await?;
        }
        let state = self.site.store.state();
        let Some(mailbox) = state.mailbox(number) else { return Err(no("[NONEXISTENT] The mailbox is gone")) };
        let (mut is_gone, mut is_broken, mut is_unknown) = (false, false, false);
        for uid in uids {
            let Some(entry) = mailbox.entry(uid).copied() else {
                is_gone = true;
                continue;
            };
            if changed_since.is_some_and(|since| entry.modseq <= since) {
                continue;
            }
            let Some(view) = &self.selected else { break };
            let Some(number) = view.number_of(uid) else { continue };
            let (store, is_recent) = (&self.site.store, render::is_recent(view, uid, self.enabled));
            let mut message =
                Message { store, state: &state, mailbox, uid, is_recent, entry, stored: None, known: None, body: None };
            match self.tell_message(number, &mut message, items).await? {
                Told::Whole => {}
                Told::Broken => is_broken = true,
                Told::UnknownCoding => is_unknown = true,
            }
        }
        match (is_broken, is_gone) {
            _ if is_unknown => Err(no("[UNKNOWN-CTE] A transfer coding is not known")),
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
    async fn tell_message(
        &mut self,
        number: u32,
        message: &mut Message<'_>,
        items: &[FetchItem],
    ) -> Result<Told, Refusal> {
        let (mut told, mut is_first) = (Told::Whole, true);
        for item in items {
            let value = match self.value(message, item).await? {
                Ok(value) => value,
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    told = Told::UnknownCoding;
                    continue;
                }
                Err(error) => {
                    tracing::error!(message = message.entry.message.get(), %error, "a message cannot be read");
                    told = Told::Broken;
                    continue;
                }
            };
            let mut name = match std::mem::take(&mut is_first) {
                true => format!("* {number} FETCH (").into_bytes(),
                false => b" ".to_vec(),
            };
            name_of(item, &mut name);
            name.push(b' ');
            self.server.bytes(&name);
            self.send(message, value).await?;
        }
        // A message of which nothing can be told is not told.
        if !is_first {
            self.server.bytes(b")\r\n");
        }
        self.flush_much().await?;
        Ok(told)
    }

    /// The value of an item. Work and waits for the disk take turns with other accounts.
    async fn value(&mut self, message: &mut Message<'_>, item: &FetchItem) -> Result<io::Result<Value>, Refusal> {
        if message.is_at_hand(item) {
            return Ok(message.value(item));
        }
        let account = self.user()?.number;
        let is_new = self.is_new();
        let _turn = turn(self.site, &mut self.wire, &self.site.readers, account, is_new).await?;
        Ok(tokio::task::block_in_place(|| message.value(item)))
    }

    /// Sends a value. No more is held than that and [`REPLY_BYTES`](super::REPLY_BYTES).
    async fn send(&mut self, message: &mut Message<'_>, value: Value) -> io::Result<()> {
        match value {
            Value::Nil => self.server.bytes(b"NIL"),
            Value::Text(text) => self.pass(&text).await?,
            Value::Literal(bytes) => {
                self.server.bytes(format!("{{{}}}\r\n", bytes.len()).as_bytes());
                self.pass(&bytes).await?;
            }
            Value::Decoded { part, coding, skipped, length, is_binary } => {
                // Neither NUL nor a bare line end is content of a plain literal.
                let mark = if is_binary { "~" } else { "" };
                self.server.bytes(format!("{mark}{{{length}}}\r\n").as_bytes());
                self.stream_decoded(message, Decoding::new(coding, part.0, part.1), skipped, length).await?;
            }
            Value::Range(from, to) => {
                self.server.bytes(format!("{{{}}}\r\n", to - from).as_bytes());
                self.stream(message, from, to).await?;
            }
        }
        self.flush_much().await
    }

    /// Sends so many decoded bytes, which were counted before.
    async fn stream_decoded(
        &mut self,
        message: &mut Message<'_>,
        mut decoding: Decoding,
        mut skipped: u64,
        mut length: u64,
    ) -> io::Result<()> {
        while length > 0 {
            let piece =
                tokio::task::block_in_place(|| decoding.next(&mut |at, buffer: &mut [u8]| message.read(at, buffer)))?;
            if piece.is_empty() {
                return Err(io::Error::other("a part is shorter than it was"));
            }
            let from = usize::try_from(skipped).unwrap_or(usize::MAX).min(piece.len());
            let to = from.saturating_add(usize::try_from(length).unwrap_or(usize::MAX)).min(piece.len());
            (skipped, length) = (skipped - from as u64, length - (to - from) as u64);
            self.server.bytes(&piece[from..to]);
            self.flush_much().await?;
        }
        Ok(())
    }

    /// Sends a run of a message whose length was announced.
    async fn stream(&mut self, message: &mut Message<'_>, from: u64, to: u64) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut at = from;
        while at < to {
            let wanted = usize::try_from(to - at).unwrap_or(usize::MAX).min(chunk.len());
            let read = message.read_in_session(at, &mut chunk[..wanted])?;
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

impl<'a> Message<'a> {
    fn size(&self) -> u64 {
        self.state.message(self.entry.message.get()).map_or(0, |message| message.size)
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.body()?.read(offset, buffer).map_err(io::Error::other)
    }

    fn read_in_session(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.body()?.read_in_session(offset, buffer).map_err(io::Error::other)
    }

    fn body(&mut self) -> io::Result<&mut Body<'a>> {
        if self.body.is_none() {
            self.body = Body::open(self.store, self.entry.message.get());
        }
        self.body.as_mut().ok_or_else(|| io::Error::other("the message is gone"))
    }

    /// Whether an item is told without work, and without waiting for the disk.
    fn is_at_hand(&mut self, item: &FetchItem) -> bool {
        match item {
            FetchItem::Envelope | FetchItem::Body | FetchItem::BodyStructure => {
                if self.stored.is_none() {
                    self.stored = cached_digest(self.store, self.entry.message.get());
                }
                self.stored.as_ref().is_some_and(|stored| !stored.is_empty())
            }
            FetchItem::Section(_) | FetchItem::BinarySize(_) | FetchItem::Preview => false,
            _ => true,
        }
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

    fn known_text(&mut self, text: Text) -> io::Result<Value> {
        if let Some(stored) = self.stored.as_ref().and_then(|stored| text.of(stored)) {
            return Ok(Value::Text(stored.to_vec()));
        }
        let known = self.known()?;
        Ok(Value::Text(match text {
            Text::Envelope => known.envelope.clone(),
            Text::Body => known.body.clone(),
            Text::BodyStructure => known.body_structure.clone(),
        }))
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
                flags_of(self.mailbox, self.entry.flags, self.is_recent, &mut out);
                Ok(Value::Text(out))
            }
            FetchItem::Uid => text(self.uid.to_string()),
            FetchItem::InternalDate => text(format!("\"{}\"", date::internal(self.entry.date))),
            FetchItem::SaveDate => text(format!("\"{}\"", date::internal(self.entry.saved))),
            FetchItem::Size => text(self.size().to_string()),
            FetchItem::Modseq => text(format!("({})", self.entry.modseq)),
            FetchItem::EmailId => text(format!("({})", email_id(self.state, self.entry.message.get()))),
            FetchItem::ThreadId => match thread_id(self.state, self.entry.message.get()) {
                None => Ok(Value::Nil),
                Some(thread) => text(format!("({thread})")),
            },
            FetchItem::Envelope => self.known_text(Text::Envelope),
            FetchItem::Body => self.known_text(Text::Body),
            FetchItem::BodyStructure => self.known_text(Text::BodyStructure),
            FetchItem::Section(section) if section.item == Item::Binary => self.binary(section),
            FetchItem::Section(section) => self.section(section),
            FetchItem::BinarySize(path) => {
                let Some((part, coding)) = self.coded(path)? else { return Ok(Value::Nil) };
                text(self.count_decoded(part, coding)?.0.to_string())
            }
            FetchItem::Preview => {
                let mail = self.header(0, self.size().min(PREVIEW_BYTES_MAX))?;
                let mut out = Vec::new();
                response::string(decode::preview(&mail).as_bytes(), &mut out);
                Ok(Value::Text(out))
            }
        }
    }

    /// A part without its transfer coding, or a run of that.
    fn binary(&mut self, section: &Section) -> io::Result<Value> {
        let Some((part, coding)) = self.coded(&section.path)? else { return Ok(Value::Nil) };
        let (length, is_binary) = self.count_decoded(part, coding)?;
        let (skipped, most) = section.partial.map_or((0, None), |(origin, most)| (origin, most));
        let skipped = skipped.min(length);
        let length = (length - skipped).min(most.unwrap_or(u64::MAX));
        Ok(Value::Decoded { part, coding, skipped, length, is_binary })
    }

    /// Where a part is, and what its transfer coding is; of one that has parts, and of the message, none.
    fn coded(&mut self, path: &[u32]) -> io::Result<Option<((u64, u64), Coding)>> {
        if path.is_empty() {
            return Ok(Some(((0, self.size()), Coding::Identity)));
        }
        let Some(part) = self.known()?.root.at(path) else { return Ok(None) };
        let (header, body, end) = (part.header, part.body, part.end);
        let has_parts = part.is_message || !part.parts.is_empty();
        let header = self.header(header, body)?;
        let field = fields(&header).find_map(|field| {
            let colon = field.iter().position(|&byte| byte == b':')?;
            let is_it = field[..colon].trim_ascii_end().eq_ignore_ascii_case(b"content-transfer-encoding");
            is_it.then(|| field[colon + 1..].to_vec())
        });
        let declared = mime::value::transfer_coding(&field.unwrap_or_default());
        let coding = if has_parts { Some(Coding::Identity) } else { declared };
        let coding = coding.ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "unknown transfer coding"))?;
        Ok(Some(((body, end), coding)))
    }

    /// How long a part is without its coding, and whether a NUL is in it, or a line end that is not CRLF.
    fn count_decoded(&mut self, part: (u64, u64), coding: Coding) -> io::Result<(u64, bool)> {
        let mut decoding = Decoding::new(coding, part.0, part.1);
        let (mut length, mut is_binary, mut before) = (0, false, 0);
        loop {
            let piece = decoding.next(&mut |at, buffer: &mut [u8]| self.read(at, buffer))?;
            if piece.is_empty() {
                return Ok((length, is_binary || before == b'\r'));
            }
            length += piece.len() as u64;
            for byte in piece {
                is_binary |= byte == 0 || (byte == b'\n') != (before == b'\r') || (byte == b'\r' && before == b'\r');
                before = byte;
            }
        }
    }

    fn section(&mut self, section: &Section) -> io::Result<Value> {
        let Some((from, to)) = self.range(section)? else { return Ok(Value::Nil) };
        if let Part::Fields(wanted) = &section.part {
            let header = self.header(from, to)?;
            let picked = pick(&header, wanted);
            // Always a literal, as content is: clients expect it.
            return Ok(Value::Literal(match section.partial {
                Some((origin, length)) => clip(&picked, origin, length).to_vec(),
                None => picked,
            }));
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
        FetchItem::Preview => "PREVIEW",
        FetchItem::BinarySize(path) => {
            let path: Vec<String> = path.iter().map(u32::to_string).collect();
            return out.extend_from_slice(format!("BINARY.SIZE[{}]", path.join(".")).as_bytes());
        }
    };
    out.extend_from_slice(name.as_bytes());
}

/// The fields that are named, or all others, and the empty line if the header has one.
fn pick(header: &[u8], wanted: &[u8]) -> Vec<u8> {
    let open = wanted.iter().position(|&byte| byte == b'(').unwrap_or(0);
    let is_not = wanted[..open].to_ascii_uppercase().ends_with(b".NOT ");
    let names = wanted[open..].split(|byte| b" ()\"".contains(byte)).filter(|name| !name.is_empty());
    let names: Vec<&[u8]> = names.collect();
    let mut picked = Vec::new();
    let end = end_of_header(header, 0);
    for field in fields(&header[..end.unwrap_or(header.len())]) {
        let Some(colon) = field.iter().position(|&byte| byte == b':') else { continue };
        let name = field[..colon].trim_ascii_end();
        if names.iter().any(|known| known.eq_ignore_ascii_case(name)) != is_not {
            picked.extend_from_slice(field);
        }
    }
    if end.is_some() {
        picked.extend_from_slice(b"\r\n");
    }
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
        assert_eq!(pick(b"\r\n", b"HEADER.FIELDS (X)"), b"\r\n");
        assert_eq!(pick(b"From: a\r\nX: b\r\n", b"HEADER.FIELDS.NOT (X)"), b"From: a\r\n");
        assert_eq!(clip(b"abcdef", 2, Some(3)), b"cde");
        assert_eq!(clip(b"abcdef", 9, None), b"");
    }
}
