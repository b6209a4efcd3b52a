//! `sluice log`: searching the decisions in a log.
//!
//! Lines are those of the log in either format, as written, or as `journalctl -o cat` and `journalctl -o json` give them; other
//! lines are passed over. Exit status: 0 something was found, 1 nothing, 2 an error.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value};
use text::hazard::is_hazard;

use crate::cli::Log;
use crate::output::Failure;

/// The longest line that is looked at; what is longer is passed over.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Log messages about a mail, or about a recipient.
const DECISIONS: [&str; 7] = [
    "message",
    "message filtered",
    "message retrieved",
    "message appended",
    "message scored",
    "delivery",
    "recipient refused",
];

/// Prints the decisions that are meant.
pub fn run(args: &Log) -> Result<ExitCode, Failure> {
    let input: Box<dyn BufRead> = match &args.file {
        path if path == Path::new("-") => {
            if io::stdin().is_terminal() {
                return Err("name a file, or pass the log on: journalctl -u sluice -o cat | sluice log".into());
            }
            Box::new(io::stdin().lock())
        }
        path => {
            Box::new(BufReader::new(std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?))
        }
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (mut found, mut decisions, mut shortened) = (false, 0_u64, 0_u64);
    let outcome = each_line(input, |line| {
        // Whether there are decisions at all is known by then.
        if decisions > 0 && !may_mean(args, line) {
            return Ok(());
        }
        let Some(entry) = decision(line) else {
            shortened += u64::from(is_shortened(line));
            return Ok(());
        };
        decisions += 1;
        if !means(args, &entry) {
            return Ok(());
        }
        found = true;
        if args.json { writeln!(out, "{entry}") } else { writeln!(out, "{}", text(&entry)) }
    });
    match outcome.and_then(|()| out.flush()) {
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        outcome => outcome?,
    }
    if shortened > 0 {
        eprintln!("sluice: journalctl left out the text of {shortened} long lines: journalctl -o json --all");
    }
    if decisions == 0 {
        eprintln!("sluice: there is no line about a message in this log");
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
    if !line.trim_ascii_start().starts_with(b"{") {
        return written(std::str::from_utf8(line).ok()?);
    }
    let entry: Value = serde_json::from_slice(line).ok()?;
    let entry = match entry.get("MESSAGE").and_then(Value::as_str) {
        Some(inner) if inner.starts_with('{') => serde_json::from_str(inner).ok()?,
        Some(inner) => return written(inner),
        None => entry,
    };
    DECISIONS.contains(&entry.get("message")?.as_str()?).then_some(entry)
}

/// Whether journalctl has left out the line, since it is long: without `--all` that is from 4,096 bytes on.
fn is_shortened(line: &[u8]) -> bool {
    serde_json::from_slice::<Value>(line).is_ok_and(|entry| entry.get("MESSAGE").is_some_and(Value::is_null))
}

/// The decision in a line for people: `TIME LEVEL MESSAGE KEY=VALUE ...`, values bare or in quotes.
fn written(line: &str) -> Option<Value> {
    let (time, rest) = line.trim_end().split_once(' ')?;
    let (level, rest) = rest.trim_start().split_once(' ')?;
    let said = DECISIONS.iter().rev().find(|said| {
        let behind = rest.strip_prefix(**said);
        behind.is_some_and(|behind| behind.starts_with(" id=") || **said == "delivery" && behind.starts_with(' '))
    })?;
    let mut entry = Map::new();
    for (key, value) in [("timestamp", time), ("level", level), ("message", said)] {
        entry.insert(key.into(), value.into());
    }
    let mut rest = rest.get(said.len()..)?.trim_start();
    while !rest.is_empty() {
        let (key, behind) = rest.split_once('=')?;
        let (value, behind) = value(behind)?;
        entry.insert(key.into(), value);
        rest = behind.trim_start();
    }
    Some(Value::Object(entry))
}

/// A value, and what follows it.
fn value(text: &str) -> Option<(Value, &str)> {
    if !text.starts_with('"') {
        let (bare, rest) = text.split_once(' ').unwrap_or((text, ""));
        let number = bare.parse::<i64>().map(Value::from);
        let plain = number.or_else(|_| bare.parse::<bool>().map(Value::from));
        return Some((plain.unwrap_or_else(|_| bare.into()), rest));
    }
    let mut inner = String::new();
    let mut rest = text.get(1..)?;
    loop {
        let (plain, behind) = rest.split_at(rest.find(['"', '\\'])?);
        inner.push_str(plain);
        let mut chars = behind.chars();
        if chars.next()? == '"' {
            return Some((inner.into(), chars.as_str()));
        }
        inner.push(match chars.next()? {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '0' => '\0',
            // `\u{1b}`: as Rust writes it.
            'u' => {
                let (digits, behind) = chars.as_str().strip_prefix('{')?.split_once('}')?;
                chars = behind.chars();
                u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)?
            }
            other => other,
        });
        rest = chars.as_str();
    }
}

/// Whether a line may be meant, as far as its bytes say: one that does not have in it what is wanted need not be parsed.
fn may_mean(args: &Log, line: &[u8]) -> bool {
    let wanted = [&args.id, &args.address, &args.from, &args.to, &args.found, &args.action, &args.message_id]
        .into_iter()
        .flatten();
    // What no format writes in any other way.
    let is_plain = |text: &&String| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@.-_<> ".contains(&byte));
    let mut wanted = wanted.filter(is_plain).map(|text| text.to_ascii_lowercase()).peekable();
    if wanted.peek().is_none() || !line.is_ascii() {
        return true;
    }
    let line = String::from_utf8_lossy(line).to_ascii_lowercase();
    wanted.all(|text| line.contains(&text))
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
        && holds(&args.message_id, &["message_id"])
        && (!args.spam || value("spam") == "true")
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
    let action = match entry["message"].as_str() {
        Some("recipient refused") => "refused".into(),
        Some("delivery") => "delivery".into(),
        _ => value("action"),
    };
    let mut text = format!(
        "{}  {}  {action:<10}  {}  {} -> {}  {}",
        value("timestamp"),
        value("id"),
        value("client"),
        value("from"),
        value("to"),
        value("reply")
    );
    if !value("score").is_empty() {
        text = text + "  score " + &value("score") + if value("spam") == "true" { " spam" } else { "" };
    }
    if !value("found").is_empty() {
        text = text + "  [" + &value("found") + "]";
    }
    text.chars().map(|c| if is_hazard(c) { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"timestamp":"2026-11-21T20:00:00Z","level":"INFO","message":"message","id":"abc","client":"192.0.2.1","from":"<a@b>","to":"c@d,e@f","action":"reject","message_id":"<n1@b>","score":"7.5","spam":true,"found":"X in a\u001b[31m","reply":"554 5.7.1 no"}"#;

    fn meant(args: &[&str]) -> bool {
        let cli = <crate::cli::Cli as clap::Parser>::parse_from([&["sluice", "log"], args].concat());
        let crate::cli::Command::Log(args) = cli.command else { unreachable!("the command is log") };
        let meant = means(&args, &decision(LINE.as_bytes()).unwrap());
        assert!(may_mean(&args, LINE.as_bytes()) || !meant);
        meant
    }

    #[test]
    fn decisions_are_found_by_what_they_are() {
        for args in [
            &[][..],
            &["--id", "abc"],
            &["--address", "E@F"],
            &["--address", "192.0.2"],
            &["--spam"],
            &["--message-id", "<N1@b>", "--spam"],
            &["--action", "reject", "--found", "x in"],
            &["--since", "2026-11-21", "--until", "2026-11-22"],
        ] {
            assert!(meant(args), "{args:?}");
        }
        for args in [
            ["--id", "ab"],
            ["--from", "c@d"],
            ["--message-id", "n2"],
            ["--action", "pass"],
            ["--until", "2026-11-21T20:00:00Z"],
        ] {
            assert!(!meant(&args), "{args:?}");
        }
    }

    #[test]
    fn a_line_without_what_is_wanted_is_not_parsed() {
        let may = |args: &[&str], line: &str| {
            let cli = <crate::cli::Cli as clap::Parser>::parse_from([&["sluice", "log"], args].concat());
            let crate::cli::Command::Log(args) = cli.command else { unreachable!("the command is log") };
            may_mean(&args, line.as_bytes())
        };
        assert!(may(&["--id", "abc"], LINE) && !may(&["--id", "abd"], LINE));
        assert!(
            may(&["--address", "E@F", "--action", "reject"], LINE)
                && !may(&["--address", "E@F", "--action", "tag"], LINE)
        );
        assert!(may(&["--found", "a\"b"], LINE), "quotes are written in several ways");
        assert!(may(&["--from", "k"], "\u{212a}"), "which is a k to those who do not know letters");
        assert!(may(&[], "") && may(&["--since", "2026"], ""));
    }

    #[test]
    fn other_lines_are_passed_over_and_the_journals_are_opened() {
        assert!(decision(b"not json").is_none());
        assert!(decision(br#"{"message":"reloaded"}"#).is_none());
        let journal = serde_json::json!({ "MESSAGE": LINE, "_PID": "1" }).to_string();
        assert_eq!(decision(journal.as_bytes()), decision(LINE.as_bytes()));
        assert!(!is_shortened(journal.as_bytes()) && !is_shortened(b"not json"));
        assert!(is_shortened(br#"{"MESSAGE":null,"SLUICE_ID":"abc"}"#));
    }

    #[test]
    fn lines_for_people_are_read_too() {
        let line = r#"2026-11-21T20:00:00Z  INFO message id="abc" client=192.0.2.1 from="<a b@c> to=x" to="c@d,e@f" bytes=12 streamed=false found="X in a\"\u{1b}[31m" reply="554 5.7.1 no""#;
        let entry = decision(line.as_bytes()).unwrap();
        assert_eq!(entry["timestamp"], "2026-11-21T20:00:00Z");
        assert_eq!(
            (&entry["id"], &entry["from"], &entry["to"]),
            (&"abc".into(), &"<a b@c> to=x".into(), &"c@d,e@f".into())
        );
        assert_eq!((&entry["bytes"], &entry["streamed"]), (&12.into(), &false.into()));
        assert_eq!(entry["found"], "X in a\"\u{1b}[31m");
        let milter = "2026-11-21T20:00:00Z  INFO message filtered id=\"abc\" action=\"pass\"";
        assert_eq!(decision(milter.as_bytes()).unwrap()["message"], "message filtered");
        let journal = serde_json::json!({ "MESSAGE": line, "_PID": "1" }).to_string();
        assert_eq!(decision(journal.as_bytes()), Some(entry));
        let line = r#"2026-11-21T20:00:00Z  INFO delivery message_id="<n@b>" door="lmtp" from="a@b" to="c@d""#;
        assert_eq!(decision(line.as_bytes()).unwrap()["message_id"], "<n@b>");
        for other in
            ["2026 INFO reloaded generation=2", "2026 INFO message of mine", "message id=1", "2026 INFO message id=\"x"]
        {
            assert!(decision(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn a_terminal_is_told_nothing_to_obey() {
        let shown = text(&decision(LINE.as_bytes()).unwrap());
        assert!(shown.ends_with("554 5.7.1 no  score 7.5 spam  [X in a?[31m]"), "{shown}");
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
