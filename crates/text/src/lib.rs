//! Text encodings: Base64, hexadecimal digits, charsets, UTF-16, composed characters, dates, subjects and parameters of messages, the
//! names of characters and of hosts, invisible characters, and the tags, attributes and text of HTML.
//!
//! This crate knows no stage and emits no findings: it takes bytes and returns bytes or characters. The handling of
//! junk is left to callers, since each reader that they follow handles it in its own way.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod base64;
pub mod charset;
pub mod code_page;
pub mod date;
pub mod encoding;
pub mod entities;
pub mod hazard;
pub mod hex;
pub mod host;
pub mod html;
pub mod lenient;
pub mod normal;
pub mod parameter;
pub mod references;
pub mod subject;
pub mod utf16;
