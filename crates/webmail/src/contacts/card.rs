//! vCards: from lines to contacts and back.

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use text::encoding::Encoding;
use text::hazard::is_hazard;

use super::detail::{Detail, Version, fold, name_of, quoted_split, unescaped};
use super::{ADDRESSES_MAX, CONTACTS_MAX, Contact, NOTE_MAX, cut, line};
use crate::recipients::typed;

/// Bytes of a property of a vCard that are read: more than all values that are kept need.
pub(super) const PROPERTY_BYTES_MAX: usize = 8 << 10;

/// Details of a contact; members of a group are details.
const DETAILS_MAX: usize = 500;

/// Bytes of a detail: a longer one is left out.
const DETAIL_BYTES_MAX: usize = 1_000;

/// The identifier of another program in a book as it is kept.
const OWN_UID: &str = "X-SLUICE-UID";

impl Contact {
    /// Keeps a property as a detail, if there is room.
    fn keep(&mut self, head: &str, value: &str) {
        let is_head = |c: char| !is_hazard(c) && !c.is_control() && c != ':';
        let value: String = value.replace("\r\n", "\n").replace('\n', "\\n");
        let value: String = value.chars().filter(|&c| !is_hazard(c) && !c.is_control()).collect();
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
        let fits = head.len().saturating_add(value.len()) <= DETAIL_BYTES_MAX && self.details.len() < DETAILS_MAX;
        let head = match name_of(head) {
            name @ ("KIND" | "MEMBER") => name,
            _ => head,
        };
        let detail = Detail { head: head.into(), value };
        let is_right = head.chars().all(is_head) && is_name(name_of(head)) && !detail.line().is_empty();
        if fits && is_right && !self.details.contains(&detail) {
            self.details.push(detail);
        }
    }

    fn detail(&self, name: &str, value: &str) -> Option<&Detail> {
        self.details.iter().find(|detail| detail.name() == name && detail.line().eq_ignore_ascii_case(value))
    }
}

/// Writes a contact: for the book itself, or for other programs.
pub(super) fn write(contact: &Contact, version: Version, is_own: bool, out: &mut String) {
    let head = if version == Version::Four { "VERSION:4.0" } else { "VERSION:3.0" };
    out.push_str(&format!("BEGIN:VCARD\r\n{head}\r\n"));
    fold(&format!("FN:{}", escaped(contact.label())), out);
    if !is_own && contact.details.iter().all(|detail| detail.name() != "N") {
        fold(&format!("N:{}", names(&contact.name)), out);
    }
    for address in &contact.addresses {
        match contact.detail("EMAIL", address) {
            Some(detail) => detail.write(version, out),
            None => fold(&format!("EMAIL:{}", escaped(address)), out),
        }
    }
    let phone = Some(&contact.phone).filter(|phone| contact.detail("TEL", phone).is_none());
    for (name, value) in phone.map(|phone| ("TEL", phone)).into_iter().chain([("NOTE", &contact.note)]) {
        if !value.is_empty() {
            fold(&format!("{name}:{}", escaped(value)), out);
        }
    }
    contact.details.iter().filter(|detail| detail.name() != "EMAIL").for_each(|detail| detail.write(version, out));
    if is_own {
        out.push_str(&format!("UID:{}\r\n", contact.id));
        out.push_str(if contact.is_collected { "CATEGORIES:collected\r\n" } else { "" });
    }
    if !contact.uid.is_empty() {
        fold(
            &if is_own { format!("{OWN_UID}:{}", escaped(&contact.uid)) } else { format!("UID:{}", contact.uid) },
            out,
        );
    }
    out.push_str("END:VCARD\r\n");
}

/// The parts of a name that nobody has parted: the last word is the family's.
fn names(name: &str) -> String {
    let (given, family) = name.rsplit_once(' ').unwrap_or((name, ""));
    format!("{};{};;;", escaped(family), escaped(given))
}

