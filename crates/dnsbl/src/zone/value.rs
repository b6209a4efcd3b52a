//! Value of a listing: an A value and a template of text, and the expansion of the template.

use core::fmt::Write as _;

/// The longest template that is kept; the rest of a longer one is cut off.
const TEMPLATE_BYTES_MAX: usize = 255;

/// The longest text that a template makes.
const TEXT_BYTES_MAX: usize = 254;

/// How many of the values seen last are looked through for one that is the same.
const RECENT_MAX: usize = 1 << 16;

/// Value of a listing. [`ValueId::EXCLUDED`] marks an exclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

impl ValueId {
    /// An exclusion: its addresses are not listed.
    pub const EXCLUDED: ValueId = ValueId(0);
}

/// A value as written; missing parts come from the current default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value<'a> {
    /// The address that is answered.
    pub address: [u8; 4],
    /// The template of the text, and whether it keeps out of the base template.
    pub template: Option<Template<'a>>,
}

/// A template of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template<'a> {
    /// The bytes, not substituted.
    pub bytes: &'a [u8],
    /// Whether it began with `=`: the base template is not applied.
    pub alone: bool,
}

/// Why a value cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueError {
    /// A wrong A value.
    Address,
    /// The A value is followed by something else than a text.
    Trailing,
}

/// Reads the text after an entry, without blanks around it. `default` supplies missing parts.
///
/// # Errors
/// Not a value: the caller skips the entry.
pub fn read<'a>(text: &'a [u8], default: Value<'a>) -> Result<Value<'a>, ValueError> {
    match text.first() {
        None | Some(b'#' | b';') => Ok(default),
        Some(b':') => read_pair(&text[1..], default),
        Some(_) => Ok(Value { address: default.address, template: template(text) }),
    }
}

/// An A value, and perhaps a colon and a text.
fn read_pair<'a>(text: &'a [u8], default: Value<'a>) -> Result<Value<'a>, ValueError> {
    let (address, len) = address(text).ok_or(ValueError::Address)?;
    let rest = trim_start(&text[len..]);
    match rest.split_first() {
        None => Ok(Value { address, template: default.template }),
        Some((b':', rest)) => Ok(Value { address, template: template(trim_start(rest)) }),
        Some(_) => Err(ValueError::Trailing),
    }
}

/// An A value: 1 to 4 numbers. One alone is the last of 127.0.0.0/24; fewer than four leave out zeros before the last.
fn address(text: &[u8]) -> Option<([u8; 4], usize)> {
    let (parts, count, len) = numbers(text)?;
    let address = match count {
        1 => [127, 0, 0, parts[0]],
        2 => [parts[0], 0, 0, parts[1]],
        3 => [parts[0], parts[1], 0, parts[2]],
        _ => parts,
    };
    let zero = if count == 1 { parts[0] == 0 } else { address == [0; 4] };
    let ended = text.get(len).is_none_or(|&byte| matches!(byte, b':' | b' ' | b'\t' | b'.'));
    (!zero && ended).then_some((address, len))
}

/// Up to four numbers of 0 to 255 between dots, how many, and how many bytes they take.
fn numbers(text: &[u8]) -> Option<([u8; 4], usize, usize)> {
    let (mut parts, mut count, mut at) = ([0; 4], 0, 0);
    loop {
        let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        parts[count] = number(&text[at..at + digits])?;
        count += 1;
        at += digits;
        if count == 4 || text.get(at) != Some(&b'.') {
            return Some((parts, count, at));
        }
        at += 1;
    }
}

/// A number of 0 to 255, leading zeros allowed.
pub fn number(digits: &[u8]) -> Option<u8> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u8, |value, digit| {
        let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

fn template(text: &[u8]) -> Option<Template<'_>> {
    let (bytes, alone) = match text.split_first() {
        Some((b'=', rest)) => (rest, true),
        _ => (text, false),
    };
    // Text of nothing but `=` wants to keep the base template away, and has none of its own.
    (alone || !bytes.is_empty()).then_some(Template { bytes, alone })
}

