//! The doors of a node that does not have the store: they hand every connection over to the owner.
//!
//! Commands on its control socket are handed over as well. Where there is no owner, or it does not answer, a connection waits: a take-over is a pause for clients.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use edge::net::accept::{Handler, accept};
use edge::net::listening::{Socket, network_address};
use edge::net::stream::Stream;
use edge::upstream::within::Caller;
use tokio::io::copy_bidirectional;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::Member;
use super::handing::{Handed, hand_over};
use crate::config::Door;

/// How long a connection waits for an owner.
const PATIENCE: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(250);

/// The name of a connection that a command has made, in place of that of a door.
pub const COMMAND: &str = "control";

/// The name of a connection that a door of the gateway hands over, in place of that of a door. Commands reach their own node alone.
pub const fn within(caller: &Caller) -> Option<&'static str> {
    match caller {
        Caller::Lmtp => Some("gateway-lmtp"),
        Caller::Smtp => Some("gateway-smtp"),
        Caller::Insider => Some("gateway-insider"),
        Caller::Account(_) => None,
    }
}

/// Hands clients over until it is dropped; connections that were handed over go on.
pub async fn serve(
    member: &Arc<Member>,
    doors: &[(Door, Arc<Socket>)],
    (reception, control): (Option<&Socket>, Option<&Socket>),
    waiting: &mut mpsc::Receiver<(std::os::unix::net::UnixStream, Caller)>,
    sessions_max: usize,
) {
    let places = Arc::new(Semaphore::new(sessions_max));
    let mut listeners = JoinSet::new();
    for (door, socket) in doors {
        let (socket, clients) =
            (socket.clone(), Clients { member: member.clone(), places: places.clone(), door: *door });
        let name = door.name();
        listeners.spawn(async move { accept(name, &socket, &clients).await });
    }
    let turn_away = async {
        match reception {
            Some(socket) => accept("cluster", socket, &Nodes).await,
            None => std::future::pending().await,
        }
    };
    let commands = async {
        match control {
            Some(socket) => {
                let commands = Commands { member: member.clone(), places: places.clone() };
                accept("store control", socket, &commands).await;
            }
            None => std::future::pending().await,
        }
    };
    let hand_on = async {
        while let Some((stream, caller)) = waiting.recv().await {
            if let (Ok(stream), Some(door)) = (tokio::net::UnixStream::from_std(stream), within(&caller)) {
                let Ok(place) = places.clone().try_acquire_owned() else { continue };
                relay(member, place, Stream::Unix(stream), Handed { door: door.into(), client: None });
            }
        }
        std::future::pending().await
    };
    tokio::select! {
        () = turn_away => {}
        () = hand_on => {}
        () = commands => {}
    }
}

/// Clients of a door.
struct Clients {
    member: Arc<Member>,
    places: Arc<Semaphore>,
    door: Door,
}

impl Handler for Clients {
    type Place = OwnedSemaphorePermit;

    async fn enter(&self, _stream: &Stream, _peer: SocketAddr) -> Result<OwnedSemaphorePermit, Option<String>> {
        self.places.clone().try_acquire_owned().map_err(|_| None)
    }

    fn begin(&self, stream: Stream, peer: SocketAddr, place: OwnedSemaphorePermit) {
        let handed = Handed { door: self.door.name().into(), client: network_address(peer) };
        relay(&self.member, place, stream, handed);
    }
}

/// Commands on this machine, which the owner answers.
struct Commands {
    member: Arc<Member>,
    places: Arc<Semaphore>,
}

impl Handler for Commands {
    type Place = OwnedSemaphorePermit;

    async fn enter(&self, _stream: &Stream, _peer: SocketAddr) -> Result<OwnedSemaphorePermit, Option<String>> {
        self.places.clone().try_acquire_owned().map_err(|_| None)
    }

    fn begin(&self, stream: Stream, _peer: SocketAddr, place: OwnedSemaphorePermit) {
        relay(&self.member, place, stream, Handed { door: COMMAND.into(), client: None });
    }
}

/// Nodes that hand over their clients: another node asks the database again, and waits.
struct Nodes;

impl Handler for Nodes {
    type Place = Infallible;

    async fn enter(&self, _stream: &Stream, _peer: SocketAddr) -> Result<Infallible, Option<String>> {
        Err(None)
    }

    fn begin(&self, _stream: Stream, _peer: SocketAddr, place: Infallible) {
        match place {}
    }
}

fn relay(member: &Arc<Member>, place: OwnedSemaphorePermit, mut stream: Stream, handed: Handed) {
    let member = member.clone();
    tokio::spawn(async move {
        let _place = place;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let address = *member.owner.borrow();
            if let Some(address) = address {
                match hand_over(address, &member.secret, &handed).await {
                    Ok(mut owner) => {
                        // A former owner that is paused or cut off would hold the client for ever.
                        let mut owners = member.owner.subscribe();
                        let moved = owners.wait_for(|now| now.is_some_and(|now| now != address));
                        tokio::select! {
                            _ = copy_bidirectional(&mut stream, &mut owner) => {}
                            _ = moved => {}
                        }
                        return;
                    }
                    Err(error) => tracing::debug!(%address, %error, door = handed.door, "not handed over yet"),
                }
            }
            sleep(PAUSE).await;
        }
        tracing::warn!(door = handed.door, "no node has the store: a connection is closed");
    });
}
