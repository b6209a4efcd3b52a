//! Contacts of a user: kept, imported and exported as vCards (RFC 6350, and version 3 of RFC 2426).
//!
//! A contact has a name, addresses, a telephone number and a note; other properties of a vCard are left out. Recipients of mails that
//! were sent are collected. Bounds: [`CONTACTS_MAX`], [`COLLECTED_MAX`], [`BOOK_BYTES_MAX`], [`PROPERTY_BYTES_MAX`], and the lengths of
//! each value. Characters that nobody sees ([`text::hazard`]) are left out, since names stand in lists of recipients.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use text::encoding::Encoding;

use crate::fault::Fault;
use crate::recipients::typed;

/// Contacts of a user.
const CONTACTS_MAX: usize = 2_000;

/// Contacts that were collected: with one more the oldest goes.
const COLLECTED_MAX: usize = 300;

/// Bytes of a book as it is kept.
const BOOK_BYTES_MAX: usize = 200 << 10;

/// Addresses of a contact.
const ADDRESSES_MAX: usize = 5;

const FULL: Fault = Fault::ContactsFull { contacts: CONTACTS_MAX, bytes: BOOK_BYTES_MAX };

/// Characters of a name or a number.
pub(crate) const LINE_MAX: usize = 100;

/// Characters of a note.
pub(crate) const NOTE_MAX: usize = 500;

/// Bytes of a property of a vCard that are read: more than all values that are kept need.
const PROPERTY_BYTES_MAX: usize = 8 << 10;

/// Bytes of a line of a vCard, before it is folded.
const FOLD_BYTES: usize = 75;

/// A contact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Contact {
    /// Its number in the book, from 1.
    pub id: u32,
    pub name: String,
    pub addresses: Vec<String>,
    pub phone: String,
    pub note: String,
    /// Whether a mail was sent there, and nobody has written the contact down.
    pub is_collected: bool,
}

/// Versions of vCard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Three,
    Four,
}

/// All contacts of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Book(Vec<Contact>);

impl Contact {
    /// A contact of what was typed.
    ///
    /// # Errors
    /// Where an address is none, and where there is nothing to call it by.
    pub fn of(id: u32, [name, addresses, phone, note]: [&str; 4]) -> Result<Contact, Fault> {
        let addresses: Vec<String> = typed(addresses)?.into_iter().map(|(_, address)| address).collect();
        if addresses.len() > ADDRESSES_MAX {
            return Err(Fault::ContactAddresses(ADDRESSES_MAX));
        }
        let (name, phone, note) = (line(name), line(phone), cut(note, NOTE_MAX));
        match name.is_empty() && addresses.is_empty() {
            true => Err(Fault::ContactEmpty),
            false => Ok(Contact { id, name, addresses, phone, note, is_collected: false }),
        }
    }

    /// Its name, or its address.
    pub fn label(&self) -> &str {
        match (self.name.as_str(), self.addresses.first()) {
            ("", Some(address)) => address,
            (name, _) => name,
        }
    }

    /// Its addresses as they are typed in a list of recipients.
    pub fn recipients(&self) -> impl Iterator<Item = String> {
        let name = self.name.replace(['"', '\\', '<', '>'], "'");
        self.addresses.iter().map(move |address| match name.as_str() {
            "" => address.clone(),
            name => format!("\"{name}\" <{address}>"),
        })
    }

    fn has(&self, word: &str) -> bool {
        let texts = self.addresses.iter().chain([&self.name, &self.phone, &self.note]);
        texts.into_iter().any(|text| text.to_lowercase().contains(word))
    }

    fn write(&self, version: Version, is_own: bool, out: &mut String) {
        let head = if version == Version::Four { "VERSION:4.0" } else { "VERSION:3.0" };
        out.push_str(&format!("BEGIN:VCARD\r\n{head}\r\n"));
        fold(&format!("FN:{}", escaped(self.label())), out);
        if !is_own {
            fold(&format!("N:{};;;;", escaped(self.label())), out);
        }
        for address in &self.addresses {
            fold(&format!("EMAIL:{}", escaped(address)), out);
        }
        for (name, value) in [("TEL", &self.phone), ("NOTE", &self.note)] {
            if !value.is_empty() {
                fold(&format!("{name}:{}", escaped(value)), out);
            }
        }
        if is_own {
            out.push_str(&format!("UID:{}\r\n", self.id));
            out.push_str(if self.is_collected { "CATEGORIES:collected\r\n" } else { "" });
        }
        out.push_str("END:VCARD\r\n");
    }
}

impl Book {
    /// Reads what [`Book::kept`] has written.
    pub fn read(bytes: &[u8]) -> Book {
        Book(cards(bytes))
    }

