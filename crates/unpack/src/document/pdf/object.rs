//! Dictionary of an object, as far as it decides how bytes are read: filters, lengths, names, keys.
//!
//! Values are taken down as they pass; no object is held. Containers are followed [`DEPTH_MAX`] deep, which is deeper
//! than anything that matters lies; what lies deeper is passed over.
//!
//! Bounds: 32 frames, [`FILTERS_MAX`] filters, [`ENTRIES_MAX`] references, one string of `name_bytes_max`, one of [`STRING_BYTES`].

use super::filter::{FILTERS_MAX, Filter};
use super::key::Key;
use super::layer::{Entry, EntryReference, Parameters};
use super::security::Security;

/// Containers within one another that are told apart.
const DEPTH_MAX: usize = 32;

/// The longest string that is kept: a file name, a document's identifier, a key.
pub(super) const STRING_BYTES: usize = 512;

/// Streams that one file specification may name.
const EMBEDDED_MAX: usize = 6;

/// Entries of `DecodeParms` that may be references: all of all filters.
const ENTRIES_MAX: usize = 6 * (FILTERS_MAX + 1);

/// The count of objects where another object holds it: as many as there are numbers in front.
const COUNT_UNKNOWN: u64 = u64::MAX / 2;

/// Kind of an object by its `Type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Type {
    #[default]
    Other,
    ObjectStream,
    CrossReference,
    EmbeddedFile,
    Metadata,
}

/// A length, as a dictionary tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    Bytes(u64),
    /// The number of the object that holds it.
    Reference(u64),
}

/// A reference for all filters (or parameters) of a stream, or for one element of the array of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference {
    pub element: Option<usize>,
    /// The number of the object.
    pub number: u64,
}

/// Use of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A script, which is emitted.
    Told,
    /// It goes to [`Object::string`].
    Kept,
    Ignored,
}

/// An object as far as it has been read.
#[derive(Debug, Clone, Default)]
pub(super) struct Object {
    /// Its number and generation, if it is an object and no trailer.
    pub id: Option<(u64, u64)>,
    pub length: Option<Length>,
    pub filters: Vec<Filter>,
    pub parameters: Vec<Parameters>,
    /// Objects that hold filters, or their parameters.
    pub filter_references: Vec<Reference>,
    pub parameter_references: Vec<Reference>,
    pub entry_references: Vec<EntryReference>,
    /// Whether it is the name `Identity`.
    pub is_identity: bool,
    /// The object that this one, a mere reference, stands for.
    pub alias: Option<u64>,
    /// How many objects there are in it, as an object stream.
    pub count: u64,
    /// The filters of an earlier entry.
    earlier_filters: Option<Vec<Filter>>,
    type_: Type,
    /// Whether it has entries that streams of these kinds alone have.
    has_first: bool,
    has_widths: bool,
    pub media_type: Option<Box<str>>,
    /// Whether it has an `Encrypt` entry: it is a trailer.
    pub encrypt: bool,
    /// The first part of the document's identifier.
    pub identifier: Option<Vec<u8>>,
    pub security: Security,
    /// Whether it is a dictionary, and not a number, name, string or array.
    pub is_dictionary: bool,
    /// The file specification read last, complete: its name, and the streams that it names.
    pub file: Option<(Vec<u8>, Vec<u64>)>,
    stack: Vec<Frame>,
    beyond: usize,
    /// The two integers read last, the later one second.
    integers: [u64; 2],
    /// The file specification that is being read.
    file_name: Vec<u8>,
    embedded: Vec<u64>,
    filter_entries: u32,
}

/// A container that is open.
#[derive(Debug, Clone)]
struct Frame {
    is_dictionary: bool,
    /// The key whose value it is.
    above: Key,
    /// The key read last, or `None` if one is to come.
    key: Key,
    /// How many values an array has.
    index: usize,
}

impl Object {
    pub fn new(id: Option<(u64, u64)>) -> Object {
        Object { id, ..Object::default() }
    }

    /// Whether readers could differ in the filters.
    pub fn has_two_filters(&self) -> bool {
        self.earlier_filters.as_ref().is_some_and(|earlier| *earlier != self.filters)
    }

    /// Its kind: by its type, and by its entries where the type is missing, a reference or another.
    pub fn kind(&self) -> Type {
        match self.type_ {
            Type::Other if self.has_first && self.count > 0 => Type::ObjectStream,
            Type::Other if self.has_widths => Type::CrossReference,
            type_ => type_,
        }
    }

    /// Whether a container is open.
    pub fn is_open(&self) -> bool {
        !self.stack.is_empty()
    }

    /// Whether a dictionary has been read to its end.
    pub fn is_complete(&self) -> bool {
        self.is_dictionary && self.stack.is_empty()
    }

