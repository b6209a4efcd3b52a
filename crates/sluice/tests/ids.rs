//! Intrusion rules at the doors: alerts are written down, and what is to be blocked is, by mail and on the web.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::imap::{Imap, ask};
use crate::harness::mailbox::Pop3;
use crate::harness::web::{Origin, response};
use crate::harness::{Behaviour, Gateway, Sink, base64, mail_with, wait_for};

const RULES: &str = r#"
alert http any any -> any any (msg:"asked"; flow:to_server; http.uri; content:"/alert"; classtype:web-application-attack; sid:1;)
drop http any any -> any any (msg:"path"; flow:to_server; http.uri; content:"/secret"; sid:2;)
reject http any any -> any any (msg:"body"; flow:to_client; file.data; content:"forbidden-words"; sid:3;)
pass http any any -> any any (msg:"friend"; http.user_agent; content:"friend"; sid:4;)
alert http any any -> any any (msg:"seen"; flow:to_server; http.uri; content:"/both"; flowbits:set,both; noalert; sid:5;)
alert http any any -> any any (msg:"both"; flow:to_client; flowbits:isset,both; file.data; content:"hello"; sid:6;)
drop http any any -> any any (msg:"upload"; flow:to_server; http.request_body; content:"stolen"; sid:7;)
alert smtp any any -> any any (msg:"mail"; file.data; content:"alert-word"; sid:11;)
drop smtp any any -> any any (msg:"part"; file.data; content:"drop-word"; sid:12;)
reject smtp any any -> any any (msg:"subject"; email.subject; content:"reject-word"; sid:13;)
pass smtp any any -> any any (msg:"trusted"; email.from; content:"friend@"; sid:14;)
drop smtp any any -> any any (msg:"often"; email.subject; content:"often"; detection_filter:track by_src, count 2, seconds 600; sid:15;)
alert pop3 any any -> any any (msg:"read"; email.subject; content:"alert-word"; sid:21;)
drop pop3 any any -> any any (msg:"fetched"; file.data; content:"drop-word"; sid:22;)
alert imap any any -> any any (msg:"read"; email.subject; content:"alert-word"; sid:31;)
reject imap any any -> any any (msg:"fetched"; file.data; content:"drop-word"; sid:32;)
pass imap any any -> any any (msg:"trusted"; email.from; content:"friend@"; sid:33;)
pass pop3 any any -> any any (msg:"trusted"; email.from; content:"friend@"; sid:23;)
"#;

/// Rules and the logs of their alerts.
struct Site {
    folder: TempDir,
}

impl Site {
    fn new() -> Site {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("rules")).unwrap();
        fs::create_dir(folder.path().join("log")).unwrap();
        fs::write(folder.path().join("rules/own.rules"), RULES).unwrap();
        Site { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// The table, and more lines of it.
    fn table(&self, more: &str) -> String {
        format!(
            "[ids]\nrules = [{:?}]\neve = {:?}\nfast = {:?}\n{more}\n",
            self.path("rules/*.rules"),
            self.path("log/eve.json"),
            self.path("log/fast.log")
        )
    }

    /// The numbers of rules that alerted, in order, when there are as many.
    fn alerts(&self, count: usize) -> Vec<(u64, String)> {
        wait_for(|| Some(alerts(self.folder.path())).filter(|alerts| alerts.len() >= count), "alerts")
    }

    fn web(&self, origin: &Origin, more: &str) -> Gateway {
        let port = origin.address.port();
        Gateway::with(&format!(
            "hostname = \"proxy.test\"\nthreads = 1\n[resources]\nhead_window_bytes = 131072\n{}\n[[listener]]\n\
             protocol = \"http\"\naddress = \"127.0.0.1:0\"\ndestinations = [\"127.0.0.0/8\"]\nports = [80, {port}]\n",
            self.table(more)
        ))
    }
}

fn alerts(folder: &Path) -> Vec<(u64, String)> {
    let lines = fs::read_to_string(folder.join("log/eve.json")).unwrap_or_default();
    let alert = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let action = line["alert"]["action"].as_str().unwrap().to_owned();
        (line["alert"]["signature_id"].as_u64().unwrap(), action)
    };
    lines.lines().map(alert).collect()
}

