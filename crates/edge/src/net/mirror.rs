//! Certificates in the place of those of servers, made by an authority that the clients of a site trust.
//!
//! A certificate of ours says what the server's own says: its names and its dates. One that nobody trusts is made by nobody whom
//! clients trust, so that what is wrong with a server is seen by the client as if it stood there itself.
//!
//! Bounds: 2,000 certificates are remembered, each with 500 names of the server's at most.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, SanType,
};
use rustls::client::verify_server_name;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, ParsedCertificate};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, crypto::CryptoProvider};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use tokio_rustls::rustls;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use crate::net::pem::unreadable;
use crate::net::tls::{HTTP_1, HTTP_2, provider, versions};
use crate::settings::TlsVersion;

/// Certificates that are remembered, and for how long.
const REMEMBERED_MAX: usize = 2_000;
const REMEMBERED_FOR: Duration = Duration::from_secs(24 * 3_600);

/// Names of one certificate.
const NAMES_MAX: usize = 500;

/// For how long a certificate holds whose pattern holds today.
const VALID_BEFORE: time::Duration = time::Duration::days(1);
const VALID_AFTER: time::Duration = time::Duration::days(90);

/// How a server has proved who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// Its certificate.
    pub certificate: Vec<u8>,
    /// An authority that is trusted here has issued it.
    pub is_trusted: bool,
    /// The reason why it is not the proof of the host that was asked for.
    pub fault: Option<Box<str>>,
    /// That reason is that the certificate names other hosts, and nothing else.
    pub names_others: bool,
    /// The version of TLS that it speaks.
    pub version: u16,
}

impl Proof {
    /// Whether the certificate names a host, whatever else it is worth.
    pub fn names(&self, host: &str) -> bool {
        let certificate = CertificateDer::from(self.certificate.as_slice());
        let parsed = ParsedCertificate::try_from(&certificate).ok();
        let name = ServerName::try_from(host).ok();
        parsed.zip(name).is_some_and(|(parsed, name)| verify_server_name(&parsed, &name).is_ok())
    }

    /// Whether the server is proved to be a host.
    pub fn is_of(&self, host: &str) -> bool {
        (self.fault.is_none() || self.names_others) && self.names(host)
    }
}

/// A certificate authority with its cache of certificates.
pub struct Mirror {
    issuer: Issuer<'static, KeyPair>,
    authority: CertificateDer<'static>,
    /// The key of all that is made.
    key: KeyPair,
    provider: Arc<CryptoProvider>,
    minimum: TlsVersion,
    made: Mutex<Made>,
}

#[derive(Default)]
struct Made {
    by_pattern: HashMap<[u8; 32], (Arc<ServerConfig>, Instant)>,
    /// The oldest first.
    order: VecDeque<[u8; 32]>,
}

/// Content of a certificate of ours.
struct Pattern {
    names: Vec<SanType>,
    common_name: Option<String>,
    valid: (OffsetDateTime, OffsetDateTime),
}

impl Mirror {
    /// Reads an authority: its certificate and its key, in PEM and in one file.
    ///
    /// # Errors
    /// When the file cannot be read, or is no authority; the message names it.
    pub fn load(path: &Path, minimum: TlsVersion) -> Result<Mirror, String> {
        let pem = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
        Mirror::parse(&pem, minimum).map_err(|error| unreadable(path, &error))
    }

