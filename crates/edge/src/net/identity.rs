//! Certificates that we show to clients, with their keys.
//!
//! A certificate answers to the names that stand in it, so the configuration names none for files. Those are read when
//! the configuration is. One that is got by ACME is read from where it was kept; until there is one, a placeholder
//! that vouches for itself is shown, and what comes later takes its place at once.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, RwLock};

use rcgen::generate_simple_self_signed;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use time::OffsetDateTime;
use tokio_rustls::rustls;
use x509_parser::parse_x509_certificate;

use crate::net::acme::store;
use crate::net::pem::{certificates, text, unreadable};
use crate::settings::{Certificate, Tls};

/// A word in a private key that has a password.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

const UNKNOWN_KEY: &str = "keys are of RSA from 2048 bits, P-256, P-384, P-521 or Ed25519, and this one is not";

/// Our certificates; the first serves whoever asks for none of the others.
#[derive(Debug, Default)]
pub struct Identities(Vec<Arc<Identity>>);

/// One certificate, which may be replaced.
#[derive(Debug)]
pub struct Identity {
    /// The names that ACME is asked for; none for files.
    pub names: Vec<String>,
    /// Label for people: its first name, or its file.
    pub label: String,
    shown: RwLock<Shown>,
}

#[derive(Debug, Clone)]
struct Shown {
    key: Arc<CertifiedKey>,
    is_placeholder: bool,
}

impl Identities {
    /// Reads them.
    ///
    /// # Errors
    /// When a file cannot be read, or a key is not its certificate's; the message names the file.
    pub fn load(settings: &Tls) -> Result<Identities, String> {
        let all = settings.certificates.iter().map(|certificate| {
            let (names, label, shown) = match certificate {
                Certificate::Files { chain, key } => (Vec::new(), chain.display().to_string(), from_files(chain, key)?),
                Certificate::Acme { names } => {
                    (names.clone(), names[0].clone(), kept_or_placeholder(&settings.acme.folder, names)?)
                }
            };
            Ok(Arc::new(Identity { names, label, shown: RwLock::new(shown) }))
        });
        all.collect::<Result<_, String>>().map(Identities)
    }

    /// All of them.
    pub fn all(&self) -> &[Arc<Identity>] {
        &self.0
    }

    /// What is to be said of those that do not hold now.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let now = OffsetDateTime::now_utc().unix_timestamp();
        self.0.iter().filter_map(move |identity| identity.warning(now))
    }

    /// When each of them expires, in Prometheus' text format.
    pub fn text(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut text = String::from(
            "# HELP sluice_certificate_expires_seconds When a certificate expires, in seconds since 1970; 0 until there \
             is one.\n# TYPE sluice_certificate_expires_seconds gauge\n",
        );
        for identity in &self.0 {
            let expires = identity.certificate().and_then(|der| validity(&der)).map_or(0, |(_, end)| end);
            let name = identity.label.escape_default();
            let _ = writeln!(text, "sluice_certificate_expires_seconds{{name=\"{name}\"}} {expires}");
        }
        text
    }
}

impl ResolvesServerCert for Identities {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let asked = hello.server_name().and_then(|name| ServerName::try_from(name).ok());
        let all = || self.0.iter().map(|identity| identity.shown().key);
        asked.and_then(|name| all().find(|key| answers_to(key, &name))).or_else(|| all().next())
    }
}

impl Identity {
    /// Shows another certificate from here on.
    pub fn show(&self, key: CertifiedKey) {
        *self.shown.write().expect("no holder panics") = Shown { key: Arc::new(key), is_placeholder: false };
    }

    /// The certificate; none as long as it is a placeholder.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        let shown = self.shown();
        let certificate = shown.key.end_entity_cert().ok().filter(|_| !shown.is_placeholder);
        certificate.map(|der| der.clone().into_owned())
    }

    /// That its certificate does not hold at this time, in seconds since 1970.
    fn warning(&self, now: i64) -> Option<String> {
        let (start, end) = validity(&self.certificate()?)?;
        let day =
            |at| OffsetDateTime::from_unix_timestamp(at).map_or_else(|_| String::new(), |at| at.date().to_string());
        match () {
            () if now > end => Some(format!("the certificate {} has expired: {}", self.label, day(end))),
            () if now < start => Some(format!("the certificate {} holds from {} on", self.label, day(start))),
            () => None,
        }
    }

    /// Whether what is shown is for all the names.
    pub fn is_complete(&self) -> bool {
        is_for(&self.shown().key, &self.names)
    }

    fn shown(&self) -> Shown {
        self.shown.read().expect("no holder panics").clone()
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.names.is_empty() { "" } else { " by ACME" };
        let end = self
            .certificate()
            .and_then(|der| validity(&der))
            .and_then(|(_, end)| OffsetDateTime::from_unix_timestamp(end).ok());
        match end {
            Some(end) => write!(f, "Certificate {}{how} until {}", self.label, end.date()),
            None => write!(f, "Certificate {}{how}: none yet", self.label),
        }
    }
}

