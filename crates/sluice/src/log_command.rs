//! `sluice log`: searching the decisions in a log.
//!
//! Lines are JSON objects, one each, as `format = "json"` writes them, or as `journalctl -o cat` and `journalctl -o json`
//! give them; other lines are passed over. Exit status: 0 something was found, 1 nothing, 2 an error.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use crate::Failure;
use crate::cli::Log;

/// The longest line that is looked at; what is longer is passed over.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Prints the decisions that are meant.
pub fn run(args: &Log) -> Result<ExitCode, Failure> {
    let input: Box<dyn BufRead> = match &args.file {
        path if path == Path::new("-") => Box::new(io::stdin().lock()),
        path => {
            Box::new(BufReader::new(std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?))
        }
    };
    let mut out = io::stdout().lock();
    let mut found = false;
    let outcome = each_line(input, |line| {
        let Some(entry) = decision(line).filter(|entry| means(args, entry)) else { return Ok(()) };
        found = true;
        if args.json { writeln!(out, "{entry}") } else { writeln!(out, "{}", text(&entry)) }
    });
    match outcome {
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        outcome => outcome?,
    }
    Ok(ExitCode::from(u8::from(!found)))
}

fn each_line(mut input: impl BufRead, mut act: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        act(&line)?;
    }
}

/// The decision in a line, if there is one: about a message, or about a recipient.
fn decision(line: &[u8]) -> Option<Value> {
    let entry: Value = serde_json::from_slice(line).ok()?;
    let entry = match entry.get("MESSAGE").and_then(Value::as_str) {
        Some(inner) => serde_json::from_str(inner).ok()?,
        None => entry,
    };
    matches!(entry.get("message")?.as_str()?, "message" | "recipient refused").then_some(entry)
}

fn means(args: &Log, entry: &Value) -> bool {
    let value = |key: &str| field(entry, key);
    let holds = |wanted: &Option<String>, keys: &[&str]| {
        wanted.as_ref().is_none_or(|wanted| {
            let wanted = wanted.to_lowercase();
            keys.iter().any(|key| value(key).to_lowercase().contains(&wanted))
        })
    };
    args.id.as_ref().is_none_or(|id| value("id") == *id)
        && holds(&args.address, &["from", "to", "client"])
        && holds(&args.from, &["from"])
        && holds(&args.to, &["to"])
        && holds(&args.found, &["found"])
        && args.action.as_ref().is_none_or(|action| value("action") == *action)
        && args.since.as_ref().is_none_or(|since| *value("timestamp") >= **since)
        && args.until.as_ref().is_none_or(|until| *value("timestamp") < **until)
}

/// A field as text; nothing where there is none.
fn field<'a>(entry: &'a Value, key: &str) -> Cow<'a, str> {
    match entry.get(key) {
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(other) => Cow::Owned(other.to_string()),
    }
}

/// A decision in one line for people.
fn text(entry: &Value) -> String {
    let value = |key: &str| field(entry, key);
    let action = if entry["message"] == "message" { value("action") } else { "refused".into() };
    let mut text = format!(
        "{}  {}  {action:<10}  {}  {} -> {}  {}",
        value("timestamp"),
        value("id"),
        value("client"),
        value("from"),
        value("to"),
        value("reply")
    );
    if !value("found").is_empty() {
        text = text + "  [" + &value("found") + "]";
    }
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"timestamp":"2026-11-21T20:00:00Z","level":"INFO","message":"message","id":"abc","client":"192.0.2.1","from":"<a@b>","to":"c@d,e@f","action":"reject","found":"X in a\u001b[31m","reply":"554 5.7.1 no"}"#;

    fn meant(args: &[&str]) -> bool {
        let cli = <crate::cli::Cli as clap::Parser>::parse_from([&["sluice", "log"], args].concat());
        let crate::cli::Command::Log(args) = cli.command else { unreachable!("the command is log") };
        means(&args, &decision(LINE.as_bytes()).unwrap())
    }

    #[test]
    fn decisions_are_found_by_what_they_are() {
        for args in [
            &[][..],
            &["--id", "abc"],
            &["--address", "E@F"],
            &["--address", "192.0.2"],
            &["--action", "reject", "--found", "x in"],
            &["--since", "2026-11-21", "--until", "2026-11-22"],
        ] {
            assert!(meant(args), "{args:?}");
        }
        for args in [["--id", "ab"], ["--from", "c@d"], ["--action", "pass"], ["--until", "2026-11-21T20:00:00Z"]] {
            assert!(!meant(&args), "{args:?}");
        }
    }

    #[test]
    fn other_lines_are_passed_over_and_the_journals_are_opened() {
        assert!(decision(b"not json").is_none());
        assert!(decision(br#"{"message":"reloaded"}"#).is_none());
        let journal = serde_json::json!({ "MESSAGE": LINE, "_PID": "1" }).to_string();
        assert_eq!(decision(journal.as_bytes()), decision(LINE.as_bytes()));
    }

    #[test]
    fn a_terminal_is_told_nothing_to_obey() {
        let shown = text(&decision(LINE.as_bytes()).unwrap());
        assert!(shown.ends_with("554 5.7.1 no  [X in a?[31m]"), "{shown}");
    }

    #[test]
    fn a_line_that_is_too_long_does_not_fill_memory() {
        let long = [vec![b'x'; 3 << 20], b"\n{}\n".to_vec()].concat();
        let mut most = 0;
        each_line(&long[..], |line| {
            most = most.max(line.len());
            Ok(())
        })
        .unwrap();
        assert_eq!(most as u64, LINE_BYTES_MAX);
    }
}
