//! The vocabulary that every part of Sluice shares.
//!
//! A [`Stage`] takes a prefix of its input, emits one [`Event`] and returns. Stages never call each other: the driver
//! (crate `inspect`) owns the windows and the fuel, and is the only place where bytes move on.
//!
//! This crate knows no format and no protocol, and does no I/O. It has the verb ([`Stage`], [`Step`], [`Event`]), the
//! tools of a stage ([`Window`], [`Fuel`], [`ReadAt`], of which [`Spool`] is one), the content of events ([`Object`],
//! [`Note`], [`Finding`], [`FileType`]) and the bounds of an inspection ([`Limits`]).
//!
//! # The law
//!
//! However the input is cut, whatever the fuel and the window, the events are the same once adjacent content is joined.
//! Every stage is tested against it by `law::holds` (feature `law`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "law"))]
extern crate std;

mod file_type;
mod finding;
mod fuel;
#[cfg(any(test, feature = "law"))]
pub mod law;
mod limits;
mod object;
mod spool;
mod stage;
mod window;

pub use file_type::FileType;
pub use finding::{Class, Finding};
pub use fuel::Fuel;
pub use limits::Limits;
pub use object::{Coding, ContentCoding, Entry, Kind, Object};
pub use spool::Spool;
pub use stage::{Event, Note, Nothing, ReadAt, Stage, Step};
pub use window::Window;
