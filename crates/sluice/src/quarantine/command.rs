//! `sluice quarantine`: what is kept, and what becomes of it.
//!
//! The folder belongs to the service, and root runs the commands: so root becomes the folder's owner before anything in it is
//! looked at. What learns from a mail is run as the owner, too, and a mail goes to next hops of the configuration only,
//! whatever stands beside it, unless `--hop` names another.
//!
//! Messages are read one at a time, the oldest first; of a folder only the ids are held. What is named by its id is opened by it.
//!
//! Exit status: 0 done, 1 something could not be done or nothing was meant, 2 an error.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use edge::quarantine::{Kept, Release, Trained, read};
use edge::settings::{Forward, Listener, Target};
use edge::upstream::route::Route;
use rustix::thread::CapabilitySet;

use super::release::release;
use super::train;
use crate::cli::values::Kind;
use crate::cli::{Quarantine, QuarantineCommand, Selection};
use crate::config::Config;
use crate::output::Failure;
use crate::process::held::Held;
use crate::process::privileges::{self, owner_on_the_way};

/// Runs one of the commands.
pub fn run(args: &Quarantine) -> Result<ExitCode, Failure> {
    let place = Place::find(args)?;
    match &args.command {
        QuarantineCommand::List { selection, json } => printed(list(&place, place.meant(selection)?, *json)),
        QuarantineCommand::Show { id, json, raw } => printed(show(&place, &place.one(id)?, *json, *raw)),
        QuarantineCommand::Release { selection, hop, again } => {
            named(selection)?;
            let meant = place.meant(selection)?;
            // Without ids, those that have gone already are not meant.
            let wanted = |kept: &Kept| *again || !selection.ids.is_empty() || kept.facts.waits();
            let meant = meant.filter(wanted);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(release_all(&place, meant, hop.as_ref(), *again))
        }
        QuarantineCommand::Train { kind, selection, json } => {
            named(selection)?;
            train_all(&place, place.meant(selection)?, *kind, *json)
        }
        QuarantineCommand::Delete { selection } => {
            named(selection)?;
            delete(place.meant(selection)?)
        }
    }
}

