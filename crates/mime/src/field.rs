//! The values of the structured fields that decide how a body is read.
//!
//! Values are whole and bounded (`Limits::field_bytes_max`) when they come here. Everything is accepted that some mail
//! reader accepts; what readers take differently comes out as several candidates, likeliest first.

mod coding;
mod cursor;
mod parameter;
pub mod value;
mod word;

use alloc::boxed::Box;
use alloc::vec::Vec;

pub(crate) use coding::{TransferCoding, transfer_coding};
use cursor::Cursor;
pub(crate) use cursor::{with_unclosed_comment, without_comments};
use parameter::Parameters;
pub use word::text;

/// The text of a value without its comments, nested ones too; those in quotes stay.
pub fn bare(value: &str) -> alloc::string::String {
    let bare = without_comments(value.as_bytes());
    bare.map_or_else(|| value.into(), |bare| alloc::string::String::from_utf8_lossy(&bare).into_owned())
}

/// The value of a field without its folds. A tab that a line begins with becomes a blank: the fold was one between words.
pub fn unfolded(value: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(value.len());
    let mut at_start = false;
    for &byte in value {
        match byte {
            b'\r' | b'\n' => {
                at_start = true;
                continue;
            }
            b'\t' if at_start => text.push(b' '),
            _ => text.push(byte),
        }
        at_start = false;
    }
    text
}

/// The value of a field in one line: without its folds, with one blank for each run of blanks and tabs.
pub fn one_line(value: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(value.len());
    for &byte in value {
        match byte {
            b'\r' | b'\n' => {}
            b' ' | b'\t' if text.last() == Some(&b' ') => {}
            b'\t' => text.push(b' '),
            _ => text.push(byte),
        }
    }
    text
}

/// How many readings of one boundary parameter are kept.
pub(crate) const BOUNDARIES_MAX: usize = 3;

/// Value of a `Content-Type` field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ContentType {
    /// Type and subtype, lower case.
    pub media_type: Option<Box<str>>,
    /// The boundary as different readers take it, likeliest first; empty when there is no such parameter.
    pub boundaries: Vec<Box<[u8]>>,
    /// Whether the boundary exceeds its kept length.
    pub boundary_cut: bool,
    /// Whether readings of the boundary, or parameters, were left out.
    pub more: bool,
    pub charset: Option<Box<str>>,
    pub name: Option<Box<str>>,
}

/// How many names of one part are kept.
pub(crate) const NAMES_MAX: usize = 12;

/// The names that the fields of a part give, in order, each once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    all: Vec<Box<str>>,
    /// Whether names were left out.
    pub cut: bool,
}

impl Names {
    /// Adds the names in the value of a `Content-Disposition` or `Content-Type` field, in all readings. Of a longer name the
    /// first and the last `bytes_max` bytes are kept.
    pub(crate) fn read(&mut self, value: &[u8], bytes_max: usize) {
        let variants = [without_comments(value), with_unclosed_comment(value)];
        let decoded = decoded_type(value);
        let variants = variants.iter().flatten().map(|variant| &variant[..]);
        for variant in [value].into_iter().chain(variants).chain(decoded.as_deref().map(str::as_bytes)) {
            let parameters = Parameters::parse(variant);
            self.cut |= parameters.cut;
            for key in [&b"filename"[..], b"name"] {
                parameters.texts(key).for_each(|name| self.add(&name, bytes_max));
            }
        }
    }

    fn add(&mut self, name: &str, bytes_max: usize) {
        self.push(word::cut(name, bytes_max));
        if name.len() > bytes_max {
            self.push(word::tail(name, bytes_max));
        }
    }

    fn push(&mut self, name: Box<str>) {
        if name.is_empty() || self.all.contains(&name) {
            return;
        }
        match self.all.len() < NAMES_MAX {
            true => self.all.push(name),
            false => self.cut = true,
        }
    }

    pub(crate) fn first(&self) -> Option<&str> {
        self.all.first().map(|name| &**name)
    }

    /// All but the one that is shown.
    pub(crate) fn others(&self, shown: Option<&str>) -> Box<[Box<str>]> {
        self.all.iter().filter(|name| Some(&***name) != shown).cloned().collect()
    }
}

