//! The signature of a Windows program (Authenticode), looked at while the program passes.
//!
//! What is signed is the digest of the whole file but for its checksum, the place where its head says where the signature is,
//! and the signature itself, which has to be the end of the file ("Windows Authenticode Portable Executable Signature
//! Format", Microsoft). Which digest it is stands behind all that is digested: so SHA-1 and SHA-256 run side by side, where
//! rules or catalogues ask for them, and SHA-384 and SHA-512 of programs that are signed, where a rule may trust them.
//!
//! Bounds: the head as for all layouts; of the signature [`SIGNATURE_BYTES_MAX`] are held. Of a longer one it is said that
//! it could not be read; MD5 is not computed, so nobody is trusted by it.

use sha1::{Digest, Sha1};
use sha2::{Sha256, Sha384, Sha512};

use crate::hashes::HashTable;
use crate::layout::{Layout, Places};
use crate::signed::catalogue::{INDIRECT_DATA, signed_digest};
use crate::signed::message::Message;
use crate::signed::rsa::Algorithm;
use crate::signed::rule::Rule;
use crate::signed::signers::{SignedBy, signers};
use crate::signed::trust::{VERIFICATIONS_MAX, told, vouched};
use crate::table::database::{Database, Name};

/// The most that is held of a signature.
const SIGNATURE_BYTES_MAX: u64 = 256 << 10;

/// A program that passes.
#[derive(Debug, Clone)]
pub(crate) struct Passing {
    places: Places,
    sha1: Option<Sha1>,
    sha256: Option<Sha256>,
    /// Digests of a signed program that a rule may trust. Catalogues list no such digests.
    wide: Option<(Sha384, Sha512)>,
    /// The beginning of the signature.
    signature: Vec<u8>,
    position: u64,
}

/// Outcome of a signature.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The names by which its certificates are told.
    pub(crate) told: Vec<Name>,
    /// Whether rules vouch for the program, or a catalogue does.
    pub(crate) trusted: bool,
    /// Whether it was too long.
    pub(crate) lost: bool,
}

/// Whether some layer has rules on certificates.
pub(crate) fn has_rules(database: &Database) -> bool {
    database.layers().any(|layer| !layer.certificates.is_empty())
}

/// Whether some layer has rules on certificates, or catalogues.
pub(crate) fn is_asked_for(database: &Database) -> bool {
    has_rules(database) || database.layers().any(|layer| !layer.catalogued.is_empty())
}

impl Passing {
    /// If somebody asks; `told` is whether rules ask who signed.
    pub(crate) fn new(database: &Database, layout: &Layout, told: bool) -> Option<Passing> {
        let places = layout.pe.as_ref()?.signed.clone();
        let trusts = database.layers().any(|layer| layer.certificates.iter().any(|rule| rule.trusts));
        let is_signed = places.signature.is_some();
        let listed = |of: fn(&HashTable) -> bool| database.layers().any(|layer| of(&layer.catalogued));
        let sha1 = (is_signed && trusts) || listed(|table| table.sha1.largest().is_some());
        let sha256 = (is_signed && trusts) || listed(|table| table.sha256.largest().is_some());
        (sha1 || sha256 || (is_signed && (told || has_rules(database)))).then(|| Passing {
            places,
            sha1: sha1.then(Sha1::new),
            sha256: sha256.then(Sha256::new),
            wide: (is_signed && trusts).then(Default::default),
            signature: Vec::new(),
            position: 0,
        })
    }

    /// Takes in the next bytes.
    pub(crate) fn pass(&mut self, bytes: &[u8]) {
        let start = self.position;
        let end = start + bytes.len() as u64;
        self.position = end;
        let Places { checksum, entry, signature, .. } = self.places;
        let table = signature.map_or(u64::MAX, |(at, _)| at);
        for (from, to) in [(0, checksum), (checksum + 4, entry), (entry + 8, table)] {
            let (from, to) = (from.max(start), to.min(end));
            if from < to {
                let covered = &bytes[(from - start) as usize..(to - start) as usize];
                self.sha1.iter_mut().for_each(|sha1| sha1.update(covered));
                self.sha256.iter_mut().for_each(|sha256| sha256.update(covered));
                self.wide.iter_mut().for_each(|(sha384, sha512)| {
                    sha384.update(covered);
                    sha512.update(covered);
                });
            }
        }
        let (from, to) = (table.max(start), table.saturating_add(SIGNATURE_BYTES_MAX).min(end));
        if from < to {
            self.signature.extend_from_slice(&bytes[(from - start) as usize..(to - start) as usize]);
        }
    }

