//! Reading and writing a stream that a session waits on.
//!
//! A session that waits holds no buffer: what comes is read into one that all sessions of an event loop share, and copied
//! out of it. Only while more comes than fits there a session has its own.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_rustls::rustls::ServerConfig;

use crate::net::stream::{SHARED_BYTES, Stream};
use crate::net::tls::Connector;

/// Bytes read at a time from a side that sends faster than we read.
const INPUT_BYTES: usize = 64 << 10;

/// How long the other side may take to take what we say.
const WRITE_WAIT: Duration = Duration::from_secs(60);

/// A stream, and what was read from it and has not been looked at.
pub struct Wire {
    /// None while a handshake is under way, and for ever if it failed.
    stream: Option<Stream>,
    input: Vec<u8>,
    at: usize,
    /// The last read filled the buffer.
    flows: bool,
}

impl Wire {
    /// Nothing read yet.
    pub fn new(stream: Stream) -> Wire {
        Wire { stream: Some(stream), input: Vec::new(), at: 0, flows: false }
    }

    /// This was read, and not looked at.
    pub fn resumed(stream: Stream, input: Vec<u8>) -> Wire {
        Wire { input, ..Wire::new(stream) }
    }

    /// Shakes hands as a server. What was read and not looked at is thrown away: nobody knows who said it.
    ///
    /// # Errors
    /// When that fails; the wire is of no more use.
    pub async fn accept_tls(&mut self, tls: Arc<ServerConfig>) -> io::Result<()> {
        let stream = self.stream.take().ok_or(io::ErrorKind::NotConnected)?;
        self.input = Vec::new();
        self.at = 0;
        self.stream = Some(stream.accept_tls(tls).await?);
        Ok(())
    }

    /// Shakes hands as a server with a client that has begun: what was read and not looked at is the beginning.
    ///
    /// # Errors
    /// When that fails; the wire is of no more use.
    pub async fn accept_begun_tls(&mut self, tls: Arc<ServerConfig>) -> io::Result<()> {
        let stream = self.stream.take().ok_or(io::ErrorKind::NotConnected)?;
        let mut said = std::mem::take(&mut self.input);
        said.drain(..std::mem::take(&mut self.at));
        self.stream = Some(stream.accept_begun_tls(said, tls).await?);
        Ok(())
    }

    /// Shakes hands as a client.
    ///
    /// # Errors
    /// As [`Wire::accept_tls`], and when the other side has spoken in the clear behind its go-ahead, or does not prove
    /// who it is.
    pub async fn connect_tls(&mut self, connector: &Connector) -> io::Result<()> {
        if !self.input().is_empty() {
            return Err(io::Error::other("it spoke before the handshake"));
        }
        let stream = self.stream.take().ok_or(io::ErrorKind::NotConnected)?;
        self.stream = Some(connector.secure(stream).await?);
        Ok(())
    }

    /// Whether it is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.stream.as_ref().is_some_and(Stream::is_encrypted)
    }

    /// As [`Stream::agreed_protocol`].
    pub fn agreed_protocol(&self) -> Option<&[u8]> {
        self.stream.as_ref().and_then(Stream::agreed_protocol)
    }

    /// As [`Stream::server_name`].
    pub fn server_name(&self) -> Option<&str> {
        self.stream.as_ref().and_then(Stream::server_name)
    }

    fn stream(&mut self) -> io::Result<&mut Stream> {
        self.stream.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Input that was read and is not consumed.
    pub fn input(&self) -> &[u8] {
        &self.input[self.at..]
    }

    /// The first `count` bytes of it are done with.
    pub fn take(&mut self, count: usize) {
        self.at += count;
    }

    /// Waits for more; whether any came, or the other side has closed. Nothing is lost when the wait is given up.
    pub async fn read(&mut self) -> io::Result<bool> {
        self.input.drain(..self.at);
        self.at = 0;
        if !self.flows {
            self.input.shrink_to_fit();
            let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            let count = stream.append(&mut self.input).await?;
            self.flows = count == SHARED_BYTES;
            return Ok(count > 0);
        }
        self.input.reserve_exact(INPUT_BYTES);
        let stream = self.stream.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let count = stream.read_buf(&mut self.input).await?;
        self.flows = count >= SHARED_BYTES;
        Ok(count > 0)
    }

    /// Sends `bytes`.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        timeout(WRITE_WAIT, self.stream()?.write_all(bytes)).await??;
        timeout(WRITE_WAIT, self.stream()?.flush()).await?
    }

    /// Whether nothing has come that is not taken yet, not even the end.
    pub fn is_quiet(&self) -> bool {
        self.input().is_empty() && self.stream.as_ref().is_some_and(Stream::is_quiet)
    }

    /// The stream, and what was read from it and not taken.
    pub fn into_parts(mut self) -> Option<(Stream, Vec<u8>)> {
        self.take_parts()
    }

    /// The same; the wire is of no more use.
    pub fn take_parts(&mut self) -> Option<(Stream, Vec<u8>)> {
        let mut input = std::mem::take(&mut self.input);
        input.drain(..std::mem::take(&mut self.at));
        self.stream.take().map(|stream| (stream, input))
    }

    /// Ends it so that the other side sees that something is missing.
    pub fn reset(self) {
        if let Some(stream) = self.stream {
            stream.reset();
        }
    }

    /// Ends it in good order.
    pub async fn close(self) {
        if let Some(stream) = self.stream {
            stream.close().await;
        }
    }
}
