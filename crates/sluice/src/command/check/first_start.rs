//! Files that may be missing before the first start: credentials, which systemd hands to the service alone, and
//! folders that the service or systemd makes.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use edge::settings::{Address, Certificate, Tls};

use super::modes;
use crate::config::Config;
use crate::config::credentials::is_elsewhere;

/// The folder that systemd makes for the service (`RuntimeDirectory=`).
const RUNTIME: &str = "/run/sluice";

/// Says it, a line each.
pub fn said(config: &Config) -> Vec<String> {
    let of_tls = config.tls.certificates.iter().flat_map(files).chain(config.tls.signing_authority.as_deref());
    let credentials = of_tls.filter(|path| is_elsewhere(path));
    let credentials: BTreeSet<&Path> = credentials.chain(config.absent.iter().map(PathBuf::as_path)).collect();
    let credentials = credentials.into_iter();
    let mut all: Vec<String> = credentials
        .map(|path| format!("{}: a credential, which systemd hands to the service", path.display()))
        .collect();
    let folders: BTreeSet<PathBuf> =
        modes::written(config).into_iter().filter(|path| is_folder_to_make(path)).collect();
    all.extend(folders.iter().map(|folder| format!("folder {}, which would be made", folder.display())));
    all.extend(sockets(config).into_iter().map(|folder| match folder.starts_with(RUNTIME) {
        true => format!("folder {}, which systemd makes for the service", folder.display()),
        false => format!("folder {}, which is not there: a socket would be in it", folder.display()),
    }));
    all
}

/// The settings without the signing authority if it is a credential, and without the certificates of which a file is a credential that cannot be read here.
///
/// # Errors
/// When the other file of one cannot be read either.
pub fn without_credentials(tls: &Tls) -> Result<Tls, String> {
    let mut tls = tls.clone();
    let (here, elsewhere) =
        tls.certificates.into_iter().partition(|certificate| files(certificate).all(|path| !is_elsewhere(path)));
    tls.certificates = here;
    tls.signing_authority = tls.signing_authority.filter(|path| !is_elsewhere(path));
    let elsewhere: Vec<Certificate> = elsewhere;
    for path in elsewhere.iter().flat_map(files).filter(|path| !is_elsewhere(path)) {
        File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(tls)
}

fn files(certificate: &Certificate) -> impl Iterator<Item = &Path> {
    let files = match certificate {
        Certificate::Files { chain, key } => [Some(&**chain), Some(&**key)],
        Certificate::Acme { .. } => [None, None],
    };
    files.into_iter().flatten()
}

/// Files in a folder have an ending here, or are the store's.
fn is_folder_to_make(path: &Path) -> bool {
    path.extension().is_none()
        && path.file_name().is_none_or(|name| name != "mail")
        && matches!(path.try_exists(), Ok(false))
}

/// Folders of sockets that are not there.
fn sockets(config: &Config) -> BTreeSet<PathBuf> {
    let listeners = config.listeners.iter().map(|listener| &listener.place.address);
    let store = config.store.iter().flat_map(|store| store.doors().map(|(_, address)| address));
    let addresses = listeners.chain(&config.clamd.addresses).chain(store);
    let folders = addresses.filter_map(|address| match address {
        Address::Unix(path) => path.parent().map(Path::to_path_buf),
        _ => None,
    });
    folders.filter(|folder| matches!(folder.try_exists(), Ok(false))).collect()
}
