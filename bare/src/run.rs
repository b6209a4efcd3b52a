//! The loop: takes what the network has, lets each connection go on that something has come for, sends. Connections are a fixed number
//! of sockets. They are in [`SHARDS`], and only shards with something to do are looked at: those that a frame came for, those with more to
//! do or to send, and each [`TICK_MS`] all of them.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::{Socket, tcp};
use smoltcp::wire::IpAddress;

use crate::machine::{Free, clock, say, serial};
use crate::mail::Sender;
use crate::net::{self, Flow, Net};
use crate::office::Office;
use crate::site::Site;
use crate::tls::Secure;
use crate::web::{Access, Browser};

/// Where browsers come in, and where they come in with TLS.
const WEB: u16 = 80;
const SECURE_WEB: u16 = 443;
const PORTS: [u16; 3] = [WEB, MAIL, SECURE_WEB];
/// Where mail comes in.
const MAIL: u16 = 25;

/// Steps of one connection before the others have their turn.
const STEPS_MAX: usize = 64;
/// Frames that are taken before connections have their turn.
const FRAMES_MAX: usize = 64;
/// How often connections are looked at for which nothing has come, in milliseconds.
const TICK_MS: u64 = 10;
/// Sets of connections: as many as a word has bits.
const SHARDS: usize = 64;

/// One side of a conversation.
pub trait Conversation {
    /// Goes on: how much of the input was taken, and whether there is more to do without more of it.
    fn step(&mut self, office: &mut Office, now: u64, input: &[u8]) -> (usize, bool);
    /// Bytes that wait to be sent.
    fn outbox(&self) -> &[u8];
    /// So much of it was sent.
    fn sent(&mut self, count: usize, now: u64);
    /// Whether nothing follows the outbox.
    fn is_over(&self) -> bool;
    /// Whether nothing is under way that is worth keeping: if places are short it is ended first.
    fn is_waiting(&self) -> bool;
    /// When patience ends, in milliseconds.
    fn deadline(&self) -> u64;
    /// It has ended.
    fn time_out(&mut self);
    /// Whether the rest is to be encrypted, once the outbox is sent.
    fn wants_tls(&self) -> bool {
        false
    }
    /// The rest is encrypted.
    fn secured(&mut self, _now: u64) {}
}

/// A connection.
struct Place {
    socket: SocketHandle,
    port: u16,
    conversation: Option<Box<dyn Conversation>>,
}

/// A part of the connections.
struct Shard {
    sockets: SocketSet<'static>,
    places: Vec<Place>,
}

/// All connections.
struct Connections {
    shards: Vec<Shard>,
    /// A bit for each shard with something to do.
    due: u64,
    /// Sockets that no connection has. All are made at the start: a connection needs no memory that may be short.
    spare: Vec<tcp::Socket<'static>>,
}

/// Serves until the machine is restarted.
pub fn run(mut office: Office, mut net: Net) -> ! {
    let sockets = PORTS.into_iter().map(|port| count(port, office.site())).sum();
    let mut all = Connections {
        shards: (0..SHARDS).map(|_| Shard { sockets: SocketSet::new(vec![]), places: Vec::new() }).collect(),
        due: 0,
        spare: (0..sockets).map(|_| net::socket()).collect(),
    };
    say!("ready after {} ms", clock::milliseconds());
    let mut next_tick = 0;
    loop {
        let now = clock::milliseconds();
        let is_busy = all.receive(&mut net, office.site(), now);
        if now >= next_tick {
            next_tick = now.saturating_add(TICK_MS);
            all.due = u64::MAX;
            net.keep_address(now);
            if serial::typed().is_some() {
                status(&office, &all, sockets);
            }
        }
        if all.due == 0 && !is_busy {
            net.sleep();
            continue;
        }
        all.serve(&mut office, &mut net, now);
    }
}

/// Connections of a port: of mail servers, and of browsers where they are not meant to come, there are fewer.
fn count(port: u16, site: &Site) -> usize {
    let main = if site.is_plain { WEB } else { SECURE_WEB };
    if port == main { site.connections } else { site.connections / 4 }
}

impl Connections {
    /// Takes the frames that have come.
    fn receive(&mut self, net: &mut Net, site: &Site, now: u64) -> bool {
        for taken in 0..FRAMES_MAX {
            if !net.has_come() {
                return taken > 0;
            }
            let Some(flow) = net.flow() else {
                // It may be the answer to the question which address somebody has, for which connections wait.
                net.take_control(now);
                self.due = u64::MAX;
                continue;
            };
            let at = (flow.hash % SHARDS as u64) as usize;
            if flow.is_first && PORTS.contains(&flow.port) {
                self.listen(at, &flow, count(flow.port, site));
            }
            let Some(shard) = self.shards.get_mut(at) else { continue };
            net.take(&mut shard.sockets, now);
            self.due |= 1 << at;
        }
        true
    }

    /// Adds a socket for a connection that begins, unless it has one.
    fn listen(&mut self, at: usize, flow: &Flow, count: usize) {
        let Some(shard) = self.shards.get_mut(at) else { return };
        let Shard { sockets, places } = shard;
        let is_known = places.iter().filter(|place| place.port == flow.port).any(|place| {
            let socket = sockets.get::<tcp::Socket<'_>>(place.socket);
            socket.is_listening() || socket.is_open() && socket.remote_endpoint() == Some(flow.client)
        });
        if is_known {
            return;
        }
        let open = |shard: &Shard| shard.places.iter().filter(|place| place.port == flow.port).count();
        if self.shards.iter().map(open).sum::<usize>() >= count {
            self.make_room(flow.port);
        }
        let (Some(shard), Some(mut socket)) = (self.shards.get_mut(at), self.spare.pop()) else { return };
        let _ = socket.listen(flow.port);
        shard.places.push(Place { socket: shard.sockets.add(socket), port: flow.port, conversation: None });
    }

