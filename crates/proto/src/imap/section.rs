//! Body sections of FETCH (RFC 9051, sections 6.4.5 and 7.5.2): as a client asks for one, and as a server names it in
//! a response.
//!
//! Bounds: a path of [`PATH_MAX`] numbers. The names of fields are kept as they stand, without literals.

use alloc::vec::Vec;

/// Numbers in the path to a part.
const PATH_MAX: usize = 32;

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// By which item it is asked for.
    pub item: Item,
    /// The numbers of the part; none for the message.
    pub path: Vec<u32>,
    /// Piece of that part.
    pub part: Part,
    /// Whether the flag `\Seen` is left alone.
    pub peek: bool,
    /// Where a range begins, and how long it may be; a server tells the first only.
    pub partial: Option<(u64, Option<u64>)>,
}

/// The items that carry content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// `BODY[...]` or `BODY.PEEK[...]`.
    Body,
    /// `BINARY[...]` or `BINARY.PEEK[...]`: without its transfer coding.
    Binary,
    /// `RFC822`, `RFC822.HEADER` and `RFC822.TEXT`.
    Rfc822,
}

/// Piece of a message or part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// All of it; of a part, what is behind its header.
    All,
    /// The header of a message.
    Header,
    /// Some fields of it: the word, and the names in parentheses.
    Fields(Vec<u8>),
    /// Body of a message, after its header.
    Text,
    /// The header of a part.
    Mime,
}

impl Section {
    /// Reads an item of a FETCH, or the name that a server gives to what it sends; none if it carries no content.
    ///
    /// # Errors
    /// When it begins like one that carries content, and is not understood.
    pub fn parse(name: &[u8]) -> Result<Option<Section>, &'static str> {
        let section = |item, peek, part| Section { item, path: Vec::new(), part, peek, partial: None };
        let bare = [
            ("RFC822", section(Item::Rfc822, false, Part::All)),
            ("RFC822.HEADER", section(Item::Rfc822, true, Part::Header)),
            ("RFC822.TEXT", section(Item::Rfc822, false, Part::Text)),
        ];
        if let Some((_, section)) = bare.into_iter().find(|(word, _)| name.eq_ignore_ascii_case(word.as_bytes())) {
            return Ok(Some(section));
        }
        let Some(open) = name.iter().position(|&byte| byte == b'[') else { return Ok(None) };
        let (word, rest) = (name[..open].to_ascii_uppercase(), &name[open + 1..]);
        let (item, peek) = match word.as_slice() {
            b"BODY" => (Item::Body, false),
            b"BODY.PEEK" => (Item::Body, true),
            b"BINARY" => (Item::Binary, false),
            b"BINARY.PEEK" => (Item::Binary, true),
            // A number, and no content.
            b"BINARY.SIZE" => return Ok(None),
            _ => return Err("not an item"),
        };
        let close = rest.iter().rposition(|&byte| byte == b']').ok_or("a section without an end")?;
        let (path, part) = spec(&rest[..close])?;
        Ok(Some(Section { item, path, part, peek, partial: partial(&rest[close + 1..])? }))
    }

    /// The part that `BINARY.SIZE[...]` asks for; none if it is another item.
    pub(super) fn binary_size(name: &[u8]) -> Option<Result<Vec<u32>, &'static str>> {
        const WORD: &[u8] = b"BINARY.SIZE[";
        let (_, rest) = name.split_at_checked(WORD.len()).filter(|(word, _)| word.eq_ignore_ascii_case(WORD))?;
        let read = || match spec(rest.strip_suffix(b"]").ok_or("a section without an end")?)? {
            (path, Part::All) => Ok(path),
            _ => Err("BINARY is of whole parts"),
        };
        Some(read())
    }

    /// A run of bytes of the message.
    pub fn range(peek: bool, start: u64, len: u64) -> Section {
        Section { item: Item::Body, path: Vec::new(), part: Part::All, peek, partial: Some((start, Some(len))) }
    }

    /// The message from its first byte to its last, with its flags left alone.
    pub fn whole() -> Section {
        Section { item: Item::Body, path: Vec::new(), part: Part::All, peek: true, partial: None }
    }

    /// Whether it is the message from its first byte to its last.
    pub fn is_whole(&self) -> bool {
        self.is_message() && self.part == Part::All && self.partial.is_none()
    }

    /// Whether it is the header of the message, or fields of it.
    pub fn is_header(&self) -> bool {
        self.is_message() && matches!(self.part, Part::Header | Part::Fields(_)) && self.partial.is_none()
    }

    fn is_message(&self) -> bool {
        self.item != Item::Binary && self.path.is_empty()
    }

    /// Whether a server that was asked for `other` names it like this.
    pub fn answers(&self, other: &Section) -> bool {
        let origin = |section: &Section| section.partial.map(|(origin, _)| origin);
        self.item == other.item && self.path == other.path && self.part == other.part && origin(self) == origin(other)
    }

    /// Appends it as a client asks for it.
    pub fn ask(&self, out: &mut Vec<u8>) {
        self.write(self.peek, out);
        match self.partial {
            Some((origin, Some(len))) => out.extend(alloc::format!("<{origin}.{len}>").bytes()),
            Some((origin, None)) => out.extend(alloc::format!("<{origin}>").bytes()),
            None => {}
        }
    }

    /// Appends it as a server names it.
    pub fn name(&self, out: &mut Vec<u8>) {
        self.write(false, out);
        if let Some((origin, _)) = self.partial {
            out.extend(alloc::format!("<{origin}>").bytes());
        }
    }

    fn write(&self, peek: bool, out: &mut Vec<u8>) {
        let name: &[u8] = match (self.item, peek, &self.part) {
            (Item::Rfc822, _, Part::Header) => b"RFC822.HEADER",
            (Item::Rfc822, _, Part::Text) => b"RFC822.TEXT",
            (Item::Rfc822, ..) => b"RFC822",
            (Item::Body, false, _) => b"BODY[",
            (Item::Body, true, _) => b"BODY.PEEK[",
            (Item::Binary, false, _) => b"BINARY[",
            (Item::Binary, true, _) => b"BINARY.PEEK[",
        };
        out.extend_from_slice(name);
        if self.item == Item::Rfc822 {
            return;
        }
        let mut words: Vec<Vec<u8>> = self.path.iter().map(|number| alloc::format!("{number}").into_bytes()).collect();
        match &self.part {
            Part::All => {}
            Part::Header => words.push(b"HEADER".to_vec()),
            Part::Fields(fields) => words.push(fields.clone()),
            Part::Text => words.push(b"TEXT".to_vec()),
            Part::Mime => words.push(b"MIME".to_vec()),
        }
        out.extend(words.join(&b'.'));
        out.push(b']');
    }
}

