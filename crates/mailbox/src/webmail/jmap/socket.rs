//! JMAP over WebSocket (RFC 8887): requests and their responses, and changes as they come, on one connection.
//!
//! A page of another site is refused, since browsers add the login that they know. Requests are carried out one after the other, each for
//! the account as it is by then: a connection ends with the password that it began with. A message has the bound of a request; a client
//! that says nothing for [`SILENT_MAX`] is gone.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::jmap::{Message, Problem, answer, limits, responded};
use ::webmail::is_foreign;
use proto::http::{Request, Response};
use proto::websocket::{CONTROL_BYTES_MAX, Event, Kind, POLICY_VIOLATION, Reader, Sender, frame};
use sha1::{Digest as _, Sha1};
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};

use super::super::{Connection, SMALL_BYTES};
use super::{CROWDED, LOOK_EVERY, TYPES, Watch, door, problem};
use crate::account::Account;
use crate::in_flight::Held;
use crate::wire::Stream;

/// The time after which a client that says nothing is asked whether it is there.
const ASK_AFTER: Duration = Duration::from_secs(300);

/// The time after which it is not.
const SILENT_MAX: Duration = Duration::from_secs(600);

/// The close codes of a text that is not UTF-8, and of a message that is too large (RFC 6455, sections 7.4.1 and 8.1).
const NO_TEXT: u16 = 1007;
const TOO_LARGE: u16 = 1009;

/// The close code where there is no memory now (registered by IANA for RFC 6455).
const TRY_AGAIN_LATER: u16 = 1013;

/// The protocol, as clients ask for it (section 4.1).
const PROTOCOL: &str = "jmap";

/// The text that a key is hashed with (RFC 6455, section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A conversation.
struct Socket {
    account: Arc<Account>,
    number: u32,
    reader: Reader,
    /// The text of the message that is read.
    text: Option<Vec<u8>>,
    /// Memory of the text, and of what is sent.
    memory: Held,
    /// Types whose changes are told.
    told: Vec<&'static str>,
    watch: Watch,
    out: Vec<u8>,
}

/// Whether the conversation goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    On,
    Over,
}

impl Socket {
    fn say(&mut self, kind: Kind, content: &[u8]) {
        frame(kind, true, None, content, &mut self.out);
    }

    /// Whether a message of this beginning will be too large, as the head of its frame says.
    fn is_beyond(&self, had: u64) -> bool {
        let left = self.reader.left();
        // Control frames may stand between the frames of a message.
        left > CONTROL_BYTES_MAX as u64 && had.saturating_add(left) > limits::REQUEST_BYTES_MAX
    }

    fn end(&mut self, code: u16) -> Course {
        self.say(Kind::Close, &code.to_be_bytes());
        Course::Over
    }
}

