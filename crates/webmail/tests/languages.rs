//! Every page in every language: nothing of it is in another one.

use std::collections::BTreeMap;

use webmail::mail::Identity;
use webmail::session::Session;
use webmail::{Call, Denial, Language, Refusal, Reply, Step};

use crate::fake::Fake;
use crate::pages::{PAGES, TOKEN, body, call, field};

/// Words of values in these tests, and names that are the same in all languages.
const KNOWN: &str = "Sluice Mail IMAP POP3 SMTP JMAP ManageSieve Sieve RFC UTC vCard CSV Google Outlook List Id Cc GET POST store relay kB MB GB B \
    ann mx example info leave list Hello quoted https Mozilla X11 Linux x86 64 script alert img src x onerror b a c bob \
    svg onload secret SECRET otpauth totp abcd code English Deutsch Français Español file e de svg p S svg";

/// A mailbox with values in letters that no language of ours has.
fn mailbox(tag: &str) -> Fake {
    Fake {
        subject: "Привет".into(),
        html: "<p>Привет<img src=https://a.example/x><img src=https://a.example/y>".into(),
        count: 60,
        settings: format!("25 language={tag} pictures=a@x.example\n60\nИмя\nПодпись").into_bytes(),
        contacts: b"BEGIN:VCARD\nFN:x\nEMAIL:a@x.example\nUID:1\nEND:VCARD\n".to_vec(),
        identities: vec![Identity { address: "info@mx.example".into(), ..Identity::default() }],
        fields: "List-Unsubscribe: <mailto:leave@list.example>\r\n".into(),
        ..Fake::default()
    }
}

/// Forms whose answers are pages: faults, failures, and what is shown once.
const FORMS: [(&str, &str); 28] = [
    ("/write", "do=send&from=ann@mx.example&to=b"),
    ("/write", "do=send&from=ann@mx.example"),
    ("/write", "do=send&from=b@c.example&to=b@c.example"),
    ("/contacts", "do=save"),
    ("/contacts", "do=save&addresses=a"),
    (
        "/contacts",
        "do=save&addresses=a@b.c,b@b.c,c@b.c,d@b.c,e@b.c,f@b.c,g@b.c,h@b.c,i@b.c,j@b.c,k@b.c,l@b.c,m@b.c,n@b.c,o@b.c,p@b.c,q@b.c,r@b.c,s@b.c,t@b.c,u@b.c",
    ),
    ("/contacts", "do=import"),
    ("/filters/rule", "name="),
    ("/filters/rule", "field1=subject&how1=is&value1=1"),
    ("/filters/rule", "field1=subject&how1=is&value1=1&forward=ann@mx.example"),
    ("/filters/rule", "field1=subject&how1=is&value1=1&forward=a@b.example,c@b.example"),
    ("/vacation", "from=1"),
    ("/vacation", "from=2026-12-31&until=2026-12-01"),
    ("/vacation", "on=1"),
    ("/second", "do=begin&code=1"),
    ("/second", "do=end"),
    ("/app-passwords", "do=add&name=1&door=imap"),
    ("/app-passwords", "do=end&id=9"),
    ("/passkeys", "do=add&name=1"),
    ("/passkeys", "do=add&name=2"),
    ("/passkeys", "do=end&id=1"),
    ("/second", "do=passkeys"),
    ("/folders", "do=delete&folder=1&sure=1"),
    ("/act", "at=1.1&do=move&to=9"),
    ("/unsubscribe", "at=9.9"),
    ("/sessions", "end=1&token=0"),
    ("/pictures", "do="),
    ("/filters", "do="),
];

fn answer(mail: &mut Fake, path: &str, fields: Option<&str>) -> Reply {
    let session = Session::new(1, "ann".into(), TOKEN.into(), [0; 32], 0);
    let fields = fields.map(|fields| match fields.contains("token=") {
        true => fields.to_owned(),
        false => format!("{fields}&token={TOKEN}"),
    });
    webmail::answer(mail, &session, call(path, fields.as_deref()))
}

