//! Mails scored at the doors: fields, subject, quarantine, refusal, in SMTP, LMTP and milter, jailed and not; and the same
//! fields by SpamAssassin itself.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{Arrived, Behaviour, Gateway, Sink, free_port, stuffed};
use crate::milter::Server;

const RULES: &str = "body FREE /free money/i\ndescribe FREE Offers money\nscore FREE 5.5\nbody MORE /much more/\nscore MORE 10\n\
                     header NICE Subject =~ /minutes/\nscore NICE -1.5\nheader VIA Received =~ /192\\.0\\.2\\.7|127\\.0\\.0\\.1/\nscore VIA 0.25\n\
                     clear_headers\nadd_header spam Flag _YESNOCAPS_\nadd_header all Level _STARS(*)_\n\
                     add_header all Status \"_YESNO_, score=_SCORE_ required=_REQD_ tests=_TESTS_ version=_VERSION_\"\n";

const HAM: &str = "From: a@b.example\r\nX-Spam-Flag: YES\r\nX-SPAM-status: No,\r\n\tscore=-100\r\nSubject: minutes\r\n\r\nsee below\r\n";
const SPAM: &str = "Subject: hello\r\nx-spam-flag : NO\r\nFrom: a@b.example\r\n\r\nFREE money here\r\n";
const WORSE: &str = "Subject: hello\r\nFrom: a@b.example\r\n\r\nFREE money here, and much more\r\n";

fn rules() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.cf"), RULES).unwrap();
    folder
}

fn head(isolation: &str, rules: &Path, spam: &str) -> String {
    format!("isolation = \"{isolation}\"\n[spam]\nrules = [\"{}\"]\n{spam}\n", rules.display())
}

fn send(gateway: &Gateway, to: &str, mail: &[u8]) -> String {
    let mut wire = gateway.connect();
    wire.talk(&format!(
        "S: 220 *\nC: EHLO x\nS: 250-*\nC: MAIL FROM:<a@b.example>\nS: 250 *\nC: RCPT TO:<{to}>\nS: 250 *"
    ));
    wire.talk("C: DATA\nS: 354 *");
    wire.send(&stuffed(mail));
    wire.send(b".\r\n");
    wire.reply()
}

/// Mail received, without the `Received` field of the gateway.
fn without_trace(mail: &Arrived) -> String {
    let text = mail.text();
    assert!(text.starts_with("Received: from "), "{text}");
    let mut lines = text.split_inclusive("\r\n").skip(1).skip_while(|line| line.starts_with('\t'));
    lines.by_ref().collect()
}

#[test]
fn mails_are_marked_by_their_score_and_forged_fields_go() {
    for isolation in ["process", "none"] {
        let (rules, sink) = (rules(), Sink::start(Behaviour::default()));
        let head = head(isolation, rules.path(), "subject_tag = \"[SPAM]\"\nreject = 15");
        let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), "");
        for mail in [HAM, SPAM, "From: a@b\r\n\r\nfree money\r\n"] {
            assert_eq!(send(&gateway, "c@d.example", mail.as_bytes()), "250 2.0.0 Taken");
        }
        let mails: Vec<String> = sink.wait(3).iter().map(without_trace).collect();
        assert_eq!(
            mails[0],
            "X-Spam-Level: \r\nX-Spam-Status: No, score=-1.2 required=5.0 tests=NICE,VIA version=4.0.1\r\n\
             From: a@b.example\r\nSubject: minutes\r\n\r\nsee below\r\n",
            "{isolation}"
        );
        let marks = "X-Spam-Flag: YES\r\nX-Spam-Level: *****\r\n\
                     X-Spam-Status: Yes, score=5.8 required=5.0 tests=FREE,VIA version=4.0.1\r\n";
        assert_eq!(mails[1], format!("{marks}Subject: [SPAM] hello\r\nFrom: a@b.example\r\n\r\nFREE money here\r\n"));
        assert_eq!(mails[2], format!("{marks}Subject: [SPAM]\r\nFrom: a@b\r\n\r\nfree money\r\n"));
        let reply = send(&gateway, "c@d.example", WORSE.as_bytes());
        assert!(reply.starts_with("554 5.7.1 Message refused: spam (score 15.8) (id "), "{reply}");
        let log = gateway.wait_for_log("MORE=10.00,FREE=5.50,VIA=0.25");
        assert!(log.contains("score=-1.2 ") && log.contains("score=15.8 ") && log.contains("spam=true"), "{log}");
    }
}

