//! The spamd door, asked by Debian's spamc and by hand.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::harness::Gateway;

const RULES: &str = "body FREE /free money/i\ndescribe FREE Offers money\nscore FREE 5.5\nheader NICE Subject =~ /minutes/\n\
                     score NICE -1.5\nclear_headers\nadd_header spam Flag _YESNOCAPS_\nadd_header all Status _YESNO_, score=_SCORE_\n\
                     clear_report_template\nreport Points _SCORE_ of _REQD_:\nreport _SUMMARY_\n";

const HAM: &str = "From: a@b.example\nX-Spam-Flag: YES\nSubject: minutes\n\nsee below\n";
const SPAM: &str = "Return-Path: <a@b.example>\nFrom: a@b.example\nSubject: hello\n\nFREE money here\n";

fn gateway(isolation: &str, spam: &str) -> (Gateway, tempfile::TempDir) {
    let rules = tempfile::tempdir().unwrap();
    fs::write(rules.path().join("a.cf"), RULES).unwrap();
    let gateway = Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\nisolation = \"{isolation}\"\n[spam]\nrules = [\"{}\"]\n{spam}\n\
         [[listener]]\nprotocol = \"spamd\"\naddress = \"127.0.0.1:0\"\n",
        rules.path().display()
    ));
    (gateway, rules)
}

/// Output of spamc, and its exit status.
fn spamc(gateway: &Gateway, args: &[&str], mail: &str) -> (String, Option<i32>) {
    let port = gateway.address.port().to_string();
    let mut child = Command::new("spamc")
        .args(["-d", "127.0.0.1", "-p", &port])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(mail.as_bytes());
    let output = child.wait_with_output().unwrap();
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

#[test]
fn spamc_is_answered_as_by_spamd() {
    if Command::new("spamc").arg("-V").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "spamc is missing");
        eprintln!("skipped: no spamc");
        return;
    }
    let report = "Points 5.5 of 5.0:\n 5.5 FREE                   BODY: Offers money\n";
    let marked = "Return-Path: <a@b.example>\nX-Spam-Flag: YES\nX-Spam-Status: Yes, score=5.5\nFrom: a@b.example\n\
                  Subject: [SPAM] hello\n\nFREE money here\n";
    let clean = "X-Spam-Status: No, score=-1.5\nFrom: a@b.example\nSubject: minutes\n\nsee below\n";
    for isolation in ["process", "none"] {
        let (gateway, _rules) = gateway(isolation, "subject_tag = \"[SPAM]\"\nsize_max = 5000");
        let ask = |args: &[&str], mail: &str| spamc(&gateway, args, mail);
        let told = |text: &str, status| (text.to_string(), Some(status));
        assert_eq!(ask(&["-K"], ""), told("SPAMD/1.5 0\n", 0));
        for user in [&[][..], &["-u", "joe"]] {
            let ask = |more: &[&str], mail: &str| ask(&[user, more].concat(), mail);
            assert_eq!(ask(&["-c"], SPAM), told("5.5/5.0\n", 1));
            assert_eq!(ask(&["-c"], HAM), told("-1.5/5.0\n", 0));
            assert_eq!(ask(&["-y"], SPAM).0.trim_end(), "FREE");
            assert_eq!(ask(&["-R"], SPAM).0.trim_end(), format!("5.5/5.0\n{report}").trim_end());
            assert_eq!(ask(&["-r"], HAM).0, "");
            assert_eq!(ask(&["-r"], SPAM).0.trim_end(), report.trim_end());
            assert_eq!(ask(&[], SPAM), told(marked, 0));
            assert_eq!(ask(&["-E"], SPAM), told(marked, 1));
            assert_eq!(ask(&[], HAM), told(clean, 0));
            assert_eq!(ask(&["--headers"], SPAM), told(marked, 0));
            assert_eq!(ask(&[], &SPAM.replace('\n', "\r\n")).0, marked.replace('\n', "\r\n"));
            // By the first line and the last, as Mail::SpamAssassin does.
            let (header, body) = marked.split_once("\n\n").unwrap();
            let header = header.replace('\n', "\r\n");
            assert_eq!(ask(&[], &format!("{SPAM}\r\n")).0, format!("{header}\r\n\r\n{body}\r\n"));
        }
        assert_ne!(ask(&["-x", "-L", "spam"], SPAM).1, Some(0), "nothing is learned");
        let large = format!("{SPAM}{}", "more\n".repeat(2_000));
        assert_ne!(ask(&["-x"], &large).1, Some(0), "too large to be scored");
        assert_eq!(ask(&[], &large), (large.clone(), Some(0)), "spamc hands it on as it came");
        gateway.wait_for_log("message scored");
    }
}

#[test]
fn nonsense_is_refused_and_a_mail_without_a_length_ends_with_the_connection() {
    let (gateway, _rules) = gateway("process", "");
    for (said, wanted) in [
        ("EAT SPAMC/1.5\r\n", "SPAMD/1.0 76 Bad header line: EAT SPAMC/1.5\r\n"),
        (
            "CHECK SPAMC/1.5\r\nCompress: zlib\r\n\r\nno",
            "SPAMD/1.0 69 Service Unavailable: zlib: the compressed message is malformed\r\n",
        ),
        (
            "CHECK SPAMC/1.5\r\nContent-length: 9999999\r\n\r\n",
            "SPAMD/1.0 69 Service Unavailable: the message is too large\r\n",
        ),
        (
            "CHECK SPAMC/1.5\r\n\r\nSubject: x\r\n\r\nfree money\r\n",
            "SPAMD/1.1 0 EX_OK\r\nSpam: True ; 5.5 / 5.0\r\n\r\n",
        ),
        ("CHECK SPAMC/1.5\r\nContent-length: 0\r\n\r\n", "SPAMD/1.1 0 EX_OK\r\nSpam: False ; 0.0 / 5.0\r\n\r\n"),
    ] {
        let mut wire = gateway.connect();
        wire.send(said.as_bytes());
        wire.stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(String::from_utf8_lossy(&wire.rest()), wanted, "{said}");
    }
}

/// Text compressed by zlib.
fn compressed(text: &str) -> Vec<u8> {
    let script = "import sys, zlib; sys.stdout.buffer.write(zlib.compress(sys.stdin.buffer.read()))";
    let mut child =
        Command::new("python3").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap().stdout
}

#[test]
fn what_is_compressed_is_undone_up_to_its_bound() {
    let (gateway, _rules) = gateway("process", "size_max = 100000");
    let bomb = format!("{SPAM}{}", "x".repeat(10_000_000));
    for (mail, cut, wanted) in [
        (SPAM, 0, "SPAMD/1.1 0 EX_OK\r\nSpam: True ; 5.5 / 5.0\r\n\r\n"),
        (SPAM, 3, "SPAMD/1.0 69 Service Unavailable: zlib: the compressed message is incomplete\r\n"),
        (&bomb, 0, "SPAMD/1.0 69 Service Unavailable: the message is too large\r\n"),
    ] {
        let bytes = compressed(mail);
        let bytes = &bytes[..bytes.len() - cut];
        let mut wire = gateway.connect();
        let head = format!("CHECK SPAMC/1.5\r\nCompress: zlib\r\nContent-length: {}\r\n\r\n", bytes.len());
        wire.send(&[head.as_bytes(), bytes].concat());
        wire.stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(String::from_utf8_lossy(&wire.rest()), wanted);
    }
}
