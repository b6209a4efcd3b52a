//! The named character references that ClamAV knows: those of HTML 4 and of the sets of ISO 8879, read off
//! `sigtool --html-normalise` 1.4.

use std::sync::LazyLock;

/// `name code` in each line, the code in hexadecimal, in the order of the names.
const TEXT: &str = include_str!("entities.txt");

static ENTITIES: LazyLock<Vec<(&str, u32)>> = LazyLock::new(|| {
    let pairs = TEXT.lines().filter_map(|line| line.split_once(' '));
    pairs.filter_map(|(name, code)| Some((name, u32::from_str_radix(code, 16).ok()?))).collect()
});

/// The character that a name stands for.
pub(super) fn code(name: &[u8]) -> Option<u32> {
    let at = ENTITIES.binary_search_by(|(known, _)| known.as_bytes().cmp(name)).ok()?;
    Some(ENTITIES[at].1)
}
