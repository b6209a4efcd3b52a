//! SEARCH: flags, dates and sizes from the snapshot; headers and texts from the [index](crate::indexing) of the account, and by reading
//! those messages that are not in it, or of which it cannot say.
//!
//! Strings are compared in letters of either case, as the index does. Headers are decoded first (RFC 2047); bodies
//! are searched as they stand, and then part by part with transfer coding and charset undone, where the message has at most
//! [`DECODED_BYTES_MAX`]. What is only in attachments is found by the index; where several words are to stand beside each other
//! there, an inspection looks, [`INSPECTIONS_MAX`] times in a search.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use keep::content::Reader as _;
use keep::view::{View, email_id, thread_id};
use keep::header::{bare_addresses, fields};
use memchr::memchr2_iter;
use proto::imap::date;
use proto::imap::search::Key;
use proto::imap::syntax::Set;
use store::{Entry, Flags, Mailbox, State, Uids};

use super::labour::Slice;
use crate::content::{self, Body};
use crate::digest::{Text, has_more_than_text};
use crate::indexing::{BEHIND_MAX, Found as Indexed, Lookup, Told, holds as inspection_holds};
use crate::site::{Site, seconds};
use crate::writer::Handle;

/// Bytes of a header that are looked at.
const HEADER_BYTES_MAX: usize = 256 << 10;

/// The largest message whose parts are decoded to be searched, in bytes: it is held.
const DECODED_BYTES_MAX: u64 = 16 << 20;

/// Messages that one search has inspected for a text which the index cannot tell of.
const INSPECTIONS_MAX: usize = 2_000;

const DAY: i64 = 86_400;

/// The messages that a client sees.
pub(super) struct Finder<'a> {
    site: &'a Site,
    store: &'a Handle,
    state: State,
    mailbox: Arc<Mailbox>,
    view: &'a View,
    now: i64,
    /// Sets of the search that is under way, in order.
    sets: RefCell<HashMap<usize, Uids>>,
    /// The index of the account, opened when it is first asked.
    index: OnceCell<Option<Lookup<'a>>>,
    /// What it has found of each key.
    indexed: RefCell<HashMap<usize, Option<Indexed>>>,
    /// Messages that were read since it knows nothing of them.
    behind: Cell<usize>,
    inspections: Cell<usize>,
    /// How many of the messages are behind it.
    at: usize,
    /// Texts that were looked for in the next message, and whether they are there.
    looked: RefCell<HashMap<usize, bool>>,
    /// Something was looked for in this slice.
    has_looked: Cell<bool>,
}

/// The slice is over in the midst of a message.
struct Pause;

/// One message.
pub(super) struct Seen<'a> {
    number: u32,
    uid: u32,
    entry: Entry,
    store: &'a Handle,
    state: &'a State,
    header: OnceCell<Vec<u8>>,
}

impl<'a> Finder<'a> {
    pub fn new(site: &'a Site, view: &'a View) -> Self {
        let store = &site.store;
        let state = store.state();
        let mailbox = state.mailbox(view.number).unwrap_or(&view.mailbox).clone();
        Finder {
            site,
            store,
            state,
            mailbox,
            view,
            now: seconds(),
            sets: RefCell::default(),
            index: OnceCell::new(),
            indexed: RefCell::default(),
            behind: Cell::default(),
            inspections: Cell::default(),
            at: 0,
            looked: RefCell::default(),
            has_looked: Cell::default(),
        }
    }

