//! The calls of the spam-aware mail server's paper (Pathak, Jafri, Hu, 2009): whole mails in named mailboxes, by position.
//!
//! What is called `MFS` there is one shared file and a file of keys for each mailbox; here it is a volume with one account.

use alloc::vec::Vec;

use crate::append::Sealed;
use crate::device::Device;
use crate::error::{Error, Refused};
use crate::operation::Uids;
use crate::read::Content;
use crate::state::{Quota, SpecialUse};
use crate::transaction::Arrival;
use crate::volume::Volume;

const ACCOUNT: &[u8] = b"mfs";

/// An open mailbox, at one of its mails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    mailbox: u32,
    uid: u32,
}

/// Opens a mailbox, which is made if missing, at its first mail.
pub fn mail_open<D: Device>(volume: &mut Volume<D>, name: &[u8]) -> Result<File, Error> {
    let known = volume.state().account_named(ACCOUNT).map(|(account, _)| account);
    if let Some((mailbox, _)) = known.and_then(|account| volume.state().mailbox_named(account, name)) {
        return Ok(File { mailbox, uid: 1 });
    }
    let mut transaction = volume.transaction()?;
    let account = match known {
        Some(account) => account,
        None => transaction.add_account(ACCOUNT, Quota::default())?,
    };
    let mailbox = transaction.create(account, name, SpecialUse::default())?;
    transaction.stage()?;
    volume.commit()?;
    Ok(File { mailbox, uid: 1 })
}

/// Goes to the mail at `position`, counted from 0; to the end if there are fewer.
pub fn mail_seek<D: Device>(volume: &Volume<D>, file: &mut File, position: usize) -> Result<(), Error> {
    let mailbox = volume.state().mailbox(file.mailbox).ok_or(Refused::NoSuchMailbox)?;
    file.uid = mailbox.from(0).nth(position).map_or(mailbox.uid_next, |(uid, _)| uid);
    Ok(())
}

/// Writes a mail to several mailboxes, once. With a known id the mail has to equal the stored one; another one is
/// refused as [`Refused::KnownIdOtherContent`], and nothing is written. Durable when it returns.
pub fn mail_nwrite<D: Device>(
    volume: &mut Volume<D>,
    files: &[File],
    mail: &[u8],
    id: Option<u128>,
) -> Result<(), Error> {
    let mut append = volume.append(id)?;
    volume.write(&mut append, mail)?;
    let sealed: Sealed = volume.seal(append, &[], 0)?;
    let mut transaction = volume.transaction()?;
    for file in files {
        transaction.deliver(&sealed, file.mailbox, &Arrival::default())?;
    }
    transaction.stage()?;
    volume.commit()
}

/// The mail where the mailbox stands, which then stands at the next one; nothing at its end.
pub fn mail_read<D: Device>(volume: &Volume<D>, file: &mut File) -> Result<Option<Vec<u8>>, Error> {
    let mailbox = volume.state().mailbox(file.mailbox).ok_or(Refused::NoSuchMailbox)?;
    let Some((uid, entry)) = mailbox.from(file.uid).next() else { return Ok(None) };
    let number = entry.message.get();
    let message = volume.state().message(number).ok_or(Refused::NoSuchMessage)?;
    let mut content = Content::new(number, message);
    let mut mail = Vec::new();
    let mut piece = alloc::vec![0; volume.geometry().piece_bytes as usize];
    loop {
        let read = volume.read_piece(&mut content, mail.len() as u64, &mut piece);
        match read.map_err(|error| volume.present(error, number))? {
            0 => break,
            length => mail.extend_from_slice(&piece[..length]),
        }
    }
    file.uid = uid.saturating_add(1);
    Ok(Some(mail))
}

/// Deletes the mail where the mailbox stands, which then stands at the next one; whether there was one.
pub fn mail_delete<D: Device>(volume: &mut Volume<D>, file: &mut File) -> Result<bool, Error> {
    let mailbox = volume.state().mailbox(file.mailbox).ok_or(Refused::NoSuchMailbox)?;
    let Some((uid, _)) = mailbox.from(file.uid).next() else { return Ok(false) };
    let mut transaction = volume.transaction()?;
    transaction.expunge(file.mailbox, &Uids::from_iter([uid]))?;
    transaction.stage()?;
    volume.commit()?;
    file.uid = uid.saturating_add(1);
    Ok(true)
}

/// Closes a mailbox: there is nothing to be done.
pub fn mail_close(_file: File) {}
