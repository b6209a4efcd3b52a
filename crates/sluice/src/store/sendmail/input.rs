//! The mail on standard input: its lines up to the end, and the recipients that its header names.

use std::io::{self, BufRead};

use mime::address::{Address, Entry, addresses};
use proto::smtp::Path;

use super::Fault;

/// Bytes of a header that are read for recipients.
const HEADER_BYTES_MAX: usize = 1 << 20;

/// Recipients of one mail.
pub const RECIPIENTS_MAX: usize = 50_000;

/// Reads a mail by its lines: the line of a mailbox file in front is left out, and a dot alone ends it, unless dots are kept.
pub struct Lines<R> {
    input: R,
    keeps_dots: bool,
    is_first: bool,
    /// The last piece has ended a line.
    at_start: bool,
    is_over: bool,
}

impl<R: BufRead> Lines<R> {
    /// Reads from here.
    pub fn new(input: R, keeps_dots: bool) -> Lines<R> {
        Lines { input, keeps_dots, is_first: true, at_start: true, is_over: false }
    }

    /// Adds a line, or a part of a long one, to `out`; false at the end.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        loop {
            let from = out.len();
            if self.is_over || io::Read::take(&mut self.input, 64 << 10).read_until(b'\n', out)? == 0 {
                return Ok(false);
            }
            let (line, begins) = (out.get(from..).unwrap_or_default(), self.at_start);
            let is_dot = matches!(line, b".\n" | b".\r\n" | b".");
            let is_left_out =
                std::mem::take(&mut self.is_first) && (line.starts_with(b"From ") || line.starts_with(b">From "));
            self.at_start = line.ends_with(b"\n");
            if is_left_out {
                out.truncate(from);
                continue;
            }
            if begins && is_dot && !self.keeps_dots {
                out.truncate(from);
                self.is_over = true;
                return Ok(false);
            }
            return Ok(true);
        }
    }

    /// The header with its empty line, as far as it is one.
    ///
    /// # Errors
    /// When it cannot be read, or is too long for its recipients to be found.
    pub fn header(&mut self) -> Result<Vec<u8>, Fault> {
        let mut header = Vec::new();
        loop {
            let from = header.len();
            if !self.read(&mut header).map_err(|error| Fault::input(&error))? {
                return Ok(header);
            }
            let line = header.get(from..).unwrap_or_default();
            let goes_on = from > 0 && (line.starts_with(b" ") || line.starts_with(b"\t"));
            if !goes_on && !is_field(line) {
                return Ok(header);
            }
            if header.len() > HEADER_BYTES_MAX {
                return Err(Fault::data("the header is longer than 1 MiB"));
            }
        }
    }
}

fn is_field(line: &[u8]) -> bool {
    let name = line.iter().position(|&byte| byte == b':').and_then(|colon| line.get(..colon)).unwrap_or_default();
    let name = name.trim_ascii_end();
    !name.is_empty() && name.iter().all(u8::is_ascii_graphic)
}

/// The recipients of a header: To, Cc and Bcc, or, of a mail that was sent again, those fields of that.
pub fn of_header(header: &[u8]) -> Result<Vec<String>, Fault> {
    let mut found = [Vec::new(), Vec::new()];
    let mut is_again = false;
    let mut rest = header;
    while !rest.is_empty() {
        let line = |from: usize| rest.get(from..).and_then(|rest| rest.iter().position(|&byte| byte == b'\n'));
        let mut end = line(0).map_or(rest.len(), |at| at + 1);
        while rest.get(end).is_some_and(|byte| b" \t".contains(byte)) {
            end = line(end).map_or(rest.len(), |at| end + at + 1);
        }
        let (field, behind) = rest.split_at(end);
        rest = behind;
        let Some(colon) = field.iter().position(|&byte| byte == b':') else { continue };
        let name = field.get(..colon).unwrap_or_default().trim_ascii_end().to_ascii_lowercase();
        let (again, name) = match name.strip_prefix(b"resent-") {
            Some(name) => (true, name),
            None => (false, &name[..]),
        };
        is_again |= again;
        if matches!(name, b"to" | b"cc" | b"bcc") {
            found[usize::from(again)].extend(of_list(field.get(colon + 1..).unwrap_or_default())?);
        }
    }
    let [first, again] = found;
    Ok(if is_again { again } else { first })
}

/// The addresses of a word of the command line. One without addresses is an error, and so is `:include:`.
pub fn of_word(word: &str) -> Result<Vec<String>, Fault> {
    let found = of_list(word.as_bytes())?;
    match found.is_empty() && !word.is_empty() || word.starts_with(':') {
        true => Err(Fault::data(format!("{word:?} is not an address"))),
        false => Ok(found),
    }
}

