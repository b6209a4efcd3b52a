//! The composer of mails: fields encoded (RFC 2047, RFC 2231) and folded, text as `format=flowed`, attachments in Base64.
//!
//! No value of a form becomes a field of its own: line ends and control characters are left out of texts, and addresses are read and
//! written anew. `Bcc` stands first and is not sent.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write as _;

use crate::fault::Fault;
use crate::plain;
use crate::recipients::{RECIPIENTS_MAX, SEPARATOR, separated, typed};

/// The longest line of a field, in characters.
const LINE_MAX: usize = 76;

/// A mail that is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Letter {
    /// The address of the sender.
    pub from: String,
    /// The name of the sender; empty for none.
    pub name: String,
    /// Lists of addresses, as they were typed.
    pub to: String,
    /// See `to`.
    pub cc: String,
    /// See `to`.
    pub bcc: String,
    /// The subject.
    pub subject: String,
    /// The text, with line feeds.
    pub text: String,
    /// The `Message-ID` that it answers.
    pub in_reply_to: String,
    /// The `References` of the mail that is answered.
    pub references: String,
    /// Files that go with it.
    pub files: Vec<File>,
}

/// A file that goes with a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its type, as the browser or the mail that it was in says.
    pub kind: String,
    /// Its bytes.
    pub content: Vec<u8>,
}

/// A mail that was composed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composed {
    /// The mail.
    pub content: Vec<u8>,
    /// Bytes at its beginning that are not sent.
    pub private: u64,
    /// Recipients, each once.
    pub recipients: Vec<String>,
}

/// Composes a mail at a time, with 16 random bytes for its identifiers.
///
/// # Errors
/// Where a recipient is no address, or there are too many.
pub fn compose(letter: &Letter, now: i64, random: [u8; 16], hostname: &str) -> Result<Composed, Fault> {
    let mut recipients = Vec::new();
    let mut read = |list| read_list(list, &mut recipients);
    let (bcc, mut to, cc) = (read(&letter.bcc)?, read(&letter.to)?, read(&letter.cc)?);
    if to.is_empty() && cc.is_empty() {
        to.push("undisclosed-recipients:;".into());
    }
    let (content, private) = written(letter, [bcc, to, cc], now, random, hostname);
    Ok(Composed { content, private, recipients })
}

/// Composes a draft: what is no address yet stays as it was typed.
pub fn compose_draft(letter: &Letter, now: i64, random: [u8; 16], hostname: &str) -> Vec<u8> {
    let entry = |entry: &str| read_list(entry, &mut Vec::new()).unwrap_or_else(|_| vec![words(entry).join("\r\n ")]);
    let whole = |list: &String| separated(list).split(SEPARATOR).flat_map(entry).collect();
    let lists = [&letter.bcc, &letter.to, &letter.cc].map(whole);
    written(letter, lists, now, random, hostname).0
}

/// A mail with lists of recipients, blind ones first, and how many bytes of it are not sent.
fn written(
    letter: &Letter,
    [bcc, to, cc]: [Vec<String>; 3],
    now: i64,
    random: [u8; 16],
    hostname: &str,
) -> (Vec<u8>, u64) {
    let mark: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut out = String::new();
    list_field("Bcc", &bcc, &mut out);
    let private = out.len() as u64;
    let _ = write!(out, "Date: {}\r\n", proto::imap::date::message(now));
    list_field("From", &[mailbox(&letter.name, &letter.from)], &mut out);
    list_field("To", &to, &mut out);
    list_field("Cc", &cc, &mut out);
    field("Subject", &words(&letter.subject), &mut out);
    let _ = write!(out, "Message-ID: <{mark}@{hostname}>\r\n");
    let answered = ids(&letter.in_reply_to);
    if let [id, ..] = &answered[..] {
        field("In-Reply-To", core::slice::from_ref(id), &mut out);
        let mut references = ids(&letter.references);
        let start = references.len().saturating_sub(20);
        references.drain(..start);
        references
            .extend(answered.iter().take(1).filter(|id| references.last() != Some(id)).cloned().collect::<Vec<_>>());
        field("References", &references, &mut out);
    }
    out.push_str("MIME-Version: 1.0\r\n");
    let mut content = out.into_bytes();
    if letter.files.is_empty() {
        write_text(&letter.text, &mut content);
        return (content, private);
    }
    content.extend_from_slice(
        format!("Content-Type: multipart/mixed; boundary=\"={mark}\"\r\n\r\n--={mark}\r\n").as_bytes(),
    );
    write_text(&letter.text, &mut content);
    for file in &letter.files {
        content.extend_from_slice(format!("\r\n--={mark}\r\n").as_bytes());
        write_file(file, &mut content);
    }
    content.extend_from_slice(format!("\r\n--={mark}--\r\n").as_bytes());
    (content, private)
}

