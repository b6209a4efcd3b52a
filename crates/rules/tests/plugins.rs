//! Plugins that the stock set does not load, beside SpamAssassin itself: Shortcircuit, PDFInfo, AuthRes, DecodeShortURLs. The same
//! rules hit, as often, and come to the same score.

use std::fs;
use std::path::{Path, PathBuf};

use rules::spam::message::{Message, MessageLimits};
use rules::spam::run::{Engine, EngineOptions, Expressions, Scratch};
use serde_json::Value;

use super::hits::{ask, has_peer};
use super::peer::load_with;

const PLUGINS: [&str; 10] = [
    "Check",
    "MIMEHeader",
    "URIDetail",
    "HeaderEval",
    "BodyEval",
    "MIMEEval",
    "Shortcircuit",
    "PDFInfo",
    "AuthRes",
    "DecodeShortURLs",
];

const MAILS: [&str; 6] = [
    "Subject: alpha\n\nalpha beta\n",
    "Subject: beta\nX-Foo: alpha\n\nbeta http://www.alpha.com/gamma\n\ngamma gamma\n",
    "Subject: none\nContent-Type: text/html\n\n<p>gamma <a href=\"http://bit.ly/x\">alpha</a></p>\n",
    "Received: from a (a.test [198.51.100.1]) by mx.test; Mon, 1 Jan 2024 00:00:00 +0000\n\
     Authentication-Results: mx.test; spf=pass smtp.mailfrom=a@b.test\n\nCompany: Acme\nSymbol: ACM\n",
    "Authentication-Results: mx.test; spf=pass (x (y)) smtp.helo=a; dkim=pass reason=\"a; b\" header.d=b.test\n\
     Received: from a (a.test [198.51.100.1]) by mx.test; Mon, 1 Jan 2024 00:00:00 +0000\n\nx\n",
    "Subject: alpha\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nbeta\n--b\nContent-Type: application/pdf; name=a.pdf\n\n\
     %PDF-1.4\n<</Producer(GPL Ghostscript 8.15)/Title(A \\(b\\))\n/Subtype/Image\n630 0 0 149 0 0 cm\n/Encrypt 5 0 R\n--b--\n",
];

const RULES: &str = "util_rb_tld com ly\nbody EARLY /alpha/\npriority EARLY -500\nheader HEAD Subject =~ /alpha/\nscore HEAD 2\n\
                     body BODY /beta/\nscore BODY -3\nrawbody RAW /gamma/\ntflags RAW multiple maxhits=2\nuri URI /alpha/\n\
                     uri_detail DETAIL raw =~ /gamma/\nmimeheader PART Content-Type =~ /html/\nfull FULL /beta/\npriority FULL 10\n\
                     meta BOTH EARLY && HEAD\nmeta LATE BODY && NOSUCH\nmeta NOT !NOSUCH\nbody __SUB /gamma/\n\
                     url_shortener bit.ly\nbody SHORT eval:short_url()\nbody STOCK eval:check_stock_info('2')\n\
                     header SPF eval:check_authres_result('spf', 'pass')\nheader DKIM eval:check_authres_result('dkim', 'pass')\n\
                     header NOARC eval:check_authres_result('arc', 'missing')\nbody PDF eval:pdf_count(1)\n\
                     body PDFSIZE eval:pdf_image_size_range(100,450,240,800)\nbody PDFLOCK eval:pdf_is_encrypted()\n\
                     body PDFTITLE eval:pdf_match_details('title','/^a \\(B\\)$/i')\nbody PDFBODY eval:pdf_is_empty_body(6)\n";

/// Lines of configurations. What SpamAssassin decides by chance is not among them: the order of rules of one kind and priority.
const LINES: [&str; 14] = [
    "",
    "shortcircuit EARLY spam",
    "shortcircuit HEAD ham\nshortcircuit_ham_score -7",
    "shortcircuit BODY on",
    "shortcircuit BODY on\nshortcircuit BODY off",
    "shortcircuit RAW spam\nshortcircuit_spam_score 10",
    "shortcircuit RAW on\npriority RAW 0",
    "shortcircuit URI spam\npriority URI 5",
    "shortcircuit __SUB ham",
    "shortcircuit BOTH on\npriority BOTH -700",
    "shortcircuit NOT ham",
    "shortcircuit DETAIL spam\nshortcircuit_spam_score 0",
    "shortcircuit PART on\nshortcircuit FULL spam",
    "shortcircuit_max_spam_score 2.5\nscore BODY 0\nscore NOARC 0",
];

#[test]
fn plugins_hit_as_in_spamassassin() {
    if !has_peer() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let (folder, site) = (scratch.path().join("rules"), scratch.path().join("site"));
    fs::create_dir(&folder).unwrap();
    fs::create_dir(&site).unwrap();
    let plugins = PLUGINS.map(|name| format!("loadplugin Mail::SpamAssassin::Plugin::{name}\n"));
    fs::write(site.join("init.pre"), plugins.concat()).unwrap();
    let mails: Vec<PathBuf> = (0..MAILS.len()).map(|number| scratch.path().join(number.to_string())).collect();
    mails.iter().zip(MAILS).for_each(|(path, mail)| fs::write(path, mail).unwrap());
    let mut seen = String::new();
    for lines in LINES {
        fs::write(folder.join("a.cf"), format!("{RULES}{lines}\n")).unwrap();
        let theirs: Vec<String> =
            String::from_utf8(ask(&mails, &[&folder, &site])).unwrap().lines().map(answer).collect();
        assert_eq!(ours(&[&folder, &site], &mails), theirs, "{lines}");
        assert_eq!(theirs.len(), mails.len());
        seen += &theirs.join(" ");
    }
    for rule in ["SHORT ", "STOCK", "SPF", "DKIM", "NOARC", "PDFSIZE", "PDFLOCK", "PDFTITLE", "PDFBODY", "SHORTCIRCUIT"]
    {
        assert!(seen.contains(rule), "{rule}: {seen}");
    }
}

/// Score and hits, as often as they are counted.
fn ours(folders: &[&Path], mails: &[PathBuf]) -> Vec<String> {
    let rules = load_with(folders, true, &Expressions);
    assert_eq!(rules.errors(), 0, "{:?}", rules.problems());
    let engine = Engine::new(rules, EngineOptions::default());
    let mut scratch = Scratch::default();
    let check = |path: &PathBuf| {
        let mail = Message::read(&fs::read(path).unwrap(), engine.reading(), &MessageLimits::default());
        let outcome = engine.check(&mail, 0, false, &mut scratch);
        let mut names: Vec<&str> = Vec::new();
        for hit in &outcome.hits {
            let rule = &engine.rules().names()[hit.rule as usize];
            let times = if rule.is_subrule() { 0 } else { hit.count.min(rule.flags.hits_max()) };
            names.extend((0..times).map(|_| &*rule.name));
        }
        names.sort_unstable();
        format!("{:.3} {}", outcome.total.value(), names.join(" "))
    };
    mails.iter().map(check).collect()
}

fn answer(line: &str) -> String {
    let value: Value = serde_json::from_str(line).unwrap();
    let score = value["score"].as_f64().or_else(|| value["score"].as_str()?.parse().ok()).unwrap() + 0.0;
    let names: Vec<&str> = value["hits"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    format!("{score:.3} {}", names.join(" "))
}
