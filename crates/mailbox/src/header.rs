//! The header of a mail that comes in: its end, fields taken out, fields added, ids.

use keep::header::{end_of_header, fields, is_named};
use memchr::{memchr, memmem, memrchr};
use text::date;

use crate::site::seconds;

/// Bytes of a header that are looked at.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// The longest name of a field, in bytes, as inspections read headers.
const NAME_BYTES_MAX: usize = 256;

/// The header of a mail while it comes in, or [`HEADER_BYTES_MAX`] of a longer one.
#[derive(Default)]
pub(crate) struct Reader {
    /// It ends with its empty line. Text that no empty line divides from the fields has got one.
    pub bytes: Vec<u8>,
    pub is_whole: bool,
}

impl Reader {
    /// Reads more, or to the end; returns the text behind the header once that is whole.
    pub fn read(&mut self, bytes: &[u8], is_all: bool) -> Option<Vec<u8>> {
        let from = self.bytes.len().saturating_sub(3);
        self.bytes.extend_from_slice(bytes);
        let lines = match self.bytes.get(..HEADER_BYTES_MAX) {
            // The last line may go on.
            Some(head) => memrchr(b'\n', head).map_or(0, |at| at + 1),
            None => self.bytes.len(),
        };
        let is_cut = lines < self.bytes.len();
        let seen = self.bytes.get(..lines).unwrap_or_default();
        let (end, is_open) = end_of_fields(seen, from, is_all || is_cut, is_header_line)?;
        let text = self.bytes.split_off(end);
        if is_open && end < lines {
            self.bytes.extend_from_slice(b"\r\n");
        }
        self.is_whole = true;
        Some(text)
    }
}

/// The end of a header, and whether it lacks its empty line, as it does before a line that is not a field; `None` as long as more
/// has to be seen. The search for its empty line begins at `from`.
pub(crate) fn end_of_fields(
    bytes: &[u8],
    from: usize,
    is_all: bool,
    is_field: impl Fn(&[u8]) -> bool,
) -> Option<(usize, bool)> {
    let whole = end_of_header(bytes, from);
    if whole.is_none() && !is_all {
        return None;
    }
    let mut at = 0;
    for field in fields(bytes.get(..whole.unwrap_or(bytes.len())).unwrap_or_default()) {
        if matches!(field, b"\r\n" | b"\n") {
            break;
        }
        if !is_field(field) {
            return Some((at, true));
        }
        at += field.len();
    }
    Some(whole.map_or((bytes.len(), true), |end| (end, false)))
}

/// The name of a field, which may have 8-bit characters; `None` for a line that is not a field.
pub(crate) fn name_of(line: &[u8]) -> Option<&[u8]> {
    let name = line.get(..memchr(b':', line)?)?.trim_ascii_end();
    let is_plain = |byte: &u8| *byte > b' ' && *byte != 0x7f;
    let is_name = (1..NAME_BYTES_MAX).contains(&name.len()) && !name.starts_with(b"--") && name.iter().all(is_plain);
    is_name.then_some(name)
}

/// Whether a line of a mail that comes in belongs to its header: a field, or the line `From ` of mbox files.
fn is_header_line(line: &[u8]) -> bool {
    line.strip_prefix(b">").unwrap_or(line).starts_with(b"From ") || name_of(line).is_some()
}

/// The header of a mail that is submitted, without what recipients are not to see, and without results that only this host tells:
/// of its authentication (RFC 8601, section 5) and of its filters.
pub(crate) fn cleaned(header: &[u8], hostname: &str) -> Vec<u8> {
    const HIDDEN: [&[u8]; 3] = [b"bcc", b"resent-bcc", b"return-path"];
    let host = hostname.to_ascii_lowercase().into_bytes();
    let is_forged = |field: &[u8]| {
        let field = field.to_ascii_lowercase();
        let is_of_us = is_named(&field, b"authentication-results") && memmem::find(&field, &host).is_some();
        is_of_us || field.starts_with(b"x-spam-") || field.starts_with(b"x-sluice-")
    };
    let is_kept = |field: &&[u8]| !HIDDEN.iter().any(|name| is_named(field, name)) && !is_forged(field);
    fields(header).filter(is_kept).flatten().copied().collect()
}

/// Fields that the header of a new mail lacks; its author is this address, with a name before it or without.
pub(crate) fn missing(header: &[u8], author: &str, hostname: &str) -> String {
    let has = |name: &[u8]| fields(header).any(|field| is_named(field, name));
    let now = seconds();
    let mut trace = String::new();
    if !has(b"date") {
        trace.push_str(&format!("Date: {}\r\n", date::message(now)));
    }
    if !has(b"from") {
        let author = if author.ends_with('>') { author.to_owned() } else { format!("<{author}>") };
        trace.push_str(&format!("From: {author}\r\n"));
    }
    if !has(b"message-id") {
        trace.push_str(&format!("Message-ID: <{now}.{}@{hostname}>\r\n", random()));
    }
    trace
}

