//! Signers of a program, as conditions of YARA rules ask for them ("PE module": `number_of_signatures`, `signatures`).
//!
//! Nothing is verified. Names are in one line, each attribute behind a slash. A signature within a signature, as programs
//! have that are signed by two digests, counts as one of its own.

use std::fmt::Write;

use super::certificate::Certificate;
use super::der::{Der, OBJECT, SEQUENCE, SET};
use super::message::Message;

/// Facts about a signer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignedBy {
    pub(crate) issuer: Box<str>,
    pub(crate) subject: Box<str>,
    /// In pairs of hexadecimal digits, with colons between them.
    pub(crate) serial: Box<str>,
}

/// Signers in a table of certificates; `None` if it cannot be read.
pub(crate) fn signers(table: &[u8]) -> Option<Vec<SignedBy>> {
    let (_, message) = table.split_first_chunk::<8>()?;
    let signer = |message: Option<Message<'_>>| message?.signers_certificate().map(of);
    Message::read_with_nested(message).into_iter().map(signer).collect()
}

fn of(certificate: &Certificate<'_>) -> SignedBy {
    let serial: Vec<String> = certificate.serial.iter().map(|byte| format!("{byte:02x}")).collect();
    SignedBy {
        issuer: in_one_line(certificate.issuer).into(),
        subject: in_one_line(certificate.subject).into(),
        serial: serial.join(":").into(),
    }
}

/// A name: a sequence of sets of attributes, each an identifier and a text.
fn in_one_line(name: &[u8]) -> String {
    let (mut sets, mut line) = (Der(name), String::new());
    while let Some(mut set) = sets.enter(SET) {
        while let Some(mut one) = set.enter(SEQUENCE) {
            let (Some(identifier), Some(value)) = (one.take(OBJECT), one.next()) else {
                continue;
            };
            let _ = write!(line, "/{}=", short(identifier));
            for &byte in value.content.iter().filter(|_| value.tag != BMP_STRING || value.content.len() % 2 == 0) {
                match byte {
                    0 if value.tag == BMP_STRING => {}
                    b' '..=b'~' => line.push(char::from(byte)),
                    _ => drop(write!(line, "\\x{byte:02X}")),
                }
            }
        }
    }
    line
}

/// Two bytes a character.
const BMP_STRING: u8 = 0x1e;

/// Short name of an attribute, or its identifier.
fn short(identifier: &[u8]) -> String {
    let name = match identifier {
        [0x55, 4, 3] => "CN",
        [0x55, 4, 4] => "SN",
        [0x55, 4, 5] => "serialNumber",
        [0x55, 4, 6] => "C",
        [0x55, 4, 7] => "L",
        [0x55, 4, 8] => "ST",
        [0x55, 4, 9] => "street",
        [0x55, 4, 10] => "O",
        [0x55, 4, 11] => "OU",
        [0x55, 4, 12] => "title",
        [0x55, 4, 15] => "businessCategory",
        [0x55, 4, 17] => "postalCode",
        b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01" => "emailAddress",
        b"\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x19" => "DC",
        b"\x2b\x06\x01\x04\x01\x82\x37\x3c\x02\x01\x01" => "jurisdictionL",
        b"\x2b\x06\x01\x04\x01\x82\x37\x3c\x02\x01\x02" => "jurisdictionST",
        b"\x2b\x06\x01\x04\x01\x82\x37\x3c\x02\x01\x03" => "jurisdictionC",
        _ => return dotted(identifier),
    };
    name.to_owned()
}

/// An identifier as numbers: seven bits a byte, the first two in one.
fn dotted(identifier: &[u8]) -> String {
    let (mut numbers, mut number) = (Vec::new(), 0u64);
    for &byte in identifier {
        number = (number << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if numbers.is_empty() {
                let first = (number / 40).min(2);
                numbers.extend([first, number - 40 * first]);
            } else {
                numbers.push(number);
            }
            number = 0;
        }
    }
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_one_line() {
        let attribute = |identifier: &[u8], tag: u8, text: &[u8]| {
            let mut one = vec![OBJECT, identifier.len() as u8];
            one.extend(identifier);
            one.extend([tag, text.len() as u8]);
            one.extend(text);
            [&[SET, one.len() as u8 + 2, SEQUENCE, one.len() as u8][..], &one].concat()
        };
        let name = [
            attribute(&[0x55, 4, 6], 0x13, b"US"),
            attribute(&[0x55, 4, 10], 0x0c, b"Some\xc3\xa9 Inc."),
            attribute(&[0x55, 4, 3], BMP_STRING, b"\0C\0A"),
            attribute(&[0x2b, 6, 0x82, 0x37], 0x13, b"x"),
        ];
        assert_eq!(in_one_line(&name.concat()), "/C=US/O=Some\\xC3\\xA9 Inc./CN=CA/1.3.6.311=x");
        assert_eq!(in_one_line(b"\x31"), "");
    }
}
