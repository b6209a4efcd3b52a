//! A segment: documents, and for each term those that it stands in. Numbers are little-endian.
//!
//! ```text
//!  "SlIx" · version · how many documents · bytes of them │ documents │ block │ block │ …
//!  block: field · bytes of terms · how many · bytes of lengths · bytes of lists │ terms │ lengths │ lists
//! ```
//!
//! Documents ascend by number; each is the distance to the one before, times two, and one more if it is partial. The terms of a
//! block are of one field, ascend, and stand between line feeds. A list is the places of documents, each the distance to the one
//! before. Distances and lengths are numbers of seven bits a byte.
//!
//! Terms stand apart from lists, so that a search reads all of the former and few of the latter.

use alloc::vec::Vec;
use core::fmt;

use memchr::memchr_iter;

use crate::codec::{put, take};
use crate::query::{Part, Query};

pub(crate) const MAGIC: [u8; 4] = *b"SlIx";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 16;
const BLOCK_HEADER_BYTES: usize = 20;

/// Terms of a block, in bytes, after which another one begins.
const TERMS_BYTES: usize = 32 << 10;
/// Lists of a block, in bytes, after which another one begins.
const LISTS_BYTES: usize = 128 << 10;

/// Maximum length of one read. A list of more than four million documents is damage.
const PIECE_BYTES_MAX: u32 = 32 << 20;

/// Where segments are read from.
pub trait Source {
    /// Why it cannot be read.
    type Error;

    /// Its length, in bytes.
    fn len(&self) -> u64;

    /// Whether there is nothing.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` from an offset.
    ///
    /// # Errors
    /// The source cannot be read, or ends before.
    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> Result<(), Self::Error>;
}

impl Source for &[u8] {
    type Error = ();

    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> Result<(), ()> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).ok_or(())?;
        buffer.copy_from_slice(rest.get(..buffer.len()).ok_or(())?);
        Ok(())
    }
}

/// Why a segment cannot be searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong<E> {
    /// The source of the segment fails.
    Source(E),
    /// Not a segment, or one of another version.
    Malformed,
}

impl<E: fmt::Display> fmt::Display for Wrong<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Source(error) => error.fmt(f),
            Wrong::Malformed => f.write_str("a segment of the index is malformed"),
        }
    }
}

/// Field in which a term occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "their names are those of header fields")]
pub enum Field {
    Subject = 1,
    From = 2,
    To = 3,
    Cc = 4,
    /// Any other header field.
    Other = 5,
    /// Everything behind the header.
    Body = 6,
}

impl Field {
    /// All of them, in order.
    pub const ALL: [Field; 6] = [Field::Subject, Field::From, Field::To, Field::Cc, Field::Other, Field::Body];

    fn of(number: u8) -> Option<Field> {
        Field::ALL.into_iter().find(|field| *field as u8 == number)
    }
}

/// A document of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Document {
    /// Its number.
    pub number: u64,
    /// Not all of its terms are here: it may hold anything.
    pub is_partial: bool,
}

/// Places of documents that were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bits(Vec<u64>);

impl Bits {
    fn new(documents: usize) -> Bits {
        Bits(alloc::vec![0; documents.div_ceil(64)])
    }

    fn set(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    fn keep(&mut self, other: &Bits) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= other);
    }

    /// Whether a place is among them.
    pub fn has(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    /// All of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        (0..self.0.len().saturating_mul(64)).filter(|at| self.has(*at))
    }
}

/// A segment that is open.
#[derive(Debug)]
pub struct Segment<S> {
    source: S,
    documents: Vec<Document>,
    /// Where its first block is.
    first: u64,
}

/// Header of a block.
#[derive(Debug, Clone, Copy)]
struct BlockHeader {
    field: Field,
    terms_bytes: u32,
    count: u32,
    lengths_bytes: u32,
    lists_bytes: u32,
}

impl<S: Source> Segment<S> {
    /// Reads the documents of a segment.
    ///
    /// # Errors
    /// The source cannot be read, or is not a segment.
    pub fn open(mut source: S) -> Result<Segment<S>, Wrong<S::Error>> {
        let mut header = [0; HEADER_BYTES];
        read(&mut source, 0, &mut header)?;
        let [magic, version, count, bytes] = words(&header);
        if magic != u32::from_le_bytes(MAGIC) || version != VERSION || bytes > PIECE_BYTES_MAX || count > bytes {
            return Err(Wrong::Malformed);
        }
        let table = piece(&mut source, HEADER_BYTES as u64, bytes)?;
        let documents = read_documents(&table).filter(|documents| documents.len() == count as usize);
        let first = (HEADER_BYTES as u64).saturating_add(bytes.into());
        Ok(Segment { source, documents: documents.ok_or(Wrong::Malformed)?, first })
    }

