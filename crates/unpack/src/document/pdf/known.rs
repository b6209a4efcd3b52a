//! Facts of a document so far that decide how other objects are read.
//!
//! Bounds: [`SMALL_MAX`] small objects, [`NAMES_MAX`] file names.

use std::collections::BTreeMap;

use super::cipher::Cipher;
use super::filter::{FILTERS_MAX, Filter};
use super::layer::{Entry, EntryReference, Parameters};
use super::object::{Length, Object, Reference, Type};
use super::security::{FileKey, Locked, Security};

/// Small objects that are remembered.
const SMALL_MAX: usize = 2_048;

/// References to references that are followed.
const ALIASES_MAX: usize = 8;

/// Names of files that are remembered.
const NAMES_MAX: usize = 512;

/// Facts by number of object.
#[derive(Default)]
pub(super) struct Known {
    small: BTreeMap<u64, Small>,
    /// Whether there were more of them.
    is_full: bool,
    names: BTreeMap<u64, Name>,
    identifier: Vec<u8>,
    /// Whether a trailer says that the document is encrypted.
    encrypt: bool,
    security: Option<Security>,
}

/// A file name, undecoded.
struct Name {
    bytes: Box<[u8]>,
    /// The object that it stands in, whose strings may be encrypted; none within an object stream.
    id: Option<(u64, u64)>,
}

/// An object that others refer to for their length, filters or parameters.
struct Small {
    length: Option<u64>,
    filters: Vec<Filter>,
    parameters: Vec<Parameters>,
    entry_references: Vec<EntryReference>,
    is_identity: bool,
    alias: Option<u64>,
}

impl Known {
    /// An object is complete.
    pub fn object(&mut self, object: Object) {
        self.encrypt |= object.encrypt;
        if object.security.is_complete() {
            self.security = Some(object.security.clone());
        }
        let is_trailer = object.id.is_none() || object.kind() == Type::CrossReference;
        if let Some(identifier) = object.identifier.as_ref().filter(|_| is_trailer && self.identifier.is_empty()) {
            self.identifier = identifier.clone();
        }
        self.small(object);
    }

    /// The same for an object that may be one that others refer to, and nothing else.
    pub fn small(&mut self, object: Object) {
        let length = match object.length {
            Some(Length::Bytes(bytes)) if !object.is_dictionary => Some(bytes),
            _ => None,
        };
        let is_small = match object.is_dictionary {
            true => object.filters.is_empty() && !object.parameters.is_empty(),
            false => {
                length.is_some()
                    || object.alias.is_some()
                    || !object.filters.is_empty()
                    || !object.parameters.is_empty()
            }
        };
        let Some((number, _)) = object.id.filter(|_| is_small) else { return };
        if self.small.len() == SMALL_MAX {
            self.is_full = true;
        } else {
            let Object { filters, parameters, entry_references, is_identity, alias, .. } = object;
            self.small.insert(number, Small { length, filters, parameters, entry_references, is_identity, alias });
        }
    }

    /// A file specification, in the object `id`, names the stream in this object.
    pub fn name(&mut self, number: u64, name: &[u8], id: Option<(u64, u64)>) {
        if !name.is_empty() && self.names.len() < NAMES_MAX {
            self.names.insert(number, Name { bytes: name.into(), id });
        }
    }

    /// Whether a file specification names the stream in this object.
    pub fn is_file(&self, number: u64) -> bool {
        self.names.contains_key(&number)
    }

    /// The file name of the stream in this object, decrypted with the document's key.
    pub fn name_of(&self, number: u64, key: Option<&FileKey>) -> Box<str> {
        let Some(Name { bytes, id }) = self.names.get(&number) else { return format!("object {number}").into() };
        let cipher = key.zip(*id).and_then(|(key, id)| Cipher::new(key, key.strings, id));
        match cipher {
            Some(cipher) => text(&cipher.string(bytes)),
            None => text(bytes),
        }
    }

    /// The filters of a stream, as far as they are known.
    pub fn filters(&self, object: &Object) -> Vec<Filter> {
        let mut filters = object.filters.clone();
        for (element, small) in self.referred(&object.filter_references) {
            match element {
                None => filters.clone_from(&small.filters),
                Some(index) => {
                    let index = index.min(filters.len());
                    filters.splice(index..index, small.filters.first().copied());
                }
            }
        }
        filters
    }

