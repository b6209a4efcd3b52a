//! Flags that an mbox keeps in fields of its mails: those of Unix's mail programs (`Status`, `X-Status`, `X-Keywords`), of Thunderbird
//! (`X-Mozilla-Status`) and of Gmail's archives (`X-Gmail-Labels`).

use store::Flags;

/// The longest head that is looked at, in bytes.
pub const HEAD_BYTES_MAX: usize = 256 << 10;

/// Keywords of a mail, and bytes of one.
const KEYWORDS_MAX: usize = 30;
const KEYWORD_BYTES_MAX: usize = 100;

/// What the fields say of a mail.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Marks {
    pub flags: u64,
    pub keywords: Vec<String>,
    /// It was deleted, or is no mail but what a program notes about the mailbox.
    pub is_none: bool,
}

/// The length of a head with its empty line; none while that has not come.
pub fn head_len(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(length) = bytes.get(from..)?.iter().position(|&byte| byte == b'\n') {
        let line = bytes.get(from..from + length)?;
        from += length + 1;
        if line.is_empty() || line == b"\r" {
            return Some(from);
        }
    }
    None
}

/// Takes the fields out of a head.
pub fn take(head: &[u8]) -> (Vec<u8>, Marks) {
    let (mut kept, mut marks) = (Vec::with_capacity(head.len()), Marks::default());
    let mut lines = head.split_inclusive(|&byte| byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        let mut field = line.to_vec();
        while let Some(more) = lines.next_if(|line| matches!(line.first(), Some(b' ' | b'\t'))) {
            field.extend_from_slice(more);
        }
        if !marks.read(&field) {
            kept.extend_from_slice(&field);
        }
    }
    (kept, marks)
}

impl Marks {
    /// Reads a field; whether it belongs to the file and not to the mail.
    fn read(&mut self, field: &[u8]) -> bool {
        let Some(colon) = field.iter().position(|&byte| byte == b':') else { return false };
        let (name, value) = (field[..colon].to_ascii_lowercase(), String::from_utf8_lossy(&field[colon + 1..]));
        let letters = |known: &[(char, u64)]| -> u64 {
            known.iter().filter(|(letter, _)| value.contains(*letter)).map(|(_, flag)| flag).sum()
        };
        match name.as_slice() {
            b"status" => self.flags |= letters(&[('R', Flags::SEEN)]),
            b"x-status" => {
                let known = [('A', Flags::ANSWERED), ('F', Flags::FLAGGED), ('T', Flags::DRAFT), ('D', Flags::DELETED)];
                self.flags |= letters(&known);
            }
            b"x-mozilla-status" => {
                let bits = u16::from_str_radix(value.trim(), 16).unwrap_or(0);
                let known = [(1, Flags::SEEN), (2, Flags::ANSWERED), (4, Flags::FLAGGED)];
                self.flags |= known.iter().filter(|(bit, _)| bits & bit != 0).fold(0, |flags, (_, flag)| flags | flag);
                self.is_none |= bits & 8 != 0;
            }
            b"x-keywords" | b"x-mozilla-keys" => self.add_keywords(value.split_ascii_whitespace()),
            b"x-mozilla-status2" | b"x-uid" | b"x-imapbase" => {}
            // The first mail of a mailbox of c-client's is such a note.
            b"x-imap" => self.is_none = true,
            b"x-gmail-labels" => {
                let has = |label: &str| value.split(',').any(|one| one.trim() == label);
                self.flags |= if has("Unread") { 0 } else { Flags::SEEN };
                self.flags |= if has("Starred") { Flags::FLAGGED } else { 0 };
                return false;
            }
            _ => return false,
        }
        true
    }

    /// Adds keywords, those that IMAP can say (RFC 9051, section 9, `flag-keyword`).
    pub fn add_keywords<'k>(&mut self, keywords: impl Iterator<Item = &'k str>) {
        let is_atom = |word: &&str| {
            (1..=KEYWORD_BYTES_MAX).contains(&word.len())
                && word.bytes().all(|byte| byte.is_ascii_graphic() && !b"(){%*\"\\]".contains(&byte))
        };
        for keyword in keywords.filter(is_atom) {
            if self.keywords.len() < KEYWORDS_MAX && !self.keywords.iter().any(|known| known == keyword) {
                self.keywords.push(keyword.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_come_out_of_the_fields_that_keep_them() {
        let of = |head: &str| {
            let (kept, marks) = take(head.as_bytes());
            (String::from_utf8(kept).unwrap(), marks.flags, marks.keywords.join(" "), marks.is_none)
        };
        let rest = "Subject: a\n b\nX: y\n\n";
        assert_eq!(
            of("Status: RO\nSubject: a\n b\nX-Status: AF\nX-Keywords: foo\n  $Label1 \"bad\nX: y\nX-UID: 7\n\n"),
            (rest.into(), Flags::SEEN | Flags::ANSWERED | Flags::FLAGGED, "foo $Label1".into(), false)
        );
        assert_eq!(of("X-Status: DT\n\n"), ("\n".into(), Flags::DRAFT | Flags::DELETED, String::new(), false));
        assert_eq!(of("X-Mozilla-Status: 0007\r\n\r\n").1, Flags::SEEN | Flags::ANSWERED | Flags::FLAGGED);
        assert!(of("X-Mozilla-Status: 0009\n\n").3 && of("X-IMAP: 1 2\nSubject: no mail\n\n").3);
        let gmail = "X-Gmail-Labels: Inbox,Starred\n\n";
        assert_eq!(of(gmail), (gmail.into(), Flags::SEEN | Flags::FLAGGED, String::new(), false));
        assert_eq!(of("X-Gmail-Labels: Unread\n\n").1, 0);
    }

    #[test]
    fn a_head_ends_with_its_empty_line() {
        for (text, length) in
            [("a: b\n\nc", Some(6)), ("a: b\r\n\r\n", Some(8)), ("\nx", Some(1)), ("a: b\nc", None), ("", None)]
        {
            assert_eq!(head_len(text.as_bytes()), length, "{text:?}");
        }
    }
}