/// A file without byte order mark, in the coding of one byte a character where it is UTF-16.
pub(super) fn narrow(file: &[u8]) -> Cow<'_, [u8]> {
    let wide = [&b"\xff\xfe"[..], b"\xfe\xff"].iter().any(|mark| file.starts_with(mark));
    match Encoding::find(b"utf-16").filter(|_| wide) {
        Some(encoding) => {
            let text = encoding.decode(file).0;
            Cow::Owned(text.strip_prefix('\u{feff}').unwrap_or(&text).as_bytes().to_vec())
        }
        None => Cow::Borrowed(file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file)),
    }
}

/// Reads vCards, and no more of them than a book has room for and one.
pub(super) fn read(file: &[u8]) -> Vec<Contact> {
    let (mut all, mut open) = (Vec::new(), None::<Contact>);
    for line in unfolded(&narrow(file)) {
        let Some((head, value)) = property(&line) else { continue };
        match (name_of(&head), &mut open) {
            // A card without an end ends here.
            ("BEGIN", _) => all.extend(open.replace(Contact::default()).and_then(whole)),
            ("END", _) => all.extend(open.take().and_then(whole)),
            (_, Some(contact)) => read_property(contact, &head, &value),
            (_, None) => {}
        }
        if all.len() > CONTACTS_MAX {
            break;
        }
    }
    all.extend(open.and_then(whole));
    all
}

/// The lines of vCards: one that begins with a blank goes on with the line before, maybe in the middle of a character (RFC 6350,
/// section 3.2), and so does one behind a `=` of quoted-printable (version 2.1). The first [`PROPERTY_BYTES_MAX`] of each are read.
fn unfolded(file: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let cut = |line: &[u8], most: usize| line.get(..most.min(line.len())).unwrap_or_default().to_vec();
    let mut lines = file.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).peekable();
    core::iter::from_fn(move || {
        let mut line = cut(lines.next()?, PROPERTY_BYTES_MAX);
        while let Some(more) = lines.next_if(|next| matches!(next.first(), Some(b' ' | b'\t'))) {
            let room = PROPERTY_BYTES_MAX.saturating_sub(line.len());
            line.extend(cut(more.get(1..).unwrap_or_default(), room));
        }
        while line.ends_with(b"=") && is_quoted_printable(&line) {
            line.pop();
            let Some(more) = lines.next() else { break };
            let room = PROPERTY_BYTES_MAX.saturating_sub(line.len());
            line.extend(cut(more, room));
        }
        Some(line)
    })
}

/// Reads a property into a contact: `head` is its name with group and parameters.
pub(super) fn read_property(contact: &mut Contact, head: &str, value: &str) {
    let text = unescaped(value);
    match name_of(head) {
        "FN" if !text.trim().is_empty() => contact.name = line(&text),
        "N" => {
            let mut names = value.split(';').map(unescaped);
            let (family, given) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
            if contact.name.is_empty() {
                contact.name = line(&format!("{given} {family}"));
            }
            contact.keep(head, value);
        }
        "EMAIL" if contact.addresses.len() < ADDRESSES_MAX => {
            let address = typed(text.strip_prefix("mailto:").unwrap_or(&text)).unwrap_or_default();
            let Some((_, address)) = address.into_iter().next() else { return };
            if contact.addresses.iter().any(|known| known.eq_ignore_ascii_case(&address)) {
                return;
            }
            if has_parameters(head) {
                contact.keep(head, &escaped(&address));
            }
            contact.addresses.push(address);
        }
        "TEL" => {
            let number = line(text.strip_prefix("tel:").unwrap_or(&text));
            if has_parameters(head) || !contact.phone.is_empty() {
                contact.keep(head, &escaped(&number));
            }
            if contact.phone.is_empty() {
                contact.phone = number;
            }
        }
        "NOTE" => contact.note = cut(&text, NOTE_MAX),
        "UID" => match value.parse() {
            Ok(id) => contact.id = id,
            Err(_) => contact.uid = line(value),
        },
        OWN_UID => contact.uid = line(&text),
        "CATEGORIES" if value == "collected" => contact.is_collected = true,
        "VERSION" | "PRODID" | "REV" | "PHOTO" | "LOGO" | "SOUND" | "KEY" | "FN" | "EMAIL" => {}
        name => {
            if name == "ORG" && contact.name.is_empty() {
                contact.name = line(&unescaped(value.split(';').next().unwrap_or_default()));
            }
            contact.keep(head, value);
        }
    }
}

