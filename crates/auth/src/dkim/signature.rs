//! Tags of a `DKIM-Signature` (RFC 6376 section 3.5).

use std::ops::Range;

use super::{Outcome, Report};
use crate::body::Wanted;
use crate::domain;
use crate::header::{Canonicalization, Field, Header};
use crate::key::Algorithm;
use crate::tags::Tags;

/// The most names in `h=`.
pub const NAMES_MAX: usize = 512;

/// A signature that can be verified.
#[derive(Debug, Clone)]
pub struct Signature {
    pub(crate) base: Base,
    pub(super) identity: Box<str>,
    pub(super) created: Option<u64>,
    pub(super) expires: Option<u64>,
}

/// Common part of signatures of mails, those of ARC too.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    pub algorithm: Algorithm,
    pub domain: Box<str>,
    pub selector: Box<str>,
    pub signature: Vec<u8>,
    pub body_hash: Vec<u8>,
    pub wanted: Wanted,
    pub header_form: Canonicalization,
    pub names: Vec<Box<str>>,
    /// Where the value of `b=` is in the field's value.
    pub signature_range: Range<usize>,
    /// The field's number.
    pub index: usize,
}

impl Signature {
    /// Reads the `DKIM-Signature` field with this index.
    ///
    /// # Errors
    /// The result for a signature that cannot be verified.
    pub fn parse(header: &Header, index: usize) -> Result<Signature, Box<Report>> {
        let malformed = |reason| Box::new(Report::new(Outcome::Neutral, reason));
        let value = header.field(index).ok_or_else(|| malformed("no field"))?.value();
        let tags = Tags::parse(value).ok_or_else(|| malformed("tags are malformed"))?;
        Signature::read(&tags, index).map_err(|reason| {
            let known = |name| tags.text(name).map(|text| domain::host(text).unwrap_or_default()).unwrap_or_default();
            Box::new(Report {
                domain: known("d"),
                selector: known("s"),
                algorithm: tags.text("a").and_then(Algorithm::from_name),
                mark: mark(tags.get("b").unwrap_or_default()),
                ..Report::new(Outcome::Neutral, reason)
            })
        })
    }

    fn read(tags: &Tags<'_>, index: usize) -> Result<Signature, &'static str> {
        if tags.text("v") != Some("1") {
            return Err("version is not 1");
        }
        let base = Base::read(tags, index)?;
        if !base.names.iter().any(|name| **name == *"from") {
            return Err("From is not signed");
        }
        if tags.list("q").is_some_and(|mut ways| !ways.any(|way| way == "dns/txt")) {
            return Err("key is not in the DNS");
        }
        let number = |name| match tags.number(name) {
            Some(None) => Err("time is no number"),
            Some(number) => Ok(number),
            None => Ok(None),
        };
        let (created, expires) = (number("t")?, number("x")?);
        if created.zip(expires).is_some_and(|(created, expires)| expires < created) {
            return Err("expires before it was made");
        }
        let identity = identity(tags, &base.domain)?;
        Ok(Signature { base, identity, created, expires })
    }

    /// The hash that it wants of the body.
    pub fn wanted(&self) -> Wanted {
        self.base.wanted
    }

    /// The domain that signs.
    pub fn domain(&self) -> &str {
        &self.base.domain
    }

    pub(super) fn report(&self, header: &Header) -> Report {
        let b = header.field(self.base.index).and_then(|field| field.value().get(self.base.signature_range.clone()));
        let names = self.base.names.iter();
        Report {
            covered: names.filter(|name| header.named(name).len() == 1).cloned().collect(),
            domain: self.base.domain.clone(),
            selector: self.base.selector.clone(),
            identity: self.identity.clone(),
            algorithm: Some(self.base.algorithm),
            mark: mark(b.unwrap_or_default()),
            ..Report::new(Outcome::Pass, "")
        }
    }
}

impl Base {
    /// Reads the tags that all kinds of signatures have.
    pub fn read(tags: &Tags<'_>, index: usize) -> Result<Base, &'static str> {
        let algorithm = Algorithm::from_name(tags.text("a").ok_or("no algorithm")?).ok_or("algorithm is unknown")?;
        let (header_form, body_form) = forms(tags.text("c")).ok_or("canonicalization is unknown")?;
        let len = match tags.number("l") {
            Some(None) => return Err("length is no number"),
            Some(len) => len,
            None => None,
        };
        Ok(Base {
            algorithm,
            domain: tags.text("d").and_then(domain::host).ok_or("invalid domain")?,
            selector: tags.text("s").and_then(domain::host).ok_or("invalid selector")?,
            signature: tags.base64("b").flatten().ok_or("signature is no Base64")?,
            body_hash: tags.base64("bh").flatten().ok_or("body hash is no Base64")?,
            wanted: Wanted { form: body_form, hash: algorithm.hash(), len },
            header_form,
            names: names(tags)?,
            signature_range: tags.range("b").unwrap_or_default(),
            index,
        })
    }

    /// Signed bytes: the fields selected, then the signature's own without its value (section 3.7).
    pub fn signed(&self, header: &Header) -> Vec<u8> {
        let mut out = Vec::new();
        for index in header.select(&self.names, self.index) {
            if let Some(field) = header.field(index) {
                field.canonical(self.header_form, None, &mut out);
                out.extend_from_slice(b"\r\n");
            }
        }
        if let Some(own) = header.field(self.index) {
            bytes_signed(own, self.header_form, self.signature_range.clone(), &mut out);
        }
        out
    }
}

/// A signature's field as it was when it was signed: without the value of `b=` and the last line end.
pub(crate) fn bytes_signed(own: Field<'_>, form: Canonicalization, without: Range<usize>, out: &mut Vec<u8>) {
    own.canonical(form, Some(without), out);
}

/// `c=`: of the header, then of the body.
fn forms(text: Option<&str>) -> Option<(Canonicalization, Canonicalization)> {
    let form = |name: &str| match name.trim() {
        name if name.eq_ignore_ascii_case("simple") => Some(Canonicalization::Simple),
        name if name.eq_ignore_ascii_case("relaxed") => Some(Canonicalization::Relaxed),
        _ => None,
    };
    let (header, body) = text.unwrap_or("simple").split_once('/').unwrap_or((text.unwrap_or("simple"), "simple"));
    Some((form(header)?, form(body)?))
}

fn names(tags: &Tags<'_>) -> Result<Vec<Box<str>>, &'static str> {
    let names: Vec<Box<str>> =
        tags.list("h").ok_or("no fields are signed")?.map(|name| name.to_ascii_lowercase().into()).collect();
    if names.len() > NAMES_MAX {
        return Err("too many fields are signed");
    }
    match names.iter().any(|name| name.is_empty()) {
        true => Err("a field without a name is signed"),
        false => Ok(names),
    }
}

/// `i=`: an address at the domain or below it.
fn identity(tags: &Tags<'_>, domain: &str) -> Result<Box<str>, &'static str> {
    let Some(identity) = tags.text("i") else { return Ok(format!("@{domain}").into()) };
    let at = domain::of_address(identity).and_then(domain::host);
    match at.is_some_and(|at| domain::is_within(&at, domain)) {
        true => Ok(identity.into()),
        false => Err("identity is not of the domain"),
    }
}

/// The first eight characters of a signature.
fn mark(b: &[u8]) -> Box<str> {
    let characters = b.iter().filter(|byte| text::base64::value(**byte).is_some()).take(8);
    characters.map(|&byte| char::from(byte)).collect::<String>().into()
}
