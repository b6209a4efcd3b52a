//! Scripts of the standards with their results: `tests/golden/*.sieve` has a script, a line `=====`, a mail, and after
//! another such line the actions. `BLESS=1` writes the actions again.

use std::fs;
use std::path::Path;

use sieve::{Host, Limits, Mail, Setting, compile, run};

struct Mailboxes;

impl Host for Mailboxes {
    fn has_mailbox(&self, name: &str) -> bool {
        ["INBOX", "Lists", "Spam"].contains(&name)
    }
    fn has_special_use(&self, mailbox: Option<&str>, special_use: &str) -> bool {
        mailbox.is_none_or(|name| name == "Spam") && special_use.eq_ignore_ascii_case("\\Junk")
    }
}

fn outcome(script: &str, mail: &str) -> String {
    let program = match compile(script, &()) {
        Ok(program) => program,
        Err(error) => return format!("error: {error}\n"),
    };
    let mail = mail.replace('\n', "\r\n");
    let setting = Setting {
        from: "tim@x.example",
        to: "bob+lists@y.example",
        addresses: &["info@y.example".into()],
        now: 1_795_430_000,
        zone: 60,
        spam_percent: Some(80),
        virus: 1,
        hostname: "mx.y.example",
        host: &Mailboxes,
        limits: Limits::default(),
    };
    let outcome = run(&program, &Mail::new(mail.as_bytes(), mail.len() as u64), &setting);
    let mut told: String = outcome.failure.iter().map(|failure| format!("failure: {failure}\n")).collect();
    for action in &outcome.actions {
        told.push_str(&format!("{action}\n"));
        if let sieve::Action::Vacation(vacation) = action {
            if script.contains("${") {
                told.push_str(&format!("  handle {:?}\n", vacation.handle));
            }
            told.extend(vacation.message.lines().map(|line| format!("  {line}\n")));
        }
        if let sieve::Action::Keep { header: Some(header), .. } = action {
            told.extend(String::from_utf8_lossy(header).lines().map(|line| format!("  {line}\n")));
        }
    }
    told
}

#[test]
fn scripts_do_what_is_written_beside_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let (mut count, mut different) = (0, Vec::new());
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let parts: Vec<&str> = text.split("=====\n").collect();
        let [script, mail, wanted] = parts[..] else { panic!("{}: not three parts", path.display()) };
        let told = outcome(script, mail);
        count += 1;
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, format!("{script}=====\n{mail}=====\n{told}")).unwrap();
        } else if told != wanted {
            different.push(format!("{}\nwanted:\n{wanted}told:\n{told}", path.display()));
        }
    }
    assert!(count >= 20, "only {count}");
    assert!(different.is_empty(), "{}", different.join("\n"));
}
