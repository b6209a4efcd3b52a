//! `sluice explain`: what the engine saw in a file.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use edge::inspector::examine::{self, Examined, Look};
use flow::ObjectReport;
use inspect::Engine;
use jail::Local;
use stream::{Class, Coding, Limits};

use crate::cli::Explain;
use crate::database;
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::privileges;

/// Prints the tree of objects, or one JSON object a line.
pub fn run(args: &Explain) -> Result<ExitCode, Failure> {
    let loaded = database::open(&args.database)?;
    privileges::harden()?;
    Reach::reading().confine(&[])?;
    let engine = Arc::new(Engine { database: loaded.database, limits: Limits::default() });
    let inspector = Local::new(engine, None);
    let source = examine::open(&args.file).map_err(|error| format!("{}: {error}", args.file.display()))?;
    let look = Look { explain: true, name: examine::name(&args.file), ..Look::default() };
    let examined = examine::examine(&inspector, &look, source, |_| ())
        .map_err(|error| format!("{}: {error}", args.file.display()))?;
    if args.json {
        for object in &examined.objects {
            println!("{}", json_line(&args.file, object));
        }
    } else {
        print!("{}", tree(&args.file, &examined, std::io::stdout().is_terminal()));
    }
    let matched = examined.verdict.findings.iter().any(|spotted| spotted.finding.class == Class::Match);
    Ok(ExitCode::from(u8::from(matched)))
}

fn json_line(file: &Path, object: &ObjectReport) -> String {
    let findings = object.findings.iter().map(
        |finding| serde_json::json!({ "name": finding.name, "class": finding.class.name(), "offset": finding.offset }),
    );
    let stages = object.stages.iter().map(|time| (time.stage.to_string(), (time.nanos / 1_000).into()));
    let names = std::iter::once(file.display().to_string()).chain(object.path.iter().map(|name| name.to_string()));
    serde_json::json!({
        "id": object.id,
        "parent": object.parent,
        "path": names.collect::<Vec<_>>(),
        "kind": object.kind.name(),
        "name": object.name,
        "type": object.file_type.map(|file_type| file_type.name()),
        "media_type": object.media_type,
        "coding": object.coding.name(),
        "size": object.bytes,
        "sha256": object.sha256.map(hex),
        "second_reading": object.second_reading,
        "findings": findings.collect::<Vec<_>>(),
        "microseconds": stages.collect::<serde_json::Map<_, _>>(),
    })
    .to_string()
}

fn tree(file: &Path, examined: &Examined, colour: bool) -> String {
    let mut text = String::new();
    for object in &examined.objects {
        let depth = depth(object, &examined.objects);
        let name = match (&object.name, object.id) {
            (_, 0) => file.display().to_string(),
            (Some(name), _) => name.escape_debug().to_string(),
            (None, _) => format!("({})", object.kind.name()),
        };
        let _ = write!(text, "{:indent$}{name}", "", indent = 2 * depth);
        describe(&mut text, object);
        text.push('\n');
        for finding in &object.findings {
            let (on, off) = if colour { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
            let (name, class, offset) = (&finding.name, finding.class.name(), finding.offset);
            let _ = writeln!(text, "{:indent$}{on}! {name}{off} ({class}, at {offset})", "", indent = 2 * depth + 2);
        }
    }
    let verdict = &examined.verdict;
    let found = verdict.findings.len() as u32 + verdict.more_findings;
    let _ = writeln!(
        text,
        "\n{}, {} bytes read, {} bytes of content, {}: {}",
        counted(verdict.objects, "object"),
        examined.bytes,
        verdict.bytes,
        counted(found, "finding"),
        verdict.action.name()
    );
    text
}

/// A number and its noun.
fn counted(count: u32, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn describe(text: &mut String, object: &ObjectReport) {
    if let Some(file_type) = object.file_type {
        let _ = write!(text, "  {}", file_type.name());
    }
    if let Some(media_type) = &object.media_type {
        let _ = write!(text, " [{}]", media_type.escape_debug());
    }
    if object.coding != Coding::Identity {
        let _ = write!(text, " {}", object.coding.name());
    }
    if object.file_type.is_some() {
        let _ = write!(text, "  {} bytes", object.bytes);
    }
    if object.second_reading {
        text.push_str("  (second reading)");
    }
    for (index, time) in object.stages.iter().enumerate() {
        let lead = if index == 0 { "  " } else { ", " };
        let _ = write!(text, "{lead}{} {:.1} ms", time.stage, time.nanos as f64 / 1e6);
    }
}

/// How many objects this one lies in. Objects come after those that they lie in.
fn depth(object: &ObjectReport, objects: &[ObjectReport]) -> usize {
    let mut depth = 0;
    let mut parent = object.parent;
    while let Some(id) = parent {
        depth += 1;
        let found = objects.binary_search_by_key(&id, |object| object.id);
        parent = found.ok().and_then(|index| objects[index].parent);
    }
    depth
}

fn hex(hash: [u8; 32]) -> String {
    hash.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
