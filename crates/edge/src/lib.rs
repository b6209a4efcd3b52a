//! The doors: sockets, TLS, protocol halves, what is held back and handed on.
//!
//! A door asks a [`flow::Inspector`] what is to be done with a mail, and parses no content itself: of our crates this one
//! imports `stream`, `flow` and `proto`, and no other. It reads no configuration file and knows no signatures; whoever makes a
//! [`porch::runtime::Runtime`] does.

#![forbid(unsafe_code)]

pub mod beat;
pub mod clamd;
pub mod inspector;
pub mod mailbox;
pub mod message;
pub mod metrics;
pub mod milter;
pub mod net;
pub mod porch;
pub mod quarantine;
pub mod recipients;
pub mod scanner;
pub mod scored;
pub mod settings;
pub mod smtp;
pub mod trust;
pub mod upstream;
pub mod web;
pub mod worker;
