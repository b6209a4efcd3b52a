//! Lists that decide on what goes through the doors of the web: sites, addresses, types, phrases. The program brings them.

use std::net::IpAddr;

use flow::{PageScore, Paging};
use proto::http::Fields;

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
}

/// The head of a response, as far as it tells of the content.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContentFacts<'a> {
    /// `Content-Type`.
    pub media_type: Option<&'a [u8]>,
    /// The name in `Content-Disposition`.
    pub file_name: Option<&'a str>,
}

/// A decision on a request, or on the head of its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It goes on.
    Pass(Pass),
    /// A page stands in its place.
    Block(Reason),
    /// The client is sent to another URL.
    Redirect(Box<[u8]>),
}

/// The terms on which a message goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pass {
    /// The URL to ask for in place of the client's.
    pub url: Option<Vec<u8>>,
    /// Other values for fields, by their places; an empty value leaves the field out.
    pub fields: Vec<(usize, Vec<u8>)>,
    /// A field to add.
    pub added: Option<(Vec<u8>, Vec<u8>)>,
    /// How the content is scored as a page; none where it is not.
    pub paging: Option<Paging>,
    /// Whether the TLS of a tunnel is opened; none: as the door does it.
    pub opens: Option<bool>,
}

/// The reason for a block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reason {
    /// A sentence for the client.
    pub words: Box<str>,
    /// The list and its entry, for the log.
    pub detail: Box<str>,
    /// The categories of the list, for the log.
    pub category: Box<str>,
}

/// Decides on messages of the web, without waiting for anything.
pub trait Filter: Send + Sync {
    /// Decides on a request.
    fn request(&self, facts: &RequestFacts<'_>) -> Decision;

    /// Decides on the head of the response to a request.
    fn content(&self, facts: &RequestFacts<'_>, content: &ContentFacts<'_>) -> Decision;

    /// The reason why a page of this score is blocked in a filter group.
    fn scored(&self, group: u32, score: &PageScore) -> Reason;
}

/// Lets all pass.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl Filter for AllowAll {
    fn request(&self, _: &RequestFacts<'_>) -> Decision {
        Decision::Pass(Pass::default())
    }

    fn content(&self, _: &RequestFacts<'_>, _: &ContentFacts<'_>) -> Decision {
        Decision::Pass(Pass::default())
    }

    fn scored(&self, _: u32, _: &PageScore) -> Reason {
        Reason::default()
    }
}