/// All pages in a language, by where they come from.
fn pages(language: Language) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |mail: &mut Fake, path: String, reply: Reply| {
        assert!(field(&reply, "Content-Type").starts_with("text/html"), "{path}");
        all.push((path, body(mail, reply)));
    };
    let mut mail = mailbox(language.tag());
    let told = ["sent", "draft", "moved", "deleted", "marked", "junk", "ended", "left", "kept"];
    let more =
        ["/second", "/passkeys", "/x", "/m/1?before=9", "/m/2", "/m/3", "/m/5", "/search?q=1", "/search", "/vacation"];
    let paths = PAGES.into_iter().chain(more).map(String::from);
    let paths: Vec<String> = paths.chain(told.map(|told| format!("/?told={told}"))).collect();
    for path in paths {
        let reply = answer(&mut mail, &path, None);
        add(&mut mail, path, reply);
    }
    for script in ["", "keep;", &filters()] {
        mail.script = script.into();
        for path in ["/filters", "/filters/rule", "/filters/text", "/vacation"] {
            let reply = answer(&mut mail, path, None);
            add(&mut mail, format!("{path} {script}"), reply);
        }
    }
    mail.has_second = true;
    let reply = answer(&mut mail, "/second", None);
    add(&mut mail, "second, set up".into(), reply);
    let mut empty = Fake { count: 0, contacts: Vec::new(), ..mailbox(language.tag()) };
    for path in ["/m/1", "/m/2", "/search?q=1", "/contacts", "/settings"] {
        let reply = answer(&mut empty, path, None);
        add(&mut empty, format!("{path}, empty"), reply);
    }
    for (path, fields) in FORMS {
        let reply = answer(&mut mail, path, Some(fields));
        add(&mut mail, format!("{path} {fields}"), reply);
    }
    let stranger = Call { language, ..call("/", None) };
    add(&mut mail, "/login".into(), webmail::answer_stranger(&stranger));
    let step = Step { name: "ann", challenge: "1", passkeys: &["1".into()], denial: None };
    add(&mut mail, "step".into(), webmail::needs_step(language, &step));
    add(&mut mail, "/login/passkey".into(), webmail::asks_for_passkey(language, "1", ("1", true), None));
    for why in [Denial::Wrong, Denial::WrongCode, Denial::WrongPasskey, Denial::Late, Denial::Away, Denial::Busy] {
        add(&mut mail, format!("{why:?}"), webmail::denied(language, "ann", why));
    }
    for why in [
        Refusal::TooLarge,
        Refusal::FilesTooLarge,
        Refusal::Connections,
        Refusal::Busy,
        Refusal::Closed,
        Refusal::OtherSession,
        Refusal::OtherSite,
        Refusal::Method,
        Refusal::NoAddress,
        Refusal::Missing,
    ] {
        add(&mut mail, format!("{why:?}"), webmail::refusal(language, why));
    }
    all
}

fn filters() -> String {
    use webmail::filters::{Field, Filters, Match, Place, Rule, Test};
    let test = |field, how| Test { field, how, value: "1".into() };
    let tests = vec![test(Field::From, Match::Contains), test(Field::List, Match::Is), test(Field::To, Match::Lacks)];
    let rule = Rule { tests, place: Place::Folder("Archive".into()), forward: "b@x.example".into(), ..Rule::default() };
    let marks =
        Rule { place: Place::Nowhere, is_seen: true, is_flagged: true, is_last: true, is_any: true, ..rule.clone() };
    Filters { rules: vec![rule, marks], ..Filters::default() }.script()
}

/// The texts that a user sees or hears: those between tags, and of some attributes.
fn shown(page: &str) -> String {
    let page = page.split_once("<style>").map_or(page.to_owned(), |(head, rest)| {
        format!("{head}{}", rest.split_once("</style>").map_or("", |(_, rest)| rest))
    });
    let page = without(&without(&page, "<textarea", "</textarea>"), "<datalist", "</datalist>");
    let mut texts = String::new();
    for piece in page.split('<') {
        let (tag, text) = piece.split_once('>').unwrap_or(("", piece));
        for name in [" title=\"", " aria-label=\"", " placeholder=\""] {
            texts.extend(tag.split(name).skip(1).flat_map(|value| [value.split('"').next().unwrap(), "\n"]));
        }
        texts.push_str(text);
        texts.push('\n');
    }
    texts.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&")
}

