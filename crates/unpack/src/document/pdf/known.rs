//! Facts of a document so far that decide how other objects are read.
//!
//! Bounds: [`KNOWN_MAX`] small objects and as many file names.

use std::collections::BTreeMap;

use super::cipher::Cipher;
use super::filter::Filter;
use super::layer::Parameters;
use super::object::{Length, Object, Type};
use super::security::{FileKey, Locked, Security};

/// Small objects, and names of files, that are remembered.
pub(super) const KNOWN_MAX: usize = 512;

/// Facts by number of object.
#[derive(Default)]
pub(super) struct Known {
    small: BTreeMap<u64, Small>,
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
}

impl Known {
    /// An object is complete.
    pub fn object(&mut self, object: Object) {
        self.encrypt |= object.encrypt;
        if object.security.is_complete() {
            self.security = Some(object.security.clone());
        }
        let is_trailer = object.id.is_none() || object.type_ == Type::CrossReference;
        if let Some(identifier) = object.identifier.as_ref().filter(|_| is_trailer && self.identifier.is_empty()) {
            self.identifier = identifier.clone();
        }
        self.small(object);
    }

    fn small(&mut self, object: Object) {
        let length = match object.length {
            Some(Length::Bytes(bytes)) if !object.is_dictionary => Some(bytes),
            _ => None,
        };
        let is_small = match object.is_dictionary {
            true => object.filters.is_empty() && !object.parameters.is_empty(),
            false => length.is_some() || !object.filters.is_empty() || !object.parameters.is_empty(),
        };
        if let Some((number, _)) = object.id.filter(|_| is_small && self.small.len() < KNOWN_MAX) {
            let Object { filters, parameters, .. } = object;
            self.small.insert(number, Small { length, filters, parameters });
        }
    }

    /// A file specification, in the object `id`, names the stream in this object.
    pub fn name(&mut self, number: u64, name: &[u8], id: Option<(u64, u64)>) {
        if !name.is_empty() && self.names.len() < KNOWN_MAX {
            self.names.insert(number, Name { bytes: name.into(), id });
        }
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
        let referred = object.filter_reference.and_then(|number| self.small.get(&number));
        referred.map_or(&object.filters, |small| &small.filters).clone()
    }

    /// Their parameters, as far as they are known.
    pub fn parameters(&self, object: &Object) -> Vec<Parameters> {
        let referred = object.parameter_reference.and_then(|number| self.small.get(&number));
        referred.map_or(&object.parameters, |small| &small.parameters).clone()
    }

    /// The length of a stream, if it is known.
    pub fn length(&self, object: &Object) -> Option<u64> {
        match object.length? {
            Length::Bytes(bytes) => Some(bytes),
            Length::Reference(number) => self.small.get(&number)?.length,
        }
    }

    /// Whether an object that is not known says how a stream is read.
    pub fn is_unresolved(&self, object: &Object) -> bool {
        let references = [object.filter_reference, object.parameter_reference];
        references.into_iter().flatten().any(|number| !self.small.contains_key(&number))
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
