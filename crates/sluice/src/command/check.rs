//! `sluice check`: whether a configuration would be taken, and what it loads.

mod first_start;
mod modes;
mod nobody;
mod web;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use edge::message::notice::Notices;
use edge::net::identity::Identities;
use edge::net::opener::Opener;
use edge::recipients::directory::Directory;
use edge::settings::{Listener, Parties};
use edge::trust::access::Access;

use lookup::{Error, Key};
use mailbox::accounts::Accounts;
use rules::spam::{Severity, run::Syntax};
use serde_json::Value;

use crate::cli::Check;
use crate::config::{Config, Isolation, Outward, Source};
use crate::config::{credentials, rule_files};
use crate::database;
use crate::lookups::Lookups;
use crate::output::Failure;
use crate::process::confine::{Confined, Reach};
use crate::process::privileges::{self, Account};
use crate::resolver::signed::Signed;
use crate::serve::web::WebLists;
use crate::store::relay;

/// Reads the configuration and the signatures, and says what stands there.
pub fn run(args: &Check) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    let isolation = if args.quiet { String::new() } else { isolation() };
    let confined = Reach::reading().connect().clone().confine(&[])?;
    let path = args.file.as_ref().unwrap_or(&args.config);
    let config = Config::read(path)?;
    if args.from.is_some() || args.to.is_some() || args.client.is_some() {
        config.listeners.iter().for_each(|listener| explain(&config, listener, args));
        return Ok(ExitCode::SUCCESS);
    }
    let mut said = parts(&config, args).map_err(|error| located(path, error.to_string()))?;
    let entries = Source::read(path)?.entries()?;
    let warnings =
        config.warnings().into_iter().chain(modes::warnings(&config)).chain(modes::inline_passwords(&entries));
    warnings.for_each(|warning| eprintln!("sluice: warning: {warning}"));
    said.push(landlock(confined, config.confine));
    said.push(match config.isolation {
        Isolation::None => "inspections would not be isolated: isolation = \"none\"".into(),
        Isolation::Process => format!("inspections would run in processes of their own: {isolation}"),
    });
    said.push(jail::instructions::describe());
    let said: &[String] = if args.quiet { &[] } else { &said };
    said.iter().for_each(|line| println!("{line}"));
    let file = path.display();
    if !config.serves() {
        return Err(
            format!("{file}: no [[listener]] and no address in [clamd] or [store], nothing would be served").into()
        );
    }
    let spam_errors = spam(&config, args.quiet)?;
    if spam_errors > 0 {
        return Err(format!("{file}: {spam_errors} errors in the rules of spam").into());
    }
    let intrusion_errors = intrusion(&config, args.quiet)?;
    if intrusion_errors > 0 {
        return Err(format!("{file}: {intrusion_errors} intrusion rules do not load").into());
    }
    if !args.quiet {
        println!("{file}: OK");
    }
    Ok(ExitCode::SUCCESS)
}

/// An error of a file that the configuration names, with the place where it is named.
fn located(config: &Path, error: String) -> String {
    let Ok(source) = Source::read(config) else { return error };
    let entries = source.entries().unwrap_or_default();
    let folder = config.parent().unwrap_or(Path::new("."));
    let is_of = |text: &str| {
        let rest = error.strip_prefix(&*folder.join(text).to_string_lossy()).or_else(|| error.strip_prefix(text));
        !text.is_empty() && rest.is_some_and(|rest| rest.starts_with([':', ' ', '/']))
    };
    let named = entries.iter().find(|entry| match &entry.value {
        Value::String(text) => is_of(text),
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).any(is_of),
        _ => false,
    });
    match named.map_or_else(|| source.place_of(&error), |entry| entry.place.clone()) {
        // It says itself where it is.
        place if place == source.name() => error,
        place => format!("{place}: {error}"),
    }
}

