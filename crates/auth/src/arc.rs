//! Authenticated Received Chain (RFC 8617): the intermediaries of a mail, and the results of each.
//!
//! A chain passes if its sets are whole and numbered without a gap, every seal verifies, and so does the newest
//! signature of the message. Older signatures of the message show later changes, and do not affect the chain.
//!
//! Bounds: [`SETS_MAX`] sets; more of them fail.

use crate::body::Wanted;
use crate::dkim::{Base, Judge, Outcome as Verified, Report as Told, bytes_signed, key};
use crate::domain;
use crate::header::{Canonicalization, Header};
use crate::inquiry::{Inquiry, Pending};
use crate::key::Algorithm;
use crate::tags::Tags;

/// The most sets of a chain (section 4.2.1).
pub const SETS_MAX: usize = 50;

const RESULTS: &str = "arc-authentication-results";
const SIGNATURE: &str = "arc-message-signature";
const SEAL: &str = "arc-seal";

/// Result of a chain (section 4.4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outcome {
    /// The mail has no chain.
    #[default]
    None,
    /// It is whole.
    Pass,
    /// It is not.
    Fail,
    /// A key could not be looked up. A sealer reports a failure.
    TempError,
}

impl Outcome {
    /// As fields of headers have it.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::None => "none",
            Outcome::Pass => "pass",
            Outcome::Fail => "fail",
            Outcome::TempError => "temperror",
        }
    }
}

/// Report about a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The result.
    pub outcome: Outcome,
    /// Why it is not a pass.
    pub reason: Box<str>,
    /// The domains that sealed it, the oldest first.
    pub sealers: Vec<Box<str>>,
    /// Results in the oldest set, raw: the field's value. Only of a chain that passes.
    pub first_results: Option<Box<[u8]>>,
}

/// A chain whose structure is right.
#[derive(Debug, Clone)]
pub struct Chain {
    sets: Vec<Set>,
}

#[derive(Debug, Clone)]
struct Set {
    /// The number of the field with the results.
    results: usize,
    /// Index of the field with the message signature.
    signature: usize,
    seal: Seal,
}

#[derive(Debug, Clone)]
struct Seal {
    base: Base,
    says: Says,
}

/// `cv=`: the sealer's result for the chain before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    None,
    Pass,
    Fail,
}

/// A chain, if there is one, and the newest signature of its message.
#[derive(Debug, Clone)]
pub struct Newest {
    chain: Chain,
    signature: Base,
}

impl Newest {
    /// Reads the chain of a header (section 5.2, steps 1 to 3).
    ///
    /// # Errors
    /// The structural error.
    pub fn read(header: &Header) -> Result<Option<Newest>, &'static str> {
        let Some(chain) = Chain::read(header)? else { return Ok(None) };
        for (at, set) in chain.sets.iter().enumerate() {
            match set.seal.says {
                Says::Fail => return Err("a seal says that the chain has failed"),
                says if (says == Says::None) != (at == 0) => return Err("a seal has an impossible result"),
                _ => {}
            }
        }
        let newest = chain.sets.last().ok_or("no sets")?;
        let value = header.field(newest.signature).map(|field| field.value()).unwrap_or_default();
        let tags = Tags::parse(value).ok_or("tags of the signature are malformed")?;
        let signature = Base::read(&tags, newest.signature)?;
        if signature.algorithm == Algorithm::RsaSha1 {
            return Err("the signature has SHA-1");
        }
        if signature.names.iter().any(|name| **name == *SEAL) {
            return Err("the signature covers a seal");
        }
        Ok(Some(Newest { chain, signature }))
    }

    /// The hash that is wanted of the body.
    pub fn wanted(&self) -> Wanted {
        self.signature.wanted
    }

    /// Asks for all keys, which can be done before there is a body.
    pub fn ask(&self, inquiry: &mut Inquiry) {
        let mut told = Told::new(Verified::Neutral, "");
        let bases = self.chain.sets.iter().map(|set| &set.seal.base).chain([&self.signature]);
        bases.for_each(|base| drop(key(base, inquiry, &mut told)));
    }

    /// Verifies the newest signature and all seals (steps 4 and 6).
    ///
    /// # Errors
    /// A key has not been answered.
    pub fn verify(&self, judge: &Judge<'_>, inquiry: &mut Inquiry) -> Result<Report, Pending> {
        let sealers = self.chain.sets.iter().map(|set| set.seal.base.domain.clone()).collect();
        let mut report = Report { outcome: Outcome::Pass, sealers, ..Report::default() };
        let mut told = Told::new(Verified::Neutral, "");
        // All keys first, so that nothing is computed twice while one is waited for.
        let signer = key(&self.signature, inquiry, &mut told)?;
        let sealers: Vec<_> =
            self.chain.sets.iter().map(|set| key(&set.seal.base, inquiry, &mut told)).collect::<Result<_, _>>()?;
        let signature = signer.and_then(|key| self.signature.check(judge, &key, &mut told));
        let mut failed = signature.err().map(|stop| (stop, self.chain.sets.len(), "signature"));
        for (at, (set, key)) in self.chain.sets.iter().zip(sealers).enumerate().rev() {
            if failed.is_some() {
                break;
            }
            let base = &set.seal.base;
            let outcome = key.and_then(|key| match key.is_for(base.algorithm) {
                false => Err((Verified::PermError, "key is for another algorithm")),
                true => base.check_signature(judge, &key, &self.chain.sealed(judge.header, at)),
            });
            failed = outcome.err().map(|stop| (stop, at + 1, "seal"));
        }
        match failed {
            None => report.first_results = self.chain.first_results(judge.header),
            Some(((verified, reason), instance, what)) => {
                report.outcome = if verified == Verified::TempError { Outcome::TempError } else { Outcome::Fail };
                report.reason = format!("{what} {instance}: {reason}").into();
            }
        }
        Ok(report)
    }
}