/// A contact that has a name or an address. A name that is its address is none.
pub(super) fn whole(mut contact: Contact) -> Option<Contact> {
    if contact.addresses.first() == Some(&contact.name) {
        contact.name.clear();
    }
    let parted = names(&contact.name);
    contact.details.retain(|detail| detail.head != "N" || detail.value != parted);
    (!contact.label().is_empty()).then_some(contact)
}

/// The head of a property, in upper case but for values of parameters, and its value: decoded as its parameters say, else UTF-8 or
/// Windows-1252. Parameters about the coding are left out, and binary values have none.
fn property(line: &[u8]) -> Option<(String, String)> {
    let mut is_quoted = false;
    let colon = line.iter().position(|&byte| {
        is_quoted ^= byte == b'"';
        byte == b':' && !is_quoted
    })?;
    let (whole, value) = line.split_at_checked(colon)?;
    let whole = String::from_utf8_lossy(whole);
    let mut parameters = quoted_split(&whole, ';');
    let name = parameters.next()?.trim().to_ascii_uppercase();
    let (mut head, mut encoding) = (name, Encoding::default());
    for parameter in parameters {
        let (key, of_key) = match parameter.split_once('=') {
            Some((key, of_key)) => (key.trim().to_ascii_uppercase(), of_key.trim()),
            // Version 2.1 has types alone.
            None => ("TYPE".to_owned(), parameter.trim()),
        };
        match (key.as_str(), of_key.to_ascii_uppercase().as_str()) {
            ("CHARSET", label) => encoding = Encoding::find(label.as_bytes()).unwrap_or_default(),
            ("ENCODING", "B" | "BASE64") | ("TYPE", "BASE64") => return None,
            ("ENCODING", _) | ("TYPE", "QUOTED-PRINTABLE" | "8BIT" | "7BIT" | "INTERNET" | "") => {}
            ("VALUE", "URI" | "TEXT") => {}
            _ => head.push_str(&format!(";{key}={of_key}")),
        }
    }
    let value = value.get(1..)?;
    let value = if is_quoted_printable(line) { unquoted(value) } else { value.to_vec() };
    Some((head, encoding.decode(&value).0.trim().to_owned()))
}

fn has_parameters(head: &str) -> bool {
    head.contains([';', '.'])
}

/// Whether the value of a property is in quoted-printable.
fn is_quoted_printable(line: &[u8]) -> bool {
    let head = line.split(|&byte| byte == b':').next().unwrap_or_default();
    head.split(|&byte| byte == b';').skip(1).any(|parameter| {
        let value = parameter.rsplit(|&byte| byte == b'=').next().unwrap_or_default();
        value.trim_ascii().eq_ignore_ascii_case(b"quoted-printable")
    })
}