fn told(alerts: &[(u64, &str)]) -> Vec<(u64, String)> {
    alerts.iter().map(|(sid, action)| (*sid, (*action).to_owned())).collect()
}

fn get(url: &str, fields: &str) -> String {
    format!("GET {url} HTTP/1.1\r\nHost: {}\r\n{fields}\r\n", url.split('/').nth(2).unwrap())
}

fn mail(subject: &str, body: &str) -> Vec<u8> {
    String::from_utf8(mail_with("base64", "a.txt", &base64(body.as_bytes())))
        .unwrap()
        .replacen("Subject: ", &format!("Subject: {subject} "), 1)
        .into_bytes()
}

fn of_friend(mail: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(mail).replacen("From: a@client.test", "From: friend@a.test", 1).into_bytes()
}

#[test]
fn rules_see_heads_as_they_have_come_and_names_of_files() {
    let origin = Origin::start(|_, _| Some(response("Connection: close\r\n", b"hello")));
    let site = Site::new();
    let rules = r#"
alert http any any -> any any (msg:"asked to close"; flow:to_server; http.header; content:"Connection: close"; sid:51;)
alert http any any -> any any (msg:"told to close"; flow:to_client; http.header; content:"Connection: close"; sid:52;)
alert http any any -> any any (msg:"ours"; http.header_names; content:"Via"; sid:53;)
alert http any any -> any any (msg:"old"; http.protocol; content:"HTTP/1.0"; sid:54;)
alert http any any -> any any (msg:"name"; flow:to_client; file.name; content:"evil.exe"; sid:55;)
"#;
    fs::write(site.path("rules/heads.rules"), rules).unwrap();
    let gateway = site.web(&origin, "");
    let url = origin.url("/a/evil.exe");
    assert_eq!(gateway.connect().ask(&get(&url, "Connection: close\r\n")).text(), "hello");
    let mut sids: Vec<u64> = site.alerts(3).iter().map(|(sid, _)| *sid).collect();
    sids.sort_unstable();
    assert_eq!(sids, [51, 52, 55]);
    let mut wire = gateway.connect();
    wire.send(format!("GET {} HTTP/1.0\r\nHost: x\r\n\r\n", origin.url("/")).as_bytes());
    assert_eq!(wire.answer(false).status(), "200");
    assert!(site.alerts(4).iter().any(|(sid, _)| *sid == 54));
    let eve = fs::read_to_string(site.path("log/eve.json")).unwrap();
    let first: Value = serde_json::from_str(eve.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["http"]["hostname"], &first["http"]["http_port"]),
        (&"127.0.0.1".into(), &origin.address.port().into())
    );
    assert!(first["http"].get("status").is_none() && first["http"].get("http_user_agent").is_none(), "{first}");
}

