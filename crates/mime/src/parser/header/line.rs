//! Possible roles of a header line, byte by byte, before its role is clear.

/// The longest field name that is recognised; a line that is longer before its colon is not a field.
pub(super) const NAME_BYTES_MAX: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    Empty,
    /// CRs only.
    Crs,
    /// White space only, and no field that it could continue.
    White,
    Name,
    NameSpace,
    /// Begins with two hyphens, as no field does and a delimiter of the very entity may.
    Dashes,
    Field,
    NotField,
}

/// State of a line after one more byte; `line` and `held` are its state before.
pub(super) fn next_line(line: Line, byte: u8, held: &[u8], of_message: bool) -> Line {
    let is_short = held.len() < NAME_BYTES_MAX;
    match (line, byte) {
        (Line::Empty, b'\r') => Line::Crs,
        (Line::Empty | Line::White, b' ' | b'\t' | b'\r') if is_short => Line::White,
        (Line::Name, b'-') if held == b"-" => Line::Dashes,
        (Line::Dashes, _) if is_short => Line::Dashes,
        (Line::Name, b' ' | b'\t') if is_mbox_line(held, of_message) => Line::Field,
        (Line::Name | Line::NameSpace, b' ' | b'\t') if is_short => Line::NameSpace,
        (Line::Name | Line::NameSpace, b':') => Line::Field,
        (Line::Empty | Line::White | Line::Name, _) if is_short && is_name_byte(byte) => Line::Name,
        (Line::Field, _) => Line::Field,
        _ => Line::NotField,
    }
}

fn is_mbox_line(held: &[u8], of_message: bool) -> bool {
    let held = held.strip_prefix(b"\xef\xbb\xbf").unwrap_or(held);
    of_message && (held == b"From" || held == b">From")
}

/// Whether a byte may stand in a field name. Names with 8-bit characters are met.
pub(super) const fn is_name_byte(byte: u8) -> bool {
    byte > b' ' && byte != b':' && byte != 0x7f
}