    /// The book as it is kept.
    ///
    /// # Errors
    /// [`Fault::ContactsFull`]
    pub fn kept(&self) -> Result<Vec<u8>, Fault> {
        let mut out = String::new();
        self.0.iter().for_each(|contact| contact.write(Version::Four, true, &mut out));
        if out.len() > BOOK_BYTES_MAX { Err(FULL) } else { Ok(out.into_bytes()) }
    }

    /// The book for other programs.
    pub fn exported(&self, version: Version) -> Vec<u8> {
        let mut out = String::new();
        self.0.iter().for_each(|contact| contact.write(version, false, &mut out));
        out.into_bytes()
    }

    /// The contact with a number.
    pub fn get(&self, id: u32) -> Option<&Contact> {
        self.0.iter().find(|contact| contact.id == id)
    }

    /// The contacts that have all of the words, by name.
    pub fn found(&self, words: &str) -> Vec<&Contact> {
        let words: Vec<String> = words.to_lowercase().split_whitespace().take(10).map(str::to_owned).collect();
        let has_all = |contact: &&Contact| words.iter().all(|word| contact.has(word));
        let mut found: Vec<&Contact> = self.0.iter().filter(has_all).collect();
        found.sort_by_cached_key(|contact| contact.label().to_lowercase());
        found
    }

    /// Puts a contact in the place of the one with its number, or behind the others.
    ///
    /// # Errors
    /// [`Fault::ContactsFull`]
    pub fn put(&mut self, contact: Contact) -> Result<(), Fault> {
        if let Some(known) = self.0.iter_mut().find(|known| known.id == contact.id) {
            *known = contact;
            return Ok(());
        }
        if self.add(contact) { Ok(()) } else { Err(FULL) }
    }

    /// Removes the contact with a number.
    pub fn remove(&mut self, id: u32) {
        self.0.retain(|contact| contact.id != id);
    }

    /// Adds the contacts of vCards that have no address of one that is known.
    ///
    /// # Errors
    /// Where there are none, and where there is no room for all.
    pub fn import(&mut self, file: &[u8]) -> Result<(), Fault> {
        let cards = cards(file);
        if cards.is_empty() {
            return Err(Fault::NoCards);
        }
        for contact in cards {
            let is_known = contact.addresses.iter().any(|address| self.knows(address));
            if !is_known && !self.add(Contact { is_collected: false, ..contact }) {
                return Err(FULL);
            }
        }
        Ok(())
    }

    /// Adds recipients of a mail: names and addresses. Whether one of them was new.
    pub fn collect(&mut self, recipients: Vec<(String, String)>) -> bool {
        let mut is_new = false;
        for (name, address) in recipients {
            if !self.knows(&address) {
                let addresses = Vec::from([address]);
                is_new |= self.add(Contact { name: line(&name), addresses, is_collected: true, ..Contact::default() });
            }
        }
        let collected = self.0.iter().filter(|contact| contact.is_collected).count();
        let mut surplus = collected.saturating_sub(COLLECTED_MAX);
        self.0.retain(|contact| {
            let goes = contact.is_collected && surplus > 0;
            surplus = surplus.saturating_sub(usize::from(goes));
            !goes
        });
        is_new
    }

    fn knows(&self, address: &str) -> bool {
        self.0.iter().flat_map(|contact| &contact.addresses).any(|known| known.eq_ignore_ascii_case(address))
    }

    /// Adds a contact; false if there are as many as may be.
    fn add(&mut self, contact: Contact) -> bool {
        let has_room = self.0.len() < CONTACTS_MAX;
        if has_room {
            let last = self.0.iter().map(|contact| contact.id).max().unwrap_or(0);
            self.0.push(Contact { id: last.saturating_add(1), ..contact });
        }
        has_room
    }
}

