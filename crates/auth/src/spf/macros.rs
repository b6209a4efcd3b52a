//! Macros of SPF (RFC 7208 section 7).
//!
//! Bounds: what is expanded has at most [`EXPANSION_BYTES_MAX`] bytes.

/// The longest string that macros are expanded to, before a name is cut to its last 253 bytes.
pub const EXPANSION_BYTES_MAX: usize = 8 << 10;

/// A string with macros, as far as it is needed to expand it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MacroString {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Macro(Macro),
    /// `%%`, `%_`, `%-`: a literal, and yet an end that a domain may have.
    Escape(&'static str),
}

/// `%{` letter, digits, `r`, delimiters `}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Macro {
    /// Letter of the value, in lower case.
    pub letter: Letter,
    /// Written in upper case: characters that URLs do not allow are escaped.
    escaped: bool,
    /// How many parts on the right are kept; none for all.
    kept: Option<usize>,
    reversed: bool,
    /// Characters that separate parts.
    delimiters: String,
}

/// Value of a macro.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letter {
    /// `s`: the sender.
    Sender,
    /// `l`: its local part.
    LocalPart,
    /// `o`: its domain.
    SenderDomain,
    /// `d`: the domain whose policy it is.
    Domain,
    /// `i`: the client's address, in dots.
    Address,
    /// `p`: the client's name, if it is true.
    ValidatedName,
    /// `v`: `in-addr` or `ip6`.
    Family,
    /// `h`: the client's HELO name.
    Helo,
    /// `c`: the client's address, as people read it. For explanations.
    ReadableAddress,
    /// `r`: our name. For explanations.
    Receiver,
    /// `t`: the time. For explanations.
    Time,
}

impl Letter {
    fn from_byte(byte: u8) -> Option<Letter> {
        Some(match byte.to_ascii_lowercase() {
            b's' => Letter::Sender,
            b'l' => Letter::LocalPart,
            b'o' => Letter::SenderDomain,
            b'd' => Letter::Domain,
            b'i' => Letter::Address,
            b'p' => Letter::ValidatedName,
            b'v' => Letter::Family,
            b'h' => Letter::Helo,
            b'c' => Letter::ReadableAddress,
            b'r' => Letter::Receiver,
            b't' => Letter::Time,
            _ => return None,
        })
    }

    const fn is_for_explanations(self) -> bool {
        matches!(self, Letter::ReadableAddress | Letter::Receiver | Letter::Time)
    }
}

impl MacroString {
    /// Reads the value of an unknown modifier: any macro string.
    pub fn parse(text: &str) -> Option<MacroString> {
        MacroString::read(text, false, true)
    }

    /// Reads an explanation: spaces and all macros.
    pub fn parse_explanation(text: &str) -> Option<MacroString> {
        MacroString::read(text, true, true)
    }

    /// Reads a `domain-spec`: it ends with a macro or a label that may be the last one of a name.
    pub fn parse_domain(text: &str) -> Option<MacroString> {
        let domain = MacroString::read(text, false, false)?;
        let ends_well = match domain.pieces.last()? {
            Piece::Literal(literal) => ends_in_top_label(literal),
            Piece::Macro(_) | Piece::Escape(_) => true,
        };
        ends_well.then_some(domain)
    }

    fn read(text: &str, spaces: bool, all_letters: bool) -> Option<MacroString> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (literal, behind) = rest.split_at(rest.find('%').unwrap_or(rest.len()));
            let is_fit = |byte: u8| matches!(byte, b'!'..=b'~') || spaces && byte == b' ';
            if !literal.bytes().all(is_fit) {
                return None;
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal.into()));
            }
            if behind.is_empty() {
                break;
            }
            let (piece, len) = Piece::read(behind, all_letters)?;
            pieces.push(piece);
            rest = &behind[len..];
        }
        Some(MacroString { pieces })
    }

    /// Expands all macros by `value`; `None` if the string becomes too long.
    ///
    /// # Errors
    /// Those of `value`.
    pub fn expand<E>(&self, mut value: impl FnMut(Letter) -> Result<String, E>) -> Result<Option<String>, E> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => out.push_str(literal),
                Piece::Escape(escape) => out.push_str(escape),
                Piece::Macro(one) => out.push_str(&one.transform(&value(one.letter)?)),
            }
            if out.len() > EXPANSION_BYTES_MAX {
                return Ok(None);
            }
        }
        Ok(Some(out))
    }
}

