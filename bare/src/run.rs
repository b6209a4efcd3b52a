//! The loop: takes what the network has, lets each connection go on as far as it can, sends. Connections are a fixed number of places.

use alloc::boxed::Box;
use alloc::vec::Vec;

use smoltcp::iface::SocketHandle;
use smoltcp::wire::IpAddress;

use crate::machine::{Free, clock, say, serial};
use crate::mail::Sender;
use crate::net::Net;
use crate::office::Office;
use crate::web::Browser;

/// Where browsers come in.
const WEB: u16 = 80;
/// Where mail comes in.
const MAIL: u16 = 25;

/// Steps of one connection before the others have their turn.
const STEPS_MAX: usize = 64;

/// One side of a conversation.
pub trait Conversation {
    /// Goes on: how much of the input was taken, and whether there is more to do without more of it.
    fn step(&mut self, office: &mut Office, now: u64, input: &[u8]) -> (usize, bool);
    /// What waits to be sent.
    fn outbox(&self) -> &[u8];
    /// So much of it was sent.
    fn sent(&mut self, count: usize, now: u64);
    /// Whether nothing follows the outbox.
    fn is_over(&self) -> bool;
    /// When patience ends, in milliseconds.
    fn deadline(&self) -> u64;
    /// It has ended.
    fn time_out(&mut self);
}

/// A place for a connection.
struct Place {
    socket: SocketHandle,
    port: u16,
    conversation: Option<Box<dyn Conversation>>,
}

/// Serves until the machine is restarted.
pub fn run(mut office: Office, mut net: Net) -> ! {
    let browsers = office.site().connections;
    let ports = core::iter::repeat_n(WEB, browsers).chain(core::iter::repeat_n(MAIL, (browsers / 4).max(1)));
    let mut places: Vec<Place> = ports.map(|port| Place { socket: net.listen(), port, conversation: None }).collect();
    for place in &mut places {
        place.serve(&mut office, &mut net);
    }
    say!("ready after {} ms", clock::milliseconds());
    loop {
        net.poll();
        for place in &mut places {
            place.serve(&mut office, &mut net);
        }
        if serial::typed().is_some() {
            status(&office, &places);
        }
    }
}

impl Place {
    fn serve(&mut self, office: &mut Office, net: &mut Net) {
        let (socket, now) = (net.socket(self.socket), clock::milliseconds());
        if !socket.is_open() {
            self.conversation = None;
            let _ = socket.listen(self.port);
            return;
        }
        if socket.is_listening() {
            return;
        }
        let client = match socket.remote_endpoint().map(|remote| remote.addr) {
            Some(IpAddress::Ipv4(address)) => address.octets(),
            None => return,
        };
        let conversation = self.conversation.get_or_insert_with(|| match self.port {
            MAIL => Box::new(Sender::new(office, client, now)),
            _ => Box::new(Browser::new(client, now)),
        });
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
