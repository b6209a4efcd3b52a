//! The loop: takes what the network has, lets each connection go on as far as it can, sends. Connections are a fixed number of places.

use alloc::boxed::Box;
use alloc::vec::Vec;

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::wire::IpAddress;

use crate::machine::{Free, clock, say, serial};
use crate::mail::Sender;
use crate::net::Net;
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

/// A place for a connection.
struct Place {
    socket: SocketHandle,
    port: u16,
    conversation: Option<Box<dyn Conversation>>,
}

/// Serves until the machine is restarted.
pub fn run(mut office: Office, mut net: Net) -> ! {
    let site = office.site();
    let ports = PORTS.into_iter().flat_map(|port| core::iter::repeat_n(port, count(port, site)));
    let mut places: Vec<Place> = ports.map(|port| Place { socket: net.listen(), port, conversation: None }).collect();
    for place in &mut places {
        place.serve(&mut office, &mut net);
    }
    say!("ready after {} ms", clock::milliseconds());
    loop {
        net.poll(|sockets| PORTS.into_iter().for_each(|port| make_room(port, &mut places, sockets)));
        for place in &mut places {
            place.serve(&mut office, &mut net);
        }
        if serial::typed().is_some() {
            status(&office, &places);
        }
    }
}

/// Places of a port: of mail servers, and of browsers where they are not meant to come, there are fewer.
fn count(port: u16, site: &Site) -> usize {
    let main = if site.is_plain { WEB } else { SECURE_WEB };
    if port == main { site.connections } else { site.connections / 4 }
}

/// Ends the connection that has waited the longest if no place of a port is free, before the next client comes.
fn make_room(port: u16, places: &mut [Place], sockets: &mut SocketSet<'static>) {
    let of_port = places.iter_mut().filter(|place| place.port == port);
    let mut longest: Option<((bool, bool, u64), &mut Place)> = None;
    for place in of_port {
        let socket = sockets.get_mut::<tcp::Socket<'_>>(place.socket);
        if !socket.is_open() {
            place.listen(socket);
        }
        if socket.is_listening() {
            return;
        }
        let Some(conversation) = place.conversation.as_ref() else { continue };
        // First those of whom nothing is under way, then those that have not yet taken all of the answer, then the rest.
        let is_busy = !conversation.is_waiting() && !conversation.is_over();
        let order = (is_busy, socket.send_queue() > 0, conversation.deadline());
        if longest.as_ref().is_none_or(|(known, _)| order < *known) {
            longest = Some((order, place));
        }
    }
    if let Some((_, place)) = longest {
        let socket = sockets.get_mut::<tcp::Socket<'_>>(place.socket);
        // Its client is told when it says something.
        socket.abort();
        place.listen(socket);
    }
}

impl Place {
    fn listen(&mut self, socket: &mut tcp::Socket<'_>) {
        self.conversation = None;
        let _ = socket.listen(self.port);
    }

    fn serve(&mut self, office: &mut Office, net: &mut Net) {
        let (socket, now) = (net.socket(self.socket), clock::milliseconds());
        if !socket.is_open() {
            return self.listen(socket);
        }
        if socket.is_listening() {
            return;
        }
        let client = match socket.remote_endpoint().map(|remote| remote.addr) {
            Some(IpAddress::Ipv4(address)) => address.octets(),
            None => return,
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
            return;
        }
        for _ in 0..STEPS_MAX {
            if !conversation.outbox().is_empty() {
                let sent = socket.send_slice(conversation.outbox()).unwrap_or(0);
                conversation.sent(sent, now);
                if !conversation.outbox().is_empty() {
                    break;
                }
            }
            if conversation.is_over() {
                socket.close();
                break;
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
                break;
            }
        }
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
fn status(office: &Office, places: &[Place]) {
    let (memory, usage) = (Free::now(), office.store.volume().usage());
    let open = places.iter().filter(|place| place.conversation.is_some()).count();
    let counts = &office.counts;
    say!("up {} s, {open} of {} connections", clock::milliseconds() / 1_000, places.len());
    say!("requests {}, mails {}, refused {}", counts.requests, counts.mails, counts.refused);
    say!("messages {}, store {} of {} bytes free", usage.messages, usage.free_bytes, usage.total_bytes);
    say!("memory {} of {} bytes free", memory.free, memory.total);
}
