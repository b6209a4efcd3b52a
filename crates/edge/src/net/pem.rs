//! Certificates in files of PEM.

use std::path::Path;

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};

/// The certificates in a file, one at least.
///
/// # Errors
/// When there is none; the message names the file.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(|all| all.collect::<Result<Vec<_>, _>>());
    let all = read.map_err(|error| unreadable(file, &error))?;
    if all.is_empty() { Err(format!("{}: no certificate in it", file.display())) } else { Ok(all) }
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
