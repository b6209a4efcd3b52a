//! Declarations of an entity's header about its body, and other readings of them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use stream::{Class, Coding, Kind, Object};

use super::reader::Multipart;
use crate::field::{ContentType, Names, TransferCoding};

/// How many different types are kept; more are emitted as more readings than are followed.
const DIFFERENT_MAX: usize = 4;

/// The fields of a header that matter.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    types: Vec<ContentType>,
    /// The codings that are declared, in order.
    codings: Vec<Coding>,
    /// Codings that only some readers take for declared.
    possible_codings: Vec<Coding>,
    name: Option<Box<str>>,
    /// The names of all fields, in all readings.
    pub names: Names,
    /// Whether types, or readings of one, were left out.
    more: bool,
}

/// A body about to be read in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entity {
    pub structure: Structure,
    /// As it is emitted; kind and offset are still open.
    pub object: Object,
}

/// Structure of a body.
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
    /// Groups of fields (RFC 3464, 5965, 8098), which a few readers take for the header of one.
    Groups,
}

/// All ways to read a body.
#[derive(Debug)]
pub(super) struct Readings {
    pub first: Entity,
    /// Other readings, each with the name of the ambiguity.
    pub others: Vec<(&'static str, Entity)>,
    /// Whether more readings were left out.
    pub more: bool,
}

impl Found {
    pub(super) fn note_type(&mut self, content_type: ContentType) {
        self.more |= content_type.more;
        if self.types.contains(&content_type) {
            return;
        }
        match self.types.len() < DIFFERENT_MAX {
            true => self.types.push(content_type),
            false => self.more = true,
        }
    }

    pub(super) fn note_coding(&mut self, TransferCoding { coding, others }: TransferCoding) {
        note(&mut self.codings, coding);
        others.into_iter().for_each(|other| note(&mut self.possible_codings, other));
    }

    /// The field that comes next is one for some readers only: for the others the body has no type, or no coding, if
    /// none was declared before.
    pub(super) fn doubt(&mut self, is_type: bool, is_coding: bool) {
        if is_type && self.types.is_empty() {
            self.types.push(ContentType::default());
        }
        if is_coding && self.codings.is_empty() {
            self.codings.push(Coding::Identity);
        }
    }

    pub(super) fn note_name(&mut self, name: Option<Box<str>>) {
        if self.name.is_none() {
            self.name = name;
        }
    }

    /// All readings of the body: of each type with each coding. In a digest the default type is a message.
    pub(super) fn readings(&self, default_message: bool) -> Readings {
        let default = [ContentType::default()];
        let types = if self.types.is_empty() { &default[..] } else { &self.types };
        let codings = self.codings_in_order();
        let mut all = Vec::new();
        for (index, content_type) in types.iter().enumerate() {
            for (place, &coding) in codings.iter().enumerate() {
                for (name, entity) in self.entities(content_type, coding, default_message) {
                    let name = match (index, place) {
                        (0, 0) => name,
                        (0, _) if matches!(entity.structure, Structure::Leaf) => coding_name(content_type),
                        (0, _) => name,
                        _ => "Heuristics.Ambiguous.Mime.ContentType",
                    };
                    all.push((name, entity));
                }
            }
        }
        let mut all = all.into_iter();
        let first = all.next().map_or_else(|| self.leaf(&default[0], Coding::Identity), |(_, first)| first);
        let mut readings = Readings { first, others: Vec::new(), more: self.more };
        all.for_each(|(name, entity)| readings.add(name, entity));
        readings
    }

