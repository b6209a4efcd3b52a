//! Strings of scripts and of JSON.

use super::*;
use crate::frame::reader::Reading;
use stream::law::{self, Told};

fn found(text: &str) -> Vec<Vec<u8>> {
    let make = || Reading::new(Script::new());
    law::holds(make, text.as_bytes());
    law::holds_at_every_cut(make, text.as_bytes());
    let mut found: Vec<Vec<u8>> = Vec::new();
    for told in law::tell(make(), text.as_bytes()) {
        match told {
            Told::Open(_) => found.push(Vec::new()),
            Told::Content(bytes) => found.last_mut().expect("open").extend(bytes),
            _ => {}
        }
    }
    found
}

const CONTENT: &[u8] = b"What a page holds in a string of a script, long enough for hexadecimal.";
const BASE64: &str = "V2hhdCBhIHBhZ2UgaG9sZHMgaW4gYSBzdHJpbmcgb2YgYSBzY3JpcHQsIGxvbmcgZW5vdWdoIGZvciBoZXhhZGVjaW1hbC4=";

fn each(bytes: &[u8], form: impl Fn(u8) -> String) -> String {
    bytes.iter().map(|&byte| form(byte)).collect()
}

fn escaped(bytes: &[u8]) -> String {
    each(bytes, |byte| format!("\\x{byte:02x}"))
}

#[test]
fn strings_that_a_script_puts_together_are_told() {
    let pieces: Vec<_> = BASE64.as_bytes().chunks(7).map(|piece| String::from_utf8_lossy(piece)).collect();
    let reversed: String = BASE64.chars().rev().collect();
    let digits = each(CONTENT, |byte| format!("{byte:02x}"));
    let hex: Vec<_> = digits.as_bytes().chunks(7).map(|piece| String::from_utf8_lossy(piece)).collect();
    for text in [
        format!("atob([\"{}\"].join(\"\"))", pieces.join("\", \"")),
        format!("atob(['{}']\n.join(''))", pieces.join("',\n'")),
        format!("atob('{reversed}'.split('').reverse().join(''))"),
        format!("h='{}';", each(CONTENT, |byte| format!("{byte:02x}"))),
        format!("h=\"{}\";", each(CONTENT, |byte| format!("\\x{byte:02x}"))),
        format!("h=atob(\"{}\");", each(BASE64.as_bytes(), |byte| format!("\\u{byte:04x}"))),
        format!("h=atob(\"{}\");", each(BASE64.as_bytes(), |byte| format!("\\u{{{byte:x}}}"))),
        format!("h=\"{}\";", each(CONTENT, |byte| format!("\\{byte:o}"))),
        format!("$x=pack(\"H*\",\"{}\");", each(CONTENT, |byte| format!("{byte:02x}"))),
        format!("$a = '{}';", hex.join("'\n . '")),
        format!("$a='{}';", hex.join("'.'")),
        format!("d=d&\"{}\"\r\n", hex.join("\"\r\nd=d&\"")),
        format!("d = \"{}\";\n", hex.join("\";\n  d += \"")),
        format!("$d .= '{}';", hex.join("'; $d .= '")),
        format!("x = bytes.fromhex(\"{}\")", hex.join("\"\n   \"")),
        format!("x = bytes.fromhex(\"{}\")", hex.join("\" + \"")),
        format!("x = b64decode(\"{}\")", pieces.join("\"\n   \"")),
        format!("x = (b\"{}\")", CONTENT.chunks(9).map(escaped).collect::<Vec<_>>().join("\"\n  b\"")),
        format!("char a[] = \"{}\";", CONTENT.chunks(9).map(escaped).collect::<Vec<_>>().join("\"\n\"")),
        format!("unescape('{}')", each(CONTENT, |byte| format!("%{byte:02X}"))),
    ] {
        assert_eq!(found(&text), [CONTENT], "{text}");
    }
}

#[test]
fn strings_are_joined_by_their_names() {
    let (one, two) = BASE64.split_at(48);
    let digits = each(CONTENT, |byte| format!("{byte:02x}"));
    let (first, second) = digits.split_at(60);
    for text in [
        format!("var a = \"{one}\";\nvar b = \"{two}\";\neval(atob(a + b));"),
        format!("a='{one}',b='{two}';atob(a+b)"),
        format!("<?php $x = '{one}';\n$y = '{two}'; eval(base64_decode($x.$y));"),
        format!("one = \"{first}\"\ntwo = \"{second}\"\nwhole = one & two"),
        format!("b := '{two}'; a := '{one}'; c := a+b"),
        format!("a='{}';b='{}';c='{two}';f(a + b + c)", &one[..20], &one[20..]),
        format!("a='{one}';b='{two}';f(a+b,'x')"),
        format!("a='{one}';b='{two}';f('x' , a+b"),
    ] {
        assert_eq!(found(&text), [CONTENT], "{text}");
    }
    for text in [
        format!("a='{one}';b='{two}';f(a,b)"),
        format!("a='{one}';b='{two}';f(a-b)"),
        format!("a='{one}';b='{two}';a='';f(a+b)"),
        format!("a='{one}';b='{two}';f(a+c+b)"),
        format!("a=='{one}';b='{two}';f(a+b)"),
    ] {
        assert_eq!(found(&text), Vec::<Vec<u8>>::new(), "{text}");
    }
    let many = format!("a='{one}';b='{two}';{}", "f(a+b);".repeat(9_000));
    assert_eq!(
        law::tell(Reading::new(Script::new()), many.as_bytes())
            .iter()
            .filter(|told| matches!(told, Told::Open(_)))
            .count(),
        64
    );
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut packed = vec![0; content.len() + 64];
    let config = zlib_rs::DeflateConfig { window_bits: -15, ..zlib_rs::DeflateConfig::default() };
    zlib_rs::compress_slice(&mut packed, content, config).0.to_vec()
}