    /// Ends the connection of a port that has waited the longest.
    fn make_room(&mut self, port: u16) {
        let mut longest = None;
        for (at, Shard { sockets, places }) in self.shards.iter().enumerate() {
            for (place, known) in places.iter().enumerate().filter(|(_, place)| place.port == port) {
                // First those of whom nothing is under way, then those that have not yet taken all of the answer, those that have just come,
                // of whom there may be many at once, and the rest.
                let order = known.conversation.as_ref().map_or((false, true, u64::MAX), |conversation| {
                    let is_busy = !conversation.is_waiting() && !conversation.is_over();
                    (is_busy, sockets.get::<tcp::Socket<'_>>(known.socket).send_queue() > 0, conversation.deadline())
                });
                if longest.is_none_or(|(known, _, _)| order < known) {
                    longest = Some((order, at, place));
                }
            }
        }
        // Its client is told when it says something.
        if let Some((_, at, place)) = longest
            && let Some(shard) = self.shards.get_mut(at)
        {
            shard.remove(place, &mut self.spare);
        }
    }

    /// Lets connections go on, and sends.
    fn serve(&mut self, office: &mut Office, net: &mut Net, now: u64) {
        let due = core::mem::take(&mut self.due);
        for (at, shard) in self.shards.iter_mut().enumerate() {
            if due >> at & 1 == 0 {
                continue;
            }
            let mut goes_on = false;
            for place in &mut shard.places {
                goes_on |= place.serve(office, &mut shard.sockets, now);
            }
            goes_on |= !net.send(&mut shard.sockets, now);
            self.due |= u64::from(goes_on) << at;
            shard.clear(&mut self.spare);
        }
    }
}

impl Shard {
    fn remove(&mut self, place: usize, spare: &mut Vec<tcp::Socket<'static>>) {
        let place = self.places.swap_remove(place);
        if let Socket::Tcp(mut socket) = self.sockets.remove(place.socket) {
            socket.abort();
            spare.push(socket);
        }
    }

    /// Removes connections that have ended, and those that did not begin.
    fn clear(&mut self, spare: &mut Vec<tcp::Socket<'static>>) {
        let mut place = 0;
        while let Some(known) = self.places.get(place) {
            let socket = self.sockets.get::<tcp::Socket<'_>>(known.socket);
            match socket.is_listening() || !socket.is_open() {
                true => self.remove(place, spare),
                false => place += 1,
            }
        }
    }
}

impl Place {
    /// Goes on as far as possible: whether there is more to do at once.
    fn serve(&mut self, office: &mut Office, sockets: &mut SocketSet<'static>, now: u64) -> bool {
        let socket = sockets.get_mut::<tcp::Socket<'_>>(self.socket);
        if !socket.is_open() || socket.is_listening() {
            return false;
        }
        let client = match socket.remote_endpoint().map(|remote| remote.addr) {
            Some(IpAddress::Ipv4(address)) => address.octets(),
            None => return false,
        };
        let conversation = self.conversation.get_or_insert_with(|| begun(self.port, office, client, now));
        if now > conversation.deadline() {
            match conversation.is_over() {
                true => socket.abort(),
                false => conversation.time_out(),
            }
        }
        // It is being made, or the last has been sent.
        if !socket.may_send() {
            return false;
        }
        for _ in 0..STEPS_MAX {
            if !conversation.outbox().is_empty() {
                let sent = socket.send_slice(conversation.outbox()).unwrap_or(0);
                conversation.sent(sent, now);
                if !conversation.outbox().is_empty() {
                    return false;
                }
            }
            if conversation.is_over() {
                socket.close();
                return false;
            }
            let more = match socket.can_recv() {
                true => socket.recv(|input| conversation.step(office, now, input)).unwrap_or(false),
                false => conversation.step(office, now, &[]).1,
            };
            if !more {
                // The client sends no more: what it has not said to the end is not done.
                if !socket.may_recv() && conversation.outbox().is_empty() {
                    socket.close();
                }
                return false;
            }
        }
        true
    }
}

fn begun(port: u16, office: &Office, client: [u8; 4], now: u64) -> Box<dyn Conversation> {
    match port {
        MAIL => Box::new(Secure::later(Box::new(Sender::new(office, client, now)))),
        WEB if office.site().is_plain => Box::new(Browser::new(client, Access::Plain, now)),
        WEB => Box::new(Browser::new(client, Access::Elsewhere, now)),
        _ => Box::new(Secure::new(Box::new(Browser::new(client, Access::Secure, now)), &office.tls, now)),
    }
}

/// Prints what the machine does.
fn status(office: &Office, all: &Connections, sockets: usize) {
    let (memory, usage) = (Free::now(), office.store.volume().usage());
    let open: usize = all.shards.iter().map(|shard| shard.places.len()).sum();
    let counts = &office.counts;
    say!("up {} s, {open} of {sockets} connections", clock::milliseconds() / 1_000);
    say!("requests {}, mails {}, refused {}", counts.requests, counts.mails, counts.refused);
    say!("messages {}, store {} of {} bytes free", usage.messages, usage.free_bytes, usage.total_bytes);
    say!("memory {} of {} bytes free", memory.free, memory.total);
}
