//! `sluice sieve`: filters of users, checked, tried on a mail, and kept in a mail store.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sieve::{Action, Host, Limits, Location, Mail, Outcome, Program, SCRIPT_BYTES_MAX, Scripts, Setting, compile};

use crate::cli::{self, SieveCheck, SieveCommand, SieveTest};
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::privileges;
use crate::store::scripts;

/// As much of a mail is read, in bytes.
const MAIL_BYTES_MAX: u64 = 64 << 20;

/// Does what the command line says.
pub fn run(args: &cli::Sieve) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    match &args.command {
        SieveCommand::Check(args) => check(args),
        SieveCommand::Test(args) => test(args),
        SieveCommand::List(user) => scripts::list(user),
        SieveCommand::Put(args) => {
            let source: Box<dyn Read> = match args.file.as_os_str() == "-" {
                true => Box::new(std::io::stdin().lock()),
                false => Box::new(open(&args.file)?),
            };
            let text = read(&args.file, source, SCRIPT_BYTES_MAX as u64 + 1)?;
            let text = String::from_utf8(text).map_err(|_| format!("{}: not UTF-8", args.file.display()))?;
            scripts::put(&args.script, &text, args.activate)
        }
        SieveCommand::Get(args) => scripts::get(args),
        SieveCommand::Activate { user, name } => scripts::activate(user, name.as_deref()),
        SieveCommand::Delete(args) => scripts::delete(args),
    }
}

fn check(args: &SieveCheck) -> Result<ExitCode, Failure> {
    Reach::reading().confine(&[])?;
    let library = Library { folder: args.folder.as_deref() };
    let mut is_right = true;
    for path in &args.files {
        is_right &= compiled(path, &library)?.is_some();
    }
    Ok(ExitCode::from(u8::from(!is_right)))
}

fn test(args: &SieveTest) -> Result<ExitCode, Failure> {
    let mut output: Box<dyn Write> = match &args.output {
        Some(path) => Box::new(File::create(path).map_err(|error| format!("{}: {error}", path.display()))?),
        None => Box::new(crate::output::out()),
    };
    Reach::reading().confine(&[])?;
    let library = Library { folder: args.folder.as_deref() };
    let Some(program) = compiled(&args.script, &library)? else { return Ok(ExitCode::from(1)) };
    let mail = match args.mail.as_os_str() == "-" {
        true => read(&args.mail, std::io::stdin().lock(), MAIL_BYTES_MAX)?,
        false => read(&args.mail, open(&args.mail)?, MAIL_BYTES_MAX)?,
    };
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let mailboxes = Mailboxes(&args.mailboxes);
    let setting = Setting {
        from: &args.from,
        to: &args.to,
        addresses: &[],
        now: args.time.unwrap_or_else(now),
        zone: 0,
        spam_percent: args.spam,
        virus: args.virus,
        hostname: "localhost",
        host: &mailboxes,
        limits: Limits::default(),
    };
    let outcome = sieve::run(&program, &Mail::new(&mail, mail.len() as u64), &setting);
    match args.json {
        true => writeln!(output, "{:#}", described(&outcome))?,
        false => {
            for action in &outcome.actions {
                writeln!(output, "{action}")?;
            }
        }
    }
    output.flush()?;
    if let Some(failure) = &outcome.failure {
        eprintln!("{}: {failure}", args.script.display());
    }
    Ok(ExitCode::from(u8::from(outcome.failure.is_some())))
}

/// A script; none if it is wrong, which is printed.
fn compiled(path: &Path, library: &Library<'_>) -> Result<Option<Program>, Failure> {
    let bytes = read(path, open(path)?, SCRIPT_BYTES_MAX as u64 + 1)?;
    let compiled = match String::from_utf8(bytes) {
        Ok(source) => compile(&source, library).map_err(|error| error.to_string()),
        Err(_) => Err("not UTF-8".into()),
    };
    Ok(compiled.map_err(|why| eprintln!("{}: {why}", path.display())).ok())
}

fn open(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn read(path: &Path, source: impl Read, bytes_max: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = source.take(bytes_max).read_to_end(&mut bytes);
    read.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(bytes)
}

/// Scripts in a folder.
struct Library<'a> {
    folder: Option<&'a Path>,
}

impl Scripts for Library<'_> {
    fn script(&self, location: Location, name: &str) -> Option<String> {
        let mut path: PathBuf = self.folder?.into();
        if location == Location::Global {
            path.push("global");
        }
        // The name has no slash: the compiler sees to that.
        path.push(format!("{name}.sieve"));
        let bytes = read(&path, open(&path).ok()?, SCRIPT_BYTES_MAX as u64 + 1).ok()?;
        String::from_utf8(bytes).ok()
    }
}

struct Mailboxes<'a>(&'a [String]);

impl Host for Mailboxes<'_> {
    fn has_mailbox(&self, name: &str) -> bool {
        name.eq_ignore_ascii_case("INBOX") || self.0.iter().any(|known| known == name)
    }

    fn has_special_use(&self, _: Option<&str>, _: &str) -> bool {
        false
    }
}

fn described(outcome: &Outcome) -> Value {
    let failure = outcome.failure.as_ref();
    let failure = failure.map(|failure| json!({"script": failure.script, "line": failure.line, "text": failure.text}));
    json!({"actions": outcome.actions.iter().map(of_action).collect::<Vec<_>>(), "failure": failure})
}

fn of_action(action: &Action) -> Value {
    let text = |header: &[u8]| String::from_utf8_lossy(header).into_owned();
    match action {
        Action::Keep { flags, is_implicit, header } => {
            json!({"action": "keep", "implicit": is_implicit, "flags": flags, "header": header.as_deref().map(text)})
        }
        Action::FileInto { mailbox, flags, create, special_use, header } => json!({
            "action": "fileinto",
            "mailbox": mailbox,
            "flags": flags,
            "create": create,
            "special_use": special_use,
            "header": header.as_deref().map(text),
        }),
        Action::Redirect { address } => json!({"action": "redirect", "address": address}),
        Action::Discard => json!({"action": "discard"}),
        Action::Reject { reason, is_extended } => {
            json!({"action": if *is_extended { "ereject" } else { "reject" }, "reason": reason})
        }
        Action::Vacation(vacation) => json!({
            "action": "vacation",
            "to": vacation.to,
            "from": vacation.from,
            "subject": vacation.subject,
            "seconds": vacation.seconds,
            "handle": vacation.handle,
            "message": vacation.message,
            "withheld": vacation.withheld,
        }),
    }
}
