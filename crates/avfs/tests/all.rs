//! The file system as processes see it. These tests need root and `/dev/fuse`.

mod contents;
mod differential;
mod harness;
mod never;
mod posix;
mod remembered;
mod rescan;
mod rules;
mod waits;
mod watch;
mod ways;
