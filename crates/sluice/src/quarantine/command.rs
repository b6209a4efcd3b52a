//! `sluice quarantine`: what is kept, and what becomes of it.
//!
//! What learns from a mail is run as the folder's owner, too, and a mail goes to next hops of the configuration only, whatever stands
//! beside it, unless `--hop` names another.
//!
//! Exit status: 0 done, 1 something could not be done or nothing was meant, 2 an error.

use std::io::{self, Write as _};
use std::process::ExitCode;

use edge::quarantine::{Kept, Release, Trained, read};
use edge::settings::Forward;

use super::place::{Place, header, object};
use super::release::{DELETED, RELEASED, release};
use super::train;
use crate::audit::trail::Trail;
use crate::cli::values::Kind;
use crate::cli::{Quarantine, QuarantineCommand, Selection};
use crate::config::Config;
use crate::output::{self, Failure};

/// Runs one of the commands. `reach` makes the store of a configuration reachable, where mail may be released to.
pub fn run(args: &Quarantine, reach: fn(&Config)) -> Result<ExitCode, Failure> {
    let trail = if args.folder.is_some() { Trail::none() } else { Trail::find(&args.config)? };
    let place = Place::find(args)?;
    match &args.command {
        QuarantineCommand::List { selection, json } => {
            list(&place, place.meant(selection)?, *json)?;
            Ok(ExitCode::SUCCESS)
        }
        QuarantineCommand::Show { id, json, raw } => {
            show(&place, &place.one(id)?, *json, *raw)?;
            Ok(ExitCode::SUCCESS)
        }
        QuarantineCommand::Release { selection, hop, again } => {
            named(selection)?;
            reach(&place.config);
            let meant = place.meant(selection)?;
            // Without ids, those that have gone already are not meant.
            let wanted = |kept: &Kept| *again || !selection.ids.is_empty() || kept.facts.waits();
            let meant = meant.filter(wanted);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(release_all(&place, &trail, meant, hop.as_ref(), *again))
        }
        QuarantineCommand::Train { kind, selection, json } => {
            named(selection)?;
            train_all(&place, place.meant(selection)?, *kind, *json)
        }
        QuarantineCommand::Delete { selection } => {
            named(selection)?;
            delete(&trail, place.meant(selection)?)
        }
    }
}

/// Nothing named would mean everything, which is too easily said.
fn named(selection: &Selection) -> Result<(), Failure> {
    if selection.is_empty() {
        return Err("no messages selected: name ids, or use --older, --newer, --from, --to, --found, --state".into());
    }
    Ok(())
}

fn list(place: &Place, meant: impl Iterator<Item = Kept>, json: bool) -> io::Result<()> {
    let mut out = io::BufWriter::new(output::out());
    for kept in meant {
        let facts = &kept.facts;
        if json {
            writeln!(out, "{}", object(place, &kept)?)?;
            continue;
        }
        let mailbox = facts.mailbox.iter().map(|mailbox| mailbox.user.as_str());
        let to: Vec<&str> = facts.envelope.to.iter().map(|rcpt| rcpt.address.as_str()).chain(mailbox).collect();
        let found = facts.found.first().map_or("", String::as_str);
        let line = format!(
            "{}  {}  {:<8}  {:>9}  <{}> -> {}  {found}",
            facts.id,
            facts.date,
            facts.state().name(),
            kept.bytes,
            facts.envelope.from,
            to.join(" ")
        );
        writeln!(out, "{}", safe(&line))?;
    }
    out.flush()
}

