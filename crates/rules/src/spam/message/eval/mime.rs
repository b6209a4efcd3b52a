//! Over MIME parts: which there are, how they are coded, and what is odd about that.

use std::borrow::Cow;

use super::{View, bound, number, text, truth};
use crate::spam::message::field::ContentType;
use crate::spam::message::perl::{begins, find, is_blank, lines};
use crate::spam::message::{Message, Part};

pub(super) const FUNCTIONS: &[(&str, View)] = &[
    ("check_abundant_unicode_ratio", unicode_ratio),
    ("check_base64_length", base64_length),
    ("check_for_ascii_text_illegal", illegal_ascii),
    ("check_for_mime_html", html),
    ("check_for_mime_html_only", html_only),
    ("check_for_uppercase", uppercase),
    ("check_ma_non_text", alternative_non_text),
    ("check_mime_multipart_ratio", multipart_ratio),
    ("check_msg_parse_flags", structure),
    ("check_qp_ratio", quoted_ratio),
];

/// Counts over the parts of a mail, made once.
#[derive(Debug, Clone, Default)]
pub(in crate::spam::message) struct Facts {
    html_parts: u32,
    text_parts: u32,
    base64_parts: u32,
    base64_text: bool,
    attachments: u32,
    odd_charset: bool,
    charsets: Vec<Vec<u8>>,
    has_alternative: bool,
    multipart_ratio: f64,
    quoted_count: f64,
    quoted_bytes: f64,
    quoted_long_line: bool,
    illegal_lines: u32,
    escapes: f64,
    letters: f64,
    /// Bytes of the last plain and the last HTML part.
    last: [Option<usize>; 2],
    /// The longest line of a part in Base64.
    base64_line: usize,
}

/// Header of a part, in lower case.
struct Head {
    content: ContentType,
    charset: Vec<u8>,
    coding: Vec<u8>,
    disposition: Vec<u8>,
}

impl Head {
    fn read(part: &Part) -> Head {
        let value = |name: &[u8]| part.field(name).map_or(Vec::new(), |field| field.value.to_ascii_lowercase());
        let content = ContentType::read(part.field(b"content-type").map(|field| &*field.value));
        let charset = content.charset.as_deref().unwrap_or_default().to_ascii_lowercase();
        Head {
            content,
            charset,
            coding: value(b"content-transfer-encoding"),
            disposition: value(b"content-disposition"),
        }
    }

    fn is_attached(&self) -> bool {
        find(&self.disposition, b"attachment", 0).is_some()
    }
}

impl Facts {
    pub(in crate::spam::message) fn read(parts: &[Part]) -> Facts {
        let mut facts = Facts { multipart_ratio: 1.0, ..Facts::default() };
        for part in parts.iter().filter(|part| !part.kind.is_empty()) {
            let head = Head::read(part);
            facts.has_alternative |= head.content.kind == "multipart/alternative";
            facts.head(&head);
            if !part.has_parts {
                facts.content(part, &head);
            }
        }
        if let ([Some(plain), Some(html)], true) = (facts.last, facts.has_alternative)
            && html > 0
        {
            facts.multipart_ratio = plain as f64 / html as f64;
        }
        facts
    }

    fn head(&mut self, head: &Head) {
        let kind = head.content.kind.as_str();
        let is_base64 = find(&head.coding, b"base64", 0).is_some();
        if kind == "text/html" {
            self.html_parts += 1;
        } else if kind.starts_with("text") {
            self.text_parts += 1;
        }
        self.base64_parts += u32::from(is_base64);
        self.attachments += u32::from(head.is_attached());
        let is_plain_charset = head.charset.is_empty() || is_ascii_charset(&head.charset);
        let is_placed = head.disposition.starts_with(b"attachment") || head.disposition.starts_with(b"inline");
        self.base64_text |= kind.starts_with("text") && is_base64 && is_plain_charset && !is_placed;
        self.odd_charset |= is_odd_iso(&head.charset);
        if head.charset.iter().any(u8::is_ascii_lowercase) {
            self.charsets.push(head.charset.clone());
        }
    }

