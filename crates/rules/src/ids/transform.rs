//! Transforms: buffers that rules derive from others.

use core::fmt;
use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

use pattern::expression::{Expression, Flags, Progress, Want};
use stream::Fuel;

use super::lexer::{items, quoted, text};
use crate::web::Suffixes;

/// The most bytes that a transform makes.
const BYTES_MAX: usize = 1 << 20;
/// Steps that an expression may take.
const STEPS_MAX: u64 = 1_000_000;
/// Labels at the end of a name that may be its public suffix.
const LABELS_MAX: usize = 10;

/// A transform.
#[derive(Debug, Clone)]
pub(super) enum Transform {
    DotPrefix,
    ToLowercase,
    ToUppercase,
    UrlDecode,
    StripWhitespace,
    CompressWhitespace,
    Xor(Vec<u8>),
    Md5,
    Sha1,
    Sha256,
    Base64 {
        mode: Base64Mode,
        offset: usize,
        bytes: Option<usize>,
    },
    Pcre(Box<Expression>),
    HeaderLowercase,
    StripPseudoHeaders,
    Domain(PublicSuffixes),
    Tld(PublicSuffixes),
    Gunzip(usize),
    Zlib(usize),
    /// The values of one field of a head.
    Field(Box<str>),
    Uri(UriPart),
}

/// A part of a URI, as Snort 3 names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UriPart {
    Scheme,
    Host,
    Port,
    Path,
    Query,
    Fragment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base64Mode {
    /// Stops at the first byte that is not of the alphabet.
    Rfc4648,
    /// Passes such bytes over.
    Rfc2045,
    /// Decodes nothing where there is one.
    Strict,
}

impl PartialEq for Transform {
    fn eq(&self, other: &Transform) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl Transform {
    /// Reads one; none where the keyword is not that of a transform.
    pub fn read(name: &str, value: Option<&[u8]>) -> Option<Result<Transform, String>> {
        Some(Ok(match name {
            "dotprefix" => Transform::DotPrefix,
            "to_lowercase" => Transform::ToLowercase,
            "to_uppercase" => Transform::ToUppercase,
            "url_decode" => Transform::UrlDecode,
            "strip_whitespace" => Transform::StripWhitespace,
            "compress_whitespace" => Transform::CompressWhitespace,
            "to_md5" => Transform::Md5,
            "to_sha1" => Transform::Sha1,
            "to_sha256" => Transform::Sha256,
            "header_lowercase" => Transform::HeaderLowercase,
            "strip_pseudo_headers" => Transform::StripPseudoHeaders,
            "domain" => Transform::Domain(PublicSuffixes::default()),
            "tld" => Transform::Tld(PublicSuffixes::default()),
            "xor" => return Some(xor(value.unwrap_or_default())),
            "from_base64" => return Some(base64(value.unwrap_or_default())),
            "gunzip" => return Some(max_size(value).map(Transform::Gunzip)),
            "zlib_deflate" => return Some(max_size(value).map(Transform::Zlib)),
            "pcrexform" => return Some(expression(value.unwrap_or_default())),
            _ => return None,
        }))
    }

    /// The part of a URI that has a name.
    pub fn part_of_uri(name: &str) -> Option<Transform> {
        Some(Transform::Uri(match name {
            "scheme" => UriPart::Scheme,
            "host" => UriPart::Host,
            "port" => UriPart::Port,
            "path" => UriPart::Path,
            "query" => UriPart::Query,
            "fragment" => UriPart::Fragment,
            _ => return None,
        }))
    }

    /// Gives it the public suffixes that a host has, if it asks for them.
    pub fn with_suffixes(self, suffixes: &Arc<Suffixes>) -> Transform {
        match self {
            Transform::Domain(_) => Transform::Domain(PublicSuffixes(suffixes.clone())),
            Transform::Tld(_) => Transform::Tld(PublicSuffixes(suffixes.clone())),
            other => other,
        }
    }

    /// The keyword.
    pub fn name(&self) -> &'static str {
        match self {
            Transform::DotPrefix => "dotprefix",
            Transform::ToLowercase => "to_lowercase",
            Transform::ToUppercase => "to_uppercase",
            Transform::UrlDecode => "url_decode",
            Transform::StripWhitespace => "strip_whitespace",
            Transform::CompressWhitespace => "compress_whitespace",
            Transform::Xor(_) => "xor",
            Transform::Md5 => "to_md5",
            Transform::Sha1 => "to_sha1",
            Transform::Sha256 => "to_sha256",
            Transform::Base64 { .. } => "from_base64",
            Transform::Pcre(_) => "pcrexform",
            Transform::HeaderLowercase => "header_lowercase",
            Transform::StripPseudoHeaders => "strip_pseudo_headers",
            Transform::Domain(_) => "domain",
            Transform::Tld(_) => "tld",
            Transform::Gunzip(_) => "gunzip",
            Transform::Zlib(_) => "zlib_deflate",
            Transform::Field(_) => "field",
            Transform::Uri(part) => part.name(),
        }
    }

