//! What the header of an entity says about its body, and what else it could be taken to say.

use alloc::boxed::Box;
use alloc::vec::Vec;

use stream::{Coding, Kind, Object};

use super::reader::Multipart;
use crate::field::{ContentType, TransferCoding};

/// How many different fields of one name are kept.
const DIFFERENT_MAX: usize = 4;

/// The fields of a header that matter.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    types: Vec<ContentType>,
    codings: Vec<TransferCoding>,
    name: Option<Box<str>>,
}

/// A body about to be read in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entity {
    pub structure: Structure,
    /// As it is told; kind and offset are still open.
    pub object: Object,
}

/// What a body consists of.
#[derive(Debug, Clone)]
pub(super) enum Structure {
    Leaf,
    Message(Certainty),
    Multipart(Multipart),
}

/// How sure it is that a body is a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    Whole,
    /// Part of one, which may have no header.
    Piece,
    /// One only for some readers, and only if it begins like one.
    Possible,
}

/// All ways to read a body.
#[derive(Debug)]
pub(super) struct Readings {
    pub first: Entity,
    /// The others, each with the name of the ambiguity.
    pub others: Vec<(&'static str, Entity)>,
}

impl Found {
    pub(super) fn note_type(&mut self, content_type: ContentType) {
        if self.types.len() < DIFFERENT_MAX && !self.types.contains(&content_type) {
            self.types.push(content_type);
        }
    }

    pub(super) fn note_coding(&mut self, coding: TransferCoding) {
        if self.codings.len() < DIFFERENT_MAX && !self.codings.contains(&coding) {
            self.codings.push(coding);
        }
    }

    pub(super) fn note_name(&mut self, name: Option<Box<str>>) {
        if self.name.is_none() {
            self.name = name;
        }
    }

    /// All readings of the body. In a digest the default type is a message.
    pub(super) fn readings(&self, default_message: bool) -> Readings {
        let default = ContentType::default();
        let first_type = self.types.first().unwrap_or(&default);
        let codings = self.codings_in_order();
        let coding = codings.first().copied().unwrap_or_default();
        let multipart = is_multipart(first_type);
        let message = is_message(first_type, default_message);
        let first_boundary = first_type.boundaries.first().map(AsRef::as_ref);
        let first = if multipart && first_boundary.is_some() {
            self.multipart(first_type, first_boundary)
        } else if message && coding == Coding::Identity {
            self.message(first_type, certainty(first_type))
        } else {
            self.leaf(first_type, coding)
        };
        let mut readings = Readings { first, others: Vec::new() };
        for other in self.types.iter().skip(1) {
            let other = if is_multipart(other) {
                self.multipart(other, other.boundaries.first().map(AsRef::as_ref))
            } else if is_message(other, default_message) && coding == Coding::Identity {
                self.message(other, certainty(other))
            } else {
                self.leaf(other, coding)
            };
            readings.add("Heuristics.Ambiguous.Mime.ContentType", other);
        }
        if multipart {
            self.add_multiparts(first_type, &mut readings);
        }
        self.add_codings(first_type, &codings, &mut readings);
        if message && coding != Coding::Identity {
            let other = self.message(first_type, Certainty::Possible);
            readings.add("Heuristics.Ambiguous.Mime.MessageCoding", other);
        }
        readings
    }

    fn add_multiparts(&self, content_type: &ContentType, readings: &mut Readings) {
        if content_type.boundaries.iter().all(|boundary| boundary.is_empty()) {
            let guessed = self.multipart(content_type, None);
            readings.add("Heuristics.Ambiguous.Mime.BoundaryMissing", guessed);
        }
        for boundary in content_type.boundaries.iter().skip(1) {
            let other = self.multipart(content_type, Some(boundary));
            readings.add("Heuristics.Ambiguous.Mime.Boundary", other);
        }
    }

    fn add_codings(&self, content_type: &ContentType, codings: &[Coding], readings: &mut Readings) {
        let container = !matches!(readings.first.structure, Structure::Leaf);
        let name = if container {
            "Heuristics.Ambiguous.Mime.ContainerCoding"
        } else {
            "Heuristics.Ambiguous.Mime.TransferEncoding"
        };
        for &coding in codings {
            if !container || coding != Coding::Identity {
                readings.add(name, self.leaf(content_type, coding));
            }
        }
    }

