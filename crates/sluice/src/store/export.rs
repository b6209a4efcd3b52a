//! `sluice store export`: mailboxes as Maildir folders or mbox files; also of a store that a server has open.
//!
//! With `--incremental` the folder of an earlier run is brought up to date. The name of a mail's file has the UIDVALIDITY and the
//! UID, which say for ever which mail it is, so a mail that is there as long as it should be is not read again.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use store::Flags;

use super::look::Look;
use super::source::{Reading, Source};
use super::volume::{named, parted};
use super::{maildir, mbox, names};
use crate::cli::{MailboxFormat, StoreExport};
use crate::output::Failure;
use crate::process::privileges::{self, Place};

/// Prefix of the internal accounts: queue and index.
const OWN: &str = "sluice ";

/// Exports an account, or all.
pub fn run(args: &StoreExport) -> Result<ExitCode, Failure> {
    let (volume, folder) = parted(&args.place, &args.words, 1);
    let [folder] = folder else { return Err("a folder is needed".into()) };
    if args.incremental && args.format == MailboxFormat::Mbox {
        return Err("an mbox is written as a whole: --incremental is for Maildir folders".into());
    }
    // Mail is for nobody else to read.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let place = Place::find(&named(&args.place, volume)?)?;
    let mut source = Source::open(&place, true)?;
    let accounts = match &args.account {
        Some(account) => vec![account.clone()],
        None => users(&mut source)?,
    };
    let mut export = Export { source, args, tally: Tally::default() };
    let held = privileges::enter(Path::new(folder), None)?;
    for account in &accounts {
        // Its path may be one of its descriptor.
        let own = args.account.is_none().then(|| held.make(Path::new(&names::folder(account)))).transpose()?;
        export.account(account, &own.as_ref().unwrap_or(&held).way())?;
    }
    // Mails that are named but empty would be kept by the next run.
    rustix::fs::syncfs(fs::File::open(held.way())?)?;
    export.tally.print(args.incremental);
    Ok(ExitCode::from(u8::from(export.tally.damaged > 0)))
}

fn users(source: &mut Source) -> Result<Vec<String>, Failure> {
    let rows = source.all(&Look::Accounts)?;
    let names = rows.iter().filter_map(|row| row["account"].as_str());
    Ok(names.filter(|name| !name.starts_with(OWN)).map(str::to_owned).collect())
}

/// Counts of an export.
#[derive(Debug, Default)]
struct Tally {
    kept: u64,
    written: u64,
    removed: u64,
    damaged: u64,
}

impl Tally {
    fn print(&self, is_incremental: bool) {
        let Tally { kept, written, removed, damaged } = self;
        let damaged = if *damaged > 0 { format!(", {damaged} damaged and left out") } else { String::new() };
        match is_incremental {
            true => println!("{} messages: {written} written, {removed} removed{damaged}", kept + written),
            false => println!("{written} messages{damaged}"),
        }
    }
}

struct Export<'a> {
    source: Source,
    args: &'a StoreExport,
    tally: Tally,
}

/// A mailbox, as of one moment.
struct Listed {
    name: String,
    uid_validity: u64,
    mails: Vec<Mail>,
}

struct Mail {
    uid: u64,
    message: u64,
    size: u64,
    date: i64,
    flags: Flags,
}

impl Export<'_> {
    fn account(&mut self, account: &str, folder: &Path) -> Result<(), Failure> {
        let mailboxes = self.mailboxes(account)?;
        let mut written = Vec::new();
        for mailbox in &mailboxes {
            match self.args.format {
                MailboxFormat::Maildir => written.push(self.maildir(account, mailbox, folder)?),
                MailboxFormat::Mbox => self.mbox(account, mailbox, folder)?,
            }
        }
        if self.args.incremental && self.args.mailbox.is_none() {
            self.tally.removed += maildir::remove_others(folder, &written)?;
        }
        Ok(())
    }

    fn mailboxes(&mut self, account: &str) -> Result<Vec<Listed>, Failure> {
        let mut all: Vec<Listed> = Vec::new();
        let look = Look::Messages { account: account.to_owned(), mailbox: self.args.mailbox.clone() };
        self.source.rows(&look, &mut |row| {
            let number = |key: &str| row[key].as_u64().ok_or(format!("a row without {key}"));
            match (row["mailbox"].as_str(), all.last_mut()) {
                (Some(name), _) => {
                    all.push(Listed { name: name.into(), uid_validity: number("uid_validity")?, mails: Vec::new() });
                }
                (None, Some(mailbox)) => mailbox.mails.push(Mail {
                    uid: number("uid")?,
                    message: number("message")?,
                    size: number("size")?,
                    date: row["date"].as_i64().unwrap_or_default(),
                    flags: Flags(number("bits")?),
                }),
                (None, None) => {}
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Returns the folder of the mailbox.
    fn maildir(&mut self, account: &str, mailbox: &Listed, folder: &Path) -> Result<PathBuf, Failure> {
        let mut writer = maildir::Writer::new(folder, &mailbox.name)?;
        if self.args.incremental {
            writer.find_present()?;
        }
        for mail in &mailbox.mails {
            let name = format!("{}.V{}U{}{}", mail.date, mailbox.uid_validity, mail.uid, maildir::SUFFIX);
            if writer.keep(&name, mail.flags, mail.size)? {
                self.tally.kept += 1;
                continue;
            }
            let source = &mut self.source;
            let mut reading = Reading::Whole;
            writer.add(&name, mail.flags, mail.date, |file| {
                reading = source.content(mail.message, &mut |piece| Ok(file.write_all(piece)?))?;
                Ok(reading == Reading::Whole)
            })?;
            self.count(&reading, account, mailbox, mail);
        }
        self.tally.removed += writer.remove_present()?;
        Ok(writer.into_folder())
    }

    fn mbox(&mut self, account: &str, mailbox: &Listed, folder: &Path) -> Result<(), Failure> {
        let path = folder.join(names::mbox(&mailbox.name));
        let file = fs::File::create_new(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut out = io::BufWriter::new(file);
        for mail in &mailbox.mails {
            let mut writer = mbox::Writer::begin(&mut out, &mbox::date_of(mail.date))?;
            let reading = self.source.content(mail.message, &mut |piece| Ok(writer.add(piece)?))?;
            writer.end()?;
            self.count(&reading, account, mailbox, mail);
        }
        Ok(out.flush()?)
    }

    fn count(&mut self, reading: &Reading, account: &str, mailbox: &Listed, mail: &Mail) {
        match reading {
            Reading::Whole => self.tally.written += 1,
            Reading::Gone => {}
            Reading::Damaged(error) => {
                self.tally.damaged += 1;
                eprintln!("sluice: {account} {} UID {}: {error}", mailbox.name, mail.uid);
            }
        }
    }
}
