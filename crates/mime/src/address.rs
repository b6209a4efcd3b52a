//! Lists of addresses (RFC 5322, section 3.4), read as leniently as mail programs write them: quotes, comments in comments,
//! groups, source routes. Values come unfolded or not. The store, Sieve and SEARCH read addresses here.
//!
//! Nothing fails; an address that the grammar does not have is emitted with [`Address::is_whole`] unset.

use alloc::vec::Vec;

/// An entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A group begins, with its name.
    Group(Vec<u8>),
    /// A group ends.
    GroupEnd,
    /// An address.
    Address(Address),
}

/// An address with its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Address {
    /// The display name without its quotes, or else the last comment.
    pub name: Option<Vec<u8>>,
    /// Before the last `@` that is not quoted, without quotes.
    pub local: Vec<u8>,
    /// Domain, after the `@`; empty without one.
    pub domain: Vec<u8>,
    /// Whether the grammar has such an address, with a local part and a domain.
    pub is_whole: bool,
}

/// Reads a list, up to so many entries.
pub fn addresses(value: &[u8], entries_max: usize) -> Vec<Entry> {
    let mut reader = Reader { rest: value, ..Reader::default() };
    while reader.found.len() < entries_max && reader.step() {}
    reader.end_address();
    if reader.in_group {
        reader.found.push(Entry::GroupEnd);
    }
    reader.found
}

#[derive(Default)]
struct Reader<'a> {
    rest: &'a [u8],
    /// The text outside of angle brackets, with one blank between words.
    words: Vec<u8>,
    /// The same text, as an address.
    bare: Spec,
    angle: Option<Spec>,
    is_closed: bool,
    comment: Option<Vec<u8>>,
    found: Vec<Entry>,
    in_group: bool,
}

/// An address under way: `local@domain` without blanks and quotes.
#[derive(Default)]
struct Spec {
    text: Vec<u8>,
    /// Where its last `@` is.
    at: Option<usize>,
    after_blank: bool,
    /// Two words stand side by side.
    is_phrase: bool,
}

impl Spec {
    fn push(&mut self, bytes: &[u8]) {
        let joins = self.text.is_empty() || self.text.ends_with(b".") || bytes == b"." || self.ends_with_at();
        self.is_phrase |= self.after_blank && !joins;
        self.after_blank = false;
        self.text.extend_from_slice(bytes);
    }

    fn push_at(&mut self) {
        self.at = Some(self.text.len());
        self.after_blank = false;
        self.text.push(b'@');
    }

    fn ends_with_at(&self) -> bool {
        self.at.is_some_and(|at| at + 1 == self.text.len())
    }

    fn split(&self) -> (&[u8], &[u8]) {
        match self.at {
            Some(at) => (&self.text[..at], &self.text[at + 1..]),
            None => (&self.text, b""),
        }
    }
}

