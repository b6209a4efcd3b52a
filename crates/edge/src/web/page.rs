//! The page in the place of what is not passed on.

use std::fmt::Write;

use proto::http::{Framing, Response};

/// A response of HTTP with a page that says this.
pub fn blocked(status: u16, title: &str, reason: &str, url: &str, id: &str) -> (Response, Vec<u8>) {
    let mut body = String::new();
    let _ = write!(
        body,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>body{{font:16px/1.5 sans-serif;max-width:40em;margin:4em auto;padding:0 1em}}code{{word-break:break-all}}</style>\n\
         <h1>{title}</h1>\n<p>{}</p>\n<p><code>{}</code></p>\n<p>Reference: <code>{}</code></p>\n</html>\n",
        escaped(reason),
        escaped(url),
        escaped(id),
    );
    let mut response = Response { framing: Framing::Length(body.len() as u64), ..Response::new(status) };
    for (name, value) in [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),
    ] {
        response.fields.push(name, value.as_bytes());
    }
    (response, body.into_bytes())
}

/// Text of somebody else's, as text of a page.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter if letter.is_control() => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_address_becomes_markup() {
        let (response, body) = blocked(403, "Blocked", "a & b", "http://x/<script>\"'\n", "1");
        let body = String::from_utf8(body).unwrap();
        assert!(body.contains("http://x/&lt;script&gt;&quot;&#39;\u{fffd}") && body.contains("a &amp; b"), "{body}");
        assert_eq!(response.status.0, 403);
    }
}
