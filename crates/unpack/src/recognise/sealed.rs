//! Encrypted files of programs that are no archivers: a finding reports that their content cannot be read.
//!
//! `openssl enc` (its salt is the only mark), AES Crypt, age and scrypt, disks of LUKS and BitLocker, encrypted images of
//! macOS, KeePass, Ansible Vault, and messages of Microsoft's rights management. A file is recognised by its beginning.
//!
//! Bounds: [`HEAD_BYTES`]. Left out: ccrypt, VeraCrypt, `openssl enc -nosalt` and the like, which look like noise.

use stream::Class;

use super::by_head::{ByHead, Mark, has_magic};

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

/// The reader of such files.
pub(crate) fn reader() -> ByHead {
    let (class, name) = (Class::Encrypted, "Heuristics.Encrypted.File");
    ByHead::new(Mark { head_bytes: HEAD_BYTES, is_in: is_sealed, late: &[], class, name })
}

fn is_sealed(head: &[u8]) -> bool {
    let text = head.trim_ascii_start();
    has_magic(head, MAGIC)
        || LINES.iter().any(|line| text.starts_with(line))
        || head.starts_with(SALTED) && head.len() > SALTED_BYTES
}

#[cfg(test)]
mod tests {
    use super::super::by_head::tests;
    use super::*;

    fn is_told(head: &[u8]) -> bool {
        tests::is_told(reader, head)
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
