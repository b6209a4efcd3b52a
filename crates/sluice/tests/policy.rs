//! Rules by client, sender and recipient, and the ways of attachments, through the built program.

use std::process::Command;

use crate::harness::{Behaviour, Gateway, Sink, base64, eicar, mail_with, stuffed};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0";

fn gateway(sink: &Sink, attachments: &str, settings: &str) -> Gateway {
    Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n{attachments}\n[[listener]]\nprotocol = \"smtp\"\n\
         address = \"127.0.0.1:0\"\nforward = \"{}\"\n{settings}\n",
        sink.forward()
    ))
}

fn attached(name: &str, content: &[u8]) -> Vec<u8> {
    mail_with("base64", name, &base64(content))
}

/// Sends a mail and returns the reply to its end.
fn send(gateway: &Gateway, from: &str, to: &str, mail: &[u8]) -> String {
    let mut wire = gateway.connect();
    wire.talk(&format!("S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<{from}>\nS: 250 *\nC: RCPT TO:<{to}>\nS: 250 *"));
    wire.talk("C: DATA\nS: 354 *");
    wire.send(&stuffed(mail));
    wire.send(b".\r\n");
    wire.reply()
}

#[test]
fn an_attachment_is_forbidden_by_name_ending_and_true_type() {
    let sink = Sink::start(Behaviour::default());
    let attachments = "[[attachment]]\nname = 'programs'\nextensions = ['exe', 'js']\nway = 'forbid'\n\
        [[attachment]]\nname = 'binaries'\ntypes = ['elf']\nway = 'forbid'\n";
    let gateway = gateway(&sink, attachments, "attachments = ['programs', 'binaries']");
    let elf = [b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".as_slice(), &[0; 100]].concat();
    for (name, content, wanted) in [
        ("Invoice.EXE. ", b"text".as_slice(), "Policy.Forbidden.programs"),
        ("a.js", b"text", "Policy.Forbidden.programs"),
        ("holiday.jpg", &elf, "Policy.Forbidden.binaries"),
    ] {
        let reply = send(&gateway, "a@b", "c@d", &attached(name, content));
        assert!(reply.starts_with(&format!("554 5.7.1 Message refused: {wanted} in ")), "{name}: {reply}");
    }
    assert_eq!(send(&gateway, "a@b", "c@d", &attached("a.jpg", PNG)), "250 2.0.0 Taken");
    gateway.wait_for_log("Policy.Forbidden.binaries in holiday.jpg");
}

#[test]
fn a_bypass_goes_by_the_true_type_and_not_by_what_is_said() {
    let sink = Sink::start(Behaviour::default());
    let attachments = "[[attachment]]\nname = 'pictures'\nextensions = ['png']\ntypes = ['image']\nway = 'bypass'\n";
    let mail = |name: &str, start: &[u8]| attached(name, &[start, &eicar()].concat());
    let inspects = gateway(&sink, "", "");
    let bypasses = gateway(&sink, attachments, "attachments = ['pictures']");
    assert!(send(&bypasses, "a@b", "c@d", &mail("a.png", b"")).starts_with("554 "), "named so, and none");
    assert!(send(&inspects, "a@b", "c@d", &mail("a.png", PNG)).starts_with("554 "));
    assert_eq!(send(&bypasses, "a@b", "c@d", &mail("a.png", PNG)), "250 2.0.0 Taken");
}

#[test]
fn a_rule_changes_what_holds_for_some() {
    let sink = Sink::start(Behaviour::default());
    let gateway = gateway(
        &sink,
        "[[attachment]]\nname = 'programs'\nextensions = ['exe']\nway = 'forbid'\n",
        "attachments = ['programs']\nmessage_bytes_max = 100000\n\
         [[listener.rule]]\nsender = ['*@lab.test']\nrecipient = ['lab@*']\non_infected = 'tag'\nattachments = []\n\
         [[listener.rule]]\nclient = ['192.0.2.0/24']\non_infected = 'pass'\n\
         [[listener.rule]]\nrecipient = ['small@*']\nmessage_bytes_max = 100\non_forbidden = 'tag'",
    );
    let (infected, program) = (attached("eicar.com", &eicar()), attached("a.exe", b"text"));
    assert!(send(&gateway, "a@else.test", "lab@d", &infected).starts_with("554 "));
    assert!(send(&gateway, "a@lab.test", "c@d", &infected).starts_with("554 "));
    assert_eq!(send(&gateway, "A@LAB.test", "Lab@d", &infected), "250 2.0.0 Taken");
    assert!(sink.wait(1)[0].text().contains("X-Sluice-Status: found"));
    assert_eq!(send(&gateway, "a@lab.test", "lab@d", &program), "250 2.0.0 Taken");
    assert!(send(&gateway, "a@b", "c@d", &program).starts_with("554 "));
    assert!(send(&gateway, "a@b", "small@d", &program).starts_with("552 "));
    gateway.wait_for_log("rule=3");

    let mut wire = gateway.connect();
    wire.talk(
        "S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@lab.test>\nS: 250 *\nC: RCPT TO:<lab@d>\nS: 250 *
         C: RCPT TO:<c@d>\nS: 452 4.5.3 *\nC: RCPT TO:<lab@e>\nS: 250 *",
    );
}

#[test]
fn a_signature_is_taken_as_its_name_says() {
    let sink = Sink::start(Behaviour::default());
    let gateway = gateway(
        &sink,
        "",
        "infected_per_client_max = 2\n\
         [[listener.signature]]\nnames = ['*.Other', 'eicar*']\naction = 'tag'\n\
         [[listener.rule]]\nrecipient = ['strict@*']\nsignature = []\n\
         [[listener.rule]]\nrecipient = ['lab@*']\nsignature = [{ names = ['*'], action = 'pass' }]",
    );
    let infected = attached("eicar.com", &eicar());
    // More than who sends infected mails may send.
    for number in 1..=3 {
        assert_eq!(send(&gateway, "a@b", "c@d", &infected), "250 2.0.0 Taken");
        assert!(sink.wait(number)[number - 1].text().contains("X-Sluice-Status: found"));
    }
    assert_eq!(send(&gateway, "a@b", "lab@d", &infected), "250 2.0.0 Taken");
    assert!(!sink.wait(4)[3].text().contains("X-Sluice-Status: found"));
    assert!(send(&gateway, "a@b", "strict@d", &infected).starts_with("554 "));
}

#[test]
fn a_rule_goes_by_the_network_of_the_client() {
    let sink = Sink::start(Behaviour::default());
    let gateway = gateway(
        &sink,
        "",
        "proxy_from = ['127.0.0.1']\ntrust = 'off'\n\
         [[listener.rule]]\nclient = ['192.0.2.0/24', '2001:db8::/32']\non_infected = 'pass'",
    );
    let infected = attached("eicar.com", &eicar());
    for (header, wanted) in [
        ("PROXY TCP4 192.0.2.7 127.0.0.1 1 25", "250 2.0.0 Taken"),
        ("PROXY TCP4 192.0.3.7 127.0.0.1 1 25", "554 5.7.1 "),
        ("PROXY TCP6 2001:db8::7 ::1 1 25", "250 2.0.0 Taken"),
        ("PROXY TCP6 2001:db9::7 ::1 1 25", "554 5.7.1 "),
    ] {
        let mut wire = gateway.connect();
        wire.send(format!("{header}\r\n").as_bytes());
        let reply = wire.deliver(&infected);
        assert!(reply.starts_with(wanted), "{header}: {reply}");
    }
}

#[test]
fn check_says_what_holds_for_a_mail() {
    let sink = Sink::start(Behaviour::default());
    let gateway = gateway(
        &sink,
        "[[attachment]]\nname = 'programs'\nextensions = ['exe']\nway = 'forbid'\n",
        "[[listener.rule]]\nclient = ['10.0.0.0/8']\nsender = ['<>']\non_encrypted = 'reject'\nattachments = ['programs']",
    );
    let check = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let output = command.arg("check").arg(gateway.folder.path().join("sluice.toml")).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let ruled = check(&["--from", "", "--client", "10.1.2.3", "--to", "b@c"]);
    for line in ["smtp on 127.0.0.1:0: rule 1", "  on_encrypted = \"reject\"", "  attachment programs: forbid"] {
        assert!(ruled.lines().any(|other| other == line), "{ruled}");
    }
    assert!(check(&["--from", "a@b", "--client", "10.1.2.3"]).contains(": no rule\n"));
}
