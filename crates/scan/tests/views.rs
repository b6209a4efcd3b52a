//! Normalised views: the law, what they are for pages and texts made here, and the comparison with sigtool where it is
//! installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::peer::Random;
use scan::{Builder, Normaliser, View, views};
use stream::FileType;
use stream::law;

fn view(view: View, page: &[u8]) -> Vec<u8> {
    law::content(&law::tell(Normaliser::new(view), page))
}

const PAGE: &str = "<!DOCTYPE html>\r\n<HTML><Head><TITLE>Hello\u{a0} World</TITLE><!-- gone -->\n\
    <script type='text/javascript'>\n/* gone */ var Name = \"a\" + 'B'; f(Name, unescape(\"%43\"));</script></head>\n\
    <Body BgColor = Red onload=\"Foo( 'x' )\"><p class='x'>Some  text &amp; &#65;&euro; </p>\n\
    <a href=\"Http://A.B/c?d&amp;e\">Link</a><style> b { c } </style></Body>";

#[test]
fn the_law_holds_for_each_view() {
    let late = format!("text < text <<{}", &PAGE[17..]);
    for name in [View::Text, View::NoComment, View::NoTags, View::Scripts] {
        law::holds_at_every_cut(|| Normaliser::new(name), PAGE.as_bytes());
        law::holds(|| Normaliser::new(name), PAGE.as_bytes());
    }
    let mut builder = Builder::new();
    builder.add("t.ndb", b"H:3:*:6162").expect("a database");
    for normaliser in views(&builder.build(), FileType::Text, b"text") {
        law::holds_at_every_cut(|| normaliser.clone(), late.as_bytes());
        let from_tag = law::content(&law::tell(normaliser.clone(), late.as_bytes()));
        assert_eq!(from_tag, view(normaliser.view(), &late.as_bytes()[14..]), "the tag begins the view");
    }
}

#[test]
fn a_page_has_the_views_that_clamav_makes_of_it() {
    let shown = |name| String::from_utf8_lossy(&view(name, PAGE.as_bytes())).into_owned();
    assert_eq!(
        shown(View::NoComment),
        "<html><head><title>hello\u{a0} world</title><script type=\"text/javascript\">/*gone*/varname=\"a\"+\"b\";\
         f(name,unescape(\"%43\"));</script></head><body bgcolor=red onload=\"foo( \"x\" )\"><p class=\"x\">some text & \
         a&#x20ac; </p><a href=\"http://a.b/c?d&e\">link</a><style>b{c}</style></body>"
    );
    let no_tags = view(View::NoTags, PAGE.as_bytes());
    assert_eq!(no_tags, b" hello\xc2\xc2 world some text Http://A.B/c?d&e link ");
    assert_eq!(shown(View::Scripts), "<script>var n000=\"ab\";f(n000,\"c\");</script>");
    assert_eq!(view(View::Text, b" A\tb\r\n\r\nC\0\x01d \xc3\xa9 \x7f"), b" a b cd \x7f");
}

#[test]
fn a_script_that_is_too_long_is_normalised_in_pieces_and_told() {
    let page = format!("<script>var b;{}b</script>x", "a;".repeat(150_000));
    let told = law::tell(Normaliser::new(View::Scripts), page.as_bytes());
    let shown = String::from_utf8_lossy(&law::content(&told)).into_owned();
    assert!(
        shown.starts_with("<script>var n000;a;") && shown.ends_with("a;b</script>"),
        "the second piece has no names"
    );
    assert_eq!(shown.matches("a;").count(), 150_000);
    assert_eq!(shown.matches("<script>").count(), 2);
    assert_eq!(crate::peer::names(&told).into_iter().collect::<Vec<_>>(), ["Heuristics.Limits.Exceeded.Script"]);
    law::holds(|| Normaliser::new(View::Scripts), page.as_bytes());
}

