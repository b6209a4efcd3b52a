//! What is shown of a message, and what is listed below it.

use crate::fake::{Fake, HOSTILE};
use crate::pages::{TOKEN, answer, body, fake, field as header};

fn page(mail: &mut Fake, path: &str) -> String {
    let reply = answer(mail, path, None);
    assert_eq!(reply.status, 200, "{path}");
    body(mail, reply)
}

/// The names of the files that a page lists.
fn files(page: &str) -> Vec<&str> {
    let behind = page.split("/part/").skip(1).filter_map(|rest| rest.split("<bdi>").nth(1));
    behind.filter_map(|name| name.split('<').next()).collect()
}

#[test]
fn pictures_that_no_text_shows_are_attachments() {
    let picture = |fields: &str, name: &str| {
        (format!("Content-Type: image/png; name={name}\r\n{fields}\r\n"), "GIF89a".to_owned())
    };
    let mut mail = Fake {
        html: "<img src='cid:a%40b'><img src=CID:%3CC@D%3e><img src='./p%20q.png'>".into(),
        count: 60,
        related: vec![
            picture("Content-ID: (x) <a@b>", "1.png"),
            picture("Content-ID: <c@d>", "2.png"),
            picture("Content-Location: ./p q.png", "3.png"),
            picture("Content-ID: <z@z>", "4.png"),
            picture("Content-ID: <y@y>\r\nContent-Disposition: attachment; filename=5.png", "5.png"),
        ],
        ..Fake::default()
    };
    let listed = |page: &str| {
        files(page).into_iter().filter(|name| name.ends_with(".png")).map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(listed(&page(&mut mail, "/m/1/60")), ["4.png", "5.png"]);
    assert_eq!(listed(&page(&mut mail, "/m/1/60?as=text")), ["1.png", "2.png", "3.png", "4.png", "5.png"]);
    let printed = page(&mut mail, "/m/1/60/print");
    assert!(printed.contains("4.png") && !printed.contains("3.png"), "{printed}");
    for path in ["/write?forward=1.60", "/write?draft=2.60"] {
        assert_eq!(page(&mut mail, path).matches(".png</bdi>").count(), 5, "{path}");
    }
}

#[test]
fn the_date_is_that_of_the_mail() {
    let people = r#"(("Bob" NIL "bob" "x.example"))"#;
    let envelope = format!(r#"("Wed, 01 Jan 2020 12:00:00 +0100" "s" {people} NIL NIL {people} NIL NIL NIL "<2@x>")"#);
    let mut mail = Fake { envelope, count: 60, ..Fake::default() };
    for path in ["/m/1/60", "/m/1/60/print", "/write?reply=1.60", "/write?forward=1.60"] {
        let page = page(&mut mail, path);
        assert!(page.contains("1 Jan 2020"), "{path}: {page}");
    }
    assert!(!page(&mut mail, "/m/1").contains("2020"), "a list is in the order of arrival");
}

#[test]
fn a_message_within_is_shown_with_its_head_and_is_a_file() {
    let within = format!(
        "Subject: Old/er <b>\r\nFrom: Carl <carl@x.example>\r\nDate: 2 Feb 2019 00:00 +0000\r\n\r\nInner {HOSTILE}"
    );
    let mut mail = Fake {
        count: 60,
        related: vec![("Content-Type: message/rfc822\r\n".into(), within)],
        html: "<p>x".into(),
        ..Fake::default()
    };
    for path in ["/m/1/60", "/m/1/60?as=text", "/m/1/60/print"] {
        let page = page(&mut mail, path);
        for wanted in
            ["Carl &lt;carl@x.example&gt;", "2 Feb 2019", "Old/er &lt;b&gt;", "Inner &quot;", "Older &lt;b&gt;.eml"]
        {
            assert!(page.contains(wanted), "{path}: {wanted} in {page}");
        }
        assert!(!page.contains("<script"), "{page}");
    }
    let reply = page(&mut mail, "/write?reply=1.60");
    assert!(!reply.contains("Inner"), "{reply}");
    assert!(page(&mut mail, "/write?forward=1.60").contains("Older &lt;b&gt;.eml</bdi>"));
}

#[test]
fn a_message_within_that_is_encoded_is_decoded() {
    let field = |coding: &str| format!("Content-Type: message/rfc822\r\nContent-Transfer-Encoding: {coding}\r\n");
    for (coding, within) in [
        // Subject: inner, From: Carl <c@x.example>, and a text.
        ("base64", "U3ViamVjdDogaW5uZXINCkZyb206IENhcmwgPGNAeC5leGFtcGxlPg0KDQpib2R5IGhlcmUNCg=="),
        ("quoted-printable", "Subject: inner\r\nFrom: Carl=20<c@x.example>\r\n\r\nbody=20here\r\n"),
    ] {
        let mut mail = Fake { count: 60, related: vec![(field(coding), within.into())], ..Fake::default() };
        let shown = page(&mut mail, "/m/1/60");
        for wanted in ["<bdi>inner</bdi>", "Carl &lt;c@x.example&gt;", "inner.eml", "/m/1/60/view/1.4"] {
            assert!(shown.contains(wanted), "{coding}: {wanted} in {shown}");
        }
        let saved = page(&mut mail, "/m/1/60/part/1.4");
        assert_eq!(saved, "Subject: inner\r\nFrom: Carl <c@x.example>\r\n\r\nbody here\r\n");
        assert!(page(&mut mail, "/m/1/60/view/1.4").contains("body here"));
    }
}

#[test]
fn more_parts_than_are_shown_are_told() {
    let file = || ("Content-Type: application/pdf; name=a.pdf\r\n".to_owned(), "x".to_owned());
    for (count, is_told) in [(900, false), (1_100, true)] {
        let mut mail = Fake { count: 60, related: (0..count).map(|_| file()).collect(), ..Fake::default() };
        assert_eq!(page(&mut mail, "/m/1/60").contains("may have more parts"), is_told, "{count}");
    }
}

#[test]
fn a_mail_of_a_list_is_answered_there() {
    let fields = "List-Post: <mailto:list@l.example>\r\n".into();
    let mut mail = Fake { count: 60, fields, ..Fake::default() };
    assert!(page(&mut mail, "/m/1/60").contains("/write?list=1.60"));
    let form = page(&mut mail, "/write?list=1.60");
    assert!(form.contains("name=\"to\" list=\"people\" dir=\"auto\" value=\"list@l.example\""), "{form}");
    mail.fields.clear();
    assert!(!page(&mut mail, "/m/1/60").contains("/write?list="));
}

#[test]
fn attachments_are_looked_at_where_that_is_safe() {
    let part = |fields: &str, body: &str| (format!("{fields}\r\n"), body.to_owned());
    let file = |kind: &str, name: &str| {
        format!("Content-Type: {kind}\r\nContent-Disposition: attachment; filename={name}\r\n")
    };
    let mut mail = Fake {
        count: 60,
        html: "<img src=cid:t@t>".into(),
        related: vec![
            part(&file("image/jpg", "a.jpg"), "\u{89}PNG\r\n"),
            part(&file("image/x-icon", "i.ico"), "\0\0\u{1}\0\u{1}\0"),
            part(&file("image/svg+xml", "s.svg"), "<svg onload=alert(1)>"),
            part(&file("text/csv; charset=iso-8859-1", "t.csv"), "<b>a"),
            part(&file("application/pdf", "p.pdf"), "%PDF-1.7"),
            part(&file("application/pdf", "q.pdf"), "<script>"),
            part("Content-Type: image/tiff; name=t.tiff\r\nContent-ID: <t@t>\r\n", "II*"),
        ],
        ..Fake::default()
    };
    let shown = page(&mut mail, "/m/1/60");
    let pictures: Vec<&str> =
        shown.split("loading=\"lazy\" src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    // A byte of 0x89 is two in the UTF-8 of this test, so that there is one picture.
    assert_eq!(pictures, ["/m/1/60/view/1.5"], "{shown}");
    let viewed: Vec<&str> =
        shown.split("rel=\"noopener\" href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(viewed, ["/m/1/60/view/1.7", "/m/1/60/view/1.8"], "{shown}");
    assert!(files(&shown).contains(&"t.tiff"), "{shown}");
    for (path, kind) in [("1.5", "image/x-icon"), ("1.7", "text/plain; charset=utf-8"), ("1.8", "application/pdf")] {
        let reply = answer(&mut mail, &format!("/m/1/60/view/{path}"), None);
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(crate::pages::field(&reply, "Content-Type"), kind);
        let policy = crate::pages::field(&reply, "Content-Security-Policy");
        assert!(policy.starts_with("default-src 'none'") && (path == "1.8" || policy.contains("sandbox")), "{policy}");
    }
    for path in ["1.4", "1.6", "1.9", "1.2", "1.99"] {
        let reply = answer(&mut mail, &format!("/m/1/60/view/{path}"), None);
        assert!(path == "1.2" || reply.status == 404, "{path}: {}", reply.status);
        assert!(!crate::pages::field(&reply, "Content-Type").contains("svg"));
    }
}

#[test]
fn a_folder_is_sorted_by_its_columns() {
    let mut mail = Fake { count: 60, subject: "s".into(), ..Fake::default() };
    let order = |page: &str| {
        let uids = page.split("name=\"at\" value=\"1.").skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok());
        uids.collect::<Vec<u32>>()
    };
    let usual = page(&mut mail, "/m/1");
    assert_eq!(order(&usual).first(), Some(&60));
    for link in ["/m/1?sort=from&amp;order=up", "/m/1?sort=subject&amp;order=up", "/m/1?sort=size&amp;order=down"] {
        assert!(usual.contains(link), "{link} in {usual}");
    }
    assert!(usual.contains("/m/1?sort=date&amp;order=up\">Date \u{2193}</a>"), "{usual}");
    let oldest = page(&mut mail, "/m/1?sort=date&order=up");
    let rows = order(&oldest).len();
    assert_eq!(order(&oldest), (1..=rows as u32).collect::<Vec<_>>());
    assert!(oldest.contains("<a href=\"/m/1\">Date \u{2191}</a>"), "{oldest}");
    assert_eq!(order(&page(&mut mail, "/m/1?sort=date&order=up&page=1")).first(), Some(&(rows as u32 + 1)));
    assert!(page(&mut mail, "/m/1?sort=size&order=down").contains("class=\"tag\""));
    assert!(order(&page(&mut mail, "/m/1?sort=from&order=up&page=99999999999")).is_empty() || rows > 0);
}

#[test]
fn trash_and_junk_are_emptied_up_to_what_was_seen() {
    let mut mail = Fake { count: 3, ..Fake::default() };
    assert!(page(&mut mail, "/m/6").contains("value=\"empty\"") && page(&mut mail, "/m/5").contains("value=\"empty\""));
    assert!(!page(&mut mail, "/m/1").contains("value=\"empty\""));
    let act = |mail: &mut Fake, fields: &str| {
        answer(mail, "/act", Some(&format!("{fields}&do=empty&token={}", crate::pages::TOKEN))).status
    };
    assert_eq!((act(&mut mail, "back=/m/6&upto=2"), &mail.asked[..]), (303, &["expunge 6 [2, 1]".to_owned()][..]));
    assert_ne!(act(&mut mail, "back=/m/1&upto=2"), 303);
    assert_eq!(mail.asked.len(), 1);
}

#[test]
fn an_action_returns_to_the_list_where_it_was_made() {
    let mut mail = fake();
    let lists = ["/m/1?before=30", "/m/1?sort=size&order=up&page=1", "/search?q=a%26b", "/m/1/40/conversation"];
    for list in lists {
        let page = answer(&mut mail, list, None);
        let page = body(&mut mail, page);
        let url = list.replace('&', "&amp;");
        assert!(page.contains(&format!("name=\"back\" value=\"{url}\"")), "{page}");
        let link = list.replace('/', "%2F").replace('?', "%3F").replace('=', "%3D");
        let link = link
            .replace('%', "%25")
            .replace("%252F", "%2F")
            .replace("%253F", "%3F")
            .replace("%253D", "%3D")
            .replace('&', "%26");
        let mark = format!("?back={link}\"");
        let at = page.find(&mark).unwrap_or_else(|| panic!("{mark} in {page}"));
        let from = page[..at].rfind("\"/m/").expect("a link") + 1;
        // The form of the message leads back as well.
        let message = format!("{}?back={link}", &page[from..at]);
        let message = answer(&mut mail, &message, None);
        let message = body(&mut mail, message);
        assert!(message.contains(&format!("name=\"back\" value=\"{url}\"")), "{message}");
        assert!(message.contains(&format!("?as=text&amp;back={link}\"")), "{message}");
        let field = list.replace('%', "%25").replace('&', "%26");
        let reply = answer(&mut mail, "/act", Some(&format!("token={TOKEN}&at=1.2&do=flag&back={field}")));
        let joint = if list.contains('?') { '&' } else { '?' };
        assert_eq!(header(&reply, "Location"), format!("{list}{joint}told=marked"));
        let told = answer(&mut mail, header(&reply, "Location"), None);
        assert!(body(&mut mail, told).contains("class=\"told\""));
    }
    // A conversation whose first message leaves goes on by another; the newest page of a folder needs no query.
    let fields = format!("token={TOKEN}&at=1.40&do=delete&back=/m/1/40/conversation");
    assert_eq!(header(&answer(&mut mail, "/act", Some(&fields)), "Location"), "/m/3/2/conversation?told=deleted");
    let fields = format!("token={TOKEN}&at=1.40&do=delete&back=//a.example/");
    assert_eq!(header(&answer(&mut mail, "/act", Some(&fields)), "Location"), "/?told=deleted");
    let page = answer(&mut mail, "/m/1", None);
    assert!(!body(&mut mail, page).contains("?back="));
    // A page behind the end is the last one.
    let page = answer(&mut mail, "/m/1?sort=size&order=up&page=4294967295", None);
    assert!(body(&mut mail, page).contains("value=\"1.60\""));
}