/// Loads the parts of the configuration, and returns lines that describe them.
fn parts(config: &Config, args: &Check) -> Result<Vec<String>, Failure> {
    let mut said = first_start::said(config);
    let tls = first_start::without_credentials(&config.tls)?;
    let identities = Identities::load(&tls)?;
    if config.opens_tls() && tls.signing_authority.is_some() {
        Opener::new(&tls)?;
    }
    Access::load(&config.trust)?;
    let checker = config.database.checker()?;
    let lookups = Lookups::start(config, None)?;
    ask(&lookups, !config.absent.is_empty(), &mut said)?;
    let recipients = Directory::load(&config.recipients, &lookups.recipients(), &tls, None)?;
    for listener in &config.listeners {
        said.push(format!("{} on {} to {}", listener.protocol().name(), listener.place.address, listener.hop.forward));
    }
    said.extend(config.clamd.addresses.iter().map(|address| format!("clamd on {address}")));
    // It may be made when the package is installed.
    if let Some(Err(error)) = config.user.as_ref().map(|user| Account::named(user, config.group.as_deref())) {
        eprintln!("sluice: warning: user: {error}, and serve would not start");
    }
    Notices::load(&config.notices, &config.hostname, None)?;
    WebLists::load(config)?;
    store(config, &mut said)?;
    web::check(config, &mut said)?;
    said.extend(identities.all().iter().map(|identity| identity.to_string()));
    identities.warnings().for_each(|warning| eprintln!("sluice: warning: {warning}"));
    let lists = recipients.lists();
    said.extend(lists.map(|list| format!("{} recipients in {} {}", list.len(), list.kind.name(), list.path.display())));
    let files = database::files(&config.database.paths)?;
    if !args.no_signatures {
        said.push(database::load(&config.database.paths, &config.database.choice(), &checker)?.to_string());
    }
    if files.is_empty() {
        eprintln!("sluice: warning: {}", database::NO_SIGNATURES);
    }
    Ok(said)
}

/// Asks each table for somebody whom nobody is. One that is away may be there when it is needed; one that refuses will not, unless
/// its password is a credential that is not here.
fn ask(lookups: &Lookups, lacks_credentials: bool, said: &mut Vec<String>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let nobody = Key::new("sluice-check", Some("sluice.invalid")).ok_or("a key")?;
    for table in lookups.all() {
        let (kind, name) = (table.kind(), &table.settings().name);
        match runtime.block_on(table.find(&nobody)) {
            Ok(rows) if rows.is_empty() => said.push(format!("lookup {name:?} answers ({kind})")),
            Ok(_) => eprintln!("sluice: warning: lookup {name:?}: it has every recipient, even {nobody}"),
            Err(Error::Away(error)) => eprintln!("sluice: warning: lookup {name:?} cannot be asked now: {error}"),
            Err(Error::Refused(error)) if lacks_credentials => {
                eprintln!("sluice: warning: lookup {name:?} cannot be asked without its credentials: {error}");
            }
            Err(Error::Refused(error)) => return Err(format!("lookup {name:?}: {error}").into()),
        }
    }
    Ok(())
}

/// Says what the store would be, and whether its accounts can be read.
fn store(config: &Config, said: &mut Vec<String>) -> Result<(), Failure> {
    let Some(store) = &config.store else { return Ok(()) };
    for (door, address) in store.doors() {
        said.push(format!("{} on {address} from the store", door.name().to_uppercase()));
    }
    let (volume, accounts) = (store.volume(), store.accounts());
    let state = match volume.try_exists() {
        Ok(true) => "which is there",
        Ok(false) => "which would be made",
        Err(_) => "which this user cannot look at",
    };
    said.push(format!("store {}, {state}", volume.display()));
    if store.relay == Some(Outward::World) && store.queue.dane {
        validation(config)?;
    }
    if let (Some(way), Some(logins)) = (&store.relay, &store.queue.logins)
        && !credentials::is_elsewhere(logins)
    {
        let warnings = relay::warnings(way, &store.queue, &config.tls)?;
        warnings.iter().for_each(|warning| eprintln!("sluice: warning: {warning}"));
        said.push(format!("logins at next hops in {}", logins.display()));
    }
    match accounts.try_exists() {
        Err(_) => said.push(format!("accounts in {}, which this user cannot look at", accounts.display())),
        Ok(true) => {
            let read = Accounts::open(&accounts).map_err(|error| format!("{}: {error}", accounts.display()))?;
            let directory = read.directory();
            said.push(format!("{} accounts in {}", directory.accounts().count(), accounts.display()));
            let warnings = nobody::warnings(config, &directory);
            warnings.iter().for_each(|warning| eprintln!("sluice: warning: {warning}"));
        }
        Ok(false) if store.lookups.is_empty() => {
            eprintln!("sluice: warning: {}: nobody has an account yet", accounts.display());
        }
        Ok(false) => {}
    }
    Ok(())
}

