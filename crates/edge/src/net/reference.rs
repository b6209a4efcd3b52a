//! References of redirections: where the `Location` of a response leads.

/// The URL that a reference in a response to a URL leads to; none if it is of a scheme that is not followed (RFC 3986, section 5.2.2).
/// Dots in a path are left to the server.
pub(super) fn moved(from: &str, reference: &str) -> Option<String> {
    let reference = reference.split('#').next().unwrap_or_default();
    let (scheme, rest) = from.split_once("://")?;
    let rest = rest.split('#').next().unwrap_or_default();
    let path_at = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(path_at);
    let path = path.split('?').next().unwrap_or_default();
    let head = reference.split(['/', '?']).next().unwrap_or_default();
    if let Some((other, _)) = head.split_once(':') {
        let is_followed = ["http", "https"].iter().any(|known| other.eq_ignore_ascii_case(known));
        return (is_followed && reference[other.len()..].starts_with("://")).then(|| reference.to_owned());
    }
    Some(match reference.as_bytes() {
        [] => from.split('#').next()?.to_owned(),
        [b'/', b'/', ..] => format!("{scheme}:{reference}"),
        [b'/', ..] => format!("{scheme}://{authority}{reference}"),
        [b'?', ..] => format!("{scheme}://{authority}{path}{reference}"),
        _ => format!("{scheme}://{authority}{}/{reference}", path.rsplit_once('/').map_or("", |(folder, _)| folder)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_leads_where_its_scheme_and_its_path_say() {
        for (from, reference, wanted) in [
            ("http://a.example/r/x?q", "http://b.example/y#z", Some("http://b.example/y")),
            ("http://a.example/r/x?q", "HTTPS://b.example", Some("HTTPS://b.example")),
            ("http://a.example/r/x?q", "//b.example/y", Some("http://b.example/y")),
            ("https://a.example/r/x?q", "/y?b=c:d", Some("https://a.example/y?b=c:d")),
            ("http://a.example/r/x?q", "y/z", Some("http://a.example/r/y/z")),
            ("http://a.example?q", "y", Some("http://a.example/y")),
            ("http://a.example/r/x?q", "?p", Some("http://a.example/r/x?p")),
            ("http://a.example/r/x?q#f", "", Some("http://a.example/r/x?q")),
            ("http://a.example/r/x", "file:///etc/passwd", None),
            ("http://a.example/r/x", "javascript:x", None),
            ("http://a.example/r/x", "http:y", None),
            ("http://a.example/r/x", "gopher://b.example/", None),
        ] {
            assert_eq!(moved(from, reference).as_deref(), wanted, "{reference}");
        }
    }
}
