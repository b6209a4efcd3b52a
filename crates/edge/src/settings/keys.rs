//! A table whose keys several groups of settings share: each group takes those that it knows.
//!
//! A group is a struct that derives `Deserialize`; the names of its fields are its keys. What is left when all groups have
//! taken theirs is not known.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use toml::Spanned;
use toml::de::DeTable;

/// Error in a table, and its place in the file.
#[derive(Debug)]
pub struct Fault {
    /// Error text.
    pub message: String,
    /// Where, in bytes of the file.
    pub span: Option<Range<usize>>,
}

impl From<toml::de::Error> for Fault {
    fn from(error: toml::de::Error) -> Fault {
        Fault { message: with_nearest(error.message()), span: error.span() }
    }
}

/// The message that a key is not known, with the known key that looks most like it.
fn with_nearest(message: &str) -> String {
    let offered = || {
        let starts = ["unknown field `", "unknown variant `"];
        let rest = starts.iter().find_map(|start| message.strip_prefix(start))?;
        let (name, known) = rest.split_once("`, expected ")?;
        nearest(name, known.split('`').skip(1).step_by(2))
    };
    match offered() {
        Some(known) => format!("{message}; did you mean `{known}`?"),
        None => message.into(),
    }
}

/// The key among those known that looks most like `name`; none where nobody would take one for the other.
pub fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let name: String = name.chars().take(KEY_CHARACTERS_MAX).collect();
    let apart = known.map(|known| (distance(&name, known), known)).min()?;
    (apart.0 * 3 <= name.chars().count().max(3)).then_some(apart.1)
}

/// Characters of a key that are compared at most.
const KEY_CHARACTERS_MAX: usize = 64;

/// How many letters have to be put in, left out, replaced or swapped with their neighbour to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let (mut before, mut last): (Vec<usize>, Vec<usize>) = (Vec::new(), (0..=b.len()).collect());
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let replaced = last[j] + usize::from(a[i] != b[j]);
            let mut least = replaced.min(last[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        (before, last) = (last, next);
    }
    last.last().copied().unwrap_or(0)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

/// A table of the configuration with the keys that were not read yet.
pub struct Keys<'i> {
    table: DeTable<'i>,
    span: Range<usize>,
    known: Vec<&'static str>,
}

impl<'i> Keys<'i> {
    /// All keys of a table.
    pub fn new(table: Spanned<DeTable<'i>>) -> Keys<'i> {
        let span = table.span();
        Keys { table: table.into_inner(), span, known: Vec::new() }
    }

    /// Adds keys that stand in this table too, and that somebody else reads.
    pub fn know(&mut self, names: &[&'static str]) {
        self.known.extend(names);
    }

    /// Takes the keys that a group knows.
    ///
    /// # Errors
    /// When one has a value that it cannot have, or one is missing that has to be there.
    pub fn take<T: Deserialize<'i>>(&mut self) -> Result<T, Fault> {
        T::deserialize(Group(self)).map_err(|error| self.with_misspelt(error.into()))
    }

    /// A key that is missing, with the one that nobody knows and that looks like it.
    fn with_misspelt(&self, fault: Fault) -> Fault {
        let missing = fault.message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
        let Some(missing) = missing else { return fault };
        let strange = self.table.keys().filter(|key| nearest(key.get_ref(), [missing].into_iter()).is_some());
        let strange = strange.min_by_key(|key| (distance(key.get_ref(), missing), key.span().start));
        let Some(key) = strange else { return fault };
        let message = format!("{}; `{}` is not known: did you mean `{missing}`?", fault.message, key.get_ref());
        Fault { message, span: Some(key.span()) }
    }

    /// The keys that were not read.
    pub fn left(&self) -> impl Iterator<Item = &str> {
        self.table.keys().map(|key| key.get_ref().as_ref())
    }

    /// That nothing is left.
    ///
    /// # Errors
    /// When a key is not known.
    pub fn end(self) -> Result<(), Fault> {
        let Some(key) = self.table.keys().min_by_key(|key| key.span().start) else { return Ok(()) };
        let names: Vec<String> = self.known.iter().map(|name| format!("`{name}`")).collect();
        let message = format!("unknown field `{}`, expected one of {}", key.get_ref(), names.join(", "));
        Err(Fault { message: with_nearest(&message), span: Some(key.span()) })
    }
}

/// The keys of a group, as its `Deserialize` names them.
struct Group<'k, 'de>(&'k mut Keys<'de>);

impl<'de> Deserializer<'de> for Group<'_, 'de> {
    type Error = toml::de::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, toml::de::Error> {
        let Keys { table, span, known } = self.0;
        // A group may be asked twice: for what it has, and for what another should not have.
        for name in fields {
            if !known.contains(name) {
                known.push(name);
            }
        }
        let mut own = DeTable::new();
        for (key, value) in std::mem::take(table) {
            let place = if fields.contains(&key.get_ref().as_ref()) { &mut own } else { &mut *table };
            place.insert(key, value);
        }
        toml::Deserializer::from(Spanned::new(span.clone(), own)).deserialize_struct(name, fields, visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, toml::de::Error> {
        Err(toml::de::Error::custom("a group of settings is a struct"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct One {
        #[serde(rename = "in")]
        r#in: u8,
    }

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default)]
    struct Two {
        out: Vec<u8>,
    }

    fn read(text: &str) -> Result<(One, Two), Fault> {
        let mut keys = Keys::new(DeTable::parse(text)?);
        let both = (keys.take()?, keys.take()?);
        keys.end()?;
        Ok(both)
    }

    #[test]
    fn a_group_that_is_asked_twice_is_named_once() {
        let mut keys = Keys::new(DeTable::parse("b = 2").unwrap());
        let _: (Two, Two) = (keys.take().unwrap(), keys.take().unwrap());
        assert_eq!(keys.end().unwrap_err().message, "unknown field `b`, expected one of `out`");
    }

    #[test]
    fn each_takes_its_own_and_what_is_left_is_not_known() {
        let (one, two) = read("out = [2]\nin = 1").unwrap();
        assert_eq!((one.r#in, two.out), (1, vec![2]));
        for (text, message, at) in [
            ("out = []", "missing field `in`", 0),
            ("in = 1\nout = [1, 256]", "invalid value: integer `256`", 17),
            ("in = 1\nb = 2\na = 1", "unknown field `b`, expected one of `in`, `out`", 7),
        ] {
            let fault = read(text).unwrap_err();
            assert!(fault.message.starts_with(message), "{fault}");
            assert_eq!(fault.span.unwrap().start, at, "{text}");
        }
    }
}
