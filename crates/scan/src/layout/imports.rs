//! The digest of what a PE file imports: the "imphash", as Mandiant defined it.
//!
//! It is the MD5 of a text: for each import, in the order of the file, the library in lower case without `.dll`, `.ocx`
//! or `.sys`, a dot, and the function in lower case, with commas between. Functions imported by number have the name
//! that three libraries are known to give them, else `ord` and the number.
//!
//! The list, the tables and the names are looked for in the section that the list is in, of which the first
//! megabyte is copied as it passes. Where they lie elsewhere there is no digest; where they may lie beyond
//! the copy, that is said.

use std::collections::HashMap;
use std::sync::LazyLock;

use md5::{Digest, Md5};

use crate::hashes;
use crate::layout::passing::Passing;
use crate::layout::{Imports, Layout};

/// The most libraries that are followed.
const LIBRARIES_MAX: u32 = 1024;
/// The most functions.
const FUNCTIONS_MAX: u32 = 32_768;
/// The longest text.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// The longest name.
const NAME_BYTES_MAX: usize = 512;

/// A copy of the section with the list of imports.
#[derive(Debug, Clone)]
pub(crate) struct Caught {
    imports: Imports,
    section: Passing,
}

impl Caught {
    /// Starts to copy, if the layout tells of imports.
    pub(crate) fn new(layout: &Layout) -> Option<Caught> {
        let imports = layout.imports.clone()?;
        let section = Passing::of(layout, imports.address)?;
        Some(Caught { imports, section })
    }

    /// Takes in bytes that stand at `offset` of the file.
    pub(crate) fn pass(&mut self, offset: u64, bytes: &[u8]) {
        self.section.pass(offset, bytes);
    }

    /// The digest, which has the length of the text as its size.
    ///
    /// # Errors
    /// If there is none; with whether that may be because of a bound.
    pub(crate) fn sums(&self) -> Result<digest::Sums, bool> {
        let mut text = Text { digest: Md5::new(), length: 0, functions: 0, full: false };
        let read = self.read(&mut |library, function| text.add(library, function));
        read.filter(|()| text.functions > 0).ok_or(self.section.is_cut() || text.full)?;
        Ok(hashes::of_md5(text.digest.finalize().into(), text.length))
    }

    /// Libraries and functions, in lower case, as far as they can be read.
    pub(crate) fn names(&self) -> Vec<(Box<str>, Box<str>)> {
        let mut all = Vec::new();
        self.read(&mut |library, function| {
            all.push((library.into(), function.into()));
            (all.len() < FUNCTIONS_MAX as usize).then_some(())
        });
        all
    }

    /// How many functions are imported; `None` if there are too many.
    pub(crate) fn functions(&self) -> Option<u32> {
        let mut count = 0;
        self.read(&mut |_, _| {
            count += 1;
            (count <= FUNCTIONS_MAX).then_some(())
        });
        (count <= FUNCTIONS_MAX).then_some(count)
    }

    /// How many libraries there are of which something is imported.
    pub(crate) fn libraries(&self) -> u32 {
        let mut count = 0;
        for index in 0..LIBRARIES_MAX {
            let descriptor = self.imports.address.checked_add(index * 20);
            let field = |at: u32| self.u32(descriptor?.checked_add(at)?);
            let (Some(names), Some(name), Some(addresses)) = (field(0), field(12), field(16)) else { break };
            if name == 0 && addresses == 0 {
                break;
            }
            let first = self.u32(if names == 0 { addresses } else { names });
            count += u32::from(first.is_some_and(|first| first != 0));
        }
        count
    }

    fn read(&self, tell: &mut dyn FnMut(&str, &str) -> Option<()>) -> Option<()> {
        for index in 0..LIBRARIES_MAX {
            let descriptor = self.imports.address.checked_add(index * 20)?;
            let field = |at: u32| self.u32(descriptor.checked_add(at)?);
            let (names, name, addresses) = (field(0)?, field(12)?, field(16)?);
            if name == 0 && addresses == 0 {
                return Some(());
            }
            let library = self.text(name)?;
            self.library(&library, if names == 0 { addresses } else { names }, tell)?;
        }
        None
    }

    /// The functions of one library: a table of words that ends with 0.
    fn library(&self, library: &str, table: u32, tell: &mut dyn FnMut(&str, &str) -> Option<()>) -> Option<()> {
        let step = if self.imports.wide { 8 } else { 4 };
        let mut at = table;
        loop {
            let low = self.u32(at)?;
            let high = if self.imports.wide { self.u32(at.checked_add(4)?)? } else { low };
            if low == 0 && high == 0 {
                return Some(());
            }
            // Behind the number of a hint.
            let named = high & 1 << 31 == 0;
            let function = if named { self.text(low.checked_add(2)?)? } else { by_number(library, low & 0xffff) };
            tell(library, &function)?;
            at = at.checked_add(step)?;
        }
    }

    fn u32(&self, address: u32) -> Option<u32> {
        self.section.u32(address)
    }

    /// A name in lower case.
    fn text(&self, address: u32) -> Option<String> {
        let bytes = self.section.text(address, NAME_BYTES_MAX)?;
        Some(bytes.iter().map(|&byte| char::from(byte).to_ascii_lowercase()).collect())
    }
}

/// The text that is digested.
struct Text {
    digest: Md5,
    length: u64,
    functions: u32,
    /// Whether there was more.
    full: bool,
}

impl Text {
    fn add(&mut self, library: &str, function: &str) -> Option<()> {
        self.full = self.functions == FUNCTIONS_MAX || self.length >= TEXT_BYTES_MAX;
        if self.full {
            return None;
        }
        self.functions += 1;
        let stem = [".dll", ".ocx", ".sys"].iter().find_map(|ending| library.strip_suffix(ending)).unwrap_or(library);
        let comma = if self.functions > 1 { "," } else { "" };
        for piece in [comma, stem, ".", function] {
            self.digest.update(piece);
            self.length += piece.len() as u64;
        }
        Some(())
    }
}

/// The name of a function that is imported by its number.
fn by_number(library: &str, number: u32) -> String {
    static KNOWN: LazyLock<HashMap<(&str, u32), &str>> = LazyLock::new(|| {
        let lines = include_str!("../../database/ordinals.txt").lines();
        let entry = |line: &'static str| {
            let mut words = line.split(' ');
            Some(((words.next()?, words.next()?.parse().ok()?), words.next()?))
        };
        lines.filter(|line| !line.starts_with('#')).filter_map(entry).collect()
    });
    KNOWN.get(&(library, number)).map_or_else(|| format!("ord{number}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_known_libraries_have_names() {
        assert_eq!(by_number("ws2_32.dll", 1), "accept");
        assert_eq!(by_number("ws2_32.dll", 60_000), "ord60000");
        assert_eq!(by_number("other.dll", 1), "ord1");
    }
}
