//! Text, as others write bytes in it and characters in bytes: Base64, hexadecimal digits, charsets, UTF-16, dates,
//! the names of characters and of hosts, characters that nobody sees, and the tags, attributes and text of HTML.
//!
//! This crate knows no stage and finds nothing: it is given bytes and returns bytes or characters. What is done about junk is
//! its callers' business, since each reader that they follow does something else about it.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod base64;
pub mod charset;
pub mod date;
pub mod entities;
pub mod hazard;
pub mod hex;
pub mod host;
pub mod html;
pub mod lenient;
pub mod references;
pub mod utf16;