    /// Goes on, and hands out those that fit; true when there are no more. In each slice something is done: a message is behind it, or
    /// a text was looked for in one.
    pub fn go_on(&mut self, key: &Key, slice: &Slice, mut found: impl FnMut(&Seen<'_>)) -> bool {
        self.has_looked.set(false);
        let rest = self.view.uids.get(self.at..).unwrap_or_default();
        let mut entries = self.mailbox.from(rest.first().copied().unwrap_or(u32::MAX)).peekable();
        for (at, &uid) in (self.at..).zip(rest) {
            while entries.next_if(|(known, _)| *known < uid).is_some() {}
            if let Some((_, &entry)) = entries.next_if(|(known, _)| *known == uid) {
                let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
                let (store, state, header) = (self.store, &self.state, OnceCell::new());
                let message = Seen { number, uid, entry, store, state, header };
                match self.fits(&message, key, slice) {
                    Ok(true) => found(&message),
                    Ok(false) => {}
                    Err(Pause) => {
                        self.at = at;
                        return false;
                    }
                }
                self.looked.borrow_mut().clear();
            }
            if slice.is_over() {
                self.at = at + 1;
                return false;
            }
        }
        true
    }

    /// A set of many runs is put in order once, not for each message.
    fn is_in(&self, set: &Set, last: u32, message: &Seen<'_>, by_uid: bool) -> bool {
        if set.is_saved() {
            return self.view.saved.contains(message.uid);
        }
        let number = if by_uid { message.uid } else { message.number };
        let mut sets = self.sets.borrow_mut();
        let ordered = sets.entry(std::ptr::from_ref(set).addr()).or_insert_with(|| set.runs(last).collect());
        ordered.contains(number)
    }

    fn fits(&self, message: &Seen<'_>, key: &Key, slice: &Slice) -> Result<bool, Pause> {
        let entry = &message.entry;
        Ok(match key {
            Key::And(keys) => {
                for key in keys {
                    if !self.fits(message, key, slice)? {
                        return Ok(false);
                    }
                }
                true
            }
            Key::Or(keys) => self.fits(message, &keys.0, slice)? || self.fits(message, &keys.1, slice)?,
            Key::Not(key) => !self.fits(message, key, slice)?,
            Key::Messages(set) => {
                let last = u32::try_from(self.view.uids.len()).unwrap_or(u32::MAX);
                self.is_in(set, last, message, false)
            }
            Key::Uids(set) => self.is_in(set, self.view.uids.last().copied().unwrap_or(0), message, true),
            Key::Flag(bit) => entry.flags.has(*bit),
            Key::Keyword(name) => {
                let at = self.mailbox.keywords.iter().position(|known| known.eq_ignore_ascii_case(name));
                at.is_some_and(|at| entry.flags.has(1 << (Flags::KEYWORDS_AT as usize + at)))
            }
            Key::Recent => self.view.recent.contains(message.uid),
            Key::Arrived(from, to) => (*from..*to).contains(&entry.date.div_euclid(DAY)),
            Key::Saved(from, to) => (*from..*to).contains(&entry.saved.div_euclid(DAY)),
            Key::Sent(from, to) => message
                .field(b"date")
                .any(|value| date::parse_sent(&value).is_some_and(|day| (*from..*to).contains(&day))),
            Key::Younger(seconds) => self.now.saturating_sub(entry.date) <= i64::try_from(*seconds).unwrap_or(i64::MAX),
            Key::Larger(bytes) => message.size() > *bytes,
            Key::Smaller(bytes) => message.size() < *bytes,
            Key::Header(..) | Key::Body(_) | Key::Text(_) => return self.has_text(message, key, slice),
            Key::Modseq(modseq) => entry.modseq >= *modseq,
            Key::EmailId(id) => message.email_id().as_bytes() == id,
            Key::ThreadId(id) => message.thread_id().is_some_and(|known| known.as_bytes() == id),
        })
    }

    /// Looks for a text in a message, once, however often the message is begun with.
    fn has_text(&self, message: &Seen<'_>, key: &Key, slice: &Slice) -> Result<bool, Pause> {
        let place = std::ptr::from_ref(key).addr();
        if let Some(&has) = self.looked.borrow().get(&place) {
            return Ok(has);
        }
        if self.has_looked.get() && slice.is_over() {
            return Err(Pause);
        }
        let has = self.looks(message, key);
        self.has_looked.set(true);
        self.looked.borrow_mut().insert(place, has);
        Ok(has)
    }

    fn looks(&self, message: &Seen<'_>, key: &Key) -> bool {
        let entry = &message.entry;
        match key {
            Key::Header(name, text) => match self.told(key, entry) {
                Told::Absent => false,
                Told::Present => true,
                Told::Maybe | Told::Unknown => message.field(name).any(|value| {
                    let decoded = mime::header_text(&value, usize::MAX);
                    text_holds(&decoded, text) || (is_of_addresses(name) && an_address_holds(&value, text))
                }),
            },
            Key::Body(text) => match self.told(key, entry) {
                Told::Absent => false,
                Told::Present => true,
                Told::Maybe => {
                    message.body_holds(text, message.header().len()) || self.an_attachment_holds(message, text)
                }
                Told::Unknown => message.body_holds(text, message.header().len()),
            },
            Key::Text(text) => match self.told(key, entry) {
                Told::Absent => false,
                Told::Present => true,
                Told::Maybe => message.holds(text) || self.an_attachment_holds(message, text),
                Told::Unknown => message.holds(text),
            },
            _ => false,
        }
    }

    /// What the index says of the text of this key.
    fn told(&self, key: &Key, entry: &Entry) -> Told {
        let found = self.index().and_then(|index| {
            let mut indexed = self.indexed.borrow_mut();
            let found = indexed.entry(std::ptr::from_ref(key).addr()).or_insert_with(|| match key {
                Key::Header(name, text) => index.in_header(name, text),
                Key::Body(text) => index.in_body(text),
                Key::Text(text) => index.anywhere(text),
                _ => None,
            });
            found.as_ref().map(|found| index.tells(entry.message.get(), found))
        });
        // A text that no index knows says nothing of it.
        if !self.index().is_some_and(|index| index.has(entry.message.get())) {
            self.behind.set(self.behind.get() + 1);
        }
        found.unwrap_or(Told::Unknown)
    }

    fn index(&self) -> Option<&Lookup<'a>> {
        let open = || {
            self.site.inspector.as_ref()?;
            // What cannot be opened is made again by who brings it up to date.
            Lookup::open(self.store, &self.state, self.mailbox.account).unwrap_or(None)
        };
        self.index.get_or_init(open).as_ref()
    }

