//! Programs: installers, packed executables, compiled scripts.

pub(crate) mod autoit;
pub(crate) mod executable;
pub(crate) mod installshield;
pub(crate) mod nsis;
pub(crate) mod packed;
pub(crate) mod pyinstaller;
pub(crate) mod sis;
