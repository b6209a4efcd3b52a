//! The header of a mail as rules ask for it: fields with modifiers, addresses, and the path that the mail took.
//!
//! Nothing of the body is looked at here.

mod fields;
mod ip;
mod path;
mod received;

pub use fields::{Fields, Request, Values};
pub use path::{Networks, Path};
pub use received::Relay;

pub(crate) use fields::without_line_feed;
pub(crate) use ip::{is_ipv4, is_private as is_private_ip, parse as parse_ip, reversed};
pub(crate) use received::find;

/// The addresses of IP that stand in a text.
pub(crate) fn find_ips(text: &[u8]) -> Vec<Box<[u8]>> {
    const COUNT_MAX: usize = 100;
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(address) = ip::find(rest).filter(|_| found.len() < COUNT_MAX) {
        found.push(address.into());
        let end = memchr::memmem::find(rest, address).map_or(rest.len(), |at| at + address.len());
        rest = &rest[end..];
    }
    found
}

/// Whether an address of IP stands somewhere in a text.
pub(crate) fn ip_in(text: &[u8]) -> bool {
    ip::find(text).is_some()
}
