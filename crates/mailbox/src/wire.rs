//! A client's stream: what came and is not looked at yet, and what is sent.
//!
//! Who waits holds no buffer: what comes is read into one that all sessions of a thread share.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::deflate::Deflated;

/// How long a client may take to take what we say.
const WRITE_WAIT: Duration = Duration::from_secs(60);

/// Bytes that a session sends before others have their turn. A socket takes megabytes at once, and a runtime lets go on what need not
/// wait: of sixty sessions that begin a long reply the last command would wait for all.
const SENT_BYTES_MAX: usize = 32 << 10;

/// Bytes that are taken of a client while its command is under way.
const AHEAD_BYTES_MAX: usize = 64 << 10;

/// Commands of a compressed stream beyond one for each byte.
const COMMANDS_FREE: u64 = 1_000;

const SHARED_BYTES: usize = 32 << 10;

thread_local! {
    static SHARED: RefCell<Box<[u8]>> = RefCell::new(vec![0; SHARED_BYTES].into_boxed_slice());
}

/// Byte stream of a session.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

pub(crate) struct Wire<S> {
    stream: S,
    input: Vec<u8>,
    at: usize,
    deflated: Option<Box<Deflated>>,
    /// Bytes that were sent since others had their turn.
    sent: usize,
    /// Commands since it is compressed.
    commands: u64,
}

impl<S: Stream> Wire<S> {
    pub fn new(stream: S) -> Self {
        Wire { stream, input: Vec::new(), at: 0, deflated: None, sent: 0, commands: 0 }
    }

    /// Input that was read and is not consumed.
    pub fn input(&self) -> &[u8] {
        &self.input[self.at..]
    }

    /// The first `count` bytes of it are done with.
    pub fn take(&mut self, count: usize) {
        self.at += count;
        if self.at == self.input.len() {
            (self.input, self.at) = (Vec::new(), 0);
        }
    }

    /// Waits for more; whether any came. Nothing is lost when the wait is given up.
    pub async fn read(&mut self) -> io::Result<bool> {
        self.input.drain(..self.at);
        self.at = 0;
        loop {
            if let Some(deflated) = &mut self.deflated
                && deflated.inflate(&mut self.input)?
            {
                return Ok(true);
            }
            if !self.receive().await? {
                return Ok(false);
            }
            if self.deflated.is_none() {
                return Ok(true);
            }
        }
    }

    /// Resolves when the client is gone, or the connection breaks. What it sends meanwhile is kept, up to [`AHEAD_BYTES_MAX`].
    pub async fn hung_up(&mut self) -> io::Error {
        while self.ahead() < AHEAD_BYTES_MAX {
            match self.receive().await {
                Ok(true) => {}
                Ok(false) => return io::ErrorKind::UnexpectedEof.into(),
                Err(error) => return error,
            }
        }
        std::future::pending().await
    }

    fn ahead(&self) -> usize {
        self.deflated.as_ref().map_or(self.input().len(), |deflated| deflated.waiting())
    }

    /// Waits for bytes as they are sent.
    async fn receive(&mut self) -> io::Result<bool> {
        let (stream, input, deflated) = (&mut self.stream, &mut self.input, &mut self.deflated);
        std::future::poll_fn(|context| {
            SHARED.with_borrow_mut(|shared| {
                let mut read = ReadBuf::new(shared);
                ready!(Pin::new(&mut *stream).poll_read(context, &mut read))?;
                match deflated {
                    Some(deflated) => deflated.came(read.filled()),
                    None => input.extend_from_slice(read.filled()),
                }
                Poll::Ready(Ok(!read.filled().is_empty()))
            })
        })
        .await
    }

    /// Sends `bytes`.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let packed = self.deflated.as_mut().map(|deflated| deflated.deflate(bytes)).transpose()?;
        timeout(WRITE_WAIT, self.stream.write_all(packed.as_deref().unwrap_or(bytes))).await??;
        timeout(WRITE_WAIT, self.stream.flush()).await??;
        self.sent = self.sent.saturating_add(bytes.len());
        if self.sent >= SENT_BYTES_MAX {
            self.sent = 0;
            yield_now().await;
        }
        Ok(())
    }

    /// From here on both sides compress what they send (RFC 4978).
    pub fn compress(&mut self) {
        let came = self.input.split_off(self.at);
        (self.input, self.at) = (Vec::new(), 0);
        self.deflated = Some(Box::new(Deflated::new(came)));
    }

    /// Counts a command; whether there were more than [`COMMANDS_FREE`] and one for each byte that came compressed. What cannot be
    /// compressed further is bounded by the network, and this by what it stands for.
    pub fn is_flooded(&mut self) -> bool {
        let Some(deflated) = &self.deflated else { return false };
        self.commands = self.commands.saturating_add(1);
        self.commands > deflated.received().saturating_add(COMMANDS_FREE)
    }

    pub fn is_compressed(&self) -> bool {
        self.deflated.is_some()
    }

    /// The stream.
    pub fn into_inner(self) -> S {
        self.stream
    }

    /// Ends it in good order.
    pub async fn close(mut self) {
        let _ = timeout(Duration::from_secs(1), self.stream.shutdown()).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[tokio::test]
    async fn others_have_turns_while_a_client_takes_all_at_once() {
        let (stream, _client) = tokio::io::duplex(8 << 20);
        let turns = Arc::new(AtomicUsize::new(0));
        let other = turns.clone();
        tokio::spawn(async move {
            loop {
                other.fetch_add(1, Relaxed);
                yield_now().await;
            }
        });
        let mut wire = Wire::new(stream);
        for _ in 0..64 {
            wire.write(&[b'x'; 16 << 10]).await.unwrap();
        }
        let turns = turns.load(Relaxed);
        assert!((30..=70).contains(&turns), "{turns} turns during a megabyte");
    }
}
