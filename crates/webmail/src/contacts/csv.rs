//! Contacts as CSV: the exports of Google, of Outlook and of Thunderbird, by the English names of their columns.
//!
//! A row becomes properties of a vCard, which are read as those of a file. Bounds: [`COLUMNS_MAX`], and those of vCards.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use text::encoding::Encoding;

use super::card::{escaped, narrow, read_property, whole};
use super::{CONTACTS_MAX, Contact};

/// Columns of a row.
const COLUMNS_MAX: usize = 300;

/// Parts of a field that has several values, as Google parts them.
const PARTS_MAX: usize = 20;

/// What a column has.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    /// A part of the name, by its place in `N`.
    Name(usize),
    /// The property with this head.
    Property(&'static str),
    /// The types of the values with this stem, as Google has them.
    Types(String),
    /// A value of a number or an address, with its stem.
    Value(&'static str, String),
    /// A part of a postal address, with its stem and its place in `ADR`.
    Postal(String, usize),
    /// The organization, and the department.
    Organization(usize),
    Birthday,
}

/// Reads the contacts of a file; none if its first row names no columns that are known.
pub(super) fn read(file: &[u8]) -> Vec<Contact> {
    let file = narrow(file);
    let text = Encoding::default().decode(&file).0;
    let first = text.lines().next().unwrap_or_default();
    let marks = [',', ';', '\t'];
    let mark = marks.into_iter().max_by_key(|&mark| first.matches(mark).count()).unwrap_or(',');
    let mut rows = Rows { rest: &text, mark };
    let columns: Vec<Option<Column>> = rows.next().unwrap_or_default().iter().map(|title| column(title)).collect();
    let is_named = |column: &Option<Column>| {
        matches!(column, Some(Column::Name(_) | Column::Property("EMAIL" | "FN") | Column::Value("EMAIL", _)))
    };
    if !columns.iter().any(is_named) {
        return Vec::new();
    }
    rows.filter_map(|row| contact(&columns, &row)).take(CONTACTS_MAX.saturating_add(1)).collect()
}

/// What the column with a title has.
fn column(title: &str) -> Option<Column> {
    let title = title.trim().to_lowercase();
    let fixed = [
        ("name", "FN"),
        ("display name", "FN"),
        ("e-mail address", "EMAIL"),
        ("e-mail 2 address", "EMAIL"),
        ("e-mail 3 address", "EMAIL"),
        ("email address", "EMAIL"),
        ("primary email", "EMAIL"),
        ("secondary email", "EMAIL"),
        ("mobile phone", "TEL;TYPE=cell"),
        ("mobile number", "TEL;TYPE=cell"),
        ("home phone", "TEL;TYPE=home"),
        ("home phone 2", "TEL;TYPE=home"),
        ("business phone", "TEL;TYPE=work"),
        ("business phone 2", "TEL;TYPE=work"),
        ("work phone", "TEL;TYPE=work"),
        ("company main phone", "TEL;TYPE=work"),
        ("primary phone", "TEL"),
        ("other phone", "TEL"),
        ("car phone", "TEL;TYPE=car"),
        ("pager", "TEL;TYPE=pager"),
        ("business fax", "TEL;TYPE=\"work,fax\""),
        ("home fax", "TEL;TYPE=\"home,fax\""),
        ("fax number", "TEL;TYPE=fax"),
        ("nickname", "NICKNAME"),
        ("notes", "NOTE"),
        ("job title", "TITLE"),
        ("organization title", "TITLE"),
        ("organization 1 - title", "TITLE"),
        ("web page", "URL"),
        ("web page 1", "URL"),
        ("website 1 - value", "URL"),
        ("categories", "CATEGORIES"),
        ("labels", "CATEGORIES"),
        ("group membership", "CATEGORIES"),
    ];
    if let Some((_, head)) = fixed.iter().find(|(known, _)| *known == title) {
        return Some(Column::Property(head));
    }
    match title.as_str() {
        "family name" | "last name" => return Some(Column::Name(0)),
        "given name" | "first name" => return Some(Column::Name(1)),
        "additional name" | "middle name" => return Some(Column::Name(2)),
        "name prefix" | "title" => return Some(Column::Name(3)),
        "name suffix" | "suffix" => return Some(Column::Name(4)),
        "company" | "organization" | "organization name" | "organization 1 - name" => {
            return Some(Column::Organization(0));
        }
        "department" | "organization department" | "organization 1 - department" => {
            return Some(Column::Organization(1));
        }
        "birthday" => return Some(Column::Birthday),
        _ => {}
    }
    if let Some((stem, part)) = title.split_once(" - ") {
        let stem = stem.to_owned();
        let kind = stem.split(' ').next().unwrap_or_default();
        return match (kind, part) {
            (_, "type" | "label") => Some(Column::Types(stem)),
            ("e-mail", "value") => Some(Column::Value("EMAIL", stem)),
            ("phone", "value") => Some(Column::Value("TEL", stem)),
            ("address", part) => postal(part).map(|at| Column::Postal(stem, at)),
            _ => None,
        };
    }
    let (stem, part) = title.split_once(' ')?;
    let is_place = matches!(stem, "home" | "business" | "other" | "work");
    postal(part).filter(|_| is_place).map(|at| Column::Postal(stem.to_owned(), at))
}

/// The place of a part of a postal address in `ADR` (RFC 6350, section 6.3.1).
fn postal(part: &str) -> Option<usize> {
    Some(match part {
        "po box" => 0,
        "extended address" => 1,
        "street" | "address" => 2,
        "city" => 3,
        "region" | "state" => 4,
        "postal code" | "zipcode" => 5,
        "country" | "country/region" => 6,
        _ => return None,
    })
}

fn contact(columns: &[Option<Column>], row: &[String]) -> Option<Contact> {
    let fields = || columns.iter().zip(row).filter_map(|(column, value)| Some((column.as_ref()?, value.trim())));
    let fields = || fields().filter(|(_, value)| !value.is_empty());
    let types = |stem: &String| {
        let found = fields().find(|(column, _)| matches!(column, Column::Types(known) if known == stem));
        let words = found.map_or("", |(_, types)| types).trim_start_matches('*').trim().to_lowercase();
        let word = match words.as_str() {
            "mobile" => "cell",
            "business" => "work",
            words if !words.is_empty() && words.bytes().all(|byte| byte.is_ascii_alphanumeric()) => words,
            _ => "",
        };
        if word.is_empty() { String::new() } else { format!(";TYPE={word}") }
    };
    let mut one = Contact::default();
    let mut names = [""; 5];
    let (mut organization, mut places) = ([""; 2], Vec::<(&String, [&str; 7])>::new());
    for (column, value) in fields() {
        match column {
            Column::Name(at) => names.get_mut(*at).into_iter().for_each(|name| *name = value),
            Column::Organization(at) => organization.get_mut(*at).into_iter().for_each(|name| *name = value),
            Column::Postal(stem, at) => {
                if !places.iter().any(|(known, _)| *known == stem) {
                    places.push((stem, [""; 7]));
                }
                let place = places.iter_mut().find(|(known, _)| *known == stem);
                place.and_then(|(_, parts)| parts.get_mut(*at)).into_iter().for_each(|part| *part = value);
            }
            _ => {}
        }
    }
    let joined = |parts: &[&str]| parts.iter().map(|part| escaped(part)).collect::<Vec<_>>().join(";");
    let spoken: Vec<&str> =
        [3, 1, 2, 0, 4].iter().filter_map(|&at| names.get(at).copied()).filter(|name| !name.is_empty()).collect();
    for (column, value) in fields() {
        let parts = value.split(" ::: ").filter(|part| !part.trim().is_empty()).take(PARTS_MAX);
        match column {
            Column::Property("CATEGORIES") => {
                let all: Vec<String> = parts.filter(|part| !part.starts_with('*')).map(escaped).collect();
                read_property(&mut one, "CATEGORIES", &all.join(","));
            }
            Column::Property(head) => read_property(&mut one, head, &escaped(value)),
            Column::Value(name, stem) => {
                let head = format!("{name}{}", types(stem));
                parts.for_each(|part| read_property(&mut one, &head, &escaped(part)));
            }
            Column::Birthday => birthday(&mut one, value),
            _ => {}
        }
    }
    if one.name.is_empty() && !spoken.is_empty() {
        read_property(&mut one, "FN", &escaped(&spoken.join(" ")));
    }
    if names.iter().any(|name| !name.is_empty()) {
        read_property(&mut one, "N", &joined(&names));
    }
    if organization.iter().any(|name| !name.is_empty()) {
        read_property(&mut one, "ORG", &joined(&organization));
    }
    for (stem, parts) in places {
        let kind = match stem.as_str() {
            "home" => ";TYPE=home".to_string(),
            "business" | "work" => ";TYPE=work".to_string(),
            stem => types(&stem.to_owned()),
        };
        read_property(&mut one, &format!("ADR{kind}"), &joined(&parts));
    }
    whole(one)
}

/// A birthday; one whose order of day and month nobody knows stays a text. Outlook writes `0/0/00` for none.
fn birthday(contact: &mut Contact, value: &str) {
    let is_date =
        value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') && value.bytes().any(|byte| byte != b'0');
    match (is_date, value.starts_with("0/0")) {
        (true, _) => read_property(contact, "BDAY", value),
        (false, true) => {}
        (false, false) => read_property(contact, "BDAY;VALUE=text", &escaped(value)),
    }
}

/// The rows of a text (RFC 4180): fields in quotation marks have marks, line ends and doubled quotation marks.
struct Rows<'t> {
    rest: &'t str,
    mark: char,
}

