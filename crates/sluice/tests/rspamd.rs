//! The Rspamd door, asked by curl, Debian's rspamc, Exim and by hand.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::harness::exim::Exim;
use crate::harness::{Gateway, Wire, free_port};

const RULES: &str = "body FREE /free money/i\nscore FREE 5.5\nheader NICE Subject =~ /minutes/\nscore NICE -1.5\n\
                     body WORSE /worse/\nscore WORSE 20\nutil_rb_tld com net org test uk\nutil_rb_2tld co.uk\n\
                     clear_headers\nadd_header all Status _YESNO_, score=_SCORE_\n";

const HAM: &str = "From: a@b.example\r\nSubject: minutes\r\n\r\nsee below\r\n";
const SPAM: &str = "From: a@b.example\r\nSubject: hello\r\n\r\nFREE money here\r\n";

/// A database with one signature, rules, and a gateway.
fn gateway(isolation: &str, spam: &str, listener: &str) -> (Gateway, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.cf"), RULES).unwrap();
    fs::write(folder.path().join("a.ndb"), format!("Test.Marker:0:*:{}\n", hex("rspamd-test-marker"))).unwrap();
    let at = folder.path().display();
    let gateway = Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\nisolation = \"{isolation}\"\n[database]\npaths = [\"{at}/a.ndb\"]\n\
         [spam]\nrules = [\"{at}\"]\n{spam}\n[[listener]]\nprotocol = \"rspamd\"\naddress = \"127.0.0.1:0\"\n{listener}\n"
    ));
    (gateway, folder)
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Reply to a mail with these fields.
fn check(gateway: &Gateway, fields: &str, mail: &str) -> (String, serde_json::Value) {
    let length = mail.len();
    let (head, body) =
        ask(gateway, &format!("POST /checkv2 HTTP/1.1\r\nContent-Length: {length}\r\n{fields}\r\n{mail}"));
    (head, serde_json::from_str(&body).unwrap())
}

/// The head and the body of the answer.
fn ask(gateway: &Gateway, said: &str) -> (String, String) {
    let mut wire = gateway.connect();
    wire.send(said.as_bytes());
    let reply = String::from_utf8(wire.rest()).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (head.into(), body.into())
}

#[test]
fn hosts_and_addresses_of_links_are_told() {
    let (gateway, _folder) = gateway("process", "reject = 15", "");
    let mail = "From: a@a.test\r\nSubject: see https://subj.example.com/x\r\nContent-Type: text/html\r\n\r\n\
                <a href=\"http://www.Example.com/a\">here</a>, <a href=\"mailto:Joe@Example.ORG?subject=x\">mail</a> or \
                jane@example.net, <img src=\"https://img.example.co.uk/x.png\"> http://192.0.2.1/y\r\n";
    let (_, told) = check(&gateway, "", mail);
    let urls = ["192.0.2.1", "img.example.co.uk", "subj.example.com", "www.example.com"];
    assert_eq!((&told["urls"], &told["emails"]), (&json!(urls), &json!(["Joe@example.org", "jane@example.net"])));
    let (_, told) = check(&gateway, "", "Subject: x\r\n\r\nnothing\r\n");
    assert!(told.get("urls").is_none() && told.get("emails").is_none(), "{told}");
}

#[test]
fn a_mail_is_scored_and_what_to_do_is_told() {
    for isolation in ["process", "none"] {
        let (gateway, _folder) = gateway(isolation, "reject = 15", "");
        let fields =
            "IP: 192.0.2.7\r\nHelo: h.example\r\nFrom: <a@b.example>\r\nRcpt: <c@d.example>\r\nQueue-Id: Q1\r\n";
        let (head, told) = check(&gateway, fields, SPAM);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("application/json"), "{head}");
        assert_eq!((&told["score"], &told["required_score"]), (&5.5.into(), &15.0.into()));
        assert_eq!((&told["action"], &told["is_skipped"]), (&"add header".into(), &false.into()));
        assert_eq!(told["symbols"]["FREE"]["score"], 5.5);
        assert_eq!(told["milter"]["add_headers"]["X-Spam-Status"], "Yes, score=5.5");
        assert_eq!(told["milter"]["remove_headers"]["X-Spam-Status"], 0);
        assert_eq!((&told["message-id"], &told["thresholds"]["reject"]), (&"undef".into(), &15.0.into()));
        assert!(told["symbols"]["FREE"]["options"].is_null(), "{told}");
        let (_, told) = check(&gateway, fields, &format!("Message-ID:\r\n <m1@example.org>\r\n{SPAM}"));
        assert_eq!(told["message-id"], "m1@example.org", "the mail's, whatever the server calls it");

        let (_, told) = check(&gateway, "", HAM);
        assert_eq!((&told["action"], &told["score"]), (&"no action".into(), &(-1.5).into()));

        let (_, told) = check(&gateway, "", &format!("{SPAM}worse\r\n"));
        assert_eq!((&told["action"], &told["score"]), (&"reject".into(), &25.5.into()));
        assert!(told["messages"]["smtp_message"].is_string(), "{told}");

        let (_, told) = check(&gateway, "", &format!("{HAM}rspamd-test-marker\r\n"));
        assert_eq!(told["action"], "reject", "what signatures find is refused, whatever the score");
        assert_eq!(told["symbols"]["SLUICE_FOUND"]["options"][0], "Test.Marker.UNOFFICIAL");
        let log = gateway.wait_for_log("message scored");
        let named = ["client=192.0.2.7", "from=\"a@b.example\"", "to=\"c@d.example\""];
        assert!(log.lines().any(|line| named.iter().all(|name| line.contains(name))), "{log}");
    }
}

