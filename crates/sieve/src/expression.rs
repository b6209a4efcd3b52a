//! Extended regular expressions of POSIX, as `:regex` has them (draft-ietf-sieve-regex), made into those of the crate `regex`.
//!
//! What GNU adds (`\w \s \b \<`) is known, back references are not: they cannot be matched in linear time. An expression
//! matches where POSIX would; of alternatives the first that fits is what `${1}` holds, and not the longest.
//!
//! Bounds: [`EXPRESSION_BYTES_MAX`], [`COMPILED_BYTES_MAX`].

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::str::Chars;

/// The longest expression, in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 1_024;
/// The largest that it may become, in bytes.
pub const COMPILED_BYTES_MAX: usize = 256 << 10;
/// Groups within groups.
const DEPTH_MAX: u32 = 50;

/// An expression that can be run.
#[derive(Debug, Clone)]
pub(crate) struct Regex(regex::Regex);

impl Regex {
    /// Reads an expression.
    pub fn new(pattern: &str, ignore_case: bool) -> Result<Regex, String> {
        if pattern.len() > EXPRESSION_BYTES_MAX {
            return Err(format!("an expression has at most {EXPRESSION_BYTES_MAX} bytes"));
        }
        let translated = translate(pattern, ignore_case)?;
        let built = regex::RegexBuilder::new(&translated)
            .size_limit(COMPILED_BYTES_MAX)
            .nest_limit(DEPTH_MAX.saturating_mul(4))
            .dot_matches_new_line(true)
            .build();
        built.map(Regex).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "this expression becomes too large".to_string(),
            error => format!("not an expression: {}", error.to_string().lines().last().unwrap_or_default()),
        })
    }

    /// Returns the match and its groups.
    pub fn find(&self, value: &str) -> Option<Vec<String>> {
        let captures = self.0.captures(value)?;
        let text = |group: Option<regex::Match<'_>>| group.map_or(String::new(), |group| group.as_str().into());
        Some(captures.iter().map(text).collect())
    }
}

fn translate(pattern: &str, ignore_case: bool) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = pattern.chars();
    let (mut depth, mut repeatable) = (0u32, false);
    while let Some(character) = rest.next() {
        let was_repeatable = core::mem::replace(&mut repeatable, true);
        match character {
            '\\' => escape(&mut out, rest.next().ok_or("nothing follows the last \\")?, ignore_case)?,
            '[' => bracket(&mut out, &mut rest, ignore_case)?,
            '(' => {
                depth = depth.saturating_add(1);
                if depth > DEPTH_MAX {
                    return Err(format!("more than {DEPTH_MAX} groups are nested"));
                }
                repeatable = false;
                out.push('(');
            }
            ')' => {
                depth = depth.checked_sub(1).ok_or("a ) is without its (")?;
                out.push(')');
            }
            '*' | '+' | '?' if was_repeatable => {
                out.push(character);
                // Elsewhere a second one makes the first lazy.
                repeatable = false;
            }
            '*' | '+' | '?' => return Err(format!("nothing stands before {character}")),
            '{' if was_repeatable => {
                let inner: String = rest.by_ref().take_while(|&character| character != '}').collect();
                let is_count = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
                let fits = match inner.split_once(',') {
                    Some((least, most)) => is_count(least) && is_count(most) && !(least.is_empty() && most.is_empty()),
                    None => is_count(&inner) && !inner.is_empty(),
                };
                if !fits {
                    return Err(format!("{{{inner}}} is not a count"));
                }
                let least = if inner.starts_with(',') { "0" } else { "" };
                out.push_str(&format!("{{{least}{inner}}}"));
            }
            '|' | '^' => {
                repeatable = false;
                out.push(character);
            }
            '.' | '$' => out.push(character),
            literal => push(&mut out, literal, ignore_case),
        }
    }
    if depth > 0 {
        return Err("a ( is without its )".into());
    }
    Ok(out)
}

fn escape(out: &mut String, character: char, ignore_case: bool) -> Result<(), String> {
    match character {
        'w' => out.push_str("[A-Za-z0-9_]"),
        'W' => out.push_str("[^A-Za-z0-9_]"),
        's' => out.push_str("[ \\t\\r\\n\\f\\v]"),
        'S' => out.push_str("[^ \\t\\r\\n\\f\\v]"),
        'b' => out.push_str("(?-u:\\b)"),
        '<' => out.push_str("(?-u:\\b{start})"),
        '>' => out.push_str("(?-u:\\b{end})"),
        '0'..='9' => return Err("back references are not known".into()),
        literal => push(out, literal, ignore_case),
    }
    Ok(())
}

/// A character as itself.
fn push(out: &mut String, character: char, ignore_case: bool) {
    if ignore_case && character.is_ascii_alphabetic() {
        out.extend(['[', character.to_ascii_lowercase(), character.to_ascii_uppercase(), ']']);
    } else {
        // Of punctuation, the engine takes \< and \> alone for something else: for ends of words.
        if character.is_ascii_punctuation() && !matches!(character, '<' | '>') {
            out.push('\\');
        }
        out.push(character);
    }
}

