//! Writes every page into a folder, to be looked at: `pages FOLDER`.

#[path = "../tests/fake/mod.rs"]
mod fake;

use webmail::filters::{Field, Filters, Match, Place, Rule, Test, Vacation};
use webmail::session::Session;
use webmail::{Body, Call, Denial, Form, Language};

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "pages".into());
    std::fs::create_dir_all(&folder)?;
    let subject = "Minutes of the meeting on Thursday, with the figures".into();
    let html = "<h1>Hello</h1><p>A <b>letter</b> with <a href=https://a.example>a link</a>.</p><img src=https://a.example/x.png>";
    let mut mail = fake::Fake {
        subject,
        html: html.into(),
        count: 60,
        settings: b"50 pictures=ada@a.example,list@b.example\n60\nAnn\nAnn of the office".to_vec(),
        contacts: (1..9)
            .map(|id| {
                format!(
                    "BEGIN:VCARD\nFN:Ada Lovelace {id}\nEMAIL:ada{id}@a.example\nTEL:+44 20 {id}\nUID:{id}\nEND:VCARD\n"
                )
            })
            .collect::<String>()
            .into_bytes(),
        ..Default::default()
    };
    let tests = vec![Test { field: Field::Subject, how: Match::Contains, value: "invoice".into() }];
    let rule =
        Rule { name: "Bills".into(), tests, place: Place::Folder("Archive".into()), is_seen: true, ..Rule::default() };
    let away = Vacation { is_on: true, text: "I am away until Monday.".into(), ..Vacation::default() };
    mail.script = Filters { vacation: away, rules: vec![rule.clone(), rule] }.script();
    mail.fields = "List-Unsubscribe: <mailto:leave@list.example>\r\n".into();
    let session = Session::new(1, "ann".into(), "token".into(), [0; 32], 0);
    for (name, path, query) in [
        ("list", "", ""),
        ("read", "m/1/60", ""),
        ("text", "m/1/60", "as=text"),
        ("frame", "m/1/60/html/1.2", ""),
        ("write", "write", ""),
        ("reply", "write", "reply=1.60"),
        ("forward", "write", "forward=1.60&told=draft"),
        ("search", "search", "q=minutes"),
        ("folders", "folders", "told=kept"),
        ("settings", "settings", ""),
        ("contacts", "contacts", ""),
        ("contact", "contacts/edit", "id=1"),
        ("pictures", "pictures", ""),
        ("app-passwords", "app-passwords", "told=ended"),
        ("sessions", "sessions", "told=ended"),
        ("second", "second", ""),
        ("passkeys", "passkeys", ""),
        ("filters", "filters", "told=kept"),
        ("rule", "filters/rule", "id=0"),
        ("script", "filters/text", ""),
        ("vacation", "vacation", ""),
        ("identities", "identities", ""),
        ("print", "m/1/60/print", ""),
        ("conversation", "m/1/60/conversation", ""),
        ("missing", "x", ""),
        ("style", "style.css", ""),
    ] {
        let path = path.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect();
        let call = Call { is_known: true, path, query: Form::of_fields(query.as_bytes()), ..Call::default() };
        write(&folder, name, webmail::answer(&mut mail, &session, call).body)?;
    }
    write(&folder, "login", webmail::answer_stranger(&Call { is_known: true, ..Call::default() }).body)?;
    write(&folder, "denied", webmail::denied(Language::default(), "ann", Denial::Wrong).body)
}

fn write(folder: &str, name: &str, body: Body) -> std::io::Result<()> {
    let Body::Bytes(bytes) = body else { return Ok(()) };
    std::fs::write(format!("{folder}/{name}{}", if name == "style" { ".css" } else { ".html" }), bytes)
}
