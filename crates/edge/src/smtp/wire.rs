//! The stream of a client: the handshake, and what it is told.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::net::stream::Stream;
use crate::porch::shared::Shared;

/// How long a client may take to take what we say.
pub const REPLY_WAIT: Duration = Duration::from_secs(60);

/// Shakes hands with a client.
pub async fn secure(shared: &Shared, client: SocketAddr, stream: Stream) -> std::io::Result<Stream> {
    let tls = shared.runtime.borrow().tls.clone();
    let tls = tls.ok_or_else(|| std::io::Error::other("no certificate any more"))?;
    let secured = stream.accept_tls(tls).await;
    secured.inspect_err(|error| tracing::debug!(%client, %error, "handshake failed"))
}

/// Writes all of it, however long the client takes within reason.
pub async fn write(stream: &mut Stream, bytes: &[u8]) -> std::io::Result<()> {
    timeout(REPLY_WAIT, stream.write_all(bytes)).await??;
    timeout(REPLY_WAIT, stream.flush()).await?
}
