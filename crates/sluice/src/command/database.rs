//! `sluice database`: what signature files hold and how it is understood.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use edge::inspector::examine::{self, Look};
use inspect::Engine;
use jail::Local;
use scan::{Builder, Census, Container};
use serde_json::json;
use stream::{Class, Limits};

use crate::cli::{Database, DatabaseCommand};
use crate::config::Config;
use crate::database;
use crate::database::bar::Bar;
use crate::database::signed::Checker;
use crate::database::{Choice, Wanted};
use crate::output::Failure;

/// Does what the command line says.
pub fn run(args: &Database) -> Result<ExitCode, Failure> {
    let paint = Paint::new(args.json);
    match &args.command {
        DatabaseCommand::Compile { paths, config, cache, certificates, pua } => {
            let mut wanted = match config {
                Some(config) => Config::read(config)?.database.wanted(cache.as_ref()),
                None => {
                    let cache = cache.clone().or_else(database::usual_cache);
                    let choice = Choice { builtin: true, ..Choice::default() };
                    {
                        let certificates = certificates.clone();
                        Wanted { paths: paths.clone(), choice, cache, certificates, signatures_required: false }
                    }
                }
            };
            wanted.choose(pua);
            compile(&wanted, args.json, paint)
        }
        DatabaseCommand::Worker => Ok(database::worker::run()),
        DatabaseCommand::Info { paths, config, refused } => {
            info(&named(paths, config.as_deref())?, *refused, args.json, paint)
        }
        DatabaseCommand::Find { name, paths, config } => {
            find(name, &named(paths, config.as_deref())?, args.json, paint)
        }
        DatabaseCommand::Test { signature, file } => test(signature, file, args.json, paint),
        DatabaseCommand::Verify { paths, config, certificates } => {
            let paths = named(paths, config.as_deref())?;
            verify(&paths, &Checker::open(certificates.as_deref())?, args.json, paint)
        }
    }
}

/// The paths of the command line, or else of a configuration.
fn named(paths: &[PathBuf], config: Option<&Path>) -> Result<Vec<PathBuf>, Failure> {
    Ok(match config {
        Some(config) if paths.is_empty() => Config::read(config)?.database.paths,
        _ => paths.to_vec(),
    })
}

/// Colours, on a terminal.
#[derive(Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn new(json: bool) -> Paint {
        Paint(!json && std::io::stdout().is_terminal())
    }

    fn in_colour(self, code: &str, text: impl std::fmt::Display) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    fn bold(self, text: impl std::fmt::Display) -> String {
        self.in_colour("1", text)
    }

    fn red(self, text: impl std::fmt::Display) -> String {
        self.in_colour("1;31", text)
    }

    fn green(self, text: impl std::fmt::Display) -> String {
        self.in_colour("32", text)
    }

    fn yellow(self, text: impl std::fmt::Display) -> String {
        self.in_colour("33", text)
    }
}