    /// Its documents, ascending by number.
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// Returns the positions of documents that may have the query in one of `fields`, partial documents included.
    ///
    /// # Errors
    /// The segment cannot be read, or is damaged.
    pub fn search(&mut self, fields: &[Field], query: &Query) -> Result<Bits, Wrong<S::Error>> {
        let mut found: Vec<Bits> = query.parts.iter().map(|_| Bits::new(self.documents.len())).collect();
        let mut at = self.first;
        while let Some(header) = block(&mut self.source, at)? {
            if fields.contains(&header.field) {
                self.search_block(at, header, &query.parts, &mut found)?;
            }
            at = header.end(at);
        }
        let mut all = Bits::new(self.documents.len());
        (0..self.documents.len()).for_each(|at| all.set(at));
        found.iter().for_each(|part| all.keep(part));
        let partial = self.documents.iter().enumerate().filter(|(_, document)| document.is_partial);
        partial.for_each(|(at, _)| all.set(at));
        Ok(all)
    }

    fn search_block(
        &mut self,
        at: u64,
        header: BlockHeader,
        parts: &[Part],
        found: &mut [Bits],
    ) -> Result<(), Wrong<S::Error>> {
        let terms = piece(&mut self.source, header.terms(at), header.terms_bytes)?;
        let mut lists: Option<Vec<(u64, u32)>> = None;
        for (part, bits) in parts.iter().zip(found) {
            // The line feed in front of a term is the end of the one before it.
            let (mut begin, mut count) = (0, 0usize);
            let mut told = usize::MAX;
            for hit in part.0.find_iter(&terms) {
                let within = hit + usize::from(part.0.needle().first() == Some(&b'\n'));
                count += memchr_iter(b'\n', &terms[begin..within]).count();
                begin = within;
                let Some(place) = count.checked_sub(1).filter(|place| *place != told) else { continue };
                told = place;
                let lists = match &lists {
                    Some(lists) => lists,
                    None => lists.insert(self.lists(at, header)?),
                };
                let &(list_at, bytes) = lists.get(place).ok_or(Wrong::Malformed)?;
                let list = piece(&mut self.source, list_at, bytes)?;
                places(&list, |document| bits.set(document));
            }
        }
        Ok(())
    }

    /// Where the list of each term of a block is, and its length.
    fn lists(&mut self, at: u64, header: BlockHeader) -> Result<Vec<(u64, u32)>, Wrong<S::Error>> {
        let lengths = piece(&mut self.source, header.lengths(at), header.lengths_bytes)?;
        let (mut rest, mut list_at, mut lists) = (&lengths[..], header.lists(at), Vec::new());
        while let Some(length) = take(&mut rest) {
            let length = u32::try_from(length).ok().filter(|length| *length <= header.lists_bytes);
            let length = length.ok_or(Wrong::Malformed)?;
            lists.push((list_at, length));
            list_at = list_at.saturating_add(length.into());
        }
        let is_whole = list_at == header.end(at) && lists.len() == header.count as usize;
        if is_whole { Ok(lists) } else { Err(Wrong::Malformed) }
    }

    /// Its terms, one after the other.
    pub(crate) fn entries(self) -> Entries<S> {
        Entries { at: self.first, source: self.source, field: Field::Subject, terms: Vec::new(), lists: Vec::new() }
    }
}

impl BlockHeader {
    fn terms(&self, at: u64) -> u64 {
        at.saturating_add(BLOCK_HEADER_BYTES as u64)
    }

    fn lengths(&self, at: u64) -> u64 {
        self.terms(at).saturating_add(self.terms_bytes.into())
    }

    fn lists(&self, at: u64) -> u64 {
        self.lengths(at).saturating_add(self.lengths_bytes.into())
    }

    fn end(&self, at: u64) -> u64 {
        self.lists(at).saturating_add(self.lists_bytes.into())
    }
}

/// The terms of a segment that is read from its beginning to its end, a block at a time.
#[derive(Debug)]
pub(crate) struct Entries<S> {
    source: S,
    /// Where the next block is.
    at: u64,
    field: Field,
    /// Remaining terms of this block, the last first, and their lists.
    terms: Vec<Vec<u8>>,
    lists: Vec<Vec<u8>>,
}

/// A term and its list.
pub(crate) type Entry = (Field, Vec<u8>, Vec<u8>);

impl<S: Source> Entries<S> {
    /// The next one.
    pub fn next(&mut self) -> Result<Option<Entry>, Wrong<S::Error>> {
        while self.terms.is_empty() {
            let Some(header) = block(&mut self.source, self.at)? else { return Ok(None) };
            self.fill(header)?;
            self.at = header.end(self.at);
        }
        Ok(self.terms.pop().zip(self.lists.pop()).map(|(term, list)| (self.field, term, list)))
    }

