//! FETCH: digests are copied, and content is streamed.
//!
//! Items that read or parse a message take turns with other accounts, a slice of work at a time ([`Working`]). Flags, dates,
//! numbers and small digests need no turn. No turn is held while the client is waited for.

use std::io;
use std::sync::Arc;

use keep::digest::Text;
use keep::fetch::{self, Reply, Running, Share, Unread};
use keep::view::{email_id, thread_id};
use proto::imap::acl::Rights;
use proto::imap::items::FetchItem;
use proto::imap::url::Url;
use proto::imap::{Item, Part, Section, response};
use store::{Change, Entry, Error, Flags, Mailbox, Refused, State, Uids};
use text::date;
use tokio::task::{block_in_place, yield_now};

use super::render::{self, flags_of};
use super::{Done, REPLY_BYTES, Refusal, Session, done, no};
use crate::content::Standing;
use crate::labour::{Slice, turn};
use crate::site::Site;
use crate::turns::{Turn, Turns};
use crate::wire::Stream;
use crate::writer::Handle;

/// Bytes of a message read at a time.
const CHUNK_BYTES: usize = 32 << 10;

/// Bytes of a digest that is copied without a turn.
const SMALL_BYTES: usize = 16 << 10;

/// A message that is told.
struct Message<'a> {
    content: fetch::Message<'a, Standing<'a>>,
    state: &'a State,
    mailbox: &'a Mailbox,
    uid: u32,
    is_recent: bool,
    entry: Entry,
}

/// How much of a message was told.
enum Told {
    Whole,
    /// It was expunged meanwhile, and something else stands in its place.
    Gone,
    Broken,
    UnknownCoding,
}

/// A turn of a FETCH, which goes on with further items until its slice is over.
struct Working {
    effort: Effort,
    slice: Slice,
    _turn: Turn<u32>,
}

/// The effort that an item takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// None.
    No,
    /// A digest that is in memory is copied.
    Copy,
    /// A message is read, maybe from the disk.
    Read,
    /// A message is parsed.
    Parse,
}

impl Effort {
    fn of(item: &FetchItem) -> Effort {
        match item {
            FetchItem::Envelope | FetchItem::Body | FetchItem::BodyStructure => Effort::Copy,
            FetchItem::Section(given) if given.item != Item::Binary => Effort::Read,
            FetchItem::Section(_) | FetchItem::BinarySize(_) | FetchItem::Preview => Effort::Parse,
            _ => Effort::No,
        }
    }

    /// The turns that it takes: reading waits for the disk, the rest takes a processor.
    fn turns(self, site: &Site) -> &Arc<Turns<u32>> {
        match self {
            Effort::Read => &site.readers,
            _ => &site.workers,
        }
    }
}

/// Value of a FETCH item.
enum Value {
    Text(Vec<u8>),
    Content(Reply),
}

impl Value {
    /// Bytes that are sent of it in one go; content that is streamed is more than a reply holds.
    fn bytes(&self) -> usize {
        match self {
            Value::Text(bytes) | Value::Content(Reply::Bytes(bytes)) => bytes.len(),
            Value::Content(Reply::Missing) => 0,
            Value::Content(Reply::Run(..) | Reply::Decoded(_)) => REPLY_BYTES,
        }
    }
}

/// A run of bytes of a message that a URL names, being read.
pub(super) struct Source<'a> {
    content: fetch::Message<'a, Handle>,
    at: u64,
    end: u64,
}