/// Reads vCards, and no more of them than a book has room for and one.
fn cards(file: &[u8]) -> Vec<Contact> {
    let (mut all, mut open) = (Vec::new(), None::<Contact>);
    let wide = [&b"\xff\xfe"[..], b"\xfe\xff"].iter().any(|mark| file.starts_with(mark));
    let encoding = Encoding::find(b"utf-16").filter(|_| wide);
    let decoded = encoding.map(|encoding| encoding.decode(file).0.into_owned());
    let file = decoded.as_ref().map_or(file, |text| text.as_bytes());
    for line in unfolded(file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file)) {
        let Some((name, value)) = property(&line) else { continue };
        match (name.as_str(), &mut open) {
            // A card without an end ends here.
            ("BEGIN", _) => all.extend(open.replace(Contact::default()).and_then(whole)),
            ("END", _) => all.extend(open.take().and_then(whole)),
            (name, Some(contact)) => read_property(contact, name, &value),
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

fn read_property(contact: &mut Contact, name: &str, value: &str) {
    let text = unescaped(value);
    match name {
        "FN" if !text.trim().is_empty() => contact.name = line(&text),
        "N" if contact.name.is_empty() => {
            let mut names = value.split(';').map(unescaped);
            let (family, given) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
            contact.name = line(&format!("{given} {family}"));
        }
        "EMAIL" if contact.addresses.len() < ADDRESSES_MAX => {
            let address = typed(text.strip_prefix("mailto:").unwrap_or(&text)).unwrap_or_default();
            let address = address.into_iter().take(1).map(|(_, address)| address);
            let is_new = |one: &String| !contact.addresses.iter().any(|known| known.eq_ignore_ascii_case(one));
            let new: Vec<String> = address.filter(is_new).collect();
            contact.addresses.extend(new);
        }
        "TEL" if contact.phone.is_empty() => contact.phone = line(text.strip_prefix("tel:").unwrap_or(&text)),
        "NOTE" => contact.note = cut(&text, NOTE_MAX),
        "ORG" if contact.name.is_empty() => {
            contact.name = line(&unescaped(value.split(';').next().unwrap_or_default()))
        }
        "UID" => contact.id = value.parse().unwrap_or(0),
        "CATEGORIES" => contact.is_collected = value == "collected",
        _ => {}
    }
}

/// A contact that has a name or an address. A name that is its address is none.
fn whole(mut contact: Contact) -> Option<Contact> {
    if contact.addresses.first() == Some(&contact.name) {
        contact.name.clear();
    }
    (!contact.label().is_empty()).then_some(contact)
}

/// The name of a property in upper case, without group and parameters, and its value: decoded as its parameters say, else UTF-8 or
/// Windows-1252.
fn property(line: &[u8]) -> Option<(String, String)> {
    let mut is_quoted = false;
    let colon = line.iter().position(|&byte| {
        is_quoted ^= byte == b'"';
        byte == b':' && !is_quoted
    })?;
    let (head, value) = line.split_at_checked(colon)?;
    let head = String::from_utf8_lossy(head).to_ascii_uppercase();
    let mut parameters = head.split(';');
    let name = parameters.next()?.rsplit('.').next()?.trim().to_owned();
    let charset = parameters.find_map(|parameter| parameter.trim().strip_prefix("CHARSET="));
    let encoding = charset.and_then(|label| Encoding::find(label.as_bytes())).unwrap_or_default();
    let value = value.get(1..)?;
    let value = if is_quoted_printable(line) { unquoted(value) } else { value.to_vec() };
    Some((name, encoding.decode(&value).0.trim().to_owned()))
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

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace(',', "\\,").replace(';', "\\;").replace('\n', "\\n")
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => out.extend(characters.next().map(|next| if matches!(next, 'n' | 'N') { '\n' } else { next })),
            character => out.push(character),
        }
    }
    out
}

/// A text on one line.
fn line(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect();
    cut(&words.join(" "), LINE_MAX)
}

fn cut(text: &str, most: usize) -> String {
    let text = text.replace("\r\n", "\n");
    let text: String = text.chars().filter(|&c| c == '\n' || !text::hazard::is_hazard(c)).take(most).collect();
    text.trim().to_string()
}

