//! Rules over content. One room so far: [`spam`] reads SpamAssassin's configuration and scores what hits.
//!
//! Nothing here opens a file or asks the network: the host hands in the bytes of files, and what each rule came to. This
//! crate knows nothing of messages yet; which rule hits is not decided here.
#![forbid(unsafe_code)]

pub mod spam;