/// The addresses of a list as they are written in a field; adds those that are new to `recipients`.
fn read_list(list: &str, recipients: &mut Vec<String>) -> Result<Vec<String>, Fault> {
    let mut written = Vec::new();
    for (name, spec) in typed(list)? {
        written.push(mailbox(&name, &spec));
        if !recipients.contains(&spec) {
            recipients.push(spec);
        }
        if recipients.len() > RECIPIENTS_MAX {
            return Err(Fault::Recipients(RECIPIENTS_MAX));
        }
    }
    Ok(written)
}

/// An address with its name.
fn mailbox(name: &str, address: &str) -> String {
    let name = without_controls(name);
    match name.trim() {
        "" => address.into(),
        name if !name.is_ascii() => format!("{} <{address}>", words(name).join("\r\n ")),
        name if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ') => format!("{name} <{address}>"),
        name => format!("\"{}\" <{address}>", name.replace(['"', '\\'], "'")),
    }
}

fn without_controls(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c }).collect()
}

fn list_field(name: &str, list: &[String], out: &mut String) {
    if list.is_empty() {
        return;
    }
    let _ = write!(out, "{name}: {}\r\n", list.join(",\r\n "));
}

/// Identifiers in brackets, each of bounded length.
fn ids(text: &str) -> Vec<String> {
    let is_fine = |id: &&str| {
        id.starts_with('<') && id.ends_with('>') && id.len() <= 250 && id.bytes().all(|byte| byte.is_ascii_graphic())
    };
    text.split_whitespace().filter(is_fine).map(Into::into).collect()
}

/// The words of a text for a field: as they are in ASCII, encoded otherwise.
fn words(text: &str) -> Vec<String> {
    let text = without_controls(text);
    let text = text.trim();
    let is_plain = text.is_ascii() && !text.contains("=?") && text.split(' ').all(|word| word.len() < LINE_MAX);
    if is_plain {
        return text.split_whitespace().map(Into::into).collect();
    }
    let mut words = Vec::new();
    let mut piece = String::new();
    for character in text.chars() {
        // 45 bytes are 60 characters, and 72 with what stands around them.
        if piece.len().saturating_add(character.len_utf8()) > 42 {
            words.push(encoded(&core::mem::take(&mut piece)));
        }
        piece.push(character);
    }
    if !piece.is_empty() {
        words.push(encoded(&piece));
    }
    words
}

fn encoded(piece: &str) -> String {
    format!("=?utf-8?B?{}?=", text::base64::encode(piece.as_bytes()))
}

/// Writes a field, folded between words.
fn field(name: &str, words: &[String], out: &mut String) {
    let _ = write!(out, "{name}:");
    let mut columns = name.len().saturating_add(1);
    for word in words {
        if columns.saturating_add(word.len()) >= LINE_MAX && columns > name.len().saturating_add(1) {
            out.push_str("\r\n");
            columns = 0;
        }
        out.push(' ');
        out.push_str(word);
        columns = columns.saturating_add(word.len()).saturating_add(1);
    }
    out.push_str("\r\n");
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(
        b"Content-Type: text/plain; charset=utf-8; format=flowed\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n",
    );
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    quoted_printable(&plain::flowed(text.trim_end()), out);
}

/// Text with CRLF in quoted-printable (RFC 2045, section 6.7).
fn quoted_printable(text: &str, out: &mut Vec<u8>) {
    for line in text.split_inclusive("\r\n") {
        let (content, end) = line.strip_suffix("\r\n").map_or((line, ""), |content| (content, "\r\n"));
        let mut columns = 0usize;
        let bytes = content.as_bytes();
        for (at, &byte) in bytes.iter().enumerate() {
            let is_last = at.saturating_add(1) == bytes.len();
            let is_plain = matches!(byte, b'!'..=b'<' | b'>'..=b'~') || (byte == b' ' && !is_last);
            let width = if is_plain { 1 } else { 3 };
            if columns.saturating_add(width) > LINE_MAX.saturating_sub(1) {
                out.extend_from_slice(b"=\r\n");
                columns = 0;
            }
            match is_plain {
                true => out.push(byte),
                false => out.extend_from_slice(format!("={byte:02X}").as_bytes()),
            }
            columns = columns.saturating_add(width);
        }
        out.extend_from_slice(end.as_bytes());
    }
}

