//! What the configuration says about how mails are read.

use std::collections::HashSet;
use std::sync::Arc;

/// Patterns of addresses that lead to another which they contain.
pub trait Redirectors: Send + Sync + std::fmt::Debug {
    /// Tells what the first capture of each pattern (`redirector_pattern`) that matches is, in their order.
    fn targets(&self, uri: &[u8], tell: &mut dyn FnMut(&[u8]));
}

/// How mails are read: made of the settings once, for all mails.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// `normalize_charset`: text is decoded to UTF-8 before it is looked at.
    pub normalize_charset: bool,
    /// `body_part_scan_size`: as much of each rendered part is looked at; 0 is all.
    pub body_part_scan_size: usize,
    /// `rawbody_part_scan_size`: as much of each decoded part; 0 is all.
    pub rawbody_part_scan_size: usize,
    /// `util_rb_tld`, `util_rb_2tld`, `util_rb_3tld`: below which names domains are registered.
    pub boundaries: HashSet<Box<[u8]>>,
    /// `redirector_pattern`.
    pub redirectors: Option<Arc<dyn Redirectors>>,
}
