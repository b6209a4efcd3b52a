//! Certificates in files of PEM.

use std::path::Path;

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};

/// The certificates in a file, one at least.
///
/// # Errors
/// When there is none; the message names the file.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_slice_iter(&text(file)?).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| unreadable(file, &error))?;
    if all.is_empty() { Err(format!("{}: no certificate in it", file.display())) } else { Ok(all) }
}

/// A file with PEM. A byte order mark in front would hide its first item.
///
/// # Errors
/// When it cannot be read; the message names the file.
pub fn text(file: &Path) -> Result<Vec<u8>, String> {
    let mut text = std::fs::read(file).map_err(|error| unreadable(file, &error))?;
    if text.starts_with(b"\xef\xbb\xbf") {
        text.drain(..3);
    }
    Ok(text)
}

/// The private key in a file (`BEGIN PRIVATE KEY`), in DER.
///
/// # Errors
/// When there is none; the message names the file and says nothing of what is in it.
pub fn private_key(file: &Path) -> Result<Vec<u8>, String> {
    let read = PrivatePkcs8KeyDer::from_pem_file(file);
    read.map(|key| key.secret_pkcs8_der().to_vec()).map_err(|error| unreadable(file, &error))
}

/// The public key in a file (`BEGIN PUBLIC KEY`), in DER.
///
/// # Errors
/// When there is none; the message names the file.
pub fn public_key(file: &Path) -> Result<Vec<u8>, String> {
    let read = SubjectPublicKeyInfoDer::from_pem_file(file);
    read.map(|key| key.to_vec()).map_err(|error| unreadable(file, &error))
}

/// Error text for an unreadable file.
pub fn unreadable(file: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", file.display())
}
