//! Header fields of a message or part, as far as IMAP tells of them.

use alloc::vec::Vec;

use mime::Value;

use super::{ADDRESSES_BYTES_MAX, FIELDS_BYTES_MAX};

/// The fields that are kept, by their index here.
const NAMES: [&str; 19] = [
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
    "references",
];

/// The longest boundary, in bytes: RFC 2046 allows 70, others read longer ones too.
const BOUNDARY_BYTES_MAX: usize = 900;

/// Fields of one header.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// Values, unfolded, by the index of the name; of lists all that there are.
    values: [Option<Vec<u8>>; NAMES.len()],
    /// The field under way.
    field: Option<(usize, Vec<u8>)>,
    /// Bytes kept of lists of addresses, and of other fields.
    bytes: [usize; 2],
    is_message: bool,
}

/// Names and values, in their order.
pub(super) type Parameters = Vec<(Vec<u8>, Vec<u8>)>;

/// A parsed `Content-Type`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Type {
    /// Type and subtype; none: the default.
    pub names: Option<(Vec<u8>, Vec<u8>)>,
    pub parameters: Parameters,
    /// Boundary of a multipart.
    pub boundary: Option<Vec<u8>>,
    /// Part of a `multipart/digest`.
    in_digest: bool,
}

impl Fields {
    /// Of the message itself.
    pub fn of_message() -> Fields {
        Fields { is_message: true, ..Fields::default() }
    }

    /// A line of the header, without its end.
    pub fn line(&mut self, line: &[u8]) {
        if line.first().is_some_and(|byte| b" \t".contains(byte)) {
            // Unfolded, a line end is nothing, and the first blank behind it is one, even if it is a tab.
            if let Some((index, mut value)) = self.field.take() {
                let start = value.len();
                self.keep(index, &mut value, line);
                value[start..].iter_mut().take(1).for_each(|first| *first = b' ');
                self.field = Some((index, value));
            }
            return;
        }
        self.finish();
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { return };
        let name = line[..colon].trim_ascii_end();
        let Some(index) = NAMES.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(name)) else { return };
        let mut value = Vec::new();
        self.keep(index, &mut value, &line[colon + 1..]);
        self.field = Some((index, value));
    }

    /// Adds to the value of a field what there is room for; a list of addresses ends with a whole one.
    fn keep(&mut self, index: usize, value: &mut Vec<u8>, more: &[u8]) {
        let is_list = is_list(index);
        let most = if is_list && self.is_message { ADDRESSES_BYTES_MAX } else { FIELDS_BYTES_MAX };
        let kept = &mut self.bytes[usize::from(is_list)];
        let fits = more.len().min(most.saturating_sub(*kept));
        value.extend_from_slice(&more[..fits]);
        *kept += fits;
        if is_list && fits < more.len() {
            *kept = most;
            value.truncate(value.iter().rposition(|&byte| byte == b',').unwrap_or(0));
        }
    }

    /// The field under way is complete.
    pub fn finish(&mut self) {
        let Some((index, value)) = self.field.take() else { return };
        let value = value.trim_ascii();
        match &mut self.values[index] {
            // Addresses are joined, whatever the standard says of how often they may be there.
            Some(known) if is_list(index) => {
                known.extend_from_slice(b", ");
                known.extend_from_slice(value);
            }
            // Of what describes the content, the first decides; of the rest the last, as other servers have it.
            Some(_) if index >= 10 => {}
            none => *none = Some(value.to_vec()),
        }
    }

    /// The value of one of [`NAMES`].
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let index = NAMES.iter().position(|known| *known == name)?;
        self.values[index].as_deref()
    }

    /// Its `Content-Type`; `default` if it has none.
    pub fn content_type(&self, default: &Type) -> Type {
        let Some(value) = self.get("content-type").map(Value::read) else { return default.clone() };
        let Some((kind, subtype)) = value.media_type() else { return default.clone() };
        let is_multipart = kind.eq_ignore_ascii_case(b"multipart");
        let boundary = value.get("boundary").map(|boundary| boundary.trim_ascii_end().to_vec());
        let boundary = boundary.filter(|boundary| is_multipart && (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len()));
        let names = Some((kind.to_vec(), subtype.to_vec()));
        Type { names, parameters: value.parameters, boundary, in_digest: false }
    }
}

/// Whether a field of [`NAMES`] is a list of addresses.
fn is_list(index: usize) -> bool {
    (2..=7).contains(&index)
}

/// The hash of the first message of the thread that a header names (FNV-1a); 0 if it names none.
pub(super) fn thread(fields: &Fields) -> u64 {
    let id = |name: &str| {
        let value = fields.get(name)?;
        let behind = value.split(|&byte| byte == b'<').nth(1)?;
        behind.split(|&byte| byte == b'>').next().filter(|id| !id.is_empty())
    };
    let Some(first) = ["references", "in-reply-to", "message-id"].into_iter().find_map(id) else { return 0 };
    let hash = first
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    hash.max(1)
}

impl Type {
    pub fn is_multipart(&self) -> bool {
        self.names.as_ref().is_some_and(|(kind, _)| kind.eq_ignore_ascii_case(b"multipart"))
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

    /// Default content type of its parts.
    pub fn of_children(&self) -> Type {
        let in_digest = self.names.as_ref().is_some_and(|(_, subtype)| subtype.eq_ignore_ascii_case(b"digest"));
        Type { in_digest, ..Type::default() }
    }
}
