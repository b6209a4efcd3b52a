//! The folder of a store: its volume and its accounts, which are made if they are not there.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use mailbox::File;
use mailbox::accounts::{self, Account, Accounts};
use store::{Format, Options, Volume};

use super::volume::{fill, segment_bytes};
use crate::config::StoreSettings;
use crate::output::Failure;

/// Account made when there is no configuration.
pub const NEWCOMER: &str = "me@example.org";

/// Name and password of the account that is made for a newcomer.
pub struct Newcomer {
    /// Its address.
    pub name: &'static str,
    /// Made anew at each start.
    pub password: String,
}

/// Opens a store, which grows to `size` if it has less; none if another process has it.
///
/// # Errors
/// When it cannot be opened for another reason.
pub fn open(path: &Path, size: Option<u64>) -> Result<Option<Volume<File>>, Failure> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let store = path.display();
    let mut file = match File::open(path, true) {
        Err(error) if error.kind() == ErrorKind::ResourceBusy => return Ok(None),
        file => file.map_err(|error| named(&error))?,
    };
    if let Err(error) = file.lengthen(size.unwrap_or(0)) {
        tracing::warn!(%store, %error, "the store stays as large as it is");
    }
    fill(&file, path);
    let volume = Volume::open(file, Options::default());
    let mut volume = volume.map_err(|error| format!("{}; sluice store check looks into it", named(&error)))?;
    let before = volume.usage().total_bytes;
    if volume.grow().map_err(|error| named(&error))? > 0 {
        tracing::info!(%store, bytes = volume.usage().total_bytes, before, "the store has grown");
    }
    if size.is_some_and(|size| size < before) {
        tracing::warn!(%store, bytes = before, "a store does not become smaller: [store] size");
    }
    Ok(Some(volume))
}

/// Makes a store, unless there is one. It gets its name when it is whole.
///
/// # Errors
/// When there is no room.
pub fn make(path: &Path, size: u64) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    let beside = path.with_extension("new");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let format = format(size)?;
    let made = File::create(&beside, size).map_err(|error| {
        match rustix::fs::statvfs(path.parent().unwrap_or(Path::new("."))) {
            Ok(disk) if error.kind() == ErrorKind::StorageFull => {
                let free = disk.f_bavail.saturating_mul(disk.f_frsize) >> 20;
                io::Error::other(format!("{} MiB are wanted and {free} MiB are free: [store] size", size >> 20))
            }
            _ => error,
        }
    });
    let formatted =
        made.and_then(|file| Volume::format(file, &format).map_err(|error| io::Error::other(error.to_string())));
    if let Err(error) = formatted.and_then(|_| fs::rename(&beside, path)) {
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    fs::File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// The format of a store of this size, which is to be made.
///
/// # Errors
/// When there is no randomness.
pub fn format(size: u64) -> io::Result<Format> {
    let mut identity = [0; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut identity)?;
    let made = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut format = Format::new(u128::from_le_bytes(identity), u32::try_from(made).unwrap_or(u32::MAX));
    format.segment_bytes = segment_bytes(size, format.segment_bytes);
    format.piece_bytes = format.piece_bytes.min((format.segment_bytes / 4).saturating_sub(store::HEADER_BYTES as u32));
    Ok(format)
}

/// The accounts; none yet if there is no such file. Where machines share them, the file that is made is empty.
///
/// # Errors
/// When the file cannot be made or read.
pub fn accounts(path: &Path, is_shared: bool) -> Result<Accounts, Failure> {
    let named = |error: io::Error| format!("{}: {error}", path.display());
    if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let text: &[u8] = if is_shared { b"" } else { b"# name:hash:settings, see sluice account\n" };
        file.and_then(|mut file| file.write_all(text)).map_err(named)?;
        tracing::warn!(file = %path.display(), "there are no accounts yet: sluice account add");
    }
    Ok(Accounts::open(path).map_err(named)?)
}

/// Makes the folder of a store.
///
/// # Errors
/// When that cannot be.
pub fn prepare(settings: &StoreSettings) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(&settings.folder)
}

/// Gives a newcomer an account with a password that was not there before. All other accounts stay.
///
/// # Errors
/// When the file cannot be written.
pub fn welcome(settings: &StoreSettings, name: &'static str) -> Result<Newcomer, Failure> {
    let password = accounts::random_password()?;
    let path = settings.accounts();
    let change = |found: Option<Account>| {
        let mut account = found.map_or_else(|| Account::new(name), Ok)?;
        account.set_password(password.as_bytes()).map_err(|error| error.to_string())?;
        Ok(Some(account))
    };
    accounts::edit(&path, name, change).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Newcomer { name, password })
}
