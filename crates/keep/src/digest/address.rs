//! Lists of addresses as an envelope tells them. [`mime::address`] reads them.

use alloc::vec::Vec;

use mime::address::Entry;

/// Addresses of one field that are told.
const ADDRESSES_MAX: usize = 2_000;

/// An address of an ENVELOPE: name, source route, mailbox, host. A group begins with a mailbox alone, and ends with nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Address {
    pub name: Option<Vec<u8>>,
    pub route: Option<Vec<u8>>,
    pub mailbox: Option<Vec<u8>>,
    pub host: Option<Vec<u8>>,
}

/// Reads a list. IMAP has no way to say that an address has no mailbox or no host: their texts say that they are missing.
pub(super) fn list(text: &[u8]) -> Vec<Address> {
    let told = |entry| match entry {
        Entry::Group(name) => Address { mailbox: Some(name), ..Address::default() },
        Entry::GroupEnd => Address::default(),
        Entry::Address(address) => {
            let or = |text: Vec<u8>, missing: &[u8]| if text.is_empty() { missing.to_vec() } else { text };
            Address {
                name: address.name.map(|name| mime::one_line(&name)),
                route: address.route,
                mailbox: Some(or(address.local, b"MISSING_MAILBOX")),
                host: Some(or(address.domain, b"MISSING_DOMAIN")),
            }
        }
    };
    mime::address::addresses(text, ADDRESSES_MAX).into_iter().map(told).collect()
}
