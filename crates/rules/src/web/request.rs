//! Requests and responses as the lists see them, and decisions.

use core::net::IpAddr;
use std::sync::Arc;

use super::moment::Moment;
use super::suffix::Suffixes;

/// A field of a head.
pub type Field<'r> = (&'r [u8], &'r [u8]);

/// The door that asks, by which a storyboard begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Entry {
    /// A proxy: `checkrequest`, and `checkresponse` for the head of a response.
    #[default]
    Proxy,
    /// ICAP: `icap-checkrequest` and `icap-checkresponse`, where the storyboard has them.
    Icap,
}

/// How far it is known that the host of a request is that of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Identity {
    /// The door has looked the host up, or the certificate of the server names it.
    #[default]
    Proved,
    /// The certificate of the server proves it before any request, if the tunnel is opened.
    Awaited,
    /// Only the client says so: lists block by such a host, and exempt nothing.
    Claimed,
}

/// A request as a door has it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'r> {
    /// `GET`, `CONNECT` and others.
    pub method: &'r [u8],
    /// The whole URL; of `CONNECT` the host and the port.
    pub url: &'r [u8],
    /// The fields of the head.
    pub fields: &'r [Field<'r>],
    /// The client's address.
    pub client: Option<IpAddr>,
    /// The port that it came to.
    pub port: u16,
    /// The name that it has logged in with.
    pub user: Option<&'r str>,
    /// The group of that name as the host knows it: its name, or `filterN`.
    pub group: Option<&'r str>,
    /// The connection is TLS that is read here.
    pub is_tls: bool,
    /// The client has named the server that it wants.
    pub has_server_name: bool,
    /// How far its host is known.
    pub identity: Identity,
    /// The door that asks.
    pub entry: Entry,
    /// Time of the request.
    pub now: Moment,
    /// The means of tokens; `None`: none is offered, and none is accepted.
    pub tokens: Option<Tokens<'r>>,
}

/// The means by which tokens that let past a block are made and checked.
#[derive(Debug, Clone, Copy)]
pub struct Tokens<'r> {
    /// Seconds since the beginning of 1970.
    pub now: u64,
    /// A secret of the host, for groups without a key.
    pub secret: &'r [u8],
    /// Hosts below which a token does not hold.
    pub suffixes: &'r Suffixes,
}

impl<'r> Request<'r> {
    /// The value of the first field of a name.
    pub fn header(&self, name: &[u8]) -> Option<&'r [u8]> {
        self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }
}

/// The head of a response.
#[derive(Debug, Clone, Copy, Default)]
pub struct Response<'r> {
    /// The type that it says, with or without parameters.
    pub content_type: Option<&'r [u8]>,
    /// The names of the file in `Content-Disposition`: `filename*` and `filename`.
    pub file_names: [Option<&'r [u8]>; 2],
}

/// Verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// No list knows it: its content is looked at.
    #[default]
    Allow,
    /// A list lets it pass that would be blocked: its content is looked at.
    Grey,
    /// A list lets it pass whatever is in it.
    Exception,
    /// It is blocked.
    Block,
}

impl Verdict {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Allow => "allow",
            Verdict::Grey => "grey",
            Verdict::Exception => "exception",
            Verdict::Block => "block",
        }
    }
}

/// Why something was decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reason {
    /// The number of the message; 0 where the list has none.
    pub message: u32,
    /// Reason for the blocked user.
    pub text: String,
    /// Reason for the log.
    pub log: String,
    /// The name of the list.
    pub list: Box<str>,
    /// The entry of it.
    pub entry: String,
}

/// Decision on a request or a response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// The number of the client's group, from 1.
    pub group: u32,
    /// Verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: Option<Reason>,
    /// The categories that it belongs to.
    pub categories: Vec<Arc<str>>,
    /// The URL to ask in place of the client's. It was decided on, too.
    pub url: Option<Vec<u8>>,
    /// The URL that the client is sent to.
    pub redirect: Option<Vec<u8>>,
    /// The fields with other values, by their places; with an empty value a field is left out.
    pub fields: Vec<(usize, Vec<u8>)>,
    /// Other names for fields of these, by their places.
    pub renamed: Vec<(usize, Vec<u8>)>,
    /// A field to add.
    pub added: Option<(Vec<u8>, Vec<u8>)>,
    /// Search terms.
    pub search: Option<String>,
    /// The server that `CONNECT` is to reach in place of the client's.
    pub connect: Option<Vec<u8>>,
    /// TLS is to be read.
    pub intercepts: bool,
    /// The server's certificate is not checked.
    pub trusts_certificate: bool,
    /// Content is not looked through for malware.
    pub skips_scan: bool,
    /// Content that cannot be looked through for malware passes.
    pub skips_faults: bool,
    /// The client may come past the block with a token.
    pub may_bypass: bool,
    /// The client may have one URL spared the scan for malware with a token.
    pub may_bypass_scan: bool,
    /// A token lets the client past the blocks of lists.
    pub is_bypassed: bool,
    /// The value of `Set-Cookie` by which the client comes past the next blocks of the site.
    pub cookie: Option<Vec<u8>>,
    /// Whether the request is not logged.
    pub is_silent: bool,
    /// Goes past what the group asks for, without a login.
    pub is_direct: bool,
    /// Some expression took too many steps: it may match.
    pub is_partial: bool,
}

/// A type up to its parameters or a blank, in lower case.
pub(super) fn essence(kind: &[u8]) -> Vec<u8> {
    let kind = kind.trim_ascii();
    let end = kind.iter().position(|&byte| matches!(byte, b';' | b' '));
    kind[..end.unwrap_or(kind.len())].trim_ascii().to_ascii_lowercase()
}