/// The addresses of a list.
pub fn of_list(list: &[u8]) -> Result<Vec<String>, Fault> {
    let mut found = Vec::new();
    for entry in addresses(list, RECIPIENTS_MAX) {
        let Entry::Address(address) = entry else { continue };
        if address.local.is_empty() && address.domain.is_empty() && !address.is_faulty {
            continue;
        }
        let whole = written(&address.local, &address.domain)
            .filter(|whole| is_meant(&address) && whole.parse::<Path>().is_ok());
        let Some(whole) = whole else {
            let local = address.name.as_deref().filter(|_| address.local.is_empty()).unwrap_or(&address.local);
            let [local, domain] = [local, &address.domain[..]].map(|part| String::from_utf8_lossy(part));
            return Err(Fault::data(format!("{local:?} at {domain:?} is not an address")));
        };
        found.push(whole);
    }
    Ok(found)
}

/// Whether an address is one as its writer meant it: two that stand side by side are read as one, and are not. A name alone is an address
/// here, and an address may be the name of another.
fn is_meant(address: &Address) -> bool {
    let is_named = address.name.as_ref().is_some_and(|name| name.contains(&b'@'));
    address.is_whole || !address.is_faulty && (address.domain.is_empty() || is_named)
}

/// An address as an envelope has it: its local part in quotes where it needs them.
fn written(local: &[u8], domain: &[u8]) -> Option<String> {
    let (local, domain) = (std::str::from_utf8(local).ok()?, std::str::from_utf8(domain).ok()?);
    let is_plain = |letter: char| !letter.is_ascii() || letter.is_ascii_graphic() && !"()<>[]:;,\\\"@".contains(letter);
    let local = match local.chars().all(is_plain) {
        true => local.to_owned(),
        false => format!("\"{}\"", local.replace('\\', "\\\\").replace('"', "\\\"")),
    };
    Some(if domain.is_empty() { local } else { format!("{local}@{domain}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipients_are_those_of_the_header_or_of_its_sending_again() {
        let found = |header: &str| of_header(header.as_bytes()).unwrap();
        let header = "To: Ann <ann@example.org>,\n bob@example.org\nSubject: to: eve@example.org\nBCC: root\nCc: a group: c@d;\n\n";
        assert_eq!(found(header), ["ann@example.org", "bob@example.org", "root", "c@d"]);
        assert_eq!(found("To: a@b\nResent-From: x@y\nResent-To: c@d\n\n"), ["c@d"]);
        assert_eq!(found("To: undisclosed-recipients:;\nTo: <>\n\n"), Vec::<String>::new());
        assert_eq!(found("To: \"a b\"@example.org\n\n"), ["\"a b\"@example.org"]);
        assert_eq!(found("To: Ann Doe, ann@x <ann@example.org>, Bob <bob>\n\n"), ["ann@example.org", "bob"]);
        for wrong in ["To: a@b c@[\n\n", "To: a@b c@d\n\n", "To: Ann <a b@c>\n\n"] {
            assert_eq!(of_header(wrong.as_bytes()).map_err(|fault| fault.status).err(), Some(65), "{wrong}");
        }
    }

    #[test]
    fn words_are_addresses() {
        assert_eq!(
            of_word("ann@example.org, <bob@example.org>,root").unwrap(),
            ["ann@example.org", "bob@example.org", "root"]
        );
        assert_eq!(of_word("\"a b\"@example.org").unwrap(), ["\"a b\"@example.org"]);
        assert_eq!(of_word("").unwrap(), Vec::<String>::new());
        for wrong in [
            "c@x.test d@x.test",
            "c@x.test\td@x.test",
            "a b",
            "Ann ann@x.test",
            ":include:/x",
            "<>",
            "a@x.test, b c@x.test",
            "a@b@x.test",
            "Ann <a@b@x.test>",
            "Ann <a b@x.test>",
            "\"a\"b@x.test",
            "a@x.test, \"b",
        ] {
            assert_eq!(of_word(wrong).map_err(|fault| fault.status).err(), Some(65), "{wrong}");
        }
    }

    #[test]
    fn a_mail_ends_at_its_dot_or_with_the_input() {
        let read = |text: &str, keeps_dots| {
            let mut lines = Lines::new(text.as_bytes(), keeps_dots);
            let mut out = lines.header().unwrap();
            out.push(b'|');
            while lines.read(&mut out).unwrap() {}
            String::from_utf8(out).unwrap()
        };
        assert_eq!(read("From x Mon\nA: b\n\nbody\n.\nmore\n", false), "A: b\n\n|body\n");
        assert_eq!(read("A: b\n\nbody\n.\nmore\n", true), "A: b\n\n|body\n.\nmore\n");
        assert_eq!(read("hello\nFrom x\n", false), "hello\n|From x\n");
        assert_eq!(read("A: b\r\n c: d\r\n\r\n..\r\n", false), "A: b\r\n c: d\r\n\r\n|..\r\n");
        assert_eq!(read(">From x Mon\nA: b\n\n>From y\n", false), "A: b\n\n|>From y\n");
        assert_eq!(read("", false), "|");
    }
}