    /// `<<` or `[`.
    pub fn open(&mut self, is_dictionary: bool) {
        let above = self.key();
        if self.stack.len() == DEPTH_MAX {
            self.beyond += 1;
            return;
        }
        self.is_dictionary |= is_dictionary && self.stack.is_empty();
        self.encrypt |= above == Key::Encrypt;
        self.has_widths |= above == Key::Widths && !is_dictionary && self.stack.len() == 1;
        if above == Key::Filter && !is_dictionary {
            self.filter_entry();
        }
        self.stack.push(Frame { is_dictionary, above, key: Key::None, index: 0 });
    }

    /// `>>` or `]`.
    pub fn close(&mut self) {
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        let Some(frame) = self.stack.pop() else { return };
        if frame.is_dictionary && frame.above != Key::EmbeddedFile {
            let (name, streams) = (std::mem::take(&mut self.file_name), std::mem::take(&mut self.embedded));
            if !streams.is_empty() {
                self.file = Some((name, streams));
            }
        }
        self.next();
    }

    /// The key whose value stands here, through arrays.
    fn key(&self) -> Key {
        match self.stack.last() {
            _ if self.beyond > 0 => Key::Other,
            None => Key::None,
            Some(frame) if frame.is_dictionary => frame.key,
            Some(frame) => frame.above,
        }
    }

    /// The key whose value the innermost dictionary is.
    fn dictionary_key(&self) -> Key {
        self.stack.last().map_or(Key::None, |frame| frame.above)
    }

    /// A value is complete.
    fn next(&mut self) {
        if let Some(frame) = self.stack.last_mut() {
            frame.index += 1;
        }
    }

    /// A name: a key or a value.
    pub fn name(&mut self, word: &[u8]) {
        if self.beyond > 0 {
            return;
        }
        let awaits_key = |frame: &Frame| frame.is_dictionary && (frame.key == Key::None || frame.index > 0);
        if let Some(frame) = self.stack.last_mut().filter(|frame| awaits_key(frame)) {
            (frame.key, frame.index) = (Key::of(word), 0);
            if frame.above == Key::CryptFilters {
                self.security.crypt_filter(word);
            }
            return;
        }
        self.name_value(word);
        self.next();
    }

    fn name_value(&mut self, word: &[u8]) {
        match self.key() {
            Key::Filter => {
                if self.stack.last().is_some_and(|frame| frame.is_dictionary) {
                    self.filter_entry();
                }
                self.security.handler(word);
                self.filter(word);
            }
            Key::None => {
                self.is_identity |= self.stack.is_empty() && word == b"Identity";
                self.filter(word);
            }
            Key::Type => self.set_type(word),
            Key::Subtype if word.contains(&b'/') => {
                self.media_type = Some(String::from_utf8_lossy(word).to_ascii_lowercase().into());
            }
            Key::Name if self.dictionary_key() == Key::Parameters || self.in_parameters() => {
                self.parameter(Entry::Identity, u64::from(word == b"Identity"));
            }
            Key::Method => self.security.method(word),
            Key::StreamFilter => self.security.streams = word.to_vec(),
            Key::StringFilter => self.security.strings = word.to_vec(),
            Key::EmbeddedFilter => self.security.embedded = word.to_vec(),
            _ => {}
        }
    }

    /// A filter entry begins; readers differ in which of two they follow.
    fn filter_entry(&mut self) {
        if self.stack.len() == 1 {
            if self.filter_entries > 0 {
                self.earlier_filters = Some(std::mem::take(&mut self.filters));
            }
            self.filter_entries += 1;
            self.filter_references.clear();
        }
    }

    fn filter(&mut self, word: &[u8]) {
        let holds_filters = match self.stack.as_slice() {
            [] => !self.is_dictionary,
            [frame] => frame.key == Key::Filter || !frame.is_dictionary,
            [outer, frame] => outer.key == Key::Filter && !frame.is_dictionary,
            _ => false,
        };
        if holds_filters && self.filters.len() <= FILTERS_MAX {
            self.filters.push(Filter::of(word));
        }
    }

    fn set_type(&mut self, word: &[u8]) {
        if self.stack.len() == 1 {
            self.type_ = match word {
                b"ObjStm" => Type::ObjectStream,
                b"XRef" => Type::CrossReference,
                b"EmbeddedFile" => Type::EmbeddedFile,
                b"Metadata" => Type::Metadata,
                _ => Type::Other,
            };
        }
    }

    /// Whether the innermost dictionary holds parameters of a filter.
    fn in_parameters(&self) -> bool {
        match self.stack.as_slice() {
            [.., outer, frame] if frame.is_dictionary => {
                outer.above == Key::Parameters || frame.above == Key::Parameters
            }
            [frame] => frame.is_dictionary,
            _ => false,
        }
    }

    /// The place in the array of the filter whose parameters the innermost dictionary holds.
    fn parameters_index(&self) -> usize {
        match self.stack.as_slice() {
            [.., array, _] if !array.is_dictionary => array.index.min(FILTERS_MAX),
            _ => 0,
        }
    }