    fn fill(&mut self, header: BlockHeader) -> Result<(), Wrong<S::Error>> {
        let terms = piece(&mut self.source, header.terms(self.at), header.terms_bytes)?;
        let lengths = piece(&mut self.source, header.lengths(self.at), header.lengths_bytes)?;
        let lists = piece(&mut self.source, header.lists(self.at), header.lists_bytes)?;
        let (mut lengths, mut lists) = (&lengths[..], &lists[..]);
        self.field = header.field;
        let inner = terms.strip_prefix(b"\n").and_then(|terms| terms.strip_suffix(b"\n")).ok_or(Wrong::Malformed)?;
        for term in inner.split(|&byte| byte == b'\n') {
            let length = take(&mut lengths).and_then(|length| usize::try_from(length).ok()).ok_or(Wrong::Malformed)?;
            let (list, rest) = lists.split_at_checked(length).ok_or(Wrong::Malformed)?;
            self.terms.push(term.into());
            self.lists.push(list.into());
            lists = rest;
        }
        self.terms.reverse();
        self.lists.reverse();
        Ok(())
    }
}

/// Writes the head of the segment of these documents.
pub(crate) fn head(documents: &[Document]) -> Vec<u8> {
    let (mut table, mut last) = (Vec::new(), 0);
    for document in documents {
        put(&mut table, (document.number.wrapping_sub(last)) << 1 | u64::from(document.is_partial));
        last = document.number;
    }
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes();
    let head = [MAGIC, VERSION.to_le_bytes(), count(documents.len()), count(table.len())];
    [head.concat(), table].concat()
}

fn read_documents(mut table: &[u8]) -> Option<Vec<Document>> {
    let (mut documents, mut number) = (Vec::new(), 0u64);
    while !table.is_empty() {
        let value = take(&mut table)?;
        // They ascend.
        let distance = Some(value >> 1).filter(|distance| *distance > 0 || documents.is_empty())?;
        number = number.checked_add(distance)?;
        documents.push(Document { number, is_partial: value & 1 != 0 });
    }
    Some(documents)
}

/// Tells the places of a list.
pub(crate) fn places(mut list: &[u8], mut tell: impl FnMut(usize)) {
    let mut place = 0u64;
    while let Some(distance) = take(&mut list) {
        place = place.saturating_add(distance);
        tell(usize::try_from(place).unwrap_or(usize::MAX));
    }
}

/// A block under way.
#[derive(Debug, Default)]
pub(crate) struct Block {
    field: Option<Field>,
    terms: Vec<u8>,
    count: u32,
    lengths: Vec<u8>,
    lists: Vec<u8>,
}

impl Block {
    /// Adds a term, in ascending order. Returns a full block that has to be written first.
    pub fn push(&mut self, field: Field, term: &[u8], list: &[u8]) -> Option<Vec<u8>> {
        let is_full = self.terms.len() + term.len() > TERMS_BYTES || self.lists.len() + list.len() > LISTS_BYTES;
        let before = if is_full || self.field.is_some_and(|before| before != field) { self.take() } else { None };
        if self.terms.is_empty() {
            self.terms.push(b'\n');
        }
        self.field = Some(field);
        self.count += 1;
        self.terms.extend_from_slice(term);
        self.terms.push(b'\n');
        put(&mut self.lengths, list.len() as u64);
        self.lists.extend_from_slice(list);
        before
    }

    /// Takes the bytes written so far.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let Block { field, terms, count, lengths, lists } = core::mem::take(self);
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
        let numbers =
            [(field? as u32).to_le_bytes(), length(&terms), count.to_le_bytes(), length(&lengths), length(&lists)];
        Some([&numbers.concat()[..], &terms, &lengths, &lists].concat())
    }
}

/// Reads the header of the block at this offset; `None` at the end.
fn block<S: Source>(source: &mut S, at: u64) -> Result<Option<BlockHeader>, Wrong<S::Error>> {
    if at >= source.len() {
        return Ok(None);
    }
    let mut header = [0; BLOCK_HEADER_BYTES];
    read(source, at, &mut header)?;
    let [field, terms_bytes, count, lengths_bytes, lists_bytes] = words(&header);
    let field = u8::try_from(field).ok().and_then(Field::of).ok_or(Wrong::Malformed)?;
    let header = BlockHeader { field, terms_bytes, count, lengths_bytes, lists_bytes };
    if header.end(at) > source.len() {
        return Err(Wrong::Malformed);
    }
    Ok(Some(header))
}

fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
    }
    words
}

fn piece<S: Source>(source: &mut S, at: u64, bytes: u32) -> Result<Vec<u8>, Wrong<S::Error>> {
    if bytes > PIECE_BYTES_MAX || at.saturating_add(bytes.into()) > source.len() {
        return Err(Wrong::Malformed);
    }
    let mut piece = alloc::vec![0; bytes as usize];
    read(source, at, &mut piece)?;
    Ok(piece)
}

fn read<S: Source>(source: &mut S, at: u64, buffer: &mut [u8]) -> Result<(), Wrong<S::Error>> {
    if at.saturating_add(buffer.len() as u64) > source.len() {
        return Err(Wrong::Malformed);
    }
    source.read_at(at, buffer).map_err(Wrong::Source)
}
