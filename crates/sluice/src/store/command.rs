//! `sluice store`: makes a volume, looks at it, checks it, and moves mail in and out.
//!
//! Mail is streamed: what is held of it is a piece.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;

use mailbox::File;
use serde_json::Value;
use store::{Arrival, Device as _, Format, Volume};

use super::import::{self, Incoming, now};
use super::look::Look;
use super::mbox;
use super::source::{Reading, Source};
use super::volume::{named, open, open_as_root, parted, segment_bytes};
use crate::cli::values;
use crate::cli::{self, StoreCat, StoreCheck, StoreCommand, StoreCreate, StoreDeliver, StoreList, StoreStat};
use crate::output::Failure;
use crate::process::privileges::{self, Place};

/// Does what the command line says.
pub fn run(args: &cli::Store) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    match &args.command {
        StoreCommand::Create(args) => create(args),
        StoreCommand::Stat(args) => stat(args),
        StoreCommand::Check(args) => check(args),
        StoreCommand::Deliver(args) => deliver(args),
        StoreCommand::Import(args) => import::run(args),
        StoreCommand::Export(args) => super::export::run(args),
        StoreCommand::Ls(args) => list(args),
        StoreCommand::Cat(args) => cat(args),
        StoreCommand::Acl(args) => super::acl::run(args),
        StoreCommand::Serve(args) => super::serve::run(args),
    }
}

