//! Addresses that get no more mail of accounts: they have reported some, or an operator wants it so.
//!
//! They are annotations of an account of the store that no accounts file can name, in [`SHARDS`] by their hash, a line each: a look-up
//! reads one of them. Bounds: [`SHARD_BYTES_MAX`] of each, some 15,000 addresses in all; the oldest of a full one goes.

use store::{Error, Quota, State, Transaction};

use super::hash;
use crate::file::File;

/// The account: with a blank in it, which no other's name has.
const ACCOUNT: &[u8] = b"sluice suppressed";

const SHARDS: u32 = 256;

/// Bytes of one, so that all of them are within the annotations of one account.
const SHARD_BYTES_MAX: usize = 7_000;

const _: () = assert!(SHARDS as usize * (SHARD_BYTES_MAX + 16) < 2 << 20, "an account has annotations of 2 MiB");

/// The longest address: a local part, and a domain.
const ADDRESS_BYTES_MAX: usize = 320;

/// Letters of a reason that are kept.
const REASON_LETTERS_MAX: usize = 200;

/// An address that gets no more mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suppressed {
    /// In lower case.
    pub address: String,
    /// Seconds since 1970.
    pub since: i64,
    /// Why, in words.
    pub reason: String,
}

/// All of them, by address.
pub fn suppressed(state: &State) -> Vec<Suppressed> {
    let Some((_, account)) = state.account_named(ACCOUNT) else { return Vec::new() };
    let mut all: Vec<Suppressed> = account.annotations.values().flat_map(|shard| decode(shard)).collect();
    all.sort_unstable_by(|one, other| one.address.cmp(&other.address));
    all
}

/// Whether an address gets no more mail.
pub fn is_suppressed(state: &State, address: &str) -> bool {
    let Some((_, account)) = state.account_named(ACCOUNT) else { return false };
    let address = address.to_ascii_lowercase();
    let shard = account.annotations.get(&*name_of(&address));
    shard.is_some_and(|shard| decode(shard).any(|one| one.address == address))
}

/// Adds an address, or gives it another reason; false if it is not one.
pub(crate) fn suppress(
    transaction: &mut Transaction<'_, File>,
    address: &str,
    reason: &str,
    now: i64,
) -> Result<bool, Error> {
    let address = address.to_ascii_lowercase();
    let is_plain = !address.contains(|letter: char| letter.is_whitespace() || letter.is_control());
    if !is_plain || !address.contains('@') || address.len() > ADDRESS_BYTES_MAX {
        return Ok(false);
    }
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let reason = reason.chars().map(plain).take(REASON_LETTERS_MAX).collect();
    let account = match transaction.state().account_named(ACCOUNT) {
        Some((account, _)) => account,
        None => transaction.add_account(ACCOUNT, Quota::default())?,
    };
    let mut shard = shard_of(transaction.state(), &address);
    shard.retain(|one| one.address != address);
    let name = name_of(&address);
    shard.push(Suppressed { address, since: now, reason });
    let mut text = encode(&shard);
    while text.len() > SHARD_BYTES_MAX {
        shard.remove(0);
        text = encode(&shard);
    }
    transaction.annotate(account, None, &name, Some(&text))?;
    Ok(true)
}

/// Takes an address out; whether it was there.
pub(crate) fn forgive(transaction: &mut Transaction<'_, File>, address: &str) -> Result<bool, Error> {
    let address = address.to_ascii_lowercase();
    let Some((account, _)) = transaction.state().account_named(ACCOUNT) else { return Ok(false) };
    let mut shard = shard_of(transaction.state(), &address);
    let before = shard.len();
    shard.retain(|one| one.address != address);
    if shard.len() == before {
        return Ok(false);
    }
    let text = (!shard.is_empty()).then(|| encode(&shard));
    transaction.annotate(account, None, &name_of(&address), text.as_deref())?;
    Ok(true)
}

fn shard_of(state: &State, address: &str) -> Vec<Suppressed> {
    let shard = state.account_named(ACCOUNT).and_then(|(_, account)| account.annotations.get(&*name_of(address)));
    shard.map(|shard| decode(shard).collect()).unwrap_or_default()
}

fn name_of(address: &str) -> Vec<u8> {
    format!("shard/{:02x}", hash(address) % SHARDS).into_bytes()
}

/// `SINCE ADDRESS REASON`, the oldest first.
fn encode(shard: &[Suppressed]) -> Vec<u8> {
    let line = |Suppressed { address, since, reason }: &Suppressed| format!("{since} {address} {reason}\n");
    shard.iter().map(line).collect::<String>().into_bytes()
}

fn decode(shard: &[u8]) -> impl Iterator<Item = Suppressed> + '_ {
    let text = std::str::from_utf8(shard).unwrap_or_default();
    text.lines().filter_map(|line| {
        let mut words = line.splitn(3, ' ');
        let (since, address) = (words.next()?.parse().ok()?, words.next()?.to_owned());
        Some(Suppressed { address, since, reason: words.next().unwrap_or_default().to_owned() })
    })
}