/// Bytes of a value in quoted-printable.
fn unquoted(value: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(value.len()), value);
    while let Some((&byte, behind)) = rest.split_first() {
        let digit = |at: usize| behind.get(at).and_then(|&digit| char::from(digit).to_digit(16));
        let coded = digit(0).zip(digit(1)).filter(|_| byte == b'=');
        let coded = coded.and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
        out.push(coded.unwrap_or(byte));
        rest = if coded.is_some() { behind.get(2..).unwrap_or_default() } else { behind };
    }
    out
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace(',', "\\,").replace(';', "\\;").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn cards_of_other_programs_are_read() {
        let text = "BEGIN:VCARD\r\nVERSION:3.0\r\nN:Lovelace;Ada;;;\r\nitem1.EMAIL;TYPE=\"a:b\",INTERNET:ada@x.exa\r\n mple\r\n\
            EMAIL:not an address\r\nTEL;VALUE=uri:tel:+44-1\r\nNOTE:one\\, two\\nthree\r\nPHOTO:http://evil.example/\r\nEND:VCARD\r\n\
            BEGIN:VCARD\nVERSION:4.0\nFN:B\u{f6}b\nEND:VCARD\nBEGIN:VCARD\nEND:VCARD\nFN:nobody\n";
        let all = read(text.as_bytes());
        assert_eq!(all.len(), 2, "{all:?}");
        let Contact { name, addresses, phone, note, .. } = &all[0];
        assert_eq!((name.as_str(), &addresses[..]), ("Ada Lovelace", &["ada@x.example".to_string()][..]));
        assert_eq!((phone.as_str(), note.as_str()), ("+44-1", "one, two\nthree"));
        assert_eq!(all[1].name, "B\u{f6}b");
        for cut in 0..text.len() {
            read(&text.as_bytes()[..cut]);
        }
        let folded = "BEGIN:VCARD\r\nFN:B\u{f6}b\r\nEND:VCARD\r\n".as_bytes();
        let at = folded.iter().position(|&byte| byte == 0xb6).unwrap();
        let all = read(&[&folded[..at], b"\r\n ", &folded[at..]].concat());
        assert_eq!(all[0].name, "B\u{f6}b", "folded within a character");
    }

    #[test]
    fn cards_of_older_programs_are_read() {
        let card = |body: &str| [b"BEGIN:VCARD\r\n", body.as_bytes(), b"\r\nEND:VCARD\r\n"].concat();
        let names = |file: &[u8]| read(file).into_iter().map(|contact| contact.name).collect::<Vec<_>>();
        let quoted = "FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:J=C3=B6rg=20=\r\nQP";
        assert_eq!(names(&card(quoted)), ["J\u{f6}rg QP"]);
        assert_eq!(names(&card("FN;CHARSET=koi8-r;QUOTED-PRINTABLE:=F0")), ["\u{41f}"]);
        assert_eq!(names(b"BEGIN:VCARD\nFN:J\xf6rg\nEND:VCARD"), ["J\u{f6}rg"]);
        let wide: Vec<u8> =
            "\u{feff}BEGIN:VCARD\r\nFN:\u{dc}\r\nEND:VCARD".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(names(&wide), ["\u{dc}"]);
        assert_eq!(names("\u{feff}BEGIN:VCARD\nFN:a\nBEGIN:VCARD\nFN:b\n".as_bytes()), ["a", "b"]);
        assert_eq!(names(&card("FN:\r\nORG:ACME\\, Inc;Dept")), ["ACME, Inc"]);
    }

    #[test]
    fn an_address_stands_in_a_contact_once() {
        let text = "BEGIN:VCARD\nEMAIL:a@x.example\nEMAIL:A@X.example\nEMAIL:b@x.example\nEND:VCARD\n";
        assert_eq!(read(text.as_bytes())[0].addresses, ["a@x.example", "b@x.example"]);
    }

    #[test]
    fn properties_are_bounded_and_have_nothing_that_nobody_sees() {
        let long = "a ".repeat(1 << 20);
        let text = format!("BEGIN:VCARD\nFN:\u{202e}Bob\u{2066} \u{200b}\u{e0041}B\nNOTE:{long}\n {long}\nEND:VCARD\n");
        assert!(unfolded(text.as_bytes()).all(|line| line.len() <= PROPERTY_BYTES_MAX));
        let all = read(text.as_bytes());
        assert_eq!((all[0].name.as_str(), all[0].note.len()), ("Bob B", NOTE_MAX - 1));
        assert_eq!(Contact::of(0, ["a\u{202e}b", "", "\u{2069}1", "x\u{202e}\ny"]).unwrap().note, "x\ny");
    }

    #[test]
    fn details_of_a_card_come_back_in_both_versions() {
        let text = "BEGIN:VCARD\nVERSION:3.0\nFN:J\u{fc}rgen M\u{fc}ller\nN:M\u{fc}ller;J\u{fc}rgen;Karl\\;Otto;Dr.;\n\
            EMAIL;TYPE=INTERNET,WORK:j@x.example\nTEL;TYPE=cell:+49 1\nTEL;TYPE=\"home,voice\":+49 2\nitem1.TEL:+49 3\n\
            item1.X-ABLabel:Boat\nADR;TYPE=home:;;Weg 1\\, links;Ulm;;89073;DE\nBDAY:1985-04-12\nORG:ACME;Dept\n\
            UID:urn:uuid:1-2\nPHOTO;ENCODING=b:AAAA\nX-LONG:"
            .to_owned()
            + &"x".repeat(2_000)
            + "\nEND:VCARD\n\
            BEGIN:VCARD\nVERSION:3.0\nFN:Team\nX-ADDRESSBOOKSERVER-KIND:group\nX-ADDRESSBOOKSERVER-MEMBER:urn:uuid:1-2\nEND:VCARD\n";
        let all = read(text.as_bytes());
        assert_eq!((all[0].phone.as_str(), all[0].uid.as_str()), ("+49 1", "urn:uuid:1-2"));
        for version in [Version::Three, Version::Four] {
            let mut out = String::new();
            all.iter().for_each(|contact| write(contact, version, false, &mut out));
            let whole = out.replace("\r\n ", "");
            let (day, member) = match version {
                Version::Three => ("BDAY:1985-04-12", "X-ADDRESSBOOKSERVER-MEMBER:urn:uuid:1-2"),
                Version::Four => ("BDAY:19850412", "MEMBER:urn:uuid:1-2"),
            };
            for line in [
                "N:M\u{fc}ller;J\u{fc}rgen;Karl\\;Otto;Dr.;",
                "EMAIL;TYPE=INTERNET,WORK:j@x.example",
                "TEL;TYPE=cell:+49 1",
                "TEL;TYPE=\"home,voice\":+49 2",
                "ITEM1.TEL:+49 3",
                "ITEM1.X-ABLABEL:Boat",
                "ADR;TYPE=home:;;Weg 1\\, links;Ulm;;89073;DE",
                "ORG:ACME;Dept",
                "UID:urn:uuid:1-2",
                day,
                member,
            ] {
                assert_eq!(whole.matches(&format!("\r\n{line}\r\n")).count(), 1, "{line} in {whole}");
            }
            assert!(!whole.contains("PHOTO") && !whole.contains("X-LONG"), "{whole}");
            // The second way is the first.
            let mut again = String::new();
            read(out.as_bytes()).iter().for_each(|contact| write(contact, version, false, &mut again));
            assert_eq!(again, out);
            let mut own = String::new();
            all.iter().for_each(|contact| write(contact, Version::Four, true, &mut own));
            assert_eq!(read(own.as_bytes())[1].details, all[1].details);
        }
        let mut out = String::new();
        write(&Contact { name: "Anna Maria Berg".into(), ..Contact::default() }, Version::Three, false, &mut out);
        assert!(out.contains("\r\nN:Berg;Anna Maria;;;\r\n"), "{out}");
    }

    #[test]
    fn details_make_no_lines_and_follow_what_is_typed() {
        let text = b"BEGIN:VCARD\nFN:a b\nN:b;a;;Dr.;\nTEL;TYPE=cell:1\nTEL:2\nX-A;ENCODING=QUOTED-PRINTABLE:x=0D=0AEND:VCARD=0ABEGIN:VCARD\nEND:VCARD\n";
        let all = read(text);
        assert_eq!(all.len(), 1);
        let mut out = String::new();
        write(&all[0], Version::Four, false, &mut out);
        assert_eq!(out.matches("BEGIN:VCARD").count(), 2, "one of them within a value: {out}");
        assert_eq!(read(out.as_bytes()).len(), 1, "{out}");
        let names = |contact: &Contact| {
            contact.details.iter().map(|one| format!("{} {}", one.name(), one.line())).collect::<Vec<_>>()
        };
        let typed = |name: &str, phone: &str| Contact::of(1, [name, "", phone, ""]).unwrap().revising(&all[0]);
        assert_eq!(names(&typed("a b", "1"))[..3], ["N b, a, Dr.", "TEL 1", "TEL 2"]);
        assert_eq!(names(&typed("a c", "3"))[..1], ["TEL 2"]);
    }
}
