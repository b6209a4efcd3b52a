//! Real-world mail, read as it streams, in bounded memory.
//!
//! * [`Parser`] reads a message and emits its header fields and parts, raw; where two mail readers could disagree it
//!   offers the second reading.
//! * [`Decoder`] undoes a transfer coding.
//! * [`Embedded`] finds files written into text (uuencode, BinHex, yEnc).
//! * [`Utf16`] turns UTF-16 into UTF-8.
//! * [`address`] reads lists of addresses.
//! * [`Value`] reads a structured field, as one reader takes it.
//! * [`header_text`] reads the text of a header field.
//! * [`encoded_text`] writes text with a transfer coding.
//! * [`looks_like_mail`] recognises a message by its head.
//!
//! This crate knows nothing of SMTP, of mail stores, of the use of parts, and of the meaning of any field but
//! `Content-Type`, `Content-Transfer-Encoding` and `Content-Disposition`. Standards: RFC 5322, 2045, 2046, 2047, 2231,
//! 6532, and the habits of mail readers beyond them.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod address;
mod decoder;
mod embedded;
mod encoder;
mod field;
mod fuzz;
mod parser;
mod recognise;
mod utf16;

pub use decoder::Decoder;
pub use embedded::{Embedded, announces_yenc};
pub use encoder::encoded_text;
pub use field::value::{self, Value};
pub use field::{bare as without_comments, one_line, text as header_text, unfolded};
pub use fuzz::{fuzz_decoder, fuzz_embedded, fuzz_parser};
pub use parser::Parser;
pub use recognise::looks_like_mail;
pub use utf16::Utf16;