    /// Their parameters, as far as they are known.
    pub fn parameters(&self, object: &Object) -> Vec<Parameters> {
        let mut parameters = self.direct(&object.parameters, &object.entry_references);
        for (element, small) in self.referred(&object.parameter_references) {
            let direct = self.direct(&small.parameters, &small.entry_references);
            match element.map(|index| index.min(FILTERS_MAX)) {
                None => parameters = direct,
                Some(index) => {
                    let length = parameters.len().max(index + 1);
                    parameters.resize(length, Parameters::default());
                    parameters[index] = direct.first().copied().unwrap_or_default();
                }
            }
        }
        parameters
    }

    /// Parameters of one object, with the entries that are references.
    fn direct(&self, parameters: &[Parameters], references: &[EntryReference]) -> Vec<Parameters> {
        let mut parameters = parameters.to_vec();
        for reference in references {
            let small = self.get(reference.number);
            let value = match reference.entry {
                Entry::Identity => small.map(|small| u64::from(small.is_identity)),
                _ => small.and_then(|small| small.length),
            };
            if let Some(parameters) = parameters.get_mut(reference.index) {
                parameters.set(reference.entry, value);
            }
        }
        parameters
    }

    /// The length of a stream, if it is known.
    pub fn length(&self, object: &Object) -> Option<u64> {
        match object.length? {
            Length::Bytes(bytes) => Some(bytes),
            Length::Reference(number) => self.get(number)?.length,
        }
    }

    fn referred<'k>(&'k self, references: &'k [Reference]) -> impl Iterator<Item = (Option<usize>, &'k Small)> {
        references.iter().filter_map(|reference| Some((reference.element, self.get(reference.number)?)))
    }

    /// The small object with this number, or the one that it stands for.
    fn get(&self, mut number: u64) -> Option<&Small> {
        for _ in 0..ALIASES_MAX {
            let small = self.small.get(&number)?;
            let Some(alias) = small.alias else { return Some(small) };
            number = alias;
        }
        None
    }

    /// Whether an object that is not known says how a stream is read.
    pub fn is_unresolved(&self, object: &Object) -> bool {
        let is_unknown = |reference: &Reference| self.get(reference.number).is_none();
        if object.filter_references.iter().any(is_unknown) {
            return true;
        }
        let filters = self.filters(object);
        let matters = |element: Option<usize>| match element {
            None => filters.iter().any(|filter| filter.has_parameters()),
            Some(index) => filters.get(index).is_some_and(|filter| filter.has_parameters()),
        };
        let is_entry_unknown = |reference: &EntryReference| self.get(reference.number).is_none();
        object.parameter_references.iter().filter(|reference| matters(reference.element)).any(|reference| {
            let small = self.get(reference.number);
            small.is_none_or(|small| small.entry_references.iter().any(is_entry_unknown))
        }) || object.entry_references.iter().any(|entry| matters(Some(entry.index)) && is_entry_unknown(entry))
    }

    /// Whether small objects were left out. Otherwise one that is not known is none, which is `null` (ISO 32000-2, 7.3.10).
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Whether the identifier of the document has come.
    pub fn has_identifier(&self) -> bool {
        !self.identifier.is_empty()
    }

    /// Whether the document is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.encrypt || self.security.is_some()
    }

    /// Data for the key of the document, if they are known.
    pub fn locked(&self) -> Option<Locked> {
        Some(Locked { security: self.security.clone()?, identifier: self.identifier.clone() })
    }
}

/// A text string (ISO 32000-2, 7.9.2.2): UTF-16 or UTF-8 with its mark, else Latin-1 as near as makes no matter.
fn text(bytes: &[u8]) -> Box<str> {
    match bytes {
        [0xfe, 0xff, rest @ ..] => crate::frame::name::utf16_be(rest),
        [0xff, 0xfe, rest @ ..] => crate::frame::name::utf16_le(rest),
        [0xef, 0xbb, 0xbf, rest @ ..] => crate::frame::name::utf8_lossy(rest),
        _ => crate::frame::name::utf8_or_latin1(bytes),
    }
}