    /// Signers of the file, now that it has passed; `None` if they cannot be read.
    pub(crate) fn signers(&self) -> Option<Vec<SignedBy>> {
        match self.places.signature {
            Some((at, length)) if at.checked_add(length).is_none_or(|end| end > self.position) => Some(Vec::new()),
            Some(_) => signers(&self.signature),
            None => Some(Vec::new()),
        }
    }

    /// The program is at its end.
    pub(crate) fn finish(self, database: &Database) -> Outcome {
        let Places { entry, head_bytes, signature, .. } = self.places;
        if entry + 8 > head_bytes {
            return Outcome::default();
        }
        let mut outcome = Outcome::default();
        let sha1 = self.sha1.map(|sha1| sha1.finalize().into());
        let sums =
            digest::Sums { size: 0, md5: None, sha1, sha256: self.sha256.map(|sha256| sha256.finalize().into()) };
        if let Some((at, length)) = signature {
            if at < entry + 8 || at.checked_add(length) != Some(self.position) {
                return outcome;
            }
            let wide = self.wide.map(|(sha384, sha512)| (sha384.finalize().into(), sha512.finalize().into()));
            judge(&self.signature, &sums, wide.as_ref(), database, &mut outcome);
        }
        if outcome.told.is_empty() && !outcome.trusted {
            let names = database.matching(|layer| &layer.catalogued, &sums);
            outcome.trusted = names.into_iter().any(|name| database.name(name).is_some());
        }
        outcome
    }
}

/// Looks at a signature: length, revision 2.0, type 2 (PKCS #7), message, and the messages within it.
fn judge(
    table: &[u8],
    sums: &digest::Sums,
    wide: Option<&([u8; 48], [u8; 64])>,
    database: &Database,
    outcome: &mut Outcome,
) {
    let Some((&[_, _, _, _, 0, 2, 2, 0], message)) = table.split_first_chunk() else { return };
    let messages = Message::read_with_nested(message);
    let is_cut = messages.first().is_none_or(Option::is_none);
    outcome.lost = is_cut && table.len() as u64 == SIGNATURE_BYTES_MAX && has_rules(database);
    let messages: Vec<Message<'_>> = messages.into_iter().flatten().collect();
    let layers = database.layers().enumerate();
    let is_told = |layer: usize, rule: &Rule| database.name(Name { layer, number: rule.name }).is_some();
    for (message, (layer, database)) in messages.iter().flat_map(|one| layers.clone().map(move |layer| (one, layer))) {
        let names = told(message, &database.certificates).into_iter().map(|number| Name { layer, number });
        let new: Vec<Name> = names.filter(|name| !outcome.told.contains(name)).collect();
        outcome.told.extend(new);
    }
    if outcome.told.iter().any(|name| database.name(*name).is_some()) {
        return;
    }
    let rules = layers.flat_map(|(layer, database)| {
        database.certificates.iter().filter(move |rule| rule.trusts && is_told(layer, rule))
    });
    let rules: Vec<&Rule> = rules.collect();
    let mut left = VERIFICATIONS_MAX;
    let digests =
        messages.iter().filter_map(|message| vouched(message, INDIRECT_DATA, &rules, database.date, &mut left));
    outcome.trusted = digests.filter_map(signed_digest).any(|digest| match digest {
        (Algorithm::Sha1, digest) => sums.sha1.is_some_and(|sum| sum == digest),
        (Algorithm::Sha256, digest) => sums.sha256.is_some_and(|sum| sum == digest),
        (Algorithm::Sha384, digest) => wide.is_some_and(|(sum, _)| sum == digest),
        (Algorithm::Sha512, digest) => wide.is_some_and(|(_, sum)| sum == digest),
        _ => false,
    });
}