    /// Whether a text is somewhere that only an inspection reads.
    fn an_attachment_holds(&self, message: &Seen<'_>, text: &[u8]) -> bool {
        let (Some(inspector), Ok(text)) = (&self.site.inspector, std::str::from_utf8(text)) else { return false };
        if self.inspections.get() >= INSPECTIONS_MAX || !message.has_more_than_text() {
            return false;
        }
        self.inspections.set(self.inspections.get() + 1);
        let Some(mut body) = Body::open(self.store, message.entry.message.get()) else { return false };
        tokio::runtime::Handle::current().block_on(inspection_holds(&**inspector, &mut body, text))
    }
}

/// An account of which too much is in no index is brought up to date.
impl Drop for Finder<'_> {
    fn drop(&mut self) {
        let index = self.index.get().and_then(Option::as_ref);
        let is_damaged = index.is_some_and(Lookup::is_damaged);
        // More than half of what is in it is gone.
        let links = self.state.account(self.mailbox.account).map_or(0, |account| account.used_messages);
        let is_stale = index.is_some_and(|index| index.len() as u64 / 2 > links + BEHIND_MAX as u64);
        if self.site.inspector.is_some() && (is_damaged || is_stale || self.behind.get() >= BEHIND_MAX) {
            self.site.behind.add(self.mailbox.account, is_damaged);
        }
    }
}