    fn content(&mut self, part: &Part, head: &Head) {
        let kind = head.content.kind.as_str();
        let is_attached = head.is_attached();
        let is_either = kind == "text/plain" || kind == "text/html";
        if !is_attached && is_either {
            let counted = if self.has_alternative { part.raw.len() } else { 0 };
            self.last[usize::from(kind == "text/html")] = Some(counted);
        }
        let is_quoted = head.coding == b"quoted-printable";
        let is_base64 = head.coding == b"base64" && kind != "application/ics";
        let is_ascii = kind == "text/plain" && (head.content.charset.is_none() || head.charset == b"us-ascii");
        let is_bare = kind == "text/plain" && matches!(&head.coding[..], b"" | b"7bit" | b"8bit");
        for line in lines(&part.raw) {
            if is_quoted && !line.starts_with(b"SPAM: ") {
                self.quoted_long_line |= line.len() > 79;
                self.quoted_bytes += line.len() as f64;
                self.quoted_count += needless_escapes(line);
            }
            if is_base64 {
                self.base64_line = self.base64_line.max(line.len());
            }
            self.illegal_lines +=
                u32::from(is_ascii && (!line.is_ascii() || memchr::memchr2(0, b'\r', line).is_some()));
            if is_bare {
                let escapes = character_escapes(line);
                self.escapes += escapes as f64;
                self.letters += (line.len() - escapes * 8) as f64;
            }
        }
    }
}

/// Escapes in quoted-printable of what needs none; blanks at the end of a line need them.
fn needless_escapes(line: &[u8]) -> f64 {
    let is_needless = |digits: &[u8]| match digits {
        b"09" => true,
        [b'3', low] => matches!(low, b'0'..=b'9' | b'A'..=b'C' | b'E' | b'F'),
        [b'2' | b'4' | b'5' | b'6', low] => matches!(low, b'0'..=b'9' | b'A'..=b'F'),
        [b'7', low] => matches!(low, b'0'..=b'9' | b'A'..=b'E'),
        _ => false,
    };
    let (mut count, mut at) = (0usize, 0);
    while let Some(found) = line.get(at..).and_then(|rest| memchr::memchr(b'=', rest)) {
        at += found + 1;
        if line.get(at..at + 2).is_some_and(is_needless) {
            count += 1;
            at += 2;
        }
    }
    let end = line.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |last| last + 1);
    let blanks = line[..end].rchunks(3).take_while(|escape| matches!(*escape, b"=20" | b"=09")).count();
    if count > 0 { count as f64 - blanks as f64 } else { 0.0 }
}

/// How often `&#x20AC;` and the like stand in a line.
fn character_escapes(line: &[u8]) -> usize {
    let is_one = |rest: &[u8]| {
        rest.starts_with(b"&#x")
            && rest.get(3..7).is_some_and(|digits| digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F')))
            && rest.get(7) == Some(&b';')
    };
    memchr::memchr_iter(b'&', line).filter(|at| is_one(&line[*at..])).count()
}

fn is_ascii_charset(charset: &[u8]) -> bool {
    // A name that holds `us` or `ascii` is one of them.
    ["us", "ascii", "ansi_x3.4-1968", "ansi_x3.4-1986", "iso-ir-6", "iso_646.irv:1991", "ibm367", "cp367"]
        .iter()
        .any(|name| find(charset, name.as_bytes(), 0).is_some())
}

/// Whether a charset is `iso-` and two words, and unknown.
fn is_odd_iso(charset: &[u8]) -> bool {
    let Some(at) = find(charset, b"iso-", 0) else { return false };
    let rest = &charset[at + 4..];
    let word = rest.iter().take_while(|byte| !is_blank(**byte)).count();
    let dash = rest[..word].iter().position(|byte| *byte == b'-').filter(|at| *at > 0);
    if dash.is_none_or(|at| at + 1 >= word) {
        return false;
    }
    let known = rest.strip_prefix(b"8859-").map(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (1..=2).contains(&digits) && !rest.get(digits).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    });
    let is_2022 = ["2022-jp", "2022-kr"].iter().any(|name| begins(rest, name.as_bytes()));
    !known.unwrap_or(is_2022)
}

