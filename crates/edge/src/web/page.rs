//! The page in the place of what is not passed on: the lists', or one of our own in the language of the client.

use std::fmt::Write;

use proto::http::{Framing, Response};

use super::language::Language;
use crate::porch::filter::Notice;

/// Texts of our own page. All of them may come from others.
#[derive(Debug, Clone, Copy)]
pub struct Told<'t> {
    /// The status.
    pub status: u16,
    /// A sentence.
    pub words: &'t str,
    /// The URL.
    pub url: &'t str,
    /// The id of the line in the log.
    pub id: &'t str,
    /// The language of the client.
    pub language: Language,
}

/// A response of HTTP in the place of what is not passed on.
pub fn response(notice: &Notice, told: &Told<'_>) -> (Response, Vec<u8>) {
    match notice {
        Notice::Own(link) => own(told, told.words, link.as_deref()),
        Notice::Bare => own(told, "", None),
        Notice::Page(page) => (html(told.status, page.len(), "text/html", None), page.to_vec()),
        Notice::Redirect(location) => {
            let (mut response, body) = own(&Told { status: 302, ..*told }, told.words, None);
            response.fields.push("Location", location);
            (response, body)
        }
    }
}

/// Our own page; `link` leads past the block.
fn own(told: &Told<'_>, words: &str, link: Option<&str>) -> (Response, Vec<u8>) {
    let Told { status, language, .. } = *told;
    let say = |text: &str| escaped(&language.say(text));
    let title = say(if matches!(status, 302 | 403) { "Blocked" } else { "Not available" });
    let mut body = String::new();
    let _ = write!(
        body,
        "<!DOCTYPE html>\n<html lang=\"{}\">\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>body{{font:16px/1.5 sans-serif;max-width:40em;margin:4em auto;padding:0 1em}}code{{word-break:break-all}}</style>\n\
         <h1>{title}</h1>\n<p>{}</p>\n<p><code>{}</code></p>\n",
        language.tag(),
        say(words),
        escaped(told.url),
    );
    if let Some(link) = link {
        let _ = writeln!(
            body,
            "<p><a href=\"{}\" rel=\"nofollow\">{}</a></p>",
            escaped(link),
            say("Continue all the same")
        );
    }
    let _ = write!(body, "<p>{}<code>{}</code></p>\n</html>\n", say("Reference: "), escaped(told.id));
    let policy = "default-src 'none'; style-src 'unsafe-inline'";
    (html(status, body.len(), "text/html; charset=utf-8", Some(policy)), body.into_bytes())
}

fn html(status: u16, length: usize, media_type: &str, policy: Option<&str>) -> Response {
    let mut response = Response { framing: Framing::Length(length as u64), ..Response::new(status) };
    for (name, value) in [
        ("Content-Type", media_type),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
    ] {
        response.fields.push(name, value.as_bytes());
    }
    if let Some(policy) = policy {
        response.fields.push("Content-Security-Policy", policy.as_bytes());
    }
    response
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

    const TOLD: Told<'static> =
        Told { status: 403, words: "a & b", url: "http://x/<script>\"'\n", id: "1", language: Language::English };

    fn body(notice: &Notice, told: &Told<'_>) -> String {
        String::from_utf8(response(notice, told).1).unwrap()
    }

    #[test]
    fn nothing_of_an_address_becomes_markup() {
        let page = body(&Notice::Own(Some("http://x/?\"><GBYPASS=1".into())), &TOLD);
        assert!(page.contains("http://x/&lt;script&gt;&quot;&#39;\u{fffd}") && page.contains("a &amp; b"), "{page}");
        assert!(page.contains("<a href=\"http://x/?&quot;&gt;&lt;GBYPASS=1\""), "{page}");
        assert_eq!(response(&Notice::default(), &TOLD).0.status.0, 403);
    }

    #[test]
    fn a_page_is_in_the_language_of_the_client() {
        let told = Told { words: "The server does not answer.", status: 502, language: Language::German, ..TOLD };
        let page = body(&Notice::default(), &told);
        assert!(page.contains("<html lang=\"de\">") && page.contains("<h1>Nicht verf\u{fc}gbar</h1>"), "{page}");
        assert!(page.contains("<p>Der Server antwortet nicht.</p>") && page.contains("Kennung: <code>1<"), "{page}");
    }

    #[test]
    fn other_notices_are_what_the_lists_say() {
        assert!(!body(&Notice::Bare, &TOLD).contains("a &amp; b"));
        assert_eq!(body(&Notice::Page(b"<p>"[..].into()), &TOLD), "<p>");
        let (response, _) = response(&Notice::Redirect(b"http://why/"[..].into()), &TOLD);
        assert_eq!((response.status.0, response.fields.get("location")), (302, Some(&b"http://why/"[..])));
    }
}
