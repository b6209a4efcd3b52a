//! `sluice cluster`: looks at a cluster, and has its store moved.

use std::io::{IsTerminal as _, Write as _, stdout};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use cluster::{Answer, BLOCK_BYTES, Blocks as _, Folds, TOGETHER};
use ledger::Summary;
use mailbox::File;
use serde_json::json;
use store::{Device as _, Options};
use tokio_postgres::Row;

use super::cache::{Cache, marks_of};
use super::documents::{self, Document, Documents};
use super::handing::{Handed, Secret, hand_over};
use super::ledger::Shared;
use super::objects::Store;
use super::postgres::{Database, Rows, Session, VOLUME, Volume};
use super::random::{random, random_name};
use crate::cli::{Cluster, ClusterCommand};
use crate::config::{ClusterSettings, Config, Keeping};
use crate::learned::Waits;
use crate::output::Failure;

const NODES: &str = "
    select name, address, drained, flush, extract(epoch from now() - seen)::bigint as silent
    from sluice.node order by name";

const SIZES: &str = "
    select (select coalesce(sum(length(runs)), 0)::bigint from sluice.tail where volume = $1),
        (select count(*) from sluice.block where volume = $1),
        (select count(object) from sluice.block where volume = $1),
        (select count(*) from sluice.former where volume = $1)";

const LEARNED: &str = "select (select count(*) from sluice.word), (select count(*) from sluice.mark)";

/// A node that has not been heard of for so long is gone, in seconds.
const SILENT_MAX: i64 = 30;

/// Runs `sluice cluster`; `waiting` counts the mails that wait in a maildrop, `files` are the documents of a configuration.
pub fn run(
    args: &Cluster,
    waiting: fn(&Path) -> usize,
    files: fn(&Config) -> Vec<Document>,
) -> Result<ExitCode, Failure> {
    let config = Config::read(&args.config)?;
    let name = args.config.display();
    let settings = config.cluster.as_ref().ok_or_else(|| format!("{name}: no table [cluster]"))?;
    let maildrop = config.store.as_ref().and_then(|store| store.maildrop.as_deref());
    let database = Database::new(settings, &config.tls.authorities)?;
    let objects = settings.objects.as_ref().map(|objects| Store::new(objects, &config.tls.authorities));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match &args.command {
            ClusterCommand::Status => status(&database, settings, args.json).await,
            ClusterCommand::Check => {
                Ok(check(&database, settings, objects, maildrop.map(|folder| (folder, waiting(folder)))).await)
            }
            ClusterCommand::Documents { get } => {
                let documents = Documents::new(settings, &config.tls.authorities)?;
                match get {
                    Some(name) => documents::command::get(&documents, name).await,
                    None => documents::command::list(&documents, &files(&config), args.json).await,
                }
            }
            ClusterCommand::Share => {
                known(&database.connect().await?, &settings.node).await?;
                documents::command::share(&Documents::new(settings, &config.tls.authorities)?, &files(&config)).await
            }
            ClusterCommand::Drain { node, undo } => drain(&database, node, !undo).await,
            ClusterCommand::Move { node } => move_to(&database, node).await,
            ClusterCommand::Import { file } => import(&database, objects.transpose()?, file).await,
            ClusterCommand::Export { file } => export(&database, settings, objects.transpose()?, file).await,
        }
    })
}

