//! Certificates for tests, and both sides of a handshake.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tokio_rustls::rustls;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
    SupportedProtocolVersion,
};

/// An encrypted connection; both clones are the same.
#[derive(Clone)]
pub struct Secured(Arc<Mutex<dyn Encrypted>>);

trait Encrypted: Read + Write + Send {}
impl<T: Read + Write + Send> Encrypted for T {}

impl Read for Secured {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.lock().unwrap().read(bytes)
    }
}

impl Write for Secured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap().flush()
    }
}

/// A certificate that vouches for itself.
#[derive(Clone)]
pub struct Certificate {
    pub chain: String,
    pub key: String,
}

impl Certificate {
    pub fn of(name: &str) -> Certificate {
        let made = rcgen::generate_simple_self_signed(vec![name.to_string()]).unwrap();
        Certificate { chain: made.cert.pem(), key: made.signing_key.serialize_pem() }
    }

    /// The same for a name, between two dates in days from now, by this one as an authority; or the one of an authority.
    pub fn issued(issuer: Option<&Certificate>, name: &str, days: (i64, i64)) -> Certificate {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec![name.to_string()]).unwrap();
        let now = time::OffsetDateTime::now_utc();
        params.not_before = now + time::Duration::days(days.0);
        params.not_after = now + time::Duration::days(days.1);
        let made = match issuer {
            Some(issuer) => {
                let signing = rcgen::KeyPair::from_pem(&issuer.key).unwrap();
                params.signed_by(&key, &rcgen::Issuer::from_ca_cert_pem(&issuer.chain, signing).unwrap())
            }
            None => {
                params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
                params.self_signed(&key)
            }
        };
        Certificate { chain: made.unwrap().pem(), key: key.serialize_pem() }
    }

    /// Writes it to `NAME.crt` and `NAME.key`.
    pub fn store(&self, folder: &Path, name: &str) {
        std::fs::write(folder.join(format!("{name}.crt")), &self.chain).unwrap();
        std::fs::write(folder.join(format!("{name}.key")), &self.key).unwrap();
    }

    pub fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.chain.as_bytes()).unwrap()
    }

    fn key_der(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from_pem_slice(self.key.as_bytes()).unwrap().into()
    }

    /// The side of a client that trusts this certificate alone, and asks for `name`.
    pub fn client(&self, name: &str) -> impl FnOnce(TcpStream) -> Secured {
        let connection = self.connection(name, rustls::ALL_VERSIONS);
        |stream| Secured(Arc::new(Mutex::new(StreamOwned::new(connection, stream))))
    }

    /// Shakes hands as such a client that speaks these versions; how that ended.
    pub fn handshake(
        &self,
        stream: &mut TcpStream,
        name: &str,
        versions: &[&'static SupportedProtocolVersion],
    ) -> io::Result<()> {
        let mut connection = self.connection(name, versions);
        while connection.is_handshaking() {
            connection.complete_io(stream)?;
        }
        Ok(())
    }

    fn connection(&self, name: &str, versions: &[&'static SupportedProtocolVersion]) -> ClientConnection {
        let mut roots = RootCertStore::empty();
        roots.add(self.der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).unwrap();
        let config = builder.with_root_certificates(roots).with_no_client_auth();
        ClientConnection::new(Arc::new(config), ServerName::try_from(name.to_string()).unwrap()).unwrap()
    }

    /// The side of a client that has shaken hands.
    pub fn of_connection(connection: ClientConnection) -> impl FnOnce(TcpStream) -> Secured {
        |stream| Secured(Arc::new(Mutex::new(StreamOwned::new(connection, stream))))
    }

    /// The side of a server that shows this certificate.
    pub fn server(&self) -> impl FnOnce(TcpStream) -> Secured {
        let connection = self.serving(&[]);
        |stream| Secured(Arc::new(Mutex::new(StreamOwned::new(connection, stream))))
    }

    /// The same, which speaks these protocols (ALPN).
    pub fn serving(&self, protocols: &[&str]) -> ServerConnection {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_no_client_auth().with_single_cert(vec![self.der()], self.key_der()).unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        ServerConnection::new(Arc::new(config)).unwrap()
    }
}
