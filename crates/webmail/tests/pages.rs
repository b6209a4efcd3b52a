//! Pages over a mailbox whose values are hostile, and forms that nobody of this site has sent.

use webmail::filters::{Field, Filters, Match, Place, Rule, Test, Vacation};
use webmail::mail::Identity;
use webmail::session::Session;
use webmail::{Body, Call, Denial, Form, Language, Reply, Step, answer_stranger};

use crate::fake::{Fake, HOSTILE};

pub const TOKEN: &str = "00112233445566778899aabbccddeeff";

pub fn fake() -> Fake {
    let settings = format!("25\n60\n{HOSTILE}\n{HOSTILE}").into_bytes();
    Fake {
        subject: HOSTILE.into(),
        html: format!("<p>{HOSTILE}<svg onload=x>"),
        count: 60,
        settings,
        contacts: format!("BEGIN:VCARD\nFN:{HOSTILE}\nEMAIL:a@x.example\nNOTE:{HOSTILE}\nUID:1\nEND:VCARD\n")
            .into_bytes(),
        script: hostile_filters().script(),
        identities: vec![Identity {
            address: "info@mx.example".into(),
            name: HOSTILE.into(),
            signature: format!("</textarea>{HOSTILE}"),
        }],
        fields: format!("List-Unsubscribe: <https://a.example/{HOSTILE}>\r\n"),
        ..Fake::default()
    }
}

fn hostile_filters() -> Filters {
    let tests = vec![Test { field: Field::List, how: Match::Is, value: HOSTILE.into() }];
    let rule = Rule { name: HOSTILE.into(), tests, place: Place::Folder(HOSTILE.into()), ..Rule::default() };
    let text = format!("</textarea>{HOSTILE}");
    Filters { vacation: Vacation { subject: HOSTILE.into(), text, ..Vacation::default() }, rules: vec![rule] }
}

pub fn call(path: &str, fields: Option<&str>) -> Call {
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

pub fn answer(mail: &mut Fake, path: &str, fields: Option<&str>) -> Reply {
    let session = Session::new(1, "ann".into(), TOKEN.into(), [0; 32], 0);
    webmail::answer(mail, &session, call(path, fields))
}

pub fn body(mail: &mut Fake, reply: Reply) -> String {
    let bytes = match reply.body {
        Body::Bytes(bytes) => bytes,
        Body::Content(mut content) => std::iter::from_fn(|| content.next(mail).map(<[u8]>::to_vec)).flatten().collect(),
    };
    String::from_utf8_lossy(&bytes).into_owned()
}

pub fn field<'a>(reply: &'a Reply, name: &str) -> &'a str {
    reply.fields.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
}

