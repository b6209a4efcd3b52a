//! Mails authenticated at the doors, in SMTP, LMTP and milter, jailed and not: the field, what follows from policies, and a DNS
//! that is slow, lies, goes in circles or is away.

use std::time::{Duration, Instant};

use crate::harness::dns::{Dns, Told};
use crate::harness::{Behaviour, Gateway, PATIENCE, Sink, Wire, stuffed};
use crate::milter::Server;

/// The example of RFC 8463 appendix A.
const SIGNED: &str = "DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r\n d=football.example.com; i=@football.example.com;\r\n \
    q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r\n subject : date : message-id : from : subject : date;\r\n \
    bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus\r\n \
    Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==\r\nFrom: Joe SixPack <joe@football.example.com>\r\n\
    To: Suzie Q <suzie@shopping.example.net>\r\nSubject: Is dinner ready?\r\n\
    Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\nMessage-ID: <20030712040037.46341.5F8J@football.example.com>\r\n\r\n\
    Hi.\r\n\r\nWe lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n";

const KEY: &str = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

/// A mail that nobody has signed.
const BARE: &str = "From: b@strict.example\r\nSubject: hello\r\n\r\nbody\r\n";

const FORGED: &str = "Authentication-Results: mx.test; dmarc=pass\r\nAuthentication-Results: other.test; dmarc=pass\r\n\
    authentication-results: (x) MX.test 1;\r\n\tspf=pass\r\n";

/// DNS answers for the senders of these tests.
fn known(name: &str) -> Told {
    Told::Text(match name {
        "client.test" => "v=spf1 ip4:192.0.2.7 -all".into(),
        "brisbane._domainkey.football.example.com" => KEY.into(),
        "_dmarc.football.example.com" => "v=DMARC1; p=reject".into(),
        "_dmarc.strict.example" => "v=DMARC1; p=reject".into(),
        "_dmarc.careful.example" => "v=DMARC1; p=quarantine".into(),
        _ => return Told::NoName,
    })
}

fn head(isolation: &str, dns: &Dns, settings: &str) -> String {
    format!("isolation = \"{isolation}\"\n{}[authentication]\n{settings}\n", dns.settings())
}

/// A session of a client of this address, up to the end of data.
fn open(gateway: &Gateway, client: &str, sender: &str) -> Wire {
    let mut wire = gateway.connect();
    wire.send(format!("PROXY TCP4 {client} 127.0.0.1 1 25\r\n").as_bytes());
    wire.talk(&format!(
        "S: 220 *\nC: EHLO mail.client.test\nS: 250-*\nC: MAIL FROM:<{sender}>\nS: 250 *\nC: RCPT TO:<c@d.example>\nS: 250 *"
    ));
    wire.talk("C: DATA\nS: 354 *");
    wire
}

fn send(gateway: &Gateway, client: &str, sender: &str, mail: &str) -> String {
    let mut wire = open(gateway, client, sender);
    wire.send(&stuffed(mail.as_bytes()));
    wire.send(b".\r\n");
    wire.reply()
}

const BEHIND_PROXY: &str = "proxy_from = [\"127.0.0.1\"]\ntrust = \"off\"";

#[test]
fn results_go_on_top_and_those_that_pretend_to_be_ours_go() {
    for isolation in ["process", "none"] {
        let (dns, sink) = (Dns::start(|name, _| known(name)), Sink::start(Behaviour::default()));
        let gateway = Gateway::start_with(&head(isolation, &dns, ""), "smtp", &sink.forward(), BEHIND_PROXY);
        let mail = format!("{FORGED}{SIGNED}");
        assert_eq!(send(&gateway, "192.0.2.7", "a@client.test", &mail), "250 2.0.0 Taken", "{isolation}");
        let text = sink.wait(1)[0].text();
        let (ours, rest) = text.split_once("Received: from mail.client.test").unwrap();
        assert_eq!(
            ours,
            "Authentication-Results: mx.test;\r\n\tspf=none (mail.client.test has no policy) smtp.helo=mail.client.test;\r\n\
             \tspf=pass (ip4:192.0.2.7 of client.test) smtp.mailfrom=a@client.test;\r\n\
             \tdkim=pass (256-bit key) header.d=football.example.com header.i=@football.example.com \
             header.s=brisbane header.b=/gCrinpc header.a=ed25519-sha256;\r\n\
             \tdmarc=pass (policy reject of football.example.com) header.from=football.example.com\r\n",
            "{isolation}"
        );
        let body = format!("Authentication-Results: other.test; dmarc=pass\r\n{SIGNED}");
        assert!(rest.ends_with(&body) && !rest.contains("mx.test;"), "{rest}");
        gateway.wait_for_log("sender=\"spf=pass dkim=pass dmarc=pass arc=none\"");
        // Whatever is known is not asked again.
        let asked = dns.asked().len();
        assert_eq!(send(&gateway, "192.0.2.7", "a@client.test", SIGNED), "250 2.0.0 Taken");
        assert_eq!(dns.asked().len(), asked, "{isolation}: {:?}", dns.asked());
        // A byte more, and the author has not written it.
        let reply = send(&gateway, "192.0.2.7", "a@client.test", &format!("{SIGNED}x\r\n"));
        assert_eq!(reply, "250 2.0.0 Taken", "it is told, and nothing follows");
        assert!(sink.wait(3)[2].text().contains("\tdmarc=fail (policy reject"), "{isolation}");
    }
}