    /// Returns the readings of a body of one type and coding, likeliest first, each with the name of its ambiguity.
    fn entities(
        &self,
        content_type: &ContentType,
        coding: Coding,
        default_message: bool,
    ) -> Vec<(&'static str, Entity)> {
        let leaf = || self.leaf(content_type, coding);
        let boundaries = content_type.boundaries.iter().map(|boundary| self.multipart(content_type, Some(boundary)));
        let mut entities: Vec<(&'static str, Entity)> = Vec::new();
        if is_multipart(content_type) {
            entities.extend(boundaries.map(|multipart| ("Heuristics.Ambiguous.Mime.Boundary", multipart)));
            if entities.is_empty() || coding != Coding::Identity {
                entities.push(("Heuristics.Ambiguous.Mime.ContainerCoding", leaf()));
            }
            if content_type.boundaries.iter().all(|boundary| boundary.is_empty()) {
                entities.push(("Heuristics.Ambiguous.Mime.BoundaryMissing", self.multipart(content_type, None)));
            }
            return entities;
        }
        let likelihood = message_likelihood(content_type, default_message);
        match likelihood {
            Likelihood::Certain if coding == Coding::Identity => {
                entities.push(("", self.message(content_type, certainty(content_type))));
            }
            Likelihood::Certain | Likelihood::Possible => {
                entities.push(("", leaf()));
                let groups = coding == Coding::Identity && is_report(content_type);
                let certainty = if groups { Certainty::Groups } else { Certainty::Possible };
                let message = self.message(content_type, certainty);
                entities.push(("Heuristics.Ambiguous.Mime.MessageCoding", message));
            }
            Likelihood::No => entities.push(("", leaf())),
        }
        entities.extend(boundaries.map(|multipart| ("Heuristics.Ambiguous.Mime.MultipartType", multipart)));
        entities
    }

    /// Returns findings for names that were left out, and the types of parts with only a piece of their content, or none of it.
    pub(super) fn incomplete(&self) -> impl Iterator<Item = (Class, &'static str)> {
        let names = self.names.cut.then_some((Class::Limit, "Heuristics.Limits.Exceeded.Names"));
        let types = self.types.iter().filter_map(|content_type| match content_type.media_type.as_deref()? {
            "message/partial" => Some((Class::Ambiguous, "Heuristics.Ambiguous.Mime.Partial")),
            "message/external-body" => Some((Class::External, "Heuristics.External.Mime.Body")),
            _ => None,
        });
        names.into_iter().chain(types)
    }

    /// The codings that readers may take to be declared, likeliest first.
    fn codings_in_order(&self) -> Vec<Coding> {
        let mut codings = self.codings.clone();
        let possible = self.possible_codings.iter().filter(|coding| !self.codings.contains(coding));
        codings.extend(possible);
        if codings.is_empty() {
            codings.push(Coding::Identity);
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
                content_type.boundaries.iter().filter(|other| Some(&***other) != boundary).cloned().collect(),
            )),
            object: self.object(content_type, Coding::Identity),
        }
    }

    fn object(&self, content_type: &ContentType, coding: Coding) -> Object {
        let name = self.name.as_deref().or(content_type.name.as_deref()).or_else(|| self.names.first());
        Object {
            kind: Kind::Part,
            name: name.map(Box::from),
            other_names: self.names.others(name),
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
    /// Returns whether two readings give the same parts with the same bytes, whatever their names. A container beneath
    /// its coding is opened as one.
    fn reads_as(&self, other: &Entity) -> bool {
        let beneath = |entity: &Entity| {
            let main = entity.object.media_type.as_deref().and_then(|media| media.split('/').next());
            let is_coded = entity.object.coding != Coding::Identity;
            is_coded.then(|| (main == Some("multipart"), main == Some("message")))
        };
        self.structure == other.structure
            && self.object.coding == other.object.coding
            && beneath(self) == beneath(other)
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

impl Structure {
    /// Whether it is a message only for readers that take groups of fields for one.
    pub(super) const fn is_of_groups(&self) -> bool {
        matches!(self, Structure::Message(Certainty::Groups))
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

/// How likely it is that readers take a body for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Likelihood {
    Certain,
    /// Some take every type that begins with `message/` for one.
    Possible,
    No,
}

fn message_likelihood(content_type: &ContentType, default_message: bool) -> Likelihood {
    match content_type.media_type.as_deref() {
        None if default_message => Likelihood::Certain,
        Some(
            "message"
            | "message/rfc822"
            | "message/rfc2822"
            | "message/global"
            | "message/news"
            | "message/partial"
            | "message/external-body",
        ) => Likelihood::Certain,
        Some(other) if other.starts_with("message/") => Likelihood::Possible,
        _ => Likelihood::No,
    }
}

/// Whether a body consists of groups of fields.
fn is_report(content_type: &ContentType) -> bool {
    matches!(
        content_type.media_type.as_deref(),
        Some(
            "message/delivery-status"
                | "message/global-delivery-status"
                | "message/disposition-notification"
                | "message/global-disposition-notification"
                | "message/feedback-report"
                | "message/tracking-status"
        )
    )
}

fn note(codings: &mut Vec<Coding>, coding: Coding) {
    if !codings.contains(&coding) {
        codings.push(coding);
    }
}

fn coding_name(content_type: &ContentType) -> &'static str {
    let message = message_likelihood(content_type, false) == Likelihood::Certain;
    match message || is_multipart(content_type) && !content_type.boundaries.is_empty() {
        true => "Heuristics.Ambiguous.Mime.ContainerCoding",
        false => "Heuristics.Ambiguous.Mime.TransferEncoding",
    }
}
