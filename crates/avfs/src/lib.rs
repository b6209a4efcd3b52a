//! The file-system host: a folder, mounted, of which no infected byte reaches a reader or the disk.
//!
//! ```text
//!   process ──► kernel (FUSE) ──► host ──► guard ──► overlay · file below
//!                                            └──► Judge, which whoever mounts it hands in
//! ```
//!
//! This crate knows files, and nothing of what they hold: a [`Judge`] says that. `host.rs` answers the kernel, `pool.rs` has the threads
//! that may wait, `files.rs` does what is asked for, `node.rs` holds
//! files, `nodes.rs` as many as there are descriptors for, `guard.rs` decides what passes, `rules.rs` says where something else holds, `overlay.rs` is what was written and has no verdict yet,
//! `verdicts.rs` remembers what was clean, `rescan.rs` inspects it again when there are other signatures. `docs/operate/file-system.md` is the page for who mounts it.

#![forbid(unsafe_code)]

mod evidence;
mod files;
mod front;
mod guard;
mod host;
mod judge;
mod mount;
mod node;
mod nodes;
mod overlay;
mod pool;
mod ranges;
mod reading;
mod rescan;
mod rules;
mod verdicts;
mod watch;
mod who;

pub use guard::Settings;
pub use judge::{Generation, Hit, Judge, Judging, Unjudged};
pub use mount::{End, Mounted, Options, bare, mount};
pub use node::{Mode, OnInfected};
pub use rescan::Rescan;
pub use rules::{Rules, Words, Wrong};
pub use verdicts::{Before, Verdicts};
pub use watch::{WatchOptions, Watching, watch};
