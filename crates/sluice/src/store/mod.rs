//! The mail store on Linux: its device, its commands, and the formats that mailboxes come in and go out by.

pub mod command;
mod file;
mod maildir;
mod mbox;
