//! Pages over a mailbox whose values are hostile, and forms that nobody of this site has sent.

use webmail::session::Session;
use webmail::{Body, Call, Form, Reply};

use crate::fake::{Fake, HOSTILE};

const TOKEN: &str = "00112233445566778899aabbccddeeff";

fn fake() -> Fake {
    let settings = format!("25\n60\n{HOSTILE}\n{HOSTILE}").into_bytes();
    Fake {
        subject: HOSTILE.into(),
        html: format!("<p>{HOSTILE}<svg onload=x>"),
        count: 60,
        settings,
        contacts: format!("BEGIN:VCARD\nFN:{HOSTILE}\nEMAIL:a@x.example\nNOTE:{HOSTILE}\nUID:1\nEND:VCARD\n")
            .into_bytes(),
        ..Fake::default()
    }
}

fn call(path: &str, fields: Option<&str>) -> Call {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let segments = path.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect();
    Call {
        is_known: true,
        is_post: fields.is_some(),
        path: segments,
        query: Form::of_fields(query.as_bytes()),
        form: Form::of_fields(fields.unwrap_or_default().as_bytes()),
        ..Call::default()
    }
}

fn answer(mail: &mut Fake, path: &str, fields: Option<&str>) -> Reply {
    let session = Session::new(1, "ann".into(), TOKEN.into(), [0; 32], 0);
    webmail::answer(mail, &session, call(path, fields))
}

fn body(mail: &mut Fake, reply: Reply) -> String {
    let bytes = match reply.body {
        Body::Bytes(bytes) => bytes,
        Body::Content(mut content) => std::iter::from_fn(|| content.next(mail)).flatten().collect(),
    };
    String::from_utf8_lossy(&bytes).into_owned()
}

fn field<'a>(reply: &'a Reply, name: &str) -> &'a str {
    reply.fields.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
}

const PAGES: [&str; 19] = [
    "/",
    "/m/1",
    "/m/7?before=40",
    "/m/1/60",
    "/m/1/60?as=text",
    "/m/1/60/html/1.2",
    "/search?q=%22%27%3E%3Cscript%3Ealert(1)%3C/script%3E",
    "/write?to=%22%27%3E%3Cscript%3Ealert(1)%3C/script%3E",
    "/write?reply=1.60",
    "/write?all=1.60",
    "/write?forward=1.60",
    "/write?draft=2.60",
    "/folders",
    "/settings",
    "/sessions",
    "/contacts",
    "/contacts/edit",
    "/contacts/edit?id=1",
    "/m/1/60/conversation",
];

#[test]
fn hostile_values_are_text_in_every_page() {
    let mut mail = fake();
    for path in PAGES {
        let reply = answer(&mut mail, path, None);
        assert_eq!(reply.status, 200, "{path}");
        let policy = field(&reply, "Content-Security-Policy");
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("script-src"), "{path}: {policy}");
        for (name, value) in
            [("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"), ("Cache-Control", "no-store")]
        {
            assert_eq!(field(&reply, name), value, "{path}");
        }
        let page = body(&mut mail, reply);
        assert!(!page.contains("<script") && !page.contains("<svg") && !page.contains("<img src=x"), "{path}: {page}");
        // Every form that changes something has the text of the session.
        assert_eq!(page.matches("method=\"post\"").count(), page.matches(TOKEN).count(), "{path}");
    }
}

#[test]
fn a_form_without_the_text_of_its_session_changes_nothing() {
    let mut mail = fake();
    for (path, fields) in [
        ("/act", "at=1.1&do=delete&back=1"),
        ("/act", "at=1.1&do=delete&token=00112233445566778899aabbccddeefe"),
        ("/write", "to=b@c.example&from=ann@mx.example&do=send"),
        ("/folders", "do=create&name=x&token="),
        ("/settings", "name=x"),
    ] {
        assert_eq!(answer(&mut mail, path, Some(fields)).status, 403, "{path} {fields}");
        let session = Session::new(1, "ann".into(), TOKEN.into(), [0; 32], 0);
        let foreign = Call { is_foreign: true, ..call(path, Some(&format!("{fields}&token={TOKEN}"))) };
        assert_eq!(webmail::answer(&mut mail, &session, foreign).status, 403);
    }
    assert!(mail.asked.is_empty() && mail.sent.is_empty(), "{:?}", mail.asked);
}

