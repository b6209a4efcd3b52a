//! Beside Pigeonhole's `sieve-test`: scripts made of a grammar over a few mails; whatever differs has to be one of the kinds
//! that `docs/engine/sieve.md` explains. Where it is not installed the test is skipped. `SLUICE_SIEVE_SCRIPTS` is how many.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use sieve::{Action, Limits, Mail, Setting, compile, run};

const FROM: &str = "ann+work@x.example";
const TO: &str = "bob+lists@y.example";
const SCRIPTS: usize = 500;

struct Chance(u64);

impl Chance {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

const MAILS: [&str; 5] = [
    "From: Ann <ann+work@x.example>\nTo: bob@y.example, \"C, D\" <c.d+tag@z.example>\nCc: team: e@f.example, g@h.example;\n\
     Subject: Hello [list] World\nDate: Mon, 23 Nov 2026 10:05:07 +0130\nMessage-ID: <1@x.example>\nX-Spam-Score: 7\n\
     X-Num: 0042\nX-Num: 17\nX-Empty:\nReceived: from a by b; Mon, 23 Nov 2026 11:00:00 -0500\n\
     Received: from c by d; Sun, 22 Nov 2026 23:59:59 +0000\n\nHello there,\nthe body has 42 words.\n",
    "From: =?utf-8?q?J=C3=B6rg?= <j@x.example>\nTo: undisclosed-recipients:;\nSubject: =?utf-8?b?Z3LDvG4=?= and\n blue\n\
     X-Spam-Score: 0\nDate: 1 Jan 70 00:00 GMT\nX-Num: 5\n\nx\n",
    "Subject: a*b?c\\d\nFrom: ann@x.example\nX-Num: abc\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\
     Date: Sat, 29 Feb 2020 23:59:58 +0000\n\npre\n--b\nContent-Type: text/plain\nContent-Transfer-Encoding: quoted-printable\n\n\
     caf=C3=A9 =\nsecret\n--b\nContent-Type: text/html\n\n<p>bold <b>move</b></p>\n--b\nContent-Type: application/x-foo\n\
     Content-Transfer-Encoding: base64\n\naGVsbG8gd29ybGQ=\n--b--\n",
    "From: a@b.example\nFrom: second@b.example\nSubject:    spaces   inside   \nTo: <bob+lists@y.example>\n\nbody\n",
    "To: bob@y.example\nSubject: x HELLO\n\n",
];

const REQUIRE: &str = "require [\"fileinto\", \"copy\", \"envelope\", \"body\", \"relational\", \"variables\", \"imap4flags\", \
    \"subaddress\", \"date\", \"index\", \"regex\", \"spamtest\", \"virustest\", \"comparator-i;ascii-numeric\", \
    \"encoded-character\", \"reject\", \"vacation\", \"editheader\", \"environment\"];\n";

const KEYS: [&str; 34] = [
    "",
    "a",
    "hello",
    "*ello*",
    "*list*",
    "*[*]*",
    "ann+work@x.example",
    "x.example",
    "ann",
    "work",
    "lists",
    "42",
    "0042",
    "17",
    "5",
    "abc",
    "a*b?c\\\\d",
    "a\\\\*b*",
    "?*",
    "*",
    "grün*",
    "bob",
    "tag",
    "1",
    "2026",
    "10",
    "body",
    "${v}",
    "${1}",
    "x${v}y",
    "${hex:68}ello",
    "spaces   inside",
    "*o*o*",
    "*E*",
];
const EXPRESSIONS: [&str; 12] = [
    "^h",
    "(l+)o",
    "[[:digit:]]+",
    "^$",
    "w.*d$",
    "(a|b)c?",
    "\\\\[.*\\\\]",
    "x{0,2}",
    "[^a-z]",
    "ann\\\\+",
    "e$",
    "(.)(.)(.)",
];
const FIELDS: [&str; 11] =
    ["subject", "From", "to", "cc", "X-Num", "x-empty", "x-none", "received", "date", "x-spam-score", "x-added"];

fn key(chance: &mut Chance, is_expression: bool) -> String {
    let one = |chance: &mut Chance| match is_expression {
        true => format!("\"{}\"", chance.pick(&EXPRESSIONS)),
        false => format!("\"{}\"", chance.pick(&KEYS)),
    };
    match chance.below(3) {
        0 => format!("[{}, {}]", one(chance), one(chance)),
        _ => one(chance),
    }
}

/// Match type, comparator and keys that go with them.
fn matching(chance: &mut Chance) -> (String, String) {
    let relation = chance.pick(&["gt", "ge", "lt", "le", "eq", "ne"]);
    let comparator = chance.pick(&["", "", ":comparator \"i;octet\" ", ":comparator \"i;ascii-casemap\" "]);
    let (kind, is_expression) = match chance.below(8) {
        0 => (format!(":is {comparator}"), false),
        1 => (format!(":contains {comparator}"), false),
        2 | 3 => (format!(":matches {comparator}"), false),
        4 => (format!(":regex {comparator}"), true),
        5 => (format!(":value \"{relation}\" :comparator \"i;ascii-numeric\" "), false),
        6 => (format!(":value \"{relation}\" {comparator}"), false),
        _ => {
            let keys = chance.pick(&["\"0\"", "\"1\"", "\"2\"", "\"3\""]).to_owned();
            return (format!(":count \"{relation}\" :comparator \"i;ascii-numeric\" "), keys);
        }
    };
    (kind, key(chance, is_expression))
}

fn fields(chance: &mut Chance, all: &[&str]) -> String {
    match chance.below(3) {
        0 => format!("[\"{}\", \"{}\"]", chance.pick(all), chance.pick(all)),
        _ => format!("\"{}\"", chance.pick(all)),
    }
}

fn test(chance: &mut Chance, depth: usize) -> String {
    let (kind, keys) = matching(chance);
    let index = chance.pick(&["", "", ":index 1 ", ":index 2 ", ":index 1 :last "]);
    let part = chance.pick(&["", ":all ", ":localpart ", ":domain ", ":user ", ":detail "]);
    // Pigeonhole counts no fields by index, and addresses though they have no detail.
    let is_count = kind.starts_with(":count");
    let (index, part) = if is_count { ("", part.replace("detail", "user")) } else { (index, part.to_owned()) };
    match chance.below(if depth > 0 { 16 } else { 13 }) {
        0..=2 => format!("header {index}{kind}{} {keys}", fields(chance, &FIELDS)),
        3 | 4 => format!("address {part}{kind}{} {keys}", fields(chance, &["from", "to", "Cc", "bcc"])),
        5 => format!("envelope {part}{kind}\"{}\" {keys}", chance.pick(&["from", "to"])),
        6 => format!("exists {}", fields(chance, &FIELDS)),
        7 => format!("size :{} {}", chance.pick(&["over", "under"]), chance.pick(&["0", "10", "300", "1K"])),
        8 => format!("string {kind}[\"{}\", \"{}\"] {keys}", chance.pick(&KEYS), chance.pick(&KEYS)),
        9 => format!("hasflag {kind}{keys}"),
        10 => {
            let transform =
                chance.pick(&[":raw ", ":text ", ":content \"text\" ", ":content \"application/x-foo\" ", ""]);
            format!("body {transform}{kind}{keys}")
        }
        11 => {
            let zone = chance.pick(&[":zone \"+0000\" ", ":originalzone ", ":zone \"-0730\" "]);
            let part = chance.pick(&[
                "year", "month", "day", "date", "julian", "hour", "minute", "second", "time", "iso8601", "std11",
                "zone", "weekday",
            ]);
            let keys = chance.pick(&["\"2026\"", "\"*2*\"", "\"+0000\"", "\"1\"", "\"11\"", "\"*:59:*\"", "\"*1*\""]);
            // Of several fields Pigeonhole reads the first, whichever is asked for.
            let index = if index.contains('2') || index.contains("last") { "" } else { index };
            format!("date {index}{zone}:matches \"{}\" \"{part}\" {keys}", chance.pick(&["date", "received"]))
        }
        12 => {
            let key = keys.trim_start_matches('[').split("\", ").next().unwrap().trim_end_matches(['"', ']']);
            format!("{} {kind}{key}\"", chance.pick(&["spamtest", "virustest"]))
        }
        13 => format!("not {}", test(chance, depth - 1)),
        14 => format!("allof ({}, {})", test(chance, depth - 1), test(chance, depth - 1)),
        _ => format!("anyof ({}, {})", test(chance, depth - 1), test(chance, depth - 1)),
    }
}

fn action(chance: &mut Chance) -> String {
    let flag = chance.pick(&["\\\\Seen", "a b", "\\\\flagged x", "\\\\Foo", "", "x"]);
    match chance.below(22) {
        0 => "discard;".into(),
        1 => "keep;".into(),
        2 => format!("keep :flags \"{flag}\";"),
        3 => format!("fileinto \"{}\";", chance.pick(&["Lists", "INBOX", "A/B", "l${v}"])),
        4 => format!("fileinto :copy :flags [\"{flag}\", \"z\"] \"{}\";", chance.pick(&["Lists", "INBOX", "Work"])),
        5 => format!("redirect \"{}\";", chance.pick(&["a@b.example", "c@d.example"])),
        6 => "redirect :copy \"e@f.example\";".into(),
        7 => "stop;".into(),
        8 => "reject \"no\";".into(),
        9 => "vacation :days 3 \"away\";".into(),
        10 => "vacation :subject \"gone ${v}\" \"away\";".into(),
        11..=13 => format!("{} \"{flag}\";", chance.pick(&["setflag", "addflag", "removeflag"])),
        14 | 15 => {
            let modifier =
                chance.pick(&["", ":upper ", ":lowerfirst ", ":length ", ":quotewildcard ", ":upperfirst :lower "]);
            format!("set {modifier}\"v\" \"{}\";", chance.pick(&["a", "hello", "${1}", "${0}", "${v}x", "a*b?", ""]))
        }
        16 => "addheader \"X-Added\" \"one ${v}\";".into(),
        17 => "addheader :last \"X-Num\" \"5\";".into(),
        18 => format!("deleteheader {}\"x-num\";", chance.pick(&["", ":index 1 ", ":index 1 :last "])),
        19 => "deleteheader :contains \"subject\" \"HELLO\";".into(),
        20 => "addflag [\"p\", \"q\"];".into(),
        _ => "removeflag \"q\";".into(),
    }
}

fn script(chance: &mut Chance) -> String {
    let mut out = REQUIRE.to_owned();
    for at in 0..8 {
        out.push_str(&format!("if {} {{\n  fileinto :copy \"t{at}\";\n", test(chance, 2)));
        if chance.below(3) == 0 {
            out.push_str(&format!("  {}\n", action(chance)));
        }
        out.push_str("}\n");
        if chance.below(4) == 0 {
            out.push_str(&format!("{}\n", action(chance)));
        }
    }
    // What variables hold at the end.
    out.push_str("if string :matches \"${v}\" \"?*\" { fileinto :copy \"v\"; }\n");
    out
}

fn ours(script: &str, mail: &str) -> Vec<String> {
    let program = match compile(script, &()) {
        Ok(program) => program,
        Err(_) => return vec!["compile error".into()],
    };
    let mail = mail.replace('\n', "\r\n");
    let score = mail.split("X-Spam-Score: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse::<u8>().ok());
    let setting = Setting {
        from: FROM,
        to: TO,
        addresses: &[],
        now: 0,
        zone: 0,
        spam_percent: score.map(|score| score * 10),
        virus: 0,
        hostname: "h",
        host: &(),
        limits: Limits::default(),
    };
    let outcome = run(&program, &Mail::new(mail.as_bytes(), mail.len() as u64), &setting);
    if outcome.failure.is_some() {
        return vec!["failure".into()];
    }
    let told = |action: &Action| match action {
        // The peer shows flags there only sometimes.
        Action::Keep { is_implicit: true, .. } => Some(stored("INBOX", &[])),
        Action::Keep { flags, .. } => Some(stored("INBOX", flags)),
        Action::FileInto { mailbox, flags, .. } => Some(stored(mailbox, flags)),
        Action::Redirect { address } => Some(format!("redirect {address}")),
        Action::Reject { reason, .. } => Some(format!("reject {reason}")),
        Action::Vacation(vacation) => Some(format!("vacation {}", vacation.seconds)),
        Action::Discard => None,
    };
    outcome.actions.iter().filter_map(told).collect()
}

fn stored(mailbox: &str, flags: &[String]) -> String {
    let mut flags: Vec<String> = flags.iter().map(|flag| flag.to_lowercase()).collect();
    flags.sort();
    format!("store {mailbox} {}", flags.join(" ")).trim_end().to_owned()
}

fn theirs(folder: &Path, script: &str, mail: &str) -> Vec<String> {
    fs::write(folder.join("s.sieve"), script).unwrap();
    fs::write(folder.join("m.eml"), mail.replace('\n', "\r\n")).unwrap();
    let output = Command::new("sieve-test")
        .args(["-c", "dovecot.conf", "-f", FROM, "-r", TO, "-a", TO, "s.sieve", "m.eml"])
        .current_dir(folder)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if err.contains("failed to compile") {
        return vec!["compile error".into()];
    }
    if err.contains(": error: ") {
        return vec!["failure".into()];
    }
    assert!(output.status.success(), "{err}\n{out}");
    let mut told: Vec<String> = Vec::new();
    let mut is_implicit = false;
    for line in out.lines() {
        is_implicit |= line == "Implicit keep:";
        if is_implicit && told.iter().any(|line| line.starts_with("store INBOX")) {
            // Listed although the mail exists already, and stored once.
            continue;
        }
        if let Some(mailbox) = line.strip_prefix(" * store message in folder: ") {
            told.push(stored(mailbox, &[]));
        } else if let (Some(flags), Some(last), false) =
            (line.trim().strip_prefix("+ add IMAP flags: "), told.last_mut(), is_implicit)
        {
            let flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
            *last = stored(last.strip_prefix("store ").unwrap(), &flags);
        } else if let Some(address) = line.strip_prefix(" * redirect message to: ") {
            told.push(format!("redirect {}", address.trim_matches(['<', '>'])));
        } else if let Some(reason) = line.strip_prefix(" * reject message with reason: ") {
            told.push(format!("reject {reason}"));
        } else if let Some(seconds) = line.trim().strip_prefix("=> seconds : ") {
            told.push(format!("vacation {seconds}"));
        }
    }
    told
}

fn configure(folder: &Path) {
    // Root may not read mail there.
    let id = |flag: &str| {
        let output = Command::new("id").arg(flag).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let (uid, gid) = match id("-u").as_str() {
        "0" => ("nobody".into(), "nogroup".into()),
        uid => (uid.to_owned(), id("-g")),
    };
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    let home = folder.display();
    let text = format!(
        "mail_uid={uid}\nmail_gid={gid}\nfirst_valid_uid=1\nfirst_valid_gid=0\nmail_home={home}/home\n\
         mail_location=maildir:{home}/mail\nlog_path=/dev/stderr\nplugin {{\n  sieve_spamtest_status_type=score\n  \
         sieve_spamtest_status_header=X-Spam-Score\n  sieve_spamtest_max_value=10\n  sieve_virustest_status_type=text\n  \
         sieve_virustest_status_header=X-Virus\n  sieve_virustest_text_value1=clean\n  \
         sieve_extensions=+editheader +spamtest +virustest\n}}\n"
    );
    fs::write(folder.join("dovecot.conf"), text).unwrap();
}

#[test]
fn scripts_do_as_with_pigeonhole() {
    if Command::new("sieve-test").output().is_err() {
        eprintln!("skipped: sieve-test is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    configure(folder.path());
    let scripts = std::env::var("SLUICE_SIEVE_SCRIPTS").ok().and_then(|count| count.parse().ok()).unwrap_or(SCRIPTS);
    let mut chance = Chance(2026);
    let (mut different, mut failed, mut compared) = (Vec::new(), 0, 0);
    for _ in 0..scripts {
        let (script, mail) = (script(&mut chance), chance.pick(&MAILS));
        if script.contains("body ") && (script.contains("addheader ") || script.contains("deleteheader ")) {
            // Of an edited mail Pigeonhole does not always have the body.
            continue;
        }
        let (ours, theirs) = (ours(&script, mail), theirs(folder.path(), &script, mail));
        compared += 1;
        failed += usize::from(theirs.first().is_some_and(|first| first.contains("error") || first.contains("failure")));
        if ours != theirs {
            let mail = MAILS.iter().position(|other| *other == mail).unwrap();
            different.push(format!("mail {mail}\n{script}ours:   {ours:?}\ntheirs: {theirs:?}\n"));
        }
    }
    eprintln!("{compared} scripts, {failed} that fail, {} different", different.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
}