fn show(place: &Place, kept: &Kept, json: bool, raw: bool) -> io::Result<()> {
    let mut out = output::out();
    if raw {
        io::copy(&mut read(&kept.mail())?, &mut out)?;
        return Ok(());
    }
    if json {
        return writeln!(out, "{:#}", object(place, kept)?);
    }
    let facts = &kept.facts;
    let mut line = |name: &str, value: &str| writeln!(out, "{name:<10}{}", safe(value));
    line("id", &facts.id)?;
    line("state", facts.state().name())?;
    line("date", &facts.date)?;
    line("client", &format!("{} ({})", facts.client, facts.hello))?;
    facts.account.iter().try_for_each(|account| line("account", account))?;
    line("from", &format!("<{}>", facts.envelope.from))?;
    facts.envelope.to.iter().try_for_each(|rcpt| line("to", &format!("<{}>", rcpt.address)))?;
    facts.mailbox.iter().try_for_each(|mailbox| line("mailbox", &format!("{}, {}", mailbox.user, mailbox.uid)))?;
    facts.found.iter().try_for_each(|found| line("found", found))?;
    line("next hop", &facts.hop)?;
    line("mail", &format!("{} ({} bytes)", place.shown(&kept.mail()).display(), kept.bytes))?;
    for release in &facts.releases {
        let Release { date, hop, to, reply } = release;
        line("released", &format!("{date} to {hop} for {}: {reply}", to.join(" ")))?;
    }
    let trained = |trained: &Trained| format!("{} as {} by {}", trained.date, trained.kind, trained.by);
    facts.trained.iter().try_for_each(|time| line("learnt", &trained(time)))?;
    writeln!(out)?;
    header(kept)?.iter().try_for_each(|line| writeln!(out, "  {}", safe(line)))
}

async fn release_all(
    place: &Place,
    trail: &Trail,
    meant: impl Iterator<Item = Kept>,
    to: Option<&Forward>,
    again: bool,
) -> Result<ExitCode, Failure> {
    let mut meant = meant.peekable();
    let mut whole = meant.peek().is_some();
    for mut kept in meant {
        let id = kept.facts.id.clone();
        let route = place.route(&kept, to)?;
        trail.reserve()?;
        let released = release(&mut kept, &route, &place.config.hostname, again).await;
        let refused = |(address, reply): &(String, _)| format!("<{address}>: {reply}");
        let failed = match &released {
            Ok(outcome) => outcome.refused.first().map(refused),
            Err(error) => Some(error.to_string()),
        };
        trail.note(RELEASED, &id, failed)?;
        match released {
            Ok(outcome) => {
                for address in &outcome.taken {
                    println!("{id}: released to <{}> by {}", safe(address), route.forward);
                }
                for (address, reply) in &outcome.refused {
                    whole = false;
                    println!("{id}: not released to <{}>: {}", safe(address), safe(&reply.to_string()));
                }
            }
            Err(error) => {
                whole = false;
                eprintln!("sluice: {id}: {error}");
            }
        }
    }
    Ok(ExitCode::from(u8::from(!whole)))
}

fn train_all(place: &Place, meant: impl Iterator<Item = Kept>, kind: Kind, json: bool) -> Result<ExitCode, Failure> {
    let learners = &place.config.quarantine.train;
    let mut meant = meant.peekable();
    let mut whole = meant.peek().is_some();
    for mut kept in meant {
        let id = kept.facts.id.clone();
        let trained = train::train(&mut kept, kind, learners);
        whole &= trained.is_ok();
        if json {
            let error = trained.err().map(|error| error.to_string());
            println!("{}", serde_json::json!({"id": id, "kind": kind.name(), "done": error.is_none(), "error": error}));
            continue;
        }
        match trained {
            Ok(()) => println!("{id}: learnt as {}", kind.name()),
            Err(error) => eprintln!("sluice: {id}: {}", safe(&error.to_string())),
        }
    }
    Ok(ExitCode::from(u8::from(!whole)))
}

fn delete(trail: &Trail, meant: impl Iterator<Item = Kept>) -> Result<ExitCode, Failure> {
    let mut none = true;
    for kept in meant {
        let id = kept.facts.id.clone();
        trail.change(DELETED, &id, || kept.delete().map_err(|error| format!("{id}: {error}")))?;
        println!("{id}: deleted");
        none = false;
    }
    Ok(ExitCode::from(u8::from(none)))
}

/// Text from a mail, without what a terminal would obey.
fn safe(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c == '\t' {
                ' '
            } else if c.is_control() {
                '?'
            } else {
                c
            }
        })
        .collect()
}
