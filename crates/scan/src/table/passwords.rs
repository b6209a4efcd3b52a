//! Lists of passwords (`.pwdb`): `name;description;how;password`.
//!
//! After the ClamAV manual, "Signatures for password-protected archives". The description may limit an entry to a range
//! of engine levels and to ZIP, RAR or 7z archives; the password stands there as it is (0) or in hexadecimal digits (1).
//! The kind of archive is read and not heeded: each password is tried wherever something is encrypted.

use std::io;
use std::sync::Arc;

use pattern::flat::{Flat, Reader, Unfit, Writer};

use crate::syntax::body;
use crate::syntax::line::{FUNCTIONALITY_LEVEL, Reject, number};

/// The longest password.
const PASSWORD_BYTES_MAX: usize = 1024;

/// One password.
#[derive(Debug, Clone)]
pub(crate) struct Password {
    /// The number of its name.
    pub(crate) name: u32,
    pub(crate) bytes: Box<[u8]>,
}

impl Password {
    /// The same under another number of its name.
    pub(crate) fn named(self, name: u32) -> Password {
        Password { name, ..self }
    }
}

/// Reads what follows the name.
pub(crate) fn parse(fields: &[&str]) -> Result<Box<[u8]>, Reject> {
    let [description, how, password, more @ ..] = fields else {
        return Err(Reject::Malformed("fewer than four fields".to_owned()));
    };
    describe(description)?;
    let bytes = match *how {
        "0" => password.as_bytes().to_vec(),
        "1" => body::hex_bytes(password)?,
        how => return Err(Reject::Malformed(format!("a password stands there as 0 or as 1, not as {how:?}"))),
    };
    if bytes.is_empty() || bytes.len() > PASSWORD_BYTES_MAX || !more.is_empty() {
        return Err(Reject::Unsupported(format!("a password of {} bytes and {} more fields", bytes.len(), more.len())));
    }
    Ok(bytes.into())
}

fn describe(description: &str) -> Result<(), Reject> {
    for pair in description.split(',').filter(|pair| !pair.is_empty()) {
        match pair.split_once(':') {
            Some(("Engine", levels)) => {
                let (min, max) = levels.split_once('-').unwrap_or((levels, levels));
                let (min, max): (u32, u32) = (number(min)?, number(max)?);
                if !(min..=max).contains(&FUNCTIONALITY_LEVEL) {
                    return Err(Reject::OtherEngine);
                }
            }
            Some(("Container", "CL_TYPE_ANY" | "CL_TYPE_ZIP" | "CL_TYPE_RAR" | "CL_TYPE_7Z")) | Some(("Target", _)) => {
            }
            _ => return Err(Reject::Unsupported(format!("{pair} in the description of a password"))),
        }
    }
    Ok(())
}

/// Writes passwords.
pub(crate) fn store(all: &[Password], writer: &mut Writer<'_>) -> io::Result<()> {
    writer.array(&all.iter().map(|one| [one.name, one.bytes.len() as u32]).collect::<Vec<_>>())?;
    writer.array(&all.iter().flat_map(|one| one.bytes.iter().copied()).collect::<Vec<u8>>())
}

/// Stored passwords, whose names are numbered below `names_end`.
pub(crate) fn load(reader: &mut Reader, names_end: u32) -> Result<Arc<[Password]>, Unfit> {
    let (heads, bytes): (Flat<[u32; 2]>, Flat<u8>) = (reader.array()?, reader.array()?);
    let mut rest = &bytes[..];
    let read = |&[name, length]: &[u32; 2]| {
        let (bytes, after) = rest.split_at_checked(length as usize)?;
        rest = after;
        (name < names_end).then(|| Password { name, bytes: bytes.into() })
    };
    heads.iter().map(read).collect::<Option<_>>().ok_or(Unfit::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Box<[u8]>, Reject> {
        parse(&line.split(';').skip(1).collect::<Vec<_>>())
    }

    #[test]
    fn passwords_stand_there_as_they_are_or_in_hexadecimal_digits() {
        assert_eq!(read("A;Engine:81-255;0;secret").as_deref(), Ok(&b"secret"[..]));
        assert_eq!(read("A;Engine:81-255,Container:CL_TYPE_ZIP;1;00ff").as_deref(), Ok(&b"\x00\xff"[..]));
        assert_eq!(read("A;Engine:500-600;0;secret"), Err(Reject::OtherEngine));
        for line in ["A;;2;x", "A;;1;6", "A;;1;6g", "A;;0", "A;Engine:x;0;x"] {
            assert!(matches!(read(line), Err(Reject::Malformed(_))), "{line}");
        }
        for line in ["A;Container:CL_TYPE_PDF;0;x", "A;;0;", "A;;0;x;y"] {
            assert!(matches!(read(line), Err(Reject::Unsupported(_))), "{line}");
        }
    }
}