    /// Whether a text may be in what it derives.
    fn may_have(&self, text: &[u8]) -> bool {
        match self {
            Transform::ToLowercase => !text.iter().any(u8::is_ascii_uppercase),
            Transform::ToUppercase => !text.iter().any(u8::is_ascii_lowercase),
            Transform::StripWhitespace => !text.iter().any(|byte| is_blank(*byte)),
            Transform::CompressWhitespace => !text.windows(2).any(|pair| pair.iter().all(|byte| is_blank(*byte))),
            _ => true,
        }
    }

    /// Whether it takes bytes out and leaves the others as they are.
    fn takes_out(&self) -> bool {
        matches!(self, Transform::StripWhitespace | Transform::CompressWhitespace)
    }

    /// The derived buffer; none where there is none.
    fn apply(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        Some(match self {
            Transform::DotPrefix => [b".", bytes].concat(),
            Transform::ToLowercase => bytes.to_ascii_lowercase(),
            Transform::ToUppercase => bytes.to_ascii_uppercase(),
            Transform::UrlDecode => url_decoded(bytes),
            Transform::StripWhitespace => bytes.iter().copied().filter(|byte| !is_blank(*byte)).collect(),
            Transform::CompressWhitespace => compressed(bytes),
            Transform::Xor(key) => bytes.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect(),
            Transform::Md5 => digest::md5::digest(bytes).to_vec(),
            Transform::Sha1 => digest::sha1::digest(bytes).to_vec(),
            Transform::Sha256 => digest::sha256::digest(bytes).to_vec(),
            Transform::Base64 { mode, offset, bytes: count } => from_base64(bytes, *mode, *offset, *count),
            // As in Suricata, a text without a match stays as it is.
            Transform::Pcre(expression) => captured(expression, bytes).unwrap_or(bytes).to_vec(),
            Transform::HeaderLowercase => lower_names(bytes),
            Transform::StripPseudoHeaders => {
                let lines = bytes.split_inclusive(|&byte| byte == b'\n');
                lines.filter(|line| !line.starts_with(b":")).collect::<Vec<_>>().concat()
            }
            Transform::Domain(suffixes) => suffixes.domain(bytes).unwrap_or(bytes).to_vec(),
            Transform::Tld(suffixes) => suffixes.suffix(bytes).unwrap_or(bytes).to_vec(),
            Transform::Gunzip(max) => inflated(flate2::read::MultiGzDecoder::new(bytes), *max)?,
            Transform::Zlib(max) => inflated(flate2::read::ZlibDecoder::new(bytes), *max)?,
            Transform::Field(name) => field(bytes, name.as_bytes())?,
            Transform::Uri(part) => part.of(bytes)?.to_vec(),
        })
    }
}

/// Applies some, one after the other.
pub(super) fn apply_all<'a>(transforms: &[Transform], input: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    transforms.iter().try_fold(Cow::Borrowed(input), |input, transform| transform.apply(&input).map(Cow::Owned))
}

/// The transform because of which a text is never in what some make, one after the other.
pub(super) fn excluding<'t>(transforms: &'t [Transform], text: &[u8]) -> Option<&'t Transform> {
    let deciding = transforms.iter().rposition(|transform| !transform.takes_out()).unwrap_or(0);
    transforms.get(deciding..)?.iter().find(|transform| !transform.may_have(text))
}

impl UriPart {
    fn name(self) -> &'static str {
        match self {
            UriPart::Scheme => "scheme",
            UriPart::Host => "host",
            UriPart::Port => "port",
            UriPart::Path => "path",
            UriPart::Query => "query",
            UriPart::Fragment => "fragment",
        }
    }

    fn of(self, uri: &[u8]) -> Option<&[u8]> {
        let (uri, fragment) = cut(uri, b'#');
        let (uri, query) = cut(uri, b'?');
        let scheme = memchr::memmem::find(uri, b"://").filter(|at| !uri[..*at].contains(&b'/'));
        let (authority, path) = match scheme {
            Some(at) => {
                let rest = &uri[at + 3..];
                let (authority, path) = rest.split_at(memchr::memchr(b'/', rest).unwrap_or(rest.len()));
                (authority.rsplit(|&byte| byte == b'@').next(), path)
            }
            None => (None, uri),
        };
        // An address of version 6 has colons inside its brackets.
        let port_at = |authority: &[u8]| {
            let colon = memchr::memrchr(b':', authority)?;
            (!authority[colon..].contains(&b']')).then_some(colon)
        };
        match self {
            UriPart::Scheme => Some(&uri[..scheme?]),
            UriPart::Host => authority.map(|all| port_at(all).map_or(all, |colon| &all[..colon])),
            UriPart::Port => authority.and_then(|all| Some(&all[port_at(all)? + 1..])),
            UriPart::Path => (!path.is_empty()).then_some(path),
            UriPart::Query => query,
            UriPart::Fragment => fragment,
        }
    }
}