fn from_files(chain: &Path, key: &Path) -> Result<Shown, String> {
    let certificates = certificates(chain)?;
    let text = text(key)?;
    if text.windows(ENCRYPTED.len()).any(|window| window == ENCRYPTED) {
        return Err(unreadable(key, &"the private key is encrypted: openssl pkey -in KEY -out FILE writes it without"));
    }
    let secret = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => unreadable(key, &"no private key in it"),
        error => unreadable(key, &error),
    })?;
    let identity_of =
        |chain| CertifiedKey::from_der(chain, secret.clone_key(), &aws_lc_rs::default_provider()).map(Arc::new);
    match identity_of(certificates.clone()) {
        Ok(identity) => Ok(Shown { key: identity, is_placeholder: false }),
        Err(rustls::Error::InconsistentKeys(_)) => {
            let at = certificates.iter().position(|one| identity_of(vec![one.clone()]).is_ok());
            let (key, chain) = (key.display(), chain.display());
            Err(match at {
                Some(at) => format!("{key} is the key of certificate {} in {chain}: it has to be the first", at + 1),
                None => format!("{key} is not the key of the certificate in {chain}"),
            })
        }
        Err(rustls::Error::General(_)) => Err(unreadable(key, &UNKNOWN_KEY)),
        Err(error) => Err(unreadable(key, &error)),
    }
}

fn kept_or_placeholder(folder: &Path, names: &[String]) -> Result<Shown, String> {
    let path = store::path(folder, &names[0]);
    match store::read(&path).map_err(|error| unreadable(&path, &error))? {
        Some(pem) => {
            let key = parse(&pem).map_err(|error| unreadable(&path, &error))?;
            Ok(Shown { key: Arc::new(key), is_placeholder: false })
        }
        None => Ok(Shown { key: Arc::new(placeholder(names)?), is_placeholder: true }),
    }
}

/// A certificate that vouches for itself: whoever does not look is served in TLS, whoever looks is not deceived.
fn placeholder(names: &[String]) -> Result<CertifiedKey, String> {
    let made = generate_simple_self_signed(names).map_err(|error| error.to_string())?;
    parse((made.cert.pem() + &made.signing_key.serialize_pem()).as_bytes())
}

/// A key and a certificate with those between it and its authority, in PEM.
///
/// # Errors
/// When something is missing, or the key is another one's.
pub fn parse(pem: &[u8]) -> Result<CertifiedKey, String> {
    let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| error.to_string())?;
    CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).map_err(|error| error.to_string())
}

/// Whether a certificate is for all these names.
pub fn is_for(identity: &CertifiedKey, names: &[String]) -> bool {
    let name = |name: &String| ServerName::try_from(name.clone()).ok();
    names.iter().all(|text| name(text).is_some_and(|name| answers_to(identity, &name)))
}

fn answers_to(identity: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let parsed = identity.end_entity_cert().and_then(ParsedCertificate::try_from);
    parsed.is_ok_and(|certificate| rustls::client::verify_server_name(&certificate, name).is_ok())
}

/// From when to when a certificate holds, in seconds since 1970.
pub fn validity(certificate: &CertificateDer<'_>) -> Option<(i64, i64)> {
    let (_, parsed) = parse_x509_certificate(certificate).ok()?;
    let validity = parsed.validity();
    Some((validity.not_before.timestamp(), validity.not_after.timestamp()))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[test]
    fn what_is_wrong_with_a_key_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let made = |name: &str| {
            let key = KeyPair::generate().expect("a key");
            let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
            params.not_after = OffsetDateTime::from_unix_timestamp(1_700_000_000).expect("a time");
            (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem())
        };
        let ((own, key), (above, _)) = (made("mx.test"), made("authority.test"));
        let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        for (chain, key, wanted) in [
            (format!("{own}{above}"), key.as_str(), None),
            (format!("\u{feff}{own}{above}"), &key, None),
            (format!("{above}{own}"), &key, Some("is the key of certificate 2 in")),
            (above.clone(), &key, Some("is not the key of the certificate in")),
            (own.clone(), locked, Some("the private key is encrypted")),
            (own.clone(), "", Some("no private key in it")),
        ] {
            std::fs::write(at("chain"), chain).expect("written");
            std::fs::write(at("key"), key).expect("written");
            match (from_files(&at("chain"), &at("key")), wanted) {
                (Ok(shown), None) => {
                    let identity = Identity { names: Vec::new(), label: "a".into(), shown: RwLock::new(shown) };
                    assert_eq!(identity.warning(1_600_000_000), None);
                    assert!(
                        identity.warning(1_800_000_000).is_some_and(|said| said.ends_with("has expired: 2023-11-14"))
                    );
                }
                (Err(said), Some(wanted)) => assert!(said.contains(wanted), "{said}"),
                (found, wanted) => panic!("{found:?}, {wanted:?}"),
            }
        }
    }
}
