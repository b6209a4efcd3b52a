//! What a head of HTTP says of the object behind it: its name, type and coding. All of it is a claim.

use proto::icap::Head;
use stream::Object;

/// Letters of a name or a type that are looked at.
const NAME_BYTES_MAX: usize = 255;

/// The object that follows these heads.
pub fn described(request: Option<&Head>, subject: Option<&Head>) -> Object {
    let field = |name| subject.and_then(|head| head.fields.get(name));
    let media_type = field("content-type").and_then(|value| value.split(|&byte| byte == b';').next());
    let media_type = media_type.map(|value| text(value.trim_ascii()).to_ascii_lowercase());
    let target = request.map(Head::second_word).unwrap_or_default();
    let named = field("content-disposition").and_then(file_name).or_else(|| last_segment(target));
    let name = match field("content-encoding").map(<[u8]>::trim_ascii) {
        // It has no mark at its beginning: by this name it is known.
        Some(coding) if coding.eq_ignore_ascii_case(b"br") => Some(named.unwrap_or_default() + ".br"),
        _ => named,
    };
    Object {
        media_type: media_type.filter(|media_type| !media_type.is_empty()).map(Into::into),
        name: name.map(Into::into),
        ..Object::default()
    }
}

/// The value of `filename`, quoted or not (RFC 6266); the extended form is percent-decoded.
fn file_name(disposition: &[u8]) -> Option<String> {
    let parameters = || disposition.split(|&byte| byte == b';').skip(1).map(<[u8]>::trim_ascii);
    let value = |name: &[u8]| {
        parameters().find_map(|parameter| {
            let (found, value) = parameter.split_at_checked(name.len())?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    };
    let name = match value(b"filename*=") {
        Some(extended) => decoded(extended.splitn(3, |&byte| byte == b'\'').nth(2)?),
        None => text(value(b"filename=")?.trim_ascii()).trim_matches('"').to_owned(),
    };
    Some(name).filter(|name| !name.is_empty())
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
    }
}
