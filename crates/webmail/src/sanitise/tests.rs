//! Tests: what a page comes to, and what never stays.

use proptest::prelude::*;

use super::*;
use crate::fuzz_sanitise;

fn safe(page: &str) -> String {
    fuzz_sanitise(page.as_bytes());
    sanitise(page, &mut |picture| (picture == Picture::Part("a@b")).then(|| "data:image/png;base64,AAAA".into())).html
}

#[test]
fn a_page_is_written_anew() {
    for (page, wanted) in [
        ("<p>a<p>b<div>c</p>", "<p>a</p><p>b</p><div>c<p></p></div>"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
        ("<table><tr><td>a<td>b<tr><td>c</table>d", "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>d"),
        ("<div><table><td>a</div>b</table></div>", "<div><table><td>ab</td></table></div>"),
        ("<b><i>a</b>b</i>", "<b><i>a</i></b>b"),
        ("<body bgcolor=red>a</body>", "<div style=\"background-color:red;\">a</div>"),
        (
            "<body bgcolor=FFFFFF text=Black link=x><body text=#fff style='margin:0'>a",
            "<div style=\"background-color:#ffffff;color:black;\"><div style=\"color:#fff;margin:0;\">a</div></div>",
        ),
        (
            "<table><td hidden>a<td bgcolor=eee><p text=red>",
            "<table><td hidden=\"hidden\">a</td><td bgcolor=\"#0e0e0e\"><p></p></td></table>",
        ),
        (
            "<font face=\"'Segoe UI', Arial\">a<font face='\u{ff2d}\u{ff33} P'>",
            "<font face=\"&#39;Segoe UI&#39;, Arial\">a<font face=\"\u{ff2d}\u{ff33} P\"></font></font>",
        ),
        ("a<br/>b<hr>", "a<br>b<hr>"),
        ("1 < 2 &amp; &lt;b&gt; &#x3c;", "1 &lt; 2 &amp; &lt;b&gt; &lt;"),
        ("a&nbsp|b &copy 2002 &lt3 &checkmark;", "a\u{a0}|b © 2002 &lt;3 ✓"),
        ("<p title='&copy=1 &eacute'>a", "<p title=\"&amp;copy=1 é\">a</p>"),
        ("<font color=RED face='a b' size=+1 onclick=x>a", "<font color=\"red\" face=\"a b\" size=\"+1\">a</font>"),
        (
            "<a href='#top'>a</a><a name=top id=x>b</a><a href='#'>c</a><a name='a b'>d</a><p name=top>",
            "<a href=\"#mail-top\">a</a><a name=\"mail-top\" id=\"mail-x\">b</a><a>c</a><a name=\"mail-a_20_b\">d</a><p></p>",
        ),
        (
            "<table><td height='+007px' ALIGN=Left width='50 %' border=000 colspan=1001 align=right>",
            "<table><td align=\"left\" width=\"50%\" height=\"7\" border=\"0\"></td></table>",
        ),
        (
            "<a href='&#104;ttp://a.example/&uuml;&amp;' href=x>a",
            "<a href=\"http://a.example/%C3%BC&amp;\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">a</a>",
        ),
    ] {
        assert_eq!(safe(page), wanted, "{page}");
    }
}

#[test]
fn what_runs_or_fetches_is_left_out() {
    for (page, wanted) in [
        ("<script>alert(1)</script>a", "a"),
        ("<style>a{}</style><title>t</title>a", "a"),
        ("<svg><script>x</script><a href=javascript:x>y</a></svg>a", "<a>y</a>a"),
        (
            "<svg onload=x><text>a</text><desc>b</desc><title>c</title></svg><math><mi>d</mi><annotation>e</annotation></math>",
            "ad",
        ),
        ("a<template>b<template>c</template><p>d</template>e<datalist><option>f</datalist>g", "aeg"),
        ("<base href=javascript:x//><base href=//b.example/><a href=x>a", "<a>a</a>"),
        (
            "<a href='vbscript:x'>a</a><area href=javascript:x><img usemap='https://b.example/#m'>",
            "<a>a</a><area><img alt=\"\">",
        ),
        ("<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>", "<table></table>"),
        ("<svg><p>a", "<p>a</p>"),
        ("<form action=x><input name=y value=z><button>b</button><input type=SUBMIT value='<b>'></form>", "b&lt;b&gt;"),
        ("a<select><option>b<option value=c>d</select>e<select><option>f<p>g", "a b d e f<p>g</p>"),
        ("<iframe src=x>y</iframe><object data=x>z</object>", "z"),
        ("<a href=javascript:alert(1)>a</a>", "<a>a</a>"),
        ("<a href='jav&#x09;ascript:x'>a</a>", "<a>a</a>"),
        ("<base href=//x><meta http-equiv=refresh content=0><link rel=stylesheet href=x>a", "a"),
        ("<img src=x onerror=alert(1) id=y class=z>", "<img alt=\"\" id=\"mail-y\">"),
        ("<img src=cid:a@b alt='<b>'>", "<img src=\"data:image/png;base64,AAAA\" alt=\"&lt;b&gt;\">"),
        ("<img src='data:image/svg+xml;base64,AAAA'>", "<img alt=\"\">"),
        ("<p style='background:url(//x);color:red'>a", "<p style=\"color:red;\">a</p>"),
        (
            "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
            "<p title=\"&lt;/noscript&gt;&lt;img src=x onerror=alert(1)&gt;\"></p>",
        ),
        ("<textarea><b>a</textarea><xmp><i></xmp>", "&lt;b&gt;a&lt;i&gt;"),
        ("<!--a--><?b?><!DOCTYPE c><![CDATA[d]]>e", "e"),
        ("<p onclick=x ONLOAD=y \0title=z>a", "<p>a</p>"),
        (
            "<a href='https://a.example' target=_self rel=opener>a",
            "<a href=\"https://a.example\" target=\"_blank\" rel=\"noopener noreferrer nofollow\">a</a>",
        ),
        ("<b", ""),
    ] {
        assert_eq!(safe(page), wanted, "{page}");
    }
}

#[test]
fn links_and_numbers_of_a_page_stay() {
    const OUT: &str = " target=\"_blank\" rel=\"noopener noreferrer nofollow\"";
    for (page, wanted) in [
        ("<a href='#s1'>a</a><h2 id=s1>b</h2>", "<a href=\"#mail-s1\">a</a><h2 id=\"mail-s1\">b</h2>"),
        ("<a href='#a%20b'>a</a><a name='a b'>", "<a href=\"#mail-a_20_b\">a</a><a name=\"mail-a_20_b\"></a>"),
        (
            "<a href='tel:+49'>a</a><a href=//b.example/x>",
            "<a href=\"tel:+49\"@>a</a><a href=\"https://b.example/x\"@></a>",
        ),
        (
            "<img usemap='#m'><map name=m><area href=https://e.example shape=RECT coords='0,0,1,1' alt=e></map>",
            "<img alt=\"\" usemap=\"#mail-m\"><map name=\"mail-m\"><area href=\"https://e.example\"@ alt=\"e\" shape=\"rect\" coords=\"0,0,1,1\"></map>",
        ),
        (
            "<ol start=2024 reversed><li value=-9>a</ol><ol start=x>",
            "<ol start=\"2024\" reversed=\"reversed\"><li value=\"-9\">a</li></ol><ol></ol>",
        ),
        (
            "<a href=a>0</a><base href=https://b.example/c/d><base href=http://e><a href=a>1</a><img src=f>",
            "<a>0</a><a href=\"https://b.example/c/a\"@>1</a><img alt=\"\">",
        ),
        (
            "<details open><summary>a</summary></details><hr size=1 color=red noshade><img hspace=4 align=absmiddle>",
            "<details open=\"open\"><summary>a</summary></details><hr color=\"red\" size=\"1\" noshade=\"noshade\"><img alt=\"\" align=\"absmiddle\" hspace=\"4\">",
        ),
        (
            "<img src='data:image/JPG;base64,/9j/'><img src='data:image/png;charset=utf-8;base64,AA'><img src=data:image/bmp;base64,Qk0=>",
            "<img src=\"data:image/jpeg;base64,/9j/\" alt=\"\"><img src=\"data:image/png;base64,AA\" alt=\"\"><img src=\"data:image/bmp;base64,Qk0=\" alt=\"\">",
        ),
    ] {
        assert_eq!(safe(page), wanted.replace('@', OUT), "{page}");
    }
    let page = "<base href=https://b.example/><img src=a><img src=/b><img src=data:x>";
    assert_eq!(sanitise(page, &mut |_| None).remote, 2);
}

#[test]
fn parts_of_tables_hide_nothing_behind_them() {
    for part in ["td", "th", "tr", "tbody", "thead", "tfoot", "caption", "colgroup"] {
        let page = format!("a<div style=display:none><{part}>b</div>c</{part}>d");
        assert_eq!(safe(&page), "a<div style=\"display:none;\">b</div>cd");
    }
    for (page, wanted) in [
        ("<table><div hidden><tr><td>a", "<table><div hidden=\"hidden\"></div><tr><td>a</td></tr></table>"),
        ("<table><tr><p><td>a<div>b<td>c", "<table><tr><p></p><td>a<div>b</div></td><td>c</td></tr></table>"),
        ("<table hidden><tr><table><td>a", "<table hidden=\"hidden\"><tr></tr></table><table><td>a</td></table>"),
        ("<table><caption><p>a<table><td>b", "<table><caption><p>a</p><table><td>b</td></table></caption></table>"),
        ("a</br>b</p>c<p>d</p>e<br></br>", "a<br>b<p></p>c<p>d</p>e<br><br>"),
        ("<p>a<table><td></p>b", "<p>a</p><table><td><p></p>b</td></table>"),
    ] {
        assert_eq!(safe(page), wanted, "{page}");
    }
}

#[test]
fn pictures_elsewhere_are_counted() {
    let page = "<img src=http://a/b><img src='//a/b'><table><td background=https://a/c><img src=cid:x><img src=data:,>";
    assert_eq!(sanitise(page, &mut |_| None).remote, 3);
}

#[test]
fn depth_and_attributes_are_bounded() {
    safe(&"<div>".repeat(100_000));
    safe(&"<table><tr><td>".repeat(10_000));
    safe(&format!("<p {}>a", "title=x ".repeat(10_000)));
    safe(&format!("<p {}>a", (0..10_000).map(|at| format!("a{at}=b ")).collect::<String>()));
    safe(&"</b></table></td>".repeat(50_000));
}

/// Pages of little else than tags.
fn page() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "<p>",
        "</p>",
        "<div>",
        "</div>",
        "<table>",
        "</table>",
        "<tr>",
        "<td>",
        "</td>",
        "</tr>",
        "<tbody>",
        "<th>",
        "<ul>",
        "<ol>",
        "<li>",
        "</li>",
        "</ul>",
        "<dl>",
        "<dt>",
        "<dd>",
        "<b>",
        "</b>",
        "<i>",
        "</i>",
        "<a href=\"https://a/&amp;\">",
        "</a>",
        "<svg>",
        "</svg>",
        "<math>",
        "<style>",
        "</style>",
        "<script>",
        "</script>",
        "<textarea>",
        "</textarea>",
        "<title>",
        "</title>",
        "<xmp>",
        "<plaintext>",
        "<img src=cid:a>",
        "<br>",
        "<hr/>",
        "<body>",
        "</body>",
        "<h1>",
        "<caption>",
        "<col>",
        "<colgroup>",
        "<pre>\n",
        "</pre>",
        "<!--",
        "-->",
        "&lt;",
        "&#60;",
        "&amp;amp;",
        "&#",
        "x",
        "<p title='&quot;<'>",
        "<p style='color:red;font-family:\"a\"'>",
        "<font size=+9>",
        "<noscript>",
        "<template>",
        "</template>",
        "<base href=https://b.example/c>",
        "<a id='a b' href='?x'>",
        "<map name=x><area href='//a'>",
        "<select><option>",
        "<input type=submit value='<p>'>",
        "<li value=-1>",
        "<",
        ">",
        "\"",
        "'",
        "\0",
        "\u{e9}",
        "&nbsp;",
        "<details>",
        "<summary>",
        "<q/>",
        "<body bgcolor=#fff style=margin:0>",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_law_holds(page in page()) {
        fuzz_sanitise(page.as_bytes());
    }
}