#[test]
fn policies_are_followed_where_that_is_said_and_the_field_can_be_left_out() {
    for isolation in ["process", "none"] {
        let (dns, sink) = (Dns::start(|name, _| known(name)), Sink::start(Behaviour::default()));
        let settings = "header = false\non_dmarc_reject = \"reject\"\non_dmarc_quarantine = \"quarantine\"";
        let rule = "[[listener.rule]]\nsender = [\"*@client.test\"]\nauthentication = { on_spf_fail = \"reject\" }";
        let settings_of_door = format!("{BEHIND_PROXY}\nquarantine = \"FOLDER/kept\"\n{rule}");
        let head = head(isolation, &dns, settings);
        let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), &settings_of_door);
        let reply = send(&gateway, "192.0.2.9", "a@other.test", BARE);
        assert!(reply.starts_with("554 5.7.1 Message refused: DMARC policy of strict.example (id "), "{reply}");
        let reply = send(&gateway, "192.0.2.9", "a@other.test", &BARE.replace("strict", "careful"));
        assert!(reply.starts_with("250 2.0.0 Held back"), "{reply}");
        let plain = BARE.replace("strict", "plain");
        let reply = send(&gateway, "192.0.2.9", "a@client.test", &plain);
        assert!(reply.starts_with("554 5.7.1 Message refused: SPF policy of client.test (id "), "{reply}");
        // Forwarded, and its author's signature holds.
        assert_eq!(send(&gateway, "192.0.2.9", "a@client.test", SIGNED), "250 2.0.0 Taken");
        assert!(sink.wait(1)[0].text().starts_with("Received: "));
        // One that is larger than is held is refused all the same.
        let reply = send(&gateway, "192.0.2.9", "a@other.test", &format!("{BARE}{}", "line\r\n".repeat(200_000)));
        assert!(reply.starts_with("554 5.7.1 "), "{reply}");
        gateway.wait_for_log("policy=\"SPF policy of client.test\"");
    }
}

#[test]
fn a_bad_dns_costs_a_mail_no_more_than_its_budget_and_decides_nothing() {
    let strict = || "v=DMARC1; p=reject".to_string();
    let kinds: Vec<(&str, Told, &str)> = vec![
        ("silent", Told::Silence, "temperror"),
        ("failing", Told::Failure, "temperror"),
        ("circle", Told::Circle, "temperror"),
        ("lying-id", Told::WrongId(strict()), "temperror"),
        ("garbage", Told::Garbage, "temperror"),
        ("slow", Told::Slow(PATIENCE, strict()), "temperror"),
        ("huge", Told::Text(format!("v=DMARC1; p=reject; x={}", "y".repeat(40_000))), "temperror"),
        ("other-name", Told::WrongName(strict()), "none"),
        ("truncated", Told::Text(format!("v=DMARC1; p=none; x={}", "y".repeat(2_000))), "fail"),
    ];
    for isolation in ["process", "none"] {
        let told = kinds.clone();
        let dns = Dns::start(move |name, _| {
            let found = told.iter().find(|(kind, ..)| name == format!("_dmarc.{kind}.example"));
            found.map_or(Told::NoName, |(_, told, _)| told.clone())
        });
        let sink = Sink::start(Behaviour::default());
        let settings = "wait_seconds = 2\non_dmarc_reject = \"reject\"\non_spf_fail = \"reject\"";
        let gateway = Gateway::start_with(&head(isolation, &dns, settings), "smtp", &sink.forward(), BEHIND_PROXY);
        for (index, (kind, _, result)) in kinds.iter().enumerate() {
            let began = Instant::now();
            let reply = send(&gateway, "192.0.2.9", "a@other.test", &BARE.replace("strict", kind));
            assert_eq!(reply, "250 2.0.0 Taken", "{isolation} {kind}");
            // Far more than the budget, and far less than the slow one takes.
            assert!(began.elapsed() < Duration::from_secs(30), "{isolation} {kind}: {:?}", began.elapsed());
            let text = sink.wait(index + 1)[index].text();
            assert!(text.contains(&format!("\tdmarc={result} ")), "{isolation} {kind}: {text}");
        }
    }
}