impl Chain {
    fn read(header: &Header) -> Result<Option<Chain>, &'static str> {
        let [results, signatures, seals] = [RESULTS, SIGNATURE, SEAL].map(|name| header.named(name));
        let len = results.len();
        match (len, signatures.len(), seals.len()) {
            (0, 0, 0) => return Ok(None),
            (results, signatures, seals) if results != signatures || results != seals => {
                return Err("a set is not whole");
            }
            _ if len > SETS_MAX => return Err("too many sets"),
            _ => {}
        }
        let results = by_instance(header, results)?;
        let signatures = by_instance(header, signatures)?;
        let seals = by_instance(header, seals)?;
        let mut sets = Vec::new();
        for ((results, signature), seal) in results.into_iter().zip(signatures).zip(seals) {
            sets.push(Set { results, signature, seal: Seal::read(header, seal)? });
        }
        Ok(Some(Chain { sets }))
    }

    /// Bytes covered by the seal of a set: all sets as far as its own, its own value left out (section 5.1.1).
    fn sealed(&self, header: &Header, last: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for (at, set) in self.sets.iter().enumerate().take(last + 1) {
            for index in [set.results, set.signature] {
                if let Some(field) = header.field(index) {
                    field.canonical(Canonicalization::Relaxed, None, &mut out);
                    out.extend_from_slice(b"\r\n");
                }
            }
            let Some(field) = header.field(set.seal.base.index) else { continue };
            match at == last {
                true => bytes_signed(field, Canonicalization::Relaxed, set.seal.base.signature_range.clone(), &mut out),
                false => {
                    field.canonical(Canonicalization::Relaxed, None, &mut out);
                    out.extend_from_slice(b"\r\n");
                }
            }
        }
        out
    }

    fn first_results(&self, header: &Header) -> Option<Box<[u8]>> {
        header.field(self.sets.first()?.results).map(|field| field.value().into())
    }
}

/// The numbers of fields in the order of their instances, which have to be 1 and so on.
fn by_instance(header: &Header, fields: &[usize]) -> Result<Vec<usize>, &'static str> {
    let mut placed = vec![None; fields.len()];
    for &index in fields {
        let value = header.field(index).map(|field| field.value()).unwrap_or_default();
        let instance = instance(value).ok_or("an instance is no number")?;
        match placed.get_mut(instance.wrapping_sub(1)) {
            Some(place @ None) => *place = Some(index),
            Some(Some(_)) => return Err("an instance is there twice"),
            None => return Err("instances have a gap"),
        }
    }
    placed.into_iter().collect::<Option<_>>().ok_or("instances have a gap")
}

/// `i=`, the first tag of results, any of the others.
fn instance(value: &[u8]) -> Option<usize> {
    let number = |tag: &[u8]| -> Option<usize> {
        let (name, number) = core::str::from_utf8(tag).ok()?.split_once('=')?;
        let number = number.trim();
        let fits =
            name.trim() == "i" && (1..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| number.parse().ok()).flatten()
    };
    value.split(|&byte| byte == b';').find_map(number)
}

impl Seal {
    fn read(header: &Header, index: usize) -> Result<Seal, &'static str> {
        let value = header.field(index).map(|field| field.value()).unwrap_or_default();
        let tags = Tags::parse(value).ok_or("tags of a seal are malformed")?;
        if tags.get("h").is_some() {
            return Err("a seal names fields");
        }
        let algorithm = Algorithm::from_name(tags.text("a").unwrap_or("")).ok_or("algorithm of a seal is unknown")?;
        if algorithm == Algorithm::RsaSha1 {
            return Err("a seal has SHA-1");
        }
        let says = match tags.text("cv").unwrap_or("").to_ascii_lowercase().as_str() {
            "none" => Says::None,
            "pass" => Says::Pass,
            "fail" => Says::Fail,
            _ => return Err("a seal says nothing of the chain"),
        };
        let base = Base {
            algorithm,
            domain: tags.text("d").and_then(domain::host).ok_or("invalid domain of a seal")?,
            selector: tags.text("s").and_then(domain::host).ok_or("invalid selector of a seal")?,
            signature: tags.base64("b").flatten().ok_or("signature of a seal is no Base64")?,
            body_hash: Vec::new(),
            wanted: Wanted { form: Canonicalization::Relaxed, hash: algorithm.hash(), len: Some(0) },
            header_form: Canonicalization::Relaxed,
            names: Vec::new(),
            signature_range: tags.range("b").unwrap_or_default(),
            index,
        };
        Ok(Seal { base, says })
    }
}
