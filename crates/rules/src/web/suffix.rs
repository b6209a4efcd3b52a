//! Public suffixes: names below which strangers have their sites, as `co.uk`.
//!
//! The host hands in the list of publicsuffix.org, where it has it. Without it, registries of countries are known by their form: a label of at
//! most three letters, or one of a few longer ones, before a top-level domain of two.
//!
//! Not here: names of the list that are no ASCII, which hosts are in another form.

use std::collections::HashSet;

/// Second-level labels of registries that are longer than three letters.
const REGISTRIES: [&[u8]; 4] = [b"gouv", b"info", b"mobi", b"name"];

/// Public suffixes.
#[derive(Debug, Clone, Default)]
pub struct Suffixes {
    exact: HashSet<Box<[u8]>>,
    /// Names of which each one directly below is a suffix.
    wild: HashSet<Box<[u8]>>,
    /// Exceptions from the wildcards.
    except: HashSet<Box<[u8]>>,
}

impl Suffixes {
    /// Reads the list of publicsuffix.org.
    pub fn read(list: &str) -> Suffixes {
        let mut read = Suffixes::default();
        let rules = list.lines().filter_map(|line| line.split_ascii_whitespace().next());
        for rule in rules.filter(|rule| !rule.starts_with("//")) {
            let (set, name) = match (rule.strip_prefix("*."), rule.strip_prefix('!')) {
                (Some(name), _) => (&mut read.wild, name),
                (_, Some(name)) => (&mut read.except, name),
                _ => (&mut read.exact, rule),
            };
            set.insert(name.to_ascii_lowercase().into_bytes().into());
        }
        read
    }

    /// Whether a name in lower case is a public suffix.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        let Some((first, above)) = name.iter().position(|&byte| byte == b'.').map(|at| (&name[..at], &name[at + 1..]))
        else {
            return true;
        };
        if self.exact.is_empty() {
            let is_registry = first.len() <= 3 || REGISTRIES.contains(&first);
            return above.len() == 2 && is_registry;
        }
        !self.except.contains(name) && (self.exact.contains(name) || self.wild.contains(above))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_are_suffixes_and_sites_are_not() {
        let list = "// ===BEGIN===\nuk\nco.uk\n\n*.ck\n!www.ck\nGithub.io // a comment\n";
        for (suffixes, github) in [(Suffixes::default(), false), (Suffixes::read(list), true)] {
            for name in ["test", "uk", "co.uk"] {
                assert!(suffixes.has(name.as_bytes()), "{name}");
            }
            for name in ["a.test", "www.a.test", "a.co.uk", "example.uk", "a.github.io"] {
                assert!(!suffixes.has(name.as_bytes()), "{name}");
            }
            assert_eq!(suffixes.has(b"github.io"), github);
        }
        let suffixes = Suffixes::read(list);
        assert!(suffixes.has(b"gov.ck") && !suffixes.has(b"www.ck") && !suffixes.has(b"com.au"));
        assert!(Suffixes::default().has(b"com.au") && Suffixes::default().has(b"gouv.fr"));
    }
}