    /// The codings that readers may take to be declared, likeliest first.
    fn codings_in_order(&self) -> Vec<Coding> {
        let declared = self.codings.iter().map(|declared| declared.coding);
        let others = self.codings.iter().filter_map(|declared| declared.other);
        let mut codings = Vec::new();
        for coding in declared.chain(others) {
            if !codings.contains(&coding) {
                codings.push(coding);
            }
        }
        codings
    }

    fn leaf(&self, content_type: &ContentType, coding: Coding) -> Entity {
        Entity { structure: Structure::Leaf, object: self.object(content_type, coding) }
    }

    fn message(&self, content_type: &ContentType, certainty: Certainty) -> Entity {
        Entity { structure: Structure::Message(certainty), object: self.object(content_type, Coding::Identity) }
    }

    fn multipart(&self, content_type: &ContentType, boundary: Option<&[u8]>) -> Entity {
        let digest = content_type.media_type.as_deref() == Some("multipart/digest");
        Entity {
            structure: Structure::Multipart(Multipart::new(
                boundary.map(Box::from),
                content_type.boundary_cut,
                digest,
                content_type.boundaries.len() > 1,
            )),
            object: self.object(content_type, Coding::Identity),
        }
    }

    fn object(&self, content_type: &ContentType, coding: Coding) -> Object {
        Object {
            kind: Kind::Part,
            name: self.name.clone().or_else(|| content_type.name.clone()),
            media_type: content_type.media_type.clone(),
            charset: content_type.charset.clone(),
            coding,
            ..Object::default()
        }
    }
}

impl Readings {
    fn add(&mut self, name: &'static str, entity: Entity) {
        let known = self.others.iter().any(|(_, other)| other.reads_as(&entity));
        if !known && !self.first.reads_as(&entity) {
            self.others.push((name, entity));
        }
    }
}

impl Entity {
    /// Whether the body falls into the same parts with the same bytes, whatever they are called.
    fn reads_as(&self, other: &Entity) -> bool {
        self.structure == other.structure && self.object.coding == other.object.coding
    }

    /// Whether `line` begins like a delimiter of the body.
    pub(super) fn delimits(&self, line: &[u8]) -> bool {
        match &self.structure {
            Structure::Multipart(multipart) => {
                let behind = line.strip_prefix(b"--").zip(multipart.boundary.as_deref());
                behind.is_some_and(|(behind, boundary)| behind.starts_with(boundary))
            }
            Structure::Leaf | Structure::Message(_) => false,
        }
    }

    /// A message without header that begins with a byte order mark of UTF-16 is text of that charset;
    /// whether this is one.
    pub(super) fn note_utf16(&mut self, head: &[u8]) -> bool {
        let charset = match head {
            [0xff, 0xfe, ..] => "utf-16le",
            [0xfe, 0xff, ..] => "utf-16be",
            _ => return false,
        };
        self.object.charset = Some(charset.into());
        true
    }
}

impl PartialEq for Structure {
    fn eq(&self, other: &Structure) -> bool {
        match (self, other) {
            (Structure::Leaf, Structure::Leaf) | (Structure::Message(_), Structure::Message(_)) => true,
            (Structure::Multipart(one), Structure::Multipart(two)) => one.boundary == two.boundary,
            _ => false,
        }
    }
}

impl Eq for Structure {}

fn is_multipart(content_type: &ContentType) -> bool {
    let Some(media_type) = content_type.media_type.as_deref() else {
        return false;
    };
    media_type == "multipart" || media_type.starts_with("multipart/")
}

fn certainty(content_type: &ContentType) -> Certainty {
    match content_type.media_type.as_deref() {
        Some("message/partial") => Certainty::Piece,
        _ => Certainty::Whole,
    }
}

fn is_message(content_type: &ContentType, default_message: bool) -> bool {
    match content_type.media_type.as_deref() {
        None => default_message,
        Some(
            "message"
            | "message/rfc822"
            | "message/rfc2822"
            | "message/global"
            | "message/news"
            | "message/partial"
            | "message/external-body",
        ) => true,
        Some(_) => false,
    }
}