fn compile(wanted: &Wanted, json: bool, paint: Paint) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let bar = Bar::new();
    let (loaded, done) = wanted.compile(&mut |done, total| bar.set(done, total))?;
    bar.clear();
    let file = wanted.file().unwrap_or_default();
    let bytes = std::fs::metadata(&file)?.len();
    let seconds = started.elapsed().as_secs_f64();
    let confined = done.as_ref().map(|done| done.confined.as_str());
    if json {
        print(json!({
            "file": file.display().to_string(), "bytes": bytes, "signatures": loaded.signatures,
            "refused": loaded.refused.len(), "files": loaded.files, "compiled": done.is_some(),
            "confined": confined, "seconds": seconds,
        }));
    } else {
        let what = if done.is_some() { "compiled" } else { "up to date" };
        print(format_args!("{}: {}, {loaded}, {bytes} bytes", paint.bold(file.display()), paint.green(what)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a line; a closed pipe is the reader's way to say that it has seen enough.
fn print(line: impl std::fmt::Display) {
    println!("{line}");
}

fn info(paths: &[PathBuf], refused: bool, json: bool, paint: Paint) -> Result<ExitCode, Failure> {
    let loaded = database::load(paths, &Choice::default(), &Checker::default())?;
    let census = loaded.database.census();
    if json {
        print(census_json(census, loaded.files, loaded.database.pattern_bytes(), refused));
        return Ok(ExitCode::SUCCESS);
    }
    for container in &census.containers {
        print(describe(container, paint));
    }
    print(format_args!("{} signatures are looked for, from {} files:", paint.bold(census.signatures()), loaded.files));
    print(format_args!("{:>10}  exact on the stream, told as soon as they match", census.exact));
    print(format_args!("{:>10}  exact, decided at the end of an object", census.at_end));
    for (bound, count) in &census.bounded {
        print(format_args!("{count:>10}  exact within a bound: {}", bound.name()));
    }
    for (entry, count) in &census.entries {
        print(format_args!("{count:>10}  {}", entry.name()));
    }
    for (count, what) in [
        (census.allowed, "entries of allow lists"),
        (census.ignored, "left out: ignore lists name them"),
        (census.other_engine, "left out: for other versions of the engine"),
        (census.unwanted, "left out: potentially unwanted applications"),
    ] {
        print(format_args!("{count:>10}  {what}"));
    }
    for (reason, count) in census.refusals() {
        print(format_args!("{:>10}  {}: {reason}", count, paint.yellow("not loaded")));
    }
    for one in census.refused.iter().filter(|_| refused) {
        print(format_args!("{}: {}", paint.bold(&one.name), one.reason));
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(container: &Container, paint: Paint) -> String {
    let Container { file, version, time, signatures, level, builder, verified, members, .. } = container;
    format!(
        "{}: version {version} of {time} by {builder}, level {level}, {signatures} signatures announced; {}, {members} \
         members as listed",
        paint.bold(file),
        paint.green(verified.name())
    )
}

fn census_json(census: &Census, files: usize, pattern_bytes: usize, refused: bool) -> serde_json::Value {
    let bounded: serde_json::Map<_, _> =
        census.bounded.iter().map(|(bound, count)| (bound.name().to_owned(), (*count).into())).collect();
    let entries: serde_json::Map<_, _> =
        census.entries.iter().map(|(entry, count)| (entry.name().to_owned(), (*count).into())).collect();
    let mut value = json!({
        "files": files,
        "signatures": census.signatures(),
        "exact": census.exact,
        "at_end": census.at_end,
        "bounded": bounded,
        "allowed": census.allowed,
        "entries": entries,
        "ignored": census.ignored,
        "other_engine": census.other_engine,
        "unwanted": census.unwanted,
        "refused": census.refusals(),
        "pattern_bytes": pattern_bytes,
        "containers": census.containers.iter().map(container_json).collect::<Vec<_>>(),
    });
    if refused {
        let all = census.refused.iter().map(|one| json!({ "name": one.name, "reason": one.reason }));
        value["refused_signatures"] = all.collect();
    }
    value
}

fn container_json(container: &Container) -> serde_json::Value {
    json!({
        "file": container.file,
        "kind": container.kind.name(),
        "version": container.version,
        "time": container.time,
        "builder": container.builder,
        "level": container.level,
        "signatures": container.signatures,
        "verified": container.verified.name(),
        "members": container.members,
    })
}

fn find(name: &str, paths: &[PathBuf], json: bool, paint: Paint) -> Result<ExitCode, Failure> {
    let wanted = name.to_lowercase();
    let mut found = false;
    for path in database::files(paths)? {
        let bytes = read(&path)?;
        let file = path.display().to_string();
        scan::each_line(&file, &bytes, &mut |line| {
            if !line.name.to_lowercase().contains(&wanted) {
                return;
            }
            found = true;
            let member = line.member.map(|member| format!(" » {member}")).unwrap_or_default();
            let text = printable(line.text);
            match json {
                true => print(json!({
                    "file": file, "member": line.member, "line": line.number, "name": line.name, "text": line.text
                })),
                false => print(format_args!("{}:{}: {text}", paint.bold(format!("{file}{member}")), line.number)),
            }
        })?;
    }
    Ok(ExitCode::from(u8::from(!found)))
}

/// Text for a terminal: control characters become `?`.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn test(signature: &str, file: &Path, json: bool, paint: Paint) -> Result<ExitCode, Failure> {
    let mut builder = Builder::new().dated(database::now()).potentially_unwanted(scan::Unwanted::All);
    let path = Path::new(signature);
    if scan::is_database(signature) && path.is_file() {
        builder.add(signature, &read(path)?)?;
    } else {
        builder.add_official(kind_of(signature), signature.as_bytes())?;
    }
    let database = builder.build().dated(database::now());
    for one in &database.census().refused {
        eprintln!("sluice: {} is not loaded: {}", one.name, one.reason);
    }
    if database.census().signatures() == 0 {
        return Err("no signature to test".into());
    }
    let engine = Arc::new(Engine { database: Arc::new(database), limits: Limits::default() });
    let name = |error| format!("{}: {error}", file.display());
    let source = examine::open(file).map_err(name)?;
    let examined = examine::examine(&Local::new(engine, None), &Look::default(), source, |_| ()).map_err(name)?;
    let mut found = false;
    for spotted in &examined.verdict.findings {
        let finding = &spotted.finding;
        let matched = finding.class == Class::Match;
        found |= matched;
        let place: Vec<String> = spotted.path.iter().map(|name| printable(name)).collect();
        match json {
            true => print(json!({
                "name": finding.name, "class": finding.class.name(), "path": place, "offset": finding.offset
            })),
            false if matched => {
                let place: String = place.iter().map(|name| format!(" » {name}")).collect();
                print(format_args!("{}{place}: {} at {}", file.display(), paint.red(&finding.name), finding.offset));
            }
            false => print(format_args!("{}: {} ({})", file.display(), finding.name, finding.class.name())),
        }
    }
    if !found && !json {
        print(format_args!("{}: not found", file.display()));
    }
    Ok(ExitCode::from(u8::from(found)))
}

/// The kind of database that a line is of, told by how it looks.
fn kind_of(line: &str) -> &'static str {
    let is_digest =
        |field: &str| matches!(field.len(), 32 | 40 | 64) && field.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut fields = line.split(':');
    let (first, second) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    match () {
        () if line.starts_with("rule ") => "line.yar",
        () if line.split(';').count() >= 11 && matches!(line.split(';').nth(1), Some("0" | "1")) => "line.crb",
        () if fields.clone().count() >= 8 => "line.cdb",
        () if line.contains(';') => "line.ldb",
        () if is_digest(first) => "line.hsb",
        () if is_digest(second) => "line.msb",
        () if line.contains(':') => "line.ndb",
        () => "line.db",
    }
}

fn verify(paths: &[PathBuf], checker: &Checker, json: bool, paint: Paint) -> Result<ExitCode, Failure> {
    let mut failed = false;
    for path in database::files(paths)? {
        let file = path.display().to_string();
        let mut builder = Builder::new().potentially_unwanted(scan::Unwanted::All);
        let outcome = read(&path).and_then(|bytes| {
            let signer = checker.check_bytes(&path, &bytes)?;
            builder.add(&file, &bytes)?;
            Ok(signer)
        });
        let database = builder.build();
        let census = database.census();
        let (signer, error) = match outcome {
            Ok(signer) => (signer, None),
            Err(error) => (None, Some(error.to_string())),
        };
        failed |= error.is_some();
        let verified = census.containers.first().map(|container| container.verified.name());
        let (signatures, refused) = (census.signatures(), census.refused.len());
        match (json, &error) {
            (true, _) => print(json!({
                "file": file, "ok": error.is_none(), "error": error, "verified": verified, "signer": signer,
                "signatures": signatures, "refused": refused,
            })),
            (false, Some(error)) => print(format_args!("{}", paint.red(error))),
            (false, None) => print(format_args!(
                "{}: {} ({}{}), {signatures} signatures, {refused} not loaded",
                paint.bold(&file),
                paint.green("OK"),
                verified.unwrap_or("text"),
                signer.map(|name| format!(", signed beside by {}", printable(&name))).unwrap_or_default()
            )),
        }
    }
    Ok(if failed { ExitCode::from(2) } else { ExitCode::SUCCESS })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    Ok(std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_line_is_told_by_how_it_looks() {
        for (line, kind) in [
            ("A;Target:0;0;6162", "line.ldb"),
            ("900150983cd24fb0d6963f7d28e17f72:3:Abc", "line.hsb"),
            ("3:900150983cd24fb0d6963f7d28e17f72:Abc", "line.msb"),
            ("A:0:*:6162", "line.ndb"),
            ("rule A { strings: $a = \"x;y:z\" condition: $a }", "line.yar"),
            ("A:CL_TYPE_ZIP:*:x:*:*:*:*:*:*", "line.cdb"),
            ("A=6162", "line.db"),
            (&format!("A;0;{0};{0};{1}01;010001;1;1;1;0;x", "a".repeat(40), "c".repeat(254)), "line.crb"),
        ] {
            assert_eq!(kind_of(line), kind);
            Builder::new().add(kind, line.as_bytes()).expect(line);
        }
    }
}
