//! TLS: who we are to clients, and how a next hop proves who it is.
//!
//! The versions, cipher suites and groups are rustls' defaults with aws-lc-rs, hybrid post-quantum key exchange first; the one knob is the oldest version. Tickets
//! resume sessions without state on our side; there is no early data. Certificates for clients are in `identity`.

use std::io;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio_rustls::rustls;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
};

use crate::net::dane::Dane;
use crate::net::identity::Identities;
use crate::net::pem::{certificates, unreadable};
use crate::net::stream::Stream;
use crate::settings::{Forward, ForwardTls, Target, Tls, TlsVersion, Verify};

/// ALPN names that web clients offer and servers choose (RFC 7301; RFC 9113, section 3.2).
pub const HTTP_1: &[u8] = b"http/1.1";
/// As [`HTTP_1`].
pub const HTTP_2: &[u8] = b"h2";

/// TLS settings for clients.
///
/// # Errors
/// When the system gives no randomness.
pub fn server(identities: Arc<Identities>, minimum: TlsVersion) -> Result<Arc<ServerConfig>, String> {
    let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(versions(minimum));
    let builder = builder.map_err(|error| error.to_string())?.with_no_client_auth();
    let mut config = builder.with_cert_resolver(identities);
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(|error| error.to_string())?;
    Ok(Arc::new(config))
}

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// The same for clients of the web, who say which versions of HTTP they speak. To a proxy that they know of it is HTTP/1.1: its tunnels are
/// connections of their own.
pub fn for_web(server: &ServerConfig, is_known_proxy: bool) -> Arc<ServerConfig> {
    let mut config = server.clone();
    let names = [HTTP_2, HTTP_1];
    config.alpn_protocols = names.iter().skip(usize::from(is_known_proxy)).map(|name| name.to_vec()).collect();
    Arc::new(config)
}

/// Bytes that nobody can guess.
///
/// # Errors
/// When the system gives none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = aws_lc_rs::default_provider().secure_random.fill(&mut bytes);
    filled.map(|()| bytes).map_err(|_| io::Error::other("no randomness"))
}

pub(super) fn versions(minimum: TlsVersion) -> &'static [&'static SupportedProtocolVersion] {
    static NEWEST: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];
    match minimum {
        TlsVersion::V1_2 => rustls::ALL_VERSIONS,
        TlsVersion::V1_3 => &NEWEST,
    }
}

/// How a next hop is spoken to in TLS.
#[derive(Clone)]
pub struct Connector {
    /// Whether TLS begins with the connection.
    pub implicit: bool,
    /// Policy for STARTTLS otherwise.
    pub starttls: ForwardTls,
    config: Option<Arc<ClientConfig>>,
    /// Name that the hop has to prove, sent as SNI.
    name: Option<ServerName<'static>>,
}

impl Connector {
    /// For a next hop.
    ///
    /// # Errors
    /// When the authorities cannot be read, or the hop has no name that a certificate could be for.
    pub fn new(target: &Target, settings: &Tls) -> Result<Connector, String> {
        if !matches!(target.forward, Forward::Server { .. } | Forward::Original) {
            return Ok(Connector { implicit: false, starttls: ForwardTls::Off, config: None, name: None });
        }
        let verify = target.verify.clone();
        let host = match &verify {
            Verify::Name(Some(name)) => Some(name.as_str()),
            _ => target.forward.host(),
        };
        let name = host.map(|host| ServerName::try_from(host.to_string()));
        let name = name.transpose().map_err(|_| format!("{host:?} is not a valid certificate name"))?;
        let config = Some(client(verify, settings)?);
        Ok(Connector { implicit: target.is_implicit_tls, starttls: target.starttls, config, name })
    }

    /// The same for a hop of this name, where that can be one.
    pub fn for_name(&self, name: &str) -> Connector {
        let name = ServerName::try_from(name.to_string()).ok();
        Connector { name: name.or_else(|| self.name.clone()), ..self.clone() }
    }

    /// The same for a hop at this host, where the configuration does not know its name.
    pub fn for_host(&self, host: &str) -> Connector {
        if self.name.is_some() { self.clone() } else { self.for_name(host) }
    }

    /// Shakes hands.
    ///
    /// # Errors
    /// When it fails, or the hop does not prove who it is.
    pub async fn secure(&self, stream: Stream) -> io::Result<Stream> {
        match (self.config.clone(), self.name.clone()) {
            (Some(config), Some(name)) => stream.connect_tls(config, name).await,
            _ => Err(io::Error::other("no TLS for this hop")),
        }
    }
}

fn client(verify: Verify, settings: &Tls) -> Result<Arc<ClientConfig>, String> {
    let verifier: Arc<dyn ServerCertVerifier> = match verify {
        Verify::Nothing => Arc::new(Pinned { fingerprints: None, provider: provider() }),
        Verify::Fingerprints(all) => Arc::new(Pinned { fingerprints: Some(all), provider: provider() }),
        Verify::Dane(records, names) => Arc::new(Dane::new(records, &names, provider())),
        Verify::Name(_) => self::verifier(settings)?,
    };
    Ok(Arc::new(client_with(verifier, settings.minimum)?))
}

/// Says what a server's certificate is worth, by the authorities of the settings.
///
/// # Errors
/// When their file cannot be read.
pub(super) fn verifier(settings: &Tls) -> Result<Arc<WebPkiServerVerifier>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(&settings.authorities)?);
    let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    built.map_err(|error| unreadable(&settings.authorities, &error))
}

/// A client that takes any certificate whose key the server holds.
///
/// # Errors
/// When no version is left.
pub(super) fn unchecked_client(minimum: TlsVersion) -> Result<ClientConfig, String> {
    client_with(Arc::new(Pinned { fingerprints: None, provider: provider() }), minimum)
}

fn client_with(verifier: Arc<dyn ServerCertVerifier>, minimum: TlsVersion) -> Result<ClientConfig, String> {
    let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(versions(minimum));
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Takes one of these certificates, whoever has issued it; without any, every one. The hop has to hold its key.
#[derive(Debug)]
struct Pinned {
    fingerprints: Option<Vec<[u8; 32]>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let fingerprint: [u8; 32] = Sha256::digest(certificate).into();
        match &self.fingerprints {
            Some(known) if !known.contains(&fingerprint) => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
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

#[cfg(test)]
mod tests {
    use rustls::server::ResolvesServerCertUsingSni;

    use super::*;

    #[test]
    fn clients_who_know_a_proxy_are_offered_no_version_without_its_tunnels() {
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
        let server = builder.with_no_client_auth().with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
        assert_eq!(for_web(&server, true).alpn_protocols, [HTTP_1]);
        assert_eq!(for_web(&server, false).alpn_protocols, [HTTP_2, HTTP_1]);
    }
}
