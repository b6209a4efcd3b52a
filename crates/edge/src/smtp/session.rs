//! One session: a client, the inspection of what it sends, and the next hop.
//!
//! The session is one task. It takes from the client only what the inspection has room for and the hop takes off its
//! hands, so a slow peer on either side slows its own mail and nobody else's.
//!
//! The next hop is leased at the first recipient; its refusals are the client's. The end of the content is never sent
//! before the verdict, and the client is told of success only after the hop was.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use proto::smtp::{self, RcptTo, Reply, Server, ServerEvent, attribute};
use stream::Window;

use super::client::{Came, Client};
use super::exchange::Exchange;
use super::offer::offered;
use super::pace::Pace;
use super::wire::{secure, write};
use crate::message::trace::{self, new_id};
use crate::net::listening::{LOCAL, network_address};
use crate::net::stream::{Cipher, SHARED_BYTES, Stream};
use crate::porch::gate::Ticket;
use crate::porch::shared::Shared;
use crate::settings::{Auth, BareLineEnds, ListenerTls, Parties, Protocol};
use crate::smtp::intake::{Envelope, Intake};
use crate::smtp::recipients::{self, Asked};
use crate::smtp::vetting::Vetting;
use crate::trust::reputation::Seen;
use crate::upstream::hop::Hop;
use crate::upstream::smtp_hop::Leases;
use crate::upstream::smtp_hop::Peer;

/// Bytes read from a client at a time when its content begins. Between messages, and when it sends no faster, it waits without a
/// buffer: what comes is read into one that all share.
const INPUT_BYTES: usize = 4 << 10;

/// Bytes read at a time from a client that sends faster than we read.
const INPUT_BYTES_MAX: usize = 64 << 10;

/// Bytes read at a time from all clients together, when there are many.
const INPUT_BYTES_SHARED: usize = 2 << 20;

/// How long the inspection may lag behind a client that pauses: then what was cleared goes on, and is not held any more.
const LAG: Duration = Duration::from_millis(5);

/// One session.
pub struct Session {
    pub(super) shared: Rc<Shared>,
    pub(super) client: Client,
    /// Peer of the connection: the client, or a relay that speaks for it.
    peer: SocketAddr,
    /// Set if a relay has given the client's name: its own HELO does not count then.
    hello_is_told: bool,
    /// Logging in to the next hop, under way or not done.
    pub(super) exchange: Option<Exchange>,
    xforward: Vec<(String, String)>,
    _ticket: Ticket,
    /// Tests of a client that has to earn trust.
    pub(super) vetting: Option<Box<Vetting>>,
    pub(super) server: Server,
    started: Instant,
    /// Reads in a row that filled the buffer without waiting.
    filled_reads: u32,
    pace: Pace,
    mail: Mail,
}

/// The mail under way.
enum Mail {
    /// No mail.
    None,
    /// Its envelope comes.
    Envelope(Box<Addressed>),
    /// Its content comes.
    Content(Box<Intake>),
}

/// An envelope, and the hop that is leased at the first recipient that it takes.
struct Addressed {
    envelope: Envelope,
    hop: Option<Hop>,
}

