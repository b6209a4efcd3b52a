//! Redirects: the URL of the page that a blocked client is sent to, with `%u` and others filled in.

use std::collections::HashMap;

use crate::web::request::Request;
use crate::web::template::{cut, encoded};

/// The redirects of a branch.
#[derive(Debug, Default)]
pub(in crate::web) struct Redirects {
    /// That of the branch, or of `default`.
    pub own: Option<Box<str>>,
    /// Those of destinations, which come first.
    pub of_destinations: HashMap<Box<str>, Box<str>>,
}

/// A blocked request, with the source of its client and the destination that it is of.
pub(in crate::web) struct Block<'b> {
    pub request: &'b Request<'b>,
    pub source: &'b str,
    pub destination: &'b str,
}

/// A redirect as it stands in the file, without its status; `None` where it is no URL of HTTP.
pub(super) fn address(text: &str) -> Option<Box<str>> {
    let text = text.strip_prefix("301:").or_else(|| text.strip_prefix("302:")).unwrap_or(text);
    let is_url = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
    (is_url && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| text.into())
}

impl Redirects {
    /// The URL for a blocked client; `None` where the configuration has none.
    pub fn url(&self, block: &Block<'_>) -> Option<String> {
        let address = self.of_destinations.get(block.destination).or(self.own.as_ref())?;
        Some(filled(address, block))
    }
}

/// A redirect with its escapes filled in. Those that are not known stay.
fn filled(address: &str, block: &Block<'_>) -> String {
    let url = cut(block.request.url);
    let mut filled = String::with_capacity(address.len() + url.len());
    let mut rest = address;
    while let Some((text, after)) = rest.split_once('%') {
        filled += text;
        let mut letters = after.chars();
        rest = match value(letters.next(), url, block) {
            Some(value) => {
                filled += &value;
                letters.as_str()
            }
            None => {
                filled.push('%');
                after
            }
        };
    }
    filled + rest
}

fn value(letter: Option<char>, url: &[u8], block: &Block<'_>) -> Option<String> {
    let path = || match url.windows(3).position(|three| three == b"://") {
        Some(at) => {
            url[at + 3..].iter().position(|&byte| byte == b'/').map_or(&b""[..], |slash| &url[at + 4 + slash..])
        }
        None => b"",
    };
    Some(match letter? {
        'a' => block.request.client.map(|client| client.to_canonical().to_string()).unwrap_or_default(),
        'i' => encoded(&block.request.user.unwrap_or_default().to_ascii_lowercase()),
        's' => encoded(block.source),
        't' => encoded(block.destination),
        'u' => kept(url),
        'p' => kept(path()),
        'f' => kept(path().rsplit(|&byte| byte == b'/').next().unwrap_or_default()),
        // A client's name and its quota are not known.
        'n' => String::new(),
        'q' => "noquota".into(),
        _ => return None,
    })
}

/// A URL as it came, as squidGuard's pages expect it, but without bytes that end a field or an attribute.
fn kept(url: &[u8]) -> String {
    url.iter().fold(String::with_capacity(url.len()), |mut text, &byte| {
        match byte {
            b'"' | b'\'' | b'<' | b'>' | b'\\' => text += &format!("%{byte:02X}"),
            _ if byte.is_ascii_graphic() => text.push(char::from(byte)),
            _ => text += &format!("%{byte:02X}"),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_filled_in_and_others_stay() {
        let request = Request {
            url: b"http://bad.test/x/y%20z?a=b&c=\"\xff",
            client: Some("::ffff:10.0.0.9".parse().expect("an address")),
            user: Some("Jo&url=x"),
            ..Request::default()
        };
        let block = Block { request: &request, source: "pupils", destination: "games" };
        let redirects = Redirects {
            own: address("302:http://b.test/?a=%a&n=%n&i=%i&s=%s&t=%t&q=%q&d=%d%%&p=%p&f=%f&u=%u"),
            of_destinations: HashMap::from([("own".into(), "http://b.test/%t%".into())]),
        };
        let wanted = "http://b.test/?a=10.0.0.9&n=&i=jo%26url%3Dx&s=pupils&t=games&q=noquota&d=%d%%&p=x/y%20z?a=b&c=%22%FF\
                      &f=y%20z?a=b&c=%22%FF&u=http://bad.test/x/y%20z?a=b&c=%22%FF";
        assert_eq!(redirects.url(&block).as_deref(), Some(wanted));
        let block = Block { destination: "own", ..block };
        assert_eq!(redirects.url(&block).as_deref(), Some("http://b.test/own%"));
        assert_eq!((address("b.test/x"), address("http://b.test/\u{e9}")), (None, None));
    }
}