/// Reads a section between its brackets.
fn spec(mut text: &[u8]) -> Result<(Vec<u32>, Part), &'static str> {
    let mut path = Vec::new();
    while text.first().is_some_and(u8::is_ascii_digit) {
        let end = text.iter().position(|&byte| byte == b'.').unwrap_or(text.len());
        let number = number(&text[..end]).and_then(|number| u32::try_from(number).ok()).filter(|&number| number > 0);
        path.push(number.ok_or("not the number of a part")?);
        if path.len() > PATH_MAX {
            return Err("too many numbers");
        }
        if end == text.len() {
            return Ok((path, Part::All));
        }
        text = &text[end + 1..];
    }
    let upper = text.to_ascii_uppercase();
    let part = match upper.as_slice() {
        b"" if path.is_empty() => Part::All,
        b"HEADER" => Part::Header,
        b"TEXT" => Part::Text,
        b"MIME" if !path.is_empty() => Part::Mime,
        _ if upper.starts_with(b"HEADER.FIELDS (") || upper.starts_with(b"HEADER.FIELDS.NOT (") => {
            Part::Fields(fields(text)?)
        }
        _ => return Err("not a section"),
    };
    Ok((path, part))
}

/// `HEADER.FIELDS (From "To")`: nothing nested, nothing open, no literal.
fn fields(text: &[u8]) -> Result<Vec<u8>, &'static str> {
    let open = text.iter().position(|&byte| byte == b'(').unwrap_or(0);
    let names = text[open + 1..].strip_suffix(b")").ok_or("not a list of fields")?;
    let odd =
        |byte: &u8| !matches!(byte, b' '..=b'~') || matches!(byte, b'(' | b')' | b'{' | b'}' | b'\\' | b'[' | b']');
    if names.iter().any(odd) || names.iter().filter(|&&byte| byte == b'"').count() % 2 == 1 {
        return Err("not a list of fields");
    }
    Ok(text.to_vec())
}

