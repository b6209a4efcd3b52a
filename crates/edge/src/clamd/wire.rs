//! A client's socket, TCP or UNIX: bytes both ways, and descriptors that come with them.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::{TcpStream, UnixStream};

/// A client's socket.
pub enum Wire {
    /// TCP: no descriptors come here.
    Tcp(TcpStream),
    /// A UNIX socket.
    Unix(UnixStream),
}

impl Wire {
    /// Waits until there is something to read, or the end.
    pub async fn readable(&self) -> io::Result<()> {
        match self {
            Wire::Tcp(stream) => stream.readable().await,
            Wire::Unix(stream) => stream.readable().await,
        }
    }

    /// Reads what is there into `input`, with the descriptor that came with it; [`io::ErrorKind::WouldBlock`] if
    /// nothing is.
    pub fn try_read(&self, input: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
        match self {
            Wire::Tcp(stream) => Ok((stream.try_read(input)?, None)),
            Wire::Unix(stream) => stream.try_io(Interest::READABLE, || receive(stream, input)),
        }
    }

    /// Waits until something can be written.
    pub async fn writable(&self) -> io::Result<()> {
        match self {
            Wire::Tcp(stream) => stream.writable().await,
            Wire::Unix(stream) => stream.writable().await,
        }
    }

    /// Writes what fits.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Tcp(stream) => stream.try_write(bytes),
            Wire::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Says that nothing more will be written, and reads to the client's end of it: a socket that is closed with bytes
    /// unread can lose what was written last.
    pub async fn linger(mut self) {
        use tokio::io::AsyncWriteExt;
        let mut rest = [0; 1024];
        match &mut self {
            Wire::Tcp(stream) => {
                let _ = stream.shutdown().await;
                while let Ok(1..) = stream.read(&mut rest).await {}
            }
            Wire::Unix(stream) => {
                let _ = stream.shutdown().await;
                while let Ok(1..) = stream.read(&mut rest).await {}
            }
        }
    }
}

/// Bytes and at most one descriptor. Of several, or more than fit, none is taken: all are closed.
fn receive(stream: &UnixStream, input: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut input = [io::IoSliceMut::new(input)];
    let received = recvmsg(stream, &mut input, &mut control, RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let one = descriptors.len() == 1 && !received.flags.contains(ReturnFlags::CTRUNC);
    Ok((received.bytes, descriptors.pop().filter(|_| one)))
}
