//! TLS settings: `[tls]`, and the keys `tls`, `forward_tls` and `forward_verify` of a listener.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{self, Deserializer};
use tokio_rustls::rustls::pki_types::{DnsName, ServerName};

use super::acme::Acme;

/// `[tls]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Certificates for clients. The first serves those who ask for no name, or for one that no certificate has.
    #[serde(rename = "certificate")]
    pub certificates: Vec<Certificate>,
    /// The oldest version that is spoken, on both sides.
    pub minimum: TlsVersion,
    /// Authorities for certificates of next hops: a file in PEM.
    pub authorities: PathBuf,
    /// Where certificates are got from that are no files of somebody else's.
    pub acme: Acme,
    /// The authority that makes the certificates of what `https = "inspect"` opens: its certificate and its key, in PEM.
    pub signing_authority: Option<PathBuf>,
}

impl Default for Tls {
    fn default() -> Tls {
        Tls {
            certificates: Vec::new(),
            minimum: TlsVersion::default(),
            authorities: "/etc/ssl/certs/ca-certificates.crt".into(),
            acme: Acme::default(),
            signing_authority: None,
        }
    }
}

impl Tls {
    /// Relative paths count from the configuration file's folder.
    pub fn count_paths_from(&mut self, folder: &Path) {
        let files = self.certificates.iter_mut().flat_map(|certificate| match certificate {
            Certificate::Files { chain, key } => vec![chain, key],
            Certificate::Acme { .. } => Vec::new(),
        });
        let others = [&mut self.authorities, &mut self.acme.folder].into_iter().chain(&mut self.signing_authority);
        files.chain(others).for_each(|path| *path = folder.join(&path));
    }
}

/// Names of one certificate: as many as Let's Encrypt puts into one.
const NAMES_MAX: usize = 100;

impl Tls {
    /// The names of each certificate that is got by ACME.
    pub fn acme_names(&self) -> impl Iterator<Item = &[String]> {
        self.certificates.iter().filter_map(|certificate| match certificate {
            Certificate::Acme { names } => Some(&**names),
            Certificate::Files { .. } => None,
        })
    }

    /// Whether an authority could be asked for these.
    ///
    /// # Errors
    /// When it could not; the message says why.
    pub fn check_acme(&self) -> Result<(), String> {
        let mut firsts: Vec<&str> = Vec::new();
        for names in self.acme_names() {
            let Some(first) = names.first() else { return Err("tls.certificate: acme has no names".into()) };
            if names.len() > NAMES_MAX {
                return Err(format!("tls.certificate: {first}: more than {NAMES_MAX} names"));
            }
            if let Some(wrong) = names.iter().find(|name| !is_certifiable(name)) {
                return Err(format!("tls.certificate: {wrong:?} is not a host name that ACME can validate"));
            }
            if firsts.contains(&first.as_str()) {
                return Err(format!("tls.certificate: two certificates by ACME begin with {first}"));
            }
            firsts.push(first);
        }
        if firsts.is_empty() {
            return Ok(());
        }
        let acme = &self.acme;
        if !acme.accept_terms {
            return Err("tls.acme: accept_terms = true says that you agree to the terms of its authority".into());
        }
        if !acme.directory.starts_with("https://") {
            return Err(format!("tls.acme: {:?} is not an https URL", acme.directory));
        }
        match &acme.contact {
            Some(contact) if !is_contact(contact) => Err(format!("tls.acme: {contact:?} is not a mail address")),
            _ => Ok(()),
        }
    }
}

/// A name of two labels at least, without `*`: it is asked over HTTP.
fn is_certifiable(name: &str) -> bool {
    let is_name = matches!(ServerName::try_from(name), Ok(ServerName::DnsName(_)));
    is_name && DnsName::try_from(name).is_ok() && name.contains('.') && !name.starts_with('*') && !name.ends_with('.')
}

fn is_contact(text: &str) -> bool {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"?,:<>".contains(&byte));
    plain && text.split_once('@').is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty())
}

