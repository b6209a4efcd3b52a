//! Lists of addresses (RFC 5322, section 3.4), read as leniently as mail programs write them: quotes, comments in comments,
//! groups, source routes. Values come unfolded or not. The store, Sieve and SEARCH read addresses here.
//!
//! Nothing fails; an address that the grammar does not have is emitted with [`Address::is_whole`] unset, and with as much of it as can
//! be one: words in front of an `@` are a name, and the text behind a faulty place is left out.

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
    /// The source route, `@a,@b`.
    pub route: Option<Vec<u8>>,
    /// Before the `@`, without quotes; empty if words stand before it that are no local part.
    pub local: Vec<u8>,
    /// Domain, after the `@`; empty without one.
    pub domain: Vec<u8>,
    /// Whether the grammar has such an address, with a local part and a domain.
    pub is_whole: bool,
    /// Whether something was left out that would have been an address.
    pub is_faulty: bool,
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
    /// The length of `words` before the first `@` among them.
    before_at: Option<usize>,
    /// The last of `words` is a quoted string.
    after_quoted: bool,
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
    /// Where its `@` is.
    at: Option<usize>,
    route: Option<Vec<u8>>,
    /// The next word does not continue the last one: a blank or a quote stands between them.
    is_apart: bool,
    /// A dot, an `@` or the comma of a route is the last.
    joins: bool,
    /// Before its `@` stands no local part.
    is_phrase: bool,
    /// It ended where the grammar has no such address; the text behind is left out.
    is_cut: bool,
}

impl Spec {
    fn push(&mut self, bytes: &[u8], is_quoted: bool) {
        let is_dot = bytes == b"." && !is_quoted;
        let joins = self.text.is_empty() || self.joins || is_dot;
        let is_faulty = ((self.is_apart || is_quoted) && !joins) || (is_quoted && self.at.is_some());
        if is_faulty {
            self.fail();
        }
        (self.is_apart, self.joins) = (is_quoted, is_dot);
        if !self.is_cut {
            self.text.extend_from_slice(bytes);
        }
    }

    fn push_at(&mut self) {
        let is_of_route = self.is_route() && self.text.ends_with(b",");
        if self.at.is_some() && !is_of_route {
            self.fail();
        }
        (self.is_apart, self.joins) = (false, true);
        if !self.is_cut {
            self.at = self.at.or(Some(self.text.len()));
            self.text.push(b'@');
        }
    }

    /// Reads on in a route.
    fn push_comma(&mut self) {
        self.text.push(b',');
        (self.is_apart, self.joins) = (false, true);
    }

    /// No address of the grammar continues so.
    fn fail(&mut self) {
        match self.at {
            None => self.is_phrase = true,
            Some(_) => self.is_cut = true,
        }
    }

    /// Whether it begins as a route does.
    fn is_route(&self) -> bool {
        self.at == Some(0) && self.route.is_none() && !self.is_cut
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

    /// Local part and domain from within angle brackets, as far as they are there.
    fn split_in_angle(&self) -> (&[u8], &[u8]) {
        match self.split() {
            _ if self.is_phrase || self.is_route() => (b"", b""),
            (local, _) if self.is_cut => (local, b""),
            both => both,
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
                let (quoted, is_closed) = self.quoted();
                self.push_quoted(&quoted);
                if !is_closed {
                    self.spec().fail();
                    self.spec().is_cut = true;
                }
            }
            b'[' if self.spec().ends_with_at() => self.literal(),
            b'<' if self.angle.is_none() => self.angle = Some(Spec::default()),
            b'>' if in_angle => self.is_closed = true,
            b',' if in_angle && self.spec().is_route() => self.spec().push_comma(),
            b',' => self.end_address(),
            b';' if !in_angle => {
                self.end_address();
                if core::mem::take(&mut self.in_group) {
                    self.found.push(Entry::GroupEnd);
                }
            }
            b':' if in_angle && self.spec().is_route() => {
                let route = Some(core::mem::take(&mut self.spec().text));
                self.angle = Some(Spec { route, ..Spec::default() });
            }
            b':' if self.angle.is_none() && !self.in_group && self.bare.at.is_none() => self.begin_group(),
            b'@' => {
                if !in_angle {
                    self.before_at.get_or_insert(self.words.len());
                    self.words.push(b'@');
                }
                self.spec().push_at();
            }
            b' ' | b'\t' | b'\r' | b'\n' => self.blank(),
            b'<' | b'>' | b':' | b';' | b'[' | b']' | b'\\' if self.spec().at.is_some() => {
                self.spec().fail();
                self.push(&[byte]);
            }
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
            if core::mem::take(&mut self.after_quoted) && bytes != b"." {
                self.part_words();
            }
            self.words.extend_from_slice(bytes);
        }
        self.spec().push(bytes, false);
    }

    fn push_quoted(&mut self, text: &[u8]) {
        if self.angle.is_none() || self.is_closed {
            if !self.words.ends_with(b".") {
                self.part_words();
            }
            self.words.extend_from_slice(text);
            self.after_quoted = true;
        }
        self.spec().push(text, true);
    }

    fn part_words(&mut self) {
        if !self.words.is_empty() && !self.words.ends_with(b" ") {
            self.words.push(b' ');
        }
    }

    fn blank(&mut self) {
        self.spec().is_apart = true;
        let in_words = self.angle.is_none() || self.is_closed;
        if in_words {
            self.part_words();
        }
    }

