//! TLS that is opened on its way: how a server proves who it is, and what its client is shown in its place.
//!
//! The handshake with a server takes any certificate; what it is worth is looked at afterwards, so that the client can be shown the
//! same fault. Revocation is not looked up. Hosts that cannot be opened are remembered for an hour, 10,000 of them at most.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, ClientConfig, Error};
use tokio_rustls::rustls;

use crate::net::identity::validity;
use crate::net::mirror::{Mirror, Proof};
use crate::net::stream::Stream;
use crate::net::tls::{self, HTTP_1, HTTP_2};
use crate::settings::Tls;

/// How long a host is remembered that cannot be opened, and how many.
const CLOSED_FOR: Duration = Duration::from_secs(3_600);
const CLOSED_MAX: usize = 10_000;

/// Settings to open TLS.
pub struct Opener {
    /// Certificates shown to clients.
    pub mirror: Mirror,
    /// With servers that may choose HTTP/2, and with those that may not.
    configs: [Arc<ClientConfig>; 2],
    verifier: Arc<WebPkiServerVerifier>,
    /// Hosts that cannot be opened, and for whom; none: for nobody.
    closed: Mutex<HashMap<(Option<IpAddr>, String), Instant>>,
}

impl Opener {
    /// With the authorities and the signing authority of the settings.
    ///
    /// # Errors
    /// When one of them cannot be read; the message names the file.
    pub fn new(settings: &Tls) -> Result<Opener, String> {
        let path = settings.signing_authority.as_ref().ok_or("no signing_authority in [tls]")?;
        let mut config = tls::unchecked_client(settings.minimum)?;
        config.alpn_protocols = vec![HTTP_1.to_vec()];
        let mut newer = config.clone();
        newer.alpn_protocols.insert(0, HTTP_2.to_vec());
        Ok(Opener {
            mirror: Mirror::load(path, settings.minimum)?,
            configs: [Arc::new(newer), Arc::new(config)],
            verifier: tls::verifier(settings)?,
            closed: Mutex::default(),
        })
    }

    /// Shakes hands with a server. `is_old`: it is offered HTTP/1.1 alone.
    ///
    /// # Errors
    /// When that fails. A certificate that proves nothing is no failure.
    pub async fn secure(&self, stream: Stream, host: &str, is_old: bool) -> io::Result<Stream> {
        let name = ServerName::try_from(host.to_string()).map_err(io::Error::other)?;
        stream.connect_tls(self.configs[usize::from(is_old)].clone(), name).await
    }

    /// How a server has proved that it is this host.
    pub fn proof(&self, stream: &Stream, host: &str) -> Proof {
        let version = stream.cipher().map_or(0, |cipher| cipher.version());
        let Some((own, between)) = stream.certificates().split_first() else {
            return Proof {
                certificate: Vec::new(),
                is_trusted: false,
                fault: Some("it has shown no certificate".into()),
                names_others: false,
                version,
            };
        };
        let now = UnixTime::now();
        let fault = self.fault(own, between, host, now);
        let is_trusted = match &fault {
            None => true,
            Some(Error::InvalidCertificate(error)) if is_about_the_host(error) => true,
            Some(Error::InvalidCertificate(error)) if is_about_the_time(error) => {
                let then = validity(own).and_then(|(_, end)| u64::try_from(end).ok()).map(|end| end.saturating_sub(1));
                let then = then.map(|then| UnixTime::since_unix_epoch(Duration::from_secs(then)));
                then.is_some_and(|then| match self.fault(own, between, host, then) {
                    None => true,
                    Some(Error::InvalidCertificate(error)) => is_about_the_host(&error),
                    Some(_) => false,
                })
            }
            Some(_) => false,
        };
        let names_others = matches!(&fault, Some(Error::InvalidCertificate(error)) if is_about_the_host(error));
        let fault = fault.map(|fault| fault.to_string().into());
        Proof { certificate: own.to_vec(), is_trusted, fault, names_others, version }
    }

    fn fault(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        host: &str,
        at: UnixTime,
    ) -> Option<Error> {
        let name = match ServerName::try_from(host) {
            Ok(name) => name,
            Err(_) => return Some(CertificateError::NotValidForName.into()),
        };
        self.verifier.verify_server_cert(own, between, &name, &[], at).err()
    }

    /// Remembers that a host cannot be opened: for one client, or for nobody.
    pub fn close(&self, client: Option<IpAddr>, host: &str) {
        let now = Instant::now();
        let mut closed = self.closed.lock().expect("no holder panics");
        if closed.len() >= CLOSED_MAX {
            closed.retain(|_, until| *until > now);
        }
        if closed.len() < CLOSED_MAX {
            closed.insert((client, host.into()), now + CLOSED_FOR);
        }
    }

    /// Whether a host could not be opened for this client within the hour.
    pub fn is_closed(&self, client: IpAddr, host: &str) -> bool {
        let now = Instant::now();
        let closed = self.closed.lock().expect("no holder panics");
        [None, Some(client)]
            .into_iter()
            .any(|client| closed.get(&(client, host.into())).is_some_and(|until| *until > now))
    }
}

/// Whether the certificate is another host's.
fn is_about_the_host(error: &CertificateError) -> bool {
    matches!(error, CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. })
}

/// Whether the certificate does not hold now.
fn is_about_the_time(error: &CertificateError) -> bool {
    use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    matches!(error, Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. })
}

/// Whether a client has ended the handshake because it does not trust what it was shown.
pub fn is_distrust(error: &io::Error) -> bool {
    use AlertDescription::{
        AccessDenied, BadCertificate, CertificateRevoked, CertificateUnknown, UnknownCA, UnsupportedCertificate,
    };
    let alert = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
    matches!(
        alert,
        Some(Error::AlertReceived(
            AccessDenied
                | BadCertificate
                | CertificateRevoked
                | CertificateUnknown
                | UnknownCA
                | UnsupportedCertificate
        ))
    )
}

/// Whether a server wants a certificate of its client.
pub fn wants_certificate(error: &io::Error) -> bool {
    let alert = error.get_ref().and_then(|error| error.downcast_ref::<Error>());
    matches!(alert, Some(Error::AlertReceived(AlertDescription::CertificateRequired)))
}
