//! What is shown of a message, and what is listed below it.

use crate::fake::{Fake, HOSTILE};
use crate::pages::{answer, body};

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
        (format!("Content-Type: image/png; name={name}\r\n{fields}\r\n"), "\u{89}PNG".to_owned())
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
fn a_mail_of_a_list_is_answered_there() {
    let fields = "List-Post: <mailto:list@l.example>\r\n".into();
    let mut mail = Fake { count: 60, fields, ..Fake::default() };
    assert!(page(&mut mail, "/m/1/60").contains("/write?list=1.60"));
    let form = page(&mut mail, "/write?list=1.60");
    assert!(form.contains("name=\"to\" list=\"people\" dir=\"auto\" value=\"list@l.example\""), "{form}");
    mail.fields.clear();
    assert!(!page(&mut mail, "/m/1/60").contains("/write?list="));
}
