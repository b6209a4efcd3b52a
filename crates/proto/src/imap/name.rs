//! Names of mailboxes: modified UTF-7 on the wire (RFC 3501, section 5.1.3), UTF-8 within.

use alloc::string::String;
use alloc::vec::Vec;

/// Why a command is refused that is well formed, but whose mailbox no name is of.
pub const NOT_A_NAME: &str = "Not the name of a mailbox";

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+,";

/// A name as it goes over the wire.
pub fn encode(name: &[u8]) -> Vec<u8> {
    let name = String::from_utf8_lossy(name);
    let mut out = Vec::with_capacity(name.len());
    let mut run: Vec<u16> = Vec::new();
    for character in name.chars() {
        if !matches!(character, ' '..='~') {
            run.extend_from_slice(character.encode_utf16(&mut [0; 2]));
            continue;
        }
        end_run(&mut run, &mut out);
        out.push(character as u8);
        if character == '&' {
            out.push(b'-');
        }
    }
    end_run(&mut run, &mut out);
    out
}

fn end_run(run: &mut Vec<u16>, out: &mut Vec<u8>) {
    if run.is_empty() {
        return;
    }
    out.push(b'&');
    let (mut bits, mut count) = (0u32, 0);
    for unit in run.drain(..) {
        bits = bits << 16 | u32::from(unit);
        count += 16;
        while count >= 6 {
            count -= 6;
            out.push(DIGITS[(bits >> count & 63) as usize]);
        }
        bits &= (1 << count) - 1;
    }
    if count > 0 {
        out.push(DIGITS[(bits << (6 - count) & 63) as usize]);
    }
    out.push(b'-');
}

/// A name from the wire. With `utf8` it is UTF-8 as it is (RFC 6855). None if it is not the one form of a name: two names on the
/// wire would be one mailbox, and a client that sends other bytes than LIST does would not find its mailbox again.
///
/// Every spelling of INBOX is INBOX, as the first level of a longer name too (RFC 9051, section 5.1).
pub fn decode(wire: &[u8], utf8: bool) -> Option<Vec<u8>> {
    text(wire, utf8).map(canonical)
}

/// A name with INBOX in capitals, if it is that mailbox or one below it.
pub fn canonical(mut name: Vec<u8>) -> Vec<u8> {
    let end = name.iter().position(|&byte| byte == b'/').unwrap_or(name.len());
    if let Some(first) = name.get_mut(..end).filter(|first| first.eq_ignore_ascii_case(b"INBOX")) {
        first.make_ascii_uppercase();
    }
    name
}

fn text(wire: &[u8], utf8: bool) -> Option<Vec<u8>> {
    if utf8 {
        return core::str::from_utf8(wire).ok().map(|name| name.as_bytes().to_vec());
    }
    let mut name = String::new();
    let mut rest = wire;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if !byte.is_ascii() {
            return None;
        }
        if byte != b'&' {
            name.push(char::from(byte));
            continue;
        }
        let end = rest.iter().position(|&byte| byte == b'-')?;
        let digits = &rest[..end];
        rest = &rest[end + 1..];
        if digits.is_empty() {
            name.push('&');
        } else {
            name.push_str(&decode_run(digits)?);
        }
    }
    (encode(name.as_bytes()) == wire).then(|| name.into_bytes())
}

fn decode_run(digits: &[u8]) -> Option<String> {
    let (mut bits, mut count, mut units) = (0u32, 0, Vec::new());
    for digit in digits {
        let value = DIGITS.iter().position(|known| known == digit)?;
        bits = (bits << 6 | value as u32) & 0x3f_ffff;
        count += 6;
        if count >= 16 {
            count -= 16;
            units.push((bits >> count & 0xffff) as u16);
        }
    }
    String::from_utf16(&units).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_there_and_back() {
        for (name, wire) in [
            ("INBOX", "INBOX"),
            ("Entwürfe", "Entw&APw-rfe"),
            ("a & b", "a &- b"),
            ("~peter/mail/台北/日本語", "~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
            ("😀", "&2D3eAA-"),
        ] {
            assert_eq!(encode(name.as_bytes()), wire.as_bytes());
            assert_eq!(decode(wire.as_bytes(), false).as_deref(), Some(name.as_bytes()));
        }
    }

    #[test]
    fn a_mailbox_has_one_name_on_the_wire() {
        for wire in ["&", "&AGE-", "&APw", "&APw-&APw-", "&!-", "&2D0-", "a&-&-&"] {
            assert_eq!(decode(wire.as_bytes(), false), None, "{wire}");
        }
        assert_eq!(decode("né".as_bytes(), false), None);
        assert_eq!(decode("né".as_bytes(), true).unwrap(), "né".as_bytes());
        assert_eq!(decode(b"&AGE-", true).unwrap(), b"&AGE-");
    }

    #[test]
    fn every_spelling_of_inbox_is_inbox() {
        for (name, wanted) in
            [("Inbox", "INBOX"), ("inbox/Kid", "INBOX/Kid"), ("inboxes", "inboxes"), ("a/inbox", "a/inbox")]
        {
            assert_eq!(decode(name.as_bytes(), false).as_deref(), Some(wanted.as_bytes()));
        }
    }
}
