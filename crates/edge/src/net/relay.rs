//! Client addresses from relays that speak the PROXY protocol.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use proto::proxy::{self, Header};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::net::stream::Stream;

/// How long a relay may take for its header.
const HEADER_WAIT: Duration = Duration::from_secs(10);

/// Reads the header that a relay at `relay` begins with, and says where its client is: the relay itself, if it speaks
/// for none. Nothing behind the header is read.
///
/// # Errors
/// When there is no header, or it does not come.
pub async fn client_behind(stream: &mut Stream, relay: SocketAddr) -> io::Result<SocketAddr> {
    let header = timeout(HEADER_WAIT, header(stream)).await??;
    Ok(header.map_or(relay, |source| SocketAddr::new(source.ip().to_canonical(), source.port())))
}

async fn header(stream: &mut Stream) -> io::Result<Option<SocketAddr>> {
    let mut bytes = Vec::new();
    loop {
        match proxy::read(&bytes) {
            Header::Unfinished(more) => {
                let len = bytes.len();
                bytes.resize(len + more, 0);
                stream.read_exact(&mut bytes[len..]).await?;
            }
            Header::Local => return Ok(None),
            Header::Proxied { source, .. } => return Ok(Some(source)),
            Header::Malformed => return Err(io::Error::other("no header of the PROXY protocol")),
        }
    }
}
