//! Header fields of a message or part, as far as IMAP tells of them.

use super::FIELDS_BYTES_MAX;

/// The fields that are kept, by their index here.
const NAMES: [&str; 18] = [
    "date",
    "subject",
    "from",
    "sender",
    "reply-to",
    "to",
    "cc",
    "bcc",
    "in-reply-to",
    "message-id",
    "content-type",
    "content-transfer-encoding",
    "content-id",
    "content-description",
    "content-disposition",
    "content-language",
    "content-location",
    "content-md5",
];

/// The longest boundary, in bytes: RFC 2046 allows 70, others read longer ones too.
const BOUNDARY_BYTES_MAX: usize = 900;

/// Parameters of one field that are told.
const PARAMETERS_MAX: usize = 64;

/// Fields of one header.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// Values, unfolded, by the index of the name; of lists all that there are, else the first.
    values: [Option<Vec<u8>>; NAMES.len()],
    /// The field under way.
    field: Option<(usize, Vec<u8>)>,
    bytes: usize,
}

/// Names and values, in their order.
pub(super) type Parameters = Vec<(Vec<u8>, Vec<u8>)>;

/// What a `Content-Type` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Type {
    /// Type and subtype; none: the default.
    pub names: Option<(Vec<u8>, Vec<u8>)>,
    pub parameters: Parameters,
    /// Of a multipart.
    pub boundary: Option<Vec<u8>>,
    /// Part of a `multipart/digest`.
    in_digest: bool,
}

impl Fields {
    /// A line of the header, without its end.
    pub fn line(&mut self, line: &[u8]) {
        if line.first().is_some_and(|byte| b" \t".contains(byte)) {
            // Unfolded, a line end is nothing and the blanks behind it stay.
            if let Some((_, value)) = &mut self.field {
                let room = FIELDS_BYTES_MAX.saturating_sub(self.bytes);
                let more = &line[..line.len().min(room)];
                value.extend_from_slice(more);
                self.bytes += more.len();
            }
            return;
        }
        self.finish();
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { return };
        let name = line[..colon].trim_ascii_end();
        let Some(index) = NAMES.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(name)) else { return };
        let value = &line[colon + 1..];
        let value = &value[..value.len().min(FIELDS_BYTES_MAX.saturating_sub(self.bytes))];
        self.bytes += value.len();
        self.field = Some((index, value.to_vec()));
    }

    /// The field under way is complete.
    pub fn finish(&mut self) {
        let Some((index, value)) = self.field.take() else { return };
        let value = value.trim_ascii();
        match &mut self.values[index] {
            // Recipients are joined, whatever the standard says of how often they may be there.
            Some(known) if (5..=7).contains(&index) => {
                known.extend_from_slice(b", ");
                known.extend_from_slice(value);
            }
            Some(_) => {}
            none => *none = Some(value.to_vec()),
        }
    }

    /// The value of one of [`NAMES`].
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let index = NAMES.iter().position(|known| *known == name)?;
        self.values[index].as_deref()
    }

    /// What its `Content-Type` says; `default` if it has none.
    pub fn content_type(&self, default: &Type) -> Type {
        let Some((main, parameters)) = self.get("content-type").and_then(with_parameters) else {
            return default.clone();
        };
        let Some(slash) = main.iter().position(|&byte| byte == b'/') else { return default.clone() };
        let (kind, subtype) = (main[..slash].trim_ascii().to_vec(), main[slash + 1..].trim_ascii().to_vec());
        if kind.is_empty() || subtype.is_empty() {
            return default.clone();
        }
        let is_multipart = kind.eq_ignore_ascii_case(b"multipart");
        let boundary = parameters.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"boundary"));
        let boundary = boundary.map(|(_, value)| value.trim_ascii_end().to_vec());
        let boundary = boundary.filter(|boundary| is_multipart && (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len()));
        Type { names: Some((kind, subtype)), parameters, boundary, in_digest: false }
    }
}

impl Type {
    pub fn is_multipart(&self) -> bool {
        self.names.as_ref().is_some_and(|(kind, _)| kind.eq_ignore_ascii_case(b"multipart")) && self.boundary.is_some()
    }

    pub fn is_message(&self) -> bool {
        match &self.names {
            Some((kind, subtype)) => {
                let is_whole = subtype.eq_ignore_ascii_case(b"rfc822") || subtype.eq_ignore_ascii_case(b"global");
                kind.eq_ignore_ascii_case(b"message") && is_whole
            }
            None => self.in_digest,
        }
    }

    /// What its parts are that say nothing.
    pub fn of_children(&self) -> Type {
        let in_digest = self.names.as_ref().is_some_and(|(_, subtype)| subtype.eq_ignore_ascii_case(b"digest"));
        Type { in_digest, ..Type::default() }
    }
}

/// A value and its parameters: `a; b=c; d="e"`.
pub(super) fn with_parameters(value: &[u8]) -> Option<(Vec<u8>, Parameters)> {
    let mut cursor = Cursor { rest: value };
    let main = cursor.until(b";").trim_ascii().to_vec();
    let mut parameters = Vec::new();
    while cursor.eat(b';') && parameters.len() < PARAMETERS_MAX {
        let name = cursor.until(b"=;").trim_ascii().to_vec();
        if !cursor.eat(b'=') {
            continue;
        }
        let value = cursor.value();
        cursor.until(b";");
        if !name.is_empty() {
            parameters.push((name, value));
        }
    }
    (!main.is_empty()).then_some((main, parameters))
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    fn eat(&mut self, wanted: u8) -> bool {
        match self.rest.split_first() {
            Some((&byte, rest)) if byte == wanted => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// What stands before one of `ends`, without comments.
    fn until(&mut self, ends: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some((&byte, rest)) = self.rest.split_first() {
            if ends.contains(&byte) {
                break;
            }
            if byte == b'(' {
                self.comment();
                continue;
            }
            text.push(byte);
            self.rest = rest;
        }
        text
    }

    fn comment(&mut self) {
        let (mut depth, mut escaped) = (0u32, false);
        while let Some((&byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// A token, or a quoted string.
    fn value(&mut self) -> Vec<u8> {
        self.rest = self.rest.trim_ascii_start();
        if !self.eat(b'"') {
            return self.until(b";").trim_ascii().to_vec();
        }
        let mut value = Vec::new();
        let mut escaped = false;
        while let Some((&byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            match byte {
                _ if escaped => {
                    escaped = false;
                    value.push(byte);
                }
                b'\\' => escaped = true,
                b'"' => return value,
                _ => value.push(byte),
            }
        }
        value
    }
}