impl Iterator for Rows<'_> {
    type Item = Vec<String>;

    fn next(&mut self) -> Option<Vec<String>> {
        if self.rest.is_empty() {
            return None;
        }
        let (mut row, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
        let mut characters = self.rest.char_indices().peekable();
        let mut end = self.rest.len();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' if is_quoted && characters.peek().is_some_and(|(_, next)| *next == '"') => {
                    characters.next();
                    field.push('"');
                }
                '"' if is_quoted || field.is_empty() => is_quoted = !is_quoted,
                '\n' if !is_quoted => {
                    end = at.saturating_add(1);
                    break;
                }
                mark if mark == self.mark && !is_quoted => {
                    let done = core::mem::take(&mut field);
                    if row.len() < COLUMNS_MAX {
                        row.push(done);
                    }
                }
                character => field.push(character),
            }
        }
        row.push(field);
        self.rest = self.rest.get(end..).unwrap_or_default();
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(contact: &Contact) -> Vec<String> {
        let details = contact.details.iter().map(|one| format!("{} {}", one.name(), one.line()));
        [contact.name.clone(), contact.addresses.join(" "), contact.phone.clone(), contact.note.clone()]
            .into_iter()
            .chain(details)
            .collect()
    }

    #[test]
    fn exports_of_google_and_outlook_are_read() {
        let google = "First Name,Middle Name,Last Name,Organization Name,Birthday,Notes,Labels,E-mail 1 - Label,E-mail 1 - Value,\
            Phone 1 - Label,Phone 1 - Value,Address 1 - Label,Address 1 - Street,Address 1 - City,Address 1 - Country\r\n\
            Ada,,Lovelace,\"ACME, Inc\",1815-12-10,\"two\r\nlines \"\"x\"\"\",Work ::: * myContacts,* Home,ada@x.example ::: a@y.example,\
            Mobile,+44 1,Home,1 Way,London,UK\r\n,,,,,,,,bob@x.example,,,,,,\r\n,,,,,,,,,,,,,,\r\n";
        let all = read(google.as_bytes());
        assert_eq!(all.len(), 2, "{all:?}");
        assert_eq!(
            told(&all[0]),
            [
                "Ada Lovelace",
                "ada@x.example a@y.example",
                "+44 1",
                "two\nlines \"x\"",
                "BDAY 1815-12-10",
                "CATEGORIES Work",
                "EMAIL ada@x.example",
                "EMAIL a@y.example",
                "TEL +44 1",
                "ORG ACME, Inc",
                "ADR 1 Way, London, UK"
            ]
        );
        assert_eq!(all[1].addresses, ["bob@x.example"]);
        let outlook = "\u{feff}\"Title\";\"First Name\";\"Last Name\";\"E-mail Address\";\"E-mail 2 Address\";\"Business Phone\";\
            \"Business Street\";\"Business City\";\"Birthday\"\r\n\"Dr.\";\"J\u{fc}rgen\";\"M\u{fc}ller\";\"j@x.example\";\"\";\"+49 1\";\"Weg 1\";\"Ulm\";\"0/0/00\"\r\n";
        let wanted = [
            "Dr. J\u{fc}rgen M\u{fc}ller",
            "j@x.example",
            "+49 1",
            "",
            "TEL +49 1",
            "N M\u{fc}ller, J\u{fc}rgen, Dr.",
            "ADR Weg 1, Ulm",
        ];
        assert_eq!(told(&read(outlook.as_bytes())[0]), wanted);
        let wide: Vec<u8> = outlook.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(told(&read(&wide)[0]), wanted);
        // Windows-1252, as Outlook writes it.
        assert_eq!(read(b"First Name,E-mail Address\r\nJ\xfcrgen,j@x.example\r\n")[0].name, "J\u{fc}rgen");
        let classic = b"Name,Given Name,E-mail 1 - Type,E-mail 1 - Value\nAnn Berg,Ann,* Home,ann@x.example\n";
        assert_eq!(told(&read(classic)[0])[..2], ["Ann Berg", "ann@x.example"]);
    }

    #[test]
    fn other_files_are_no_contacts_and_hostile_ones_are_bounded() {
        for file in [&b""[..], b"x", b"a,b\n1,2\n", b"\xff\xfe", b"notes\nx\n"] {
            assert!(read(file).is_empty());
        }
        let long = format!("E-mail Address{}\n{}", ",x".repeat(100_000), "a@x.example\n".repeat(5_000));
        assert_eq!(read(long.as_bytes()).len(), CONTACTS_MAX + 1);
        assert_eq!(read(b"E-mail Address\n\"a@x.example").len(), 1, "without an end");
        let text = "First Name,E-mail Address,Phone 1 - Value\n\"a\"\"b\",a@x.example,\"1\n2\"\n";
        for cut in 0..text.len() {
            read(&text.as_bytes()[..cut]);
        }
    }
}