impl Session {
    /// A session that was let in.
    pub(super) fn new(shared: Rc<Shared>, came: Came, ticket: Ticket, cipher: Option<Cipher>) -> Session {
        let Came { door, settings, client: address } = came;
        let runtime = shared.runtime.borrow().clone();
        let (listener, encrypted) = (&door.listener, cipher.is_some());
        let usual = smtp::Config::default();
        let errors_max = match network_address(address).is_some_and(|client| listener.tests(client)) {
            true => runtime.warden.settings.errors_max,
            false => usual.errors_max,
        };
        let config = smtp::Config {
            hostname: runtime.settings.hostname.clone(),
            errors_max,
            protocol: match listener.protocol() {
                Protocol::Lmtp => smtp::Protocol::Lmtp,
                _ => smtp::Protocol::Smtp,
            },
            extensions: offered(&door, &settings, address, encrypted),
            tls_required: listener.place.tls == ListenerTls::Require,
            auth_needs_tls: listener.auth() == Auth::Tls && !encrypted && listener.place.tls != ListenerTls::Off,
            recipients_max: settings.recipients_max,
            line_bytes_max: match listener.auth() {
                Auth::Off => usual.line_bytes_max,
                Auth::Tls | Auth::Any => smtp::AUTH_LINE_BYTES_MAX,
            },
            ..usual
        };
        Session {
            client: Client {
                door,
                settings,
                address,
                hello: String::new(),
                extended: false,
                cipher,
                leases: shared.upstreams.clone(),
                login: Box::default(),
            },
            shared,
            peer: address,
            hello_is_told: false,
            exchange: None,
            xforward: Vec::new(),
            _ticket: ticket,
            vetting: None,
            server: Server::new(config, 0),
            started: Instant::now(),
            filled_reads: 0,
            pace: Pace::default(),
            mail: Mail::None,
        }
    }

    /// Runs the session to its end.
    pub(super) async fn run(mut self: Box<Session>, stream: Stream) {
        tracing::debug!(client = %self.client.address, "session begins");
        let outcome = self.converse(stream).await;
        if !matches!(self.mail, Mail::None) {
            let reason = if outcome.is_err() { "the client was lost" } else { "the client left" };
            tracing::debug!(client = %self.client.address, reason, "message incomplete");
            Box::pin(self.reset()).await;
        }
        tracing::debug!(client = %self.client.address, ms = self.started.elapsed().as_millis() as u64, "session ends");
    }

    async fn converse(&mut self, mut stream: Stream) -> std::io::Result<()> {
        let mut input = Vec::new();
        let mut at = 0;
        let mut content = Window::with_capacity(smtp::LineReader::ROOM_MIN);
        if let Some(vetting) = &mut self.vetting {
            let hostname = self.shared.runtime.borrow().settings.hostname.clone();
            Box::pin(vetting.greet(&mut stream, &mut input, &hostname)).await?;
        }
        loop {
            let (taken, event) = self.server.step(self.now(), &input[at..], &mut content);
            at += taken;
            if let Some(vetting) = &mut self.vetting {
                vetting.observe(self.server.faults());
                if vetting.is_behind(self.server.errors()) {
                    Box::pin(vetting.slow_down(self.server.errors())).await;
                }
            }
            match event {
                ServerEvent::Idle if taken == 0 => {
                    debug_assert!(at == input.len(), "input is left and nothing is done with it");
                    self.flush(&mut stream).await?;
                    content.rest();
                    if !self.read(&mut stream, &mut input).await? {
                        Box::pin(stream.close()).await;
                        return Ok(());
                    }
                    at = 0;
                }
                ServerEvent::Idle => {}
                ServerEvent::Content => {
                    if let Mail::Content(intake) = &mut self.mail {
                        Box::pin(intake.take(content.filled())).await;
                    }
                    content.clear();
                    // One read makes one piece, and not another of the last few bytes.
                    let room = input.capacity().max(INPUT_BYTES) + smtp::LineReader::ROOM_MIN;
                    if content.capacity() != room {
                        content = Window::with_capacity(room);
                    }
                }
                ServerEvent::Data => {
                    self.begin().await;
                    content = Window::with_capacity(INPUT_BYTES);
                }
                ServerEvent::End { bare_line_ends } => {
                    self.flush(&mut stream).await?;
                    content = Window::with_capacity(smtp::LineReader::ROOM_MIN);
                    Box::pin(self.end(bare_line_ends, &mut stream)).await?;
                }
                ServerEvent::StartTls => {
                    self.flush(&mut stream).await?;
                    (input, at) = (Vec::new(), 0);
                    stream = Box::pin(self.secure(stream)).await?;
                }
                ServerEvent::Closed => {
                    stream.conclude();
                    self.flush(&mut stream).await?;
                    Box::pin(stream.close()).await;
                    return Ok(());
                }
                event => Box::pin(self.answer(event)).await,
            }
        }
    }