#[test]
fn a_listener_and_a_rule_have_bounds_of_their_own() {
    let (rules, sink) = (rules(), Sink::start(Behaviour::default()));
    let head = head("process", rules.path(), "quarantine = 15");
    let settings = "quarantine = \"FOLDER/kept\"\nspam = { headers = false, required = 4 }\n\
                    [[listener.rule]]\nrecipient = [\"strict@*\"]\nspam = { reject = 5, headers = true, report = true }\n\
                    [[listener.rule]]\nrecipient = [\"off@*\"]\nspam = { enabled = false }";
    let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), settings);
    assert_eq!(send(&gateway, "c@d.example", SPAM.as_bytes()), "250 2.0.0 Taken");
    assert!(send(&gateway, "strict@d.example", SPAM.as_bytes()).starts_with("554 5.7.1 Message refused: spam"));
    assert_eq!(send(&gateway, "strict@d.example", HAM.as_bytes()), "250 2.0.0 Taken");
    assert_eq!(send(&gateway, "off@d.example", WORSE.as_bytes()), "250 2.0.0 Taken");
    assert!(send(&gateway, "c@d.example", WORSE.as_bytes()).starts_with("250 2.0.0 Held back"));
    let mails: Vec<String> = sink.wait(3).iter().map(without_trace).collect();
    assert_eq!(mails[0], SPAM, "nothing is changed where no fields are wanted");
    let report =
        "X-Spam-Report: \r\n\t* -1.5 NICE No description available.\r\n\t*  0.2 VIA No description available.\r\n";
    assert!(mails[1].contains(report), "{}", mails[1]);
    assert_eq!(mails[2], WORSE);
    let kept = gateway.files("kept");
    let facts = kept.iter().map(|file| fs::read_to_string(file).unwrap_or_default()).collect::<String>();
    assert!(facts.contains("spam (score 15.8)"), "{facts}");
}

#[test]
fn a_mail_larger_than_is_scored_streams_without_forged_fields() {
    let (rules, sink) = (rules(), Sink::start(Behaviour::default()));
    let metrics = free_port();
    let head = head("process", rules.path(), "size_max = 300000");
    let head = format!("{head}[metrics]\naddress = \"127.0.0.1:{metrics}\"\n");
    let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), "");
    let line = "free money, as often as there is room for it\r\n";
    for (count, is_scored) in [(6_000, true), (7_000, false)] {
        let mail = format!("{SPAM}{}", line.repeat(count));
        assert_eq!(send(&gateway, "c@d.example", mail.as_bytes()), "250 2.0.0 Taken");
        let arrived = sink.take().unwrap();
        let arrived = without_trace(&arrived);
        let body = format!("Subject: hello\r\nFrom: a@b.example\r\n\r\nFREE money here\r\n{}", line.repeat(count));
        assert!(arrived.ends_with(&body), "{count}");
        assert_eq!(arrived.contains("X-Spam-Flag: YES"), is_scored, "{count}");
        assert!(!arrived.contains("x-spam-flag"), "{count}");
    }
    let mut wire = crate::harness::Wire::connect(([127, 0, 0, 1], metrics).into());
    wire.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let text = String::from_utf8_lossy(&wire.rest()).into_owned();
    for line in ["sluice_spam_scored_total 1\n", "sluice_spam_found_total 1\n", "sluice_spam_unscored_total 1\n"] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn lmtp_marks_as_smtp_does() {
    let (rules, sink) = (rules(), Sink::start(Behaviour { lmtp: true, ..Behaviour::default() }));
    let head = head("process", rules.path(), "");
    let gateway = Gateway::start_with(&head, "lmtp", &format!("lmtp://{}", sink.address), "");
    let mut wire = gateway.connect();
    wire.talk(
        "S: 220 *\nC: LHLO x\nS: 250-*\nC: MAIL FROM:<a@b.example>\nS: 250 *\nC: RCPT TO:<c@d.example>\nS: 250 *",
    );
    wire.talk("C: DATA\nS: 354 *");
    wire.send(SPAM.as_bytes());
    wire.send(b".\r\n");
    assert!(wire.reply().starts_with("250"));
    let mail = without_trace(&sink.wait(1)[0]);
    assert!(mail.starts_with("X-Spam-Flag: YES\r\n") && !mail.contains("x-spam-flag"), "{mail}");
}