/// `check_for_mime`, but for what depends on locales.
pub(crate) fn mime(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let facts = message.facts();
    truth(match text(arguments, 0) {
        "mime_base64_count" => facts.base64_parts > 0,
        "mime_base64_encoded_text" => facts.base64_text,
        "mime_bad_iso_charset" => facts.odd_charset,
        "mime_attachment" => facts.attachments > 0,
        "mime_body_html_count" => facts.html_parts > 0,
        "mime_body_text_count" => facts.text_parts > 0,
        "mime_missing_boundary" => message.structure().missing_boundary,
        "mime_multipart_alternative" => facts.has_alternative,
        "mime_multipart_ratio" => facts.multipart_ratio != 0.0,
        "mime_qp_long_line" => facts.quoted_long_line,
        "mime_qp_count" => facts.quoted_count != 0.0,
        "mime_qp_ratio" => facts.quoted_count != 0.0,
        "mime_ascii_text_illegal" => facts.illegal_lines > 0,
        "mime_text_unicode_ratio" => facts.escapes > 0.0,
        _ => false,
    })
}

/// Whether the first `Content-Type` says HTML.
fn is_html(message: &Message) -> bool {
    let first = message.fields().iter().find(|field| field.is(b"content-type"));
    first.is_some_and(|field| begins(&field.value, b"text/html"))
}

fn html(message: &Message, _: &[Box<[u8]>]) -> f64 {
    truth(is_html(message) || message.facts().html_parts > 0)
}

fn html_only(message: &Message, _: &[Box<[u8]>]) -> f64 {
    let facts = message.facts();
    truth(is_html(message) || (facts.html_parts > 0 && facts.text_parts == 0))
}

fn multipart_ratio(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let ratio = message.facts().multipart_ratio;
    truth(ratio >= number(arguments, 0) && ratio < number(arguments, 1))
}

fn illegal_ascii(message: &Message, _: &[Box<[u8]>]) -> f64 {
    truth(message.facts().illegal_lines > 0)
}

fn unicode_ratio(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let facts = message.facts();
    let ratio = if facts.letters > 0.0 { facts.escapes / facts.letters } else { 0.0 };
    truth(ratio >= number(arguments, 0))
}

fn quoted_ratio(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let facts = message.facts();
    let ratio = if facts.quoted_bytes > 0.0 { facts.quoted_count / facts.quoted_bytes } else { 0.0 };
    truth(ratio >= number(arguments, 0))
}

fn base64_length(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let length = message.facts().base64_line as f64;
    truth(length >= number(arguments, 0) && bound(arguments, 1).is_none_or(|max| length <= max))
}

fn structure(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let found = message.structure();
    truth(match text(arguments, 0) {
        "missing_head_body_separator" => found.no_separator,
        "missing_mime_headers" => found.no_part_header,
        "missing_mime_head_body_separator" => found.no_part_separator,
        "mime_epilogue_exists" => found.epilogue,
        "truncated_header" | "truncated_headers" => found.header_cut,
        "mimepart_limit_exceeded" => found.too_many_parts,
        _ => false,
    })
}

/// Something else than text among alternatives.
fn alternative_non_text(message: &Message, _: &[Box<[u8]>]) -> f64 {
    let parts = message.parts();
    let is_odd = |part: &Part| {
        !part.has_parts
            && !part.kind.is_empty()
            && !matches!(&*part.kind, "multipart/related" | "application/rtf")
            && !part.kind.starts_with("text/")
    };
    let below = |at: usize| {
        let depth = parts[at].depth;
        parts[at + 1..].iter().take_while(move |part| part.depth > depth).filter(move |part| part.depth == depth + 1)
    };
    let alternatives = (0..parts.len()).filter(|at| &*parts[*at].kind == "multipart/alternative");
    truth(alternatives.into_iter().any(|at| is_odd(&parts[at]) || below(at).any(is_odd)))
}

/// Capitals among the letters of lines with more than one word, in percent.
fn uppercase(message: &Message, arguments: &[Box<[u8]>]) -> f64 {
    let percent = *message.capitals.get_or_init(|| capitals(message));
    truth(percent.is_some_and(|percent| percent > number(arguments, 0) && percent <= number(arguments, 1)))
}

