//! `sluice web`: pages and requests checked by the lists of E2Guardian or DansGuardian, and what is wrong with a configuration.
//!
//! Files are read whole, each within a bound; pages are fed to the filter piece by piece. A path of the configuration that begins
//! where packages install it is looked for in the folder that is given first, so that a copied configuration works where it lies.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;

use edge::net::{mirror, pem};
use jiff::tz::TimeZone;
use mailbox::accounts::Directory;
use rules::web::phrase::{Dialect, Outcome, Score};
use rules::web::{Decision, Filter, Group, Limits, Request, Response, Severity, Verdict};
use serde_json::{Value, json};

use crate::cli::{self, WebCa, WebCaCreate, WebCaExport, WebCheck, WebCommand, WebLint};
use crate::config::Config;
use crate::config::web::{main_file, moment, reader};
use crate::output::Failure;
use crate::process::confine::Reach;
use crate::process::privileges;

/// Bytes of a page that are looked at.
const PAGE_BYTES_MAX: u64 = 64 << 20;
/// Bytes of a page that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// Does what the command line says.
pub fn run(args: &cli::Web) -> Result<ExitCode, Failure> {
    match &args.command {
        WebCommand::Check(args) => check(args),
        WebCommand::Lint(args) => lint(args),
        WebCommand::Ca(WebCa::Create(args)) => create_authority(args),
        WebCommand::Ca(WebCa::Export(args)) => export_authority(args),
    }
}

fn create_authority(args: &WebCaCreate) -> Result<ExitCode, Failure> {
    let pem = mirror::create_authority(&args.name, args.days)?;
    let failed = |error: io::Error| format!("{}: {error}", args.file.display());
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&args.file).map_err(failed)?;
    file.write_all(pem.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    let file = args.file.display();
    println!("{file}: an authority for {} days, called {:?}", args.days, args.name);
    println!("Let the service read it: chown sluice: {file}");
    println!("For the clients: sluice web ca export {file}");
    Ok(ExitCode::SUCCESS)
}

fn export_authority(args: &WebCaExport) -> Result<ExitCode, Failure> {
    let certificate = pem::certificates(&args.file)?.into_iter().next();
    let certificate = certificate.ok_or_else(|| format!("{}: no certificate", args.file.display()))?;
    let text = std::fs::read_to_string(&args.file).map_err(|error| format!("{}: {error}", args.file.display()))?;
    let begin = text.find("-----BEGIN CERTIFICATE-----").unwrap_or_default();
    let length = text[begin..].find("-----END CERTIFICATE-----").map_or(0, |at| at + "-----END CERTIFICATE-----".len());
    let mut out = crate::output::out();
    match args.der {
        true => out.write_all(&certificate)?,
        false => writeln!(out, "{}", &text[begin..begin + length])?,
    }
    Ok(ExitCode::SUCCESS)
}

fn lint(args: &WebLint) -> Result<ExitCode, Failure> {
    let folder = args.folder.as_ref().or(args.config.as_ref()).ok_or("no folder is named")?;
    let filter = load(folder, args.dialect, Dialect::Sluice)?;
    let problems = filter.problems().iter();
    if args.json {
        let problems: Vec<Value> = problems
            .map(|problem| {
                json!({
                    "file": &*problem.place.file,
                    "line": problem.place.line,
                    "severity": if problem.severity == Severity::Error { "error" } else { "note" },
                    "reason": problem.reason,
                    "advice": problem.advice,
                })
            })
            .collect();
        println!("{:#}", json!({ "counts": counts(&filter), "errors": filter.errors(), "problems": problems }));
    } else {
        problems.for_each(|problem| println!("{problem}"));
        let census = filter.census();
        println!(
            "{} groups, {} lists with {} entries, {} phrases",
            filter.groups().len(),
            census.lists,
            census.entries,
            census.phrases
        );
        println!("{} phrase lines never occur as E2Guardian 5.3.5 reads them", census.revived);
        println!("{} errors", filter.errors());
    }
    Ok(ExitCode::from(u8::from(filter.errors() > 0)))
}

fn counts(filter: &Filter) -> Value {
    let census = filter.census();
    json!({
        "groups": filter.groups().len(),
        "lists": census.lists,
        "entries": census.entries,
        "phrases": census.phrases,
        "revived": census.revived,
    })
}

/// Loads the configuration of a folder, and gives up what is not needed for that.
fn load(folder: &Path, dialect: Option<Dialect>, default: Dialect) -> Result<Filter, Failure> {
    privileges::harden()?;
    Reach::reading().confine(&[])?;
    let named = match folder.extension().is_some_and(|extension| extension == "toml") {
        true => {
            let web = Config::read(folder)?.web;
            let named = web.and_then(|web| Some((web.config?, web.dialect)));
            Some(named.ok_or_else(|| format!("{}: no config in [web]", folder.display()))?)
        }
        false => None,
    };
    let (path, default) = named.as_ref().map_or((folder, default), |(path, dialect)| (path.as_path(), *dialect));
    let (main, dialect) = (main_file(path)?, dialect.unwrap_or(default));
    let limits = Limits::default();
    let mut read = reader(&main, limits);
    let main = main.to_str().ok_or("the folder's name is not UTF-8")?;
    Ok(Filter::load(main, dialect, limits, &mut read))
}

