//! YARA rules, matched on the stream.
//!
//! Strings are looked for as bodies are, by the pattern engine, in one pass of their own; conditions are evaluated when
//! the object has passed. That covers what rules of malware are mostly made of: texts, bodies and regular expressions with
//! all their modifiers, counts, offsets, `of`, loops, `filesize`, numbers read from the object, and its name. A rule that asks for
//! more is refused by name: modules other than parts of `pe` and `math`.
//!
//! Why not a library: YARA-X wants the whole object in memory and keeps no state between pieces, and brings a compiler of
//! its own to the scanner. What is written here follows the manual of YARA 4.
//!
//! [`Rules`] ← [`lexer`], [`condition`], [`hex`], [`text`], [`regex`] ([`spelling`]) → [`table`]; `run` has what follows the strings
//! and evaluates the conditions. Strings that are looked for at the end: [`tree`] → [`atoms`], [`program`] → [`finder`] →
//! [`search`], [`walk`].

mod atoms;
mod condition;
mod constant;
pub(crate) mod fact;
pub(crate) mod finder;
pub(crate) mod header;
mod hex;
pub(crate) mod id;
mod lexer;
pub(crate) mod math;
pub(crate) mod node;
mod program;
pub(crate) mod regex;
mod rules;
mod search;
mod spelling;
mod stored;
pub(crate) mod table;
mod text;
mod tree;
mod walk;

pub(crate) use fact::{Asked, Called, Tables};
pub(crate) use rules::Rules;
pub(crate) use stored::{load, store};
pub(crate) use table::{Source, Table, TableBuilder};