#[test]
fn views_are_made_where_signatures_ask_for_them() {
    let database = |line: &str| {
        let mut builder = Builder::new();
        builder.add("t.ndb", line.as_bytes()).expect("a database");
        builder.build()
    };
    let names = |line: &str, file_type, head: &[u8]| {
        let all = views(&database(line), file_type, head);
        all.iter().map(|normaliser| normaliser.view().name()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names("T:7:*:6162", FileType::Binary, b"\0\0a\0\0b\x01"), "text");
    assert_eq!(names("T:7:*:6162", FileType::Binary, b"a\0\0\0b\0"), "");
    assert_eq!(names("T:7:*:6162", FileType::Binary, b"ab\0\x1a"), "");
    assert_eq!(names("T:7:*:6162", FileType::Binary, b"ab\0\x1b\x1a\0c"), "text");
    assert_eq!(names("T:7:*:6162", FileType::Binary, b"\xfe\xff\0\0"), "text");
    assert_eq!(names("H:3:*:6162", FileType::Binary, b"a\0b"), "");
    for file_type in [FileType::Text, FileType::Html, FileType::Mail, FileType::Binary] {
        assert_eq!(names("A:0:*:6162\nM:4:*:6162", file_type, b"<html>"), "");
    }
    assert_eq!(names("H:3:*:6162", FileType::Html, b"<html>"), "nocomment notags javascript");
    assert_eq!(names("T:7:*:6162", FileType::Html, b"<html>"), "javascript");
    assert_eq!(names("T:7:*:6162", FileType::Html, b"<div>"), "text javascript");
    assert_eq!(names("T:7:*:6162", FileType::Text, b"text"), "text javascript");
    assert_eq!(names("T:7:*:6162\nH:3:*:6162", FileType::Mail, b"text"), "");
}

/// Pieces of markup, without what the page on signatures lists as different: bytes beyond ASCII, and scripts that end
/// within a string or a bracket.
const PIECES: [&str; 44] = [
    "a",
    "B",
    "c ",
    " ",
    "  ",
    "\n",
    "\t",
    "\r\n",
    "<",
    ">",
    "<p>",
    "</P >",
    "<!",
    "-->",
    "<!-- ",
    "\"",
    "'",
    "=",
    " = ",
    "/",
    "&",
    ";",
    "#",
    "&amp;",
    "&#65;",
    "&#x41",
    "&lt",
    "&euro;",
    "&nbsp;",
    "&none;",
    "<style>",
    "</style>",
    "<a href=\"H i\">",
    "<img src=Q>",
    "<p c=\"",
    "<p d='",
    "<p e=",
    "Foo",
    "!",
    "<script>var x = 1; y(x)</script>",
    "<script>\"a\" + 'b'</script>",
    "<SCRIPT src=x> // a b\n</script >",
    "<style> a > b </style >",
    "<table a=\"b > c\">",
];

#[test]
fn the_views_are_those_of_sigtool() {
    if Command::new("sigtool").arg("--version").output().is_err() {
        eprintln!("skipped: sigtool is not installed");
        return;
    }
    let folder = crate::peer::scratch("views");
    let rounds = std::env::var("SLUICE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(60);
    let mut compared = 0;
    for round in 0..rounds {
        let mut random = Random(round);
        let pieces = 1 + random.below(14);
        let page: String = (0..pieces).map(|_| random.one(&PIECES)).collect();
        for (name, file) in
            [(View::NoComment, "nocomment.html"), (View::NoTags, "notags.html"), (View::Scripts, "javascript")]
        {
            let theirs = sigtool(&folder, "html", page.as_bytes(), file);
            assert_eq!(view(name, page.as_bytes()).escape_ascii().to_string(), theirs, "{} of {page:?}", name.name());
            compared += usize::from(!theirs.is_empty());
        }
        let theirs = sigtool(&folder, "ascii", page.as_bytes(), "normalised_text");
        assert_eq!(view(View::Text, page.as_bytes()).escape_ascii().to_string(), theirs, "text of {page:?}");
    }
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(compared > rounds as usize, "{compared} views");
}

/// View of a page by sigtool; empty if it makes no such file.
fn sigtool(folder: &Path, kind: &str, page: &[u8], file: &str) -> String {
    fs::write(folder.join("page"), page).expect("a page");
    let _ = fs::remove_file(folder.join(file));
    let argument = format!("--{kind}-normalise=page");
    // It may crash at its end, the files being written.
    let _ = Command::new("timeout")
        .args(["20", "sigtool"])
        .arg(argument)
        .current_dir(folder)
        .output()
        .expect("sigtool runs");
    fs::read(folder.join(file)).unwrap_or_default().escape_ascii().to_string()
}