/// How many there are; none where that says nothing.
fn capitals(message: &Message) -> Option<f64> {
    if has_odd_letters(message) {
        return None;
    }
    let (mut length, mut lower, mut upper) = (0usize, 0usize, 0usize);
    for line in message.body().iter().filter(|line| has_two_words(line) && !is_coded(line)) {
        let line = without_shifts(line);
        length += line.len();
        lower += count(&line, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        upper += count(&line, |byte| byte.is_ascii_uppercase());
    }
    (length >= 200 && upper + lower > 0).then(|| upper as f64 / (upper + lower) as f64 * 100.0)
}

/// How many bytes are of a kind: so many at a time that their number is a byte, and the compiler makes vectors.
pub(crate) fn count(text: &[u8], is: impl Fn(u8) -> bool) -> usize {
    let few = |bytes: &[u8]| bytes.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(is(byte).into()));
    text.chunks(usize::from(u8::MAX)).map(|bytes| usize::from(few(bytes))).sum()
}

fn has_two_words(line: &[u8]) -> bool {
    let mut words = line.split(|byte| is_blank(*byte)).filter(|word| !word.is_empty());
    words.next().is_some() && words.next().is_some()
}

/// Two runs of Base64 at the beginning of a line.
fn is_coded(line: &[u8]) -> bool {
    let mut words = line.split(|byte| *byte == b' ');
    let mut is_run = || {
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        words.next().is_some_and(|word| (60..=76).contains(&word.len()) && word.iter().all(is_letter))
    };
    is_run() && is_run() && words.next().is_some()
}

/// Without what ISO-2022-JP shifts in, from the first shift to the last shift back.
fn without_shifts(line: &[u8]) -> Cow<'_, [u8]> {
    if !line.contains(&0x1b) {
        return line.into();
    }
    let begin = memchr::memmem::find(line, b"\x1b$B");
    let end = memchr::memmem::rfind(line, b"\x1b(B");
    match begin.zip(end) {
        Some((begin, end)) if begin + 3 <= end => [&line[..begin], &line[end + 3..]].concat().into(),
        _ => line.into(),
    }
}

/// A charset is declared in whose bytes capitals say nothing.
fn has_odd_letters(message: &Message) -> bool {
    let is_odd = |charset: &[u8]| {
        let names =
            ["koi", "jp", "jis", "euc", "gb", "big5", "isoir", "cp1251", "windows-1251", "georgianps", "pt154", "tis"];
        let plain = charset.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        plain && names.iter().any(|name| find(charset, name.as_bytes(), 0).is_some())
    };
    let declared = message.field(b"content-type").and_then(|field| declared_charset(&field.value));
    let mut parts = message.facts().charsets.iter().flat_map(|charset| charset.split(|byte| is_blank(*byte)));
    declared.is_some_and(is_odd) || parts.any(is_odd)
}

/// The charsets that parts declare, in lower case.
pub(crate) fn part_charsets(message: &Message) -> &[Vec<u8>] {
    &message.facts().charsets
}

/// The charset that a `Content-Type` declares.
pub(crate) fn declared_charset(value: &[u8]) -> Option<&[u8]> {
    let at = find(value, b"charset=", 0)? + 8;
    let rest = &value[at..];
    let quote = rest.first().copied().filter(|byte| matches!(byte, b'"' | b'\''));
    let inner = quote.and_then(|quote| rest[1..].iter().position(|byte| *byte == quote).map(|end| &rest[1..1 + end]));
    inner.filter(|inner| !inner.is_empty()).or_else(|| {
        let length = rest.iter().take_while(|byte| !is_blank(**byte)).count();
        (length > 0).then(|| &rest[..length])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bytes_are_counted_than_a_byte_can_hold() {
        assert_eq!(count(&[b'A'; 1000], |byte| byte.is_ascii_uppercase()), 1000);
        assert_eq!(count(b"aAbB", |byte| byte.is_ascii_uppercase()), 2);
    }
}