/// A list of characters, behind its bracket.
fn bracket(out: &mut String, rest: &mut Chars<'_>, ignore_case: bool) -> Result<(), String> {
    const OPEN: &str = "a [ is without its ]";
    let mut ahead = rest.clone();
    out.push('[');
    if ahead.next() == Some('^') {
        rest.next();
        out.push('^');
    }
    let mut is_first = true;
    loop {
        let character = rest.next().ok_or(OPEN)?;
        if character == ']' && !is_first {
            out.push(']');
            return Ok(());
        }
        is_first = false;
        let mut ahead = rest.clone();
        let second = ahead.next();
        if character == '[' && matches!(second, Some(':' | '.' | '=')) {
            rest.next();
            class(out, rest, second.unwrap_or_default(), ignore_case)?;
            continue;
        }
        let third = ahead.next();
        match third {
            Some(end) if second == Some('-') && end != ']' => {
                rest.next();
                rest.next();
                range(out, character, end, ignore_case)?;
            }
            _ => range(out, character, character, ignore_case)?,
        }
    }
}

/// A class such as `[:alpha:]`.
fn class(out: &mut String, rest: &mut Chars<'_>, kind: char, ignore_case: bool) -> Result<(), String> {
    let text = rest.as_str();
    let end = format!("{kind}]");
    let length = text.find(&end).ok_or("a class does not end")?;
    let name = text.get(..length).unwrap_or_default();
    *rest = text.get(length.saturating_add(2)..).unwrap_or_default().chars();
    let mut characters = name.chars();
    match (kind, characters.next(), characters.next()) {
        (':', ..) => {}
        (_, Some(one), None) => return range(out, one, one, ignore_case),
        _ => return Err(format!("{name:?} is not a character")),
    }
    let of_case = ignore_case && ["upper", "lower"].contains(&name);
    const NAMES: [&str; 12] =
        ["alpha", "digit", "alnum", "upper", "lower", "space", "blank", "punct", "print", "graph", "cntrl", "xdigit"];
    if !NAMES.contains(&name) {
        return Err(format!("there is no class {name:?}"));
    }
    out.push_str(&format!("[:{}:]", if of_case { "alpha" } else { name }));
    Ok(())
}

fn range(out: &mut String, from: char, to: char, ignore_case: bool) -> Result<(), String> {
    if from > to {
        return Err(format!("{from}-{to} is the wrong way round"));
    }
    out.push_str(&format!("\\u{{{:x}}}-\\u{{{:x}}}", u32::from(from), u32::from(to)));
    if !ignore_case {
        return Ok(());
    }
    // Letters of the range, in the other case.
    for (first, last) in [('a', 'z'), ('A', 'Z')] {
        let (first, last) = (from.max(first), to.min(last));
        if first <= last {
            let other = |letter: char| u32::from(letter) ^ 0x20;
            out.push_str(&format!("\\u{{{:x}}}-\\u{{{:x}}}", other(first), other(last)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_match_as_posix_has_them() {
        for (pattern, value, wanted) in [
            ("(a|b)+c$", "xABC", Some("ABC B")),
            ("^[[:alpha:]_-]+$", "a_-B", Some("a_-B")),
            ("[]x]", "]", Some("]")),
            ("[^]]", "]", None),
            ("[a-c]", "B", Some("B")),
            ("a{2}", "AaA", Some("Aa")),
            ("a{,2}b", "aaab", Some("aab")),
            ("\\.", "x.", Some(".")),
            ("\\<foo\\>", "a foo b", Some("foo")),
            ("<(.+)@", "\"Ann Lee\" <ann+t@ex.org>", Some("<ann+t@ ann+t")),
            ("^.*<(.+)>$", "Ann <a@b>", Some("Ann <a@b> a@b")),
            ("^a<b$", "a<b", Some("a<b")),
            ("[[:upper:]]", "x", Some("x")),
            ("x.y", "x\ny", Some("x\ny")),
            ("[.*&~-]", "&", Some("&")),
            ("(x)?y", "y", Some("y ")),
            ("[\\]", "\\", Some("\\")),
            ("é", "É", None),
        ] {
            let found = Regex::new(pattern, true).unwrap_or_else(|error| panic!("{pattern}: {error}")).find(value);
            assert_eq!(found.map(|groups| groups.join(" ")).as_deref(), wanted, "{pattern} {value}");
        }
        assert!(Regex::new("a", false).unwrap().find("A").is_none());
    }

    #[test]
    fn what_is_none_is_refused() {
        for pattern in
            ["(", ")", "[a", "*", "a**", "a{x}", "[[:foo:]]", "[b-a]", "\\1", "a\\", "(((a{999}){999}){999})"]
        {
            assert!(Regex::new(pattern, true).is_err(), "{pattern}");
        }
    }
}
