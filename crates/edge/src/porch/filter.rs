//! Lists that decide on what goes through the doors of the web: sites, addresses, types, phrases. The program brings them.
//!
//! A request is asked about once. What the lists remember of it is its [`Course`], which is asked about its response.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use flow::{PageScore, Paging, Spared};
use proto::http::Fields;

/// How far it is known that the host of a request is that of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// It was looked up here, or the certificate of the server names it.
    Proved,
    /// The certificate proves it before any request, if the tunnel is opened.
    Awaited,
    /// Only the client says so: lists block by such a host, and exempt nothing.
    Claimed,
}

/// A request before it goes anywhere. All text is the client's claim.
#[derive(Debug, Clone, Copy)]
pub struct RequestFacts<'a> {
    /// The client's address.
    pub client: Option<IpAddr>,
    /// The name that the client has logged in with.
    pub user: Option<&'a str>,
    /// The filter group of that user, where what knows the user says so.
    pub group: Option<&'a str>,
    /// The port that the client came to.
    pub port: u16,
    /// The method; `CONNECT` for a tunnel.
    pub method: &'a str,
    /// The whole URL; host and port of a tunnel.
    pub url: &'a [u8],
    /// The header fields.
    pub fields: &'a Fields,
    /// It came through TLS that is opened here.
    pub is_tls: bool,
    /// The client has named the server in its handshake.
    pub has_server_name: bool,
    /// How far its host is known.
    pub identity: Identity,
    /// A proxy asks by ICAP.
    pub is_icap: bool,
    /// The door can take a token out of a request, so that blocks may be passed with one.
    pub takes_tokens: bool,
}

/// The head of a response, as far as it tells of the content.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContentFacts<'a> {
    /// `Content-Type`.
    pub media_type: Option<&'a [u8]>,
    /// The names in `Content-Disposition`.
    pub file_names: [Option<&'a str>; 2],
}

/// A decision on a request, or on the head of its response.
#[derive(Debug, Clone)]
pub enum Decision {
    /// It goes on.
    Pass(Pass),
    /// A page stands in its place.
    Block(Reason),
    /// The client is sent to another URL.
    Redirect {
        /// The URL.
        location: Box<[u8]>,
        /// The value of `Set-Cookie` for the client.
        cookie: Option<Box<[u8]>>,
    },
}

/// The terms on which a message goes on.
#[derive(Debug, Clone, Default)]
pub struct Pass {
    /// The URL to ask for in place of the client's.
    pub url: Option<Vec<u8>>,
    /// Other values for fields, by their places; an empty value leaves the field out.
    pub fields: Vec<(usize, Vec<u8>)>,
    /// Other names for fields of these, by their places.
    pub renamed: Vec<(usize, Vec<u8>)>,
    /// A field to add.
    pub added: Option<(Vec<u8>, Vec<u8>)>,
    /// How the content is scored as a page; none where it is not.
    pub paging: Option<Paging>,
    /// Whether the TLS of a tunnel is opened; none: as the door does it.
    pub opens: Option<bool>,
    /// Findings that do not stop the content.
    pub spared: Spared,
    /// A token lets the client past the blocks of lists.
    pub is_bypassed: bool,
    /// The value of `Set-Cookie` for the client.
    pub cookie: Option<Vec<u8>>,
    /// State of the lists for the request.
    pub course: Option<Arc<dyn Course>>,
}

/// The reason for a block, and what the client gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reason {
    /// A sentence for the client.
    pub words: Box<str>,
    /// The list and its entry, for the log.
    pub detail: Box<str>,
    /// The categories of the list, for the log.
    pub category: Box<str>,
    /// Notice in its place.
    pub notice: Notice,
    /// A token may let the client past it.
    pub may_bypass: bool,
}

/// Notice in place of blocked content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A page of the door, with the reason and, where there is one, a link past the block.
    Own(Option<Box<str>>),
    /// A page of the door without the reason.
    Bare,
    /// This page of HTML.
    Page(Arc<[u8]>),
    /// The page at this URL.
    Redirect(Box<[u8]>),
}

impl Default for Notice {
    fn default() -> Notice {
        Notice::Own(None)
    }
}

/// The cause of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The phrases of a page.
    Page,
    /// Malware, or what else the operator does not let through.
    Malware,
    /// It could not be inspected.
    Fault,
}

/// Decides on messages of the web, without waiting for anything.
pub trait Filter: Send + Sync {
    /// Decides on a request.
    fn request(&self, facts: &RequestFacts<'_>) -> Decision;
}

/// A request that lists have let through, as they remember it.
pub trait Course: Send + Sync + fmt::Debug {
    /// Decides on the head of its response.
    fn content(&self, facts: &RequestFacts<'_>, content: &ContentFacts<'_>) -> Decision;

    /// The reason why a page of this score is blocked.
    fn scored(&self, score: &PageScore) -> Reason;

    /// Notice in place of content that is blocked for another reason, which `words` name.
    fn notice(&self, words: &str, cause: Cause) -> Notice;
}

/// Lets all pass.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl Filter for AllowAll {
    fn request(&self, _: &RequestFacts<'_>) -> Decision {
        Decision::Pass(Pass::default())
    }
}