/// A text up to a byte, and what stands behind it.
fn cut(text: &[u8], at: u8) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(at, text) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// The values of a field in a head, with commas between them.
fn field(head: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let lines = head.split(|&byte| byte == b'\n').map(|line| cut(line, b':'));
    let of_name = lines.filter(|(first, _)| first.trim_ascii().eq_ignore_ascii_case(name));
    let values: Vec<&[u8]> = of_name.filter_map(|(_, value)| Some(value?.trim_ascii())).collect();
    (!values.is_empty()).then(|| values.join(&b','))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    out.dedup_by(|next, before| is_blank(*next) && is_blank(*before));
    out
}

fn url_decoded(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        let pair = bytes.get(at..at + 2).and_then(|pair| Some(hex(pair[0])? << 4 | hex(pair[1])?));
        out.push(match (byte, pair) {
            (b'%', Some(value)) => {
                at += 2;
                value
            }
            (b'+', _) => b' ',
            _ => byte,
        });
    }
    out
}

/// The value of a hexadecimal digit.
pub(super) fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Fields with their names in lower case.
fn lower_names(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let name = line.iter().skip(1).position(|&byte| byte == b':').map_or(0, |at| at + 1);
        out.extend(line[..name].to_ascii_lowercase());
        out.extend(&line[name..]);
    }
    out
}

/// The public suffixes of all names.
#[derive(Clone, Default)]
pub(super) struct PublicSuffixes(Arc<Suffixes>);

impl fmt::Debug for PublicSuffixes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("PublicSuffixes")
    }
}

impl PublicSuffixes {
    /// The public suffix of a name, and the name with one more label; none where the name is a suffix itself.
    fn split<'a>(&self, name: &'a [u8]) -> Option<[&'a [u8]; 2]> {
        let lower = name.to_ascii_lowercase();
        if self.0.has(&lower) {
            return None;
        }
        let mut dots: Vec<usize> = memchr::memrchr_iter(b'.', name).take(LABELS_MAX).collect();
        dots.reverse();
        // In front of the first dot that counts stands a label of the domain.
        let at = dots.iter().position(|dot| self.0.has(&lower[dot + 1..]))?;
        let start = match at.checked_sub(1) {
            Some(before) => dots[before] + 1,
            None if dots.len() < LABELS_MAX => 0,
            None => return None,
        };
        Some([&name[dots[at] + 1..], &name[start..]])
    }

    fn suffix<'a>(&self, name: &'a [u8]) -> Option<&'a [u8]> {
        self.split(name).map(|[suffix, _]| suffix)
    }

    fn domain<'a>(&self, name: &'a [u8]) -> Option<&'a [u8]> {
        self.split(name).map(|[_, domain]| domain)
    }
}

fn inflated(reader: impl Read, max: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    // What was decoded in front of a fault is looked at.
    let _ = reader.take(max as u64).read_to_end(&mut out);
    (!out.is_empty()).then_some(out)
}

/// Decodes Base64 from an offset.
fn from_base64(bytes: &[u8], mode: Base64Mode, offset: usize, count: Option<usize>) -> Vec<u8> {
    let input = bytes.get(offset..).unwrap_or_default();
    let input = &input[..count.unwrap_or(input.len()).min(input.len())];
    let is_digit = |byte: &u8| text::base64::value(*byte).is_some();
    let digits: Vec<u8> = match mode {
        Base64Mode::Rfc4648 => input.iter().copied().take_while(is_digit).collect(),
        Base64Mode::Rfc2045 => input.iter().copied().take_while(|byte| *byte != b'=').filter(is_digit).collect(),
        Base64Mode::Strict => {
            let end = input.iter().rposition(|byte| *byte != b'=').map_or(0, |at| at + 1);
            if !input[..end].iter().all(is_digit) || input.len() % 4 != 0 {
                return Vec::new();
            }
            input[..end].to_vec()
        }
    };
    text::base64::decode(digits).unwrap_or_default()
}

fn captured<'a>(expression: &Expression, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let mut search = expression.search(Want::Groups);
    match search.run(bytes, &mut Fuel::new(STEPS_MAX)) {
        Progress::Match(_) => bytes.get(search.group(1)?),
        _ => None,
    }
}