/// Removes blanks at the front.
pub fn trim_start(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &text[blanks..]
}

/// Removes blanks at the end.
pub fn trim_end(text: &[u8]) -> &[u8] {
    let blanks = text.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &text[..text.len() - blanks]
}

/// All values of a data set, each once as far as the last ones tell.
#[derive(Debug, Default)]
pub struct Values {
    entries: Vec<Entry>,
    /// Templates one behind the other: length, whether alone, bytes.
    templates: Vec<u8>,
    recent: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    address: [u8; 4],
    /// Where its template is; `NO_TEMPLATE` for none.
    template: u32,
}

const NO_TEMPLATE: u32 = u32::MAX;

impl Values {
    /// Keeps a value. Returns `None` if there are too many to be numbered.
    pub fn keep(&mut self, value: Value<'_>) -> Option<ValueId> {
        if self.recent.is_empty() {
            self.recent = vec![0; RECENT_MAX];
        }
        let slot = usize::try_from(hash(value)).unwrap_or(0) % RECENT_MAX;
        let candidate = ValueId(self.recent[slot]);
        if self.get(candidate) == Some(cut(value)) {
            return Some(candidate);
        }
        let template = match cut(value).template {
            None => NO_TEMPLATE,
            Some(template) => {
                let at = u32::try_from(self.templates.len()).ok().filter(|&at| at < NO_TEMPLATE)?;
                self.templates.push(u8::try_from(template.bytes.len()).unwrap_or(u8::MAX));
                self.templates.push(u8::from(template.alone));
                self.templates.extend_from_slice(template.bytes);
                at
            }
        };
        self.entries.push(Entry { address: value.address, template });
        let id = u32::try_from(self.entries.len()).ok()?;
        self.recent[slot] = id;
        Some(ValueId(id))
    }

    /// A value that was kept; `None` for an exclusion.
    pub fn get(&self, id: ValueId) -> Option<Value<'_>> {
        let entry = self.entries.get(usize::try_from(id.0.checked_sub(1)?).ok()?)?;
        Some(Value { address: entry.address, template: self.template(entry.template) })
    }

    fn template(&self, at: u32) -> Option<Template<'_>> {
        let rest = self.templates.get(usize::try_from(at).ok()?..)?;
        let (&[len, alone], rest) = rest.split_first_chunk()?;
        Some(Template { bytes: rest.get(..usize::from(len))?, alone: alone != 0 })
    }

    /// How many values there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Releases the memory that only additions need.
    pub fn shrink(&mut self) {
        self.recent = Vec::new();
        self.entries.shrink_to_fit();
        self.templates.shrink_to_fit();
    }

    /// How many bytes they take.
    pub fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.templates.capacity() + 4 * self.recent.capacity()
    }
}