impl Seen<'_> {
    fn a_part_holds(&self, body: &mut Body<'_>, text: &[u8]) -> bool {
        if std::str::from_utf8(text).is_err() || self.size() > DECODED_BYTES_MAX {
            return false;
        }
        let mut mail = vec![0; usize::try_from(self.size()).unwrap_or(0)];
        let mut done = 0;
        while done < mail.len() {
            match body.read(done as u64, &mut mail[done..]) {
                Ok(length @ 1..) => done += length,
                _ => return false,
            }
        }
        if !may_hide(&mail) && text.is_ascii() {
            return false;
        }
        use sieve::View as _;
        let parts = sieve::Mail::new(&mail, mail.len() as u64).parts();
        let mut texts = parts.iter().filter(|part| part.kind.starts_with("text/") || part.kind == "message/rfc822");
        texts.any(|part| {
            let holds = |content: &str| text_holds(content, text);
            holds(&part.content) || (part.kind == "text/html" && holds(&words_of_page(&part.content)))
        })
    }

    /// Whether it has other parts than plain text, as far as is known of it.
    fn has_more_than_text(&self) -> bool {
        let digest = content::digest(self.store, self.entry.message.get()).unwrap_or_default();
        Text::BodyStructure.of(&digest).is_none_or(has_more_than_text)
    }

    /// Whether a text is in its header or behind it.
    fn holds(&self, text: &[u8]) -> bool {
        let decoded = mime::header_text(&mime::unfolded(self.header()), usize::MAX);
        text_holds(&decoded, text) || self.body_holds(text, 0)
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn uid(&self) -> u32 {
        self.uid
    }

    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    pub fn size(&self) -> u64 {
        self.state.message(self.entry.message.get()).map_or(0, |message| message.size)
    }

    fn email_id(&self) -> String {
        email_id(self.state, self.entry.message.get())
    }

    fn thread_id(&self) -> Option<String> {
        thread_id(self.state, self.entry.message.get())
    }

    /// Up to the empty line.
    fn header(&self) -> &[u8] {
        self.header.get_or_init(|| {
            let mut header = Vec::new();
            if let Some(mut body) = Body::open(self.store, self.entry.message.get()) {
                // Of what is damaged, what stands before it is searched.
                let _ = body.read_header(HEADER_BYTES_MAX, &mut header);
            }
            header
        })
    }

    /// The values of the fields with this name, unfolded.
    pub fn field<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = Vec<u8>> + 'a {
        fields(self.header()).filter_map(move |field| {
            let colon = field.iter().position(|&byte| byte == b':')?;
            let is_it = field[..colon].trim_ascii_end().eq_ignore_ascii_case(name);
            is_it.then(|| mime::unfolded(&field[colon + 1..]).trim_ascii().to_vec())
        })
    }

    fn body_holds(&self, text: &[u8], from: usize) -> bool {
        if text.is_empty() {
            return true;
        }
        let Some(mut body) = Body::open(self.store, self.entry.message.get()) else { return false };
        let mut window = Window::new(text);
        let mut offset = from as u64;
        loop {
            let piece = body.piece(offset).unwrap_or_default();
            if piece.is_empty() {
                return self.a_part_holds(&mut body, text);
            }
            if window.holds(piece) {
                return true;
            }
            offset += piece.len() as u64;
        }
    }
}

/// Looks for a text that is not empty in pieces that follow one another. A piece is searched where it is; of the one before it the end
/// is kept, for what begins in it.
struct Window<'a> {
    text: &'a [u8],
    kept: Vec<u8>,
}

impl<'a> Window<'a> {
    fn new(text: &'a [u8]) -> Self {
        Window { text, kept: Vec::new() }
    }

    /// Whether it stands in this piece, or begins in those before and ends in this one.
    fn holds(&mut self, piece: &[u8]) -> bool {
        if holds(piece, self.text) {
            return true;
        }
        let overlap = self.text.len().saturating_sub(1);
        self.kept.extend_from_slice(&piece[..piece.len().min(overlap)]);
        if holds(&self.kept, self.text) {
            return true;
        }
        if piece.len() > overlap {
            self.kept.clear();
            self.kept.extend_from_slice(&piece[piece.len() - overlap..]);
        }
        self.kept.drain(..self.kept.len().saturating_sub(overlap));
        false
    }
}