fn expression(value: &[u8]) -> Result<Transform, String> {
    let (text, _) = quoted(value)?;
    if groups(text) != 1 {
        return Err("needs an expression with one group".into());
    }
    let expression = Expression::new(text, Flags::NONE).map_err(|error| error.to_string())?;
    Ok(Transform::Pcre(Box::new(expression)))
}

/// How many groups of an expression capture.
fn groups(expression: &[u8]) -> usize {
    let (mut count, mut in_class, mut at) = (0, false, 0);
    while let Some(&byte) = expression.get(at) {
        match byte {
            b'\\' => at += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'(' if !in_class => {
                let rest = &expression[at + 1..];
                let is_named =
                    rest.starts_with(b"?P<") || rest.starts_with(b"?<") && !matches!(rest.get(2), Some(b'=' | b'!'));
                count += usize::from(!rest.starts_with(b"?") && !rest.starts_with(b"*") || is_named);
            }
            _ => {}
        }
        at += 1;
    }
    count
}

fn xor(value: &[u8]) -> Result<Transform, String> {
    let (text, _) = quoted(value)?;
    let pair = |pair: &[u8]| Some(hex(*pair.first()?)? << 4 | hex(*pair.get(1)?)?);
    let key: Option<Vec<u8>> = text.chunks(2).map(pair).collect();
    key.filter(|key| !key.is_empty()).map(Transform::Xor).ok_or_else(|| "the key is not hexadecimal".into())
}

fn max_size(value: Option<&[u8]>) -> Result<usize, String> {
    let Some(value) = value else { return Ok(BYTES_MAX) };
    let size = text(value);
    let size = size.trim().strip_prefix("max-size").ok_or("not max-size")?.trim().parse::<usize>();
    size.map(|size| size.min(BYTES_MAX)).map_err(|error| error.to_string())
}

fn base64(value: &[u8]) -> Result<Transform, String> {
    let (mut mode, mut offset, mut bytes) = (Base64Mode::Rfc4648, 0, None);
    for item in items(value).filter(|item| !item.is_empty()) {
        let item = text(item);
        let (name, value) = item.split_once(char::is_whitespace).ok_or("a name without a value")?;
        let value = value.trim();
        let number = || value.parse::<usize>().map_err(|error| error.to_string());
        match (name, value.to_ascii_lowercase().as_str()) {
            ("offset", _) => offset = number()?,
            ("bytes", _) => bytes = Some(number()?),
            ("mode", "rfc4648") => mode = Base64Mode::Rfc4648,
            ("mode", "rfc2045") => mode = Base64Mode::Rfc2045,
            ("mode", "strict") => mode = Base64Mode::Strict,
            _ => return Err(format!("{item} is not known")),
        }
    }
    Ok(Transform::Base64 { mode, offset, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, value: Option<&[u8]>, input: &[u8]) -> Vec<u8> {
        let transform = Transform::read(name, value).expect("a transform").expect("a value");
        transform.apply(input).unwrap_or_default()
    }

    #[test]
    fn transforms_derive_what_they_are_named_for() {
        assert_eq!(run("dotprefix", None, b"a.test"), b".a.test");
        assert_eq!(run("compress_whitespace", None, b"a \t b"), b"a b");
        assert_eq!(run("url_decode", None, b"a%41%zz+b"), b"aA%zz b");
        assert_eq!(run("domain", None, b"www.a.test"), b"a.test");
        assert_eq!(
            (run("domain", None, b"a.B.co.uk"), run("tld", None, b"a.B.co.uk")),
            (b"B.co.uk".to_vec(), b"co.uk".to_vec())
        );
        assert_eq!((run("domain", None, b"co.uk"), run("tld", None, b"com")), (b"co.uk".to_vec(), b"com".to_vec()));
        let suffixes = Arc::new(Suffixes::read("test\nhost.test\n"));
        let domain = Transform::Domain(PublicSuffixes::default()).with_suffixes(&suffixes);
        assert_eq!(domain.apply(b"a.b.host.test"), Some(b"b.host.test".to_vec()));
        assert_eq!(run("xor", Some(b"\"20\""), b"abc"), b"ABC");
        assert_eq!(run("from_base64", Some(b"offset 2, bytes 4"), b"xxYWJj..."), b"abc");
        assert_eq!(run("pcrexform", Some(b"\"a(.)c\""), b"xabcx"), b"b");
        assert_eq!(run("pcrexform", Some(b"\"a(.)c\""), b"xyz"), b"xyz");
        assert_eq!(run("header_lowercase", None, b"Host: A\r\nX-Y: B\r\n"), b"host: A\r\nx-y: B\r\n");
    }
}
