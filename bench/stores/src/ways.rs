//! The ways: each stores a mail for all recipients, and returns when it is durable for all of them.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use store::{Arrival, Format, Options, Quota, SpecialUse, Volume, paper};

use crate::{Failure, file};

/// The columns.
pub const NAMES: [&str; 8] =
    ["sluice", "sluice, 16 at once", "maildir", "hard links", "mbox", "sqlite", "floor", "floor, 16 at once"];

/// How large volume and floor are.
const SPACE_BYTES: u64 = 1 << 30;
/// Mails that one flush serves where 16 connections deliver at once.
const AT_ONCE: u64 = 16;

/// A way to store mail.
pub trait Way {
    /// Stores the mail, or as many of it as share a flush; returns how many.
    fn deliver(&mut self, mail: &[u8]) -> Result<u64, Failure>;
}

/// Opens a way in an empty folder.
pub fn open(name: &str, folder: &Path, recipients: usize) -> Result<Box<dyn Way>, Failure> {
    Ok(match name {
        "sluice" => Box::new(Paper::open(folder, recipients)?),
        "sluice, 16 at once" => Box::new(Batches::open(folder, recipients)?),
        "maildir" => Box::new(Maildir::open(folder, recipients, false)?),
        "hard links" => Box::new(Maildir::open(folder, recipients, true)?),
        "mbox" => Box::new(Mbox::open(folder, recipients)?),
        "sqlite" => Box::new(Sqlite::open(folder, recipients)?),
        "floor" => Box::new(Floor::open(folder, recipients, 1)?),
        _ => Box::new(Floor::open(folder, recipients, AT_ONCE)?),
    })
}

/// Makes the file that volumes and floors are kept in, one after the other. All of it is written: blocks that never were cost
/// the file system an update of its own, and a volume in use has none.
pub fn prepare(folder: &Path) -> Result<(), Failure> {
    drop(file::File::create(&folder.join("space"), SPACE_BYTES)?);
    let file = OpenOptions::new().write(true).open(folder.join("space"))?;
    let zeros = vec![0; 1 << 20];
    (0..SPACE_BYTES >> 20).try_for_each(|at| file.write_all_at(&zeros, at << 20))?;
    file.sync_all()?;
    // What is cached in large pieces would be counted as written in large pieces.
    Ok(rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?)
}

fn space(folder: &Path) -> PathBuf {
    folder.with_file_name("space")
}

fn volume(folder: &Path) -> Result<Volume<file::File>, Failure> {
    let device = file::File::open(&space(folder), true)?;
    // Each has an identity of its own, so that what the one before has left is nothing to it.
    let identity = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
    let device = Volume::format(device, &Format::new(identity, 1))?;
    Ok(Volume::open(device, Options::default())?)
}

/// The paper's calls.
struct Paper {
    volume: Volume<file::File>,
    files: Vec<paper::File>,
}

impl Paper {
    fn open(folder: &Path, recipients: usize) -> Result<Self, Failure> {
        let mut volume = volume(folder)?;
        let files = (0..recipients).map(|number| paper::mail_open(&mut volume, format!("box{number}").as_bytes()));
        let files = files.collect::<Result<_, _>>()?;
        Ok(Paper { volume, files })
    }
}

impl Way for Paper {
    fn deliver(&mut self, mail: &[u8]) -> Result<u64, Failure> {
        paper::mail_nwrite(&mut self.volume, &self.files, mail, None)?;
        Ok(1)
    }
}

/// Sixteen mails, each a transaction of its own, with one flush.
struct Batches {
    volume: Volume<file::File>,
    mailboxes: Vec<u32>,
}

impl Batches {
    fn open(folder: &Path, recipients: usize) -> Result<Self, Failure> {
        let mut volume = volume(folder)?;
        let mut transaction = volume.transaction()?;
        let account = transaction.add_account(b"bench", Quota::default())?;
        let create = |number| transaction.create(account, format!("box{number}").as_bytes(), SpecialUse::default());
        let mailboxes = (0..recipients).map(create).collect::<Result<_, _>>()?;
        transaction.stage()?;
        volume.commit()?;
        Ok(Batches { volume, mailboxes })
    }
}

impl Way for Batches {
    fn deliver(&mut self, mail: &[u8]) -> Result<u64, Failure> {
        for _ in 0..AT_ONCE {
            let mut append = self.volume.append(None)?;
            self.volume.write(&mut append, mail)?;
            let sealed = self.volume.seal(append, &[], 0)?;
            let mut transaction = self.volume.transaction()?;
            for &mailbox in &self.mailboxes {
                transaction.deliver(&sealed, mailbox, &Arrival::default())?;
            }
            transaction.stage()?;
        }
        self.volume.commit()?;
        Ok(AT_ONCE)
    }
}

