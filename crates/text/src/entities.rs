//! Named character references: those of HTML 4 and of the sets of ISO 8879, as ClamAV knows them, read off
//! `sigtool --html-normalise` 1.4.

/// `name code` in each line, the code in hexadecimal, in the order of the names.
const TEXT: &str = include_str!("entities.txt");

/// The character that a name stands for, without its `&` and `;`. Case counts.
pub fn code(name: &[u8]) -> Option<u32> {
    let (mut lines, mut found) = (TEXT, None);
    while found.is_none() && !lines.is_empty() {
        // The line that the middle is in.
        let middle = lines.len() / 2;
        let start = lines.as_bytes()[..middle].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let end =
            lines.as_bytes()[middle..].iter().position(|&byte| byte == b'\n').map_or(lines.len(), |at| middle + at);
        let (known, code) = lines[start..end].split_once(' ')?;
        match name.cmp(known.as_bytes()) {
            core::cmp::Ordering::Less => lines = &lines[..start],
            core::cmp::Ordering::Greater => lines = lines.get(end + 1..).unwrap_or_default(),
            core::cmp::Ordering::Equal => found = Some(code),
        }
    }
    u32::from_str_radix(found?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_of_the_list_is_found_and_what_stands_between_two_is_not() {
        for line in TEXT.lines() {
            let (name, hex) = line.split_once(' ').expect("a name and a code");
            assert_eq!(code(name.as_bytes()), u32::from_str_radix(hex, 16).ok(), "{name}");
            assert_eq!(code(format!("{name}\0").as_bytes()), None, "{name}");
        }
        assert!(TEXT.lines().map(|line| line.split(' ').next()).is_sorted());
    }

    #[test]
    fn what_is_no_name_is_nothing() {
        assert_eq!((code(b"amp"), code(b"AMP")), (Some(0x26), None));
        for name in ["", " ", "a", "zzz", "amp 26", "amp\n", "\u{e9}", "0"] {
            assert_eq!(code(name.as_bytes()), None, "{name:?}");
        }
    }
}
