//! Notices, through the built program: who is told what, in which language, and who is not.

use crate::harness::{Arrived, Behaviour, Gateway, Sink, base64, eicar, mail_with, stuffed, wait_for};

fn infected() -> Vec<u8> {
    mail_with("base64", "eicar.com", &base64(&eicar()))
}

/// Sends an infected mail with more fields in front.
fn send(gateway: &Gateway, from: &str, to: &str, fields: &str) -> String {
    let mut wire = gateway.connect();
    wire.talk(&format!("S: 220 *\nC: EHLO client.test\nS: 250-*\nC: MAIL FROM:<{from}>\nS: 250 *"));
    wire.talk(&format!("C: RCPT TO:<{to}>\nS: 250 *\nC: DATA\nS: 354 *"));
    wire.send(&stuffed(&[fields.as_bytes(), &infected()].concat()));
    wire.send(b".\r\n");
    wire.reply()
}

/// The notices among the mails that arrived.
fn notices(sink: &Sink) -> Vec<Arrived> {
    sink.mails().into_iter().filter(|mail| mail.text().contains("X-Sluice-Notice: mx.test\r\n")).collect()
}

fn wait_for_notices(sink: &Sink, count: usize) -> Vec<Arrived> {
    wait_for(|| Some(notices(sink)).filter(|all| all.len() >= count), &format!("{count} notices"))
}

#[test]
fn recipients_and_the_postmaster_are_told_in_their_languages() {
    let sink = Sink::start(Behaviour::default());
    let head = "[notices]\nrecipient = ['quarantine']\npostmaster = ['quarantine', 'reject']\n\
                postmaster_address = 'ops@mx.test'\ntemplates = 'FOLDER/texts'\nlanguages = { 'mx.de' = 'de' }\n";
    let folder = tempfile::tempdir().unwrap();
    let text = "subject: Custom {id}\nquarantine: Kept.\n\n{done} {sender}\n.\nlast line\n";
    std::fs::write(folder.path().join("recipient.en.txt"), text).unwrap();
    let head = head.replace("FOLDER/texts", &folder.path().display().to_string());
    let keeps = "on_infected = \"quarantine\"\nquarantine = \"FOLDER/quarantine\"";
    let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), keeps);

    assert!(send(&gateway, "a@client.test", "b@mx.test", "").starts_with("250 2.0.0 Held back"));
    let mut told = wait_for_notices(&sink, 2);
    told.sort_by_key(|mail| mail.to.clone());
    assert_eq!((told[0].to[0].as_str(), told[0].from.as_str()), ("b@mx.test", ""));
    let own = told[0].text();
    assert!(own.contains("Subject: Custom ") && own.ends_with("Kept. a@client.test\r\n.\r\nlast line\r\n"), "{own}");
    assert!(told[1].to[0] == "ops@mx.test" && told[1].text().contains("sluice quarantine show "), "{}", told[1].text());

    send(&gateway, "a@client.test", "b@mx.de", "");
    let told = wait_for_notices(&sink, 4);
    let german = told.iter().find(|mail| mail.to == ["b@mx.de"]).unwrap().text();
    assert!(german.contains("charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n"), "{german}");
}

#[test]
fn nobody_is_told_about_a_notice_or_too_often() {
    let sink = Sink::start(Behaviour::default());
    let head = "[notices]\nper_address_per_hour = 2";
    let gateway = Gateway::start_with(head, "smtp", &sink.forward(), "on_infected = \"blank\"");
    assert_eq!(send(&gateway, "", "b@mx.test", "X-Sluice-Notice: mx.test\r\n"), "250 2.0.0 Taken");
    for _ in 0..4 {
        assert_eq!(send(&gateway, "a@client.test", "b@mx.test", ""), "250 2.0.0 Taken");
    }
    send(&gateway, "a@client.test", "c@mx.test", "");
    let to_c = |all: &[Arrived]| all.iter().any(|mail| mail.to == ["c@mx.test"]);
    let told = wait_for(
        || Some(notices(&sink)).filter(|all| to_c(&all[1.min(all.len())..]) && all.len() >= 4),
        "the last notice",
    );
    // The first of those marked is the mail that only says that it is a notice.
    let to_b =
        told.iter().filter(|mail| mail.to == ["b@mx.test"] && !mail.text().contains("client.test\r\nTo: b")).count();
    assert_eq!(to_b, 2, "{told:#?}");
}

#[test]
fn a_sender_is_told_only_where_the_client_vouches_for_it() {
    let sink = Sink::start(Behaviour::default());
    let head = "[notices]\nrecipient = []\nsender = ['blank']\nsender_networks = ['127.0.0.0/8']\n\
                sender_domains = ['own.test']";
    let gateway = Gateway::start_with(head, "smtp", &sink.forward(), "on_infected = \"blank\"");
    for (from, fields) in [
        ("", ""),
        ("forged@else.test", ""),
        ("list-bounces@own.test", ""),
        ("a@own.test", "List-Id: <x.own.test>\r\n"),
        ("a@own.test", "Precedence: bulk\r\n"),
        ("a@own.test", "Auto-Submitted: auto-generated\r\n"),
    ] {
        send(&gateway, from, "b@mx.test", fields);
    }
    send(&gateway, "anna@own.test", "b@mx.test", "");
    let told = wait_for_notices(&sink, 1);
    assert_eq!((told.len(), &told[0].to[..]), (1, &["anna@own.test".to_string()][..]));
    assert!(told[0].text().contains("Your message to b@mx.test contained"), "{}", told[0].text());
}
