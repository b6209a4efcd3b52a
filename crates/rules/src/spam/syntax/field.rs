//! A test of a header field: `Subject:raw =~ /../ [if-unset: x]`, `exists:Subject`.

use super::expression::Expression;
use crate::spam::problem::{Fault, shown};

/// Field that a header test reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name, or a pseudo header such as `ALL`, `ToCc`, `MESSAGEID`, in the case that it was written in.
    pub name: Box<str>,
    /// Modifiers, at most two.
    pub modifiers: Vec<Modifier>,
}

/// Modifier of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modifier {
    /// Undecoded, its spaces kept.
    Raw,
    /// The first address.
    Addr,
    /// The first display name.
    Name,
    /// The host of an address or URI.
    Host,
    /// Its registered domain.
    Domain,
    /// An IP address.
    Ip,
    /// An IP address, reversed as for the DNS.
    Revip,
    /// The first of several fields.
    First,
    /// The last of several fields.
    Last,
}

/// How each is written.
pub(crate) const MODIFIERS: [(&str, Modifier); 9] = [
    ("raw", Modifier::Raw),
    ("addr", Modifier::Addr),
    ("name", Modifier::Name),
    ("host", Modifier::Host),
    ("domain", Modifier::Domain),
    ("ip", Modifier::Ip),
    ("revip", Modifier::Revip),
    ("first", Modifier::First),
    ("last", Modifier::Last),
];
const MODIFIERS_MAX: usize = 2;

/// A test of a header field, of a message or of a MIME part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderTest {
    /// The field is there.
    Exists(Field),
    /// Its text matches, or does not.
    Matches {
        /// Field to match.
        field: Field,
        /// `!~`: a hit is where nothing matches.
        negated: bool,
        /// The expression.
        expression: Expression,
        /// Value in place of a missing field.
        if_unset: Option<Box<[u8]>>,
    },
}

impl HeaderTest {
    /// Reads what stands behind the rule's name.
    pub fn read(text: &[u8]) -> Result<HeaderTest, Fault> {
        if let Some(name) = text.strip_prefix(b"exists:") {
            return field_name(name.trim_ascii_end())
                .map(|name| HeaderTest::Exists(Field { name: name.into(), modifiers: Vec::new() }))
                .ok_or_else(|| {
                    Fault::new("exists: names no header field", "write exists:Field-Name, without modifiers")
                });
        }
        let unread = || {
            Fault::new(
                format!("a header test is not {:?}", shown(text)),
                "write Field =~ /.../ or Field !~ /.../, exists:Field or eval:function()",
            )
        };
        let end = text
            .iter()
            .position(|&byte| byte.is_ascii_whitespace() || byte == b'=' || byte == b'!')
            .ok_or_else(unread)?;
        let field = field(&text[..end], unread)?;
        let rest = text[end..].trim_ascii_start();
        let (negated, rest) = match rest.split_at_checked(2) {
            Some((b"=~", rest)) => (false, rest),
            Some((b"!~", rest)) => (true, rest),
            _ => return Err(unread()),
        };
        let (expression, if_unset) = unset(rest.trim_ascii());
        Ok(HeaderTest::Matches {
            field,
            negated,
            expression: Expression::read(expression)?,
            if_unset: if_unset.map(Into::into),
        })
    }

    /// Field of the test.
    pub fn field(&self) -> &Field {
        match self {
            HeaderTest::Exists(field) | HeaderTest::Matches { field, .. } => field,
        }
    }
}

/// Cuts ` [if-unset: TEXT]` off.
fn unset(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    const MARK: &[u8] = b"[if-unset:";
    let Some(inner) = text.strip_suffix(b"]") else { return (text, None) };
    let Some(at) = inner.windows(MARK.len()).rposition(|window| window == MARK) else { return (text, None) };
    let (before, value) = (&inner[..at], &inner[at + MARK.len()..]);
    let apart =
        before.last().is_some_and(u8::is_ascii_whitespace) && value.first().is_some_and(u8::is_ascii_whitespace);
    if apart { (before.trim_ascii_end(), Some(value.trim_ascii_start())) } else { (text, None) }
}

fn field(text: &[u8], unread: impl Fn() -> Fault) -> Result<Field, Fault> {
    let mut parts = text.split(|&byte| byte == b':');
    let name = parts.next().and_then(field_name).ok_or_else(&unread)?;
    let mut modifiers = Vec::new();
    for part in parts.filter(|part| !part.is_empty()) {
        let known = MODIFIERS.iter().find(|(name, _)| name.as_bytes() == part);
        let Some(&(_, modifier)) = known else {
            return Err(Fault::new(
                format!("a field has no modifier :{}", shown(part)),
                "there are raw, addr, name, host, domain, ip, revip, first and last",
            ));
        };
        modifiers.push(modifier);
    }
    if modifiers.len() > MODIFIERS_MAX {
        return Err(Fault::new("a field has more than two modifiers", "leave one away"));
    }
    Ok(Field { name: name.into(), modifiers })
}

fn field_name(name: &[u8]) -> Option<&str> {
    let fits = !name.is_empty() && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    core::str::from_utf8(name).ok().filter(|_| fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_with_its_modifiers_and_what_stands_for_it() {
        let read = |text: &str| HeaderTest::read(text.as_bytes());
        let Ok(HeaderTest::Matches { field, negated, expression, if_unset }) =
            read("From:addr:last!~/x/i [if-unset:  a b ]")
        else {
            panic!("not read")
        };
        assert_eq!((&*field.name, &field.modifiers[..]), ("From", &[Modifier::Addr, Modifier::Last][..]));
        assert!(negated && *expression.flags == *"i");
        assert_eq!(if_unset.as_deref(), Some(&b"a b "[..]));
        assert_eq!(read("exists:X-Foo").unwrap().field().name, "X-Foo".into());
        assert!(read("Subject: =~ m|x|").is_ok());
        let Ok(HeaderTest::Matches { if_unset: None, .. }) = read("Foo =~ /x[if-unset: b]/") else {
            panic!("not read")
        };
    }

    #[test]
    fn what_is_no_header_test_is_refused() {
        for text in [
            "",
            "Subject",
            "Subject /x/",
            "Subj ect =~ /x/",
            "=~ /x/",
            "X-Foo! =~ /x/",
            "From:all =~ /x/",
            "From:RAW =~ /x/",
            "From:a:b:c =~ /x/",
            "From:first:addr:host =~ /x/",
            "exists:Foo:raw",
            "exists: Foo",
            "Foo ~= /x/",
            "Foo =~ x",
            "Foo =~ /x/ junk",
            "Foo =~ /x/[if-unset: x]",
        ] {
            assert!(HeaderTest::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