    fn parameter(&mut self, entry: Entry, value: u64) {
        let index = self.parameters_index();
        if self.parameters.len() <= index {
            self.parameters.resize(index + 1, Parameters::default());
        }
        self.parameters[index].set(entry, Some(value));
        self.entry_references.retain(|reference| (reference.index, reference.entry) != (index, entry));
    }

    fn parameter_reference(&mut self, entry: Entry, number: u64) {
        // The number was taken for the value.
        self.parameter(entry, 0);
        if self.entry_references.len() < ENTRIES_MAX {
            self.entry_references.push(EntryReference { index: self.parameters_index(), entry, number });
        }
    }

    /// A whole number.
    pub fn integer(&mut self, value: u64) {
        self.integers = [self.integers[1], value];
        let first = self.stack.last().is_none_or(|frame| frame.index == 0);
        if first {
            self.integer_value(value);
        }
        self.next();
    }

    fn integer_value(&mut self, value: u64) {
        let depth = self.stack.len();
        match self.key() {
            Key::None if depth == 0 && !self.is_dictionary => self.length = Some(Length::Bytes(value)),
            Key::Length if depth == 1 => {
                self.length = Some(Length::Bytes(value));
                self.security.length = Some(value);
            }
            Key::Count if depth == 1 => self.count = value,
            Key::First if depth == 1 => self.has_first = true,
            Key::Length if self.dictionary_key() == Key::Encrypt => self.security.length = Some(value),
            Key::Version => self.security.version = value,
            Key::Revision => self.security.revision = value,
            Key::Permissions => self.security.permissions = value as u32,
            key => {
                if let Some(entry) = key.entry().filter(|_| self.in_parameters()) {
                    self.parameter(entry, value);
                }
            }
        }
    }

    /// Any other word.
    pub fn word(&mut self, word: &[u8]) {
        match word {
            b"R" => self.reference(self.integers[0]),
            b"false" if self.key() == Key::EncryptMetadata => self.security.metadata_is_plain = true,
            _ if self.key() == Key::Permissions => self.security.permissions = negative(word).unwrap_or(0),
            _ => {}
        }
        if word != b"R" {
            self.next();
        }
    }

    fn reference(&mut self, number: u64) {
        let depth = self.stack.len();
        // The two integers were counted as values.
        if let Some(array) = self.stack.last_mut().filter(|frame| !frame.is_dictionary) {
            array.index = array.index.saturating_sub(1);
        }
        let array = self.stack.last().filter(|frame| !frame.is_dictionary);
        let reference = Reference { element: array.map(|array| array.index.saturating_sub(1)), number };
        match self.key() {
            Key::Length if depth == 1 => self.length = Some(Length::Reference(number)),
            Key::Count if depth == 1 => self.count = COUNT_UNKNOWN,
            Key::Filter if depth <= 2 => {
                if depth == 1 {
                    self.filter_entry();
                }
                refer(&mut self.filter_references, reference);
            }
            Key::Parameters if depth <= 2 => refer(&mut self.parameter_references, reference),
            Key::None if depth == 0 && !self.is_dictionary => (self.length, self.alias) = (None, Some(number)),
            Key::Encrypt => self.encrypt = true,
            Key::File if self.dictionary_key() == Key::EmbeddedFile && self.embedded.len() < EMBEDDED_MAX => {
                self.embedded.push(number);
            }
            key => {
                let entry = if key == Key::Name { Some(Entry::Identity) } else { key.entry() };
                if let Some(entry) = entry.filter(|_| self.in_parameters()) {
                    self.parameter_reference(entry, number);
                }
            }
        }
    }

    /// Use of the string that begins.
    pub fn string_begins(&mut self) -> Wanted {
        match self.key() {
            Key::JavaScript => Wanted::Told,
            Key::None if self.id.is_some() && self.stack.is_empty() && !self.is_dictionary => Wanted::Told,
            Key::File | Key::Id | Key::Owner | Key::User | Key::OwnerFile | Key::UserFile => Wanted::Kept,
            _ => Wanted::Ignored,
        }
    }

    /// A string is complete; of a long one this is the beginning.
    pub fn string(&mut self, text: &[u8]) {
        match self.key() {
            Key::File if self.dictionary_key() != Key::EmbeddedFile => self.file_name = text.to_vec(),
            Key::Id if self.identifier.is_none() => self.identifier = Some(text.to_vec()),
            Key::Owner => self.security.owner = text.to_vec(),
            Key::User => self.security.user = text.to_vec(),
            Key::UserFile => self.security.user_file_key = text.to_vec(),
            _ => {}
        }
        self.next();
    }
}

fn refer(references: &mut Vec<Reference>, reference: Reference) {
    if references.len() <= FILTERS_MAX {
        references.push(reference);
    }
}

/// `-44` as the unsigned 32 bits that it stands for.
fn negative(word: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(word).ok()?;
    text.parse::<i64>().ok().map(|value| value as u32)
}
