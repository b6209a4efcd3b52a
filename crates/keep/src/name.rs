//! Names of mailboxes.

use store::DELIMITER;

/// Mailboxes of one account.
pub const MAILBOXES_MAX: usize = 10_000;

/// Levels of a name above its last: each is a name that LIST tells.
pub const LEVELS_MAX: usize = 50;

/// Whether a mailbox may be called so.
pub fn is_name(name: &[u8]) -> bool {
    let is_odd = |byte: &u8| *byte < b' ' || *byte == 0x7f || b"%*".contains(byte);
    let levels_are_empty = name.split(|&byte| byte == DELIMITER).any(<[u8]>::is_empty);
    let is_deep = name.iter().filter(|&&byte| byte == DELIMITER).count() > LEVELS_MAX;
    !name.iter().any(is_odd) && !levels_are_empty && !is_deep && core::str::from_utf8(name).is_ok()
}
