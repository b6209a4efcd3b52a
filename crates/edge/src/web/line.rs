//! The line in the log of a response, a request body or a stream of messages: the same fields for all of them.

use std::net::IpAddr;
use std::time::Duration;

use crate::porch::door::Door;

/// A line. Texts are in printable characters.
pub struct Line<'a> {
    /// The id.
    pub id: &'a str,
    /// The door.
    pub door: &'a Door,
    /// The client.
    pub client: IpAddr,
    /// The user that it has logged in as.
    pub user: Option<&'a str>,
    /// The method, or what stands in its place.
    pub method: &'a str,
    /// The URL.
    pub url: &'a str,
    /// The status that the client has got.
    pub status: Option<u16>,
    /// The type of the content.
    pub media_type: Option<&'a str>,
    /// Messages in both directions.
    pub messages: Option<u64>,
    /// Bytes of the content.
    pub bytes: u64,
    /// What was done.
    pub action: &'a str,
    /// Findings.
    pub found: Option<&'a str>,
    /// The score of a page by the lists.
    pub page: Option<Page<'a>>,
    /// The reason of a block or a refusal.
    pub reason: Option<&'a str>,
    /// The reason for which lists would block it that block nothing.
    pub would_block: Option<&'a str>,
    /// It went on before its verdict.
    pub streamed: Option<bool>,
    /// The time that it took.
    pub took: Duration,
}

/// The score of a page.
pub struct Page<'a> {
    /// The points.
    pub points: i32,
    /// The categories.
    pub categories: &'a str,
}

impl Line<'_> {
    /// Writes it.
    pub fn write(&self) {
        tracing::info!(
            id = self.id,
            door = self.door.listener.protocol().name(),
            client = %self.client,
            user = self.user,
            method = self.method,
            url = self.url,
            status = self.status,
            media_type = self.media_type,
            messages = self.messages,
            bytes = self.bytes,
            action = self.action,
            found = self.found,
            points = self.page.as_ref().map(|page| page.points),
            categories = self.page.as_ref().map(|page| page.categories),
            reason = self.reason,
            would_block = self.would_block,
            streamed = self.streamed,
            ms = self.took.as_millis() as u64,
            "object"
        );
    }
}

/// The end of an exchange whose content has no inspection of its own.
#[derive(Default)]
pub struct Ending<'a> {
    /// The id, if the client has it.
    pub id: Option<&'a str>,
    /// The status that the client has got.
    pub status: u16,
    /// The type of the content.
    pub media_type: Option<&'a [u8]>,
    /// Messages in both directions.
    pub messages: Option<u64>,
    /// Bytes of the content.
    pub bytes: u64,
    /// What was done.
    pub action: &'a str,
    /// The reason of a refusal.
    pub reason: Option<&'a str>,
}