impl<S: Stream> Connection<'_, S> {
    /// Opens a conversation, and keeps it up until one side ends it.
    pub(super) async fn socket(&mut self, request: &Request, account: Arc<Account>, number: u32) -> io::Result<()> {
        if is_foreign(request, self.is_secure) {
            return self.refuse(request, problem(403, "Another site has sent this request.")).await;
        }
        let Some(response) = agreed(request) else {
            let mut reply = problem(426, "This is for WebSocket with the protocol jmap (RFC 8887).");
            reply.set("Upgrade", "websocket".into());
            return self.refuse(request, reply).await;
        };
        self.server.respond(&response);
        self.server.close();
        self.flush().await?;
        let watch = Watch::new(self.site, number);
        let (reader, text, told, out) = (Reader::new(Sender::Client), None, Vec::new(), Vec::new());
        let memory = self.memory(Some(&account.name));
        let mut socket = Socket { account, number, reader, text, memory, told, watch, out };
        let (mut heard, mut is_asked) = (Instant::now(), false);
        loop {
            let course = self.read(&mut socket).await?;
            self.wire.write(&std::mem::take(&mut socket.out)).await?;
            if course == Course::Over {
                return Ok(());
            }
            tokio::select! {
                () = self.guest.lost() => return Ok(()),
                () = self.site.ended() => { socket.end(1001); }
                read = self.wire.read() => match read? {
                    true => (heard, is_asked) = (Instant::now(), false),
                    false => return Ok(()),
                },
                () = sleep(LOOK_EVERY) => self.look(&mut socket),
            }
            if heard.elapsed() > SILENT_MAX {
                return Ok(());
            }
            if heard.elapsed() > ASK_AFTER && !std::mem::replace(&mut is_asked, true) {
                socket.say(Kind::Ping, b"");
            }
            let is_over = !socket.out.is_empty() && *self.site.ending.borrow();
            self.wire.write(&std::mem::take(&mut socket.out)).await?;
            if is_over {
                return Ok(());
            }
        }
    }

    /// Tells a change of the account, if there is one.
    fn look(&self, socket: &mut Socket) {
        if let Some(text) = socket.watch.look(self.site, &socket.told) {
            socket.say(Kind::Text, text.as_bytes());
        }
    }

    /// Reads the frames that are there.
    async fn read(&mut self, socket: &mut Socket) -> io::Result<Course> {
        loop {
            let (taken, event) = socket.reader.step(self.wire.input());
            self.wire.take(taken);
            let had = socket.text.as_ref().map_or(0, |text| text.len() as u64);
            if matches!(event, Event::Begin(Kind::Text) | Event::Idle | Event::Content)
                && taken > 0
                && socket.is_beyond(had)
            {
                return Ok(socket.end(TOO_LARGE));
            }
            let content = socket.reader.content();
            let course = match event {
                Event::Idle if taken == 0 => return Ok(Course::On),
                Event::Idle => Course::On,
                Event::Begin(Kind::Text) => {
                    socket.text = Some(Vec::new());
                    Course::On
                }
                Event::Content => match &mut socket.text {
                    Some(text) if (text.len() + content.len()) as u64 <= limits::REQUEST_BYTES_MAX => {
                        let is_small = (text.len() + content.len()) as u64 <= SMALL_BYTES;
                        match is_small || socket.memory.take(content.len() as u64).is_ok() {
                            true => {
                                text.extend_from_slice(content);
                                Course::On
                            }
                            false => socket.end(TRY_AGAIN_LATER),
                        }
                    }
                    _ => socket.end(TOO_LARGE),
                },
                Event::End => {
                    let text = socket.text.take().unwrap_or_default();
                    let course = match std::str::from_utf8(&text) {
                        Ok(_) => self.message(socket, &text).await?,
                        Err(_) => socket.end(NO_TEXT),
                    };
                    self.wire.write(&std::mem::take(&mut socket.out)).await?;
                    socket.memory = self.memory(Some(&socket.account.name));
                    course
                }
                Event::Control(Kind::Ping) => {
                    let content = content.to_vec();
                    socket.say(Kind::Pong, &content);
                    Course::On
                }
                Event::Control(Kind::Close) => socket.end(1000),
                Event::Control(_) => Course::On,
                // Bytes are no messages of this protocol (section 4.2).
                Event::Begin(_) => socket.end(1003),
                Event::Refused(_) => socket.end(1002),
            };
            if course == Course::Over {
                return Ok(course);
            }
            if !socket.out.is_empty() {
                self.wire.write(&std::mem::take(&mut socket.out)).await?;
            }
        }
    }

    async fn message(&mut self, socket: &mut Socket, text: &[u8]) -> io::Result<Course> {
        let answered = match block_in_place(|| Message::read(text)) {
            Message::Disable => return Ok(told(socket, Vec::new())),
            Message::Enable(wanted) => {
                let is_wanted = |name: &&str| wanted.as_ref().is_none_or(|all| all.iter().any(|one| one == name));
                return Ok(told(socket, TYPES.into_iter().filter(is_wanted).collect()));
            }
            Message::Wrong(problem) => responded(None, Err(problem)),
            Message::Request(id) => {
                let now = self.site.accounts.named(&socket.account.name, false).await;
                let is_same = |now: &Arc<Account>| **now == *socket.account && !now.is_disabled;
                if !now.is_ok_and(|now| now.as_ref().is_some_and(is_same)) {
                    return Ok(socket.end(POLICY_VIOLATION));
                }
                let turn = self.guest.wait(&mut self.wire, self.site.readers.turn(socket.number)).await?;
                let mut door = door(self.site, &socket.account, socket.number);
                let answered: Result<String, Problem> = block_in_place(|| answer(&mut door, text));
                drop(turn);
                responded(id.as_deref(), answered)
            }
        };
        let is_small = answered.len() as u64 <= SMALL_BYTES;
        match is_small || socket.memory.take(answered.len() as u64).is_ok() {
            true => socket.say(Kind::Text, answered.as_bytes()),
            false => socket.say(Kind::Text, responded(None, Err(CROWDED)).as_bytes()),
        }
        Ok(Course::On)
    }
}

/// The types whose changes are told from here on.
fn told(socket: &mut Socket, types: Vec<&'static str>) -> Course {
    socket.told = types;
    Course::On
}

/// The response that opens the conversation; `None` if the request does not ask for it as it should.
fn agreed(request: &Request) -> Option<Response> {
    let fields = &request.fields;
    let key = fields.get("sec-websocket-key").filter(|key| key.len() == 24)?;
    let is_asked = fields.lists("upgrade", "websocket")
        && fields.lists("connection", "upgrade")
        && fields.get("sec-websocket-version") == Some(&b"13"[..])
        && fields.lists("sec-websocket-protocol", PROTOCOL);
    let accept = text::base64::encode(&Sha1::new().chain_update(key).chain_update(GUID).finalize());
    is_asked.then(|| {
        let mut response = Response::new(101);
        response.fields.push("Upgrade", b"websocket");
        response.fields.push("Sec-WebSocket-Accept", accept.as_bytes());
        response.fields.push("Sec-WebSocket-Protocol", PROTOCOL.as_bytes());
        response
    })
}
