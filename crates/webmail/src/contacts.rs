//! Contacts of a user: kept, imported and exported as vCards (RFC 6350, and version 3 of RFC 2426), and imported from CSV.
//!
//! A contact has a name, addresses, a telephone number and a note; other properties of a vCard are details, which are kept for the
//! export. Recipients of mails that were sent are collected. Bounds: [`CONTACTS_MAX`], [`COLLECTED_MAX`], [`BOOK_BYTES_MAX`],
//! [`card::PROPERTY_BYTES_MAX`], and the lengths of each value. Characters that nobody sees ([`text::hazard`]) are left out, since names
//! stand in lists of recipients.

mod card;
mod csv;
mod detail;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::fault::Fault;
use crate::recipients::typed;
pub(crate) use detail::{Detail, Version};

/// Contacts of a user.
const CONTACTS_MAX: usize = 2_000;

/// Contacts that were collected: with one more the oldest goes.
const COLLECTED_MAX: usize = 300;

/// Bytes of a book as it is kept.
const BOOK_BYTES_MAX: usize = 600 << 10;

/// Addresses of a contact.
const ADDRESSES_MAX: usize = 20;

const FULL: Fault = Fault::ContactsFull { contacts: CONTACTS_MAX, bytes: BOOK_BYTES_MAX };

/// Characters of a name or a number.
pub(crate) const LINE_MAX: usize = 100;

/// Characters of a note.
pub(crate) const NOTE_MAX: usize = 500;

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
    /// The identifier that another program knows it by: members of groups are named so.
    pub uid: String,
    /// Other properties, and the types of addresses and numbers.
    pub details: Vec<Detail>,
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
            false => Ok(Contact { id, name, addresses, phone, note, ..Contact::default() }),
        }
    }

    /// The contact with the details of what it was before: those of a name and a number that have changed are gone.
    pub fn revising(mut self, before: &Contact) -> Contact {
        let stays = |detail: &&Detail| match detail.name() {
            "N" => self.name == before.name,
            "TEL" => self.phone == before.phone || detail.line() != before.phone,
            _ => true,
        };
        self.details = before.details.iter().filter(stays).cloned().collect();
        self.uid.clone_from(&before.uid);
        self
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
}

impl Book {
    /// Reads what [`Book::kept`] has written.
    pub fn read(bytes: &[u8]) -> Book {
        Book(card::read(bytes))
    }

    /// The book as it is kept.
    ///
    /// # Errors
    /// [`Fault::ContactsFull`]
    pub fn kept(&self) -> Result<Vec<u8>, Fault> {
        let mut out = String::new();
        self.0.iter().for_each(|contact| card::write(contact, Version::Four, true, &mut out));
        if out.len() > BOOK_BYTES_MAX { Err(FULL) } else { Ok(out.into_bytes()) }
    }

    /// The book for other programs.
    pub fn exported(&self, version: Version) -> Vec<u8> {
        let mut out = String::new();
        self.0.iter().for_each(|contact| card::write(contact, version, false, &mut out));
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

    /// Adds the contacts of vCards or of CSV that have no address and no identifier of one that is known.
    ///
    /// # Errors
    /// Where there are none, and where there is no room for all.
    pub fn import(&mut self, file: &[u8]) -> Result<(), Fault> {
        let mut cards = card::read(file);
        if cards.is_empty() {
            cards = csv::read(file);
        }
        if cards.is_empty() {
            return Err(Fault::NoCards);
        }
        for contact in cards {
            let has_uid = !contact.uid.is_empty() && self.0.iter().any(|known| known.uid == contact.uid);
            let is_known = has_uid || contact.addresses.iter().any(|address| self.knows(address));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_book_comes_back_as_it_was_kept_and_exported() {
        let mut book = Book::default();
        let note = "\u{e4};,\\ ".repeat(40) + "\nEND:VCARD\nFN:x";
        book.put(Contact::of(0, ["A; B, \"C\"", "a@x.example, b@x.example", "1", &note]).unwrap()).unwrap();
        assert!(book.collect([("".into(), "c@x.example".into()), ("".into(), "A@x.example".into())].into()));
        assert!(!book.collect([("".into(), "c@x.example".into())].into()));
        let kept = book.kept().unwrap();
        assert_eq!(Book::read(&kept), book);
        assert!(String::from_utf8(kept).unwrap().lines().all(|line| line.len() <= 75));
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
        let ids: Vec<u32> = book.0.iter().map(|contact| contact.id).take(500).collect();
        for id in ids {
            book.put(Contact::of(id, ["Ann", "", "", &note]).unwrap()).unwrap();
        }
        assert_eq!(book.kept(), Err(FULL));
    }
}