    /// Shakes hands. What the client has told before counts no more.
    async fn secure(&mut self, stream: Stream) -> std::io::Result<Stream> {
        let secured = secure(&self.shared, self.client.address, stream).await?;
        self.client.cipher = secured.cipher();
        self.client.hello.clear();
        self.hello_is_told = false;
        self.xforward.clear();
        self.log_out();
        self.serve(self.peer);
        self.server.secured(self.now(), offered(&self.client.door, &self.client.settings, self.peer, true));
        Ok(secured)
    }

    /// Answers what is said between messages.
    async fn answer(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Hello { domain, extended } => {
                if !self.hello_is_told {
                    self.client.hello = domain;
                }
                self.client.extended = extended;
                self.reset().await;
            }
            ServerEvent::Xforward(attributes) => self.xforward = attributes,
            ServerEvent::Auth { mechanism, initial } => self.log_in(mechanism, initial).await,
            ServerEvent::Response(response) => self.respond(&response).await,
            ServerEvent::Xclient(attributes) => {
                self.reset().await;
                self.log_out();
                self.stand_in(&attributes);
            }
            ServerEvent::Mail(mail) => {
                self.reset().await;
                if self.client.door.gate.is_infectious(
                    &self.client.door.listener,
                    self.client.address.ip(),
                    Instant::now(),
                ) {
                    let text = "Too many infected messages from you, try again later";
                    return self.server.reply(&Reply::new(450, (4, 7, 1), text));
                }
                if let Some(refusal) = self.vetting.as_mut().and_then(|vetting| vetting.message()) {
                    return self.server.reply(&refusal);
                }
                let envelope = Envelope { id: new_id(), mail, recipients: Vec::new(), rule: None, inside: false };
                self.mail = Mail::Envelope(Box::new(Addressed { envelope, hop: None }));
                self.server.reply(&Reply::new(250, (2, 1, 0), "Ok"));
            }
            ServerEvent::Recipient(rcpt) => {
                let reply = self.vetted_recipient(rcpt).await;
                if self.is_orphaned() {
                    self.server.close(Reply::new(421, (4, 4, 2), "The next hop closed the connection, log in again"));
                } else {
                    self.server.reply(&reply);
                }
            }
            ServerEvent::Reset => self.reset().await,
            _ => {}
        }
    }

    /// Another client takes the place of the one before; what is not told of it stays as it is.
    fn stand_in(&mut self, attributes: &[(String, String)]) {
        let address = smtp::address(attributes).unwrap_or(self.client.address.ip());
        let port = attribute(attributes, "PORT").and_then(|port| port.parse().ok()).unwrap_or(0);
        self.serve(SocketAddr::new(address, port));
        if let Some(hello) = attribute(attributes, "HELO") {
            (self.client.hello, self.hello_is_told) = (hello, true);
        }
        self.xforward.clear();
    }

    /// The client is this one from here on.
    fn serve(&mut self, client: SocketAddr) {
        self.client.address = client;
        if self.client.door.listener.hop.forward_proxy.is_some() {
            self.client.door =
                self.client.door.clone().serving(client, self.client.door.address.tcp().unwrap_or(LOCAL));
            self.client.leases = Leases::default();
        }
    }

    /// Answers to a recipient: what the client's trust comes to, or else whoever knows the recipient.
    async fn vetted_recipient(&mut self, rcpt: RcptTo) -> Reply {
        if let Some(vetting) = &mut self.vetting
            && let Some(mut refusal) = vetting.recipient().await
        {
            if let Mail::Envelope(addressed) = &self.mail {
                let envelope = &addressed.envelope;
                trace::sign(&mut refusal, &envelope.id);
                tracing::info!(id = envelope.id, door = self.client.door.listener.protocol().name(), client = %self.client.address.ip(), hello = self.client.hello, from = trace::address(envelope.mail.path.as_str()), to = trace::address(rcpt.path.as_str()), reply = %refusal, "recipient refused");
            }
            return refusal;
        }
        let reply = match self.refuse(&rcpt).await {
            Some(refusal) => refusal,
            None => self.recipient(rcpt).await,
        };
        if let Some(vetting) = &mut self.vetting {
            vetting.answered(&reply);
        }
        reply
    }

    /// Refuses a recipient that has no mailbox; no hop is leased for it.
    async fn refuse(&self, rcpt: &RcptTo) -> Option<Reply> {
        let Mail::Envelope(addressed) = &self.mail else { return None };
        let Envelope { id, mail, .. } = &addressed.envelope;
        let asked = Asked {
            id,
            client: self.client.address,
            from: &mail.path,
            to: &rcpt.path,
            has_hop: addressed.hop.is_some(),
        };
        recipients::refuse(&self.shared, &self.client, asked).await
    }

    /// Hands a recipient to the next hop, which is leased for the first one.
    async fn recipient(&mut self, rcpt: RcptTo) -> Reply {
        let Mail::Envelope(addressed) = &mut self.mail else {
            return Reply::new(503, (5, 5, 1), "Send MAIL first");
        };
        let Addressed { envelope, hop: leased } = &mut **addressed;
        let (sender, recipient) = (envelope.mail.path.as_str(), rcpt.path.as_str());
        let client = smtp::address(&self.xforward).unwrap_or(self.client.address.ip());
        let rule = self.client.door.listener.rule_for(&Parties { client, sender, recipient });
        if envelope.recipients.is_empty() {
            envelope.rule = rule;
        } else if envelope.rule != rule {
            return Reply::new(452, (4, 5, 3), "Recipient needs a separate transaction");
        }
        let mut reply = match leased {
            Some(hop) => hop.recipient(&rcpt).await,
            None => {
                let peer =
                    peer(self.client.address, &self.client.hello, &self.xforward, self.client.door.listener.protocol());
                let hostname = self.shared.runtime.borrow().settings.hostname.clone();
                envelope.inside = self.client.is_inside(&self.xforward);
                let insider = envelope.inside.then(|| self.client.door.route.for_insider());
                let route = insider.as_ref().unwrap_or(&self.client.door.route);
                let (hop, reply) =
                    Hop::lease(route, &hostname, &self.client.leases, &envelope.mail, &rcpt, &peer).await;
                *leased = hop;
                reply
            }
        };
        trace::sign(&mut reply, &envelope.id);
        if reply.is_positive() {
            envelope.recipients.push(rcpt);
            return reply;
        }
        tracing::info!(id = envelope.id, door = self.client.door.listener.protocol().name(), client = %self.client.address.ip(), from = trace::address(envelope.mail.path.as_str()), to = trace::address(rcpt.path.as_str()), %reply, "recipient refused");
        if envelope.recipients.is_empty()
            && let Some(hop) = leased.take()
        {
            // Whoever has no recipient yet holds no connection to the next hop while it waits.
            hop.abandon(&self.client.leases).await;
        }
        reply
    }

    /// Whether the connection over which the client has logged in is gone, and no message has it.
    fn is_orphaned(&self) -> bool {
        let has_hop = match &self.mail {
            Mail::None => false,
            Mail::Envelope(addressed) => addressed.hop.is_some(),
            Mail::Content(_) => true,
        };
        self.client.leases.logged_in && !has_hop && self.client.leases.is_empty()
    }

    /// The client, as the next hop may be told.
    pub(super) fn as_peer(&self) -> Peer<'_> {
        peer(self.client.address, &self.client.hello, &self.xforward, self.client.door.listener.protocol())
    }

    /// The content may come.
    async fn begin(&mut self) {
        if let Mail::Envelope(addressed) = std::mem::replace(&mut self.mail, Mail::None)
            && let Addressed { envelope, hop: Some(hop) } = *addressed
        {
            let runtime = self.shared.runtime.borrow().clone();
            // A session that waits is not to be as large as one that begins with a mail.
            let intake = Box::pin(Intake::new(runtime, &self.client, envelope, hop)).await;
            self.mail = Mail::Content(Box::new(intake));
            return self.server.begin();
        }
        // The server half asks for recipients first, and none was accepted without a hop.
        self.server.reply(&Reply::new(451, (4, 3, 0), "Try again later"));
    }

    /// The content is complete: the verdict, what follows from it, and the reply.
    async fn end(&mut self, bare_line_ends: bool, stream: &mut Stream) -> std::io::Result<()> {
        let Mail::Content(intake) = std::mem::replace(&mut self.mail, Mail::None) else { return Ok(()) };
        let mut concluded = intake.conclude(&self.client, bare_line_ends).await;
        let count = match self.client.door.listener.protocol() {
            Protocol::Lmtp => self.server.recipients() as usize,
            _ => 1,
        };
        let (mut said, mut told) = (0, Ok(()));
        loop {
            for reply in concluded.replies().iter().take(count).skip(said) {
                self.server.reply(reply);
                said += 1;
            }
            // The first recipient's reply does not wait for that of the last. A client that has gone changes nothing.
            if concluded.is_late() && told.is_ok() {
                told = self.flush(stream).await;
            }
            if !concluded.another().await {
                break;
            }
        }
        // A hop that gave one reply gave it for all.
        for _ in said..count {
            self.server.reply(&concluded.replies()[0]);
        }
        if let Some(vetting) = &mut self.vetting {
            match concluded.seen() {
                Some(Seen::Trust) => vetting.accepted(),
                Some(seen) => vetting.note(seen),
                None => {}
            }
        }
        concluded.settle(&self.client);
        // What follows on this connection may be what the line ends were to hide.
        if bare_line_ends && self.client.settings.bare_line_ends == BareLineEnds::Refuse {
            self.server.hang_up();
        }
        told
    }

    /// Drops the mail under way, if there is one.
    async fn reset(&mut self) {
        match std::mem::replace(&mut self.mail, Mail::None) {
            Mail::None => {}
            Mail::Envelope(addressed) => {
                if let Some(hop) = addressed.hop {
                    hop.abandon(&self.client.leases).await;
                }
            }
            Mail::Content(intake) => intake.abandon(&self.client.leases).await,
        }
    }

    /// Sends what is in the outbox. It nearly always fits the socket; a session that has to wait for that takes a box.
    async fn flush(&mut self, stream: &mut Stream) -> std::io::Result<()> {
        if self.server.outbox().is_empty() {
            return Ok(());
        }
        if !stream.is_encrypted() {
            let count = stream.write_ready(self.server.outbox()).await?;
            self.server.sent(count);
        }
        if !self.server.outbox().is_empty() {
            Box::pin(write(stream, self.server.outbox())).await?;
            self.server.sent(self.server.outbox().len());
        }
        Ok(())
    }

    /// Waits for more from the client; whether there is more to do.
    async fn read(&mut self, stream: &mut Stream, input: &mut Vec<u8>) -> std::io::Result<bool> {
        if self.server.is_closed() {
            return Ok(false);
        }
        let end = Duration::from_secs(self.client.door.listener.session_seconds_max());
        if self.started.elapsed() > end {
            self.server.timeout();
            return Ok(true);
        }
        let waiting = Instant::now();
        let deadline = self.started + Duration::from_millis(self.server.deadline()).min(end);
        let mut control = self.shared.control.clone();
        // A client that fills the buffer again and again gets a larger one, while it sends content and keeps it filled.
        let open = self.shared.runtime.borrow().metrics.sessions_of_gateway() as usize;
        let most = (INPUT_BYTES_SHARED / open.max(1)).clamp(INPUT_BYTES, INPUT_BYTES_MAX);
        let wanted = match self.mail {
            Mail::None | Mail::Envelope(_) => 0,
            Mail::Content(_) if input.capacity() > most => most,
            Mail::Content(_) if self.filled_reads > 3 => (2 * input.capacity()).min(most),
            Mail::Content(_) if input.len() < input.capacity() / 4 => (input.capacity() / 2).max(INPUT_BYTES),
            Mail::Content(_) => input.capacity().max(INPUT_BYTES),
        };
        input.clear();
        input.shrink_to(wanted);
        input.reserve_exact(wanted);
        let ready = stream.read_ready(input).await?;
        let room = if wanted == 0 { SHARED_BYTES } else { input.capacity() };
        let filled = ready.is_some_and(|count| count > 0 && count == room);
        self.filled_reads = if filled { self.filled_reads + 1 } else { 0 };
        if let Some(count) = ready {
            self.pace.came(Duration::ZERO, count);
            if filled {
                // There is more already. The others come first.
                tokio::task::yield_now().await;
            }
            return Ok(count > 0);
        }
        if let Mail::Content(intake) = &mut self.mail {
            Box::pin(intake.flush()).await;
        }
        // A client that has paused before holds no buffer while it pauses again.
        if input.capacity() <= INPUT_BYTES {
            *input = Vec::new();
        }
        tokio::select! {
            biased;
            read = stream.append(input) => {
                let count = read?;
                self.pace.came(waiting.elapsed(), count);
                let least = self.client.settings.content_bytes_per_second_min;
                if !self.server.is_in_content() {
                    self.pace = Pace::default();
                } else if self.pace.is_too_slow(least) {
                    self.server.timeout();
                }
                return Ok(count > 0);
            }
            () = tokio::time::sleep_until(deadline.into()) => self.server.timeout(),
            () = catch_up(&mut self.mail) => {
                self.pace.came(waiting.elapsed(), 0);
                if let Mail::Content(intake) = &mut self.mail {
                    Box::pin(intake.hand_on()).await;
                    Box::pin(intake.flush()).await;
                }
            }
            _ = control.wait_for(|control| control.stopping), if self.server.is_idle() => {
                self.server.close(Reply::new(421, (4, 3, 2), "Shutting down, try again later"));
            }
        }
        Ok(true)
    }

    /// Milliseconds since the session began.
    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}