#[test]
fn messages_and_files_are_recorded_and_alerts_go_to_a_system_log() {
    let origin = Origin::start(|_, _| Some(response("Content-Type: text/plain\r\nLocation: /b\r\n", b"hello")));
    let site = Site::new();
    let log = UnixDatagram::bind(site.path("log/socket")).unwrap();
    log.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let records = "records = [\"http\", \"smtp\", \"fileinfo\"]";
    let gateway = site.web(&origin, &format!("{records}\nsyslog = {:?}", site.path("log/socket")));
    let fields = "User-Agent: own\r\n";
    assert_eq!(gateway.connect().ask(&get(&origin.url("/alert?a"), fields)).text(), "hello");
    assert_eq!(gateway.connect().ask(&get(&origin.url("/secret"), fields)).status(), "403");
    let all = || {
        let eve = fs::read_to_string(site.path("log/eve.json")).unwrap_or_default();
        let lines: Vec<Value> = eve.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Some(lines).filter(|lines| lines.iter().filter(|line| line["event_type"] != "alert").count() >= 3)
    };
    let lines = wait_for(all, "records");
    let of_kind = |kind: &str| -> Vec<&Value> { lines.iter().filter(|line| line["event_type"] == kind).collect() };
    let [passed, blocked] = of_kind("http")[..] else { panic!("{lines:?}") };
    let wanted = serde_json::json!({
        "hostname": "127.0.0.1", "http_port": origin.address.port(), "url": "/alert?a", "http_user_agent": "own",
        "http_content_type": "text/plain", "http_method": "GET", "protocol": "HTTP/1.1", "status": 200, "length": 5,
        "redirect": "/b",
    });
    assert_eq!(passed["http"], wanted);
    assert_eq!((&passed["tx_id"], &passed["dest_port"]), (&0.into(), &origin.address.port().into()));
    assert!(blocked["http"]["url"] == "/secret" && blocked["http"].get("status").is_none(), "{blocked}");
    let [file] = of_kind("fileinfo")[..] else { panic!("{lines:?}") };
    let sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    let wanted = serde_json::json!({
        "filename": "/alert?a", "gaps": false, "state": "CLOSED", "stored": false, "size": 5, "tx_id": 0,
        "sha256": sha256,
    });
    assert!(file["fileinfo"] == wanted && file["src_port"] == origin.address.port(), "{file}");
    let mut datagram = [0; 1000];
    let length = log.recv(&mut datagram).unwrap();
    let told = String::from_utf8_lossy(&datagram[..length]);
    assert!(told.starts_with("<174>sluice[") && told.contains("]: [1:1:0] asked [Classification: "), "{told}");
    assert!(told.contains("[Priority: 1] {TCP} 127.0.0.1:"), "{told}");
    // Its daemon is started again.
    drop(log);
    fs::remove_file(site.path("log/socket")).unwrap();
    let log = UnixDatagram::bind(site.path("log/socket")).unwrap();
    log.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(gateway.connect().ask(&get(&origin.url("/alert?b"), fields)).text(), "hello");
    let length = log.recv(&mut datagram).unwrap();
    assert!(datagram[..length].starts_with(b"<174>sluice["));
}

#[test]
fn flows_and_anomalies_are_recorded_at_the_doors() {
    let records = |site: &Site, count: usize| {
        let all = || {
            let eve = fs::read_to_string(site.path("log/eve.json")).unwrap_or_default();
            let lines: Vec<Value> = eve.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let lines: Vec<Value> = lines.into_iter().filter(|line| line["event_type"] != "alert").collect();
            Some(lines).filter(|lines| lines.len() >= count)
        };
        wait_for(all, "records")
    };
    let origin = Origin::start(|_, _| Some(response("", b"hello")));
    let site = Site::new();
    let gateway = site.web(&origin, "records = [\"flow\", \"anomaly\"]");
    assert_eq!(gateway.connect().ask(&get(&origin.url("/alert"), "")).text(), "hello");
    assert_eq!(gateway.connect().ask(&get(&origin.url("/secret"), "")).status(), "403");
    let told = records(&site, 2);
    let [passed, blocked] = &told[..] else { panic!("{told:?}") };
    assert_eq!((&passed["event_type"], &passed["app_proto"]), (&"flow".into(), &"http".into()));
    assert_eq!((&passed["flow"]["bytes_toclient"], &passed["dest_port"]), (&5.into(), &origin.address.port().into()));
    assert!(passed["flow"]["start"].as_str() <= passed["flow"]["end"].as_str(), "{passed}");
    assert!(passed["flow"].get("action").is_none() && blocked["flow"]["action"] == "drop", "{blocked}");
    assert_eq!(blocked["flow"]["alerted"], true);

    let (sink, site) = (Sink::start(Behaviour::default()), Site::new());
    let table = site.table("records = [\"flow\", \"anomaly\"]");
    let gateway = Gateway::start_with(&table, "smtp", &sink.forward(), "");
    let broken = String::from_utf8(mail("x", "alert-word")).unwrap().replacen("YWxlcnQ", "YW!!!xlcnQ", 1);
    assert!(gateway.connect().deliver(broken.as_bytes()).starts_with("250"));
    let told = records(&site, 2);
    let [anomaly, flow] = &told[..] else { panic!("{told:?}") };
    let wanted = serde_json::json!({
        "app_proto": "smtp", "type": "applayer", "event": "Heuristics.Malformed.Base64.Junk", "layer": "proto_parser",
    });
    assert_eq!((&anomaly["event_type"], &anomaly["anomaly"]), (&"anomaly".into(), &wanted));
    assert_eq!((&flow["flow"]["alerted"], &flow["flow_id"]), (&true.into(), &anomaly["flow_id"]));
    assert!(flow["flow"]["bytes_toserver"].as_u64() > Some(100), "{flow}");
}

