//! Mail of commands at a node of a cluster that does not have the store: the node that has it takes it into the queue.
//!
//! ```text
//!  node:   take {"key":...,"recipients":[...],...,"bytes":N}      and N bytes of content
//!  owner:  {}  |  {"later":WHY}  |  {"never":WHY}
//!  node:   forget {"keys":[...]}
//!  owner:  {}  |  {"later":WHY}
//! ```
//!
//! One request a connection, which nodes hand over as they do those of clients. A key has the name of its node: mail of a connection that breaks is
//! offered again, and taken once, whoever has the store then. Bounds: a line is [`LINE_BYTES_MAX`], content as long as the owner takes any.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::Duration;

use edge::net::stream::Stream;
use mailbox::Site;
use mailbox::queue::{self, Handover, Untaken};
use proto::smtp::Return;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use tokio::time::timeout;

use super::sendmail::envelope;
use crate::cluster::Member;
use crate::cluster::handing::{Handed, hand_over};

/// The name of such a connection, in place of that of a door.
pub const DOOR: &str = "maildrop";

/// The longest line: an envelope, which JSON makes at most six times as long.
const LINE_BYTES_MAX: u64 = 6 * envelope::BYTES_MAX as u64;

/// Bytes of content that are sent at a time.
const PIECE_BYTES: usize = 64 << 10;

/// How long the other node may take for a line or a piece.
const WAIT: Duration = Duration::from_secs(60);

/// A mail, as its line has it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Mail {
    key: String,
    user: String,
    number: u32,
    is_trusted: bool,
    from: Option<String>,
    name: String,
    recipients: Vec<String>,
    notify: String,
    whole: Option<bool>,
    envid: String,
    bytes: u64,
}

/// Mails whose files are gone.
#[derive(Debug, Serialize, Deserialize)]
struct Gone {
    keys: Vec<String>,
}

impl Mail {
    fn of(mail: Handover, bytes: u64) -> Mail {
        let Handover { key, user, number, is_trusted, from, name, recipients, notify, ret, envid } = mail;
        let whole = ret.map(|ret| ret == Return::Full);
        Mail { key, user, number, is_trusted, from, name, recipients, notify, whole, envid, bytes }
    }

    fn handover(self) -> Handover {
        let Mail { key, user, number, is_trusted, from, name, recipients, notify, whole, envid, .. } = self;
        let ret = whole.map(|whole| if whole { Return::Full } else { Return::Headers });
        Handover { key, user, number, is_trusted, from, name, recipients, notify, ret, envid }
    }
}

/// The way to the node that has the store.
pub struct Owner(pub Arc<Member>);

impl Owner {
    /// Has it take a mail, of so many bytes.
    ///
    /// # Errors
    /// Why it does not.
    pub async fn take(&self, mail: Handover, content: &mut File, bytes: u64) -> Result<(), Untaken> {
        let later = |error: io::Error| Untaken::Later(format!("the node with the store: {error}"));
        let answer =
            self.sent(&format!("take {}\n", json!(Mail::of(mail, bytes))), Some(content)).await.map_err(later)?;
        match (answer["later"].as_str(), answer["never"].as_str()) {
            (None, None) => Ok(()),
            (Some(why), _) => Err(Untaken::Later(why.into())),
            (None, Some(why)) => Err(Untaken::Never(why.into())),
        }
    }

    /// Has it forget mails whose files are gone.
    ///
    /// # Errors
    /// Why it does not.
    pub async fn forget(&self, keys: Vec<String>) -> Result<(), String> {
        let line = format!("forget {}\n", json!(Gone { keys }));
        let answer = self.sent(&line, None).await.map_err(|error| error.to_string())?;
        answer["later"].as_str().map_or(Ok(()), |why| Err(why.into()))
    }

    async fn sent(&self, line: &str, content: Option<&mut File>) -> io::Result<Value> {
        let address = *self.0.owner.borrow();
        let address = address.ok_or_else(|| io::Error::other("no node has it"))?;
        let handed = Handed { door: DOOR.into(), client: None };
        let mut stream = hand_over(address, &self.0.secret, &handed).await?;
        timeout(WAIT, stream.write_all(line.as_bytes())).await??;
        if let Some(content) = content {
            send(&mut stream, content).await?;
        }
        let (mut stream, mut answer) = (BufReader::new(stream).take(LINE_BYTES_MAX), String::new());
        timeout(WAIT, stream.read_line(&mut answer)).await??;
        serde_json::from_str(&answer).map_err(|_| io::Error::other("it gave no answer"))
    }
}

async fn send(stream: &mut TcpStream, content: &mut File) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = block_in_place(|| content.read(&mut piece))?;
        if length == 0 {
            return Ok(());
        }
        timeout(WAIT, stream.write_all(piece.get(..length).unwrap_or_default())).await??;
    }
}

/// Answers a request of another node.
///
/// # Errors
/// When the connection breaks.
pub async fn serve(stream: Stream, site: &Site) -> io::Result<()> {
    let (mut stream, mut line) = (BufReader::new(stream), String::new());
    timeout(WAIT, (&mut stream).take(LINE_BYTES_MAX).read_line(&mut line)).await??;
    let answer = match line.split_once(' ') {
        Some(("take", mail)) => match serde_json::from_str::<Mail>(mail) {
            Ok(mail) => take(mail, &mut stream, site).await?,
            Err(_) => json!({ "never": "the request is not known" }),
        },
        Some(("forget", gone)) => match serde_json::from_str::<Gone>(gone) {
            Ok(Gone { keys }) => match queue::forget(site, keys).await {
                Ok(()) => json!({}),
                Err(error) => json!({ "later": error.to_string() }),
            },
            Err(_) => json!({ "later": "the request is not known" }),
        },
        _ => json!({ "never": "the request is not known" }),
    };
    let mut stream = stream.into_inner();
    timeout(WAIT, stream.write_all(format!("{answer}\n").as_bytes())).await??;
    stream.close().await;
    Ok(())
}

async fn take(mail: Mail, stream: &mut BufReader<Stream>, site: &Site) -> io::Result<Value> {
    // Of a mail that is too long so much is read that it is seen.
    let mut left = mail.bytes.min(site.message_bytes_max.saturating_add(1));
    let runtime = Handle::current();
    let taken = queue::hand_over(site, mail.handover(), |piece| {
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
        let Some(piece) = piece.get_mut(..room).filter(|piece| !piece.is_empty()) else { return Ok(0) };
        let length = runtime.block_on(timeout(WAIT, stream.read(piece))).map_err(io::Error::from)??;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        left -= length as u64;
        Ok(length)
    })
    .await;
    // The answer would be lost with a connection on which something is still to be read.
    let mut piece = vec![0; PIECE_BYTES];
    while left > 0 {
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
        match timeout(WAIT, stream.read(&mut piece[..room])).await?? {
            0 => break,
            length => left -= length as u64,
        }
    }
    Ok(match taken {
        Ok(()) => json!({}),
        Err(Untaken::Later(why)) => json!({ "later": why }),
        Err(Untaken::Never(why)) => json!({ "never": why }),
    })
}