async fn status(database: &Database, settings: &ClusterSettings, as_json: bool) -> Result<ExitCode, Failure> {
    let session = database.connect().await?;
    let volume = session.look(&settings.node).await?;
    let nodes = session.rows(NODES, &[]).await?;
    let sizes = session.rows(SIZES, &[&VOLUME]).await?;
    let [tail, blocks, objects, former] = [0, 1, 2, 3].map(|at| sizes.first().map_or(0, |row| row.get::<_, i64>(at)));
    // Until a node has used it there are no tables of it.
    let learned = match settings.learned {
        Keeping::Shared => session.rows(LEARNED, &[]).await.unwrap_or_default(),
        Keeping::Node => Vec::new(),
    };
    let learned = learned.first().map(|row| [0, 1].map(|at| row.get::<_, i64>(at)));
    let Some(volume) = volume else { return Err("the cluster has no store yet: start a node".into()) };
    let mut out = stdout().lock();
    if as_json {
        let nodes: Vec<_> = nodes.iter().map(|row| node_json(row, &volume)).collect();
        let volume = json!({"owner": volume.owner, "epoch": volume.renewal.epoch, "flush": volume.flush, "wanted": volume.wanted,
            "bytes": volume.bytes, "tail_bytes": tail, "blocks": blocks,
            "objects": objects, "former_objects": former, "fold_error": volume.trouble});
        let learned = learned.map(|[words, marks]| json!({"words": words, "marks": marks}));
        let behind = session.behind().await?;
        let behind: Vec<_> = behind.iter().map(|(node, name)| json!({"node": node, "document": name})).collect();
        let status = json!({"store": volume, "learned": learned, "nodes": nodes, "documents_behind": behind});
        writeln!(out, "{status}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let owner = volume.owner.as_deref().unwrap_or("nobody");
    writeln!(out, "store: {owner} has it, epoch {}, flush {}", volume.renewal.epoch, volume.flush)?;
    writeln!(out, "database: {} MiB in blocks, {} KiB behind them", blocks - objects, tail >> 10)?;
    if objects + former > 0 || settings.objects.is_some() {
        writeln!(out, "objects: {objects} MiB in blocks, {former} MiB to be deleted later")?;
    }
    if let Some([words, marks]) = learned {
        writeln!(out, "learned: {words} words, {marks} marks of greylisting")?;
    }
    if let Some(trouble) = &volume.trouble {
        writeln!(out, "wrong: changes stay behind the blocks: {trouble}")?;
    }
    let (Ok(said) | Err(said)) = documents::command::standing(&session).await;
    writeln!(out, "documents: {said}")?;
    let (bold, plain) = if out.is_terminal() { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    let [name, address, state_of, behind_by] = ["NODE", "ADDRESS", "STATE", "BEHIND"];
    writeln!(out, "{bold}{name:<16} {address:<22} {state_of:<9} {behind_by:>8}  SEEN{plain}")?;
    for row in &nodes {
        let (name, address): (&str, &str) = (row.get("name"), row.get("address"));
        let silent: i64 = row.get("silent");
        let behind = behind(row, &volume).map_or_else(|| "-".to_owned(), |behind| behind.to_string());
        writeln!(out, "{name:<16} {address:<22} {:<9} {behind:>8}  {silent} s ago", state(row, &volume))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How many flushes a node that waits has not applied yet; none for the owner.
fn behind(row: &Row, volume: &Volume) -> Option<u64> {
    let is_owner = volume.owner.as_deref() == Some(row.get("name"));
    let flush: i64 = row.get("flush");
    (!is_owner).then(|| volume.flush.saturating_sub(flush.cast_unsigned()))
}

fn state(row: &Row, volume: &Volume) -> &'static str {
    let (silent, is_drained): (i64, bool) = (row.get("silent"), row.get("drained"));
    match volume.owner.as_deref() == Some(row.get("name")) {
        _ if silent > SILENT_MAX => "gone",
        true => "owner",
        false if is_drained => "drained",
        false => "follows",
    }
}

fn node_json(row: &Row, volume: &Volume) -> serde_json::Value {
    let (name, address, is_drained): (&str, &str, bool) = (row.get("name"), row.get("address"), row.get("drained"));
    let silent: i64 = row.get("silent");
    json!({"name": name, "address": address, "state": state(row, volume), "drained": is_drained, "behind": behind(row, volume),
        "silent_seconds": silent})
}

/// Tries everything that a node needs, and says how each went.
async fn check(
    database: &Database,
    settings: &ClusterSettings,
    objects: Option<Result<Store, String>>,
    maildrop: Option<(&Path, usize)>,
) -> ExitCode {
    let mut is_right = true;
    let mut say = |subject: &str, outcome: Result<String, String>| {
        is_right &= outcome.is_ok();
        match outcome {
            Ok(text) => println!("ok     {subject}: {text}"),
            Err(text) => println!("wrong  {subject}: {text}"),
        }
    };
    let secret = Secret::read(&settings.secret_file);
    if let Some((folder, count)) = maildrop {
        say("maildrop", emptied(folder, count));
    }
    say("secret", secret.as_ref().map(|_| "read".to_owned()).map_err(Clone::clone));
    match objects {
        Some(Ok(objects)) => say("objects", objects.check(format!("check-{}", random_name())).await),
        Some(Err(error)) => say("objects", Err(error)),
        None => {}
    }
    let session = database.connect().await;
    say("database", session.as_ref().map(|_| "connected to the primary".to_owned()).map_err(Clone::clone));
    let (Ok(secret), Ok(session)) = (secret, session) else { return ExitCode::FAILURE };
    let show = "select version(), current_setting('synchronous_standby_names'), current_setting('synchronous_commit'),
        (select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum'))";
    match session.rows(show, &[]).await.as_deref() {
        Ok([row]) => {
            let version: &str = row.get(0);
            say("version", Ok(version.split(" on ").next().unwrap_or(version).to_owned()));
            say("standbys", standbys(row, settings.synchronous));
        }
        Ok(_) => say("version", Err("no answer".into())),
        Err(error) => say("version", Err(error.clone())),
    }
    if settings.learned == Keeping::Shared {
        say("learned", learned(database).await);
    }
    say("documents", documents::command::standing(&session).await);
    for row in session.rows(NODES, &[]).await.unwrap_or_default() {
        let (name, address): (&str, &str) = (row.get("name"), row.get("address"));
        if name != settings.node {
            say(&format!("node {name}"), reached(address, &secret).await);
        }
    }
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether the ledger of the cluster can be used.
async fn learned(database: &Database) -> Result<String, String> {
    let database = database.clone();
    let check = move || Shared::open(database, Waits::COMMAND)?.check();
    let checked = tokio::task::spawn_blocking(check).await.map_err(|error| error.to_string())?;
    let Summary { corpus, words, .. } = checked.map_err(|error| error.to_string())?;
    Ok(format!("{words} words of {} mails", corpus.spam + corpus.ham))
}

/// Whether no mail of commands waits here: the node that has the store takes mail of its own commands alone.
fn emptied(folder: &Path, count: usize) -> Result<String, String> {
    match count {
        0 => Ok(format!("nothing waits in {}", folder.display())),
        _ => Err(format!("{count} mails wait in {} for the node that has the store", folder.display())),
    }
}

fn standbys(row: &Row, is_needed: bool) -> Result<String, String> {
    let (names, commit, count): (&str, &str, i64) = (row.get(1), row.get(2), row.get(3));
    match (names.is_empty(), commit) {
        (true, _) if is_needed => Err("synchronous_standby_names is empty: a commit is on one server alone".into()),
        (true, _) => Ok("none, and none are needed (synchronous = false)".into()),
        (false, "off" | "local") => Err(format!("synchronous_commit = {commit}: a commit waits for no standby")),
        (false, _) if count == 0 => Err(format!("synchronous_standby_names = {names:?}, and none is connected")),
        (false, _) => Ok(format!("{count} synchronous ({names})")),
    }
}

/// Whether another node is there, and knows the secret. One that does not have the store closes the connection, which is well, too.
async fn reached(address: &str, secret: &Secret) -> Result<String, String> {
    let place: SocketAddr = address.parse().map_err(|_| format!("{address} is not an address"))?;
    let handed = Handed { door: "check".into(), client: None };
    match hand_over(place, secret, &handed).await {
        Ok(_) => Ok(format!("{address} answers, and has the store")),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(format!("{address} answers")),
        Err(error) => Err(format!("{address}: {error}")),
    }
}

async fn drain(database: &Database, node: &str, is_drained: bool) -> Result<ExitCode, Failure> {
    let session = database.connect().await?;
    known(&session, node).await?;
    session.run("update sluice.node set drained = $2 where name = $1", &[&node, &is_drained]).await?;
    match is_drained {
        true => println!("{node} gives the store up if it has it, and does not take it"),
        false => println!("{node} may have the store again"),
    }
    Ok(ExitCode::SUCCESS)
}

async fn move_to(database: &Database, node: &str) -> Result<ExitCode, Failure> {
    let session = database.connect().await?;
    known(&session, node).await?;
    session.run("update sluice.volume set wanted = $2 where id = $1", &[&VOLUME, &node]).await?;
    println!("the store moves to {node}");
    Ok(ExitCode::SUCCESS)
}

/// Refuses the names of no node.
async fn known(session: &Session, node: &str) -> Result<(), Failure> {
    let found = session.rows("select 1 from sluice.node where name = $1", &[&node]).await?;
    match found.is_empty() {
        true => Err(format!("no node is named {node:?}: sluice cluster status").into()),
        false => Ok(()),
    }
}

/// Copies a store to a cluster that has none.
async fn import(database: &Database, objects: Option<Store>, path: &Path) -> Result<ExitCode, Failure> {
    let open = || File::open(path, false).map_err(|error| format!("{}: {error}", path.display()));
    let options = Options { read_only: true, ..Options::default() };
    drop(store::Volume::open(open()?, options).map_err(|error| format!("{}: {error}", path.display()))?);
    let file = open()?;
    let session = database.connect().await?;
    let former = session.look("").await?;
    if former.as_ref().is_some_and(|volume| volume.flush > 0) {
        return Err("the cluster has a store already".into());
    }
    session.run("delete from sluice.volume where id = $1 and flush = 0", &[&VOLUME]).await?;
    // Objects of an attempt that was cut off are found by this name.
    let name = former.map_or_else(random_name, |volume| volume.name);
    session.volume(file.len(), &name).await?;
    let volume = session.look("").await?.ok_or("the volume is gone")?;
    if session.take(volume.renewal, 1, "import").await != Answer::Done {
        return Err("a node has taken the cluster's store: stop all nodes first".into());
    }
    let epoch = volume.renewal.epoch + 1;
    let mut rows = Rows { session, keep_days: 0 };
    let copied = copy(&file, volume.name, epoch, &mut rows, objects.filter(|objects| objects.writes)).await?;
    if rows.session.append(epoch, 1, &[]).await != Answer::Done {
        return Err("a node has taken the cluster's store meanwhile: stop all nodes, and try again".into());
    }
    rows.fold(epoch, 1).await?;
    rows.session.release(epoch).await;
    println!("{copied} MiB are in the cluster: start the nodes");
    Ok(ExitCode::SUCCESS)
}

/// Writes all blocks of a store that are not empty, as those of flush 1. Returns how many.
async fn copy(
    file: &File,
    name: String,
    epoch: u64,
    rows: &mut Rows,
    mut objects: Option<Store>,
) -> Result<usize, Failure> {
    let mut bytes = vec![0; usize::try_from(BLOCK_BYTES)?];
    let mut read = |block: u64| {
        let at = block * BLOCK_BYTES;
        let length = usize::try_from((file.len() - at).min(BLOCK_BYTES)).map_err(|error| error.to_string())?;
        let piece = &mut bytes[..length];
        file.read_at(at, piece).map_err(|error| error.to_string())?;
        Ok::<_, String>(piece.to_vec())
    };
    let (mut folds, mut copied, attempt) = (Folds::new(name, epoch), 0, random());
    let all = file.len().div_ceil(BLOCK_BYTES);
    // Blocks of another attempt.
    rows.clean(epoch).await?;
    for from in (0..all).step_by(TOGETHER) {
        let until = (from + TOGETHER as u64).min(all);
        let mut full = Vec::new();
        for block in from..until {
            if read(block)?.iter().any(|&byte| byte != 0) {
                full.push(block);
            }
        }
        folds.write(rows, objects.as_mut(), (1, attempt), &full, &mut read).await?;
        copied += full.len();
        progress(until, all);
    }
    Ok(copied)
}

/// Shows how far a copy is, on a terminal.
fn progress(done: u64, all: u64) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{done} of {all} MiB{}", if done == all { "\n" } else { "" });
    }
}

/// Writes the store of a cluster to a file.
async fn export(
    database: &Database,
    settings: &ClusterSettings,
    objects: Option<Store>,
    path: &Path,
) -> Result<ExitCode, Failure> {
    let session = database.connect().await?;
    let volume = session.look(&settings.node).await?.filter(|volume| volume.flush > 0);
    let volume = volume.ok_or("the cluster has no store yet")?;
    if path.symlink_metadata().is_ok() {
        return Err(format!("{}: there is one already", path.display()).into());
    }
    let mut cache = Cache::open(path, &volume, objects.as_ref())?.ok_or("another process has it open")?;
    let flush = cache.follow(&session, false).await?;
    cache.file.sync()?;
    std::fs::remove_file(marks_of(path))?;
    println!("{}: the store as of flush {flush}", path.display());
    Ok(ExitCode::SUCCESS)
}