/// Reads the rules that mails would be scored with, and says what is wrong in them; how much that is.
fn spam(config: &Config, quiet: bool) -> Result<u64, Failure> {
    let Some(folders) = config.rule_folders() else { return Ok(0) };
    if folders.is_empty() {
        eprintln!("sluice: warning: spam: SpamAssassin's rules are not here, mails would not be scored");
        return Ok(0);
    }
    let (_, rules) = rule_files::collect(&folders, config.rule_purpose(), &Syntax)?;
    let names: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
    if !quiet {
        println!("{} rules of spam in {}", rules.names().len(), names.join(", "));
    }
    let errors = rules.problems().iter().filter(|problem| problem.severity == Severity::Error);
    errors.for_each(|error| eprintln!("sluice: {error}"));
    Ok(rules.errors())
}

/// Reads the intrusion rules, and says what is wrong in them; how much that is.
fn intrusion(config: &Config, quiet: bool) -> Result<u64, Failure> {
    let Some(settings) = config.ids.as_ref().filter(|ids| !ids.rules.is_empty()) else { return Ok(0) };
    let changes = settings.changes()?;
    changes.problems().iter().for_each(|problem| eprintln!("sluice: {problem}"));
    let rules = settings.collect(&changes)?.compile();
    let (set, census) = (rules.set(), rules.set().census());
    if !quiet {
        println!("{} intrusion rules, {} of them active", census.rules, census.active);
    }
    set.problems().iter().for_each(|problem| eprintln!("sluice: {problem}"));
    Ok((census.refused.values().sum::<usize>() + changes.problems().len()) as u64)
}

/// How far a process that inspects can be confined on this machine: one is, and says it.
fn isolation() -> String {
    let tried = Command::new("/proc/self/exe").args(["jail", "probe"]).env_clear().current_dir("/").output();
    match tried {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().into(),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().into(),
        Err(error) => format!("it cannot be tried: {error}"),
    }
}

/// Says whether `serve` would be confined on this machine.
fn landlock(confined: Confined, wanted: bool) -> String {
    match confined {
        _ if !wanted => "serve would not be confined: confine = false".into(),
        Confined::Not => "serve would not be confined: the kernel has no Landlock".into(),
        Confined::Fully | Confined::Partly => format!("serve would be {confined} confined (Landlock)"),
    }
}

/// Says which rule means a mail, and what holds then. What was not said of the mail is taken for empty.
fn explain(config: &Config, listener: &Listener, args: &Check) {
    let parties = Parties {
        client: args.client.unwrap_or([127, 0, 0, 1].into()),
        sender: args.from.as_deref().unwrap_or_default(),
        recipient: args.to.as_deref().unwrap_or_default(),
    };
    let rule = listener.rule_for(&parties);
    let content = listener.under(rule);
    let rule = rule.map_or("no rule".to_string(), |index| format!("rule {}", index + 1));
    println!("{} on {}: {rule}", listener.protocol().name(), listener.place.address);
    let policy = &content.policy;
    for (name, action) in [
        ("on_infected", policy.on_infected),
        ("on_forbidden", policy.on_forbidden),
        ("on_limit", policy.on_limit),
        ("on_ambiguous", policy.on_ambiguous),
        ("on_unopened", policy.on_unopened),
        ("on_encrypted", policy.on_encrypted),
        ("on_external", policy.on_external),
        ("on_partial", policy.on_partial),
        ("on_malformed", policy.on_malformed),
    ] {
        println!("  {name} = {:?}", action.name());
    }
    for rule in policy.signatures.iter() {
        let names: Vec<String> = rule.names.iter().map(ToString::to_string).collect();
        println!("  signatures {}: {}", names.join(" "), rule.action.name());
    }
    println!("  message_bytes_max = {}", content.message_bytes_max);
    for attachment in content.ways(&config.attachments).iter() {
        println!("  attachment {}: {}", attachment.label, attachment.way.name());
    }
}

/// Warns where DANE is not followed, since nobody who is believed validates.
fn validation(config: &Config) -> Result<(), Failure> {
    let servers = config.dns.servers().unwrap_or_default();
    let warn = |why: &str| eprintln!("sluice: warning: store: no DANE for mail that goes out: {why}");
    if !servers.iter().any(|server| server.ip().is_loopback()) {
        warn("no resolver of [dns] is on this machine, and others are not believed");
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(Signed::new(servers, Duration::from_millis(config.dns.query_ms)).validates()) {
        Ok(true) => {}
        Ok(false) => warn("the resolver does not validate"),
        Err(_) => warn("the resolver does not answer"),
    }
    Ok(())
}
