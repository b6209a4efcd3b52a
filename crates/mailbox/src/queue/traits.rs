//! Traits of a mail that is sent, read from its fields and its body.

use keep::header::{end_of_header, fields};

use super::content::Source;

/// Bytes of a header that are looked at.
const HEADER_BYTES_MAX: usize = 256 << 10;

/// Traits of a mail that a next hop has to know.
#[derive(Debug, Default)]
pub(super) struct Traits {
    /// Without its empty line.
    pub header: Vec<u8>,
    /// With it.
    pub header_bytes: u64,
    /// Its header is longer than what is looked at.
    pub is_cut: bool,
    pub is_eight_bit: bool,
    pub has_utf8_header: bool,
    /// The field `TLS-Required: No`.
    pub needs_no_tls: bool,
    pub received: usize,
}

impl Traits {
    /// Reads a mail from here on. What cannot be read is found out when it is sent.
    pub fn of(source: &mut Source<'_>, mut at: u64) -> Traits {
        let mut header = Vec::new();
        let mut end = None;
        while end.is_none() && header.len() < HEADER_BYTES_MAX {
            let Some(piece) = source.read(at + header.len() as u64) else { break };
            header.extend_from_slice(piece);
            end = end_of_header(&header, 0);
        }
        let is_cut = end.is_none_or(|end| end > HEADER_BYTES_MAX) && header.len() >= HEADER_BYTES_MAX;
        header.truncate(end.unwrap_or(header.len()).min(HEADER_BYTES_MAX));
        let is_trace = |field: &&[u8]| field.get(..9).is_some_and(|name| name.eq_ignore_ascii_case(b"received:"));
        let received = fields(&header).filter(is_trace).count();
        let header_bytes = header.len() as u64;
        if header.ends_with(b"\r\n\r\n") || *header == *b"\r\n" {
            header.truncate(header.len() - 2);
        }
        let has_utf8_header = !header.is_ascii();
        let needs_no_tls = fields(&header).any(needs_no_tls);
        let mut traits =
            Traits { header, header_bytes, is_cut, is_eight_bit: false, has_utf8_header, needs_no_tls, received };
        while let Some(piece) = source.read(at) {
            if !piece.is_ascii() {
                traits.is_eight_bit = true;
                break;
            }
            at += piece.len() as u64;
        }
        traits
    }
}

/// Whether a field is `TLS-Required: No`.
fn needs_no_tls(field: &[u8]) -> bool {
    const NAME: &[u8] = b"tls-required:";
    let is_named = field.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME));
    is_named && field[NAME.len()..].trim_ascii().eq_ignore_ascii_case(b"no")
}
