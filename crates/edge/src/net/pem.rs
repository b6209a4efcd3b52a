//! Certificates in files of PEM.

use std::path::Path;

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

/// The certificates in a file, one at least.
///
/// # Errors
/// When there is none; the message names the file.
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(|all| all.collect::<Result<Vec<_>, _>>());
    let all = read.map_err(|error| unreadable(file, &error))?;
    if all.is_empty() { Err(format!("{}: no certificate in it", file.display())) } else { Ok(all) }
}

/// What is said of such a file.
pub fn unreadable(file: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", file.display())
}
