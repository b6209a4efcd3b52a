//! Messages between a supervisor and its edge: lines, some with descriptors.
//!
//! | from | line | beside it | meaning |
//! |---|---|---|---|
//! | supervisor | `socket NAME` | sockets | listen at this address already |
//! | supervisor | `begin` | | there are no more |
//! | edge | `keep NAME` | sockets | are to be kept for whoever follows |
//! | edge | `names`, and a name on each line | | all that are wanted: the others are closed |
//! | edge | `ready` | | clients are served |
//! | supervisor | `reload NUMBER` | | everything is to be read anew |
//! | edge | `reloaded NUMBER TEXT` | | requests up to this one are done |
//! | edge | `failed NUMBER TEXT` | | the old configuration stays in force; from an edge that starts: it does not |
//! | edge | `replace NUMBER TEXT` | | a new edge is wanted for it |
//! | edge | `notify TEXT` | | what the service manager is to be told |
//! | edge | `template` | socket | a process that those which inspect are copies of is wanted, with this as its standard input |
//! | edge | `store` | socket | the process of the store is wanted, with this as its standard input |
//! | edge | `compile` | three | a process that compiles signatures, with these as its standard input, output and error |
//! | supervisor | `started PID` | | it was; 0 if it was not |
//! | edge | `end PID` | | it is to go, if it is still there |
//! | supervisor | `ended PID STATUS` | | it is gone |
//!
//! A line is preceded by its length, four bytes. That the other side is gone is the end of it. Bounds: [`LINE_BYTES_MAX`],
//! [`BESIDE_MAX`].

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// The longest line: the names of a thousand addresses.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// Descriptors beside a line: the kernel takes 253.
const BESIDE_MAX: usize = 250;

/// How long the other side may take no notice.
const SEND_WAIT: Duration = Duration::from_secs(10);

/// One side of it.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    /// Held while a line is written, so that lines of several threads stay whole.
    saying: Mutex<()>,
}

/// A message.
#[derive(Debug)]
pub struct Packet {
    /// The line.
    pub line: String,
    /// Descriptors that came with the line.
    pub beside: Vec<OwnedFd>,
}

impl Channel {
    /// Both sides; neither survives an exec.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn pair() -> io::Result<[Channel; 2]> {
        let (one, other) = UnixStream::pair()?;
        one.set_write_timeout(Some(SEND_WAIT))?;
        Ok([Channel::from(OwnedFd::from(one)), Channel::from(OwnedFd::from(other))])
    }

    /// Says something.
    ///
    /// # Errors
    /// When the other side is gone, or hears nothing for long; or when that is too much.
    pub fn send(&self, line: &str, beside: &[BorrowedFd<'_>]) -> io::Result<()> {
        if line.len() > LINE_BYTES_MAX || beside.len() > BESIDE_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let frame = [&(line.len() as u32).to_le_bytes()[..], line.as_bytes()].concat();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BESIDE_MAX))];
        let mut with = SendAncillaryBuffer::new(&mut space);
        if !beside.is_empty() && !with.push(SendAncillaryMessage::ScmRights(beside)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let _alone = self.saying.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = sendmsg(&self.stream, &[io::IoSlice::new(&frame)], &mut with, SendFlags::NOSIGNAL)?;
        (&self.stream).write_all(&frame[sent..])
    }

    /// Receives the next message; none once the other side has closed.
    ///
    /// # Errors
    /// When the system fails, or what comes cannot be.
    pub fn receive(&self) -> io::Result<Option<Packet>> {
        let mut len = [0; 4];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BESIDE_MAX))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        let got = loop {
            let slices = &mut [io::IoSliceMut::new(&mut len)];
            match recvmsg(&self.stream, slices, &mut with, RecvFlags::CMSG_CLOEXEC) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CONNRESET) => return Ok(None),
                outcome => break outcome?.bytes,
            }
        };
        if got == 0 {
            return Ok(None);
        }
        let rights = with.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let beside = rights.flatten().collect();
        (&self.stream).read_exact(&mut len[got..])?;
        let len = u32::from_le_bytes(len) as usize;
        if len > LINE_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut line = vec![0; len];
        (&self.stream).read_exact(&mut line)?;
        Ok(Some(Packet { line: String::from_utf8_lossy(&line).into_owned(), beside }))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl From<OwnedFd> for Channel {
    fn from(socket: OwnedFd) -> Channel {
        Channel { stream: socket.into(), saying: Mutex::default() }
    }
}

impl From<Channel> for OwnedFd {
    fn from(channel: Channel) -> OwnedFd {
        channel.stream.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_with_what_is_beside_them() {
        let [one, other] = Channel::pair().unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        one.send("keep smtp", &[writer.as_fd()]).unwrap();
        one.send("ready", &[]).unwrap();
        drop(writer);
        let packet = other.receive().unwrap().unwrap();
        assert_eq!(packet.line, "keep smtp");
        rustix::io::write(&packet.beside[0], b"x").unwrap();
        drop(packet);
        assert_eq!(std::io::Read::bytes(reader).next().unwrap().unwrap(), b'x');
        let packet = other.receive().unwrap().unwrap();
        assert!(packet.line == "ready" && packet.beside.is_empty());
        drop(one);
        assert!(other.receive().unwrap().is_none());
    }
}