    fn parse(pem: &[u8], minimum: TlsVersion) -> Result<Mirror, String> {
        let authority = CertificateDer::from_pem_slice(pem).map_err(|error| error.to_string())?;
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|error| error.to_string())?;
        // Whether the key is the certificate's.
        CertifiedKey::from_der(vec![authority.clone()], key.clone_key(), &provider())
            .map_err(|error| error.to_string())?;
        let (_, parsed) = parse_x509_certificate(&authority).map_err(|error| error.to_string())?;
        if !parsed.is_ca() {
            return Err("the certificate is not an authority's".into());
        }
        let key = KeyPair::try_from(&key).map_err(|error| error.to_string())?;
        Ok(Mirror {
            issuer: Issuer::from_ca_cert_der(&authority, key).map_err(|error| error.to_string())?,
            key: KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|error| error.to_string())?,
            provider: provider(),
            authority,
            minimum,
            made: Mutex::default(),
        })
    }

    /// TLS settings for a client, in place of a server with this proof.
    ///
    /// # Errors
    /// When the server's certificate is none.
    pub fn of_server(&self, proof: &Proof) -> Result<Arc<ServerConfig>, String> {
        let id: [u8; 32] =
            Sha256::new().chain_update([u8::from(proof.is_trusted)]).chain_update(&proof.certificate).finalize().into();
        self.remembered(id, proof.is_trusted, || Pattern::of(&proof.certificate))
    }

    /// TLS settings for a client that is shown only a page of ours.
    ///
    /// # Errors
    /// When no certificate can be for this host.
    pub fn of_host(&self, host: &str) -> Result<Arc<ServerConfig>, String> {
        let id: [u8; 32] = Sha256::new().chain_update([2]).chain_update(host).finalize().into();
        self.remembered(id, true, || Pattern::of_host(host))
    }

    fn remembered(
        &self,
        id: [u8; 32],
        is_trusted: bool,
        pattern: impl FnOnce() -> Result<Pattern, String>,
    ) -> Result<Arc<ServerConfig>, String> {
        let now = Instant::now();
        let known =
            |made: &Made| made.by_pattern.get(&id).filter(|(_, until)| *until > now).map(|(made, _)| made.clone());
        if let Some(known) = known(&self.made.lock().expect("no holder panics")) {
            return Ok(known);
        }
        let config = Arc::new(self.make(pattern()?, is_trusted)?);
        let mut made = self.made.lock().expect("no holder panics");
        if made.by_pattern.insert(id, (config.clone(), now + REMEMBERED_FOR)).is_none() {
            made.order.push_back(id);
        }
        if made.order.len() > REMEMBERED_MAX
            && let Some(oldest) = made.order.pop_front()
        {
            made.by_pattern.remove(&oldest);
        }
        Ok(config)
    }

    fn make(&self, pattern: Pattern, is_trusted: bool) -> Result<ServerConfig, String> {
        let params = pattern.params();
        let (certificate, chain) = match is_trusted {
            true => (params.signed_by(&self.key, &self.issuer), Some(self.authority.clone())),
            false => (params.self_signed(&self.key), None),
        };
        let certificate = certificate.map_err(|error| error.to_string())?;
        let chain = std::iter::once(certificate.der().clone()).chain(chain).collect();
        let key = PrivateKeyDer::try_from(self.key.serialize_der())?;
        let builder = ServerConfig::builder_with_provider(self.provider.clone());
        let builder = builder.with_protocol_versions(versions(self.minimum)).map_err(|error| error.to_string())?;
        let config = builder.with_no_client_auth().with_single_cert(chain, key);
        let mut config = config.map_err(|error| error.to_string())?;
        // A client that comes back is shown what the server is worth then.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1.to_vec()];
        Ok(config)
    }
}

impl Pattern {
    fn of(certificate: &[u8]) -> Result<Pattern, String> {
        let (_, parsed) = parse_x509_certificate(certificate).map_err(|error| error.to_string())?;
        let alternative = parsed.subject_alternative_name().ok().flatten();
        let names = alternative.iter().flat_map(|names| &names.value.general_names);
        let common_name = parsed.subject().iter_common_name().find_map(|name| name.as_str().ok()).map(String::from);
        let validity = parsed.validity();
        let (begin, end) = (validity.not_before.to_datetime(), validity.not_after.to_datetime());
        let now = OffsetDateTime::now_utc();
        let valid = match begin <= now && now <= end {
            true => (begin.max(now - VALID_BEFORE), end.min(now + VALID_AFTER)),
            false => (begin, end),
        };
        Ok(Pattern { names: names.filter_map(alternative_name).take(NAMES_MAX).collect(), common_name, valid })
    }

    fn of_host(host: &str) -> Result<Pattern, String> {
        let name = match host.parse() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(host.try_into().map_err(|_| format!("{host:?} is no name of a host"))?),
        };
        let now = OffsetDateTime::now_utc();
        Ok(Pattern { names: vec![name], common_name: None, valid: (now - VALID_BEFORE, now + VALID_AFTER) })
    }

    fn params(self) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.subject_alt_names = self.names;
        (params.not_before, params.not_after) = self.valid;
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(name) = self.common_name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        params
    }
}

