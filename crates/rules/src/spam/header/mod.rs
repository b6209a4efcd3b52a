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
pub(crate) use ip::{is_ipv4, is_private as is_private_ip, parse as parse_ip};
pub(crate) use received::find;

/// Whether an address of IP stands somewhere in a text.
pub(crate) fn ip_in(text: &[u8]) -> bool {
    ip::find(text).is_some()
}
