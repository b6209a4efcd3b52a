//! `sluice: keep`: the store's process, with the same arguments as `serve`. Its standard input is the way to the edge that it belongs
//! to, which says first where the store listens (`socket NAME` beside the sockets, `begin FINGERPRINT`).
//!
//! It ends when the edge does. Signals are the supervisor's business: one that is sent to all processes ends the edge, and this one
//! when the edge has no mail for it any more.

use std::io::{self, Read as _, Write as _};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as Begun;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use edge::net::listening;
use edge::net::stream::Stream;
use edge::porch::pages::resident_bytes;
use flow::{Context, Inspecting};
use jail::Thrift;
use nix::sys::signal::{SigSet, Signal};
use tokio::sync::mpsc;

use super::exposition::joined;
use super::reading::Reading;
use super::rights;
use crate::cli::Serve;
use crate::lookups::Lookups;
use crate::output::Failure;
use crate::process::supervise::channel::{Channel, Packet};
use crate::store::apart::lines::{self, Order, Request};
use crate::store::apart::{self, Distant};
use crate::store::host::{Host, LocalWork, Mail, Nobody, Unlearned, Work};
use crate::store::server::{Handed, Open, Server};
use crate::store::{callers, discovery, folder};

/// Connections that wait for a store that is not open yet.
const WAITING_MAX: usize = 4_096;

/// How long the gateway may take for a lesson.
const LESSON_WAIT: Duration = Duration::from_secs(60);

/// How often freed memory is given back.
const LOOK_EVERY: Duration = Duration::from_secs(10);

const PIECE_BYTES: usize = 16 << 10;

/// Serves the store until its edge ends.
///
/// # Errors
/// When it cannot be served.
pub fn run(args: &Serve) -> Result<ExitCode, Failure> {
    let channel = Arc::new(Channel::from(io::stdin().as_fd().try_clone_to_owned()?));
    let edge = Arc::new(Edge { channel, has_tls: AtomicBool::new(false), learns: AtomicBool::new(false) });
    serve(args, &edge).map(|()| ExitCode::SUCCESS).or_else(|error| {
        // Said by the edge, or by its end.
        edge.say(&Request::Failed(error.to_string()), &[])?;
        Ok(ExitCode::from(2))
    })
}

fn serve(args: &Serve, edge: &Arc<Edge>) -> Result<(), Failure> {
    // No thread takes any of them.
    let passed_over: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGUSR2].into_iter().collect();
    passed_over.thread_block()?;
    let fingerprint = take_sockets(&edge.channel)?;
    edge.hear_first()?;
    super::descriptors();
    let Reading { config, .. } = Reading::again(args)?;
    if apart::fingerprint(&config) != fingerprint {
        edge.say(&Request::Stale, &[])?;
        return Err("its settings have changed".into());
    }
    let settings = config.store.as_ref().ok_or("there is no [store]")?;
    // The files of UNIX sockets are the edge's, which takes them away.
    let open = ManuallyDrop::new(Open::new(settings, config.cluster.as_ref())?);
    let around = (config.cluster.as_ref(), config.resources.stop_seconds);
    let server =
        Server::new(settings, around, &config.tls.authorities, discovery::of(&config), edge.clone() as Arc<dyn Host>)?;
    rights::settle_store(args, &config)?;
    listening::forget_inherited();
    let lookups = Lookups::of_store(&config)?;
    let password = match rights::is_first_steps(args) {
        true => Some(folder::welcome(settings, folder::NEWCOMER)?.password),
        false => None,
    };
    let elsewhere = lookups.accounts(&settings.lookups);
    let prepared = server.prepare(&config.hostname, &config.dns, &config.tls, elsewhere)?;
    let (handed, waiting) = mpsc::channel(WAITING_MAX);
    let (server, hearing) = (Arc::new(server), edge.clone());
    let (ears, tables) = (server.clone(), lookups.clone());
    std::thread::Builder::new().name("edge".into()).spawn(move || {
        hearing.hear(&ears, &tables, &handed);
        ears.is_over();
    })?;
    std::thread::Builder::new().name("thrift".into()).spawn(|| {
        let mut thrift = Thrift::default();
        loop {
            std::thread::sleep(LOOK_EVERY);
            thrift.look();
        }
    })?;
    edge.say(&Request::Ready(password), &[])?;
    server.run(prepared, &open, waiting)
}

/// Takes the sockets of the store, and the fingerprint of its settings.
fn take_sockets(channel: &Channel) -> io::Result<String> {
    loop {
        let Packet { line, beside } = channel.receive()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        match line.split_once(' ') {
            Some(("socket", name)) => listening::inherit(name.into(), beside),
            Some(("begin", fingerprint)) => return Ok(fingerprint.into()),
            _ => return Err(io::Error::other("the edge makes no sense")),
        }
    }
}

/// Numbers of this process, in families of the edge's.
fn own_numbers() -> String {
    let name = "sluice_process_resident_bytes";
    let series = format!("{name}{{process=\"keep\",pid=\"{}\"}} {}", std::process::id(), resident_bytes());
    format!("# HELP {name} Resident memory of a process.\n# TYPE {name} gauge\n{series}\n")
}

/// The edge as the host of the store.
struct Edge {
    channel: Arc<Channel>,
    has_tls: AtomicBool,
    learns: AtomicBool,
}