#[test]
fn a_status_of_the_sender_goes_by_smtp_and_lmtp() {
    let rules = rules();
    for (protocol, hello) in [("smtp", "EHLO"), ("lmtp", "LHLO")] {
        for head in [head("process", rules.path(), ""), String::new()] {
            let sink = Sink::start(Behaviour { lmtp: protocol == "lmtp", ..Behaviour::default() });
            let gateway = Gateway::start_with(&head, protocol, &format!("{protocol}://{}", sink.address), "");
            let mut wire = gateway.connect();
            wire.talk(&format!(
                "S: 220 *\nC: {hello} x\nS: 250-*\nC: MAIL FROM:<a@b.example>\nS: 250 *\nC: RCPT TO:<c@d.example>\nS: 250 *"
            ));
            wire.talk("C: DATA\nS: 354 *");
            wire.send(b"X-Sluice-Status: found;\r\n\tEicar (virus)\r\nFrom: a@b.example\r\nx-sluice-status : clean\r\n\r\nhello\r\n.\r\n");
            assert!(wire.reply().starts_with("250"));
            let mail = without_trace(&sink.wait(1)[0]);
            assert!(mail.ends_with("From: a@b.example\r\n\r\nhello\r\n"), "{protocol}: {mail}");
            assert!(!mail.to_ascii_lowercase().contains("sluice-status"), "{protocol}: {mail}");
        }
    }
}

#[test]
fn a_milter_adds_and_takes_away() {
    let rules = rules();
    let gateway = Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n{}[[listener]]\nprotocol = \"milter\"\naddress = \"127.0.0.1:0\"\n",
        head("process", rules.path(), "subject_tag = \"[SPAM]\"\nreject = 15\nquarantine = 7")
    ));
    let mut server = Server::new(&gateway, false);
    let mail = SPAM.replace("x-spam-flag ", "x-spam-flag").replace("From", "X-Spam-Flag: No\r\nFrom");
    let answers = server.message(mail.as_bytes(), 1000);
    let told = |letter, text: &str| (letter, text.to_string());
    assert_eq!(
        answers,
        [
            told('m', "\0\0\0\u{2}x-spam-flag\0\0"),
            told('m', "\0\0\0\u{1}x-spam-flag\0\0"),
            told('h', "X-Spam-Flag\0YES\0"),
            told('h', "X-Spam-Level\0*****\0"),
            told('h', "X-Spam-Status\0Yes, score=5.8 required=5.0 tests=FREE,VIA version=4.0.1\0"),
            told('m', "\0\0\0\u{1}Subject\0[SPAM] hello\0"),
            told('a', ""),
        ]
    );
    let answers = server.message(WORSE.as_bytes(), 1000);
    assert!(
        matches!(&answers[..], [('y', reply)] if reply.starts_with("554 5.7.1 Message refused: spam")),
        "{answers:?}"
    );
}

#[test]
fn what_is_wrong_in_rules_is_said_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.cf"), "body A /a/\nbody B /(/\nscore A 1\n").unwrap();
    let config = folder.path().join("sluice.toml");
    let listener = "[[listener]]\nprotocol = 'smtp'\naddress = '127.0.0.1:0'\nforward = 'discard:'\n";
    let check = |rules: &str| {
        fs::write(&config, format!("[spam]\nrules = [\"{rules}\"]\n{listener}")).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_sluice")).arg("check").arg(&config).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, errors) = check(".");
    assert!(status == Some(2) && errors.contains("bad.cf:2: error: B: "), "{status:?} {errors}");
    let (status, errors) = check("none");
    assert!(status == Some(2) && errors.contains("none: No such file"), "{status:?} {errors}");
    fs::write(folder.path().join("bad.cf"), "body A /a/\n").unwrap();
    assert_eq!(check(".").0, Some(0));
}

#[test]
fn a_reload_takes_new_rules() {
    let (rules, sink) = (rules(), Sink::start(Behaviour::default()));
    let head = head("process", rules.path(), "");
    let gateway = Gateway::start_with(&head, "smtp", &sink.forward(), "");
    send(&gateway, "c@d.example", SPAM.as_bytes());
    fs::write(rules.path().join("a.cf"), RULES.replace("score FREE 5.5", "score FREE 7.5")).unwrap();
    gateway.signal("HUP");
    gateway.wait_for_log("reloaded");
    send(&gateway, "c@d.example", SPAM.as_bytes());
    let mails: Vec<String> = sink.wait(2).iter().map(without_trace).collect();
    assert!(mails[0].contains("score=5.8 ") && mails[1].contains("score=7.8 "), "{mails:?}");
}

/// Fields that SpamAssassin adds to a mail.
fn by_spamassassin(home: &Path, mail: &[u8]) -> Vec<String> {
    let mut child = Command::new("spamassassin")
        .env("HOME", home)
        .args(["-L", "-x", "--cf=report_safe 0", "--cf=use_bayes 0", "--cf=bayes_auto_learn 0"])
        .args(["--cf=report_hostname mx.test"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut input, mail) = (child.stdin.take().unwrap(), mail.to_vec());
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut input, &mail));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join();
    marks(&String::from_utf8_lossy(&output.stdout))
}

