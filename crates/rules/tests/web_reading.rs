//! Phrases on pages as their readers see them: charsets, references, tags within words, capitals.

use rules::web::phrase::Dialect;
use rules::web::{Decision, Filter, Moment, Response};

use crate::web_agreement::lists;

/// Points of a page of `text/html` in a charset, which are the same however the page is cut.
fn points(filter: &Filter, charset: &str, page: &[u8]) -> i32 {
    let content_type = format!("text/html; charset={charset}");
    let response = Response { content_type: Some(content_type.as_bytes()), ..Response::default() };
    let run = |size: usize| {
        let mut run = filter.groups()[0].page(&response, &Decision::default()).expect("a page");
        page.chunks(size).for_each(|piece| run.feed(piece));
        run.finish(Moment::default()).points
    };
    let whole = run(page.len());
    assert_eq!([1, 2, 3, 7, 100].map(run), [whole; 5], "{}", page.escape_ascii());
    whole
}

const PHRASES: &str = "<badphrase><60>\n<\u{43f}\u{440}\u{438}\u{432}\u{435}\u{442} \u{43c}\u{438}\u{440}><70>\n\
    <Stra\u{df}e \u{c4}pfel><80>\n<two words><50>\n";

#[test]
fn a_page_is_weighed_as_its_readers_see_it() {
    let group = "naughtynesslimit = 1000\nweightedphraselist = 'e/weighted'\n";
    let filter = lists(Dialect::Sluice, group, &[("weighted", PHRASES)]);
    let theirs = lists(Dialect::E2guardian535, group, &[("weighted", PHRASES)]);
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let long = format!("<!DOCTYPE html><title>t</title>{}", "<p>x ".repeat(600));
    let rows: &[(&str, Vec<u8>, i32)] = &[
        ("", b"<p>badphrase</p>".into(), 60),
        ("", b"<p>bad<b>phrase</b>".into(), 60),
        ("", b"<p>b<i></i>a<!-- x -->d<span class=x>p</span>hrase".into(), 60),
        ("", b"<p>bad<p>phrase <td>bad</td>phrase bad<br>phrase".into(), 0),
        ("", b"<b>two</b><i>words</i> bad<b>phrase".into(), 60),
        ("", b"<b>two</b><i>words</i>".into(), 50),
        ("", b"&#98;ad&#x70hrase".into(), 60),
        ("", "bad&shy;ph\u{200b}rase".into(), 60),
        ("", "\u{ff42}\u{ff21}dphrase".into(), 60),
        ("", format!("{long} &#98;adphrase").into(), 60),
        ("", "\u{41f}\u{420}\u{418}\u{412}\u{415}\u{422}&nbsp;\u{41c}\u{418}\u{420}".into(), 70),
        ("", "STRA&szlig;E &Auml;PFEL".into(), 80),
        ("utf-16le", wide("<p>badphrase stra\u{df}e \u{e4}pfel"), 140),
        ("", wide("\u{feff}<p>badphrase"), 60),
        ("windows-1251", b"<p>\xcf\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0".into(), 70),
        ("", [long.as_bytes(), b"<meta charset=koi8-r>\xf0\xd2\xc9\xd7\xc5\xd4 \xcd\xc9\xd2"].concat(), 0),
        ("", b"<meta charset=koi8-r>\xf0\xd2\xc9\xd7\xc5\xd4 \xcd\xc9\xd2".into(), 70),
        ("", b"&lt;badphrase&gt;".into(), 60),
    ];
    for (charset, page, wanted) in rows {
        assert_eq!(points(&filter, charset, page), *wanted, "{}", page[page.len().saturating_sub(60)..].escape_ascii());
    }
    let of_peer = rows.iter().map(|(charset, page, _)| points(&theirs, charset, &[&page[..], b" x"].concat()));
    assert_eq!(
        of_peer.filter(|points| *points != 0).collect::<Vec<_>>(),
        [60, 50, 50, 60],
        "as E2Guardian weighs them"
    );
}

#[test]
fn phrases_in_the_bytes_of_a_declared_charset_occur() {
    let group = "naughtynesslimit = 1000\nphrasefiltermode = 1\nweightedphraselist = 'e/weighted'\n";
    let bytes: Vec<u8> = b"<caf\xe9 noir><40>\n<plain word><5>\n".into();
    let files: std::collections::HashMap<&str, Vec<u8>> =
        [("e/e2guardian.conf", Vec::new()), ("e/e2guardianf1.conf", group.into()), ("e/weighted", bytes)].into();
    let mut read = |path: &str| files.get(path).cloned().ok_or_else(|| "there is no such file".to_string());
    let filter = Filter::load("e/e2guardian.conf", Dialect::Sluice, rules::web::Limits::default(), &mut read);
    assert_eq!(points(&filter, "iso-8859-1", b"<p>plain &#119;ord caf\xe9 noir"), 45);
    assert_eq!(points(&filter, "", b"<p>caf\xe9 noir"), 40);
}