/// A session that the edge counts, until it is dropped.
struct Session(Arc<Channel>);

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.0.send(&lines::line(&Request::Session(false)), &[]);
    }
}

impl Edge {
    fn say(&self, request: &Request, beside: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.channel.send(&lines::line(request), beside)
    }

    /// Hears what the gateway has to lend, before anybody is served.
    fn hear_first(&self) -> io::Result<()> {
        let Packet { line, .. } = self.channel.receive()?.ok_or(io::ErrorKind::UnexpectedEof)?;
        match lines::read(&line) {
            Some(Order::Shown { tls, learns }) => self.show(tls, learns),
            _ => return Err(io::Error::other("the edge makes no sense")),
        }
        Ok(())
    }

    fn show(&self, has_tls: bool, learns: bool) {
        self.has_tls.store(has_tls, Relaxed);
        self.learns.store(learns, Relaxed);
    }

    /// Hears the edge until it is gone.
    fn hear(&self, server: &Server, lookups: &Lookups, handed: &mpsc::Sender<Handed>) {
        while let Ok(Some(Packet { line, beside })) = self.channel.receive() {
            let Some(order) = lines::read::<Order>(&line) else { return };
            match order {
                Order::Shown { tls, learns } => self.show(tls, learns),
                Order::Deliver(name) => {
                    let stream = beside.into_iter().next().map(Begun::from);
                    if let Some((stream, caller)) = stream.zip(callers::named(&name)) {
                        // One beyond the bound ends, and its door says so to its client.
                        let _ = handed.try_send((stream, caller));
                    }
                }
                Order::Count(evaluation) => {
                    server.evaluations().iter().for_each(|evaluations| evaluations.count(&evaluation));
                }
                Order::Numbers(question) => {
                    let numbers = joined(server.numbers(), &lookups.measured()) + &own_numbers();
                    let _ = self.say(&Request::Numbers(question, numbers), &[]);
                }
                Order::End => server.end(),
                Order::Over => server.is_over(),
            }
        }
    }

    async fn teach(&self, is_spam: bool, mail: &mut dyn Mail) -> io::Result<Result<bool, Unlearned>> {
        let (ours, theirs) = Begun::pair()?;
        self.say(&Request::Learn { spam: is_spam }, &[theirs.as_fd()])?;
        drop(theirs);
        ours.set_read_timeout(Some(LESSON_WAIT))?;
        ours.set_write_timeout(Some(LESSON_WAIT))?;
        // One lesson at a time, on a thread that does nothing else.
        let (mut stream, mut offset, mut piece) = (&ours, 0, vec![0; PIECE_BYTES]);
        let mut outcome = stream.write_all(&mail.size().to_le_bytes());
        while outcome.is_ok() {
            let count = match mail.read(offset, &mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(why) => return Ok(Err(why)),
            };
            offset += count as u64;
            // Of one that is too large the rest is not read.
            outcome = stream.write_all(&piece[..count]);
        }
        let mut answer = String::new();
        // A gateway that did not read all of it has answered all the same.
        let _ = stream.read_to_string(&mut answer);
        Ok(match answer.split_at_checked(1) {
            Some(("+", changed)) => Ok(changed == "changed"),
            Some(("-", why)) => Err(why.to_owned().into()),
            _ => Err("the gateway is gone".into()),
        })
    }
}

impl Host for Edge {
    fn has_tls(&self) -> bool {
        self.has_tls.load(Relaxed)
    }

    /// The client's socket goes to the edge, and the session on a pair: it may speak before the handshake is over.
    fn secure(&self, stream: Stream) -> Work<'_, io::Result<Stream>> {
        Box::pin(async move {
            let client: OwnedFd = match stream {
                Stream::Tcp(stream) => stream.into_std()?.into(),
                Stream::Unix(stream) => stream.into_std()?.into(),
                Stream::Tls(_) | Stream::Within(_) => return Err(io::Error::other("it is encrypted already")),
            };
            let (ours, theirs) = Begun::pair()?;
            self.say(&Request::Secure, &[client.as_fd(), theirs.as_fd()])?;
            ours.set_nonblocking(true)?;
            Ok(Stream::Unix(tokio::net::UnixStream::from_std(ours)?))
        })
    }

    fn session(&self) -> Option<Box<dyn Send + Sync>> {
        self.say(&Request::Session(true), &[]).ok()?;
        Some(Box::new(Session(self.channel.clone())))
    }

    fn inspect(&self, context: Context) -> Box<dyn Inspecting> {
        let asked = Begun::pair().and_then(|(ours, theirs)| {
            self.say(&Request::Inspect, &[theirs.as_fd()])?;
            Ok(Distant::new(ours, &context))
        });
        match asked {
            Ok(inspecting) => Box::new(inspecting),
            Err(error) => {
                tracing::warn!(%error, "the gateway inspects nothing for the store");
                Box::new(Nobody)
            }
        }
    }

    fn learns(&self) -> bool {
        self.learns.load(Relaxed)
    }

    fn learn<'a>(&'a self, is_spam: bool, mail: &'a mut dyn Mail) -> LocalWork<'a, Result<bool, Unlearned>> {
        Box::pin(async move { self.teach(is_spam, mail).await.unwrap_or_else(|error| Err(error.to_string().into())) })
    }

    fn lose_lesson(&self) {
        let _ = self.say(&Request::Lost, &[]);
    }
}