impl Reader<'_> {
    fn step(&mut self) -> bool {
        let Some((&byte, rest)) = self.rest.split_first() else { return false };
        self.rest = rest;
        let in_angle = self.angle.is_some() && !self.is_closed;
        match byte {
            b'(' => self.comment(),
            b'"' => {
                let quoted = self.quoted();
                self.push(&quoted);
            }
            b'[' if self.spec().ends_with_at() => self.literal(),
            b'<' if self.angle.is_none() => self.angle = Some(Spec::default()),
            b'>' if in_angle => self.is_closed = true,
            b',' if in_angle => {}
            b',' => self.end_address(),
            b';' if !in_angle => {
                self.end_address();
                if core::mem::take(&mut self.in_group) {
                    self.found.push(Entry::GroupEnd);
                }
            }
            // A source route is of no more use.
            b':' if in_angle && self.spec().text.starts_with(b"@") => self.angle = Some(Spec::default()),
            b':' if self.angle.is_none() && !self.in_group && self.bare.at.is_none() => self.begin_group(),
            b'@' => {
                if !in_angle {
                    self.words.push(b'@');
                }
                self.spec().push_at();
            }
            b' ' | b'\t' | b'\r' | b'\n' => self.blank(),
            other => self.push(&[other]),
        }
        true
    }

    fn spec(&mut self) -> &mut Spec {
        match &mut self.angle {
            Some(angle) if !self.is_closed => angle,
            _ => &mut self.bare,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.angle.is_none() || self.is_closed {
            self.words.extend_from_slice(bytes);
        }
        self.spec().push(bytes);
    }

    fn blank(&mut self) {
        self.spec().after_blank = true;
        let in_words = self.angle.is_none() || self.is_closed;
        if in_words && !self.words.is_empty() && !self.words.ends_with(b" ") {
            self.words.push(b' ');
        }
    }

    fn begin_group(&mut self) {
        let name = core::mem::take(&mut self.words).trim_ascii().to_vec();
        self.bare = Spec::default();
        self.in_group = true;
        self.found.push(Entry::Group(name));
    }

    /// The text up to the closing quote, its escapes undone.
    fn quoted(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some((&byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            match byte {
                b'"' => break,
                b'\\' => text.extend(self.escaped()),
                b'\r' | b'\n' => {}
                _ => text.push(byte),
            }
        }
        text
    }

    /// The text up to the parenthesis that closes the comment; comments in it are part of it.
    fn comment(&mut self) {
        let mut text = Vec::new();
        let mut depth = 1usize;
        while let Some((&byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            match byte {
                b'\\' => {
                    text.extend(self.escaped());
                    continue;
                }
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            text.push(byte);
        }
        let text = text.trim_ascii();
        if !text.is_empty() {
            self.comment = Some(text.to_vec());
        }
        self.spec().after_blank = true;
    }

    fn escaped(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    /// Reads the address of a host, whose colons do not end a route.
    fn literal(&mut self) {
        let end = self.rest.iter().position(|&byte| byte == b']').map_or(self.rest.len(), |at| at + 1);
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.push(b"[");
        self.push(text);
    }

    fn end_address(&mut self) {
        let words = core::mem::take(&mut self.words).trim_ascii().to_vec();
        let words = Some(words).filter(|words| !words.is_empty());
        let bare = core::mem::take(&mut self.bare);
        let is_closed = core::mem::take(&mut self.is_closed);
        let comment = self.comment.take();
        let (name, spec, is_sound) = match self.angle.take() {
            Some(angle) => (words.or(comment), angle, is_closed && bare.at.is_none()),
            None if words.is_none() && comment.is_none() && bare.text.is_empty() => return,
            // A name without an address.
            None if bare.at.is_none() && bare.is_phrase => (words, Spec::default(), false),
            None => (comment, bare, true),
        };
        let (local, domain) = spec.split();
        let is_whole = is_sound && !spec.is_phrase && !local.is_empty() && !domain.is_empty();
        self.found.push(Entry::Address(Address { name, local: local.to_vec(), domain: domain.to_vec(), is_whole }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name|local|domain` of each, with `!` before incomplete ones.
    fn told(value: &str) -> Vec<alloc::string::String> {
        let text = |bytes: &[u8]| alloc::string::String::from_utf8_lossy(bytes).into_owned();
        let tell = |entry: Entry| match entry {
            Entry::Group(name) => alloc::format!("{}:", text(&name)),
            Entry::GroupEnd => ";".into(),
            Entry::Address(Address { name, local, domain, is_whole }) => {
                let mark = if is_whole { "" } else { "!" };
                alloc::format!("{mark}{}|{}|{}", text(&name.unwrap_or_default()), text(&local), text(&domain))
            }
        };
        addresses(value.as_bytes(), 100).into_iter().map(tell).collect()
    }

    #[test]
    fn addresses_are_read() {
        for (value, wanted) in [
            ("a@b.example", &["|a|b.example"][..]),
            ("\"quoted local\"@example.org", &["|quoted local|example.org"]),
            ("\"x\\\"y z\"@example.org", &["|x\"y z|example.org"]),
            ("\"a@b\"@example.org, <\"c,d\"@e>", &["|a@b|example.org", "|c,d|e"]),
            ("a.b.c@example.org (A (nested) b)", &["A (nested) b|a.b.c|example.org"]),
            ("Ann <\"ann  doe\"@example.org>", &["Ann|ann  doe|example.org"]),
            ("\"B, C\" <b@c>, D.\r\n\tE <d@e>", &["B, C|b|c", "D. E|d|e"]),
            ("f: a@b, c@d;, e@f", &["f:", "|a|b", "|c|d", ";", "|e|f"]),
            ("<@x,@y:c@d>", &["|c|d"]),
            ("a@[IPv6:::1], <b@[IPv6:::1]>", &["|a|[IPv6:::1]", "|b|[IPv6:::1]"]),
            ("Tim <tim (at home)@ (of) example.org>", &["Tim|tim|example.org"]),
            ("a . b @ c . example", &["|a.b|c.example"]),
            ("undisclosed-recipients:;", &["undisclosed-recipients:", ";"]),
            ("Ann", &["!|Ann|"]),
            ("Ann Doe", &["!Ann Doe||"]),
            ("<>", &["!||"]),
            ("a@b <a@b>", &["!a@b|a|b"]),
            ("Ann a@b", &["!|Anna|b"]),
            ("<a@b", &["!|a|b"]),
            (", ,", &[]),
        ] {
            assert_eq!(told(value), wanted, "{value}");
        }
    }

    #[test]
    fn whatever_is_not_closed_ends() {
        for value in ["(", "((", "\"", "\"\\", "<", "[", "a@[", "a:", "a:b:", ">", ")", "\\", "@", "<@:", ";;"] {
            assert!(addresses(value.as_bytes(), 10).len() <= 3, "{value}");
        }
    }
}