impl Piece {
    /// Reads the piece that begins with `%`, and its length.
    fn read(text: &str, all_letters: bool) -> Option<(Piece, usize)> {
        match text.as_bytes().get(1)? {
            b'%' => Some((Piece::Escape("%"), 2)),
            b'_' => Some((Piece::Escape(" "), 2)),
            b'-' => Some((Piece::Escape("%20"), 2)),
            b'{' => {
                let end = text.find('}')?;
                let one = Macro::parse(text.get(2..end)?)?;
                (all_letters || !one.letter.is_for_explanations()).then_some((Piece::Macro(one), end + 1))
            }
            _ => None,
        }
    }
}

impl Macro {
    fn parse(text: &str) -> Option<Macro> {
        let (&letter, _) = text.as_bytes().split_first()?;
        let rest = text.get(1..)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = rest.split_at(digits);
        let kept = match digits {
            "" => None,
            // More than there can be parts is all of them.
            digits => Some(digits.parse().unwrap_or(usize::MAX)),
        };
        let (reversed, delimiters) = match rest.strip_prefix(['r', 'R']) {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let is_fit = kept != Some(0) && delimiters.bytes().all(|byte| b".-+,/_=".contains(&byte));
        is_fit.then_some(Macro {
            letter: Letter::from_byte(letter)?,
            escaped: letter.is_ascii_uppercase(),
            kept,
            reversed,
            delimiters: if delimiters.is_empty() { ".".into() } else { delimiters.into() },
        })
    }

    /// Splits, reverses, cuts and joins.
    fn transform(&self, value: &str) -> String {
        let mut parts: Vec<&str> = value.split(|character| self.delimiters.contains(character)).collect();
        if self.reversed {
            parts.reverse();
        }
        let from = self.kept.map_or(0, |kept| parts.len().saturating_sub(kept));
        let joined = parts[from..].join(".");
        if self.escaped { escaped(&joined) } else { joined }
    }
}

/// Escapes all but the unreserved characters of URLs (RFC 3986 section 2.3).
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Whether a literal ends with a dot, a label that may be the last of a name, and perhaps a dot.
fn ends_in_top_label(literal: &str) -> bool {
    let literal = literal.strip_suffix('.').unwrap_or(literal);
    let Some((_, label)) = literal.rsplit_once('.') else { return false };
    let bytes = label.as_bytes();
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !bytes.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str) -> Option<String> {
        let value = |letter| -> Result<String, ()> {
            Ok(match letter {
                Letter::Sender => "strong-bad@email.example.com".into(),
                Letter::LocalPart => "strong-bad".into(),
                Letter::Address => "192.0.2.3".into(),
                Letter::Family => "in-addr".into(),
                _ => "email.example.com".into(),
            })
        };
        MacroString::parse(text)?.expand(value).unwrap()
    }

    /// The examples of section 7.4.
    #[test]
    fn macros_expand_as_the_rfc_says() {
        for (text, wanted) in [
            ("%{s}", "strong-bad@email.example.com"),
            ("%{d4}", "email.example.com"),
            ("%{d2}", "example.com"),
            ("%{dr}", "com.example.email"),
            ("%{d2r}", "example.email"),
            ("%{l}", "strong-bad"),
            ("%{l-}", "strong.bad"),
            ("%{lr-}", "bad.strong"),
            ("%{l1r-}", "strong"),
            ("%{ir}.%{v}._spf.%{d2}", "3.2.0.192.in-addr._spf.example.com"),
            ("%{lr-}.lp._spf.%{d2}", "bad.strong.lp._spf.example.com"),
            ("%{S}", "strong-bad%40email.example.com"),
            ("a%%b%_c%-", "a%b c%20"),
        ] {
            assert_eq!(expand(text).as_deref(), Some(wanted), "{text}");
        }
        for text in ["%", "%a", "%{", "%{}", "%{x}", "%{d0}", "%{d2x}", "%{d}%", "a b", "\u{e4}"] {
            assert_eq!(MacroString::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_domain_ends_with_a_label_or_a_macro() {
        for text in ["a.example", "a.example.", "%{d}", "x.%{d2r}", "a.b-1", "a.%{s}.x1", "a.%%"] {
            assert!(MacroString::parse_domain(text).is_some(), "{text}");
        }
        for text in ["", "example", "a.123", "a.-b", "a.b-", "%{d}example", "%{c}", "a.b_c", "a..", "a.b/24"] {
            assert!(MacroString::parse_domain(text).is_none(), "{text}");
        }
    }

    #[test]
    fn an_expansion_is_bounded() {
        assert_eq!(expand(&"%{s}".repeat(1_000)), None);
    }
}
