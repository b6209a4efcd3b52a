//! All tests of the crate in one program, which is linked once.

mod authenticode;
mod clamscan;
mod compiled;
mod container;
mod corpus;
mod detached;
mod executables;
mod law;
mod magic;
mod material;
mod peer;
mod pictures;
mod signature_verdicts;
mod subsignatures;
mod views;
mod yara;
mod yara_headers;
mod yara_matches;
mod yara_random;
mod yara_real;
mod yara_verdicts;

/// A text of a table of verdicts, in which control characters and backslashes are written as in Rust, `\1` among them.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut all = text.chars();
    while let Some(next) = all.next() {
        out.push(match (next, if next == '\\' { all.next() } else { None }) {
            ('\\', Some('n')) => '\n',
            ('\\', Some('r')) => '\r',
            ('\\', Some('t')) => '\t',
            ('\\', Some('v')) => '\x0b',
            ('\\', Some('1')) => '\x01',
            (next, _) => next,
        });
    }
    out
}