pub const PAGES: [&str; 33] = [
    "/",
    "/m/1",
    "/m/6",
    "/m/1?sort=size&order=down&page=1",
    "/m/7?before=40",
    "/m/1/60",
    "/m/1/60?as=text",
    "/m/1/60?pictures=1",
    "/m/1/60/html/1.2?pictures=1",
    "/pictures",
    "/app-passwords",
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
    "/filters",
    "/filters/rule",
    "/filters/rule?id=0",
    "/filters/text",
    "/vacation",
    "/identities",
    "/m/1/60/print",
    "/contacts?q=%22%27%3E%3Cscript%3Ealert(1)%3C/script%3E",
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
fn pictures_that_are_fetched_are_pictures_and_have_a_bound() {
    let picture = |path| format!("<img src=\"//a.example/{path}#x\">");
    let html = ["png", "avif", "page", "none", "large", "large", "png"].map(picture).concat();
    let mut mail = Fake { html: html + "<img src=file:///png><table><td background=http://b.example/png>", ..fake() };
    let reply = answer(&mut mail, "/m/1/60/html/1.2?pictures=1", None);
    let policy = field(&reply, "Content-Security-Policy").to_owned();
    assert!(policy.contains("img-src data:;") && policy.contains("sandbox "), "{policy}");
    let page = body(&mut mail, reply);
    let asked = r#"pictures ["https://a.example/png", "https://a.example/avif", "https://a.example/page", "https://a.example/none", "https://a.example/large"] 8388608"#;
    assert_eq!(mail.asked, [asked], "each once, those of images alone");
    let count = |kind: &str| page.matches(&format!("src=\"data:image/{kind};base64,")).count();
    assert_eq!(
        (count("png"), count("avif"), count("gif"), page.matches("data:").count()),
        (1, 1, 1, 3),
        "{}",
        page.len()
    );
    assert!(page.contains("5 pictures on other servers not to be had"), "those that are none, and beyond the bound");
    mail.asked.clear();
    for path in ["/m/1/60/html/1.2", "/m/5/60/html/1.2?pictures=1", "/m/1/60/print?pictures=1", "/m/1/60?pictures=1"] {
        answer(&mut mail, path, None);
    }
    assert!(!mail.asked.iter().any(|asked| asked.starts_with("pictures")), "{:?}", mail.asked);
}

#[test]
fn a_form_without_the_text_of_its_session_changes_nothing() {
    let mut mail = fake();
    for (path, fields) in [
        ("/act", "at=1.1&do=delete&back=/m/1"),
        ("/act", "at=1.1&do=delete&token=00112233445566778899aabbccddeefe"),
        ("/write", "to=b@c.example&from=ann@mx.example&do=send"),
        ("/folders", "do=create&name=x&token="),
        ("/settings", "name=x"),
        ("/contacts", "do=save&name=x"),
        ("/contacts", "do=delete&id=1"),
        ("/sessions", "end=others"),
        ("/second", "do=end&code=1"),
        ("/filters", "do=delete&id=0"),
        ("/filters/rule", "field1=from&how1=is&value1=x"),
        ("/filters/text", "text="),
        ("/vacation", "on=1&text=x"),
        ("/identities", "address=ann@mx.example&name=x"),
        ("/unsubscribe", "at=1.1"),
        ("/unsubscribe", "at=1.1&do=once"),
        ("/pictures", "at=1.1&do=always"),
        ("/app-passwords", "do=add&name=x&door=imap&password=x"),
        ("/passkeys", "do=add&name=x&password=x"),
        ("/passkeys", "do=end&id=2"),
    ] {
        assert_eq!(answer(&mut mail, path, Some(fields)).status, 403, "{path} {fields}");
        let session = Session::new(1, "ann".into(), TOKEN.into(), [0; 32], 0);
        let foreign = Call { is_foreign: true, ..call(path, Some(&format!("{fields}&token={TOKEN}"))) };
        assert_eq!(webmail::answer(&mut mail, &session, foreign).status, 403);
    }
    assert!(mail.asked.is_empty() && mail.sent.is_empty(), "{:?}", mail.asked);
}

#[test]
fn an_answer_to_all_names_each_person_once() {
    let envelope = concat!(
        r#"("d" "s" ((NIL NIL "bob" "x.example")) NIL ((NIL NIL "bob" "x.example")) "#,
        r#"((NIL NIL "info+lists" "mx.example")("Bob" NIL "bob" "X.example")("Carl" NIL "carl" "x.example")) "#,
        r#"((NIL NIL "carl" "x.example")("Dora, D" NIL "dora" "x.example")(NIL NIL "DORA" "X.EXAMPLE")) NIL NIL "<2@x>")"#
    );
    let mut mail = Fake { envelope: envelope.into(), ..fake() };
    let reply = answer(&mut mail, "/write?all=1.60", None);
    let page = body(&mut mail, reply);
    let field = |name: &str| {
        let behind = page.split(&format!(" name=\"{name}\"")).nth(1).unwrap_or_default();
        behind.split("value=\"").nth(1).unwrap_or_default().split('"').next().unwrap_or_default().to_owned()
    };
    assert_eq!(field("to"), "bob@x.example");
    assert_eq!(field("cc"), "Carl &lt;carl@x.example&gt;, &quot;Dora, D&quot; &lt;dora@x.example&gt;");
    assert!(page.contains("value=\"info@mx.example\" selected"), "the address that it came to: {page}");
}

#[test]
fn a_draft_has_half_an_address() {
    let mut mail = Fake { fields: "To: ann@x.example,\r\n bob\r\n".into(), envelope: "()".into(), ..fake() };
    let fields = format!("to=bob&from=ann@mx.example&do=draft&token={TOKEN}");
    assert_eq!(answer(&mut mail, "/write", Some(&fields)).status, 303);
    assert_eq!(mail.asked, ["save 2 None"]);
    let sent = format!("to=bob&from=ann@mx.example&do=send&token={TOKEN}");
    assert_eq!((answer(&mut mail, "/write", Some(&sent)).status, mail.sent.len()), (400, 0));
    let reply = answer(&mut mail, "/write?draft=2.60", None);
    assert!(body(&mut mail, reply).contains("value=\"ann@x.example, bob\""));
}

#[test]
fn a_page_without_a_charset_declares_it_itself() {
    let mut mail = Fake { html: "<meta charset=windows-1251><p>\u{e9}".into(), ..fake() };
    let reply = answer(&mut mail, "/m/1/60/html/1.2", None);
    assert!(body(&mut mail, reply).contains("Г©"));
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
    assert!(file.contains("VERSION:3.0\r\nFN:Ada\r\nN:;Ada;;;\r\n"), "{file}");
    post(&mut mail, "/contacts", "do=delete&id=1");
    assert_eq!(answer(&mut mail, "/contacts/edit?id=1", None).status, 404);
    // A form comes back with the beginning of a value that is too large, and a file of nothing says so.
    let large = format!("do=save&name=x&addresses={}", "%26".repeat(1 << 20));
    let reply = post(&mut mail, "/contacts", &large);
    assert_eq!(reply.status, 400);
    assert!(body(&mut mail, reply).len() < 64 << 10);
    let reply = post(&mut mail, "/contacts", "do=import");
    assert!(body(&mut mail, reply).contains("There are no contacts in this file"));
}

#[test]
fn rules_of_the_form_are_a_script_and_other_scripts_are_a_text() {
    let mut mail = Fake::default();
    let post = |mail: &mut Fake, path: &str, fields: &str| {
        let reply = answer(mail, path, Some(&format!("{fields}&token={TOKEN}")));
        (reply.status, body(mail, reply))
    };
    let page = |mail: &mut Fake, path: &str| {
        let reply = answer(mail, path, None);
        (reply.status, body(mail, reply))
    };
    assert!(page(&mut mail, "/filters").1.contains("No rules here."));
    let rule = "name=Bills&match=any&field1=subject&how1=contains&value1=invoice&field2=from&how2=is&value2=&place=/Archive&seen=on";
    assert_eq!(post(&mut mail, "/filters/rule", rule).0, 303);
    assert!(
        mail.script.contains(
            "if anyof(header :contains \"subject\" \"invoice\") {\n  addflag \"\\\\Seen\";\n  fileinto \"Archive\";\n}"
        ),
        "{}",
        mail.script
    );
    assert_eq!(post(&mut mail, "/filters/rule", &rule.replace("Bills", "Other")).0, 303);
    let list = page(&mut mail, "/filters").1;
    assert!(
        list.contains("The subject contains \u{201c}invoice\u{201d}: into \u{201c}Archive\u{201d}, read"),
        "{list}"
    );
    for (path, fields) in [
        ("/filters/rule", "name=x&field1=subject&how1=is&value1="),
        ("/filters/rule", "name=x&field1=subject&how1=is&value1=x&forward=no"),
        ("/filters/rule", "name=x&field1=subject&how1=is&value1=x&forward=a@b.example,c@d.example"),
        ("/filters/rule", "name=wrong&field1=subject&how1=is&value1=x&last=on"),
        ("/filters/rule", "name=x&field1=subject&how1=is&value1=x"),
        ("/filters/rule", "name=x&field1=subject&how1=is&value1=x&place=/Nope"),
        ("/filters/rule", "name=x&field1=subject&how1=is&value1=x&forward=Info@mx.example"),
        ("/filters/text", "text=wrong"),
    ] {
        let (status, text) = post(&mut mail, path, fields);
        assert!(status == 400 && text.contains("role=\"alert\"") && !text.contains("<script"), "{fields}: {text}");
    }
    assert_eq!(post(&mut mail, "/filters", "do=up&id=1").0, 303);
    let names =
        |mail: &Fake| Filters::read(&mail.script).unwrap().rules.into_iter().map(|rule| rule.name).collect::<Vec<_>>();
    assert_eq!(names(&mail), ["Other", "Bills"]);
    for fields in ["do=up&id=0", "do=down&id=1", "do=delete&id=2", "do=delete", "do=x&id=0"] {
        assert_eq!(post(&mut mail, "/filters", fields).0, 404, "{fields}");
    }
    assert_eq!(post(&mut mail, "/filters/rule", &format!("id=1&{}", rule.replace("Bills", "New"))).0, 303);
    assert_eq!(post(&mut mail, "/filters", "do=delete&id=0").0, 303);
    assert_eq!(names(&mail), ["New"]);
    // The days are those of the user, and the last one is whole.
    mail.settings = b"50\n60\n\n".to_vec();
    let away = "on=1&from=2026-12-24&until=2026-12-31&subject=Away&text=I+am+away.%0D%0ABye";
    assert_eq!(post(&mut mail, "/vacation", away).0, 303);
    let vacation = Filters::read(&mail.script).unwrap().vacation;
    assert_eq!((vacation.from, vacation.until), (Some(1_798_066_800), Some(1_798_758_000)), "{}", mail.script);
    let form = page(&mut mail, "/vacation").1;
    assert!(
        form.contains("value=\"2026-12-24\"")
            && form.contains("value=\"2026-12-31\"")
            && form.contains("I am away.\nBye"),
        "{form}"
    );
    for wrong in ["on=1&text=", "from=24.12.&text=x", "from=2026-12-31&until=2026-12-01&text=x"] {
        assert_eq!(post(&mut mail, "/vacation", wrong).0, 400, "{wrong}");
    }
    // By a hand that is not the form's.
    let own = "text=require+%22fileinto%22%3B%0D%0Afileinto+%22x%22%3B";
    assert_eq!(post(&mut mail, "/filters/text", own).0, 303);
    assert!(page(&mut mail, "/filters").1.contains("a text that this form does not know"));
    assert!(page(&mut mail, "/filters/text").1.contains("fileinto &quot;x&quot;;"));
    assert!(page(&mut mail, "/vacation").1.contains("a text that this form does not know"));
    let before = mail.script.clone();
    for (path, fields) in [("/filters/rule", rule), ("/filters", "do=delete&id=0"), ("/vacation", away)] {
        assert_eq!(post(&mut mail, path, fields).0, 404, "{path}");
    }
    assert_eq!(mail.script, before, "the forms leave it alone");
}

#[test]
fn an_address_has_its_name_and_signature() {
    let mut mail = Fake { count: 3, settings: b"50\n0\nAnn\nof the office".to_vec(), ..Fake::default() };
    let fields = "address=info@mx.example&name=The+%22Office%22&signature=Yours%0D%0Athe+office";
    assert_eq!(answer(&mut mail, "/identities", Some(&format!("{fields}&token={TOKEN}"))).status, 303);
    let others = format!("address=bob@mx.example&name=x&token={TOKEN}");
    assert_eq!(answer(&mut mail, "/identities", Some(&others)).status, 404);
    let send = |mail: &mut Fake, from: &str| {
        let fields = format!("do=send&from={from}&to=b@c.example&subject=s&text=t&token={TOKEN}");
        assert_eq!(answer(mail, "/write", Some(&fields)).status, 303);
        String::from_utf8(mail.sent.pop().unwrap().content).unwrap()
    };
    assert!(send(&mut mail, "info@mx.example").contains("From: \"The 'Office'\" <info@mx.example>\r\n"));
    assert!(send(&mut mail, "ann@mx.example").contains("From: Ann <ann@mx.example>\r\n"));
    let reply = answer(&mut mail, "/write", None);
    let form = body(&mut mail, reply);
    assert!(form.contains("<option value=\"ann@mx.example\" selected>Ann &lt;ann@mx.example&gt;</option>"), "{form}");
    assert!(form.contains("-- \nof the office"), "{form}");
}

#[test]
fn a_list_is_left_by_a_mail_that_the_user_sends() {
    let fields = "List-Unsubscribe: <https://l.example/u>,\r\n <mailto:leave@l.example?subject=out%20a>\r\n";
    let mut mail = Fake { count: 3, fields: fields.into(), ..Fake::default() };
    let page = |mail: &mut Fake, path: &str| {
        let reply = answer(mail, path, None);
        body(mail, reply)
    };
    assert!(page(&mut mail, "/m/1/3").contains("by a mail to <bdi>leave@l.example</bdi>"));
    assert!(!page(&mut mail, "/m/5/3").contains("/unsubscribe"), "junk is not answered");
    let post = |mail: &mut Fake, at: &str| answer(mail, "/unsubscribe", Some(&format!("at={at}&token={TOKEN}"))).status;
    assert_eq!((post(&mut mail, "5.3"), post(&mut mail, "8.1"), post(&mut mail, "")), (404, 404, 404));
    assert!(mail.sent.is_empty());
    assert_eq!(post(&mut mail, "1.3"), 303);
    let sent = mail.sent.pop().unwrap();
    let text = String::from_utf8(sent.content).unwrap();
    assert!(sent.to == ["leave@l.example"] && text.contains("\r\nSubject: out a\r\n"), "{text}");
    mail.fields = "List-Unsubscribe: <https://l.example/u>\r\n".into();
    let read = page(&mut mail, "/m/1/3");
    assert!(read.contains("nofollow\" href=\"https://l.example/u\">Unsubscribe</a>"), "{read}");
    assert_eq!(post(&mut mail, "1.3"), 404);
}

#[test]
fn a_message_is_printed_under_the_policy_of_its_frame() {
    let mut mail = fake();
    let reply = answer(&mut mail, "/m/1/60/print", None);
    let policy = field(&reply, "Content-Security-Policy");
    assert!(policy.contains("sandbox allow-popups") && !policy.contains("allow-scripts"), "{policy}");
    let page = body(&mut mail, reply);
    assert!(
        page.contains("<dt>From</dt>") && page.contains("Hello,") && page.contains("<h2>Attachments</h2>"),
        "{page}"
    );
    assert_eq!(answer(&mut mail, "/m/8/1/print", None).status, 404);
}

#[test]
fn forms_do_what_they_say() {
    let mut mail = fake();
    for (path, fields, wanted) in [
        ("/act", "at=1.1&at=1.3&do=delete&back=/m/1", "move 1 [1, 3] 6"),
        ("/act", "at=6.1&do=delete&back=/m/6", "expunge 6 [1]"),
        ("/act", "at=1.2&do=move&to=4&back=/m/1", "move 1 [2] 4"),
        ("/act", "at=1.2&do=unseen", "flag 1 [2] Seen false"),
        ("/act", "at=1.2&do=junk&back=/m/1", "move 1 [2] 5"),
        ("/act", "at=5.2&do=ham&back=/m/5", "move 5 [2] 1"),
        ("/act", "all=1.9&at=1.8&do=delete&back=/m/1", "move 1 [8, 9] 6"),
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
        (sent.from.as_str(), sent.to.as_slice(), sent.origin.answers),
        ("info@mx.example", &["b@c.example".into()][..], Some((1, 60)))
    );
    let text = String::from_utf8(sent.content).expect("ASCII");
    assert!(text.contains("multipart/mixed") && text.contains("ZmlsZQ=="), "{text}");
    // Of a file that has moved meanwhile the user is told.
    let fields = "do=send&from=info@mx.example&to=b@c.example&text=t&keep=1.60.1.3&keep=1.999.1.3";
    let told = answer(&mut mail, "/write", Some(&format!("{fields}&token={TOKEN}")));
    assert_eq!((told.status, mail.sent.len()), (400, 0));
    assert!(body(&mut mail, told).contains("no longer where it was"));
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
    assert!(field(&reply, "Content-Disposition").starts_with("attachment; filename*=UTF-8''script%3E%3Cimg"));
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
    let page = body(&mut fake(), webmail::denied(Language::default(), HOSTILE, Denial::Wrong));
    assert!(!page.contains("<script") && page.contains("The name or the password is wrong."), "{page}");
}

#[test]
fn pages_with_passkeys_have_our_script_alone_and_hostile_values_are_text() {
    let (hostile, language) = ([HOSTILE.to_owned()], Language::default());
    let step = Step { name: HOSTILE, challenge: HOSTILE, passkeys: &hostile, denial: Some(Denial::WrongPasskey) };
    let mut mail = fake();
    for reply in [
        answer(&mut mail, "/passkeys", None),
        webmail::needs_step(language, &step),
        webmail::asks_for_passkey(language, HOSTILE, ("0", true), Some(Denial::WrongPasskey)),
    ] {
        let policy = field(&reply, "Content-Security-Policy").to_owned();
        assert!(policy.starts_with("default-src 'none';") && policy.contains("; script-src 'self'; require-trusted"));
        let page = body(&mut mail, reply);
        let scripts: Vec<&str> = page.match_indices("<script").map(|(at, _)| &page[at..]).collect();
        assert_eq!(scripts.len(), 1, "{page}");
        assert!(scripts[0].starts_with("<script src=\"/passkey.js\" defer></script>"));
        assert!(!page.contains("<img") && !page.contains("onerror=alert(1)>"), "{page}");
        assert!(page.contains(" disabled>") && page.contains("This needs JavaScript"), "without script it says so");
    }
    let script = answer(&mut mail, "/passkey.js", None);
    assert_eq!(field(&script, "Content-Type"), "text/javascript; charset=utf-8");
    let cookie = webmail::asks_for_passkey(language, "1", ("0", true), None);
    let cookie = field(&cookie, "Set-Cookie");
    assert_eq!(cookie, "__Host-sluice-passkey=0; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=300");
}

#[test]
fn a_passkey_is_added_for_the_session_that_asks_and_a_code_is_a_picture() {
    let mut mail = fake();
    let form = format!("token={TOKEN}&do=add&name=Key&password=p&client=c&attestation=a");
    assert_eq!(field(&answer(&mut mail, "/passkeys", Some(&form)), "Location"), "/passkeys?told=kept");
    let asked = format!(
        "passkey of {TOKEN} NewPasskey {{ password: \"p\", name: \"Key\", client: \"c\", attestation: \"a\" }}"
    );
    assert!(mail.asked.contains(&asked), "{:?}", mail.asked);
    assert_eq!(answer(&mut mail, "/passkeys", Some(&format!("token={TOKEN}&do=end&id=x"))).status, 404);
    assert_eq!(answer(&mut mail, "/passkeys", Some("token=0&do=end&id=2")).status, 403);
    let second = answer(&mut mail, "/second", None);
    let second = body(&mut mail, second);
    assert!(second.contains("<svg role=\"img\" aria-label=\"QR code of the link\""), "{second}");
    assert!(second.contains("value=\"passkeys\"") && !second.contains("<script"), "{second}");
}

#[test]
fn a_mail_outlives_the_session_that_it_was_written_in() {
    let mut mail = Fake { count: 60, ..Fake::default() };
    let typed = "do=send&from=info@mx.example&to=b%40c.example&subject=a%22b&text=x%3Cy&token=old";
    let call = call("/write", Some(typed));
    let told = answer_stranger(&call);
    assert_eq!(told.status, 401);
    let page = body(&mut mail, told);
    for part in [
        "name=\"to\" value=\"b@c.example\"",
        "value=\"a&quot;b\"",
        ">\nx&lt;y</textarea>",
        "href=\"/login\" target=\"_blank\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("token"));
    let told = answer(&mut mail, "/write", Some(typed));
    assert_eq!((told.status, mail.sent.len()), (403, 0));
    let page = body(&mut mail, told);
    assert!(page.contains("not sent yet") && page.contains("b@c.example") && page.contains(TOKEN), "{page}");
}

#[test]
fn a_draft_knows_what_it_answers_and_forwards() {
    let mut mail = Fake { count: 60, ..Fake::default() };
    let typed = format!("do=draft&from=info@mx.example&text=t&answers=1.60&forwards=1.59&token={TOKEN}");
    assert_eq!(answer(&mut mail, "/write", Some(&typed)).status, 303);
    let saved = String::from_utf8(mail.saved.clone()).unwrap();
    assert!(saved.starts_with("X-Sluice-Answers: 1.60\r\nX-Sluice-Forwards: 1.59\r\n"), "{saved}");
    mail.fields = "X-Sluice-Answers: 1.60\r\nX-Sluice-Forwards: 1.59\r\n".into();
    let form = answer(&mut mail, "/write?draft=1.60", None);
    let form = body(&mut mail, form);
    assert!(
        form.contains("name=\"answers\" value=\"1.60\"") && form.contains("name=\"forwards\" value=\"1.59\""),
        "{form}"
    );
}

#[test]
fn a_search_without_an_end_is_told() {
    let mut mail = Fake { count: 60, ..Fake::default() };
    for (words, is_told) in [("slow", true), ("quick", false)] {
        let found = answer(&mut mail, &format!("/search?q={words}"), None);
        assert_eq!(body(&mut mail, found).contains("Not all messages could be searched"), is_told, "{words}");
    }
}