/// `<0.1000>`, `<0>` or nothing.
fn partial(text: &[u8]) -> Result<Option<(u64, Option<u64>)>, &'static str> {
    if text.is_empty() {
        return Ok(None);
    }
    let inner = text.strip_prefix(b"<").and_then(|text| text.strip_suffix(b">")).ok_or("not a range")?;
    let mut numbers = inner.split(|&byte| byte == b'.').map(number);
    match (numbers.next().flatten(), numbers.next(), numbers.next()) {
        (Some(origin), None, None) => Ok(Some((origin, None))),
        (Some(origin), Some(Some(len)), None) if len > 0 => Ok(Some((origin, Some(len)))),
        _ => Err("not a range"),
    }
}

/// A number below 2^63.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    let fits = matches!(digits.len(), 1..=18) && digits.iter().all(u8::is_ascii_digit);
    fits.then(|| core::str::from_utf8(digits).ok()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn both(text: &str) -> (String, String) {
        let section = Section::parse(text.as_bytes()).unwrap().unwrap();
        let (mut asked, mut named) = (Vec::new(), Vec::new());
        section.ask(&mut asked);
        section.name(&mut named);
        (String::from_utf8(asked).unwrap(), String::from_utf8(named).unwrap())
    }

    #[test]
    fn sections_are_asked_for_and_named_as_they_were_understood() {
        for (text, asked, named) in [
            ("body.peek[]<0.100>", "BODY.PEEK[]<0.100>", "BODY[]<0>"),
            ("BODY[1.2.header.fields (From \"To\")]", "BODY[1.2.header.fields (From \"To\")]", ""),
            ("binary.peek[3]", "BINARY.PEEK[3]", "BINARY[3]"),
            ("BODY[2.MIME]", "BODY[2.MIME]", "BODY[2.MIME]"),
            ("rfc822.text", "RFC822.TEXT", "RFC822.TEXT"),
        ] {
            let (is_asked, is_named) = both(text);
            assert_eq!(is_asked, asked);
            assert!(named.is_empty() || is_named == named, "{is_named}");
        }
    }

    #[test]
    fn what_is_not_understood_is_neither_passed_nor_taken_for_harmless() {
        for text in [
            "BODY[",
            "BODY[0]",
            "BODY[1.]",
            "BODY[MIME]",
            "BODY[1.FOO]",
            "BODY[]<>",
            "BODY[]<1.0>",
            "BODY[]<1.2.3>",
            "BODY[HEADER.FIELDS (A]",
            "BODY[HEADER.FIELDS ({1}]",
            "BODY[HEADER.FIELDS (\"A)]",
            "X[1]",
            "BODY[1]]<0>x",
        ] {
            assert!(Section::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Section::parse(alloc::format!("BODY[1{}]", ".1".repeat(40)).as_bytes()).is_err());
        for text in ["BODY", "BODYSTRUCTURE", "RFC822.SIZE", "BINARY.SIZE[1]", "FLAGS"] {
            assert_eq!(Section::parse(text.as_bytes()), Ok(None));
        }
    }

    #[test]
    fn whole_messages_and_headers_are_known() {
        let parse = |text: &str| Section::parse(text.as_bytes()).unwrap().unwrap();
        assert!(parse("BODY[]").is_whole() && parse("RFC822").is_whole());
        assert!(!parse("BODY[]<0>").is_whole() && !parse("BODY[1]").is_whole() && !parse("BINARY[]").is_whole());
        assert!(parse("BODY[HEADER]").is_header() && parse("RFC822.HEADER").is_header());
        assert!(!parse("BODY[1.HEADER]").is_header() && !parse("BODY[HEADER]<0.9>").is_header());
        assert!(parse("BODY[]<7>").answers(&Section::range(true, 7, 100)));
    }
}