/// Whether a transfer coding, a charset or the tags of a page may hide a text from those who read bytes.
fn may_hide(mail: &[u8]) -> bool {
    ["base64", "quoted-printable", "charset", "text/html"].iter().any(|word| holds(mail, word.as_bytes()))
}

pub(super) fn asks_for_modseq(key: &Key) -> bool {
    match key {
        Key::And(keys) => keys.iter().any(asks_for_modseq),
        Key::Or(keys) => asks_for_modseq(&keys.0) || asks_for_modseq(&keys.1),
        Key::Not(key) => asks_for_modseq(key),
        Key::Modseq(_) => true,
        _ => false,
    }
}

fn is_of_addresses(name: &[u8]) -> bool {
    ["from", "to", "cc", "bcc", "sender", "reply-to"].iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// Whether one of the addresses in angle brackets holds it when comments and blanks are left out.
fn an_address_holds(value: &[u8], text: &[u8]) -> bool {
    bare_addresses(value).any(|address| holds(&address, text))
}

/// The words of a page with one blank between them, as it is seen.
fn words_of_page(page: &str) -> String {
    sieve::mail::of_html(page).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether `text` stands in a text that was decoded, in letters of either case, as the index has them.
fn text_holds(decoded: &str, text: &[u8]) -> bool {
    if holds(decoded.as_bytes(), text) {
        return true;
    }
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let is_plain = decoded.is_ascii() && text.is_ascii();
    !is_plain && index::lowered(decoded).contains(&index::lowered(text))
}

/// Whether `text` stands in `bytes`, in ASCII letters of either case.
fn holds(bytes: &[u8], text: &[u8]) -> bool {
    let Some(first) = text.first().map(u8::to_ascii_lowercase) else { return true };
    let places = memchr2_iter(first, first.to_ascii_uppercase(), bytes);
    let mut candidates = places.map_while(|at| bytes.get(at..at + text.len()));
    candidates.any(|candidate| candidate.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_whatever_stands_between_their_parts() {
        let field = b"Tim <tim (at home)@ (of) example.org>, <ann@example.net>";
        assert!(an_address_holds(field, b"TIM@example.org") && an_address_holds(field, b"ann@"));
        assert!(!an_address_holds(field, b"home") && !an_address_holds(field, b"organn"));
        assert!(!an_address_holds(b"tim@example.org (<", b"tim@example.org"));
    }

    #[test]
    fn a_text_is_found_however_it_is_cut() {
        let mail = b"ab needLe cd";
        for text in [&b"NEEDLE"[..], b"a", b"d", b"e", b"b needle c", mail] {
            for size in 1..=mail.len() {
                let mut window = Window::new(text);
                assert!(mail.chunks(size).any(|piece| window.holds(piece)), "{size}");
                for cut in 1..mail.len() {
                    let mut window = Window::new(text);
                    let (first, second) = mail.split_at(cut);
                    assert!(window.holds(first) || window.holds(second), "{cut}");
                }
            }
        }
        for text in [&b"needlecd"[..], b"abneed", b"ab needle cde", b"dl"] {
            for size in 1..=mail.len() {
                let mut window = Window::new(text);
                assert_eq!(mail.chunks(size).any(|piece| window.holds(piece)), text == b"dl", "{size}");
            }
        }
    }

    #[test]
    fn texts_are_found_in_any_case() {
        assert!(holds(b"xxHeLLo", b"hello") && holds(b"", b"") && holds(b"aab", b"AB"));
        assert!(!holds(b"hell", b"hello") && !holds(b"", b"a"));
        for (text, wanted) in
            [("Größe", "GRÖßE"), ("ΟΔΟΣ", "οδος"), ("οδός", "ΟΔΌΣ"), ("ЖУК", "жук"), ("İzmir", "izmir")]
        {
            assert!(text_holds(text, wanted.as_bytes()) && text_holds(wanted, text.as_bytes()), "{text} {wanted}");
        }
        assert!(!text_holds("grün", "gruen".as_bytes()));
    }
}
