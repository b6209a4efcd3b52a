//! Where the mail of a listener goes, or comes from, and what connections are that were meant for somebody else.

use serde::Deserialize;

use super::forward::{Forward, ProxyVersion};
use super::tls::{ForwardTls, Verify};

/// Where mail goes, or comes from.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct NextHop {
    /// The next hop. Without it: back to whoever asks, or where the client wanted to.
    pub forward: Forward,
    /// STARTTLS towards it: `off`, `opportunistic` or `require`.
    pub forward_tls: ForwardTls,
    /// How it proves who it is.
    pub forward_verify: Option<Verify>,
    /// The header of the PROXY protocol that connections to it begin with: `v1` or `v2`.
    pub forward_proxy: Option<ProxyVersion>,
    /// How connections come that were meant for somebody else, and go there: `redirect` or `tproxy`.
    pub transparent: Option<Transparent>,
    /// The ports whose connections are sent here; without any, those of the protocol.
    pub intercepts: Vec<u16>,
    /// Whether servers see the client's address in place of ours.
    pub keep_source: bool,
}

/// How connections come that were meant for somebody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transparent {
    /// Their destination was rewritten; the kernel remembers what it was.
    Redirect,
    /// As they are: the socket takes the place of the server.
    Tproxy,
}

impl NextHop {
    /// Where nothing is said of it, mail goes where the client wanted to.
    pub(super) fn aim(&mut self) {
        if self.transparent.is_some() && self.forward == Forward::Caller {
            self.forward = Forward::Original;
        }
    }
}