#[test]
fn requests_and_responses_alert_and_are_blocked() {
    let large = [&b"x".repeat(3_000_000)[..], b"forbidden-words"].concat();
    let origin = Origin::start(move |head, _| {
        Some(match head.split(' ').nth(1).unwrap() {
            "/bad" => response("", b"here are forbidden-words indeed"),
            "/large" => response("", &large),
            "/none" => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
            _ => response("", b"hello"),
        })
    });
    let site = Site::new();
    let gateway = site.web(&origin, "");
    let mut wire = gateway.connect();
    assert_eq!(wire.ask(&get(&origin.url("/alert"), "")).text(), "hello");
    assert_eq!(site.alerts(1), told(&[(1, "allowed")]));
    let answer = wire.ask(&get(&origin.url("/secret"), ""));
    assert!(answer.status() == "403" && answer.text().contains("Intrusion.2"), "{answer:?}");
    assert!(!origin.said().iter().any(|said| said.contains("/secret")), "it has not gone on");
    assert_eq!(wire.ask(&get(&origin.url("/bad"), "")).status(), "403");
    assert_eq!(wire.ask(&get(&origin.url("/bad"), "User-Agent: friend\r\n")).status(), "200", "pass wins");
    assert_eq!(wire.ask(&get(&origin.url("/none"), "")).status(), "204");
    assert_eq!(wire.ask(&get(&origin.url("/both"), "")).text(), "hello");
    let url = origin.url("/upload");
    wire.send(format!("POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nstolen").as_bytes());
    assert_eq!(wire.answer(false).status(), "403");
    let answer = gateway.connect().ask(&get(&origin.url("/large"), ""));
    assert!(!answer.is_whole && answer.status() == "200", "it is cut: {}", answer.body.len());
    let wanted =
        told(&[(1, "allowed"), (2, "blocked"), (3, "blocked"), (6, "allowed"), (7, "blocked"), (3, "blocked")]);
    assert_eq!(site.alerts(wanted.len()), wanted);
    let eve = fs::read_to_string(site.path("log/eve.json")).unwrap();
    let first: Value = serde_json::from_str(eve.lines().next().unwrap()).unwrap();
    assert_eq!((&first["http"]["url"], &first["http"]["http_method"]), (&"/alert".into(), &"GET".into()), "{first}");
    assert_eq!(first["dest_port"], origin.address.port());
    assert_eq!(first["alert"]["category"], "Web Application Attack");
    let fast = fs::read_to_string(site.path("log/fast.log")).unwrap();
    assert!(fast.contains("[Drop] [**] [1:2:0] path [**]"), "{fast}");
}

#[test]
fn an_override_changes_what_rules_do() {
    let origin = Origin::start(|_, _| Some(response("", b"here are forbidden-words indeed")));
    let site = Site::new();
    let more = "[[ids.action]]\nfile = [\"own*\"]\naction = \"alert\"\n[[ids.action]]\nclasstype = [\"web-application-attack\"]\n\
                action = \"drop\"\n[[ids.action]]\nsid = [2]\naction = \"off\"\n";
    let gateway = site.web(&origin, more);
    let mut wire = gateway.connect();
    for (path, status) in [("/x", "200"), ("/alert", "403"), ("/secret", "200")] {
        assert_eq!(wire.ask(&get(&origin.url(path), "")).status(), status, "{path}");
    }
    assert_eq!(site.alerts(3), told(&[(3, "allowed"), (1, "blocked"), (3, "allowed")]));
    fs::write(site.path("rules/own.rules"), "drop http any any -> any any (http.uri; content:\"/x\"; sid:9;)\n")
        .unwrap();
    fs::rename(site.path("log/eve.json"), site.path("log/eve.json.1")).unwrap();
    gateway.signal("HUP");
    wait_for(
        || {
            gateway.connect().ask(&get(&origin.url("/x"), ""));
            alerts(site.folder.path()).iter().any(|(sid, _)| *sid == 9).then_some(())
        },
        "the new rule in a new file",
    );
}

