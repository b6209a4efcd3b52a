//! Contents as an inspection reads them: a file, what waits to come over it, and what the kernel is given on the way.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;

use crate::node::Node;
use crate::overlay::Overlay;

/// The pages of files that the kernel has. A file goes by its node's id.
pub trait Pages: Send + Sync {
    /// Has it drop all of a file.
    ///
    /// # Errors
    /// When it does not.
    fn forget(&self, id: u64) -> io::Result<()>;

    /// Gives it what a file has at an offset, before anybody asks for it.
    ///
    /// # Errors
    /// When it does not take it.
    fn give(&self, id: u64, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// A file that is read, and given to the kernel as it is.
pub struct Ahead<'a> {
    /// The file to read.
    pub file: &'a File,
    /// Its node.
    pub node: &'a Node,
    /// The offset of the next byte.
    pub at: u64,
    /// Nobody, if something could not be given.
    pub pages: Option<&'a dyn Pages>,
}

impl Read for Ahead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file;
        let count = file.read(buffer)?;
        self.pages = self.pages.filter(|pages| pages.give(self.node.id, self.at, &buffer[..count]).is_ok());
        self.at += count as u64;
        Ok(count)
    }
}

/// A file that is read from its beginning, wherever its descriptor stands.
pub struct At<'a> {
    /// The file to read.
    pub file: &'a File,
    /// How far it has come.
    pub at: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Pending changes, read in pieces, as long as they are the same.
pub struct Pending<'a> {
    /// Its node.
    pub node: &'a Node,
    /// The file below.
    pub below: &'a File,
    /// The version that is read.
    pub version: u64,
    /// How far it has come.
    pub at: u64,
}

impl Read for Pending<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let content = self.node.content();
        match &content.overlay {
            Some(overlay) if overlay.version() == self.version => {
                let count = overlay.read(self.below, buffer, self.at)?;
                self.at += count as u64;
                Ok(count)
            }
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// Pending changes that cannot change meanwhile.
pub struct Held<'a> {
    /// The changes.
    pub overlay: &'a Overlay,
    /// The file below.
    pub below: &'a File,
    /// How far it has come.
    pub at: u64,
}

impl Read for Held<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.overlay.read(self.below, buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