    fn begin_group(&mut self) {
        let name = core::mem::take(&mut self.words).trim_ascii().to_vec();
        self.bare = Spec::default();
        self.in_group = true;
        self.found.push(Entry::Group(name));
    }

    /// The text up to the closing quote, its escapes undone, and whether the quote is there.
    fn quoted(&mut self) -> (Vec<u8>, bool) {
        let mut text = Vec::new();
        while let Some((&byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            match byte {
                b'"' => return (text, true),
                b'\\' => text.extend(self.escaped()),
                b'\r' | b'\n' => {}
                _ => text.push(byte),
            }
        }
        (text, false)
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
        self.spec().is_apart = true;
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
        let words = core::mem::take(&mut self.words);
        let before_at = self.before_at.take();
        let some = |text: &[u8]| Some(text.trim_ascii().to_vec()).filter(|text| !text.is_empty());
        let bare = core::mem::take(&mut self.bare);
        let (is_closed, comment) = (core::mem::take(&mut self.is_closed), self.comment.take());
        self.after_quoted = false;
        let address = match self.angle.take() {
            Some(angle) => {
                let (local, domain) = angle.split_in_angle();
                let (local, domain) = (local.to_vec(), domain.to_vec());
                let is_whole = is_closed && bare.at.is_none() && !local.is_empty() && !domain.is_empty();
                let is_faulty = angle.is_phrase || angle.is_cut || angle.is_route();
                Address { name: some(&words).or(comment), route: angle.route, local, domain, is_whole, is_faulty }
            }
            None if some(&words).is_none() && bare.text.is_empty() && !bare.is_phrase => return,
            // A name without an address.
            None if bare.is_phrase => {
                let name = before_at.and_then(|at| words.get(..at)).unwrap_or(&words);
                Address { name: some(name), is_faulty: bare.at.is_some() || bare.is_cut, ..Address::default() }
            }
            None => {
                let (local, domain) = bare.split();
                let is_whole = !bare.is_cut && !local.is_empty() && !domain.is_empty();
                let (local, domain) = (local.to_vec(), domain.to_vec());
                Address { name: comment, route: None, local, domain, is_whole, is_faulty: bare.is_cut }
            }
        };
        self.found.push(Entry::Address(address));
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
            Entry::Address(Address { name, route, local, domain, is_whole, .. }) => {
                let mark = if is_whole { "" } else { "!" };
                let route = route.map_or(alloc::string::String::new(), |route| text(&route) + ":");
                alloc::format!("{mark}{}|{route}{}|{}", text(&name.unwrap_or_default()), text(&local), text(&domain))
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
            ("<@x,@y:c@d>, A <@x, @y : c@d>, <@x:c@d>", &["|@x,@y:c|d", "A|@x,@y:c|d", "|@x:c|d"]),
            ("a@[IPv6:::1], <b@[IPv6:::1]>", &["|a|[IPv6:::1]", "|b|[IPv6:::1]"]),
            ("Tim <tim (at home)@ (of) example.org>", &["Tim|tim|example.org"]),
            ("a . b @ c . example", &["|a.b|c.example"]),
            ("undisclosed-recipients:;", &["undisclosed-recipients:", ";"]),
            ("Ann", &["!|Ann|"]),
            ("Ann Doe", &["!Ann Doe||"]),
            ("<>", &["!||"]),
            ("a@b <a@b>", &["!a@b|a|b"]),
            ("<a@b", &["!|a|b"]),
            (", ,", &[]),
        ] {
            assert_eq!(told(value), wanted, "{value}");
        }
    }

    #[test]
    fn no_address_is_made_of_words_that_are_none() {
        for (value, wanted) in [
            ("Ann a@b", &["!Ann a||"][..]),
            ("foo \"bar\" baz@c, d@e", &["!foo bar baz||", "|d|e"]),
            ("\"x@y\" a@b", &["!x@y a||"]),
            ("a\"b\"c@d, \"a\"\"b\"@c, \"a\"b@c", &["!a b c||", "!a b||", "!a b||"]),
            ("\"a\".\"b\".c@d, <a.\"b c\".d@e>, a.\"b\"@c", &["|a.b.c|d", "|a.b c.d|e", "|a.b|c"]),
            ("a\"b\"c <d@e>, a.\"b\" <d@e>", &["a b c|d|e", "a.b|d|e"]),
            ("a@b c, a@b c@d, a@b (n) x", &["!|a|b", "!|a|b", "!n|a|b"]),
            ("x@y@z.org, a@@b, a@b:c, a@\"b\"", &["!|x|y", "!|a|", "!|a|b", "!|a|"]),
            ("<a@b@c>, A <f g@x>, <a@b c>, <a\"b\"@c>", &["!|a|", "!A||", "!|a|", "!||"]),
            ("<a, b@c>, A <d@e, f@g", &["!|a|", "!|b|c", "!A|d|e", "|f|g"]),
            ("\"unterminated <a@x.org>", &["!unterminated <a@x.org>||"]),
            ("x \"unterminated <a@x.org>", &["!x unterminated <a@x.org>||"]),
            ("b@c, \"a, b@c", &["|b|c", "!a, b@c||"]),
            ("<@x,@y>, <@x:>, <@x,@y:a@b@c>", &["!||", "!|@x:|", "!|@x,@y:a|"]),
            ("(only a comment), a@b", &["|a|b"]),
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
