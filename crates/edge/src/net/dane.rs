//! Certificates by records of the DNS (RFC 6698, 7671, 7672).
//!
//! With usage 3 a certificate, or its key, is known by itself: neither its name nor its time matters. With usage 2 an authority is known, which
//! has to have issued the certificate for one of the names of the hop; it is among the certificates that the hop shows, or whole in the
//! record. One record that matches is enough.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256, Sha512};
use tokio_rustls::rustls;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::pem;
use crate::settings::Tlsa;

/// Certificates that a hop shows and that are looked at.
const CERTIFICATES_MAX: usize = 10;

/// Takes certificates that a record matches.
#[derive(Debug)]
pub struct Dane {
    records: Vec<Tlsa>,
    names: Vec<ServerName<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Dane {
    /// By these records, for a hop of these names.
    pub fn new(records: Vec<Tlsa>, names: &[String], provider: Arc<CryptoProvider>) -> Dane {
        let names = names.iter().filter_map(|name| ServerName::try_from(name.clone()).ok()).collect();
        Dane { records, names, provider }
    }

    /// Authorities that a record with usage 2 names.
    fn authorities(&self, shown: &[CertificateDer<'_>]) -> RootCertStore {
        let records = || self.records.iter().filter(|record| record.usage == 2);
        let is_named = |certificate: &&CertificateDer<'_>| records().any(|record| is_match(record, certificate));
        let whole = records().filter(|record| (record.selector, record.matching) == (0, 0));
        let whole = whole.map(|record| CertificateDer::from(record.data.clone()));
        let mut roots = RootCertStore::empty();
        let shown = shown.iter().take(CERTIFICATES_MAX).filter(is_named).map(|found| found.clone().into_owned());
        roots.add_parsable_certificates(shown.chain(whole));
        roots
    }
}

impl ServerCertVerifier for Dane {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.records.iter().any(|record| record.usage == 3 && is_match(record, certificate)) {
            return Ok(ServerCertVerified::assertion());
        }
        let mut error = CertificateError::ApplicationVerificationFailure.into();
        let roots = self.authorities(intermediates);
        if roots.is_empty() {
            return Err(error);
        }
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), self.provider.clone()).build();
        let verifier = verifier.map_err(|_| error.clone())?;
        for name in &self.names {
            match verifier.verify_server_cert(certificate, intermediates, name, ocsp, now) {
                Ok(verified) => return Ok(verified),
                Err(wrong) => error = wrong,
            }
        }
        Err(error)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The record by which a mail server is known that shows this chain (a file in PEM): its own key, in SHA-256 (`3 1 1`, RFC 7672,
/// section 3.1). None if the certificate is not for the host.
///
/// # Errors
/// When the file cannot be read, or is no certificate; the message names it.
pub fn record_of(chain: &Path, host: &str) -> Result<Option<Tlsa>, String> {
    let certificates = pem::certificates(chain)?;
    let certificate = ParsedCertificate::try_from(&certificates[0]);
    let certificate = certificate.map_err(|error| format!("{}: {error}", chain.display()))?;
    let name = ServerName::try_from(host).ok();
    let is_for_it = name.is_some_and(|name| verify_server_name(&certificate, &name).is_ok());
    let digest = || Sha256::digest(certificate.subject_public_key_info()).to_vec();
    Ok(is_for_it.then(|| Tlsa { usage: 3, selector: 1, matching: 1, data: digest() }))
}

/// Whether a record names a certificate.
fn is_match(record: &Tlsa, certificate: &CertificateDer<'_>) -> bool {
    let key;
    let bytes: &[u8] = match record.selector {
        0 => certificate,
        _ => match ParsedCertificate::try_from(certificate) {
            Ok(parsed) => {
                key = parsed.subject_public_key_info();
                &key
            }
            Err(_) => return false,
        },
    };
    match record.matching {
        0 => bytes == record.data,
        1 => Sha256::digest(bytes).as_slice() == record.data,
        2 => Sha512::digest(bytes).as_slice() == record.data,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PublicKeyData as _};

    use super::*;

    /// An authority, and the certificate of a host that it has issued with its key's bytes.
    fn issued(host: &str) -> (CertificateDer<'static>, CertificateDer<'static>, Vec<u8>) {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec![host.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
        (authority.der().clone(), own.der().clone(), key.subject_public_key_info())
    }

    fn record(usage: u8, selector: u8, matching: u8, bytes: &[u8]) -> Tlsa {
        let data = match matching {
            1 => Sha256::digest(bytes).to_vec(),
            2 => Sha512::digest(bytes).to_vec(),
            _ => bytes.to_vec(),
        };
        Tlsa { usage, selector, matching, data }
    }

    fn is_taken(records: Vec<Tlsa>, names: &[&str], own: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> bool {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let (name, provider) =
            (ServerName::try_from("other.test").unwrap(), rustls::crypto::aws_lc_rs::default_provider());
        Dane::new(records, &names, provider.into()).verify_server_cert(own, others, &name, &[], UnixTime::now()).is_ok()
    }

    #[test]
    fn a_certificate_or_its_key_is_known_whatever_its_name() {
        let (authority, own, key) = issued("mx.test");
        for matching in 0..3 {
            assert!(is_taken(vec![record(3, 0, matching, &own)], &[], &own, &[]));
            assert!(is_taken(vec![record(3, 1, matching, &key)], &[], &own, &[]));
            assert!(!is_taken(
                vec![record(3, 0, matching, &authority)],
                &["mx.test"],
                &own,
                std::slice::from_ref(&authority)
            ));
        }
        assert!(is_taken(vec![record(3, 0, 1, b"x"), record(3, 1, 1, &key)], &[], &own, &[]));
        assert!(!is_taken(vec![], &["mx.test"], &own, &[authority]));
    }

    #[test]
    fn an_authority_is_known_and_names_matter() {
        let (authority, own, key) = issued("mx.test");
        let shown = [authority.clone()];
        for matching in 0..3 {
            let records = vec![record(2, 0, matching, &authority)];
            assert!(is_taken(records.clone(), &["mx.test"], &own, &shown), "{matching}");
            assert!(is_taken(records.clone(), &["example.test", "mx.test"], &own, &shown));
            assert!(!is_taken(records, &["example.test"], &own, &shown));
        }
        assert!(is_taken(vec![record(2, 0, 0, &authority)], &["mx.test"], &own, &[]), "it is whole in the record");
        assert!(!is_taken(vec![record(2, 0, 1, &authority)], &["mx.test"], &own, &[]), "nobody has shown it");
        assert!(!is_taken(vec![record(2, 1, 1, &key)], &["mx.test"], &own, &shown));
    }

    #[test]
    fn records_that_a_mail_server_cannot_be_known_by_are_not_usable() {
        for (bytes, is_usable) in [
            (&[3, 1, 1][..], false),
            (&[3, 1, 0, 1], true),
            (&[0, 0, 0, 1], false),
            (&[1, 0, 0, 1], false),
            (&[3, 2, 0, 1], false),
            (&[2, 0, 3, 1], false),
        ] {
            assert_eq!(Tlsa::read(bytes).is_usable(), is_usable, "{bytes:?}");
        }
        assert!(!Tlsa::read(&[3, 1]).is_usable() && !Tlsa::read(&[]).is_usable());
        assert!(record(3, 1, 2, b"x").is_usable());
    }
}
