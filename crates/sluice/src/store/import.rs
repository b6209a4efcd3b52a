//! `sluice store import`: mail of Maildirs and mboxes on its way into the store.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use mailbox::File;
use mailbox::digest::{Digest, thread};
use mailbox::ends::LineEnds;
use store::{Append, Arrival, Quota, Sealed, SpecialUse, Volume};

use super::marks::{self, Marks};
use super::volume::{named, open_as_root, parted};
use super::{maildir, mbox};
use crate::cli::StoreImport;
use crate::output::Failure;
use crate::process::privileges::Place;

/// Mails that are imported with one flush.
const BATCH: usize = 64;

/// Does what the command line says.
pub fn run(args: &StoreImport) -> Result<ExitCode, Failure> {
    let (volume, source) = parted(&args.place, &args.words, 1);
    let [source] = source else { return Err("a Maildir or an mbox is needed".into()) };
    let mut volume = open_as_root(&Place::find(&named(&args.place, volume)?)?, false)?;
    // What its owner has planted there is read with the owner's rights.
    let source = Place::enter(source.as_ref())?;
    let count = match maildir::is_one(&source.way()) {
        true => import_maildir(&mut volume, args, &source.way())?,
        false => import_mbox(&mut volume, args, &source.way())?,
    };
    furnish(&mut volume, &args.account)?;
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
            let sealed = Incoming::whole(volume, file)?;
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
    content: Incoming,
    head: Option<Vec<u8>>,
    marks: Marks,
}

impl Arriving {
    fn new(volume: &mut Volume<File>, mailbox: u32, date: Option<i64>) -> Result<Arriving, Failure> {
        let content = Incoming::new(volume)?;
        Ok(Arriving { mailbox, date, content, head: Some(Vec::new()), marks: Marks::default() })
    }

    fn add(&mut self, volume: &mut Volume<File>, piece: &[u8]) -> Result<(), Failure> {
        let Some(head) = &mut self.head else {
            return self.content.write(volume, piece);
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
            self.content.write(volume, piece)?;
        }
        Ok(())
    }

    /// Stages the mail; how many that are.
    fn end(mut self, volume: &mut Volume<File>, importer: &mut Importer) -> Result<u64, Failure> {
        self.end_head(volume, None)?;
        let sealed = self.content.seal(volume)?;
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

/// The mailbox of an account; both are made if need be.
pub fn mailbox(volume: &mut Volume<File>, account: &str, name: &str) -> Result<u32, Failure> {
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

/// Gives an account whose mailboxes are for nothing those that a new one has.
pub fn furnish(volume: &mut Volume<File>, account: &str) -> Result<(), Failure> {
    let Some((number, _)) = volume.state().account_named(account.as_bytes()) else { return Ok(()) };
    let mut transaction = volume.transaction()?;
    mailbox::furnish(&mut transaction, number)?;
    transaction.stage()?;
    Ok(volume.commit()?)
}

/// A mail on its way into the store, with the digest that mail programs ask for.
pub struct Incoming {
    append: Append,
    ends: LineEnds,
    digest: Digest,
}

impl Incoming {
    fn new(volume: &mut Volume<File>) -> Result<Incoming, Failure> {
        Ok(Incoming { append: volume.append(None)?, ends: LineEnds::default(), digest: Digest::default() })
    }

    /// Stores all that can be read, as lines of mail.
    pub fn whole(volume: &mut Volume<File>, mut from: impl Read) -> Result<Sealed, Failure> {
        let mut incoming = Incoming::new(volume)?;
        let mut piece = vec![0; 64 << 10];
        loop {
            match from.read(&mut piece) {
                Ok(0) => return incoming.seal(volume),
                Ok(length) => incoming.write(volume, &piece[..length])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn write(&mut self, volume: &mut Volume<File>, piece: &[u8]) -> Result<(), Failure> {
        let lines = self.ends.of(piece);
        self.digest.read(lines);
        Ok(volume.write(&mut self.append, lines)?)
    }

    fn seal(self, volume: &mut Volume<File>) -> Result<Sealed, Failure> {
        let digest = self.digest.finish();
        Ok(volume.seal(self.append, &digest, thread(&digest))?)
    }
}

/// Seconds since 1970.
pub fn now() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}