#[test]
fn other_requests_of_rspamd_are_answered() {
    let (gateway, _folder) = gateway("process", "", "");
    let length = SPAM.len();
    for path in ["check", "symbols", "report", "scan"] {
        let (head, body) = ask(&gateway, &format!("POST /{path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{SPAM}"));
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{path}: {head}");
        let told: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&told["default"]["is_spam"], &told["default"]["score"]), (&true.into(), &5.5.into()));
        assert_eq!(told["default"]["FREE"]["score"], 5.5, "{told}");
    }
    let (head, body) = ask(&gateway, "OPTIONS /checkv2 HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body.is_empty(), "{head}");
    let (head, body) = ask(&gateway, "POST /checkv2 HTTP/1.1\r\nFile: /etc/passwd\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 400 ") && body.contains("no files"), "{head} {body}");
    let (_, told) = check(&gateway, "", "");
    assert_eq!((&told["score"], &told["action"]), (&0.0.into(), &"no action".into()));
    assert_eq!(told["symbols"], serde_json::json!({}));
}

#[test]
fn a_tag_for_the_subject_and_a_policy_are_told() {
    let (gateway, _folder) =
        gateway("process", "subject_tag = \"[SPAM]\"\nsize_max = 5000", "on_infected = \"quarantine\"");
    let (_, told) = check(&gateway, "", SPAM);
    assert_eq!((&told["action"], &told["subject"]), (&"rewrite subject".into(), &"[SPAM] hello".into()));
    let (_, told) = check(&gateway, "", &format!("{HAM}rspamd-test-marker\r\n"));
    assert_eq!(told["action"], "quarantine");
    let (head, _) = check(&gateway, "", &"large\r\n".repeat(1_000));
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
    let chunk = "large\r\n".repeat(1_000);
    let said = format!(
        "POST /checkv2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{chunk}\r\n0\r\n\r\n",
        chunk.len()
    );
    let (head, _) = ask(&gateway, &said);
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
    let (_, body) = ask(&gateway, "GET /ping HTTP/1.1\r\n\r\n");
    assert_eq!(body, "pong\r\n");
    let (head, body) = ask(&gateway, "POST /learnspam HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 503 ") && body.contains("learning is not enabled"), "{head}{body}");
}

#[test]
fn curl_and_rspamc_are_answered() {
    let (gateway, folder) = gateway("process", "", "");
    let mail = folder.path().join("mail");
    fs::write(&mail, format!("{SPAM}{}", "padding\r\n".repeat(20_000))).unwrap();
    let port = gateway.address.port();
    // A body of that size has curl wait until it is told to go on.
    let expect = ["-H", "Expect: 100-continue"];
    let url = format!("http://127.0.0.1:{port}/checkv2");
    let data = format!("@{}", mail.display());
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--max-time", "60", "--data-binary", &data]).args(expect).arg(&url);
    let output = curl.output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["symbols"]["FREE"]["score"], 5.5, "{}", String::from_utf8_lossy(&output.stderr));

    let message = format!("message=@{}", mail.display());
    let metadata = "metadata={\"from\":\"<a@b.example>\",\"ip\":\"192.0.2.7\"};type=application/json";
    let url = format!("http://127.0.0.1:{port}/checkv3");
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--max-time", "60", "-F", metadata, "-F", &message, "-H", "Accept: application/json"]);
    let output = curl.args(expect).arg(&url).output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!(told["symbols"]["FREE"]["score"], 5.5, "{}", String::from_utf8_lossy(&output.stderr));
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--max-time", "60", "-F", "metadata=[]", "-F", &message, &url]);
    let printed = String::from_utf8_lossy(&curl.output().unwrap().stdout).into_owned();
    assert_eq!(printed, "{\"error\":\"the metadata are no object of JSON\"}");

    let Ok(output) = Command::new("rspamc").args(["-h", &format!("127.0.0.1:{port}")]).arg(&mail).output() else {
        return eprintln!("skipped: rspamc is not installed");
    };
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("Action: add header") && printed.contains("FREE (5.50)"), "{printed}");
}

#[test]
fn exim_asks_it_in_both_variants() {
    let (rspamd, folder) = gateway("process", "reject = 15", "");
    let spamd = Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n[spam]\nrules = [\"{}\"]\n[[listener]]\nprotocol = \"spamd\"\naddress = \"127.0.0.1:0\"\n",
        folder.path().display()
    ));
    for (gateway, variant, wanted) in [(&rspamd, "variant=rspamd", "add header 5.5"), (&spamd, "", "reject 5.5")] {
        let port = free_port();
        let settings = format!(
            "spamd_address = 127.0.0.1 {} {variant}\nacl_smtp_data = content\nbegin acl\ncontent:\n  \
             deny spam = nobody\n       message = $spam_action $spam_score\n  accept",
            gateway.address.port()
        );
        let Some(exim) = Exim::start(&[port], &settings, "", "") else { return };
        let deliver = |mail: &str| Wire::connect(([127, 0, 0, 1], port).into()).deliver(mail.as_bytes());
        let reply = deliver(SPAM);
        assert_eq!(reply, format!("550 {wanted}"), "{variant}: {}", exim.log());
        let reply = deliver(HAM);
        assert!(reply.starts_with("250 OK"), "{variant}: {reply} {}", exim.log());
    }
}
