//! A call of a function: `eval:check_rbl('set', "zone", 3)`.

use crate::spam::problem::Fault;

/// A function and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The function.
    pub function: Box<str>,
    /// The arguments as they stand between their quotes, with their backslashes.
    pub arguments: Vec<Box<[u8]>>,
}

const FORM: &str = "write eval:function('a', \"b\", 3)";
const ARGUMENTS_MAX: usize = 100;

impl Call {
    /// Reads `eval:...`; `None` where it is something else.
    pub fn read(text: &[u8]) -> Option<Result<Call, Fault>> {
        let text = text.strip_prefix(b"rbl").unwrap_or(text).strip_prefix(b"eval:")?;
        Some(read(text))
    }

    /// Whether it asks a list in the DNS about the hosts in the header.
    pub fn is_rbl(&self) -> bool {
        self.function.starts_with("check_rbl") || self.function.starts_with("check_dns")
    }
}

fn read(text: &[u8]) -> Result<Call, Fault> {
    let malformed = || Fault::new("the call of a function is not complete", FORM);
    let end = text.iter().position(|&byte| !(byte.is_ascii_alphanumeric() || byte == b'_')).ok_or_else(malformed)?;
    let function = core::str::from_utf8(&text[..end]).ok().filter(|name| !name.is_empty()).ok_or_else(malformed)?;
    let inner = text[end..].strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")")).ok_or_else(malformed)?;
    Ok(Call { function: function.into(), arguments: arguments(inner.trim_ascii())? })
}

fn arguments(mut text: &[u8]) -> Result<Vec<Box<[u8]>>, Fault> {
    let mut arguments = Vec::new();
    while let Some(&first) = text.first() {
        if arguments.len() == ARGUMENTS_MAX {
            return Err(Fault::new("a function has more than 100 arguments", FORM));
        }
        let (argument, rest) = match first {
            b'\'' | b'"' => quoted(first, &text[1..]).ok_or_else(|| Fault::new("an argument does not end", FORM))?,
            _ => bare(text)?,
        };
        arguments.push(argument.into());
        let rest = rest.trim_ascii_start();
        text = match rest.strip_prefix(b",") {
            Some(rest) => rest.trim_ascii_start(),
            None if rest.is_empty() || b"'\"".contains(&rest[0]) => rest,
            None => return Err(Fault::new("there is no comma between two arguments", FORM)),
        };
    }
    Ok(arguments)
}

fn quoted(quote: u8, text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut escaped = false;
    let end = text.iter().position(|&byte| {
        let ends = byte == quote && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })?;
    Some((&text[..end], &text[end + 1..]))
}

fn bare(text: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b".-".contains(byte);
    let end = text.iter().position(|byte| !fits(byte)).unwrap_or(text.len());
    if end == 0 {
        return Err(Fault::new("an argument that is no number or word stands without quotes", FORM));
    }
    Ok(text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<String>> {
        let call = Call::read(text.as_bytes())?.ok()?;
        let arguments = call.arguments.iter().map(|argument| String::from_utf8_lossy(argument).into_owned());
        Some([String::from(&*call.function)].into_iter().chain(arguments).collect())
    }

    #[test]
    fn arguments_are_quoted_or_words() {
        for (text, expected) in [
            ("eval:f()", &["f"][..]),
            ("eval:f(  )", &["f"]),
            ("eval:f('a', \"b\",'c,d')", &["f", "a", "b", "c,d"]),
            ("eval:f(5, -5, 5.5, ab)", &["f", "5", "-5", "5.5", "ab"]),
            (r"rbleval:f('it\'s', '\d')", &["f", r"it\'s", r"\d"]),
            ("eval:f('a',)", &["f", "a"]),
        ] {
            assert_eq!(read(text).unwrap(), expected, "{text}");
        }
        for text in [
            "eval:f",
            "eval:f('a",
            "eval:f('a') x",
            "eval: f()",
            "eval:f ()",
            "eval:f(a b)",
            "eval:f(/x/)",
            "eval:f('a',,'b')",
            "eval:f(a_b)",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert!(Call::read(b"/x/").is_none());
    }
}
