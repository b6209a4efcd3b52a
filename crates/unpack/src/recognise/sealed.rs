//! Encrypted files of programs that are no archivers: a finding reports that their content cannot be read.
//!
//! `openssl enc` (its salt is the only mark), AES Crypt, age and scrypt, disks of LUKS and BitLocker, encrypted images of
//! macOS, KeePass, Ansible Vault, and messages of Microsoft's rights management. A file is recognised by its beginning.
//!
//! Bounds: [`HEAD_BYTES`]. Left out: ccrypt, VeraCrypt, `openssl enc -nosalt` and the like, which look like noise.

use stream::{Class, ReadAt};

use crate::frame::reader::{Ended, Outbox, Reader};

/// Bytes that are looked at.
const HEAD_BYTES: usize = 512;

/// Magic of binary files.
const MAGIC: &[(usize, &[u8])] = &[
    (0, b"AES\x01"),
    (0, b"AES\x02"),
    (0, b"age-encryption.org/v1\n"),
    (0, b"scrypt\0"),
    (0, b"LUKS\xba\xbe\0"),
    (3, b"-FVE-FS-"),
    (0, b"encrcdsa\0\0\0"),
    (0, b"\x03\xd9\xa2\x9a\x67\xfb\x4b\xb5"),
    (0, b"\x03\xd9\xa2\x9a\x65\xfb\x4b\xb5"),
    (0, b"\x76\xe8\x04\x60\xc4\x11\xe3\x86"),
];

/// Beginnings of text files.
const LINES: &[&[u8]] = &[b"-----BEGIN AGE ENCRYPTED FILE-----", b"$ANSIBLE_VAULT;", b"U2FsdGVkX1"];

/// The mark of `openssl enc`, with a salt of eight bytes behind it.
const SALTED: &[u8] = b"Salted__";
const SALTED_BYTES: usize = 16;

/// A reader that tells nothing but the finding.
#[derive(Default)]
pub(crate) struct Sealed {
    head: Vec<u8>,
    is_over: bool,
}

impl Sealed {
    fn judge(&mut self, outbox: &mut Outbox) {
        self.is_over = true;
        if is_sealed(&self.head) {
            outbox.finding(Class::Encrypted, "Heuristics.Encrypted.File", 0);
        }
    }
}

impl Reader for Sealed {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        let taken = input.len().min(HEAD_BYTES.saturating_sub(self.head.len()));
        self.head.extend_from_slice(&input[..taken]);
        if self.head.len() >= HEAD_BYTES {
            self.judge(outbox);
        }
        taken
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if !self.is_over {
            self.judge(outbox);
        }
        Ended::Done
    }
}

fn is_sealed(head: &[u8]) -> bool {
    let begins = |&(at, magic): &(usize, &[u8])| head.get(at..).is_some_and(|from| from.starts_with(magic));
    let text = head.trim_ascii_start();
    MAGIC.iter().any(begins)
        || LINES.iter().any(|line| text.starts_with(line))
        || head.starts_with(SALTED) && head.len() > SALTED_BYTES
}

#[cfg(test)]
mod tests {
    use stream::law;

    use super::*;
    use crate::frame::reader::Reading;

    fn is_told(head: &[u8]) -> bool {
        law::holds(|| Reading::new(Sealed::default()), head);
        let told = law::tell(Reading::new(Sealed::default()), head);
        told.iter().any(|told| matches!(told, law::Told::Note(stream::Note::Finding(_))))
    }

    #[test]
    fn encrypted_files_are_told() {
        for (offset, magic) in MAGIC {
            assert!(is_told(&[&vec![0; *offset][..], magic, &[7; 40]].concat()), "{}", magic.escape_ascii());
        }
        assert!(is_told(b"Salted__12345678\x9c"));
        assert!(is_told(b"\r\n$ANSIBLE_VAULT;1.1;AES256\n62313365396662343061393464336163\n"));
        assert!(is_told(b"U2FsdGVkX18Mj0eVZ1Z0b2w6P2vXb0Jm\n"));
    }

    #[test]
    fn other_files_are_not() {
        for head in [&b""[..], b"Salted__12345678", b"Salted fish", b"AES", b"scrypt", b"age-encryption.org"] {
            assert!(!is_told(head), "{}", head.escape_ascii());
        }
    }
}