#[test]
fn mails_alert_and_are_refused() {
    let sink = Sink::start(Behaviour::default());
    let site = Site::new();
    let gateway = Gateway::start_with(&site.table(""), "smtp", &sink.forward(), "");
    let deliver = |mail: &[u8]| gateway.connect().deliver(mail);
    assert!(deliver(&mail("x", "some alert-word here")).starts_with("250"));
    let refused = deliver(&mail("x", "some drop-word here"));
    assert!(refused.starts_with("554 5.7.1 Message refused: Intrusion.12"), "{refused}");
    assert!(deliver(&mail("a reject-word", "text")).starts_with("554"));
    let friendly = of_friend(&mail("reject-word", "drop-word"));
    assert!(deliver(&friendly).starts_with("250"), "pass wins");
    for (times, status) in [(1, "250"), (2, "250"), (3, "554")] {
        let reply = deliver(&mail("often", "text"));
        assert!(reply.starts_with(status), "{times}: {reply}");
    }
    let wanted = told(&[(11, "allowed"), (12, "blocked"), (13, "blocked"), (15, "blocked")]);
    assert_eq!(site.alerts(wanted.len()), wanted);
    assert!(sink.wait(4).len() == 4, "what is refused is not delivered");
}

#[test]
fn messages_that_are_fetched_alert_and_are_blocked() {
    let friendly = of_friend(&mail("alert-word", "drop-word"));
    let mails = [mail("alert-word", "text"), mail("x", "drop-word"), friendly];
    let mails: Vec<&[u8]> = mails.iter().map(|mail| &mail[..]).collect();
    let site = Site::new();
    let server = Pop3::with(&mails).start();
    let gateway = Gateway::start_with(&site.table(""), "pop3", &format!("pop3://localhost:{}", server.port()), "");
    let mut wire = gateway.connect();
    wire.talk("S: +OK *\nC: USER tim\nS: +OK\nC: PASS secret\nS: +OK");
    let mut retrieve = |number: usize| {
        wire.send(format!("RETR {number}\r\n").as_bytes());
        let is_there = wire.line().starts_with("+OK");
        is_there.then(|| wire.lines_to_dot())
    };
    assert_eq!(retrieve(1).as_deref(), Some(mails[0]));
    let blocked = retrieve(2);
    assert!(blocked.is_none_or(|mail| mail != mails[1]), "it is not handed out");
    assert_eq!(retrieve(3).as_deref(), Some(mails[2]));
    assert_eq!(site.alerts(2), told(&[(21, "allowed"), (22, "blocked")]));
    let site = Site::new();
    let server = Imap::with(&mails);
    let to = format!("imap://localhost:{}", server.start().port());
    let gateway = Gateway::start_with(&site.table(""), "imap", &to, "");
    let mut wire = gateway.connect();
    wire.talk("S: * OK *");
    for command in ["LOGIN tim secret", "SELECT INBOX"] {
        assert!(ask(&mut wire, command).status.starts_with("OK"));
    }
    assert_eq!(ask(&mut wire, "FETCH 1 BODY[]").literals, [mails[0]]);
    let blocked = ask(&mut wire, "FETCH 2 BODY[]");
    assert!(!blocked.literals.iter().any(|literal| literal == mails[1]), "{blocked:?}");
    assert_eq!(ask(&mut wire, "FETCH 3 BODY[]").literals, [mails[2]]);
    assert_eq!(site.alerts(2), told(&[(31, "allowed"), (32, "blocked")]));
}

