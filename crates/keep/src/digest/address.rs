//! Lists of addresses as an envelope tells them. [`mime::address`] reads them.

use alloc::vec::Vec;

use mime::address::Entry;

/// Addresses of one field that are told.
const ADDRESSES_MAX: usize = 2_000;

/// An address of an ENVELOPE: name, mailbox, host. A group begins with a mailbox alone, and ends with nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Address {
    pub name: Option<Vec<u8>>,
    pub mailbox: Option<Vec<u8>>,
    pub host: Option<Vec<u8>>,
}

/// Reads a list. `<>` has neither mailbox nor host, and IMAP no way to say so: both say that they are missing.
pub(super) fn list(text: &[u8]) -> Vec<Address> {
    let told = |entry| match entry {
        Entry::Group(name) => Address { mailbox: Some(name), ..Address::default() },
        Entry::GroupEnd => Address::default(),
        Entry::Address(address) => {
            let is_empty = address.name.is_none() && address.local.is_empty() && address.domain.is_empty();
            let (mailbox, host) = match is_empty {
                true => (b"MISSING_MAILBOX".to_vec(), b"MISSING_DOMAIN".to_vec()),
                false => (address.local, address.domain),
            };
            Address { name: address.name, mailbox: Some(mailbox), host: Some(host) }
        }
    };
    mime::address::addresses(text, ADDRESSES_MAX).into_iter().map(told).collect()
}
