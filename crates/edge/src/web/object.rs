//! Claims of HTTP heads about the object after them: its name, type and codings.

use proto::http::Fields;
use stream::{ContentCoding, Object};

/// Letters of a name or a type that are looked at.
const NAME_BYTES_MAX: usize = 255;

/// Content codings of one object. Nobody applies more than one but to hide something.
const CODINGS_MAX: usize = 3;

/// The object that follows a head with these fields, in a request for `target` or the response to it.
pub fn described(target: &[u8], fields: &Fields) -> Object {
    let content_type = fields.get("content-type");
    let charset = content_type.and_then(charset);
    let media_type = content_type.and_then(|value| value.split(|&byte| byte == b';').next());
    let media_type = media_type.map(|value| text(value.trim_ascii()).to_ascii_lowercase());
    let name = fields.get("content-disposition").and_then(file_name).or_else(|| last_segment(target));
    Object {
        media_type: media_type.filter(|media_type| !media_type.is_empty()).map(Into::into),
        charset: charset.map(Into::into),
        name: name.map(Into::into),
        content_codings: codings(fields).unwrap_or_default().into(),
        ..Object::default()
    }
}

/// The content codings that the fields name and that change the bytes, in their order; none if one of them is not known, or if there are too many.
pub fn codings(fields: &Fields) -> Option<Vec<ContentCoding>> {
    let mut codings = Vec::new();
    for name in fields.elements("content-encoding") {
        codings.push(match &*name.to_ascii_lowercase() {
            b"gzip" | b"x-gzip" => ContentCoding::Gzip,
            b"deflate" => ContentCoding::Deflate,
            b"br" => ContentCoding::Brotli,
            b"zstd" => ContentCoding::Zstd,
            b"identity" => continue,
            // Names of stores and charsets, which no browser knows: it shows the bytes as they are, and so they are inspected.
            b"none" | b"binary" | b"7bit" | b"8bit" | b"utf-8" | b"utf8" | b"aws-chunked" => continue,
            _ => return None,
        });
    }
    Some(codings).filter(|codings| codings.len() <= CODINGS_MAX)
}

/// The name of a coding, as it stands in a field.
pub const fn coding_name(coding: ContentCoding) -> &'static str {
    match coding {
        ContentCoding::Gzip => "gzip",
        ContentCoding::Deflate => "deflate",
        ContentCoding::Brotli => "br",
        ContentCoding::Zstd => "zstd",
    }
}

/// The parameter `charset` of a type, in lower case.
fn charset(content_type: &[u8]) -> Option<String> {
    let parameters = content_type.split(|&byte| byte == b';').skip(1).map(<[u8]>::trim_ascii);
    let value = |parameter: &[u8]| {
        let (name, value) = parameter.split_at_checked(b"charset=".len())?;
        name.eq_ignore_ascii_case(b"charset=").then(|| text(value).trim_matches(['"', '\'', ' ']).to_ascii_lowercase())
    };
    parameters.filter_map(value).find(|value| !value.is_empty())
}

/// The name that a browser gives the file.
fn file_name(disposition: &[u8]) -> Option<String> {
    file_names(disposition).into_iter().flatten().next()
}

/// The values of `filename*`, percent-decoded, and of `filename`, quoted or not (RFC 6266).
pub fn file_names(disposition: &[u8]) -> [Option<String>; 2] {
    let parameters = || disposition.split(|&byte| byte == b';').skip(1).map(<[u8]>::trim_ascii);
    let value = |name: &[u8]| {
        parameters().find_map(|parameter| {
            let (found, value) = parameter.split_at_checked(name.len())?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    };
    let extended = value(b"filename*=").and_then(|value| value.splitn(3, |&byte| byte == b'\'').nth(2)).map(decoded);
    let plain = value(b"filename=").map(|value| text(value.trim_ascii()).trim_matches('"').to_owned());
    [extended, plain].map(|name| name.filter(|name| !name.is_empty()))
}

/// The last part of a path, without its query.
fn last_segment(target: &[u8]) -> Option<String> {
    let path = target.split(|&byte| matches!(byte, b'?' | b'#')).next()?;
    let behind_scheme = path.windows(3).position(|three| three == b"://").map_or(path, |at| &path[at + 3..]);
    let slash = behind_scheme.iter().rposition(|&byte| byte == b'/')?;
    Some(decoded(&behind_scheme[slash + 1..])).filter(|name| !name.is_empty())
}

/// Percent-decoded.
fn decoded(value: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&first, behind)) = rest.split_first() {
        let digit = |at: usize| behind.get(at).and_then(|&byte| char::from(byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high << 4 | low) as u8);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    text(&bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(NAME_BYTES_MAX)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_the_browser_would_give_the_file() {
        for (target, name) in [
            ("http://o.test/a/b%20c.exe?x=/y", Some("b c.exe")),
            ("http://o.test/", None),
            ("http://o.test", None),
            ("o.test:443", None),
            ("/x", Some("x")),
        ] {
            assert_eq!(last_segment(target.as_bytes()).as_deref(), name, "{target}");
        }
        for (disposition, name) in [
            ("attachment; filename=\"a b.zip\"", Some("a b.zip")),
            ("attachment;FILENAME=x.com ", Some("x.com")),
            ("attachment; filename=x; filename*=UTF-8''%c3%bc.exe", Some("\u{fc}.exe")),
            ("inline", None),
            ("attachment; filename=\"\"", None),
        ] {
            assert_eq!(file_name(disposition.as_bytes()).as_deref(), name, "{disposition}");
        }
        assert_eq!(charset(b"text/html; x=1; Charset=\"KOI8-R\"").as_deref(), Some("koi8-r"));
        let both = file_names(b"attachment; filename=\"a.exe\"; filename*=UTF-8''b.txt");
        assert_eq!(both, [Some("b.txt".into()), Some("a.exe".into())]);
    }
}