#[test]
fn another_proxy_is_told_what_to_block() {
    let site = Site::new();
    let gateway = Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n{}[[listener]]\nprotocol = \"icap\"\naddress = \"127.0.0.1:0\"\n",
        site.table("")
    ));
    let ask = |path: &str, agent: &str, body: &str| {
        let request = format!("GET http://o.test{path} HTTP/1.1\r\nHost: o.test\r\nUser-Agent: {agent}\r\n\r\n");
        let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let mut wire = gateway.connect();
        let (first, second) = (request.len(), request.len() + response.len());
        wire.send(
            format!(
                "RESPMOD icap://127.0.0.1/respmod ICAP/1.0\r\nHost: a\r\nAllow: 204\r\nEncapsulated: req-hdr=0, \
                 res-hdr={first}, res-body={second}\r\n\r\n{request}{response}{:x}\r\n{body}\r\n0\r\n\r\n",
                body.len()
            )
            .as_bytes(),
        );
        wire.line()
    };
    let asked = |path: &str| {
        let request = format!("GET http://o.test{path} HTTP/1.1\r\nHost: o.test\r\n\r\n");
        let mut wire = gateway.connect();
        let head = "REQMOD icap://127.0.0.1/reqmod ICAP/1.0\r\nHost: a\r\nAllow: 204\r\nEncapsulated: req-hdr=0";
        wire.send(format!("{head}, null-body={}\r\n\r\n{request}", request.len()).as_bytes());
        wire.line()
    };
    assert!(asked("/alert").starts_with("ICAP/1.0 204"));
    assert!(asked("/secret").starts_with("ICAP/1.0 200"));
    assert!(ask("/x", "a", "hello").starts_with("ICAP/1.0 204"));
    assert!(ask("/x", "a", "forbidden-words").starts_with("ICAP/1.0 200"));
    assert!(ask("/x", "friend", "forbidden-words").starts_with("ICAP/1.0 204"));
    assert_eq!(site.alerts(3), told(&[(1, "allowed"), (2, "blocked"), (3, "blocked")]));
}

#[test]
fn a_rule_that_does_not_load_is_named_by_file_and_line() {
    let site = Site::new();
    fs::write(site.path("rules/wrong.rules"), "\nalert http any any -> any any (no.such.keyword; sid:77;)\n").unwrap();
    let config = format!("{}[[listener]]\nprotocol = \"icap\"\naddress = \"127.0.0.1:0\"\n", site.table(""));
    fs::write(site.path("sluice.toml"), config).unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_sluice"));
    let ran = { ran }.args(["check", "--config", &site.path("sluice.toml")]).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("wrong.rules:2") && said.contains("no.such.keyword"), "{said}");
    assert!(!ran.status.success());
}

