//! The ENVELOPE of a message (RFC 9051, section 7.5.2), as the store has it from the delivery.
//!
//! Bounds: [`ADDRESSES_MAX`] addresses of a field, of each text [`TEXT_BYTES_MAX`].

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::mail::Message;

/// Addresses of a field that are read.
const ADDRESSES_MAX: usize = 200;

/// Bytes of a text that are shown.
const TEXT_BYTES_MAX: usize = 2_000;

/// Bytes of a date that are read.
const DATE_BYTES_MAX: usize = 200;

/// The fields of a message that a list and a reply need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The time of `Date`, seconds since 1970, if it is one of the calendar.
    pub date: Option<i64>,
    /// The text of `Subject`.
    pub subject: String,
    /// `From`
    pub from: Vec<Address>,
    /// `Reply-To`, or `From`.
    pub reply_to: Vec<Address>,
    /// `To`
    pub to: Vec<Address>,
    /// `Cc`
    pub cc: Vec<Address>,
    /// `Bcc`
    pub bcc: Vec<Address>,
    /// `Message-ID`
    pub id: String,
}

/// An address with its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Address {
    /// Empty if there is none.
    pub name: String,
    /// `local@domain`
    pub address: String,
}

impl Address {
    /// The name, or the address where there is none.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { &self.address } else { &self.name }
    }

    /// As it is written in a field of a form.
    pub fn written(&self) -> String {
        if self.name.is_empty() {
            return self.address.clone();
        }
        let name: String = self.name.chars().filter(|c| !matches!(c, '"' | '\\')).collect();
        match name.chars().all(|c| c.is_alphanumeric() || c == ' ') {
            true => format!("{name} <{}>", self.address),
            false => format!("\"{name}\" <{}>", self.address),
        }
    }
}

impl Envelope {
    /// Reads what IMAP tells; empty where that is damaged.
    pub fn parse(told: &[u8]) -> Envelope {
        Envelope::read(told).unwrap_or_default()
    }

    /// The time when a message was written; when it came, if it does not say.
    pub(crate) fn sent(&self, message: &Message) -> i64 {
        self.date.unwrap_or(message.row.date)
    }

    fn read(told: &[u8]) -> Option<Envelope> {
        let mut reader = Reader(told.strip_prefix(b"(")?);
        let date = sent(&reader.text()?);
        let (subject, from) = (shown(&reader.text()?), reader.people()?);
        reader.pass_people()?;
        let (reply_to, to, cc, bcc) = (reader.people()?, reader.people()?, reader.people()?, reader.people()?);
        let _answers = reader.text()?;
        Some(Envelope { date, subject, from, reply_to, to, cc, bcc, id: shown(&reader.text()?) })
    }

    /// The fields that a line of a list shows: the subject, and the people that it is from, or to.
    pub(crate) fn line(told: &[u8], is_out: bool) -> (String, Vec<Address>) {
        let read = || {
            let mut reader = Reader(told.strip_prefix(b"(")?);
            let _date = reader.text()?;
            let subject = shown(&reader.text()?);
            for _ in 0..if is_out { 3 } else { 0 } {
                reader.pass_people()?;
            }
            Some((subject, reader.people()?))
        };
        read().unwrap_or_default()
    }
}

/// The time of a field `Date`, from 1970 to the year 9999.
pub(crate) fn sent(raw: &[u8]) -> Option<i64> {
    let bytes = raw.get(..raw.len().min(DATE_BYTES_MAX)).unwrap_or_default();
    let (seconds, _) = text::date::parse_message(bytes)?;
    (0..253_402_300_800).contains(&seconds).then_some(seconds)
}

/// The text of a field, without characters that make a line read as another.
pub(crate) fn shown(raw: &[u8]) -> String {
    let is_plain = |bytes: &[u8]| bytes.iter().all(|byte| (b' '..=b'~').contains(byte));
    if let Some(plain) =
        raw.get(..raw.len().min(TEXT_BYTES_MAX)).filter(|plain| is_plain(plain) && !plain.contains(&b'='))
    {
        return String::from_utf8_lossy(plain).trim().into();
    }
    let text = mime::header_text(raw, TEXT_BYTES_MAX);
    let text: String =
        text.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(|c| !text::hazard::is_hazard(*c)).collect();
    text.trim().into()
}