/// A name of a certificate as ours has it; none if it is no host's.
fn alternative_name(name: &GeneralName<'_>) -> Option<SanType> {
    match name {
        GeneralName::DNSName(name) => {
            let is_plain =
                name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'*'));
            is_plain.then(|| (*name).try_into().ok().map(SanType::DnsName)).flatten()
        }
        GeneralName::IPAddress(octets) => {
            let of_four = || <[u8; 4]>::try_from(*octets).ok().map(Into::into);
            let of_sixteen = || <[u8; 16]>::try_from(*octets).ok().map(Into::into);
            of_four().or_else(of_sixteen).map(SanType::IpAddress)
        }
        _ => None,
    }
}

/// Makes an authority: its certificate and its key, in PEM.
///
/// # Errors
/// When the system gives no randomness.
pub fn create_authority(name: &str, days: u32) -> Result<String, String> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    // It signs what stands in the place of a server's, and no other authority.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let now = OffsetDateTime::now_utc();
    (params.not_before, params.not_after) = (now - VALID_BEFORE, now + time::Duration::days(i64::from(days)));
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|error| error.to_string())?;
    let certificate = params.self_signed(&key).map_err(|error| error.to_string())?;
    Ok(certificate.pem() + &key.serialize_pem())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirror() -> Mirror {
        Mirror::parse(create_authority("Test", 10).unwrap().as_bytes(), TlsVersion::default()).unwrap()
    }

    /// A certificate of a server: these names, and days from now on from which and to which it holds.
    fn server(names: &[&str], days: (i64, i64)) -> Vec<u8> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        let now = OffsetDateTime::now_utc();
        (params.not_before, params.not_after) =
            (now + time::Duration::days(days.0), now + time::Duration::days(days.1));
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn a_pattern_says_what_the_server_says() {
        let pattern = Pattern::of(&server(&["a.test", "*.b.test", "192.0.2.1", "2001:db8::1"], (-3, 400))).unwrap();
        assert_eq!(pattern.names.len(), 4);
        let days = |time: OffsetDateTime| {
            let hours = (time - OffsetDateTime::now_utc()).whole_seconds() as f64 / 3_600.0;
            (hours / 24.0).round() as i64
        };
        assert_eq!((days(pattern.valid.0), days(pattern.valid.1)), (-1, 90));
        for dates in [(-30, -2), (5, 30)] {
            let pattern = Pattern::of(&server(&["a.test"], dates)).unwrap();
            assert_eq!((days(pattern.valid.0), days(pattern.valid.1)), dates, "as wrong as it is");
        }
    }

    #[test]
    fn who_is_trusted_is_signed_for_and_nobody_else() {
        let mirror = mirror();
        let certificate = server(&["a.test"], (-1, 9));
        let one = |is_trusted| Proof {
            certificate: certificate.clone(),
            is_trusted,
            fault: None,
            names_others: false,
            version: 0x304,
        };
        let trusted = mirror.of_server(&one(true)).unwrap();
        assert!(Arc::ptr_eq(&trusted, &mirror.of_server(&one(true)).unwrap()), "made once");
        assert!(!Arc::ptr_eq(&trusted, &mirror.of_server(&one(false)).unwrap()));
        let params = Pattern::of(&certificate).unwrap().params();
        let made = params.signed_by(&mirror.key, &mirror.issuer).unwrap();
        let (_, made) = parse_x509_certificate(made.der()).unwrap();
        let (_, authority) = parse_x509_certificate(&mirror.authority).unwrap();
        assert_eq!(made.issuer(), authority.subject());
        assert!(!made.is_ca() && authority.is_ca());
        assert!(mirror.of_host("a b").is_ok() || mirror.of_host("é").is_err());
    }

    #[test]
    fn what_is_no_authority_is_refused() {
        let made = rcgen::generate_simple_self_signed(["a.test".into()]).unwrap();
        let pem = made.cert.pem() + &made.signing_key.serialize_pem();
        let error = Mirror::parse(pem.as_bytes(), TlsVersion::default()).err().unwrap();
        assert_eq!(error, "the certificate is not an authority's");
        let (one, other) = (create_authority("A", 1).unwrap(), create_authority("B", 1).unwrap());
        let key = other.find("-----BEGIN PRIVATE").unwrap();
        let crossed = one[..one.find("-----BEGIN PRIVATE").unwrap()].to_string() + &other[key..];
        assert!(Mirror::parse(crossed.as_bytes(), TlsVersion::default()).is_err());
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let mirror = mirror();
        (0..20).for_each(|number| _ = mirror.of_host(&format!("h{number}.test")).unwrap());
        let made = mirror.made.lock().unwrap();
        assert_eq!((made.by_pattern.len(), made.order.len()), (20, 20));
    }
}