#[test]
fn a_policy_that_does_not_fit_a_packet_is_read_by_tcp() {
    let policy = format!("v=DMARC1; p=reject; x={}", "y".repeat(3_000));
    let dns = Dns::start(move |name, _| match name {
        "_dmarc.strict.example" => Told::Text(policy.clone()),
        _ => Told::NoName,
    });
    let sink = Sink::start(Behaviour::default());
    let head = head("process", &dns, "on_dmarc_reject = \"reject\"");
    let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), BEHIND_PROXY);
    let reply = send(&gateway, "192.0.2.9", "a@other.test", BARE);
    assert!(reply.starts_with("554 5.7.1 Message refused: DMARC policy of strict.example"), "{reply}");
    let policies = dns.asked().iter().filter(|asked| asked.starts_with("_dmarc.strict.example")).count();
    assert_eq!(policies, 2, "by UDP, then by TCP: {:?}", dns.asked());
}

#[test]
fn lmtp_adds_what_smtp_does_and_knows_no_client_on_this_machine() {
    let sink = Sink::start(Behaviour { lmtp: true, ..Behaviour::default() });
    let dns = Dns::start(|name, _| known(name));
    let forward = format!("lmtp://{}", sink.address);
    let gateway = Gateway::start_with(&head("process", &dns, ""), "lmtp", &forward, "");
    let mut wire = gateway.connect();
    wire.talk(
        "S: 220 *\nC: LHLO x\nS: 250-*\nC: MAIL FROM:<a@client.test>\nS: 250 *\nC: RCPT TO:<c@d.example>\nS: 250 *",
    );
    wire.talk("C: DATA\nS: 354 *");
    wire.send(&stuffed(SIGNED.as_bytes()));
    wire.send(b".\r\n");
    assert!(wire.reply().starts_with("250"));
    let text = sink.wait(1)[0].text();
    assert!(text.starts_with("Authentication-Results: mx.test;\r\n\tspf=none (no client)"), "{text}");
    assert!(text.contains("\tdkim=pass (256-bit key)") && text.contains("\tdmarc=pass "), "{text}");
}

#[test]
fn a_milter_puts_the_field_on_top_and_deletes_those_that_pretend_to_be_ours() {
    for isolation in ["process", "none"] {
        let dns = Dns::start(|name, _| known(name));
        let head = head(isolation, &dns, "on_dmarc_reject = \"reject\"");
        let gateway = Gateway::with(&format!(
            "hostname = \"mx.test\"\nthreads = 1\n{head}[[listener]]\nprotocol = \"milter\"\naddress = \"127.0.0.1:0\"\n"
        ));
        let mut server = Server::new(&gateway, true);
        let answers = server.message(format!("{FORGED}{SIGNED}").as_bytes(), 50);
        let letters: String = answers.iter().map(|(letter, _)| *letter).collect();
        assert_eq!(letters, "mmia", "{isolation}: {answers:?}");
        assert_eq!(answers[0].1, "\0\0\0\u{3}Authentication-Results\0\0", "the last goes first");
        assert_eq!(answers[1].1, "\0\0\0\u{1}Authentication-Results\0\0");
        let field = &answers[2].1;
        assert!(field.starts_with("\0\0\0\0Authentication-Results\0 mx.test;\n\tspf="), "{field:?}");
        assert!(field.contains("\n\tdkim=pass (256-bit key)") && !field.contains('\r'), "{field:?}");
        let answers = server.message(BARE.as_bytes(), 50);
        assert!(answers[0].0 == 'y' && answers[0].1.contains("DMARC policy of strict.example"), "{answers:?}");
    }
}
