//! Lists of addresses (RFC 5322, section 3.4), read as leniently as mail programs write them.

/// Addresses of one field that are told.
const ADDRESSES_MAX: usize = 2_000;

/// What an envelope tells of an address: name, mailbox, host. A group begins with a mailbox alone, and ends with nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Address {
    pub name: Option<Vec<u8>>,
    pub mailbox: Option<Vec<u8>>,
    pub host: Option<Vec<u8>>,
}

/// Reads a list.
pub(super) fn list(text: &[u8]) -> Vec<Address> {
    let mut reader =
        Reader { rest: text, words: Vec::new(), angle: None, comment: None, found: Vec::new(), in_group: false };
    while reader.found.len() < ADDRESSES_MAX && reader.step() {}
    reader.end_address();
    if reader.in_group {
        reader.found.push(Address::default());
    }
    reader.found
}

struct Reader<'a> {
    rest: &'a [u8],
    /// What stands outside of angle brackets: words and dots, with blanks between them.
    words: Vec<u8>,
    angle: Option<Vec<u8>>,
    comment: Option<Vec<u8>>,
    found: Vec<Address>,
    in_group: bool,
}

impl Reader<'_> {
    fn step(&mut self) -> bool {
        let Some((&byte, rest)) = self.rest.split_first() else { return false };
        self.rest = rest;
        match byte {
            b',' => self.end_address(),
            b';' => {
                self.end_address();
                if std::mem::take(&mut self.in_group) {
                    self.found.push(Address::default());
                }
            }
            b':' if self.angle.is_none() && !self.in_group && !self.words.contains(&b'@') => {
                let name = std::mem::take(&mut self.words).trim_ascii().to_vec();
                self.in_group = true;
                self.found.push(Address { mailbox: Some(name), ..Address::default() });
            }
            b'<' => {
                let end = self.rest.iter().position(|&byte| byte == b'>').unwrap_or(self.rest.len());
                self.angle = Some(self.rest[..end].trim_ascii().to_vec());
                self.rest = self.rest.get(end + 1..).unwrap_or_default();
            }
            b'"' => self.quoted(b'"'),
            b'(' => {
                let before = std::mem::take(&mut self.words);
                self.quoted(b')');
                let comment = std::mem::replace(&mut self.words, before);
                self.comment = Some(comment.trim_ascii().to_vec());
            }
            b' ' | b'\t' => {
                if !self.words.is_empty() && !self.words.ends_with(b" ") {
                    self.words.push(b' ');
                }
            }
            _ => self.words.push(byte),
        }
        true
    }

    /// What stands up to `end`, its escapes undone.
    fn quoted(&mut self, end: u8) {
        let mut escaped = false;
        while let Some((&byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            match byte {
                _ if escaped => escaped = false,
                b'\\' => {
                    escaped = true;
                    continue;
                }
                _ if byte == end => return,
                _ => {}
            }
            self.words.push(byte);
        }
    }

    fn end_address(&mut self) {
        let words = std::mem::take(&mut self.words).trim_ascii().to_vec();
        let comment = self.comment.take().filter(|comment| !comment.is_empty());
        let (name, address) = match self.angle.take() {
            Some(angle) => (Some(words).filter(|name| !name.is_empty()).or(comment), angle),
            // A name without an address.
            None if words.contains(&b' ') && !words.contains(&b'@') => (Some(words), Vec::new()),
            None => (comment, words.into_iter().filter(|&byte| byte != b' ').collect()),
        };
        if address.is_empty() && name.is_none() {
            return;
        }
        // A source route is of no more use.
        let route = address.strip_prefix(b"@").and_then(|_| address.iter().position(|&byte| byte == b':'));
        let address = route.and_then(|colon| address.get(colon + 1..)).unwrap_or(&address);
        let (mailbox, host) = match address.iter().rposition(|&byte| byte == b'@') {
            Some(at) => (&address[..at], &address[at + 1..]),
            None => (address, &b""[..]),
        };
        let mailbox = mailbox.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(mailbox);
        self.found.push(Address { name, mailbox: Some(mailbox.to_vec()), host: Some(host.to_vec()) });
    }
}
