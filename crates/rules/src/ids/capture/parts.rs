//! Parts of a mail or of an upload, line by line: fields of the top, names, and contents decoded from Base64 and quoted-printable.
//!
//! It is as tolerant as what rules are compared with, and knows no forks: the reader of mails that decides is the crate `mime`.

use super::super::transform::hex;

/// Bytes of the fields of one part.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// A line that is longer is handed on in pieces.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Pieces of a parameter.
const PIECES_MAX: usize = 100;
/// Boundaries in boundaries.
const DEPTH_MAX: usize = 16;

/// Event of reading a mail.
#[derive(Debug)]
pub(super) enum Event<'a> {
    /// A field of the top.
    Field(&'a [u8], &'a [u8]),
    /// A part begins, with the name of its file.
    Begin(Option<&'a [u8]>),
    Data(&'a [u8]),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Identity,
    Base64,
    Quoted,
}

/// A reader of parts.
#[derive(Debug)]
pub(super) struct Parts {
    line: Vec<u8>,
    /// Whether the beginning of the line has been handed on.
    is_cut: bool,
    head: Vec<u8>,
    in_head: bool,
    is_top: bool,
    /// Whether mails inside are read, too.
    is_mail: bool,
    is_open: bool,
    /// Whether it is a mail that says it is in Base64, before its first line: where that is a field, it is not.
    is_doubtful: bool,
    boundaries: Vec<Vec<u8>>,
    encoding: Encoding,
    /// Digits that are not yet four.
    digits: Vec<u8>,
    /// The line end that may belong to a boundary.
    held: Vec<u8>,
}

impl Parts {
    pub fn new() -> Parts {
        Parts {
            line: Vec::new(),
            is_cut: false,
            head: Vec::new(),
            in_head: true,
            is_top: true,
            is_mail: false,
            is_open: false,
            is_doubtful: false,
            boundaries: Vec::new(),
            encoding: Encoding::Identity,
            digits: Vec::new(),
            held: Vec::new(),
        }
    }

    pub fn of_mail() -> Parts {
        Parts { is_mail: true, ..Parts::new() }
    }

    pub fn feed(&mut self, piece: &[u8], out: &mut dyn FnMut(Event<'_>)) {
        for part in piece.split_inclusive(|&byte| byte == b'\n') {
            let mut part = part;
            while !part.is_empty() {
                let room = LINE_BYTES_MAX.saturating_sub(self.line.len()).min(part.len());
                self.line.extend_from_slice(&part[..room]);
                part = &part[room..];
                if self.line.ends_with(b"\n") || self.line.len() >= LINE_BYTES_MAX {
                    self.end_line(out);
                }
            }
        }
    }

    pub fn finish(&mut self, out: &mut dyn FnMut(Event<'_>)) {
        if !self.line.is_empty() {
            self.end_line(out);
        }
        if self.in_head {
            self.end_head(out);
        }
        self.end_part(out);
    }

    fn end_line(&mut self, out: &mut dyn FnMut(Event<'_>)) {
        let line = std::mem::take(&mut self.line);
        let is_whole = !self.is_cut;
        self.is_cut = !line.ends_with(b"\n");
        if is_whole && self.boundary(&line, out) {
            return;
        }
        if self.is_doubtful && !line.trim_ascii().is_empty() {
            self.is_doubtful = false;
            if is_field(&line) {
                self.end_part(out);
                (self.in_head, self.encoding) = (true, Encoding::Identity);
            }
        }
        if !self.in_head {
            return self.body(&line, out);
        }
        if is_whole && line.trim_ascii().is_empty() {
            return self.end_head(out);
        }
        if self.head.len() < HEAD_BYTES_MAX {
            self.head.extend_from_slice(&line);
        }
    }

    /// Whether a line is a boundary; parts inside end with it.
    fn boundary(&mut self, line: &[u8], out: &mut dyn FnMut(Event<'_>)) -> bool {
        let Some(rest) = line.strip_prefix(b"--") else { return false };
        let rest = rest.trim_ascii_end();
        let fits =
            |boundary: &Vec<u8>| rest.strip_prefix(&boundary[..]).is_some_and(|rest| matches!(rest, b"" | b"--"));
        let Some(at) = self.boundaries.iter().rposition(fits) else { return false };
        let is_last = rest.len() > self.boundaries[at].len();
        self.held.clear();
        self.end_part(out);
        self.boundaries.truncate(at + 1);
        if is_last {
            self.boundaries.truncate(at);
        }
        (self.in_head, self.is_top) = (!is_last, false);
        true
    }

    fn end_part(&mut self, out: &mut dyn FnMut(Event<'_>)) {
        if self.is_open {
            let held = std::mem::take(&mut self.held);
            if !held.is_empty() && self.encoding == Encoding::Identity {
                out(Event::Data(&held));
            }
            let digits = std::mem::take(&mut self.digits);
            let last = text::base64::decode(digits).unwrap_or_default();
            if !last.is_empty() {
                out(Event::Data(&last));
            }
            out(Event::End);
        }
        (self.is_open, self.head, self.digits) = (false, Vec::new(), Vec::new());
        self.is_doubtful = false;
    }

    fn end_head(&mut self, out: &mut dyn FnMut(Event<'_>)) {
        self.in_head = false;
        let head = std::mem::take(&mut self.head);
        let (mut name, mut boundary, mut is_message) = (None, None, false);
        self.encoding = Encoding::Identity;
        for (field, value) in fields(&head) {
            if self.is_top {
                out(Event::Field(&field, &value));
            }
            match field.to_ascii_lowercase().as_slice() {
                b"content-type" => {
                    let kind = value.trim_ascii_start().to_ascii_lowercase();
                    let is_multipart = kind.starts_with(b"multipart/");
                    is_message = kind.starts_with(b"message/rfc822") || kind.starts_with(b"message/global");
                    boundary = parameter(&value, b"boundary").filter(|_| is_multipart);
                    name = name.or(parameter(&value, b"name"));
                }
                b"content-disposition" => name = parameter(&value, b"filename").or(name),
                b"content-transfer-encoding" => {
                    self.encoding = match mime::value::coding_name(&value).to_ascii_lowercase().as_slice() {
                        b"base64" | b"x-base64" => Encoding::Base64,
                        b"quoted-printable" | b"x-quoted-printable" => Encoding::Quoted,
                        _ => Encoding::Identity,
                    }
                }
                _ => {}
            }
        }
        if self.is_mail && is_message && self.encoding == Encoding::Identity {
            (self.in_head, self.is_top) = (true, false);
            if name.is_some() {
                out(Event::Begin(name.as_deref()));
                out(Event::End);
            }
            return;
        }
        match boundary.filter(|boundary| !boundary.is_empty() && self.boundaries.len() < DEPTH_MAX) {
            Some(boundary) => self.boundaries.push(boundary),
            None => {
                self.is_open = true;
                (self.is_doubtful, self.is_top) = (self.is_mail && is_message, false);
                out(Event::Begin(name.as_deref()));
            }
        }
    }

    fn body(&mut self, line: &[u8], out: &mut dyn FnMut(Event<'_>)) {
        if !self.is_open {
            return;
        }
        match self.encoding {
            Encoding::Identity => {
                let held = std::mem::take(&mut self.held);
                if !held.is_empty() {
                    out(Event::Data(&held));
                }
                let end = line.strip_suffix(b"\n").map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line));
                self.held = line[end.len()..].to_vec();
                if !end.is_empty() {
                    out(Event::Data(end));
                }
            }
            Encoding::Base64 => line.split_inclusive(|&byte| byte == b'=').for_each(|run| self.digits(run, out)),
            Encoding::Quoted => out(Event::Data(&quoted(line))),
        }
    }

    /// Decodes a run of Base64. Padding ends four digits that are not all there, and more may follow (RFC 2045, section 6.8).
    fn digits(&mut self, run: &[u8], out: &mut dyn FnMut(Event<'_>)) {
        self.digits.extend(run.iter().copied().filter(|byte| text::base64::value(*byte).is_some()));
        let whole = if run.ends_with(b"=") { self.digits.len() } else { self.digits.len() / 4 * 4 };
        let decoded = text::base64::decode(self.digits.drain(..whole)).unwrap_or_default();
        if !decoded.is_empty() {
            out(Event::Data(&decoded));
        }
    }
}

/// Whether a line is a field of a head; a line of Base64 has no colon.
fn is_field(line: &[u8]) -> bool {
    let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
    name.len() < line.len() && !name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic())
}

fn quoted(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let soft = line.strip_suffix(b"=\r\n").or_else(|| line.strip_suffix(b"=\n"));
    let line = soft.unwrap_or(line);
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        let pair = line.get(at + 1..at + 3).filter(|_| byte == b'=');
        let value = pair.and_then(|pair| Some(hex(pair[0])? << 4 | hex(pair[1])?));
        out.push(value.unwrap_or(byte));
        at += if value.is_some() { 3 } else { 1 };
    }
    out
}

/// Fields of a head, folded lines joined.
fn fields(head: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut fields: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for line in head.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.first().is_some_and(|byte| matches!(byte, b' ' | b'\t'))
            && let Some((_, value)) = fields.last_mut()
        {
            value.extend_from_slice(line);
            continue;
        }
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            continue;
        };
        fields.push((line[..colon].trim_ascii().to_vec(), line[colon + 1..].trim_ascii().to_vec()));
    }
    fields
}

/// A parameter of a value, its quotes undone and its pieces joined (RFC 2231, section 3).
pub(super) fn parameter(value: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let piece = |number: usize| whole_parameter(value, &[name, b"*", number.to_string().as_bytes()].concat());
    let joined = || Some((0..PIECES_MAX).map_while(piece).collect::<Vec<_>>().concat());
    whole_parameter(value, name).or_else(|| joined().filter(|text| !text.is_empty()))
}

fn whole_parameter(value: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let lower = value.to_ascii_lowercase();
    for found in memchr::memmem::find_iter(&lower, name) {
        let before = lower[..found].iter().rev().find(|byte| !byte.is_ascii_whitespace());
        let rest = value[found + name.len()..].trim_ascii_start();
        let (true, Some(rest)) = (before == Some(&b';'), rest.strip_prefix(b"=")) else { continue };
        let rest = rest.trim_ascii_start();
        let text = match rest.strip_prefix(b"\"") {
            Some(inner) => inner.split(|&byte| byte == b'"').next(),
            None => rest.split(|byte| matches!(byte, b';' | b' ' | b'\t' | b'\r' | b'\n')).next(),
        };
        return text.map(<[u8]>::to_vec);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mails_in_mails_are_read_and_pieces_of_names_joined() {
        let mail = b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: message/rfc822\r\n\r\n\
            Content-Type: multipart/mixed; boundary=y\r\n\r\n--y\r\nContent-Disposition: attachment;\r\n \
            filename*0=\"evi\"; filename*1=l.exe\r\n\r\nabc\r\n--y--\r\n--x--\r\n";
        let read = |mut parts: Parts| {
            let mut files = Vec::new();
            let mut take = |event: Event<'_>| {
                if let Event::Begin(name) = event {
                    files.push(name.map(<[u8]>::to_vec));
                }
            };
            parts.feed(mail, &mut take);
            parts.finish(&mut take);
            files
        };
        assert_eq!(read(Parts::of_mail()), [Some(b"evil.exe".to_vec())]);
        assert_eq!(read(Parts::new()), [None]);
    }

    #[test]
    fn a_mail_that_is_not_in_base64_as_it_says_is_read() {
        let read = |body: &str| {
            let head =
                "Subject: a\r\nContent-Type: message/rfc822; name=m\r\nContent-Transfer-Encoding: base64\r\n\r\n";
            let (mut parts, mut told) = (Parts::of_mail(), String::new());
            let mut take = |event: Event<'_>| match event {
                Event::Begin(name) => told += &format!("[{}]", String::from_utf8_lossy(name.unwrap_or(b"-"))),
                Event::Data(bytes) => told += &String::from_utf8_lossy(bytes),
                Event::Field(name, _) => told += &format!("{},", String::from_utf8_lossy(name)),
                Event::End => told += ".",
            };
            parts.feed([head, body].concat().as_bytes(), &mut take);
            parts.finish(&mut take);
            told
        };
        let top = "Subject,Content-Type,Content-Transfer-Encoding,[m]";
        let inner = "From: a\r\nContent-Type: text/plain; name=evil.exe\r\n\r\nTEST: x\r\n";
        assert_eq!(read(inner), format!("{top}.[evil.exe]TEST: x\r\n."));
        assert_eq!(read(&format!("\r\n{inner}")), format!("{top}.[evil.exe]TEST: x\r\n."));
        assert_eq!(read("YWJj\r\nZGVm\r\n"), format!("{top}abcdef."));
    }

    #[test]
    fn parts_are_decoded_however_they_are_cut() {
        let mail = b"From: <a@b>\r\nContent-Type: multipart/mixed; boundary=\"x\"\r\n\r\npre\r\n--x\r\nContent-Disposition: attachment; \
            filename=f.txt\r\nContent-Transfer-Encoding: base64\r\n\r\nYWJj\r\nZGU=\r\nNA=\r\n=Mg\r\n==\r\n--x\r\n\r\nplain\r\n--x--\r\nafter\r\n";
        for size in [1, 7, mail.len()] {
            let (mut parts, mut out) = (Parts::new(), Vec::new());
            let mut take = |event: Event<'_>| match event {
                Event::Begin(name) => out.extend([b"[", name.unwrap_or(b"-"), b"]"].concat()),
                Event::Data(bytes) => out.extend_from_slice(bytes),
                Event::End => out.push(b'.'),
                Event::Field(..) => {}
            };
            mail.chunks(size).for_each(|piece| parts.feed(piece, &mut take));
            parts.finish(&mut take);
            assert_eq!(out, b"[f.txt]abcde42.[-]plain.", "in pieces of {size}");
        }
    }

    #[test]
    fn codings_are_known_however_they_are_spelt() {
        for (coding, wanted) in [
            ("BASE64", "abc"),
            ("\"base64\"", "abc"),
            ("base64 (x)", "abc"),
            ("(x) base64;", "abc"),
            ("x-base64", "abc"),
            ("\"quoted-printable\"", "YWJj"),
            ("8bit", "YWJj"),
            ("x64", "YWJj"),
        ] {
            let mail = format!("Content-Transfer-Encoding: {coding}\r\n\r\nYWJj");
            let (mut parts, mut out) = (Parts::of_mail(), Vec::new());
            let mut take = |event: Event<'_>| {
                if let Event::Data(bytes) = event {
                    out.extend_from_slice(bytes);
                }
            };
            parts.feed(mail.as_bytes(), &mut take);
            parts.finish(&mut take);
            assert_eq!(String::from_utf8_lossy(&out), wanted, "{coding}");
        }
    }
}