/// The fields that are still to be read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A text, empty for `NIL`.
    fn text(&mut self) -> Option<Cow<'a, [u8]>> {
        self.pass_blanks();
        let (&first, rest) = self.0.split_first()?;
        match first {
            b'"' => self.quoted(rest),
            b'{' => self.literal(rest),
            _ => {
                self.0 = self.0.strip_prefix(b"NIL")?;
                Some(Cow::Borrowed(b""))
            }
        }
    }

    fn quoted(&mut self, mut rest: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let mut text = Cow::Borrowed(&rest[..0]);
        loop {
            let (before, behind) = rest.split_at_checked(memchr::memchr2(b'"', b'\\', rest)?)?;
            match text.is_empty() {
                true => text = Cow::Borrowed(before),
                false => text.to_mut().extend_from_slice(before),
            }
            let (&special, behind) = behind.split_first()?;
            if special == b'"' {
                self.0 = behind;
                return Some(text);
            }
            let (&escaped, behind) = behind.split_first()?;
            text.to_mut().push(escaped);
            rest = behind;
        }
    }

    fn literal(&mut self, rest: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let close = rest.iter().position(|&byte| byte == b'}')?;
        let digits = rest.get(..close)?.strip_suffix(b"+").unwrap_or(rest.get(..close)?);
        let length: usize = core::str::from_utf8(digits).ok()?.parse().ok()?;
        let content = rest.get(close.checked_add(1)?..)?.strip_prefix(b"\r\n")?;
        let (text, behind) = content.split_at_checked(length)?;
        self.0 = behind;
        Some(Cow::Borrowed(text))
    }

    /// The addresses of a field; none of a text.
    fn people(&mut self) -> Option<Vec<Address>> {
        let mut people = Vec::new();
        self.addresses(|parts| people.extend(address(&parts).filter(|_| people.len() < ADDRESSES_MAX)))?;
        Some(people)
    }

    fn pass_people(&mut self) -> Option<()> {
        self.addresses(|_| {})
    }

    /// Reads addresses: of each its name, its route, its mailbox and its host.
    fn addresses(&mut self, mut each: impl FnMut([Cow<'a, [u8]>; 4])) -> Option<()> {
        self.pass_blanks();
        if !self.takes(b"(") {
            return self.text().map(drop);
        }
        while !self.takes(b")") {
            self.0 = self.0.strip_prefix(b"(")?;
            each([self.text()?, self.text()?, self.text()?, self.text()?]);
            self.0 = self.0.strip_prefix(b")")?;
            self.pass_blanks();
        }
        Some(())
    }

    fn takes(&mut self, token: &[u8]) -> bool {
        let rest = self.0.strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn pass_blanks(&mut self) {
        while self.takes(b" ") {}
    }
}

/// An address, if it is no beginning or end of a group: those have no mailbox, or no host.
fn address([name, _, mailbox, host]: &[Cow<'_, [u8]>; 4]) -> Option<Address> {
    let (mailbox, host) = (shown(mailbox), shown(host));
    let is_one = !mailbox.is_empty() && !host.is_empty();
    is_one.then(|| Address { name: shown(name), address: [&mailbox, "@", &host].concat() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_read() {
        let told = b"(\"Wed\" {5}\r\n=?utf \"x\" NIL NIL NIL NIL NIL NIL NIL)";
        assert_eq!(Envelope::parse(told).subject, "=?utf");
        let told = concat!(
            r#"("d" "=?utf-8?q?=C3=A4?= \"b\"" (("A B" NIL "a" "b.example")) NIL ((NIL NIL "r" "b.example")) "#,
            r#"((NIL NIL "g" NIL)(NIL NIL "c" "d.example")(NIL NIL NIL NIL)) NIL NIL NIL "<1@x>")"#
        );
        let read = Envelope::parse(told.as_bytes());
        assert_eq!((read.subject.as_str(), read.id.as_str()), ("ä \"b\"", "<1@x>"));
        assert_eq!(read.from[0].written(), "A B <a@b.example>");
        assert_eq!((read.reply_to[0].label(), read.to.len()), ("r@b.example", 1));
        assert_eq!(Envelope::line(told.as_bytes(), false), (read.subject.clone(), read.from.clone()));
        assert_eq!(Envelope::line(told.as_bytes(), true), (read.subject, read.to));
        for (date, wanted) in [
            ("Wed, 01 Jan 2020 12:00:00 +0100", Some(1_577_876_400)),
            ("d", None),
            ("1 Jan 1960 0:00 +0000", None),
            ("1 Jan 99999 0:00 +0000", None),
        ] {
            let told = format!(r#"("{date}" NIL NIL NIL NIL NIL NIL NIL NIL NIL)"#);
            assert_eq!(Envelope::parse(told.as_bytes()).date, wanted, "{date}");
        }
        for cut in 0..told.len() {
            Envelope::parse(&told.as_bytes()[..cut]);
        }
        Envelope::parse(&[b'('; 100_000]);
    }
}
