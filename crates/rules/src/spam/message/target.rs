//! Relative addresses made whole (RFC 3986, section 5.2, not strict).

/// An address in its pieces.
#[derive(Debug, Clone, Copy, Default)]
struct Pieces<'a> {
    scheme: Option<&'a [u8]>,
    authority: Option<&'a [u8]>,
    path: &'a [u8],
    query: Option<&'a [u8]>,
    fragment: Option<&'a [u8]>,
}

fn run(bytes: &[u8], stops: &[u8]) -> usize {
    bytes.iter().take_while(|byte| !stops.contains(byte)).count()
}

impl<'a> Pieces<'a> {
    fn read(uri: &'a [u8]) -> Pieces<'a> {
        let mut pieces = Pieces::default();
        let mut rest = uri;
        let length = run(rest, b":/?#");
        if length > 0 && rest.get(length) == Some(&b':') {
            pieces.scheme = Some(&rest[..length]);
            rest = &rest[length + 1..];
        }
        if let Some(behind) = rest.strip_prefix(b"//") {
            let length = run(behind, b"/?#");
            pieces.authority = Some(&behind[..length]);
            rest = &behind[length..];
        }
        let length = run(rest, b"?#");
        pieces.path = &rest[..length];
        rest = &rest[length..];
        if let Some(behind) = rest.strip_prefix(b"?") {
            let length = run(behind, b"#");
            pieces.query = Some(&behind[..length]);
            rest = &behind[length..];
        }
        if let Some(behind) = rest.strip_prefix(b"#") {
            pieces.fragment = Some(&behind[..run(behind, b"\n")]);
        }
        pieces
    }
}

/// Resolves `uri` on a page whose base is `base`.
pub(super) fn resolved(base: &[u8], uri: &[u8]) -> Vec<u8> {
    let mut relative = Pieces::read(uri);
    let base = Pieces::read(base);
    if relative.scheme.is_some() && relative.scheme == base.scheme {
        relative.scheme = None;
    }
    let (scheme, authority, path, query) = if relative.scheme.is_some() {
        (relative.scheme, relative.authority, without_dots(relative.path), relative.query)
    } else if relative.authority.is_some() {
        (base.scheme, relative.authority, without_dots(relative.path), relative.query)
    } else if relative.path.is_empty() {
        (base.scheme, base.authority, base.path.to_vec(), relative.query.or(base.query))
    } else if relative.path.starts_with(b"/") {
        (base.scheme, base.authority, without_dots(relative.path), relative.query)
    } else {
        (base.scheme, base.authority, without_dots(&merged(&base, relative.path)), relative.query)
    };
    joined(scheme, authority, &path, query, relative.fragment)
}

fn joined(
    scheme: Option<&[u8]>,
    authority: Option<&[u8]>,
    path: &[u8],
    query: Option<&[u8]>,
    fragment: Option<&[u8]>,
) -> Vec<u8> {
    let mut out = Vec::new();
    match (scheme.filter(|scheme| *scheme != b"0"), authority) {
        (Some(scheme), _) => {
            out.extend_from_slice(scheme);
            out.push(b':');
        }
        (None, Some(authority)) if is_numbered(authority, b"www") => out.extend_from_slice(b"http:"),
        (None, Some(authority)) if is_numbered(authority, b"ftp") => out.extend_from_slice(b"ftp:"),
        _ => {}
    }
    if let Some(authority) = authority {
        out.extend_from_slice(b"//");
        out.extend_from_slice(authority);
    }
    out.extend_from_slice(path);
    for (mark, piece) in [(b'?', query), (b'#', fragment)] {
        if let Some(piece) = piece {
            out.push(mark);
            out.extend_from_slice(piece);
        }
    }
    out
}

/// `www.`, `www2.`
fn is_numbered(authority: &[u8], prefix: &[u8]) -> bool {
    if !super::perl::begins(authority, prefix) {
        return false;
    }
    let rest = &authority[prefix.len()..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest.get(digits) == Some(&b'.')
}

fn merged(base: &Pieces<'_>, path: &[u8]) -> Vec<u8> {
    if base.authority.is_some() && matches!(base.path, b"" | b"0") {
        return [b"/", path].concat();
    }
    let end = base.path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    [&base.path[..end], path].concat()
}

/// `.` and `..` followed.
fn without_dots(path: &[u8]) -> Vec<u8> {
    let mut rest = path;
    // A leading `./` or `../` is the root.
    for dots in [&b"./"[..], b"../"] {
        if rest.starts_with(dots) {
            rest = &rest[dots.len() - 1..];
            break;
        }
    }
    let mut out: Vec<u8> = Vec::with_capacity(rest.len());
    while !rest.is_empty() && rest != b"0" {
        if let Some(behind) = segment(rest, b"/.") {
            rest = behind;
        } else if let Some(behind) = segment(rest, b"/..") {
            rest = behind;
            let end = out.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            out.truncate(end);
        } else {
            let length = 1 + run(&rest[1..], b"/");
            out.extend_from_slice(&rest[..length]);
            rest = &rest[length..];
        }
    }
    out
}

/// The path behind a segment of dots, with a slash before it; at the end of the path that slash alone.
fn segment<'a>(path: &'a [u8], dots: &[u8]) -> Option<&'a [u8]> {
    let behind = path.strip_prefix(dots)?;
    match behind.first() {
        None => Some(b"/"),
        Some(b'/') => Some(behind),
        Some(_) => None,
    }
}