#[test]
fn folders_of_others_are_not_there() {
    let mut mail = fake();
    for path in [
        "/m/8",
        "/m/8/1",
        "/m/8/1/source",
        "/m/8/1/conversation",
        "/m/1/61/conversation",
        "/m/8/1/html/1.2",
        "/m/8/1/part/1.3",
        "/write?reply=8.1",
        "/m/1/61",
        "/m/1/x",
        "/x",
    ] {
        assert_eq!(answer(&mut mail, path, None).status, 404, "{path}");
    }
    for fields in ["at=8.1&do=delete", "at=1.1&do=move&to=8", "at=1.1&do=x", "folder=8&do=delete&sure=on"] {
        let path = if fields.starts_with("at") { "/act" } else { "/folders" };
        assert_eq!(answer(&mut mail, path, Some(&format!("{fields}&token={TOKEN}"))).status, 400, "{fields}");
    }
    assert!(mail.asked.is_empty(), "{:?}", mail.asked);
}

#[test]
fn contacts_are_kept_found_offered_and_collected() {
    let mut mail = Fake { count: 3, ..Fake::default() };
    let post = |mail: &mut Fake, path: &str, fields: &str| answer(mail, path, Some(&format!("{fields}&token={TOKEN}")));
    let saved = "do=save&name=Ada&addresses=ada@x.example,%20l@x.example&phone=1&note=n";
    assert_eq!(post(&mut mail, "/contacts", saved).status, 303);
    assert_eq!(post(&mut mail, "/contacts", "do=save&name=Bob&addresses=bob").status, 400);
    let page = |mail: &mut Fake, path: &str| {
        let reply = answer(mail, path, None);
        body(mail, reply)
    };
    let list = page(&mut mail, "/contacts?q=ada");
    assert!(list.contains("/contacts/edit?id=1") && list.contains("ada@x.example, l@x.example"), "{list}");
    assert!(page(&mut mail, "/contacts?q=bob").contains("No contacts here."));
    let write = page(&mut mail, "/write?to=a@x.example&to=b@x.example");
    assert!(write.contains("value=\"a@x.example, b@x.example\""), "{write}");
    assert!(write.contains("<option value=\"&quot;Ada&quot; &lt;ada@x.example&gt;\">"), "{write}");
    let fields = "do=send&from=ann@mx.example&to=New%20One%20%3Cnew@x.example%3E,%20ADA@x.example&subject=s&text=t";
    assert_eq!(post(&mut mail, "/write", fields).status, 303);
    let list = page(&mut mail, "/contacts");
    assert!(list.contains("New One") && list.matches("written to").count() == 1, "{list}");
    let file = page(&mut mail, "/contacts/export?version=3");
    assert!(file.contains("VERSION:3.0\r\nFN:Ada\r\nN:Ada;;;;\r\n"), "{file}");
    post(&mut mail, "/contacts", "do=delete&id=1");
    assert_eq!(answer(&mut mail, "/contacts/edit?id=1", None).status, 404);
}

