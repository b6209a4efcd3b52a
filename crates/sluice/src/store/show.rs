//! A server's answers to [`Look`]s, over its control socket: any number of them on one connection.
//!
//! ```text
//!   C: look {"look":"content","message":7}
//!   S: {"piece":4096}           so many bytes of content follow the line
//!   S: {"uid":1,"message":7}    or a row
//!   S: {"gone":true}            no mailbox has the message any more
//!   S: {"end":true}             or {"error":"..."}
//! ```
//!
//! Content is read as any session reads it: the writer goes on. A listing holds the snapshot that it is made of.

use std::io;
use std::time::Duration;

use edge::net::stream::Stream;
use mailbox::{Body, Reader as _, Site};
use serde_json::{Value, json};
use store::{Error, Refused, State};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::task::block_in_place;
use tokio::time::timeout;

use super::look::{self, Look, Rows};

/// The longest line of a command at the socket: a script, which JSON makes at most six times as long.
const LINE_BYTES_MAX: u64 = 2 << 20;

/// Bytes of content that are read at a time, and of rows that are collected before they are written.
const PIECE_BYTES: usize = 64 << 10;

/// How long a command may take to ask for more, or to take what it has asked for: its disk may be slow.
const PATIENCE: Duration = Duration::from_secs(600);

/// Answers the first request, and all that follow it.
///
/// # Errors
/// When the connection breaks.
pub async fn serve(first: &str, stream: &mut BufReader<Stream>, site: &Site) -> io::Result<()> {
    let (mut line, mut show) = (first.to_owned(), Show { stream, site });
    while let Some(request) = line.strip_prefix("look ") {
        let answered = match serde_json::from_str(request) {
            Ok(look) => show.answer(&look).await,
            Err(error) => Err(io::Error::other(format!("the request is not known: {error}"))),
        };
        let end = answered.map_or_else(|error| json!({ "error": error.to_string() }), |()| json!({ "end": true }));
        show.row(&end).await?;
        read_line(show.stream, &mut line, PATIENCE).await?;
    }
    Ok(())
}

struct Show<'s> {
    stream: &'s mut BufReader<Stream>,
    site: &'s Site,
}

impl Show<'_> {
    async fn answer(&mut self, look: &Look) -> io::Result<()> {
        let state = self.site.store.state();
        match look {
            Look::Stat => {
                let usage = self.site.usage().await.map_err(other)?;
                self.row(&look::stat(&state, &usage, None)).await
            }
            Look::Content { message } => self.content(*message).await,
            Look::Check => self.check(&state).await,
            listing => match look::rows(&state, listing).map_err(io::Error::other)? {
                Some(rows) => self.rows(rows).await,
                None => Ok(()),
            },
        }
    }

    async fn rows(&mut self, rows: Rows<'_>) -> io::Result<()> {
        let mut text = String::new();
        for row in rows {
            text.push_str(&format!("{row}\n"));
            if text.len() >= PIECE_BYTES {
                self.send(text.as_bytes()).await?;
                text.clear();
            }
        }
        self.send(text.as_bytes()).await
    }

    async fn content(&mut self, message: u64) -> io::Result<()> {
        let site = self.site;
        let Some(mut body) = Body::open(&site.store, message) else { return self.gone().await };
        let (mut piece, mut offset) = (vec![0; PIECE_BYTES], 0u64);
        loop {
            match block_in_place(|| body.read(offset, &mut piece)) {
                Ok(0) => return Ok(()),
                Ok(length) => {
                    self.send(format!("{}\n", json!({ "piece": length })).as_bytes()).await?;
                    self.send(&piece[..length]).await?;
                    offset = offset.saturating_add(length as u64);
                }
                Err(Error::Refused(Refused::NoSuchMessage)) => return self.gone().await,
                Err(error) => return Err(other(error)),
            }
        }
    }

    async fn check(&mut self, state: &State) -> io::Result<()> {
        let site = self.site;
        for (number, _) in state.messages() {
            let verify = || Body::open(&site.store, number).map_or(Ok(()), |mut body| body.verify());
            match block_in_place(verify) {
                Ok(()) | Err(Error::Refused(Refused::NoSuchMessage)) => tokio::task::yield_now().await,
                Err(error) => self.row(&look::damaged(state, number, &error)).await?,
            }
        }
        self.row(&json!({ "messages": state.messages().count() })).await
    }

    async fn gone(&mut self) -> io::Result<()> {
        self.row(&json!({ "gone": true })).await
    }

    async fn row(&mut self, row: &Value) -> io::Result<()> {
        self.send(format!("{row}\n").as_bytes()).await
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        timeout(PATIENCE, self.stream.get_mut().write_all(bytes)).await?
    }
}

/// Reads a line, or as much of it as a line may have; nothing at the end.
pub async fn read_line(stream: &mut BufReader<Stream>, line: &mut String, wait: Duration) -> io::Result<()> {
    line.clear();
    timeout(wait, stream.take(LINE_BYTES_MAX).read_line(line)).await??;
    Ok(())
}

fn other(error: Error) -> io::Error {
    io::Error::other(error.to_string())
}
