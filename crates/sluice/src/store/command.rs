//! `sluice store`: makes a volume, looks at it, checks it, and moves mail in and out.
//!
//! Mail is streamed: what is held of it is a piece.

use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use mailbox::File;
use serde_json::json;
use store::{Arrival, Content, Device as _, Flags, Format, Quota, Sealed, SpecialUse, State, Volume};
use time::OffsetDateTime;
use time::macros::format_description;

use super::volume::{open, open_as_root, segment_bytes};
use super::{maildir, mbox};
use crate::Failure;
use crate::cli::{
    self, MailboxFormat, StoreCat, StoreCheck, StoreCommand, StoreCreate, StoreDeliver, StoreExport, StoreImport,
    StoreList, StoreStat,
};
use crate::privileges::{self, Place};

/// Mails that are imported with one flush.
const BATCH: usize = 64;

/// Does what the command line says.
pub fn run(args: &cli::Store) -> Result<ExitCode, Failure> {
    privileges::harden()?;
    match &args.command {
        StoreCommand::Create(args) => create(args),
        StoreCommand::Stat(args) => stat(args),
        StoreCommand::Check(args) => check(args),
        StoreCommand::Deliver(args) => deliver(args),
        StoreCommand::Import(args) => import(args),
        StoreCommand::Export(args) => export(args),
        StoreCommand::Ls(args) => list(args),
        StoreCommand::Cat(args) => cat(args),
        StoreCommand::Acl(args) => super::acl::run(args),
        StoreCommand::Queue(args) => super::queue::run(args),
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
    let volume = open(&Place::enter(&args.volume)?, true, false)?;
    let (usage, state, report) = (volume.usage(), volume.state(), volume.report());
    let accounts = state.accounts().count();
    let links: u64 = state.accounts().map(|(_, account)| account.used_messages).sum();
    let delivered: u64 = state.accounts().map(|(_, account)| account.used_bytes).sum();
    if args.json {
        println!(
            "{:#}",
            json!({
                "total_bytes": usage.total_bytes, "free_bytes": usage.free_bytes, "live_bytes": usage.live_bytes,
                "checkpoint_bytes": usage.checkpoint_bytes, "messages": usage.messages, "links": links,
                "delivered_bytes": delivered, "accounts": accounts, "mailboxes": state.mailboxes().count(),
                "modseq": state.commits, "was_closed": report.was_closed, "replayed": report.replayed,
            })
        );
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "{} accounts, {} mailboxes, {} messages in {links} places",
        accounts,
        state.mailboxes().count(),
        usage.messages
    );
    println!("{} bytes of mail, {delivered} as delivered", usage.live_bytes);
    println!("{} of {} bytes free", usage.free_bytes, usage.total_bytes);
    println!("transaction {}; {}", state.commits, if report.was_closed { "closed" } else { "not closed" });
    Ok(ExitCode::SUCCESS)
}

fn check(args: &StoreCheck) -> Result<ExitCode, Failure> {
    let volume = open(&Place::enter(&args.volume)?, !args.salvage, args.salvage)?;
    let mut damaged = 0u64;
    for damage in &volume.report().damage {
        println!("{damage}");
        damaged += 1;
    }
    if volume.report().discarded_records > 0 {
        println!("{} records behind the end of the log were discarded", volume.report().discarded_records);
    }
    if volume.report().lost_transactions {
        println!("transactions are lost; all mailboxes have a new UIDVALIDITY");
    }
    let state = volume.state();
    volume.scrub(0, u64::MAX, &mut |number, error| {
        damaged += 1;
        println!("{error}");
        for (mailbox, uid) in state.places_of(number) {
            println!("    {} UID {uid}", path_of(state, mailbox));
        }
    });
    println!("{} messages, {damaged} damaged", volume.usage().messages);
    if args.salvage {
        volume.close()?;
    }
    Ok(ExitCode::from(u8::from(damaged > 0)))
}

fn deliver(args: &StoreDeliver) -> Result<ExitCode, Failure> {
    let mut volume = open_as_root(&args.volume, false)?;
    let mut mailboxes = Vec::new();
    for account in &args.to {
        mailboxes.push((account, mailbox(&mut volume, account, "INBOX")?));
    }
    let mut refused = false;
    for path in &args.files {
        let sealed = if path.as_os_str() == "-" {
            store_whole(&mut volume, io::stdin().lock())?
        } else {
            let file = fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
            store_whole(&mut volume, file)?
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

fn import(args: &StoreImport) -> Result<ExitCode, Failure> {
    let mut volume = open_as_root(&args.volume, false)?;
    // What its owner has planted there is read with the owner's rights.
    let source = Place::enter(&args.source)?;
    let count = match maildir::is_one(&source.way()) {
        true => import_maildir(&mut volume, args, &source.way())?,
        false => import_mbox(&mut volume, args, &source.way())?,
    };
    volume.close()?;
    println!("{count} messages");
    Ok(ExitCode::SUCCESS)
}

fn import_maildir(volume: &mut Volume<File>, args: &StoreImport, source: &Path) -> Result<u64, Failure> {
    let mut count = 0;
    let mut importer = Importer::default();
    for (name, folder) in maildir::mailboxes(source)? {
        let name = args.mailbox.clone().unwrap_or(name);
        let mailbox = mailbox(volume, &args.account, &name)?;
        for mail in maildir::mails(&folder)? {
            let file = fs::File::open(&mail.path).map_err(|error| format!("{}: {error}", mail.path.display()))?;
            let sealed = store_whole(volume, file)?;
            importer.add(volume, sealed, mailbox, mail.flags, mail.date)?;
            count += 1;
        }
    }
    importer.end(volume)?;
    Ok(count)
}

fn import_mbox(volume: &mut Volume<File>, args: &StoreImport, source: &Path) -> Result<u64, Failure> {
    let file = fs::File::open(source).map_err(|error| format!("{}: {error}", args.source.display()))?;
    let mailbox = mailbox(volume, &args.account, args.mailbox.as_deref().unwrap_or("INBOX"))?;
    let (mut count, mut importer, now) = (0, Importer::default(), now());
    let mut append = None;
    mbox::read(BufReader::with_capacity(256 << 10, file), |item| -> Result<(), Failure> {
        match item {
            mbox::Item::Content(piece) => {
                if let Some(append) = &mut append {
                    volume.write(append, piece)?;
                }
            }
            mbox::Item::Mail => {
                if let Some(former) = append.replace(volume.append(None)?) {
                    let sealed = volume.seal(former, &[], 0)?;
                    importer.add(volume, sealed, mailbox, 0, now)?;
                }
                count += 1;
            }
        }
        Ok(())
    })?;
    if let Some(last) = append {
        let sealed = volume.seal(last, &[], 0)?;
        importer.add(volume, sealed, mailbox, 0, now)?;
    }
    importer.end(volume)?;
    Ok(count)
}

/// Mails that are staged and not committed yet.
#[derive(Default)]
struct Importer {
    staged: usize,
}

impl Importer {
    fn add(
        &mut self,
        volume: &mut Volume<File>,
        sealed: Sealed,
        mailbox: u32,
        flags: u64,
        date: i64,
    ) -> Result<(), Failure> {
        let mut transaction = volume.transaction()?;
        transaction.deliver(&sealed, mailbox, &Arrival { flags, date, now: now(), ..Arrival::default() })?;
        transaction.stage()?;
        self.staged += 1;
        if self.staged == BATCH {
            self.end(volume)?;
        }
        Ok(())
    }

    fn end(&mut self, volume: &mut Volume<File>) -> Result<(), Failure> {
        self.staged = 0;
        Ok(volume.commit()?)
    }
}

fn export(args: &StoreExport) -> Result<ExitCode, Failure> {
    let volume = open_as_root(&args.volume, true)?;
    let state = volume.state();
    let (account, _) = state.account_named(args.account.as_bytes()).ok_or("there is no such account")?;
    let mailboxes: Vec<_> = state.mailboxes().filter(|(_, mailbox)| mailbox.account == account).collect();
    let mut count = 0u64;
    let held = privileges::enter(&args.folder, None)?;
    let folder = held.way();
    for (number, mailbox) in mailboxes {
        let name = String::from_utf8_lossy(&mailbox.name).into_owned();
        if args.mailbox.as_ref().is_some_and(|wanted| *wanted != name) {
            continue;
        }
        match args.format {
            MailboxFormat::Maildir => {
                let writer = maildir::Writer::new(&folder, &name)?;
                for (uid, entry) in mailbox.from(0) {
                    let file = format!("{}.V{}U{uid}.sluice", entry.date, mailbox.uid_validity);
                    writer.add(&file, entry.flags, entry.date, |file| {
                        each_piece(&volume, entry.message.get(), |piece| Ok(file.write_all(piece)?))
                    })?;
                    count += 1;
                }
            }
            MailboxFormat::Mbox => {
                let path = folder.join(format!("{}.mbox", name.replace(['/', '\0'], "_")));
                let file = fs::File::create_new(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                let mut out = io::BufWriter::new(file);
                for (_, entry) in mailbox.from(0) {
                    let mut writer = mbox::Writer::begin(&mut out, &date_of(entry.date))?;
                    each_piece(&volume, entry.message.get(), |piece| Ok(writer.add(piece)?))?;
                    writer.end()?;
                    count += 1;
                }
                out.flush()?;
            }
        }
        let _ = number;
    }
    println!("{count} messages");
    Ok(ExitCode::SUCCESS)
}

fn list(args: &StoreList) -> Result<ExitCode, Failure> {
    let volume = open(&Place::enter(&args.volume)?, true, false)?;
    let state = volume.state();
    let Some(name) = &args.account else {
        for (_, account) in state.accounts() {
            let name = String::from_utf8_lossy(&account.name);
            println!("{name}\t{} messages\t{} bytes", account.used_messages, account.used_bytes);
        }
        return Ok(ExitCode::SUCCESS);
    };
    let (number, account) = state.account_named(name.as_bytes()).ok_or("there is no such account")?;
    let Some(name) = &args.mailbox else {
        for (name, &mailbox) in account.mailboxes.iter() {
            let Some(mailbox) = state.mailbox(mailbox) else { continue };
            let (count, unseen) = (mailbox.entries.len(), mailbox.unseen);
            println!("{}\t{count} messages\t{unseen} unseen\t{} bytes", String::from_utf8_lossy(name), mailbox.bytes);
        }
        return Ok(ExitCode::SUCCESS);
    };
    let (_, mailbox) = state.mailbox_named(number, name.as_bytes()).ok_or("there is no such mailbox")?;
    println!(
        "UIDVALIDITY {} UIDNEXT {} HIGHESTMODSEQ {}",
        mailbox.uid_validity, mailbox.uid_next, mailbox.highest_modseq
    );
    for (uid, entry) in mailbox.from(0) {
        let message = state.message(entry.message.get()).ok_or("the message is missing")?;
        let mut flags = flag_names(entry.flags);
        flags.extend(mailbox.keywords_of(entry.flags).map(str::to_owned));
        println!("{uid}\t{}\t{}\t{:032x}\t{}", message.size, date_of(entry.date), message.id, flags.join(" "));
    }
    Ok(ExitCode::SUCCESS)
}

fn cat(args: &StoreCat) -> Result<ExitCode, Failure> {
    let volume = open(&Place::enter(&args.volume)?, true, false)?;
    let state = volume.state();
    let (account, _) = state.account_named(args.account.as_bytes()).ok_or("there is no such account")?;
    let (_, mailbox) = state.mailbox_named(account, args.mailbox.as_bytes()).ok_or("there is no such mailbox")?;
    let entry = mailbox.entry(args.uid).ok_or("there is no message with this UID")?;
    let mut out = io::stdout().lock();
    each_piece(&volume, entry.message.get(), |piece| Ok(out.write_all(piece)?))?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The mailbox of an account; both are made if need be.
fn mailbox(volume: &mut Volume<File>, account: &str, name: &str) -> Result<u32, Failure> {
    let known = volume.state().account_named(account.as_bytes()).map(|(account, _)| account);
    if let Some((found, _)) = known.and_then(|account| volume.state().mailbox_named(account, name.as_bytes())) {
        return Ok(found);
    }
    let mut transaction = volume.transaction()?;
    let account = match known {
        Some(account) => account,
        None => transaction.add_account(account.as_bytes(), Quota::default())?,
    };
    let number = transaction.create(account, name.as_bytes(), SpecialUse::default())?;
    transaction.subscribe(account, name.as_bytes(), true)?;
    transaction.stage()?;
    volume.commit()?;
    Ok(number)
}

/// Stores all that can be read.
fn store_whole(volume: &mut Volume<File>, mut from: impl Read) -> Result<Sealed, Failure> {
    let mut append = volume.append(None)?;
    let mut piece = vec![0; 64 << 10];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(volume.seal(append, &[], 0)?),
            Ok(length) => volume.write(&mut append, &piece[..length])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn each_piece(
    volume: &Volume<File>,
    number: u64,
    mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let message = volume.state().message(number).ok_or("the message is missing")?;
    let mut content = Content::new(number, message);
    let mut piece = vec![0; volume.geometry().piece_bytes as usize];
    let mut offset = 0;
    loop {
        match volume.read_piece(&mut content, offset, &mut piece)? {
            0 => return Ok(()),
            length => {
                each(&piece[..length])?;
                offset += length as u64;
            }
        }
    }
}

fn path_of(state: &State, mailbox: u32) -> String {
    let Some(mailbox) = state.mailbox(mailbox) else { return String::new() };
    let account = state.account(mailbox.account).map_or(&[][..], |account| &account.name);
    format!("{} {}", String::from_utf8_lossy(account), String::from_utf8_lossy(&mailbox.name))
}

fn flag_names(flags: Flags) -> Vec<String> {
    let names = [
        (Flags::SEEN, "\\Seen"),
        (Flags::ANSWERED, "\\Answered"),
        (Flags::FLAGGED, "\\Flagged"),
        (Flags::DELETED, "\\Deleted"),
        (Flags::DRAFT, "\\Draft"),
    ];
    names.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, name)| (*name).to_owned()).collect()
}

/// As `From ` lines have it.
fn date_of(date: i64) -> String {
    let format = format_description!(
        "[weekday repr:short] [month repr:short] [day padding:space] [hour]:[minute]:[second] [year]"
    );
    let date = OffsetDateTime::from_unix_timestamp(date).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    date.format(format).unwrap_or_default()
}

fn now() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}