/// Base of a page, if it counts: without a file's name, with a slash at its end.
pub(super) fn base(uri: &[u8]) -> Option<Vec<u8>> {
    let scheme = ["https:", "http:", "ftp:"].iter().find(|scheme| super::perl::begins(uri, scheme.as_bytes()))?;
    let mut out = uri.to_vec();
    let slashes = uri[scheme.len()..].iter().take(2).take_while(|byte| **byte == b'/').count();
    let host = scheme.len() + slashes;
    let name = uri.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let has_host = host + run(&uri[host..], b"/") < uri.len() && name > host + 1;
    let dots: Vec<usize> = (name..uri.len()).filter(|at| uri[*at] == b'.').collect();
    if let (true, Some(&dot)) = (has_host, dots.last())
        && (2..=4).contains(&(uri.len() - dot - 1))
    {
        // Only behind the last dot but one.
        let begin = dots.iter().rev().nth(1).map_or(name, |at| at + 1);
        if dot > begin {
            out.truncate(begin);
        }
    }
    if out.last() != Some(&b'/') {
        out.push(b'/');
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(base: &str, uri: &str) -> String {
        String::from_utf8(resolved(base.as_bytes(), uri.as_bytes())).unwrap()
    }

    #[test]
    fn relative_addresses_are_made_whole() {
        assert_eq!(resolve("http://a/b/c/d?q", "g"), "http://a/b/c/g");
        assert_eq!(resolve("http://a/b/c/d?q", "../g/./h/../i/."), "http://a/b/g/i/");
        assert_eq!(resolve("http://a/b/c/d?q", "?y"), "http://a/b/c/d?y");
        assert_eq!(resolve("http://a/b/c/d?q", "//g/x#f"), "http://g/x#f");
        assert_eq!(resolve("http://a", "g"), "http://a/g");
        assert_eq!(resolve("", "//www.a.b/c"), "http://www.a.b/c");
        assert_eq!(resolve("", "a/b"), "a/b");
        assert_eq!(resolve("http://a/", "http:g"), "http://a/g");
        assert_eq!(resolve("", "http://a/../b/"), "http://a/b/");
    }

    #[test]
    fn a_base_is_a_folder() {
        assert_eq!(base(b"http://a.com/b/index.html").unwrap(), b"http://a.com/b/");
        assert_eq!(base(b"http://a.com").unwrap(), b"http://a.com/");
        assert_eq!(base(b"x/y"), None);
    }
}