#[test]
fn base64_of_deflate_without_a_header_is_inflated() {
    let packed = deflated(CONTENT);
    let base64 = text::base64::encode(&packed);
    let reversed: String = base64.chars().rev().collect();
    for text in [
        format!("<?php eval(gzinflate(base64_decode(\"{base64}\")));"),
        format!("$b = [Convert]::FromBase64String('{base64}')\n"),
    ] {
        assert_eq!(found(&text), [CONTENT], "{text}");
    }
    for text in [
        format!("<?php eval(gzinflate(base64_decode(strrev(\"{reversed}\"))));"),
        format!("zlib.inflateRawSync(Buffer.from('{reversed}'.split('').reverse().join(''), 'base64'))"),
    ] {
        assert_eq!(found(&text), [&packed[..], CONTENT], "{text}");
    }
    // What is behind the stream, or missing, speaks against it.
    for other in [[&packed[..], b"behind"].concat(), packed[..packed.len() - 3].to_vec(), [7; 66].to_vec()] {
        assert_eq!(found(&format!("x = '{}'", text::base64::encode(&other))), Vec::<Vec<u8>>::new());
    }
}

#[test]
fn much_that_little_inflates_to_is_told_as_it_is_made() {
    let content = vec![b'a'; 3 << 20];
    let text = format!("x = '{}'", text::base64::encode(&deflated(&content)));
    assert!(law::content(&law::tell(Reading::new(Script::new()), text.as_bytes())) == content);
}

#[test]
fn reversed_base64_is_told_whatever_reverses_it() {
    let page = "<html><body>a page that a script holds from its last character to its first one</body></html>";
    let wide: Vec<u8> = "IEX (New-Object Net.WebClient)".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for content in [CONTENT, &CONTENT[2..], page.as_bytes(), &wide] {
        let reversed: String = text::base64::encode(content).chars().rev().collect();
        for text in [
            format!("base64_decode(strrev(\"{reversed}\"))"),
            format!("x = StrReverse(\"{reversed}\")"),
            format!("$a = '{reversed}'.ToCharArray(); [array]::Reverse($a)"),
        ] {
            let found = found(&text);
            assert_eq!(found.iter().filter(|found| **found == content).count(), 1, "{text} {found:?}");
        }
    }
}

#[test]
fn base64_of_json_may_escape_its_slashes() {
    let (plain, slashes) = ([0xff; 66], "/".repeat(88));
    assert_eq!(found(&format!("{{\"a\": \"{}\"}}", slashes.replace('/', "\\/"))), [plain]);
    let lines = ["/".repeat(44), "/".repeat(44)].join("\\r\\n").replace('/', "\\/");
    assert_eq!(found(&format!("{{\"a\": \"{lines}\\r\\n\"}}")), [plain]);
}

#[test]
fn base64_of_json_may_be_a_list_of_lines() {
    let page =
        "<html><body>a page in an element of JSON that stands in several lines of Base64, one after another</body>";
    let base64 = text::base64::encode(page.as_bytes());
    let lines: Vec<_> = base64.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    assert_eq!(found(&format!("{{\"a\": [\"{}\"]}}", lines.join("\",\n \""))), [page.as_bytes()]);
    let padded: Vec<_> = page.as_bytes().chunks(40).map(text::base64::encode).collect();
    assert!(padded[0].ends_with("=="));
    assert_eq!(found(&format!("var a = [\"{}\"]", padded.join("\",\""))), [page.as_bytes()]);
    let digests: Vec<_> = (0..9).map(|at| format!("{at}V2hhdCBhIHBhZ2UgaG9sZHMgaW4gYSBzdHJpbmcgb2Y")).collect();
    assert_eq!(found(&format!("[\"{}\"]", digests.join("\", \""))), Vec::<Vec<u8>>::new());
}

#[test]
fn words_in_lists_and_digests_are_not() {
    let digest = "0123456789abcdef".repeat(8);
    for text in [
        format!("[\"{}\"]", ["word"; 40].join("\",\"")),
        format!("\"sha512\": \"{digest}\", \"next\": \"{digest}\""),
        "\"a word\"\n".repeat(40),
        format!("a = \"{digits}\"\nb = \"{digits}\"\n", digits = &digest[..100]),
        format!("don't look at the '{BASE64}' here"),
        "x = 'It\\'s a line\\nwith %41 escapes in it, but only with a few of them, as lines have'".into(),
    ] {
        assert_eq!(found(&text), Vec::<Vec<u8>>::new(), "{text}");
    }
}
