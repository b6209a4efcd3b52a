//! TLS to servers, with the certificate authorities of the configuration only.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Trusts the authorities in a file.
///
/// # Errors
/// The file has no certificates; the message names it.
pub fn trusting(authorities: &Path) -> Result<Arc<ClientConfig>, String> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", authorities.display());
    let read = CertificateDer::pem_file_iter(authorities).and_then(|all| all.collect::<Result<Vec<_>, _>>());
    let mut roots = RootCertStore::empty();
    if roots.add_parsable_certificates(read.map_err(|error| named(&error))?).0 == 0 {
        return Err(named(&"no certificate in it"));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// TLS for connections to PostgreSQL.
#[derive(Clone)]
pub struct Securing(pub Arc<ClientConfig>);

/// TLS for one server.
pub struct SecuringFor(TlsConnector, ServerName<'static>);

/// Connection within TLS.
pub struct Secure(tokio_rustls::client::TlsStream<Socket>);

impl MakeTlsConnect<Socket> for Securing {
    type Stream = Secure;
    type TlsConnect = SecuringFor;
    type Error = io::Error;

    fn make_tls_connect(&mut self, name: &str) -> io::Result<SecuringFor> {
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        Ok(SecuringFor(self.0.clone().into(), name))
    }
}

impl TlsConnect<Socket> for SecuringFor {
    type Stream = Secure;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Secure>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move { self.0.connect(self.1, stream).await.map(Secure) })
    }
}

impl TlsStream for Secure {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Secure {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Secure {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(context)
    }
}
