//! `sluice store`: makes a volume, looks at it, checks it, and moves mail in and out.
//!
//! Mail is streamed: what is held of it is a piece.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use mailbox::File;
use mailbox::ends::LineEnds;
use serde_json::Value;
use store::{Arrival, Device as _, Format, Quota, Sealed, SpecialUse, Volume};

use super::look::Look;
use super::marks::{self, Marks};
use super::source::{Reading, Source};
use super::volume::{named, open, open_as_root, parted, segment_bytes};
use super::{maildir, mbox};
use crate::cli::values;
use crate::cli::{
    self, StoreCat, StoreCheck, StoreCommand, StoreCreate, StoreDeliver, StoreImport, StoreList, StoreStat,
};
use crate::output::Failure;
use crate::process::privileges::{self, Place};

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
        mailboxes.push((account, mailbox(&mut volume, account, "INBOX")?));
    }
    let mut refused = false;
    for path in files.iter().map(Path::new) {
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
    let (volume, source) = parted(&args.place, &args.words, 1);
    let [source] = source else { return Err("a Maildir or an mbox is needed".into()) };
    let mut volume = open_as_root(&Place::find(&named(&args.place, volume)?)?, false)?;
    // What its owner has planted there is read with the owner's rights.
    let source = Place::enter(source.as_ref())?;
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
            let named = |error: io::Error| format!("{}: {error}", mail.path.display());
            let mut file = BufReader::new(fs::File::open(&mail.path).map_err(named)?);
            if let Some(what) = maildir::is_wrapped(file.fill_buf().map_err(named)?) {
                return Err(format!("{}: {what}", mail.path.display()).into());
            }
            let sealed = store_whole(volume, file)?;
            let keywords: Vec<&str> = mail.keywords.iter().map(String::as_str).collect();
            let arrival = Arrival { flags: mail.flags, keywords: &keywords, date: mail.date, now: now() };
            importer.add(volume, &sealed, mailbox, &arrival)?;
            count += 1;
        }
    }
    importer.end(volume)?;
    Ok(count)
}

fn import_mbox(volume: &mut Volume<File>, args: &StoreImport, source: &Path) -> Result<u64, Failure> {
    let file = fs::File::open(source).map_err(|error| format!("{}: {error}", source.display()))?;
    let name = args.mailbox.as_deref().unwrap_or("INBOX");
    let (mut count, mut importer) = (0, Importer::default());
    let mut arriving: Option<Arriving> = None;
    mbox::read(BufReader::with_capacity(256 << 10, file), |item| -> Result<(), Failure> {
        match item {
            mbox::Item::Content(piece) => {
                if let Some(mail) = &mut arriving {
                    mail.add(volume, piece)?;
                }
            }
            mbox::Item::Mail(date) => {
                if let Some(former) = arriving.take() {
                    count += former.end(volume, &mut importer)?;
                }
                let mailbox = mailbox(volume, &args.account, name)?;
                arriving = Some(Arriving::new(volume, mailbox, date)?);
            }
        }
        Ok(())
    })?;
    if let Some(last) = arriving {
        count += last.end(volume, &mut importer)?;
    }
    importer.end(volume)?;
    Ok(count)
}

/// A mail of an mbox on its way into the store. Its head is held until it is whole, for what the file says of the mail stands in it.
struct Arriving {
    mailbox: u32,
    date: Option<i64>,
    append: store::Append,
    ends: LineEnds,
    head: Option<Vec<u8>>,
    marks: Marks,
}

impl Arriving {
    fn new(volume: &mut Volume<File>, mailbox: u32, date: Option<i64>) -> Result<Arriving, Failure> {
        let append = volume.append(None)?;
        let (ends, marks) = (LineEnds::default(), Marks::default());
        Ok(Arriving { mailbox, date, append, ends, head: Some(Vec::new()), marks })
    }

    fn add(&mut self, volume: &mut Volume<File>, piece: &[u8]) -> Result<(), Failure> {
        let Some(head) = &mut self.head else {
            return Ok(volume.write(&mut self.append, self.ends.of(piece))?);
        };
        head.extend_from_slice(piece);
        match marks::head_len(head) {
            None if head.len() < marks::HEAD_BYTES_MAX => Ok(()),
            length => self.end_head(volume, length),
        }
    }

    /// The head is so long, or all that there is.
    fn end_head(&mut self, volume: &mut Volume<File>, length: Option<usize>) -> Result<(), Failure> {
        let Some(bytes) = self.head.take() else { return Ok(()) };
        let (head, body) = bytes.split_at(length.unwrap_or(bytes.len()));
        let (head, marks) = marks::take(head);
        self.marks = marks;
        for piece in [&head[..], body] {
            volume.write(&mut self.append, self.ends.of(piece))?;
        }
        Ok(())
    }

    /// Stages the mail; how many that are.
    fn end(mut self, volume: &mut Volume<File>, importer: &mut Importer) -> Result<u64, Failure> {
        self.end_head(volume, None)?;
        let sealed = volume.seal(self.append, &[], 0)?;
        if self.marks.is_none {
            return Ok(0);
        }
        let (keywords, now): (Vec<&str>, _) = (self.marks.keywords.iter().map(String::as_str).collect(), now());
        let arrival = Arrival { flags: self.marks.flags, keywords: &keywords, date: self.date.unwrap_or(now), now };
        importer.add(volume, &sealed, self.mailbox, &arrival)?;
        Ok(1)
    }
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
        sealed: &Sealed,
        mailbox: u32,
        arrival: &Arrival<'_>,
    ) -> Result<(), Failure> {
        let mut transaction = volume.transaction()?;
        transaction.deliver(sealed, mailbox, arrival)?;
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
    let mut out = io::stdout().lock();
    let reading = source.content(number, &mut |piece| Ok(out.write_all(piece)?))?;
    out.flush()?;
    match reading {
        Reading::Whole => Ok(ExitCode::SUCCESS),
        Reading::Gone => Err("the message was removed meanwhile".into()),
        Reading::Damaged(error) => Err(error.into()),
    }
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

/// Stores all that can be read, as lines of mail.
fn store_whole(volume: &mut Volume<File>, mut from: impl Read) -> Result<Sealed, Failure> {
    let (mut append, mut ends) = (volume.append(None)?, LineEnds::default());
    let mut piece = vec![0; 64 << 10];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(volume.seal(append, &[], 0)?),
            Ok(length) => volume.write(&mut append, ends.of(&piece[..length]))?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}
