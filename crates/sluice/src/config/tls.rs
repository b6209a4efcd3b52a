//! What the configuration says of TLS: `[tls]`, and the keys `tls`, `forward_tls` and `forward_verify` of a listener.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{self, Deserializer};

use super::acme::Acme;
use super::{Config, Forward, Listener};

/// `[tls]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Certificates for clients. The first serves those who ask for no name, or for one that no certificate has.
    #[serde(rename = "certificate")]
    pub certificates: Vec<Certificate>,
    /// The oldest version that is spoken, on both sides.
    pub minimum: TlsVersion,
    /// Whom a next hop's certificate may come from: a file of certificates in PEM.
    pub authorities: PathBuf,
    /// Where certificates are got from that are no files of somebody else's.
    pub acme: Acme,
}

impl Default for Tls {
    fn default() -> Tls {
        Tls {
            certificates: Vec::new(),
            minimum: TlsVersion::default(),
            authorities: "/etc/ssl/certs/ca-certificates.crt".into(),
            acme: Acme::default(),
        }
    }
}

impl Tls {
    /// Relative paths count from the configuration file's folder.
    pub(super) fn count_paths_from(&mut self, folder: &Path) {
        let files = self.certificates.iter_mut().flat_map(|certificate| match certificate {
            Certificate::Files { chain, key } => vec![chain, key],
            Certificate::Acme { .. } => Vec::new(),
        });
        files.chain([&mut self.authorities, &mut self.acme.folder]).for_each(|path| *path = folder.join(&path));
    }
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
            format!("{text:?} is no proof: nothing, name, name:HOST or sha256:DIGITS, several with blanks")
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

impl Listener {
    /// Whether TLS with the next hop begins with the connection.
    pub fn forwards_implicitly(&self) -> bool {
        match &self.forward {
            Forward::Server { scheme, .. } => scheme.is_implicit_tls(),
            Forward::Original => self.tls == ListenerTls::Implicit,
            _ => false,
        }
    }

    /// Whether TLS with the next hop is certain.
    pub fn forwards_in_tls(&self) -> bool {
        self.forwards_implicitly() || self.forward_tls == ForwardTls::Require
    }

    /// How the next hop proves who it is.
    pub fn verify(&self) -> Verify {
        let certain = if self.forwards_in_tls() { Verify::Name(None) } else { Verify::Nothing };
        self.forward_verify.clone().unwrap_or(certain)
    }
}

impl Config {
    pub(super) fn check_tls(&self, listener: &Listener) -> Result<(), String> {
        if listener.tls != ListenerTls::Off && self.tls.certificates.is_empty() {
            return Err("tls needs a [[tls.certificate]]".into());
        }
        if listener.tls != ListenerTls::Off && listener.address.tcp().is_none() {
            return Err("there is no TLS on a UNIX socket".into());
        }
        if listener.forward_verify.as_ref().is_some_and(|verify| *verify != Verify::Nothing)
            && !listener.forwards_in_tls()
        {
            return Err("forward_verify needs forward_tls = \"require\"".into());
        }
        if listener.forwards_in_tls() && !matches!(listener.forward, Forward::Server { .. } | Forward::Original) {
            return Err(format!("{} has no TLS", listener.forward));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(settings: &str, head: &str) -> Result<Config, String> {
        let text = format!("{head}\n[[listener]]\nprotocol='smtp'\naddress='127.0.0.1:1'\n{settings}");
        Config::parse(&text, "test").map_err(|error| error.to_string())
    }

    #[test]
    fn tls_on_a_listener_needs_a_certificate() {
        let refusal = parse("forward='discard:'\ntls='offer'", "").unwrap_err();
        assert!(refusal.contains("needs a [[tls.certificate]]"), "{refusal}");
        let head = "[[tls.certificate]]\nchain='a'\nkey='b'";
        assert!(parse("forward='discard:'\ntls='offer'", head).is_ok());
    }

    #[test]
    fn a_proof_is_asked_for_by_default_where_tls_is_certain() {
        let verify = |settings: &str| parse(settings, "").unwrap().listeners[0].verify();
        assert_eq!(verify("forward='smtp://a'"), Verify::Nothing);
        assert_eq!(verify("forward='smtps://a'"), Verify::Name(None));
        assert_eq!(verify("forward='smtp://a'\nforward_tls='require'"), Verify::Name(None));
        let refusal = parse("forward='smtp://a'\nforward_verify='name'", "").unwrap_err();
        assert!(refusal.contains("needs forward_tls"), "{refusal}");
    }

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