#[test]
fn forms_do_what_they_say() {
    let mut mail = fake();
    for (path, fields, wanted) in [
        ("/act", "at=1.1&at=1.3&do=delete&back=1", "move 1 [1, 3] 6"),
        ("/act", "at=6.1&do=delete&back=6", "expunge 6 [1]"),
        ("/act", "at=1.2&do=move&to=4&back=1", "move 1 [2] 4"),
        ("/act", "at=1.2&do=unseen", "flag 1 [2] Seen false"),
        ("/act", "at=1.2&do=junk&back=1", "move 1 [2] 5"),
        ("/act", "at=5.2&do=ham&back=5", "move 5 [2] 1"),
        ("/act", "all=1.9&at=1.8&do=delete&back=1", "move 1 [8, 9] 6"),
        ("/sessions", "end=a1", "One(\"a1\")"),
        ("/sessions", "end=others", "AllBut(\"\")"),
        ("/folders", "do=create&name=%20a%20", "create a"),
        ("/folders", "do=rename&folder=7&name=b", "rename 7 b"),
        ("/folders", "do=delete&folder=7&sure=on", "delete 7"),
        ("/settings", "name=Ann&rows=100&zone=60&signature=x", "settings"),
        ("/write", "do=draft&from=ann@mx.example&draft=2.5&to=b@c.example", "save 2 Some(5)"),
    ] {
        let reply = answer(&mut mail, path, Some(&format!("{fields}&token={TOKEN}")));
        assert_eq!((reply.status, mail.asked.pop().as_deref()), (303, Some(wanted)), "{fields}");
    }
    assert_eq!(mail.settings, b"100\n60\nAnn\nx");
    let fields = format!("name=Ann&rows=100&view=threaded&zone=60&signature=x&token={TOKEN}");
    answer(&mut mail, "/settings", Some(&fields));
    assert_eq!(mail.settings, b"100 threaded\n60\nAnn\nx");
    let list = answer(&mut mail, "/m/1", None);
    let list = body(&mut mail, list);
    assert!(list.contains("href=\"/m/1/59/conversation\"") && list.contains("name=\"all\" value=\"1.59\""), "{list}");
    let fields = "do=send&from=info@mx.example&to=b@c.example&subject=s&text=t&keep=1.60.1.3&answers=1.60";
    assert_eq!(answer(&mut mail, "/write", Some(&format!("{fields}&token={TOKEN}"))).status, 303);
    let sent = mail.sent.pop().expect("a mail");
    assert_eq!(
        (sent.from.as_str(), sent.to.as_slice(), sent.answers),
        ("info@mx.example", &["b@c.example".into()][..], Some((1, 60)))
    );
    let text = String::from_utf8(sent.content).expect("ASCII");
    assert!(text.contains("multipart/mixed") && text.contains("ZmlsZQ=="), "{text}");
    // Of somebody else's address nothing is sent.
    let fields = "do=send&from=bob@mx.example&to=b@c.example";
    assert_eq!(answer(&mut mail, "/write", Some(&format!("{fields}&token={TOKEN}"))).status, 400);
    assert!(mail.sent.is_empty());
}

#[test]
fn files_are_saved_and_not_shown() {
    let mut mail = fake();
    let reply = answer(&mut mail, "/m/1/60/part/1.3", None);
    assert_eq!(field(&reply, "Content-Type"), "application/octet-stream");
    assert!(field(&reply, "Content-Disposition").starts_with("attachment; filename*=UTF-8''%27%3E%3Cscript"));
    assert_eq!(body(&mut mail, reply), "file");
    let reply = answer(&mut mail, "/m/1/60/source", None);
    assert_eq!(field(&reply, "Content-Type"), "text/plain; charset=utf-8");
    assert!(body(&mut mail, reply).starts_with("From: x\r\n"));
}

#[test]
fn who_has_not_logged_in_sees_the_login_page_alone() {
    for path in PAGES.into_iter().chain(["/x", "/m/1/1/source"]) {
        let reply = webmail::answer_stranger(&call(path, None));
        let is_login = path == "/";
        assert_eq!(
            (reply.status, field(&reply, "Location")),
            if is_login { (200, "") } else { (303, "/login") },
            "{path}"
        );
    }
    assert_eq!(webmail::answer_stranger(&Call { is_known: false, ..call("/", None) }).status, 405);
    let page = body(&mut fake(), webmail::denied(HOSTILE, "no"));
    assert!(!page.contains("<script") && page.contains("no"), "{page}");
}
