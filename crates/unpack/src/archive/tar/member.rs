//! From a header to the member that it begins: plain, sparse, or with its listing.

use stream::{Class, Event, Kind, Object, Step};

use super::header::{self, BLOCK, Header};
use super::listing::Listing;
use super::meta::Meta;
use super::pax::{Pax, Sparse};
use super::sparse::{self, Content, Map};
use super::{BLOCK_BYTES, Entry, State, Tar, Then, Turn};
use crate::frame::name;

impl Tar {
    pub(super) fn header(&mut self, header: Header) {
        if !header.checksum_is_right {
            self.note_here(Class::Ambiguous, "Heuristics.Ambiguous.Tar.Checksum");
        }
        if std::mem::take(&mut self.ended) && !std::mem::replace(&mut self.after_end_told, true) {
            self.note_here(Class::Ambiguous, "Heuristics.Ambiguous.Tar.AfterEnd");
        }
        let size = header.size.unwrap_or_else(|| {
            self.note_here(Class::Malformed, "Heuristics.Malformed.Tar.Size");
            0
        });
        let Some(meta) = Meta::of(header.kind, self.name_bytes_max, self.regions_max) else {
            return self.member(header, size);
        };
        let padding = Entry::padding(size);
        self.state = State::Meta { meta, left: size, padding };
    }

    fn member(&mut self, header: Header, stored_size: u64) {
        let mut next = std::mem::replace(&mut self.next, Pax::new(self.name_bytes_max, self.regions_max));
        let size = next.size.or(self.global.size).unwrap_or(stored_size);
        if size != stored_size && size <= header::OCTAL_SIZE_MAX && !next.is_sparse() {
            self.note_here(Class::Ambiguous, "Heuristics.Ambiguous.Tar.PaxSize");
        }
        let sparse = next.take_sparse();
        let mut names: Vec<_> = next.into_names().chain(self.global.name().map(Into::into)).collect();
        // A reader that does not know pax shows the name of the header, which others fill with the beginning of a long one.
        let is_beginning =
            header.name.len() + 1 >= header::NAME_BYTES && names.iter().any(|name| name.starts_with(&header.name));
        if !is_beginning {
            names.push(header.name.clone());
        }
        let mut names: Vec<_> = names.iter().map(|name| name::utf8_lossy(name)).collect();
        let name = names.remove(0);
        names.retain(|other| *other != name && !other.is_empty());
        names.dedup();
        let entry = Entry { name: Some(name), other_names: names.into(), size, ..Entry::default() };
        self.state = match header.kind {
            b'1' if size == 0 => State::Opening { entry, block_is_content: false },
            b'1'..=b'6' if size == 0 => State::Block { link: None },
            b'1'..=b'6' => State::Block { link: Some(entry) },
            b'S' => self.old_sparse(entry, &header),
            _ => self.pax_sparse(entry, sparse),
        };
    }

    /// Reads GNU's map; other headers with this letter are emitted as they are stored.
    fn old_sparse(&mut self, entry: Entry, header: &Header) -> State {
        let mut map = Map::new(self.regions_max);
        map.add_old(&header.sparse_entries);
        let size = header.is_gnu.then_some(header.sparse_size.unwrap_or(0));
        match header.sparse_goes_on {
            true => State::Sparse { entry, map, size },
            false => self.mapped(entry, map, size),
        }
    }

    fn pax_sparse(&mut self, entry: Entry, sparse: Sparse) -> State {
        match sparse {
            Sparse::No => {}
            Sparse::Map(map, size) => return self.mapped(entry, map, Some(size)),
            Sparse::Listing(size) => {
                let listing = Listing::new(entry.size, size, self.regions_max);
                return State::Listing { entry, listing };
            }
            Sparse::Broken => self.fault(sparse::MALFORMED),
        }
        State::Opening { entry, block_is_content: false }
    }

    /// The map of a member is known, and its size if the map counts.
    fn mapped(&mut self, entry: Entry, map: Map, size: Option<u64>) -> State {
        let content = size.map(|size| map.content(entry.size, size));
        let content = content.and_then(|content| content.map_err(|fault| self.fault(fault)).ok());
        self.watch(content.as_ref());
        State::Opening { entry: Entry { content, ..entry }, block_is_content: false }
    }

    /// Says where readers differ about a map that is good.
    fn watch(&mut self, content: Option<&Content>) {
        if content.is_some_and(|content| content.is_uneven) {
            let at = self.at;
            self.note(Class::Ambiguous, "Heuristics.Ambiguous.Tar.SparseRegion", at);
        }
    }

    pub(super) fn sparse(&mut self, entry: Entry, mut map: Map, size: Option<u64>, input: &[u8]) -> Turn {
        const GOES_ON_AT: usize = 504;
        let taken = self.block.fill(input, BLOCK);
        let turn = self.took(taken);
        let Some(block) = self.block.whole() else {
            self.state = State::Sparse { entry, map, size };
            return turn;
        };
        map.add_old(&block[..GOES_ON_AT]);
        let goes_on = block[GOES_ON_AT] != 0;
        self.block.clear();
        self.state = match goes_on {
            true => State::Sparse { entry, map, size },
            false => self.mapped(entry, map, size),
        };
        turn
    }

    pub(super) fn listing(&mut self, entry: Entry, mut listing: Listing, input: &[u8]) -> Turn {
        let taken = listing.read(input);
        let turn = self.took(taken);
        if !listing.is_over() {
            self.state = State::Listing { entry, listing };
            return turn;
        }
        let entry = match listing.content() {
            Ok(content) => {
                self.watch(Some(&content));
                Entry { content: Some(content), ..entry }
            }
            Err((fault, text)) => {
                self.fault(fault);
                Entry { text, ..entry }
            }
        };
        self.state = State::Opening { entry, block_is_content: false };
        turn
    }

    pub(super) fn begin(&mut self, entry: Entry, block_is_content: bool) -> Step {
        let is_gap = entry.name.is_none();
        let packed = (!is_gap).then_some(entry.size);
        let size = entry.content.as_ref().map_or(entry.size, |content| content.size);
        let held = if block_is_content { self.block.len() } else { entry.text.len() };
        let object = Object {
            kind: if is_gap { Kind::Rest } else { Kind::Member },
            name: entry.name,
            other_names: entry.other_names,
            size: packed.map(|_| size),
            entry: packed.map(|_| Box::new(stream::Entry { packed, size: Some(size), ..stream::Entry::default() })),
            raw_offset: entry.content.is_none().then_some(self.at - held as u64),
            ..Object::default()
        };
        let padding = Entry::padding(entry.size);
        let left = entry.size;
        self.open = true;
        self.state = if is_gap {
            State::Owed { told: 0, end: BLOCK, then: Then::Gap }
        } else if block_is_content {
            let end = left.min(BLOCK_BYTES);
            let padding = if left < BLOCK_BYTES { 0 } else { padding };
            let then = Then::Data { left: left - end, padding };
            State::Owed { told: 0, end: end as usize, then }
        } else if let Some(content) = entry.content {
            State::Expand { content, padding }
        } else if !entry.text.is_empty() {
            State::Text { left: left - entry.text.len() as u64, text: entry.text, told: 0, padding }
        } else {
            State::Data { left, padding }
        };
        Step::tell(0, Event::Open(object))
    }
}