/// Waits while a client pauses, and then until the inspection has caught up with it; for ever where it does not lag behind.
fn catch_up(mail: &mut Mail) -> impl Future<Output = ()> {
    // On the heap: most sessions that wait have nothing that lags.
    let mut lagging = match mail {
        Mail::Content(intake) if intake.lags() => Some(Box::pin(async move {
            tokio::time::sleep(LAG).await;
            intake.catch_up().await;
        })),
        _ => None,
    };
    poll_fn(move |context| lagging.as_mut().map_or(Poll::Pending, |lagging| lagging.as_mut().poll(context)))
}

fn peer<'a>(client: SocketAddr, hello: &'a str, xforward: &'a [(String, String)], protocol: Protocol) -> Peer<'a> {
    Peer { address: client.ip(), port: client.port(), hello, xforward, lmtp: protocol == Protocol::Lmtp }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smtp::admission::run;

    /// The size of a future that is not made.
    fn size_of_future<F: Future>(_: impl FnOnce() -> F) -> usize {
        size_of::<F>()
    }

    fn never<T>() -> T {
        unreachable!("it is not called")
    }

    #[test]
    fn a_session_that_waits_is_small() {
        let whole = size_of_future(|| run(never(), never(), never(), never()));
        let session = size_of::<Session>();
        let of = |name, bytes| println!("{name} {bytes}");
        of("run", whole);
        of("Session::run", size_of_future(|| Session::run(never(), never())));
        of("converse", size_of_future(|| Session::converse(never(), never())));
        of("flush", size_of_future(|| Session::flush(never(), never())));
        of("read", size_of_future(|| Session::read(never(), never(), never())));
        of("Session", session);
        of("Server", size_of::<Server>());
        of("ServerEvent", size_of::<ServerEvent>());
        of("Stream", size_of::<Stream>());
        of("Vetting", size_of::<Vetting>());
        assert!(whole + session <= 2_400, "{whole} bytes of the future, {session} of the session");
    }
}