fn create(args: &StoreCreate) -> Result<ExitCode, Failure> {
    let mut identity = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut identity)?;
    let place = Place::enter(&args.volume)?;
    let path = place.way();
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", args.volume.display());
    let is_new = path.symlink_metadata().is_err();
    let file = File::create(&path, args.size).map_err(|error| named(&error))?;
    let mut format = Format::new(u128::from_le_bytes(identity), now() as u32);
    format.segment_bytes = match args.segment {
        Some(bytes) => u32::try_from(bytes).map_err(|_| "a segment has at most 1 GiB")?,
        None => segment_bytes(file.len(), format.segment_bytes),
    };
    // Two pieces fit into a segment.
    format.piece_bytes = format.piece_bytes.min((format.segment_bytes / 4).saturating_sub(store::HEADER_BYTES as u32));
    Volume::format(file, &format).map_err(|error| {
        // What is no store does not look like one.
        if is_new {
            let _ = fs::remove_file(&path);
        }
        named(&error)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn stat(args: &StoreStat) -> Result<ExitCode, Failure> {
    let place = Place::enter(&named(&args.place, args.volume.as_deref())?)?;
    let rows = Source::open(&place, false)?.all(&Look::Stat)?;
    let row = rows.first().ok_or("no answer")?;
    if args.json {
        println!("{row:#}");
        return Ok(ExitCode::SUCCESS);
    }
    let state = match (&row["is_served"], &row["was_closed"]) {
        (Value::Bool(true), _) => "a server has it open",
        (_, Value::Bool(true)) => "closed",
        _ => "not closed",
    };
    println!(
        "{} accounts, {} mailboxes, {} messages in {} places",
        row["accounts"], row["mailboxes"], row["messages"], row["links"]
    );
    println!("{} bytes of mail, {} as delivered", row["live_bytes"], row["delivered_bytes"]);
    println!("{} of {} bytes free", row["free_bytes"], row["total_bytes"]);
    println!("transaction {}; {state}", row["modseq"]);
    Ok(ExitCode::SUCCESS)
}

fn check(args: &StoreCheck) -> Result<ExitCode, Failure> {
    let place = Place::enter(&named(&args.place, args.volume.as_deref())?)?;
    let mut source = match args.salvage {
        // A server that has the store open holds its lock.
        true => Source::Here(Box::new(open(&place, false, true)?)),
        false => Source::open(&place, false)?,
    };
    let (mut damaged, mut messages) = (0u64, 0);
    source.rows(&Look::Check, &mut |row| {
        if let Some(error) = row["damaged"].as_str() {
            damaged += 1;
            println!("{error}");
        }
        for place in row["places"].as_array().into_iter().flatten() {
            let text = |key: &str| place[key].as_str().unwrap_or_default();
            println!("    {} {} UID {}", text("account"), text("mailbox"), place["uid"]);
        }
        row["note"].as_str().into_iter().for_each(|note| println!("{note}"));
        messages = row["messages"].as_u64().unwrap_or(messages);
        Ok(())
    })?;
    println!("{messages} messages, {damaged} damaged");
    if let (true, Source::Here(volume)) = (args.salvage, source) {
        volume.close()?;
    }
    Ok(ExitCode::from(u8::from(damaged > 0)))
}

fn deliver(args: &StoreDeliver) -> Result<ExitCode, Failure> {
    let (volume, files) = parted(&args.place, &args.words, usize::MAX);
    if files.is_empty() {
        return Err("a mail is needed; - is the standard input".into());
    }
    let mut volume = open_as_root(&Place::find(&named(&args.place, volume)?)?, false)?;
    let mut mailboxes = Vec::new();
    for account in &args.to {
        mailboxes.push((account, import::mailbox(&mut volume, account, "INBOX")?));
        import::furnish(&mut volume, account)?;
    }
    let mut refused = false;
    for path in files.iter().map(Path::new) {
        let sealed = if path.as_os_str() == "-" {
            Incoming::whole(&mut volume, io::stdin().lock())?
        } else {
            let file = fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
            Incoming::whole(&mut volume, file)?
        };
        let now = now();
        let mut outcomes = Vec::new();
        let mut transaction = volume.transaction()?;
        for &(account, mailbox) in &mailboxes {
            let outcome = transaction.deliver(&sealed, mailbox, &Arrival { date: now, now, ..Arrival::default() });
            outcomes.push((account, outcome));
        }
        transaction.stage()?;
        volume.commit()?;
        // Only now is it safe to say so.
        for (account, outcome) in outcomes {
            match outcome {
                Ok(uid) => println!("{}: {account} {uid}", path.display()),
                Err(error) => {
                    refused = true;
                    eprintln!("sluice: {}: {account}: {error}", path.display());
                }
            }
        }
    }
    volume.close()?;
    Ok(ExitCode::from(u8::from(refused)))
}

fn list(args: &StoreList) -> Result<ExitCode, Failure> {
    let is_path = |word: &OsString| word.as_encoded_bytes().contains(&b'/') || Path::new(word).is_file();
    let most = args.words.len() - usize::from(args.words.first().is_some_and(is_path));
    let (volume, words) = parted(&args.place, &args.words, most.min(2));
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let look = match &words[..] {
        [] => Look::Accounts,
        [account] => Look::Mailboxes { account: account.clone() },
        [account, mailbox] => Look::Messages { account: account.clone(), mailbox: Some(mailbox.clone()) },
        _ => return Err("at most a store, an account and a mailbox".into()),
    };
    let place = Place::enter(&named(&args.place, volume)?)?;
    Source::open(&place, false)?.rows(&look, &mut |row| {
        if args.json {
            println!("{row}");
            return Ok(());
        }
        let text = |key: &str| row[key].as_str().unwrap_or_default();
        match (row.get("account"), row.get("mailbox"), &look) {
            (Some(_), ..) => println!("{}\t{} messages\t{} bytes", text("account"), row["messages"], row["bytes"]),
            (_, Some(_), Look::Mailboxes { .. }) => println!(
                "{}\t{} messages\t{} unseen\t{} bytes",
                text("mailbox"),
                row["messages"],
                row["unseen"],
                row["bytes"]
            ),
            (_, Some(_), _) => println!(
                "UIDVALIDITY {} UIDNEXT {} HIGHESTMODSEQ {}",
                row["uid_validity"], row["uid_next"], row["highest_modseq"]
            ),
            _ => {
                let flags: Vec<&str> =
                    row["flags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let date = mbox::date_of(row["date"].as_i64().unwrap_or_default());
                println!("{}\t{}\t{date}\t{}\t{}", row["uid"], row["size"], text("id"), flags.join(" "));
            }
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

fn cat(args: &StoreCat) -> Result<ExitCode, Failure> {
    let (volume, words) = parted(&args.place, &args.words, 3);
    let [account, mailbox, uid] = words else { return Err("an account, a mailbox and a UID are needed".into()) };
    let [account, mailbox, uid] = [account, mailbox, uid].map(|word| word.to_string_lossy().into_owned());
    let uid = values::number(&uid)?;
    let mut source = Source::open(&Place::enter(&named(&args.place, volume)?)?, false)?;
    let rows = source.all(&Look::Message { account, mailbox, uid })?;
    let number = rows.first().and_then(|row| row["message"].as_u64()).ok_or("the message is missing")?;
    let mut out = crate::output::out();
    let reading = source.content(number, &mut |piece| Ok(out.write_all(piece)?))?;
    out.flush()?;
    match reading {
        Reading::Whole => Ok(ExitCode::SUCCESS),
        Reading::Gone => Err("the message was removed meanwhile".into()),
        Reading::Damaged(error) => Err(error.into()),
    }
}
