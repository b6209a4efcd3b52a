//! The byte form of what crosses the wall: postcard, behind a version.
//!
//! Both ends are of one program, so there is one version and no negotiation: another one is an error. Bounds: whatever a
//! length says, nothing is allocated beyond what the bytes at hand can hold.

use alloc::vec::Vec;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Changes with every change of what crosses.
pub const VERSION: u8 = 6;

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// The bytes are of another version.
    Version(u8),
    /// The bytes are truncated, or not written by this crate.
    Malformed,
}

impl core::fmt::Display for WireError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            WireError::Version(version) => write!(formatter, "version {version} in place of {VERSION}"),
            WireError::Malformed => formatter.write_str("malformed"),
        }
    }
}

impl core::error::Error for WireError {}

/// Writes a message behind what `bytes` hold already.
pub fn write<T: Serialize>(message: &T, bytes: Vec<u8>) -> Vec<u8> {
    let mut bytes = bytes;
    bytes.push(VERSION);
    postcard::to_extend(message, bytes).expect("plain data has a byte form")
}

/// Reads a message that `bytes` hold, and nothing besides.
///
/// # Errors
/// Where they hold none.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    let (&version, bytes) = bytes.split_first().ok_or(WireError::Malformed)?;
    if version != VERSION {
        return Err(WireError::Version(version));
    }
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(WireError::Malformed),
    }
}