/// Reads the value of a `Content-Type` field. Texts are cut to `bytes_max`.
pub(crate) fn content_type(value: &[u8], bytes_max: usize) -> ContentType {
    let mut cursor = Cursor::new(value);
    let media_type = media_type(&mut cursor, bytes_max);
    let parameters = Parameters::parse(cursor.rest());
    let mut boundaries: Vec<Box<[u8]>> = Vec::new();
    let mut boundary_cut = false;
    let mut more = parameters.cut || parameters.is_undecoded(b"boundary");
    for boundary in parameters.candidates(b"boundary").flat_map(|boundary| readings(&boundary)) {
        boundary_cut |= boundary.len() > bytes_max;
        let boundary = &boundary[..boundary.len().min(bytes_max)];
        let known = boundaries.iter().any(|known| **known == *boundary);
        match boundaries.len() < BOUNDARIES_MAX {
            _ if known => {}
            true => boundaries.push(boundary.into()),
            false => more = true,
        }
    }
    ContentType {
        media_type,
        boundaries,
        boundary_cut,
        more,
        charset: parameters.text(b"charset", bytes_max).map(|charset| charset.trim().to_lowercase().into()),
        name: parameters.text(b"name", bytes_max),
    }
}

/// The value of a `Content-Type` field with its encoded words decoded, if there are some before its parameters.
pub(crate) fn decoded_type(value: &[u8]) -> Option<Box<str>> {
    let main = value.split(|&byte| byte == b';').next()?;
    memchr::memmem::find(main, b"=?").map(|_| text(value, usize::MAX))
}

/// Readings of the value of a boundary, likeliest first.
fn readings(boundary: &[u8]) -> Vec<Vec<u8>> {
    // RFC 2046 forbids white space at the end; readers that compare it nevertheless are another reading.
    let mut readings = [boundary.trim_ascii_end().to_vec(), boundary.to_vec()].to_vec();
    if let [b'<', inner @ .., b'>'] | [b'\'', inner @ .., b'\''] = boundary {
        readings.push(inner.to_vec());
    }
    if memchr::memmem::find(boundary, b"=?").is_some() {
        readings.push(text(boundary, usize::MAX).as_bytes().to_vec());
    }
    readings
}

/// Reads the file name out of the value of a `Content-Disposition` field.
pub(crate) fn disposition_name(value: &[u8], bytes_max: usize) -> Option<Box<str>> {
    let parameters = Parameters::parse(value);
    parameters.text(b"filename", bytes_max).or_else(|| parameters.text(b"name", bytes_max))
}