/// What has come of printing; a reader that has seen enough is no failure.
fn printed(outcome: io::Result<()>) -> Result<ExitCode, Failure> {
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Nothing named would mean everything, which is too easily said.
fn named(selection: &Selection) -> Result<(), Failure> {
    if selection.is_empty() {
        return Err("which? Name ids, or say what they are: --older, --newer, --from, --to, --found, --state".into());
    }
    Ok(())
}

/// Where messages are kept.
struct Place {
    config: Config,
    folders: Vec<Folder>,
}

/// A quarantine.
struct Folder {
    held: Held,
    /// The path by which it is reached: the way to its own may be closed to its owner.
    way: PathBuf,
}

/// Opens the quarantines; root becomes their owner.
fn enter(paths: &[PathBuf]) -> Result<Vec<Folder>, Failure> {
    let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    let mut all = Vec::new();
    for path in paths {
        let path = std::path::absolute(path)?;
        let held = Held::open(&path).map_err(|error| failed(&path, error))?;
        all.push((held, owner_on_the_way(&path)));
    }
    let mut owners = all.iter().map(|(_, owner)| owner);
    let first = owners.next().cloned().flatten();
    if privileges::is_root() {
        if owners.any(|owner| *owner != first) {
            return Err("the quarantines belong to different users: name one with --folder".into());
        }
        first.iter().try_for_each(|owner| owner.assume(CapabilitySet::empty()))?;
    }
    Ok(all.into_iter().map(|(held, _)| Folder { way: held.way(), held }).collect())
}

impl Place {
    fn find(args: &Quarantine) -> Result<Place, Failure> {
        if let Some(folder) = &args.folder {
            return Ok(Place { config: Config::default(), folders: enter(std::slice::from_ref(folder))? });
        }
        let config = Config::read(&args.config)?;
        let mut folders: Vec<PathBuf> = config.quarantines().map(Path::to_path_buf).collect();
        folders.sort();
        folders.dedup();
        if folders.is_empty() {
            return Err(format!("{}: no listener has a quarantine", args.config.display()).into());
        }
        let folders = enter(&folders)?;
        Ok(Place { config, folders })
    }

    /// The messages that are meant, the oldest first; each is read when its turn comes.
    fn meant<'p>(&'p self, selection: &'p Selection) -> Result<impl Iterator<Item = Kept> + use<'p>, Failure> {
        let now = SystemTime::now();
        let candidates = self.candidates(selection)?.into_iter();
        let opened = candidates.filter_map(|(id, folder)| self.open(folder, &id));
        Ok(opened.filter(move |kept| selection.means(kept, now)))
    }

    /// The messages that may be meant, as far as their ids say: these begin with the time, so theirs is the order of age.
    fn candidates(&self, selection: &Selection) -> Result<Vec<(String, &Folder)>, Failure> {
        let mut all = Vec::new();
        for folder in &self.folders {
            let ids = match &selection.ids[..] {
                [] => Kept::ids(&folder.way).map_err(|error| format!("{}: {error}", folder.held.path().display()))?,
                named => named.iter().filter(|id| Kept::is_there(&folder.way, id)).cloned().collect(),
            };
            all.extend(ids.into_iter().map(|id| (id, folder)));
        }
        fn age<'a>((id, _): &'a (String, &Folder)) -> (usize, &'a str) {
            (id.len(), id)
        }
        all.sort_by(|one, other| age(one).cmp(&age(other)));
        for id in &selection.ids {
            if all.binary_search_by(|candidate| age(candidate).cmp(&(id.len(), id))).is_err() {
                eprintln!("sluice: {id}: not in the quarantine");
            }
        }
        all.dedup_by(|one, other| one.0 == other.0 && std::ptr::eq(one.1, other.1));
        Ok(all)
    }

    fn open(&self, folder: &Folder, id: &str) -> Option<Kept> {
        match Kept::open(&folder.way, id) {
            Ok(kept) => Some(kept),
            // It went while we looked.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !Kept::is_there(&folder.way, id) => None,
            Err(error) => {
                eprintln!("sluice: {}: {error}", folder.held.path().join(format!("{id}.json")).display());
                None
            }
        }
    }

    fn one(&self, id: &str) -> Result<Kept, Failure> {
        let mut wrong = io::Error::from(io::ErrorKind::NotFound);
        for folder in &self.folders {
            match Kept::open(&folder.way, id) {
                Ok(kept) => return Ok(kept),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => wrong = error,
            }
        }
        Err(format!("{id}: {wrong}").into())
    }

    /// A path in a quarantine, as people know it.
    fn shown(&self, path: &Path) -> PathBuf {
        let below = self.folders.iter().find_map(|folder| Some((folder, path.strip_prefix(&folder.way).ok()?)));
        below.map_or_else(|| path.to_path_buf(), |(folder, below)| folder.held.path().join(below))
    }

    /// The way to where a message would have gone, as its listener goes it, or to `to`. What stands beside a message may be
    /// written by whoever has taken over the service, so that is a next hop of the configuration.
    fn route(&self, kept: &Kept, to: Option<&Forward>) -> Result<Route, Failure> {
        let forward: Forward = match to {
            Some(forward) => forward.clone(),
            None => kept.facts.hop.parse()?,
        };
        if !forward.takes_mail() {
            return Err(format!("{forward} takes no mail").into());
        }
        let target =
            self.config.listeners.iter().find(|listener| listener.hop.forward == forward).map(Listener::target);
        if target.is_none() && to.is_none() {
            return Err(format!("{forward} is not a next hop of the configuration: give it with --hop").into());
        }
        Ok(Route::new(&target.unwrap_or_else(|| Target::new(forward)), &self.config.tls)?)
    }
}

fn list(place: &Place, meant: impl Iterator<Item = Kept>, json: bool) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
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
    let mut out = io::stdout().lock();
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

/// The first lines of the mail, up to the empty one.
fn header(kept: &Kept) -> io::Result<Vec<String>> {
    use std::io::Read as _;
    let mut start = Vec::new();
    read(&kept.mail())?.take(16 << 10).read_to_end(&mut start)?;
    let text = String::from_utf8_lossy(&start).into_owned();
    Ok(text.lines().take_while(|line| !line.is_empty()).map(String::from).collect())
}

/// Everything that is known, and where the mail is.
fn object(place: &Place, kept: &Kept) -> serde_json::Result<serde_json::Value> {
    let mut object = serde_json::to_value(&kept.facts)?;
    object["state"] = kept.facts.state().name().into();
    object["bytes"] = kept.bytes.into();
    object["mail"] = place.shown(&kept.mail()).display().to_string().into();
    Ok(object)
}

async fn release_all(
    place: &Place,
    meant: impl Iterator<Item = Kept>,
    to: Option<&Forward>,
    again: bool,
) -> Result<ExitCode, Failure> {
    let mut meant = meant.peekable();
    let mut whole = meant.peek().is_some();
    for mut kept in meant {
        let id = kept.facts.id.clone();
        let route = place.route(&kept, to)?;
        match release(&mut kept, &route, &place.config.hostname, again).await {
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

fn delete(meant: impl Iterator<Item = Kept>) -> Result<ExitCode, Failure> {
    let mut none = true;
    for kept in meant {
        kept.delete().map_err(|error| format!("{}: {error}", kept.facts.id))?;
        println!("{}: deleted", kept.facts.id);
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