/// A certificate for clients.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "CertificateTable")]
pub enum Certificate {
    /// With its key, both files in PEM.
    Files {
        /// The certificate, and those between it and its authority.
        chain: PathBuf,
        /// Its key.
        key: PathBuf,
    },
    /// Got and renewed by ACME.
    Acme {
        /// The names that it is for, in lower case; the first is that of its file.
        names: Vec<String>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CertificateTable {
    chain: Option<PathBuf>,
    key: Option<PathBuf>,
    acme: Option<Vec<String>>,
}

impl TryFrom<CertificateTable> for Certificate {
    type Error = &'static str;

    fn try_from(table: CertificateTable) -> Result<Certificate, &'static str> {
        match (table.chain, table.key, table.acme) {
            (Some(chain), Some(key), None) => Ok(Certificate::Files { chain, key }),
            (None, None, Some(names)) => {
                Ok(Certificate::Acme { names: names.iter().map(|name| name.to_ascii_lowercase()).collect() })
            }
            _ => Err("a certificate has chain and key, or acme"),
        }
    }
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum TlsVersion {
    /// RFC 5246.
    #[default]
    #[serde(rename = "1.2")]
    V1_2,
    /// RFC 8446.
    #[serde(rename = "1.3")]
    V1_3,
}

/// TLS with clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListenerTls {
    /// None.
    #[default]
    Off,
    /// STARTTLS is offered.
    Offer,
    /// STARTTLS is offered, and nothing that matters is done before it.
    Require,
    /// From the first byte on.
    Implicit,
}

/// STARTTLS towards the next hop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForwardTls {
    /// Never.
    Off,
    /// Where the hop offers it, whoever the hop is; if it fails, without.
    #[default]
    Opportunistic,
    /// Always, with a hop that proves who it is.
    Require,
}

/// How a next hop proves who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verify {
    /// Not at all.
    Nothing,
    /// By a certificate for the host in `forward`, or for this name, from a known authority.
    Name(Option<String>),
    /// By one of these certificates: their SHA-256.
    Fingerprints(Vec<[u8; 32]>),
    /// By records of the DNS (RFC 7672), of which one has to match; certificates of an authority among them are for one of these names.
    Dane(Vec<Tlsa>, Vec<String>),
}

/// A record that says which certificates a server has (RFC 6698).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tlsa {
    /// 2: the certificate of an authority; 3: that of the server.
    pub usage: u8,
    /// 0: the certificate; 1: its public key.
    pub selector: u8,
    /// 0: as it is; 1, 2: its SHA-256 or SHA-512.
    pub matching: u8,
    /// The certificate, the key or the digest.
    pub data: Vec<u8>,
}

impl Tlsa {
    /// Reads the data of a record. One that is too short is there all the same: nobody is known by it, and TLS is needed (RFC 7672, section 2.2).
    pub fn read(bytes: &[u8]) -> Tlsa {
        let number = |at: usize| bytes.get(at).copied().unwrap_or(u8::MAX);
        let [usage, selector, matching] = [0, 1, 2].map(number);
        Tlsa { usage, selector, matching, data: bytes.get(3..).unwrap_or_default().to_vec() }
    }

    /// Whether a mail server can be known by it: usages 0 and 1 are none for SMTP (RFC 7672, section 3.1.3).
    pub fn is_usable(&self) -> bool {
        let bytes = match self.matching {
            0 => !self.data.is_empty(),
            1 => self.data.len() == 32,
            2 => self.data.len() == 64,
            _ => false,
        };
        matches!(self.usage, 2 | 3) && self.selector <= 1 && bytes
    }
}

impl std::str::FromStr for Verify {
    type Err = String;

    fn from_str(text: &str) -> Result<Verify, String> {
        match text {
            "nothing" => return Ok(Verify::Nothing),
            "name" => return Ok(Verify::Name(None)),
            _ => {}
        }
        if let Some(name) = text.strip_prefix("name:") {
            return Ok(Verify::Name(Some(name.into())));
        }
        let fingerprints = text.split_ascii_whitespace().map(|word| fingerprint(word.strip_prefix("sha256:")?));
        let fingerprints: Option<Vec<_>> = fingerprints.collect();
        let known = fingerprints.filter(|all| !all.is_empty()).map(Verify::Fingerprints);
        known.ok_or_else(|| {
            format!("{text:?} is not a verification: nothing, name, name:HOST or sha256:DIGITS, several with blanks")
        })
    }
}

/// 32 bytes in hexadecimal digits, with or without colons, as OpenSSL prints them.
fn fingerprint(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> =
        text.chars().filter(|c| *c != ':').map(|c| Some(c.to_digit(16)? as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks(2).map(|two| two.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    (digits.len() == 64).then(|| bytes.try_into().ok())?
}

impl<'de> Deserialize<'de> for Verify {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Verify, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_as_openssl_prints_them() {
        let digits = "AB".repeat(32);
        let colons = ["ab"; 32].join(":");
        let both: Verify = format!("sha256:{digits} sha256:{colons}").parse().unwrap();
        assert_eq!(both, Verify::Fingerprints(vec![[0xab; 32]; 2]));
        for wrong in ["", "sha256:ab", "sha1:ab", "names"] {
            assert!(wrong.parse::<Verify>().is_err(), "{wrong}");
        }
    }
}