fn media_type(cursor: &mut Cursor, bytes_max: usize) -> Option<Box<str>> {
    cursor.skip_space();
    let quoted = cursor.skip(b'"');
    let main = cursor.token();
    let sub = cursor.skip(b'/').then(|| cursor.token());
    if quoted {
        cursor.skip(b'"');
    }
    if main.is_empty() && sub.is_none_or(<[u8]>::is_empty) {
        return None;
    }
    let mut whole = main.to_vec();
    if let Some(sub) = sub {
        whole.push(b'/');
        whole.extend_from_slice(sub);
    }
    Some(text(&whole.to_ascii_lowercase(), bytes_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &[u8]) -> ContentType {
        content_type(value, 1024)
    }

    fn boundaries(value: &[u8]) -> Vec<Vec<u8>> {
        read(value).boundaries.iter().map(|b| b.to_vec()).collect()
    }

    #[test]
    fn folds_are_left_out_and_runs_of_blanks_in_one_line_are_one() {
        for (value, wanted, line) in [
            (&b"a\r\n b"[..], &b"a b"[..], &b"a b"[..]),
            (b"a\r\n\tb", b"a b", b"a b"),
            (b"a\r\n \tb", b"a \tb", b"a b"),
            (b"a \r\n  b\tc  d", b"a   b\tc  d", b"a b c d"),
            (b"\r\n\t a\n \r\n", b"  a ", b" a "),
            (b"=?utf-8?q?a=20=20b?=", b"=?utf-8?q?a=20=20b?=", b"=?utf-8?q?a=20=20b?="),
        ] {
            assert_eq!((&unfolded(value)[..], &one_line(value)[..]), (wanted, line), "{}", value.escape_ascii());
        }
    }

    #[test]
    fn the_type_is_lower_case_and_may_be_quoted_commented_or_half() {
        for (value, wanted) in [
            (&b" Text/HTML; charset=x"[..], "text/html"),
            (b"\"text/html\"", "text/html"),
            (b"(c) text / (d) html", "text/html"),
            (b"text", "text"),
            (b"text;", "text"),
            (b"/html", "/html"),
        ] {
            assert_eq!(read(value).media_type.as_deref(), Some(wanted));
        }
        assert_eq!(read(b" ;x=y").media_type, None);
    }

    #[test]
    fn a_boundary_is_read_however_it_is_written() {
        for value in [
            &b"multipart/mixed; boundary=B1"[..],
            b"multipart/mixed; boundary=\"B1\"",
            b"multipart/mixed boundary=B1",
            b"multipart/mixed;\r\n\tboundary = (c) B1 (d)",
            b"multipart/mixed;;; BOUNDARY=B1; boundary=B1",
            b"multipart/mixed; boundary=\"B1",
            b"multipart/mixed; boundary*0=B; boundary*1=1",
            b"multipart/mixed; boundary*1=1; boundary*0*=us-ascii'en'%42",
            b"multipart/mixed, boundary=B1, charset=x",
        ] {
            assert_eq!(boundaries(value), [b"B1".to_vec()], "{}", value.escape_ascii());
        }
    }

    #[test]
    fn different_boundaries_are_all_kept() {
        assert_eq!(boundaries(b"multipart/mixed; boundary=A; boundary=B; boundary*0=C"), [b"A", b"B", b"C"]);
        assert_eq!(boundaries(b"multipart/mixed; boundary=\"A; charset=x"), [&b"A"[..], b"A; charset=x"]);
        assert_eq!(boundaries(b"multipart/mixed; boundary=\"B1 \""), [&b"B1"[..], b"B1 "]);
        assert_eq!(boundaries(b"multipart/mixed; boundary=\"a\\b\""), [&b"a\\b"[..], b"ab"]);
    }

    #[test]
    fn names_are_decoded_in_every_form() {
        for value in [
            &b"attachment; filename=\"n\xc3\xa4 me.exe\""[..],
            b"attachment; filename=n\xe4 me.exe",
            b"attachment; filename*=utf-8''n%C3%A4%20me.exe",
            b"attachment; filename=x; filename*=ISO-8859-1'de'n%e4%20me.exe",
            b"attachment; filename*1*=%A4%20me.; filename*2=exe; filename*0*=utf-8''n%C3",
            b"attachment; filename=\"=?utf-8?Q?n=C3=A4_me=2Eexe?=\"",
            b"attachment; filename==?iso-8859-1?b?buQgbWUuZXhl?=",
            b"attachment; filename=\"n\xc3\xa4 me.exe",
        ] {
            assert_eq!(disposition_name(value, 1024).as_deref(), Some("nä me.exe"), "{}", value.escape_ascii());
        }
    }

    #[test]
    fn every_name_is_read_in_every_reading() {
        for (value, wanted) in [
            (&b"attachment; filename=evil.exe; filename*=utf-8''ok.txt"[..], &["ok.txt", "evil.exe"][..]),
            (b"attachment; filename*0=ok.txt; filename=evil.exe", &["ok.txt", "evil.exe"]),
            (b"attachment; filename*0=ok.txt; filename*0=evil.exe", &["ok.txt", "evil.exe"]),
            (b"a; filename*=utf-8''ok.txt; filename*=utf-8''evil%2Eexe", &["ok.txt", "evil.exe"]),
            (b"a; filename*0*=utf-8''evil%2E; filename*1=exe; filename*3=.txt", &["evil.exe.txt", "evil.exe"]),
            (b"attachment; filename=ok.txt; filename=evil.exe; name=c", &["ok.txt", "evil.exe", "c"]),
            (b"attachment; filename=\"evil.ex\\e\"", &["evil.ex\\e", "evil.exe"]),
            (b"attachment; filename=(c)evil.exe(d)", &["evil.exe(d)", "evil.exe"]),
            (b"attachment; filename=evil.exe (d", &["evil.exe", "evil.exe xd"]),
            (b"attachment; filename=evil.exe ok.txt", &["evil.exe ok.txt", "evil.exe"]),
            (b"attachment; filename=\"evil\".exe", &["evil", "evil.exe"]),
            (b"attachment; filename=\"evil.exe\" (c); x=y", &["evil.exe"]),
            (b"attachment; filename=\"evil.exe; x=y", &["evil.exe", "evil.exe; x=y"]),
            (b"=?utf-8?q?a=3B_filename=3Devil.exe?=", &["evil.exe"]),
            (b"text/plain", &[]),
        ] {
            let mut names = Names::default();
            names.read(value, 1024);
            let mut read: Vec<&str> = names.all.iter().map(|name| &**name).collect();
            let mut wanted = wanted.to_vec();
            assert_eq!(read.first(), wanted.first(), "{}", value.escape_ascii());
            read.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(read, wanted, "{}", value.escape_ascii());
            assert!(!names.cut);
        }
    }

    #[test]
    fn the_names_of_a_part_are_bounded() {
        let mut names = Names::default();
        names.read(alloc::format!("x; filename={}.exe", "ä".repeat(100)).as_bytes(), 9);
        assert_eq!(names.all[..], ["ääää".into(), "ää.exe".into()]);
        let many: alloc::string::String = (0..NAMES_MAX).map(|index| alloc::format!("; name={index}")).collect();
        names.read(many.as_bytes(), 9);
        assert!(names.cut && names.all.len() == NAMES_MAX);
    }

    #[test]
    fn a_name_is_cut_at_its_bound_between_characters() {
        let name = disposition_name("x; filename=\"ääää\"".as_bytes(), 5);
        assert_eq!(name.as_deref(), Some("ää"));
    }
}