/// Letters that nobody else has.
pub(crate) fn random() -> String {
    let random = crate::password::random::<12>().unwrap_or_default();
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The id in the first `Received` field (RFC 5321, section 4.4); at most 100 printable characters.
pub(crate) fn id(header: &[u8]) -> Option<String> {
    let trace = value(header, b"received")?;
    let id = trace.split_once(" id ")?.1;
    printable(id.split([';', ' ', '\t']).next()?, 100)
}

/// The Message-ID; at most 200 printable characters.
pub(crate) fn message_id(header: &[u8]) -> Option<String> {
    printable(value(header, b"message-id")?.trim(), 200)
}

fn value(header: &[u8], name: &[u8]) -> Option<String> {
    fields(header).find_map(|field| {
        let colon = memchr(b':', field)?;
        let is_meant = field.get(..colon)?.trim_ascii().eq_ignore_ascii_case(name);
        is_meant
            .then(|| String::from_utf8_lossy(&mime::unfolded(field.get(colon + 1..).unwrap_or_default())).into_owned())
    })
}

fn printable(text: &str, characters_max: usize) -> Option<String> {
    let safe = |letter: char| if letter.is_ascii_graphic() || letter == ' ' { letter } else { '?' };
    Some(text.chars().map(safe).take(characters_max).collect()).filter(|text: &String| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_named_by_its_trace_and_its_message_id() {
        let header = b"Return-Path: <a@b>\r\nReceived: from x ([192.0.2.1])\r\n\tby mx (Sluice) with ESMTP id 1m83mscsb0000;\r\n\tdate\r\n\
                       message-ID:\r\n <a\x1b@b>\r\nReceived: by y id other; date\r\n\r\n";
        assert_eq!(id(header).as_deref(), Some("1m83mscsb0000"));
        assert_eq!(message_id(header).as_deref(), Some("<a?@b>"));
        assert_eq!((id(b"A: b\r\n\r\n"), message_id(b"Message-ID:\r\n\r\n")), (None, None));
    }

    #[test]
    fn text_behind_fields_is_no_field_however_it_is_cut() {
        let long = format!("A: {}\r\n", "b".repeat(200)).repeat(1_000);
        for (mail, header, text) in [
            ("A: b\r\n\r\nbody\r\n", "A: b\r\n\r\n", "body\r\n"),
            ("A: b\r\nhello\r\nB: c\r\n\r\nx", "A: b\r\n\r\n", "hello\r\nB: c\r\n\r\nx"),
            ("A: b\nall of it: text\n", "A: b\n\r\n", "all of it: text\n"),
            ("A: b\r\n--x: y\r\n", "A: b\r\n\r\n", "--x: y\r\n"),
            ("A: b\r\n c\r\nä : d\r\n", "A: b\r\n c\r\nä : d\r\n", ""),
            ("A: b\r\nFrom a Mon 1 12:00\r\nB: c\r\n\r\nx", "A: b\r\nFrom a Mon 1 12:00\r\nB: c\r\n\r\n", "x"),
            ("A: b\r\n", "A: b\r\n", ""),
            ("\r\nA: b\r\n", "\r\n", "A: b\r\n"),
            (long.as_str(), &long[..HEADER_BYTES_MAX / 205 * 205], &long[HEADER_BYTES_MAX / 205 * 205..]),
        ] {
            for at in (0..mail.len()).filter(|at| mail.is_char_boundary(*at)).take(100) {
                let mut reader = Reader::default();
                let mut rest = Vec::new();
                for (piece, is_all) in [(&mail[..at], false), (&mail[at..], false), ("", true)] {
                    match reader.is_whole {
                        true => rest.extend_from_slice(piece.as_bytes()),
                        false => rest.extend(reader.read(piece.as_bytes(), is_all).unwrap_or_default()),
                    }
                }
                assert_eq!((&*reader.bytes, &*rest), (header.as_bytes(), text.as_bytes()), "{mail:.100} at {at}");
            }
        }
    }

    #[test]
    fn what_only_this_host_tells_is_taken_out() {
        let header = b"Resent-Bcc: a@b\r\nAuthentication-Results:\r\n (x) MX.Test; dkim=pass\r\nX-Spam-Status: No\r\n\
                       x-sluice-status: clean\r\nAuthentication-Results: other.test; spf=pass\r\nX-Spammer: y\r\n\r\n";
        let kept = b"Authentication-Results: other.test; spf=pass\r\nX-Spammer: y\r\n\r\n";
        assert_eq!(cleaned(header, "mx.test"), kept);
    }

    #[test]
    fn what_is_missing_is_added_and_bcc_is_taken_out() {
        let header = b"To: a@b\r\nbCC: secret@b,\r\n more@b\r\nReturn-Path: <x>\r\nDate: x\r\n\r\n";
        assert_eq!(cleaned(header, "mx.test"), b"To: a@b\r\nDate: x\r\n\r\n");
        let trace = missing(header, "ann@mx.test", "mx.test");
        assert!(trace.starts_with("From: <ann@mx.test>\r\nMessage-ID: <") && !trace.contains("Date:"), "{trace}");
        assert_eq!(missing(b"Date: x\r\nFrom: y\r\nMessage-Id: z\r\n\r\n", "", "mx.test"), "");
    }
}
