//! Authenticator data (section 6.1), and the attestation object around those of a registration (section 6.5.4).

use super::Refused;
use super::cbor::Item;
use super::public::Public;

/// Bytes of the identifier of a credential.
const ID_BYTES_MAX: usize = 1_023;

/// The user was present.
const PRESENT: u8 = 1;
/// The authenticator has verified who the user is.
const VERIFIED: u8 = 1 << 2;
/// The credential may be copied to other devices.
const ELIGIBLE: u8 = 1 << 3;
/// The credential has been copied.
const BACKED_UP: u8 = 1 << 4;
/// A credential follows.
const ATTESTED: u8 = 1 << 6;
/// Extensions follow.
const EXTENDED: u8 = 1 << 7;

/// Authenticator data.
pub(super) struct Data<'a> {
    /// SHA-256 of the relying party.
    pub party: &'a [u8; 32],
    flags: u8,
    /// Signatures so far, where the authenticator counts them.
    pub counter: u32,
    /// The credential of a registration: its identifier and its public key.
    pub credential: Option<(&'a [u8], &'a [u8])>,
}

impl<'a> Data<'a> {
    /// Reads all of a text.
    pub fn read(text: &'a [u8]) -> Result<Data<'a>, Refused> {
        let (party, rest) = text.split_first_chunk().ok_or(Refused::Unreadable)?;
        let ([flags], rest) = rest.split_first_chunk().ok_or(Refused::Unreadable)?;
        let (counter, mut rest) = rest.split_first_chunk().ok_or(Refused::Unreadable)?;
        let mut credential = None;
        if flags & ATTESTED != 0 {
            (credential, rest) = attested(rest)?;
        }
        if flags & EXTENDED != 0 {
            rest = Item::read(rest).filter(|(map, _)| matches!(map, Item::Map(_))).ok_or(Refused::Unreadable)?.1;
        }
        let is_whole = rest.is_empty() && (flags & BACKED_UP == 0 || flags & ELIGIBLE != 0);
        let data = Data { party, flags: *flags, counter: u32::from_be_bytes(*counter), credential };
        if is_whole { Ok(data) } else { Err(Refused::Unreadable) }
    }

    pub fn is_present(&self) -> bool {
        self.flags & PRESENT != 0
    }

    pub fn is_verified(&self) -> bool {
        self.flags & VERIFIED != 0
    }
}

/// The authenticator data of an attestation object. Its statement is read over.
pub(super) fn of_attestation(object: &[u8]) -> Result<&[u8], Refused> {
    let (map, rest) = Item::read(object).ok_or(Refused::Unreadable)?;
    map.bytes(&Item::Text("authData")).filter(|_| rest.is_empty()).ok_or(Refused::Unreadable)
}

type Credential<'a> = Option<(&'a [u8], &'a [u8])>;

/// The credential behind the identifier of the kind of authenticator, and the bytes behind it.
fn attested(text: &[u8]) -> Result<(Credential<'_>, &[u8]), Refused> {
    let (_, rest) = text.split_first_chunk::<16>().ok_or(Refused::Unreadable)?;
    let (length, rest) = rest.split_first_chunk().ok_or(Refused::Unreadable)?;
    let length = usize::from(u16::from_be_bytes(*length));
    if !(1..=ID_BYTES_MAX).contains(&length) {
        return Err(Refused::Unreadable);
    }
    let (id, rest) = rest.split_at_checked(length).ok_or(Refused::Unreadable)?;
    let (_, behind) = Public::read(rest)?;
    let public = rest.get(..rest.len().saturating_sub(behind.len())).unwrap_or_default();
    Ok((Some((id, public)), behind))
}