/// A page without the values of fields.
fn without(page: &str, begin: &str, end: &str) -> String {
    let mut pieces = page.split(begin);
    let first = pieces.next().unwrap().to_owned();
    pieces.fold(first, |page, piece| page + piece.split_once(end).map_or("", |(_, rest)| rest))
}

#[test]
fn pages_in_chinese_and_arabic_have_no_latin_word_that_is_not_a_value() {
    let known: Vec<&str> = KNOWN.split_whitespace().collect();
    let mut foreign = BTreeMap::new();
    for tag in ["zh-Hans", "ar"] {
        for (path, page) in pages(Language::tagged(tag).unwrap()) {
            let text = shown(&page);
            let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.contains(char::is_alphabetic));
            let latin = words.filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric()));
            foreign.extend(latin.filter(|word| !known.contains(word)).map(|word| (word.to_owned(), path.clone())));
        }
    }
    assert!(foreign.is_empty(), "{foreign:?}");
}

#[test]
fn every_page_says_its_language_and_direction_and_differs_from_the_english_one() {
    let english = pages(Language::default());
    for language in Language::all() {
        let tag = language.tag();
        let html = format!("<html lang=\"{tag}\" dir=\"{}\">", if tag == "ar" { "rtl" } else { "ltr" });
        for ((path, page), (_, other)) in pages(language).into_iter().zip(&english) {
            let is_sheet = path.contains("/html/") || path.contains("/print");
            assert!(is_sheet || page.contains(&html), "{tag} {path}");
            assert!(tag == "en" || shown(&page) != shown(other), "{tag} {path}");
            assert!(!page.contains("{0}") && !page.contains("{1}"), "{tag} {path}: {page}");
        }
    }
}

#[test]
fn the_setting_comes_before_the_browser_and_is_kept_with_the_others() {
    let mut mail = mailbox("");
    let session = Session::new(1, "ann".into(), TOKEN.into(), [0; 32], 0);
    let page = |mail: &mut Fake, asked: &str| {
        let language = Language::accepted(asked.as_bytes());
        let reply = webmail::answer(mail, &session, Call { language, ..call("/settings", None) });
        body(mail, reply)
    };
    assert!(page(&mut mail, "fr").contains("<html lang=\"fr\""));
    assert!(page(&mut mail, "").contains("<html lang=\"en\""));
    let fields = "rows=25&zone=60&signature=x&view=threaded&language=";
    assert_eq!(answer(&mut mail, "/settings", Some(&format!("{fields}de"))).status, 303);
    assert_eq!(mail.settings, b"25 threaded language=de pictures=a@x.example\n60\n\nx");
    let german = page(&mut mail, "fr");
    assert!(
        german.contains("<html lang=\"de\"") && german.contains("<option value=\"de\" lang=\"de\" selected>Deutsch")
    );
    for none in ["", "xx", "de%20x"] {
        answer(&mut mail, "/settings", Some(&format!("{fields}{none}")));
        let kept = String::from_utf8(mail.settings.clone()).unwrap();
        assert_eq!(kept.contains("language=de"), none == "de%20x", "{kept}");
    }
}

#[test]
fn mails_that_are_written_are_in_the_language_of_the_user() {
    for (tag, wrote, forwarded, from) in [
        ("de", "schrieb", "---------- Weitergeleitete Nachricht ----------", "Von: "),
        ("ar", "كتب", "---------- رسالة معاد توجيهها ----------", "من: "),
    ] {
        let mut mail = mailbox(tag);
        let reply = answer(&mut mail, "/write?reply=1.60", None);
        assert!(body(&mut mail, reply).contains(wrote), "{tag}");
        let reply = answer(&mut mail, "/write?forward=1.60", None);
        let page = body(&mut mail, reply);
        assert!(page.contains(forwarded) && page.contains(from), "{page}");
    }
}

#[test]
fn the_first_visit_is_small_in_every_language() {
    for language in Language::all() {
        let mut mail = mailbox(language.tag());
        mail.settings = format!("50 language={}\n0\n\n", language.tag()).into_bytes();
        let stranger = Call { language, ..call("/", None) };
        let login = body(&mut mail, webmail::answer_stranger(&stranger)).len();
        let reply = answer(&mut mail, "/", None);
        let bytes = login + webmail::STYLE.len() + body(&mut mail, reply).len();
        assert!(bytes <= 50_000, "{language:?}: {bytes}");
    }
}
