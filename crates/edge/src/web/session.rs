//! A connection of a client, and how it is answered and ended.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use proto::http::{Limits, Server};
use tokio::time::{Instant, timeout_at};

use super::language::Language;
use super::line::{Ending, Line};
use super::opened::Opened;
use super::page::{self, Told};
use super::refused::Refused;
use crate::message::trace::{self, new_id};
use crate::net::wire::Wire;
use crate::porch::door::Door;
use crate::porch::login::User;
use crate::porch::shared::Shared;
use crate::settings::HttpListener;

/// How long a connection may be idle, and how long either side may be silent within a message.
pub const SILENCE_WAIT: Duration = Duration::from_secs(300);

/// How much is read of a request that was answered before its end, and for how long: a client that sends still would lose the
/// answer.
const DRAINED_BYTES_MAX: usize = 4 << 20;
const DRAIN_WAIT: Duration = Duration::from_secs(2);

/// A connection of a client.
pub struct Session {
    pub(super) shared: Rc<Shared>,
    pub(super) door: Arc<Door>,
    pub(super) settings: Arc<HttpListener>,
    pub(super) peer: SocketAddr,
    pub(super) wire: Wire,
    pub(super) server: Server,
    /// The client has not sent all of its request.
    pub(super) is_sending: bool,
    /// The client speaks HTTP/1.0: a body ends with the connection.
    pub(super) is_old: bool,
    /// The response was broken off.
    pub(super) is_cut: bool,
    /// The server at the end of a tunnel that is opened.
    pub(super) opened: Option<Rc<Opened>>,
    /// The client speaks through TLS.
    pub(super) is_encrypted: bool,
    /// The user that the client has logged in as.
    pub(super) user: Option<Arc<User>>,
    /// The language of the client, as its last request says.
    pub(super) language: Language,
    /// The time of its last request.
    pub(super) began: Instant,
}

impl Session {
    /// A session that begins over this wire.
    pub(super) fn new(
        shared: Rc<Shared>,
        door: Arc<Door>,
        settings: Arc<HttpListener>,
        peer: SocketAddr,
        wire: Wire,
        opened: Option<Rc<Opened>>,
    ) -> Session {
        let is_encrypted = wire.is_encrypted();
        let server = Server::new(Limits::default());
        Session {
            shared,
            door,
            settings,
            peer,
            wire,
            server,
            is_sending: false,
            is_old: false,
            is_cut: false,
            opened,
            is_encrypted,
            user: None,
            language: Language::default(),
            began: Instant::now(),
        }
    }

    pub(super) async fn send(&mut self) -> io::Result<()> {
        self.wire.write(self.server.outbox()).await?;
        self.server.sent();
        Ok(())
    }

    /// Answers with a page of ours, and writes it down.
    pub(super) async fn refuse(&mut self, refused: &Refused, method: &str, url: &[u8]) -> io::Result<()> {
        let id = new_id();
        let url = trace::printable(&String::from_utf8_lossy(url));
        let told = Told { status: refused.status, words: &refused.words, url: &url, id: &id, language: self.language };
        let (mut response, body) = page::response(&refused.notice, &told);
        refused.field.iter().for_each(|(name, value)| _ = response.fields.push(name, value));
        self.server.answer(&response, &body);
        self.shared.runtime.borrow().metrics.http_refused_total.add(1);
        self.log(
            method,
            url.as_bytes(),
            &Ending {
                id: Some(&id),
                status: response.status.0,
                bytes: body.len() as u64,
                action: "refuse",
                reason: Some(&refused.detail),
                ..Ending::default()
            },
        );
        self.send().await
    }

    /// Writes the line of an exchange that has ended.
    pub(super) fn log(&self, method: &str, url: &[u8], ending: &Ending<'_>) {
        let (new, url) = (new_id(), trace::printable(&String::from_utf8_lossy(url)));
        let media_type = ending.media_type.map(|kind| trace::printable(&String::from_utf8_lossy(kind)));
        Line {
            id: ending.id.unwrap_or(&new),
            door: &self.door,
            client: self.peer.ip(),
            user: self.user(),
            method,
            url: &url,
            status: Some(ending.status),
            media_type: media_type.as_deref(),
            messages: ending.messages,
            bytes: ending.bytes,
            action: ending.action,
            found: None,
            page: None,
            reason: ending.reason,
            would_block: None,
            streamed: None,
            took: self.began.elapsed(),
        }
        .write();
    }

    /// Ends the connection in good order.
    pub(super) async fn end(mut self) -> io::Result<()> {
        self.send().await?;
        let (deadline, mut left) = (Instant::now() + DRAIN_WAIT, DRAINED_BYTES_MAX);
        while self.is_sending && left > 0 {
            let count = self.wire.input().len();
            self.wire.take(count);
            left = left.saturating_sub(count);
            match timeout_at(deadline, self.wire.read()).await {
                Ok(Ok(true)) => {}
                _ => break,
            }
        }
        self.wire.close().await;
        Ok(())
    }
}