#[test]
fn files_of_suricata_update_change_rules() {
    let site = Site::new();
    let rules = "alert http any any -> any any (msg:\"a\"; sid:1;)\n#alert http any any -> any any (msg:\"b\"; sid:2;)\n\
                 alert http any any -> any any (msg:\"c\"; sid:3;)\n";
    fs::write(site.path("rules/set.rules"), rules).unwrap();
    fs::write(site.path("disable.conf"), "# by number\n1\n").unwrap();
    fs::write(site.path("enable.conf"), "group:set\n1:7\nnonsense\n").unwrap();
    fs::write(site.path("drop.conf"), "re:msg:.b").unwrap();
    fs::write(site.path("modify.conf"), "3 \"(sid:)3\" \"\\1 30\"").unwrap();
    let ids = |words: &[&str]| {
        let ran = Command::new(env!("CARGO_BIN_EXE_sluice")).arg("ids").args(words).output().unwrap();
        (String::from_utf8_lossy(&ran.stdout).into_owned(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let [set, disable, enable] = ["rules/set.rules", "disable.conf", "enable.conf"].map(|name| site.path(name));
    let [drop, modify] = ["drop.conf", "modify.conf"].map(|name| site.path(name));
    let count =
        |words: &[&str]| ids(&[&["lint", &set], words].concat()).0.lines().next().unwrap_or_default().to_owned();
    assert_eq!(count(&[]), "2 rules, 2 of them active");
    assert_eq!(count(&["--disable", &disable]), "1 rules, 1 of them active");
    assert_eq!(count(&["--enable", &enable]), "3 rules, 3 of them active");
    assert_eq!(count(&["--disable", &disable, "--enable", &enable]), "3 rules, 3 of them active");
    let (_, said) = ids(&["lint", &set, "--enable", &enable]);
    assert!(said.contains("enable.conf:3: ") && said.contains("names no rules: nonsense"), "{said}");
    let all = ["--rules", &set, "--enable", &enable, "--drop", &drop, "--modify", &modify];
    let explained = |sid: &str| ids(&[&["explain", sid], &all[..]].concat()).0;
    assert!(explained("2").contains("drop") && explained("30").contains("alert"), "{}", explained("2"));
}

/// What `sluice ids explain` prints, its exit status in front.
fn explained(words: &[&str]) -> String {
    let ran = Command::new(env!("CARGO_BIN_EXE_sluice")).args(["ids", "explain"]).args(words).output().unwrap();
    let text = [&ran.stdout[..], &ran.stderr[..]].concat();
    format!("{} {}", ran.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn a_rule_is_explained_with_all_that_decides_about_it() {
    let site = Site::new();
    let rules = r#"
alert http $HOME_NET any -> any $WEB (msg:"one"; flow:established,to_server; http.uri; content:"/a|00|b"; startswith; nocase; pcre:"/x[0-9]+/R"; flowbits:isset,seen; threshold: type limit, track by_src, count 1, seconds 60; classtype:trojan-activity; sid:101; rev:3;)
# alert http any any -> any any (msg:"two"; http.host; content:"example"; content:"evil.example"; fast_pattern; endswith; sid:102;)
alert tcp any any -> any any (msg:"three"; flags:S; content:"abc"; sid:103;)
alert tls any any -> any any (msg:"four"; tls.cert_subject; content:"CN=x"; sid:104;)
alert http any any -> any any (msg:"five"; no.such.keyword; sid:105;)
alert http any any -> any any (msg:"six"; requires: keyword no.such; sid:106;)
alert http any any -> any any (msg:"seven"; http.uri; content:"/seven"; flowbits:set,seen; noalert; sid:107;)
alert http any any -> any any (msg:"eight"; http.uri; content:"/eight"; sid:108;)
alert http any any -> any any (msg:"nine"; http.uri; content:"/nine"; sid:109;)
alert smtp any any -> any any (msg:"ten"; file.data; content:"|25 7c|x"; base64_decode:bytes 8, offset 2, relative; base64_data; content:!"y"; within:4; sid:110;)
"#;
    fs::write(site.path("rules/set.rules"), rules).unwrap();
    fs::write(site.path("disable.conf"), "# some\n109\n").unwrap();
    fs::write(site.path("enable.conf"), "1:102\n").unwrap();
    fs::write(site.path("drop.conf"), "group:set\n").unwrap();
    fs::write(site.path("threshold.config"), "\nsuppress gen_id 1, sig_id 102, track by_src, ip 10.0.0.1\n").unwrap();
    let more = "variables = { WEB = \"[80,8080]\" }\nthresholds = [\"threshold.config\"]\ndisable = \"disable.conf\"\n\
                enable = \"enable.conf\"\ndrop = \"drop.conf\"\n[[ids.action]]\nsid = [101]\naction = \"reject\"\n\
                [[ids.action]]\nsid = [108]\naction = \"off\"";
    let config = format!("{}[[listener]]\nprotocol = \"icap\"\naddress = \"127.0.0.1:0\"\n", site.table(more));
    fs::write(site.path("sluice.toml"), config).unwrap();
    let path = site.path("sluice.toml");
    let set = site.path("rules/set.rules");
    let place = format!("{set}:2: [1:101:3] one");
    let cases: [(&str, i32, &[&str]); 11] = [
        (
            "101",
            0,
            &[
                &place,
                "drop.conf:1",
                "action               reject, by [[ids.action]]",
                "A Network Trojan was detected, priority 1",
                "http $HOME_NET any -> any $WEB",
                "HOME_NET = [192.168.0.0/16,10.0.0.0/8,172.16.0.0/12]",
                "WEB = [80,8080]",
                "looks at             bytes of the client",
                "in                   http.uri",
                "text \"/a|00|b\", cases ignored, at the beginning",
                "expression /x[0-9]+/R, from the end of the test before",
                "selected by          text \"/a|00|b\" in http.uri",
                "needs flowbits seen",
                "bits set by          107",
                "at most 1 alerts in 60 s for each source",
                "matches at           HTTP and ICAP: blocks",
            ],
        ),
        (
            "102",
            0,
            &[
                "written              behind #",
                "enable               ",
                "enable.conf:1",
                "action               drop",
                "text \"evil.example\" in http.host",
                "no alerts for each source, for some addresses (",
                "threshold.config:2)",
            ],
        ),
        (
            "103",
            0,
            &["matches at           nowhere: nothing here has what flags is about", "selected by          nothing"],
        ),
        ("104", 0, &["matches at           in captures alone: no door fills tls.cert_subject"]),
        ("105", 1, &["loaded               no: no.such.keyword: is not known"]),
        ("106", 1, &["loaded               no: it requires keyword no.such"]),
        ("107", 0, &["sets flowbits seen", "is silent: it changes bits"]),
        ("108", 1, &["loaded               no: [[ids.action]] turns it off"]),
        ("109", 1, &["disable.conf:2", "loaded               no: it is disabled"]),
        (
            "110",
            0,
            &[
                "in                   file.data",
                "text \"%|7c|x\"",
                "8 bytes of Base64 from byte 2 behind the test before, decoded: no text \"y\", within 4 bytes of there",
                "SMTP, LMTP and milter: blocks",
            ],
        ),
        ("999", 2, &["no file of rules has a rule 999"]),
    ];
    for (sid, status, wanted) in cases {
        let text = explained(&[sid, "--config", &path]);
        assert!(text.starts_with(&format!("{status} ")), "{sid}: {text}");
        wanted.iter().for_each(|words| assert!(text.contains(words), "{sid}: {words:?} is not in {text}"));
    }
}

#[test]
fn rules_that_an_update_brings_come_into_force_by_themselves() {
    let origin = Origin::start(|_, _| Some(response("", b"hello")));
    let site = Site::new();
    let rule = |sid: u32| format!("alert http any any -> any any (http.uri; content:\"/path\"; sid:{sid};)\n");
    let (source, folder) = (site.path("source.rules"), site.path("ids"));
    fs::write(site.path("update.toml"), format!("[update]\nrules_folder = {folder:?}\nrules = [{source:?}]\n"))
        .unwrap();
    let update = |sid: u32| {
        fs::write(&source, rule(sid)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        let ran = command.args(["update", "--config", &site.path("update.toml")]).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    update(301);
    let table = site.table("").replace("rules/*.rules", "ids/rules");
    let gateway = Gateway::with(&format!(
        "hostname = \"proxy.test\"\nthreads = 1\n[resources]\nhead_window_bytes = 131072\n{table}\n[[listener]]\n\
         protocol = \"http\"\naddress = \"127.0.0.1:0\"\ndestinations = [\"127.0.0.0/8\"]\nports = [80, {}]\n",
        origin.address.port()
    ));
    assert_eq!(gateway.connect().ask(&get(&origin.url("/path"), "")).text(), "hello");
    assert_eq!(site.alerts(1), told(&[(301, "allowed")]));
    for sid in [302, 303] {
        update(sid);
        gateway.wait_for_log(&format!("reloaded generation={}", sid - 300));
        assert_eq!(gateway.connect().ask(&get(&origin.url("/path"), "")).text(), "hello");
        assert_eq!(site.alerts(sid as usize - 300).last().unwrap().0, u64::from(sid));
    }
}
