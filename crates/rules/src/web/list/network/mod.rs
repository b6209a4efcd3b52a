//! Network rules of Adblock lists: the requests that they block.
//!
//! Plainly: for each rule, if its pattern matches the URL and its options hold for the request, the request is blocked, unless an
//! exception (`@@`) of the list holds, too, and no `important` rule does. An [index](index) leaves a few of 100,000 rules to try:
//!
//! - A rule stands under one key: the host behind `||`, else the rarest of the words that every match has between two other characters,
//!   else each page of `domain=`. Rules without any of these are tried on every request.
//! - A request has the keys of its host and the names above it, of the words of its URL, and of its page.
//! - Expressions (`/.../`) stand behind one pass for the strings that they need.
//!
//! Exceptions are tried only for a request that a rule blocks. All of it is bounded by steps; a request that takes more is partial.
//!
//! Left out, and counted: rules that hide elements, that change pages or requests (`csp`, `removeparam`, `replace` and others), and those
//! about windows (`popup`). `badfilter` takes away rules of its own file. Hosts in letters beyond ASCII are not understood.

mod fuzz;
mod index;
mod line;
mod load;
mod options;
mod pattern;
mod refusal;
mod rules;
mod subject;

pub(crate) use fuzz::fuzz;
pub(super) use load::load;
pub(crate) use rules::Rules;
pub(crate) use subject::Subject;

/// Whether a file is an Adblock list: it begins with its header or with a comment.
pub(super) fn is_list(bytes: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 4] = [b"!", b"[adblock", b"[adguard", b"[ublock"];
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let begins = |text: &[u8]| bytes.get(..text.len()).is_some_and(|head| head.eq_ignore_ascii_case(text));
    BEGINNINGS.into_iter().any(begins)
}