/// A file for each recipient, or one with a link for each.
struct Maildir {
    folders: Vec<PathBuf>,
    handles: Vec<File>,
    links: bool,
    count: u64,
}

impl Maildir {
    fn open(folder: &Path, recipients: usize, links: bool) -> Result<Self, Failure> {
        let folders: Vec<_> = (0..recipients).map(|number| folder.join(number.to_string())).collect();
        for folder in &folders {
            fs::create_dir_all(folder.join("tmp"))?;
            fs::create_dir(folder.join("new"))?;
        }
        let handles = folders.iter().map(|folder| File::open(folder.join("new"))).collect::<Result<_, _>>()?;
        Ok(Maildir { folders, handles, links, count: 0 })
    }

    fn write(folder: &Path, name: &str, mail: &[u8]) -> Result<PathBuf, Failure> {
        let path = folder.join("tmp").join(name);
        let mut file = File::create_new(&path)?;
        file.write_all(mail)?;
        file.sync_all()?;
        Ok(path)
    }
}

impl Way for Maildir {
    fn deliver(&mut self, mail: &[u8]) -> Result<u64, Failure> {
        self.count += 1;
        let name = format!("1700000000.M{}.bench", self.count);
        let mut first: Option<PathBuf> = None;
        for (folder, handle) in self.folders.iter().zip(&self.handles) {
            let place = folder.join("new").join(&name);
            match &first {
                Some(first) => fs::hard_link(first, &place)?,
                None => fs::rename(Maildir::write(folder, &name, mail)?, &place)?,
            }
            handle.sync_all()?;
            if self.links {
                first.get_or_insert(place);
            }
        }
        Ok(1)
    }
}

/// A file for each recipient that grows.
struct Mbox {
    files: Vec<File>,
}

impl Mbox {
    fn open(folder: &Path, recipients: usize) -> Result<Self, Failure> {
        let path = |number: usize| folder.join(number.to_string());
        let file = |number| OpenOptions::new().create(true).append(true).open(path(number));
        Ok(Mbox { files: (0..recipients).map(file).collect::<Result<_, _>>()? })
    }
}

impl Way for Mbox {
    fn deliver(&mut self, mail: &[u8]) -> Result<u64, Failure> {
        let entry = [b"From a@example.org Thu Jan  1 00:00:00 1970\n", mail, b"\n"].concat();
        for file in &mut self.files {
            file.write_all(&entry)?;
            file.sync_data()?;
        }
        Ok(1)
    }
}

/// A row for the mail, and one for each recipient.
struct Sqlite {
    connection: rusqlite::Connection,
    recipients: usize,
    uid: i64,
}

impl Sqlite {
    fn open(folder: &Path, recipients: usize) -> Result<Self, Failure> {
        let connection = rusqlite::Connection::open(folder.join("mail.db"))?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE message (number INTEGER PRIMARY KEY, content BLOB);
             CREATE TABLE entry (mailbox INTEGER, uid INTEGER, message INTEGER, flags INTEGER, PRIMARY KEY (mailbox, uid))
                 WITHOUT ROWID;",
        )?;
        Ok(Sqlite { connection, recipients, uid: 0 })
    }
}

impl Way for Sqlite {
    fn deliver(&mut self, mail: &[u8]) -> Result<u64, Failure> {
        self.uid += 1;
        let transaction = self.connection.transaction()?;
        transaction.prepare_cached("INSERT INTO message (content) VALUES (?1)")?.execute([mail])?;
        let message = transaction.last_insert_rowid();
        {
            let mut insert = transaction.prepare_cached("INSERT INTO entry VALUES (?1, ?2, ?3, 0)")?;
            for mailbox in 0..self.recipients as i64 {
                insert.execute([mailbox, self.uid, message])?;
            }
        }
        transaction.commit()?;
        Ok(1)
    }
}

/// One record with 64 bytes for each recipient, and one flush: nobody who syncs is faster.
struct Floor {
    file: File,
    recipients: usize,
    mails: u64,
    at: u64,
}

impl Floor {
    fn open(folder: &Path, recipients: usize, mails: u64) -> Result<Self, Failure> {
        Ok(Floor { file: OpenOptions::new().write(true).open(space(folder))?, recipients, mails, at: 0 })
    }
}

impl Way for Floor {
    fn deliver(&mut self, mail: &[u8]) -> Result<u64, Failure> {
        let mut record = Vec::new();
        for _ in 0..self.mails {
            record.extend_from_slice(mail);
            record.resize(record.len() + 64 * self.recipients, 1);
        }
        if self.at + record.len() as u64 > SPACE_BYTES {
            self.at = 0;
        }
        self.file.write_all_at(&record, self.at)?;
        self.file.sync_data()?;
        self.at += record.len() as u64;
        Ok(self.mails)
    }
}
