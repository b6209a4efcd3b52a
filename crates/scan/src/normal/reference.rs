//! Character references as ClamAV resolves them: `&amp;`, `&#65;`, `&#x41;`.
//!
//! A character up to 254 becomes its byte, a later one its number again, in four hexadecimal digits; full stops of other
//! scripts become ours. What is no reference
//! stays as it is, in lower case. A number needs no semicolon; without one it is a byte,
//! whatever is above, and stays a capital.

use text::entities;

/// The longest name that is looked up.
const NAME_BYTES_MAX: usize = 1023;

/// A reference that is being read, from behind its `&` on.
#[derive(Debug, Clone, Default)]
pub(super) enum Reference {
    #[default]
    Begun,
    Name(Vec<u8>),
    /// After `#`.
    Number,
    Digits {
        radix: u32,
        value: u32,
    },
}

impl Reference {
    /// Reads a byte. Once the reference is over: what it says, and whether the byte belonged to it.
    pub(super) fn read(&mut self, byte: u8) -> Option<(Vec<u8>, bool)> {
        match self {
            Reference::Begun if byte == b'#' => *self = Reference::Number,
            Reference::Begun => {
                *self = Reference::Name(Vec::new());
                return self.read(byte);
            }
            Reference::Number if matches!(byte, b'x' | b'X') => *self = Reference::Digits { radix: 16, value: 0 },
            Reference::Number => {
                *self = Reference::Digits { radix: 10, value: 0 };
                return self.read(byte);
            }
            Reference::Digits { radix, value } => match char::from(byte).to_digit(*radix) {
                Some(digit) => *value = value.wrapping_mul(*radix).wrapping_add(digit),
                None => return Some(number(*value, byte == b';')),
            },
            Reference::Name(name) if byte == b';' => return Some((named(name, true), true)),
            Reference::Name(name) if name.len() < NAME_BYTES_MAX && is_of_name(byte) => name.push(byte),
            Reference::Name(name) => return Some((unknown(name, false), false)),
        }
        None
    }

    /// Text of the reference where the page ends.
    pub(super) fn end(self) -> Vec<u8> {
        match self {
            Reference::Name(name) => named(&name, false),
            _ => Vec::new(),
        }
    }
}

/// Whether a byte can be in a name.
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b':' | b'_')
}

fn number(code: u32, whole: bool) -> (Vec<u8>, bool) {
    match whole {
        true => (character(code).to_ascii_lowercase(), true),
        false => (vec![code as u8], false),
    }
}

fn named(name: &[u8], whole: bool) -> Vec<u8> {
    entities::code(name).map_or_else(|| unknown(name, whole), character)
}

fn unknown(name: &[u8], whole: bool) -> Vec<u8> {
    let end: &[u8] = if whole { b";" } else { b"" };
    [b"&", name, end].concat().to_ascii_lowercase()
}

fn character(code: u32) -> Vec<u8> {
    match code {
        0..255 => vec![code as u8],
        0x3002 | 0xfe52 | 0xff0e => b".".to_vec(),
        _ => format!("&#x{:04x};", code & 0xffff).into_bytes(),
    }
}