/// The fields `X-Spam-` of a mail, folds and all, in the order of their names.
fn marks(mail: &str) -> Vec<String> {
    let mut marks: Vec<String> = Vec::new();
    let mut is_mark = false;
    for line in mail.lines().take_while(|line| !line.is_empty()) {
        if line.starts_with([' ', '\t']) {
            if let Some(mark) = marks.last_mut().filter(|_| is_mark) {
                *mark += &format!("\n{line}");
            }
            continue;
        }
        is_mark = line.starts_with("X-Spam-");
        marks.extend(is_mark.then(|| line.to_string()));
    }
    marks.iter_mut().filter(|mark| mark.starts_with("X-Spam-Report")).for_each(|mark| *mark = in_order(mark));
    marks.sort();
    marks
}

/// A report with its rules in order: SpamAssassin's is that of a hash.
fn in_order(report: &str) -> String {
    const FOLD: &str = "\n\t*      ";
    let folded = report.replace(FOLD, "\u{1}");
    let mut lines: Vec<&str> = folded.split("\n\t").collect();
    lines[1..].sort_unstable();
    lines.join("\n\t").replace('\u{1}', FOLD)
}

/// The mail without them.
fn unmarked(mail: &str) -> String {
    let (header, body) = mail.split_once("\r\n\r\n").unwrap_or((mail, ""));
    let mut out = String::new();
    let mut is_mark = false;
    for line in header.split("\r\n") {
        is_mark = if line.starts_with([' ', '\t']) { is_mark } else { line.starts_with("X-Spam-") };
        if !is_mark {
            out += &format!("{line}\r\n");
        }
    }
    out + "\r\n" + body
}

#[test]
fn fields_are_those_that_spamassassin_writes() {
    let has_rules = Path::new("/usr/share/spamassassin/72_active.cf").exists();
    if !has_rules || Command::new("spamassassin").arg("-V").output().is_err() {
        return eprintln!("skipped: SpamAssassin is not installed");
    }
    let home = tempfile::tempdir().unwrap();
    let sink = Sink::start(Behaviour::default());
    let local = tempfile::tempdir().unwrap();
    fs::write(local.path().join("local.cf"), "use_bayes 0\nbayes_auto_learn 0\n").unwrap();
    let folders = format!("\"/usr/share/spamassassin\", \"/etc/spamassassin\", \"{}\"", local.path().display());
    let settings = format!("[spam]\nreport = true\nrules = [{folders}]\n");
    let gateway = Gateway::start_with(&settings, "smtp", &sink.forward(), "");
    let own = crate::harness::files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/mails"));
    let data = std::env::var_os("SLUICE_DATA").map(std::path::PathBuf::from).unwrap_or_default();
    let mut public = match data.join("mail-spamassassin/spamassassin-t") {
        folder if folder.is_dir() => crate::harness::files(&folder),
        _ => Vec::new(),
    };
    public.retain(|file| fs::metadata(file).is_ok_and(|facts| facts.len() < 30_000));
    let step = (public.len() / 16).max(1);
    let (mut same, mut all) = (0, 0);
    for file in own.iter().step_by(7).chain(public.iter().step_by(step)) {
        let mail = String::from_utf8_lossy(&fs::read(file).unwrap()).replace("\r\n", "\n").replace('\n', "\r\n");
        let has_header = mail.split("\r\n").next().is_some_and(|line| line.contains(':'));
        if !has_header || send(&gateway, "c@d.example", mail.as_bytes()) != "250 2.0.0 Taken" {
            continue;
        }
        let arrived = sink.take().unwrap().text();
        let given = format!("Return-Path: <a@b.example>\r\n{}", unmarked(&arrived));
        let theirs = by_spamassassin(home.path(), given.as_bytes());
        // Only spam has a report there.
        let wanted = |mark: &String| {
            !mark.starts_with("X-Spam-Report") || theirs.iter().any(|mark| mark.starts_with("X-Spam-Report"))
        };
        let ours: Vec<String> = marks(&arrived).into_iter().filter(wanted).collect();
        all += 1;
        same += usize::from(ours == theirs);
        if ours != theirs {
            eprintln!("{}:\n  ours   {ours:#?}\n  theirs {theirs:#?}", file.display());
        }
    }
    eprintln!("{same} of {all} mails have the same fields");
    assert!(all > 5 && same == all, "{same} of {all}");
}
