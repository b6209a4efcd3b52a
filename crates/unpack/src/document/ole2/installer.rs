//! Names of streams in Windows Installer databases: two characters of a small alphabet in each UTF-16 unit.

/// The alphabet, in the order of the codes.
const ALPHABET: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._";
const PAIRS: u16 = 0x3800;
const SINGLES: u16 = 0x4800;
const TABLE: u16 = 0x4840;

/// The name in plain characters.
pub(super) fn plain(units: &[u16]) -> String {
    let mut name = String::new();
    let letter = |code: u16| char::from(ALPHABET[usize::from(code & 63)]);
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit.map(|unit| (unit, u16::try_from(u32::from(unit)).unwrap_or(0))) {
            Ok((_, code @ PAIRS..SINGLES)) => name.extend([letter(code - PAIRS), letter((code - PAIRS) >> 6)]),
            Ok((_, code @ SINGLES..TABLE)) => name.push(letter(code - SINGLES)),
            // Marks a table of the database.
            Ok((_, TABLE)) => name.push('!'),
            Ok((unit, _)) => name.push(unit),
            Err(_) => name.push(char::REPLACEMENT_CHARACTER),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_names_are_read_and_others_left() {
        assert_eq!(plain(&[0x4840, 0x3f3f, 0x4577, 0x446c, 0x3e6a, 0x44b2, 0x482f]), "!_StringPool");
        assert_eq!(plain(&[5, 0x53, 0x75]), "\u{5}Su");
    }
}
