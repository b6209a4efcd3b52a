//! Sends what scripts redirect, and their answers: a thread with connections to a next hop.

use edge::settings::{Forward, Target, Tls};
use edge::upstream::route::Route;
use edge::upstream::smtp_hop::{Leases, Peer, SmtpHop};
use mailbox::{Outgoing, Relay, Sending, Unsent};
use proto::smtp::{Body, MailFrom, Protocol, RcptTo, Reply};
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::LocalSet;
use tokio::time::timeout;

/// Mails that wait for their turn; who brings another one is told so.
const WAITING_MAX: usize = 1_000;

/// Mails that are sent at the same time.
const AT_ONCE: usize = 16;

/// How long a mail may take: a client waits for the answer meanwhile, ten minutes at least (RFC 5321, section 4.5.3.2.6).
const MAIL_WAIT: Duration = Duration::from_secs(300);

/// The way to the thread.
pub struct NextHop {
    mails: mpsc::Sender<Job>,
}

type Job = (Outgoing, oneshot::Sender<Result<(), Unsent>>);

impl NextHop {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there is no such hop, or no thread.
    pub fn start(forward: &Forward, tls: &Tls, hostname: &str) -> Result<NextHop, String> {
        let route = Route::new(&Target::new(forward.clone()), tls)?;
        let (address, protocol) = route.server().ok_or_else(|| format!("{forward} takes no mail"))?;
        let (mails, mut waiting) = mpsc::channel::<Job>(WAITING_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        let hostname = hostname.to_owned();
        let run = move || {
            let hop = Hop { route, address, protocol, hostname, leases: Leases::default() };
            let (hop, permits) = (Rc::new(hop), Arc::new(Semaphore::new(AT_ONCE)));
            let serve = async {
                while let Some((mail, told)) = waiting.recv().await {
                    let Ok(permit) = permits.clone().acquire_owned().await else { return };
                    let hop = hop.clone();
                    tokio::task::spawn_local(async move {
                        let outcome = timeout(MAIL_WAIT, hop.send(mail)).await;
                        let _ = told.send(outcome.unwrap_or_else(|_| Err(Unsent::for_now("the relay took too long"))));
                        drop(permit);
                    });
                }
            };
            LocalSet::new().block_on(&runtime, serve);
        };
        std::thread::Builder::new().name("relay".into()).spawn(run).map_err(|error| error.to_string())?;
        Ok(NextHop { mails })
    }
}

impl Relay for NextHop {
    fn send(&self, mail: Outgoing) -> Sending {
        let (tell, told) = oneshot::channel();
        let handed =
            self.mails.try_send((mail, tell)).map_err(|_| Unsent::for_now("too many mails wait for the relay"));
        Box::pin(async move {
            handed?;
            told.await.unwrap_or_else(|_| Err(Unsent::for_now("the relay has ended")))
        })
    }
}

struct Hop {
    route: Route,
    address: String,
    protocol: Protocol,
    hostname: String,
    leases: Leases,
}

impl Hop {
    async fn send(&self, mut mail: Outgoing) -> Result<(), Unsent> {
        let wrong = |text: &str| Unsent { why: format!("{text:?} is not an address"), is_final: true };
        let path = |text: &str| text.parse().map_err(|_| wrong(text));
        let body = mail.is_eight_bit.then_some(Body::EightBit);
        let from = MailFrom { path: path(&mail.from)?, size: Some(mail.bytes), body, ..MailFrom::default() };
        let rcpt = RcptTo { path: path(&mail.to)?, ..RcptTo::default() };
        let peer =
            Peer { address: Ipv4Addr::LOCALHOST.into(), port: 0, hello: &self.hostname, xforward: &[], lmtp: false };
        let Hop { route, address, protocol, hostname, leases } = self;
        let leased = SmtpHop::lease(address, *protocol, route, hostname, leases, &from, &rcpt, &peer).await;
        let (mut hop, reply) = leased.map_err(said)?;
        if !reply.is_positive() {
            hop.abandon(leases).await;
            return Err(said(reply));
        }
        hop.begin().await.map_err(said)?;
        let mut left = mail.bytes;
        while let Some(piece) = mail.content.recv().await {
            left = left
                .checked_sub(piece.len() as u64)
                .ok_or_else(|| Unsent::for_now("the mail is longer than it was to be"))?;
            hop.write(&piece).await.map_err(said)?;
        }
        if left > 0 {
            // By DATA the connection goes with it.
            hop.abandon(leases).await;
            return Err(Unsent::for_now("the mail could not be read"));
        }
        let reply = hop.commit().await;
        if reply.is_positive() {
            hop.release(leases);
            return Ok(());
        }
        Err(said(reply))
    }
}

fn said(reply: Reply) -> Unsent {
    Unsent { why: format!("the relay said: {reply}"), is_final: reply.is_permanent() }
}