fn write_file(file: &File, out: &mut Vec<u8>) {
    let name = text::parameter::written("filename", &file.name);
    if let Some(mail) = as_mail(file) {
        let coding = if mail.is_ascii() { "7bit" } else { "8bit" };
        let head = format!(
            "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: {coding}\r\nContent-Disposition: attachment{name}\r\n\r\n"
        );
        out.extend_from_slice(head.as_bytes());
        return out.extend(mail);
    }
    let kind = kind_of(file);
    let head = format!(
        "Content-Type: {kind}\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment{name}\r\n\r\n"
    );
    out.extend_from_slice(head.as_bytes());
    for line in file.content.chunks(57) {
        out.extend_from_slice(text::base64::encode(line).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// A file that is a mail, with the line ends of mails: no coding is allowed for it (RFC 2046, section 5.2.1). `None` for other files, and for
/// a mail that servers would change or refuse as it stands.
fn as_mail(file: &File) -> Option<Vec<u8>> {
    let kind = file.kind.split(';').next().unwrap_or_default().trim();
    let is_named = file.name.len() > 4 && file.name.to_ascii_lowercase().ends_with(".eml");
    if !(kind.eq_ignore_ascii_case("message/rfc822") || is_named && kind != "text/plain") {
        return None;
    }
    let first = file.content.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let name = first.get(..first.iter().position(|&byte| byte == b':')?).unwrap_or_default();
    let is_header = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    let mut mail = Vec::with_capacity(file.content.len());
    for line in file.content.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > 998 || line.iter().any(|byte| matches!(byte, 0 | b'\r')) {
            return None;
        }
        mail.extend_from_slice(line);
        mail.extend_from_slice(b"\r\n");
    }
    is_header.then_some(mail)
}

/// The type of a file. A text beyond ASCII has a charset: the one that is given, or UTF-8 if it is that.
fn kind_of(file: &File) -> String {
    let kind = kind(&file.kind);
    if !kind.starts_with("text/") {
        return kind;
    }
    let given = mime::Value::read(file.kind.as_bytes());
    let given = given.get("charset").and_then(|charset| core::str::from_utf8(charset).ok());
    let is_name = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte));
    match given.filter(is_name).filter(|name| (1..=40).contains(&name.len())) {
        Some(charset) => format!("{kind}; charset={charset}"),
        None if file.content.is_ascii() => kind,
        None if core::str::from_utf8(&file.content).is_ok() => format!("{kind}; charset=utf-8"),
        None => "application/octet-stream".into(),
    }
}

