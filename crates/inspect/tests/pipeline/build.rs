//! Mails and archives made in place.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};

/// The 68 bytes of the EICAR test file, put together here so that this source does not hold them.
pub fn eicar() -> Vec<u8> {
    [r"X5O!P%@AP[4\PZX54(P^)7CC)7}", "$EICAR-STANDARD-", "ANTIVIRUS-TEST-FILE!$H+H*"].concat().into_bytes()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A zip of one member, stored or deflated.
pub fn zip(name: &str, bytes: &[u8], deflated: bool) -> Vec<u8> {
    let (method, packed) = if deflated {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
        encoder.write_all(bytes).unwrap();
        (8u16, encoder.finish().unwrap())
    } else {
        (0, bytes.to_vec())
    };
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    let mut common = vec![20, 0, 0, 0];
    common.extend_from_slice(&method.to_le_bytes());
    common.extend_from_slice(&[0, 0, 0x21, 0x50]);
    common.extend_from_slice(&crc.sum().to_le_bytes());
    common.extend_from_slice(&(packed.len() as u32).to_le_bytes());
    common.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    common.extend_from_slice(&(name.len() as u16).to_le_bytes());
    common.extend_from_slice(&[0, 0]);
    let mut zip = [b"PK\x03\x04", &common[..], name.as_bytes(), &packed].concat();
    let directory_at = zip.len() as u32;
    zip.extend_from_slice(&[b"PK\x01\x02\x14\x00", &common[..], &[0; 14], name.as_bytes()].concat());
    let directory_len = zip.len() as u32 - directory_at;
    zip.extend_from_slice(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    zip.extend_from_slice(&directory_len.to_le_bytes());
    zip.extend_from_slice(&directory_at.to_le_bytes());
    zip.extend_from_slice(&[0, 0]);
    zip
}

/// A ustar archive of these members.
pub fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, bytes) in members {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[124..136].copy_from_slice(format!("{:011o}\0", bytes.len()).as_bytes());
        header[136..148].copy_from_slice(b"00000000000\0");
        header[148..156].copy_from_slice(b"        ");
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        tar.extend_from_slice(&header);
        tar.extend_from_slice(bytes);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

/// Base64 in lines of 76.
pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for line in bytes.chunks(57) {
        for group in line.chunks(3) {
            let word = group.iter().enumerate().fold(0u32, |word, (at, &byte)| word | u32::from(byte) << (16 - 8 * at));
            for at in 0..4 {
                let digit = ALPHABET[(word >> (18 - 6 * at) & 63) as usize];
                text.push(if at <= group.len() { digit.into() } else { '=' });
            }
        }
        text.push_str("\r\n");
    }
    text
}

/// A mail with an attachment in Base64, behind `padding` bytes of text.
pub fn mail(name: &str, bytes: &[u8], padding: usize) -> Vec<u8> {
    let text = "x".repeat(70) + "\r\n";
    let mut filler = text.repeat(padding / 72);
    filler.push_str(&"y".repeat(padding % 72));
    format!(
        "From: a@example.org\r\nTo: b@example.org\r\nSubject: t\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=\"b\"\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n{filler}\r\n\
         --b\r\nContent-Type: application/octet-stream; name=\"{name}\"\r\nContent-Transfer-Encoding: base64\r\n\r\n\
         {}--b--\r\n",
        base64(bytes)
    )
    .into_bytes()
}