/// A value with as much of its template as is kept.
fn cut(value: Value<'_>) -> Value<'_> {
    let template = value.template.map(|template| Template {
        bytes: &template.bytes[..template.bytes.len().min(TEMPLATE_BYTES_MAX)],
        alone: template.alone,
    });
    Value { address: value.address, template }
}

/// FNV-1a.
fn hash(value: Value<'_>) -> u64 {
    let template = value.template.map_or(&[][..], |template| template.bytes);
    value
        .address
        .iter()
        .chain(template)
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Values of `$0` to `$9`, and the base template `$=`. Of each the first definition counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Substitutions {
    /// The variables.
    pub variables: [Option<Vec<u8>>; 10],
    /// The template around every other one.
    pub base: Option<Vec<u8>>,
}

impl Substitutions {
    /// Makes the text of a value for the listed thing `key`, and appends it to `out`. `false` if there is no text.
    pub fn expand(&self, template: Option<Template<'_>>, key: &Key<'_>, out: &mut Vec<u8>) -> bool {
        let alone = template.is_some_and(|template| template.alone);
        let own = template.map(|template| template.bytes);
        let outer = self.base.as_deref().filter(|_| !alone).or(own);
        let Some(outer) = outer.filter(|outer| !outer.is_empty()) else {
            return false;
        };
        let start = out.len();
        let mut rest = outer;
        while let Some(at) = rest.iter().position(|&byte| byte == b'$') {
            out.extend_from_slice(&rest[..at]);
            rest = self.substitute(&rest[at + 1..], own, key, out);
            if out.len() > start + TEXT_BYTES_MAX {
                break;
            }
        }
        out.extend_from_slice(rest);
        out.truncate(start + TEXT_BYTES_MAX);
        true
    }

    /// Expands the variable after a dollar sign. Returns the rest.
    fn substitute<'t>(&self, rest: &'t [u8], own: Option<&[u8]>, key: &Key<'_>, out: &mut Vec<u8>) -> &'t [u8] {
        match rest.first() {
            Some(b'$') => out.push(b'$'),
            Some(b'=') => match own {
                Some(own) => out.extend_from_slice(own),
                None => key.write(out),
            },
            Some(digit @ b'0'..=b'9') => match &self.variables[usize::from(digit - b'0')] {
                Some(text) => out.extend_from_slice(text),
                None => out.extend_from_slice(&[b'$', *digit]),
            },
            _ => {
                key.write(out);
                return rest;
            }
        }
        &rest[1..]
    }
}

/// Listed thing, as texts name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key<'a> {
    /// An IPv4 address.
    Ip4(u32),
    /// An IPv6 address.
    Ip6(u128),
    /// A name, in wire form without its root.
    Name(&'a [u8]),
}

impl Key<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Key::Ip4(address) => write_text(out, format_args!("{}", core::net::Ipv4Addr::from_bits(*address))),
            Key::Ip6(address) => write_ip6(out, *address),
            Key::Name(wire) => write_name(out, wire),
        }
    }
}

fn write_text(out: &mut Vec<u8>, text: core::fmt::Arguments<'_>) {
    struct Bytes<'a>(&'a mut Vec<u8>);
    impl core::fmt::Write for Bytes<'_> {
        fn write_str(&mut self, text: &str) -> core::fmt::Result {
            self.0.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
    // Writing to memory does not fail.
    let _ = Bytes(out).write_fmt(text);
}

/// An IPv6 address with its first longest run of zero words left out, but never as IPv4 in part.
fn write_ip6(out: &mut Vec<u8>, address: u128) {
    let words = core::net::Ipv6Addr::from_bits(address).segments();
    let (mut best, mut best_len, mut at) = (0, 1, 0);
    while at < words.len() {
        let len = words[at..].iter().take_while(|&&word| word == 0).count();
        if len > best_len {
            (best, best_len) = (at, len);
        }
        at += len.max(1);
    }
    let shortened = best_len > 1;
    for (index, word) in words.iter().enumerate() {
        if shortened && (best..best + best_len).contains(&index) {
            if index == best {
                out.extend_from_slice(b"::");
            }
            continue;
        }
        if index > 0 && !(shortened && index == best + best_len) {
            out.push(b':');
        }
        write_text(out, format_args!("{word:x}"));
    }
}

/// A name; bytes that are no printable ASCII as `\DDD`, as rbldnsd writes them.
fn write_name(out: &mut Vec<u8>, wire: &[u8]) {
    let mut rest = wire;
    let mut first = true;
    while let Some((&len, behind)) = rest.split_first() {
        let (label, behind) = behind.split_at(usize::from(len).min(behind.len()));
        if !core::mem::take(&mut first) {
            out.push(b'.');
        }
        for byte in label {
            match byte {
                b'!'..=b'~' => out.push(*byte),
                byte => write_text(out, format_args!("\\{byte:03}")),
            }
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_text_is_printable() {
        let mut out = Vec::new();
        Key::Name(b"\x03a\xe9b\x04t\x07-x").write(&mut out);
        assert_eq!(out, b"a\\233b.t\\007-x");
    }
}