fn check(args: &WebCheck) -> Result<ExitCode, Failure> {
    let filter = load(&args.config, args.dialect, Dialect::E2guardian535)?;
    let errors = filter.errors();
    if errors > 0 {
        eprintln!("sluice: {errors} errors in the configuration: sluice web lint names them");
    }
    let group = group(&filter, args)?;
    let (mut is_blocked, mut has_failed) = (false, false);
    if let Some(url) = args.url.as_deref().filter(|_| args.files.is_empty()) {
        let decision = group.request(&request(args, url));
        is_blocked = decision.verdict == Verdict::Block;
        print(args.json, ("url", url), &decision, &Score::default());
    }
    for file in &args.files {
        match page(group, args, file) {
            Ok((decision, score)) => {
                is_blocked |= decision.verdict == Verdict::Block;
                print(args.json, ("file", &file.to_string_lossy()), &decision, &score);
            }
            Err(error) => {
                has_failed = true;
                eprintln!("sluice: {}: {error}", file.display());
            }
        }
    }
    Ok(ExitCode::from(if has_failed { 2 } else { u8::from(is_blocked) }))
}

/// The group by its number, or that of the client; which one that is goes to standard error.
fn group<'f>(filter: &'f Filter, args: &WebCheck) -> Result<&'f Group, Failure> {
    if args.user.is_none() && args.client.is_none() {
        let group = filter.group(args.group).ok_or_else(|| format!("there is no group {}", args.group))?;
        return Ok(group);
    }
    let account = args.user.as_deref().map(|name| account_group(&args.config, name)).transpose()?.flatten();
    let request = Request { group: account.as_deref(), ..request(args, "") };
    let group = filter.group_of(&request).ok_or("there is no group")?;
    eprintln!("sluice: group {} {}", group.number(), group.name());
    Ok(group)
}

/// The group that the accounts of a configuration of Sluice give a user.
fn account_group(config: &Path, user: &str) -> Result<Option<String>, Failure> {
    if config.extension().is_none_or(|extension| extension != "toml") {
        return Ok(None);
    }
    let Some(path) = Config::read(config)?.web.and_then(|web| web.accounts) else { return Ok(None) };
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Directory::parse_foreign(&text).0.named(user).and_then(|account| account.group.clone()))
}

/// A request for a URL, or for a tunnel to a host and a port.
fn request<'r>(args: &'r WebCheck, url: &'r str) -> Request<'r> {
    let method: &[u8] = if url.contains(':') && !url.contains('/') { b"CONNECT" } else { b"GET" };
    let (client, user) = (args.client, args.user.as_deref());
    Request { method, url: url.as_bytes(), client, user, now: moment(&TimeZone::system()), ..Request::default() }
}

/// Decides on a page as on one that a client has asked for.
fn page(group: &Group, args: &WebCheck, file: &Path) -> io::Result<(Decision, Score)> {
    let request = request(args, args.url.as_deref().unwrap_or(""));
    let response = Response { content_type: args.content_type.as_deref().map(str::as_bytes), file_names: [None; 2] };
    let mut decision = Decision { group: group.number(), ..Decision::default() };
    if args.url.is_some() {
        decision = group.request(&request);
    }
    decision = group.response(&request, &response, decision);
    let Some(mut page) = group.page(&response, &decision) else { return Ok((decision, Score::default())) };
    let mut source: Box<dyn Read> = match file.to_str() {
        Some("-") => Box::new(io::stdin()),
        _ => Box::new(File::open(file)?),
    };
    source = Box::new(source.take(PAGE_BYTES_MAX));
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match source.read(&mut piece)? {
            0 => break,
            count => page.feed(&piece[..count]),
        }
    }
    let score = page.finish(request.now);
    Ok((group.scored(&score, decision), score))
}

fn print(as_json: bool, (kind, name): (&str, &str), decision: &Decision, score: &Score) {
    let reason = decision.reason.as_ref().map_or("", |reason| &reason.log);
    if as_json {
        let phrases = score
            .found
            .iter()
            .map(|found| json!({ "phrase": found.phrase, "weight": found.weight, "count": found.count }));
        let mut value = json!({
            kind: name,
            "score": score.points,
            "verdict": decision.verdict.name(),
            "reason": reason,
            "categories": categories(decision, score),
            "phrases": phrases.collect::<Vec<_>>(),
        });
        if decision.is_partial {
            value["truncated"] = true.into();
        }
        return println!("{value}");
    }
    let categories = categories(decision, score).join(", ");
    let about = [reason, &categories].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
    let about = about.replace(char::is_control, "?");
    println!("{name}: {} {} {about}", decision.verdict.name(), score.points);
}

/// The categories of the list that decided, or of the phrases that count.
fn categories(decision: &Decision, score: &Score) -> Vec<String> {
    if !decision.categories.is_empty() || score.outcome != Outcome::Passed {
        return decision.categories.iter().map(ToString::to_string).collect();
    }
    score.categories.iter().map(|(name, _)| name.to_string()).collect()
}