/// Appends a line in pieces of at most [`FOLD_BYTES`].
fn fold(line: &str, out: &mut String) {
    let mut bytes = 0usize;
    for character in line.chars() {
        bytes = bytes.saturating_add(character.len_utf8());
        if bytes > FOLD_BYTES {
            out.push_str("\r\n ");
            bytes = character.len_utf8().saturating_add(1);
        }
        out.push(character);
    }
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_of_other_programs_are_read() {
        let text = "BEGIN:VCARD\r\nVERSION:3.0\r\nN:Lovelace;Ada;;;\r\nitem1.EMAIL;TYPE=\"a:b\",INTERNET:ada@x.exa\r\n mple\r\n\
            EMAIL:not an address\r\nTEL;VALUE=uri:tel:+44-1\r\nNOTE:one\\, two\\nthree\r\nPHOTO:http://evil.example/\r\nEND:VCARD\r\n\
            BEGIN:VCARD\nVERSION:4.0\nFN:B\u{f6}b\nEND:VCARD\nBEGIN:VCARD\nEND:VCARD\nFN:nobody\n";
        let all = cards(text.as_bytes());
        assert_eq!(all.len(), 2, "{all:?}");
        let Contact { name, addresses, phone, note, .. } = &all[0];
        assert_eq!((name.as_str(), &addresses[..]), ("Ada Lovelace", &["ada@x.example".to_string()][..]));
        assert_eq!((phone.as_str(), note.as_str()), ("+44-1", "one, two\nthree"));
        assert_eq!(all[1].name, "B\u{f6}b");
        for cut in 0..text.len() {
            cards(&text.as_bytes()[..cut]);
        }
        let folded = "BEGIN:VCARD\r\nFN:B\u{f6}b\r\nEND:VCARD\r\n".as_bytes();
        let at = folded.iter().position(|&byte| byte == 0xb6).unwrap();
        let all = cards(&[&folded[..at], b"\r\n ", &folded[at..]].concat());
        assert_eq!(all[0].name, "B\u{f6}b", "folded within a character");
    }

    #[test]
    fn cards_of_older_programs_are_read() {
        let card = |body: &str| [b"BEGIN:VCARD\r\n", body.as_bytes(), b"\r\nEND:VCARD\r\n"].concat();
        let names = |file: &[u8]| cards(file).into_iter().map(|contact| contact.name).collect::<Vec<_>>();
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
        assert_eq!(cards(text.as_bytes())[0].addresses, ["a@x.example", "b@x.example"]);
    }

    #[test]
    fn properties_are_bounded_and_have_nothing_that_nobody_sees() {
        let long = "a ".repeat(1 << 20);
        let text = format!("BEGIN:VCARD\nFN:\u{202e}Bob\u{2066} \u{200b}\u{e0041}B\nNOTE:{long}\n {long}\nEND:VCARD\n");
        assert!(unfolded(text.as_bytes()).all(|line| line.len() <= PROPERTY_BYTES_MAX));
        let all = cards(text.as_bytes());
        assert_eq!((all[0].name.as_str(), all[0].note.len()), ("Bob B", NOTE_MAX - 1));
        assert_eq!(Contact::of(0, ["a\u{202e}b", "", "\u{2069}1", "x\u{202e}\ny"]).unwrap().note, "x\ny");
    }

    #[test]
    fn a_book_comes_back_as_it_was_kept_and_exported() {
        let mut book = Book::default();
        let note = "\u{e4};,\\ ".repeat(40) + "\nEND:VCARD\nFN:x";
        book.put(Contact::of(0, ["A; B, \"C\"", "a@x.example, b@x.example", "1", &note]).unwrap()).unwrap();
        assert!(book.collect([("".into(), "c@x.example".into()), ("".into(), "A@x.example".into())].into()));
        assert!(!book.collect([("".into(), "c@x.example".into())].into()));
        let kept = book.kept().unwrap();
        assert_eq!(Book::read(&kept), book);
        assert!(String::from_utf8(kept).unwrap().lines().all(|line| line.len() <= FOLD_BYTES));
        for version in [Version::Three, Version::Four] {
            let mut other = Book::default();
            other.import(&book.exported(version)).unwrap();
            let without = |book: &Book| {
                book.0.iter().cloned().map(|contact| Contact { is_collected: false, ..contact }).collect::<Vec<_>>()
            };
            assert_eq!(without(&other), without(&book));
        }
        assert_eq!(book.found("a@X c").len(), 1);
        assert!(Contact::of(0, ["", "", "1", ""]).is_err() && Contact::of(0, ["x", "y@", "", ""]).is_err());
    }

    #[test]
    fn the_oldest_that_were_collected_go_and_contacts_stay() {
        let mut book = Book::default();
        book.put(Contact::of(0, ["Ann", "", "", ""]).unwrap()).unwrap();
        for number in 0..COLLECTED_MAX + 5 {
            book.collect([("".into(), format!("{number}@x.example"))].into());
        }
        assert!(book.found("Ann").len() == 1 && !book.knows("4@x.example") && book.knows("5@x.example"));
        let cards = "BEGIN:VCARD\nFN:x\nEND:VCARD\n".repeat(CONTACTS_MAX + 10);
        assert_eq!(book.import(cards.as_bytes()), Err(FULL));
        assert!(book.import(b"x").is_err() && book.0.len() == CONTACTS_MAX && book.kept().is_ok());
        assert_eq!(book.put(Contact::of(0, ["Bob", "", "", ""]).unwrap()), Err(FULL));
        let note = "\u{20ac}".repeat(NOTE_MAX);
        let ids: Vec<u32> = book.0.iter().map(|contact| contact.id).take(200).collect();
        for id in ids {
            book.put(Contact::of(id, ["Ann", "", "", &note]).unwrap()).unwrap();
        }
        assert_eq!(book.kept(), Err(FULL));
    }
}