impl<'a> Source<'a> {
    /// None if nothing is there.
    pub fn find(store: &'a Handle, state: &State, account: u32, url: &Url) -> Option<Source<'a>> {
        let (_, mailbox) = state.mailbox_named(account, &url.mailbox)?;
        let is_same = url.uid_validity.is_none_or(|validity| validity == mailbox.uid_validity);
        let entry = mailbox.entry(url.uid).filter(|_| is_same)?;
        let mut content = fetch::Message::new(store, state, entry.message.get());
        match block_in_place(|| content.section(&section(&url.section))) {
            Ok(Reply::Run(at, end)) => Some(Source { content, at, end }),
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
        let read = self.content.read(self.at, &mut buffer[..length]).map_err(io::Error::other)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<S: Stream> Session<'_, S> {
    pub(super) async fn fetch(
        &mut self,
        by_uid: bool,
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
        if changed_since.is_none() && items.contains(&FetchItem::Flags) && items.iter().any(marks_seen) {
            // `\Seen` is told among the flags that are asked for, and not once more behind them.
            self.tell_until(&state, false, Some(&uids)).await?;
        }
        let Some(mailbox) = state.mailbox(number) else { return Err(no("[NONEXISTENT] The mailbox is gone")) };
        let messages = Standing::new(&self.site.store, &state);
        let (mut is_gone, mut is_broken, mut is_unknown) = (false, false, false);
        let mut working = None;
        for uid in uids {
            let Some(entry) = mailbox.entry(uid).copied() else {
                // A UID of no message is no error (RFC 9051, section 6.4.9), and EXPUNGE follows.
                is_gone |= !by_uid;
                continue;
            };
            if changed_since.is_some_and(|since| entry.modseq <= since) {
                continue;
            }
            let Some(view) = &self.selected else { break };
            let Some(number) = view.number_of(uid) else { continue };
            let is_recent = render::is_recent(view, uid, self.enabled);
            let content = fetch::Message::new(&messages, &state, entry.message.get());
            let mut message = Message { content, state: &state, mailbox, uid, is_recent, entry };
            match self.tell_message(number, &mut message, items, &mut working).await? {
                Told::Whole => {}
                Told::Gone => is_gone = true,
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
        working: &mut Option<Working>,
    ) -> Result<Told, Refusal> {
        let (mut told, mut is_first) = (Told::Whole, true);
        let mut rest = items;
        while !rest.is_empty() {
            let values = self.values(message, rest, working).await?;
            let (these, behind) = rest.split_at(values.len().clamp(1, rest.len()));
            rest = behind;
            for (item, value) in these.iter().zip(values) {
                let value = match value {
                    Ok(value) => value,
                    Err(Unread::UnknownCoding) => {
                        told = Told::UnknownCoding;
                        continue;
                    }
                    Err(Unread::Gone | Unread::Store(Error::Moved | Error::Refused(Refused::NoSuchMessage))) => {
                        told = Told::Gone;
                        continue;
                    }
                    Err(error) => {
                        tracing::error!(message = message.content.number(), %error, "a message cannot be read");
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
                if self.server.outbox().len() + value.bytes() >= REPLY_BYTES {
                    *working = None;
                }
                self.send(message, value).await?;
            }
        }
        // A message of which nothing can be told is not told.
        if !is_first {
            self.server.bytes(b")\r\n");
        }
        if self.server.outbox().len() >= REPLY_BYTES {
            *working = None;
            self.flush_much().await?;
            // A long reply goes on in turns with other accounts, however little work its items are.
            yield_now().await;
            *working = Some(self.working(Effort::Copy).await?);
        }
        Ok(told)
    }

    /// The values of the first of these items, as many as are made in one go. Work and waits for the disk take turns with other
    /// accounts.
    async fn values(
        &mut self,
        message: &mut Message<'_>,
        items: &[FetchItem],
        working: &mut Option<Working>,
    ) -> Result<Vec<Result<Value, Unread>>, Refusal> {
        let Some(first) = items.first() else { return Ok(Vec::new()) };
        let effort = message.effort(first);
        if effort == Effort::No {
            return Ok(vec![message.value(first)]);
        }
        if working.as_ref().is_none_or(|work| {
            !Arc::ptr_eq(work.effort.turns(self.site), effort.turns(self.site)) || work.slice.is_over()
        }) {
            *working = None;
            *working = Some(self.working(effort).await?);
        }
        let Some(work) = working else { return Ok(Vec::new()) };
        Ok(match effort {
            Effort::Copy => vec![message.value(first)],
            _ => block_in_place(|| message.values(items, effort, &work.slice)),
        })
    }

    /// Waits for a turn.
    async fn working(&mut self, effort: Effort) -> Result<Working, Refusal> {
        let (account, is_new) = (self.user()?.number, self.is_new());
        let turn = turn(self.site, &mut self.wire, effort.turns(self.site), account, is_new).await?;
        Ok(Working { effort, slice: Slice::begin(), _turn: turn })
    }

    /// Sends a value. No more is held than that and [`REPLY_BYTES`](super::REPLY_BYTES).
    async fn send(&mut self, message: &mut Message<'_>, value: Value) -> io::Result<()> {
        match value {
            Value::Text(text) => self.pass(&text).await?,
            Value::Content(Reply::Missing) => self.server.bytes(b"NIL"),
            Value::Content(Reply::Bytes(mut bytes)) => {
                without_nul(&mut bytes);
                self.server.bytes(format!("{{{}}}\r\n", bytes.len()).as_bytes());
                self.pass(&bytes).await?;
            }
            Value::Content(Reply::Decoded(run)) => {
                // Neither NUL nor a bare line end is content of a plain literal.
                let mark = if run.is_binary { "~" } else { "" };
                self.server.bytes(format!("{mark}{{{}}}\r\n", run.length).as_bytes());
                self.stream_decoded(message, Running::new(&run)).await?;
            }
            Value::Content(Reply::Run(from, to)) => {
                self.server.bytes(format!("{{{}}}\r\n", to - from).as_bytes());
                self.stream(message, from, to).await?;
            }
        }
        self.flush_much().await
    }

    /// Sends decoded bytes, which were counted before.
    async fn stream_decoded(&mut self, message: &mut Message<'_>, mut running: Running) -> io::Result<()> {
        let account = self.user.as_ref().map_or(0, |user| user.number);
        loop {
            let turn = turn(self.site, &mut self.wire, &self.site.workers, account, true).await?;
            let piece = block_in_place(|| running.next(&mut message.content)).map_err(io::Error::other)?;
            drop(turn);
            if piece.is_empty() {
                return Ok(());
            }
            self.server.bytes(&piece);
            self.flush_much().await?;
        }
    }

    /// Sends a run of a message whose length was announced.
    async fn stream(&mut self, message: &mut Message<'_>, from: u64, to: u64) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut at = from;
        while at < to {
            let wanted = usize::try_from(to - at).unwrap_or(usize::MAX).min(chunk.len());
            let reader = message.content.reader().map_err(io::Error::other)?;
            let read = reader.read_in_session(at, &mut chunk[..wanted]).map_err(io::Error::other)?;
            if read == 0 {
                return Err(io::Error::other(Unread::Short));
            }
            at += read as u64;
            without_nul(&mut chunk[..read]);
            self.server.bytes(&chunk[..read]);
            self.flush_much().await?;
        }
        Ok(())
    }
}

impl Message<'_> {
    /// The effort that an item takes: one of the digest is copied if that is in memory.
    fn effort(&mut self, item: &FetchItem) -> Effort {
        match Effort::of(item) {
            Effort::Copy if !self.content.has_digest(Standing::cached_digest) => Effort::Parse,
            Effort::Copy if self.content.digest_bytes() <= SMALL_BYTES => Effort::No,
            effort => effort,
        }
    }

    /// The values of the first of these items: up to one of another effort, one that is streamed, a reply's worth, or the end of
    /// the slice.
    fn values(&mut self, items: &[FetchItem], effort: Effort, slice: &Slice) -> Vec<Result<Value, Unread>> {
        let (mut values, mut bytes) = (Vec::new(), 0);
        for item in items {
            if !values.is_empty() && (self.effort(item) != effort || bytes >= REPLY_BYTES || slice.is_over()) {
                break;
            }
            let value = self.value(item);
            bytes += value.as_ref().map_or(0, Value::bytes);
            values.push(value);
        }
        values
    }

    fn value(&mut self, item: &FetchItem) -> Result<Value, Unread> {
        let number = self.content.number();
        let text = |text: String| Value::Text(text.into_bytes());
        Ok(match item {
            FetchItem::Flags => {
                let mut out = Vec::new();
                flags_of(self.mailbox, self.entry.flags, self.is_recent, &mut out);
                Value::Text(out)
            }
            FetchItem::Uid => text(self.uid.to_string()),
            FetchItem::InternalDate => text(format!("\"{}\"", date::internal(self.entry.date))),
            FetchItem::SaveDate => text(format!("\"{}\"", date::internal(self.entry.saved))),
            FetchItem::Size => text(self.content.size().to_string()),
            FetchItem::Modseq => text(format!("({})", self.entry.modseq)),
            FetchItem::EmailId => text(format!("({})", email_id(self.state, number))),
            FetchItem::ThreadId => match thread_id(self.state, number) {
                None => Value::Content(Reply::Missing),
                Some(thread) => text(format!("({thread})")),
            },
            FetchItem::Envelope => Value::Text(self.content.text(Text::Envelope)?),
            FetchItem::Body => Value::Text(self.content.text(Text::Body)?),
            FetchItem::BodyStructure => Value::Text(self.content.text(Text::BodyStructure)?),
            FetchItem::Section(given) if given.item == Item::Binary => {
                Value::Content(self.content.decoded(&given.path, given.partial)?)
            }
            FetchItem::Section(given) => Value::Content(self.content.section(&section(given))?),
            FetchItem::BinarySize(path) => match self.content.decoded_size(path)? {
                None => Value::Content(Reply::Missing),
                Some(size) => text(size.to_string()),
            },
            FetchItem::Preview => {
                let mut out = Vec::new();
                response::string(self.content.preview()?.as_bytes(), &mut out);
                Value::Text(out)
            }
        })
    }
}

/// A section as the keep has it.
fn section(given: &Section) -> fetch::Section {
    let share = match &given.part {
        Part::All => Share::All,
        Part::Header => Share::Header,
        Part::Fields(text) => named(text),
        Part::Text => Share::Text,
        Part::Mime => Share::Mime,
    };
    fetch::Section { path: given.path.clone(), share, range: given.partial }
}

/// `HEADER.FIELDS (From To)`, or `HEADER.FIELDS.NOT`.
fn named(text: &[u8]) -> Share {
    let open = text.iter().position(|&byte| byte == b'(').unwrap_or(0);
    let is_not = text[..open].to_ascii_uppercase().ends_with(b".NOT ");
    let names = text[open..].split(|byte| b" ()\"".contains(byte)).filter(|name| !name.is_empty());
    Share::Fields { names: names.map(<[u8]>::to_vec).collect(), is_not }
}

/// Replaces NUL, which a plain literal cannot have (RFC 9051, section 4.3), by what other servers send for it.
fn without_nul(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = 0x80);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fields_are_read() {
        let fields = |names: &[&str], is_not| {
            let names = names.iter().map(|name| name.as_bytes().to_vec()).collect();
            Share::Fields { names, is_not }
        };
        assert_eq!(named(b"HEADER.FIELDS (FROM \"to\")"), fields(&["FROM", "to"], false));
        assert_eq!(named(b"header.fields.not (From To)"), fields(&["From", "To"], true));
    }
}
