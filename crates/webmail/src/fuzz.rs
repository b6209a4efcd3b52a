//! Fuzz body: the law of the sanitiser.

use alloc::string::String;
use alloc::vec::Vec;

use text::html::{Token, Tokeniser, Within};

use crate::sanitise::{DEPTH_MAX, Picture, is_allowed, is_link, sanitise};

/// Fuzz body: what a page comes to holds nothing but elements and attributes of the list, each closed in its turn; made safe again it is
/// the same.
///
/// # Panics
/// If not.
pub fn fuzz_sanitise(data: &[u8]) {
    let page = String::from_utf8_lossy(data);
    let mut picture = |picture: Picture<'_>| match picture {
        Picture::Part(id) | Picture::Place(id) => {
            (id.len() % 2 == 1).then(|| String::from("data:image/png;base64,AAAA"))
        }
        Picture::Remote(url) => {
            assert!(url.starts_with("http://") || url.starts_with("https://"), "{url} is asked for");
            None
        }
    };
    let safe = sanitise(&page, &mut picture);
    let again = sanitise(&safe.html, &mut |_| None);
    assert_eq!(again.html, safe.html, "made safe again it is another");
    assert_eq!(again.remote, 0, "a picture elsewhere is left");
    check(&safe.html);
}

fn check(html: &str) {
    let (mut open, mut current): (Vec<String>, String) = (Vec::new(), String::new());
    let mut attribute = String::new();
    let mut tokeniser = Tokeniser::new();
    let mut tell = |_: u64, token: Token<'_>| match token {
        Token::Open(name) => {
            current = String::from_utf8_lossy(name).into_owned();
            assert!(is_allowed(name, None), "<{current}> is left");
        }
        Token::Close(name) => {
            let name = String::from_utf8_lossy(name).into_owned();
            assert_eq!(open.pop().as_deref(), Some(name.as_str()), "</{name}> closes another");
        }
        Token::Attribute(name) => {
            attribute = String::from_utf8_lossy(name).into_owned();
            assert!(is_allowed(current.as_bytes(), Some(name)), "<{current} {attribute}> is left");
        }
        Token::Value(value) => check_value(&current, &attribute, &String::from_utf8_lossy(value)),
        Token::End { is_closed } => {
            assert!(!is_closed, "a tag ends with />");
            if !current.is_empty() && !["br", "hr", "img", "wbr", "col", "area"].contains(&current.as_str()) {
                open.push(core::mem::take(&mut current));
            }
            current.clear();
            assert!(open.len() <= DEPTH_MAX, "too deep");
        }
        Token::Text { within, bytes } => {
            assert_eq!(within, Within::Page, "text that is not read for tags");
            assert!(!bytes.contains(&b'<'), "a < is left");
        }
        Token::Comment(_) | Token::Declaration(_) => panic!("a comment is left"),
    };
    tokeniser.read(html.as_bytes(), &mut tell);
    tokeniser.end(&mut tell);
    assert!(open.is_empty(), "{open:?} are not closed");
}

fn check_value(element: &str, attribute: &str, value: &str) {
    let begins = |all: &[&str]| all.iter().any(|scheme| value.starts_with(scheme));
    match attribute {
        "href" => assert!(begins(&["#mail-"]) || is_link(value), "a link to {value}"),
        "usemap" => assert!(element == "img" && begins(&["#mail-"]), "a map of {value}"),
        "name" => assert!(["a", "map"].contains(&element) && begins(&["mail-"]), "a name of {value}"),
        "id" => assert!(begins(&["mail-"]), "a name of {value}"),
        "src" => assert!(element == "img" && begins(&["data:image/"]), "a picture of {value}"),
        "style" => {
            for piece in ["url(", "var(", "expression(", "\\", "@", "/*"] {
                assert!(!value.contains(piece), "a style of {value}");
            }
            for name in value.split(';').filter_map(|one| one.split(':').next()) {
                let is_left = ["position", "z-index", "content", "transform", "inset", "top", "left"].contains(&name);
                assert!(!is_left, "a style of {value}");
            }
        }
        _ => {}
    }
}
