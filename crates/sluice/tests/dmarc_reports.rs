//! Aggregate reports of DMARC: mails that come in are counted, through a restart, and when the day is over their domains hear of it.

use std::process::{Command, Stdio};
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::harness::clock::Clock;
use crate::harness::dns::{Dns, Told};
use crate::harness::{Behaviour, Gateway, Sink, stuffed, wait_for};

/// DNS of a domain that wants reports: at its own hosts, and at others, of which one accepts them.
fn known(name: &str) -> Told {
    Told::Text(match name {
        "own.test" => "v=spf1 ip4:192.0.2.7 -all".into(),
        "_dmarc.own.test" => {
            "v=DMARC1; p=quarantine; sp=none; rua=mailto:dmarc@own.test!10m,mailto:agg@reports.example,\
             mailto:x@elsewhere.example,mailto:small@sub.own.test!1k,https://own.test/"
                .into()
        }
        "own.test._report._dmarc.reports.example" => "v=DMARC1".into(),
        "_dmarc.silent.test" => "v=DMARC1; p=reject".into(),
        _ => return Told::NoName,
    })
}

/// Delivers a mail of a client of this address.
fn deliver(gateway: &Gateway, client: &str, from: &str, author: &str) {
    let mut wire = gateway.connect();
    wire.send(format!("PROXY TCP4 {client} 127.0.0.1 1 25\r\n").as_bytes());
    wire.talk(&format!(
        "S: 220 *\nC: EHLO mail.client.test\nS: 250-*\nC: MAIL FROM:<{from}>\nS: 250 *\nC: RCPT TO:<ann@here.test>\nS: 250 *"
    ));
    wire.talk("C: DATA\nS: 354 *");
    wire.send(&stuffed(format!("From: {author}\r\nSubject: hello\r\n\r\nbody\r\n").as_bytes()));
    wire.send(b".\r\n");
    assert_eq!(wire.reply(), "250 2.0.0 Delivered");
}

fn sluice(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_sluice")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_domain_hears_at_the_end_of_a_day_what_came_in_its_name() {
    let (clock, sink, dns) = (Clock::start(), Sink::start(Behaviour::default()), Dns::start(|name, _| known(name)));
    let accounts = tempfile::tempdir().unwrap();
    let path = accounts.path().join("accounts");
    let mut add = Command::new(env!("CARGO_BIN_EXE_sluice"));
    add.args(["account", "--accounts"]).arg(&path).args(["add", "ann@here.test"]).stdin(Stdio::piped());
    let mut child = add.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"secret\n").unwrap();
    assert!(child.wait().unwrap().success());
    let text = format!(
        "hostname = \"mx.test\"\nthreads = 1\n{}[authentication]\n[store]\nfolder = \"FOLDER/store\"\nsize = \"64M\"\naccounts = \"{}\"\n\
         relay = \"{}\"\n[store.queue]\ndmarc_reports = \"dmarc@mx.test\"\n\
         [[listener]]\nprotocol = \"smtp\"\naddress = \"127.0.0.1:0\"\nforward = \"store:\"\nproxy_from = [\"127.0.0.1\"]\ntrust = \"off\"\n",
        dns.settings(),
        path.display(),
        sink.forward()
    );
    let gateway = Gateway::with_words(&clock.words(), &text);
    let config = gateway.folder.path().join("sluice.toml");
    sluice(&["dkim", "create", "mx.test", "--config", config.to_str().unwrap()]);
    deliver(&gateway, "192.0.2.7", "a@own.test", "b@own.test");
    deliver(&gateway, "192.0.2.9", "a@own.test", "b@own.test");
    deliver(&gateway, "192.0.2.9", "", "c@sub.own.test");
    deliver(&gateway, "192.0.2.9", "", "d@silent.test");
    let before = gateway.pid();
    gateway.signal("USR2");
    wait_for(|| (gateway.pid() != before).then_some(()), "the next edge");
    deliver(&gateway, "192.0.2.7", "a@own.test", "b@own.test");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let (began, end) = (now - now % 86_400, now - now % 86_400 + 86_399);
    clock.set(86_400);
    let mails = sink.wait(2);
    let mut to: Vec<&String> = mails.iter().flat_map(|mail| &mail.to).collect();
    to.sort();
    assert_eq!(to, ["agg@reports.example", "dmarc@own.test"]);
    let text = mails[0].text();
    assert_eq!(mails[0].from, "dmarc@mx.test");
    assert!(text.contains("DKIM-Signature: ") && text.contains("d=mx.test"), "{text}");
    for field in [
        &*format!("Subject: Report Domain: own.test Submitter: mx.test Report-ID: <{began}.own.test@mx.test>"),
        "Content-Type: application/gzip",
        &format!("Content-Disposition: attachment; filename=\"mx.test!own.test!{began}!{end}.xml.gz\""),
    ] {
        assert!(text.contains(&format!("\r\n{field}\r\n")), "{field}: {text}");
    }
    let file = gateway.folder.path().join("report.eml");
    std::fs::write(&file, &mails[0].content).unwrap();
    let report: Value = serde_json::from_str(&sluice(&["dmarc", "report", "--json", file.to_str().unwrap()])).unwrap();
    let report = &report["report"];
    assert_eq!((&report["org_name"], &report["email"]), (&json!("mx.test"), &json!("dmarc@mx.test")));
    assert_eq!((&report["begin"], &report["end"]), (&json!(began), &json!(end)));
    let policy = ["domain", "p", "sp", "np", "adkim", "aspf", "testing"].map(|key| report["policy"][key].clone());
    assert_eq!(policy, ["own.test", "quarantine", "none", "none", "r", "r", "n"]);
    let facts = ["source_ip", "count", "disposition", "dkim", "spf", "reasons", "header_from", "envelope_from"];
    let records: Vec<Value> = report["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| Value::Array(facts.iter().map(|fact| record[fact].clone()).collect()))
        .collect();
    assert_eq!(
        records,
        [
            json!(["192.0.2.7", 2, "pass", "fail", "pass", [], "own.test", "own.test"]),
            json!(["192.0.2.9", 1, "none", "fail", "fail", [], "sub.own.test", ""]),
            json!(["192.0.2.9", 1, "none", "fail", "fail", ["local_policy"], "own.test", "own.test"]),
        ]
    );
    let spf = &report["records"][0]["spf_results"];
    assert_eq!(spf, &json!([{ "domain": "own.test", "selector": "", "result": "pass" }]));
    gateway.wait_for_log("a DMARC report is larger than its address takes");
    assert_eq!(sink.mails().len(), 2);
}