/// A type that stands in a field as it is; messages and multiparts may not be encoded.
fn kind(kind: &str) -> String {
    let is_token = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-+._".contains(&byte))
    };
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.split_once('/') {
        Some((main, sub))
            if is_token(main) && is_token(sub) && kind.len() <= 100 && !["message", "multipart"].contains(&main) =>
        {
            kind
        }
        _ => "application/octet-stream".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn composed(letter: &Letter) -> String {
        let composed = compose(letter, 837_570_205, [7; 16], "mx.test").unwrap();
        String::from_utf8(composed.content).unwrap()
    }

    #[test]
    fn hostile_values_become_no_fields() {
        let letter = Letter {
            from: "ann@mx.test".into(),
            name: "Ann\r\nX-Evil: 1".into(),
            to: "bob@mx.test\r\nX-Evil: 2".into(),
            subject: "a\r\nX-Evil: 3\u{2028}\n\n<b>".into(),
            in_reply_to: "<1@x>\r\nX-Evil: 4".into(),
            references: "<0@x>\nX-Evil:5".into(),
            files: vec![File {
                name: "a\r\nX-Evil: 6\".txt".into(),
                kind: "text/x\r\nX-Evil: 7".into(),
                content: vec![],
            }],
            ..Letter::default()
        };
        match compose(&letter, 0, [7; 16], "mx.test") {
            Err(fault) => assert!(matches!(fault, Fault::Address(_))),
            Ok(composed) => assert!(!String::from_utf8(composed.content).unwrap().contains("\nX-Evil")),
        }
        let mail = composed(&Letter { to: "bob@mx.test".into(), ..letter });
        assert!(!mail.contains("\nX-Evil") && mail.contains("application/octet-stream"), "{mail}");
    }

    #[test]
    fn a_mail_is_written_and_blind_copies_are_not_sent() {
        let letter = Letter {
            from: "ann@mx.test".into(),
            name: "Änne".into(),
            to: "Bob B <bob@mx.test>, \"C, D\" <c@d.example>; e@f.example".into(),
            bcc: "g@h.example, bob@mx.test".into(),
            subject: format!("Grüße {}", "x".repeat(200)),
            text: "Hallo Bob,\n\ngrüß dich \nFrom here".into(),
            ..Letter::default()
        };
        let composed = compose(&letter, 837_570_205, [7; 16], "mx.test").unwrap();
        assert_eq!(composed.recipients, ["g@h.example", "bob@mx.test", "c@d.example", "e@f.example"]);
        let mail = String::from_utf8(composed.content.clone()).unwrap();
        let sent = &mail[usize::try_from(composed.private).unwrap()..];
        assert!(
            mail.starts_with("Bcc: g@h.example,\r\n bob@mx.test\r\nDate: Wed, 17 Jul 1996 02:23:25 +0000\r\n"),
            "{mail}"
        );
        assert!(
            !sent.contains("Bcc")
                && sent.contains("To: Bob B <bob@mx.test>,\r\n \"C, D\" <c@d.example>,\r\n e@f.example"),
            "{sent}"
        );
        assert!(sent.is_ascii() && sent.lines().all(|line| line.len() <= 78), "{sent}");
        let subject = sent.split("Subject: ").nth(1).unwrap().split("\r\nMessage-ID").next().unwrap();
        assert_eq!(&*mime::header_text(&mime::unfolded(subject.as_bytes()), 1_000), letter.subject);
        assert!(sent.ends_with("gr=C3=BC=C3=9F dich\r\n From here\r\n"), "{sent}");
    }

    #[test]
    fn a_draft_keeps_what_is_no_address_yet() {
        let letter = Letter {
            from: "ann@mx.test".into(),
            to: "Ann <ann@mx.test>, bob\r\nX-Evil: 1".into(),
            cc: "Bj\u{f6}".into(),
            bcc: "c@d.example".into(),
            ..Letter::default()
        };
        let draft = String::from_utf8(compose_draft(&letter, 0, [7; 16], "mx.test")).unwrap();
        assert!(draft.starts_with("Bcc: c@d.example\r\n") && !draft.contains("\nX-Evil"), "{draft}");
        assert!(draft.contains("\r\nTo: Ann <ann@mx.test>,\r\n bob,\r\n X-Evil:\r\n 1\r\nCc: =?utf-8?B?"), "{draft}");
        assert!(!String::from_utf8(compose_draft(&Letter::default(), 0, [7; 16], "x")).unwrap().contains("To:"));
    }

    #[test]
    fn a_mail_that_is_attached_is_no_coded_file() {
        let file = |name: &str, kind: &str, content: &[u8]| File {
            name: name.into(),
            kind: kind.into(),
            content: content.into(),
        };
        let attached =
            |file: File| composed(&Letter { to: "a@b.example".into(), files: vec![file], ..Letter::default() });
        let mail = attached(file("x.eml", "message/rfc822", b"Subject: x\nTo: y\n\ngr\xc3\xbcn\n"));
        assert!(mail.contains("Content-Type: message/rfc822\r\nContent-Transfer-Encoding: 8bit\r\n"), "{mail}");
        assert!(mail.contains("\r\n\r\nSubject: x\r\nTo: y\r\n\r\ngr\u{fc}n\r\n"), "{mail}");
        assert!(attached(file("x.EML", "application/octet-stream", b"A: b\r\n\r\nc")).contains("7bit\r\n"));
        for other in [&b"no mail"[..], b"A: b\0", &[&b"A: "[..], &[b'x'; 1_000]].concat()] {
            assert!(
                attached(file("x.eml", "message/rfc822", other))
                    .contains("octet-stream\r\nContent-Transfer-Encoding: base64")
            );
        }
    }

    #[test]
    fn a_text_that_is_attached_has_its_charset() {
        for (kind, content, wanted) in [
            ("text/plain", &b"a"[..], "text/plain"),
            ("text/plain", b"gr\xc3\xbcn", "text/plain; charset=utf-8"),
            ("text/csv", b"gr\xfcn", "application/octet-stream"),
            ("text/csv; charset=\"iso-8859-1\"", b"gr\xfcn", "text/csv; charset=iso-8859-1"),
            ("text/csv; charset=\"a,b\"", b"a", "text/csv"),
            ("image/png", b"\xff", "image/png"),
        ] {
            let file = File { name: "x".into(), kind: kind.into(), content: content.into() };
            assert_eq!(kind_of(&file), wanted, "{kind}");
        }
    }

    #[test]
    fn two_addresses_without_a_comma_are_two() {
        let letter = Letter { to: "bob@example.org ann@example.org".into(), ..Letter::default() };
        assert!(composed(&letter).contains("To: bob@example.org,\r\n ann@example.org\r\n"));
    }

    #[test]
    fn what_is_no_address_is_told() {
        for to in ["bob", "bob@", "a b@c.example", "bob@mx.test, x<y", "b\u{f6}b@x.example", "<@x:y@z.example>x@"] {
            let letter = Letter { from: "a@b.example".into(), to: to.into(), ..Letter::default() };
            let outcome = compose(&letter, 0, [0; 16], "mx.test");
            assert!(outcome.is_err(), "{to}: {outcome:?}");
        }
        let many = "a@b.example,".repeat(50) + &(0..101).map(|at| format!("a{at}@b.example,")).collect::<String>();
        assert!(compose(&Letter { to: many, ..Letter::default() }, 0, [0; 16], "x").is_err());
    }
}
