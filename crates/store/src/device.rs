//! The device under a volume: a flat space of bytes with positioned reads and writes, and a flush.
//!
//! A file, a block device and a virtual disk all fit. There is no mapping, since a mapped read turns an error of the device into
//! a fault of the process.

use core::fmt;

/// A device. Offsets and lengths are bytes; the store writes runs that begin and end where it likes.
pub trait Device {
    /// How many bytes there are. Does not change while a volume is open.
    fn len(&self) -> u64;

    /// Whether there is nothing.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` from `at`. Fails as a whole.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<(), DeviceError>;

    /// Writes `bytes` at `at`. Until [`flush`](Self::flush) has returned, any of its sectors may be lost or torn off.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Returns when everything written before is on stable storage. After a failure nothing is known of it.
    fn flush(&mut self) -> Result<(), DeviceError>;

    /// Declares the contents of a range unused; later reads of it may return anything.
    fn discard(&mut self, at: u64, length: u64) -> Result<(), DeviceError>;
}

/// A failure of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceError {
    /// The call that failed.
    pub call: Call,
    /// Where, in bytes; 0 for a flush.
    pub at: u64,
    /// The operating system's number for it, or 0.
    pub code: i32,
}

/// The calls of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of the methods")]
pub enum Call {
    Read,
    Write,
    Flush,
    Discard,
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = match self.call {
            Call::Read => "read",
            Call::Write => "write",
            Call::Flush => "flush",
            Call::Discard => "discard",
        };
        write!(f, "the device failed to {call} at {} (error {})", self.at, self.code)
    }
}

impl core::error::Error for DeviceError {}
