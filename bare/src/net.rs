//! Ethernet to TCP: smoltcp on a virtio network device. The address is that of the settings, or DHCP's.
//!
//! Each frame of TCP belongs to one of many small sets of sockets, by the addresses and ports of its connection: smoltcp goes through a whole
//! set for each frame.

use alloc::vec;
use core::cell::{Cell, RefCell};

use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::{dhcpv4, tcp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr, IpEndpoint, Ipv4Address};

use crate::machine::frames::{Frame, Network};
use crate::machine::{clock, interrupt, random, say};
use crate::site::Site;

/// Bytes of a connection that wait to be read.
const RECEIVED_BYTES: usize = 8 << 10;
/// Bytes of a connection that wait to be sent, or for the answer that they have come.
const SENT_BYTES: usize = 32 << 10;
/// Bytes of a frame, with its header.
const FRAME_BYTES_MAX: usize = 1_514;
/// A connection of which nothing is heard for so long is over.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The network.
pub struct Net {
    wire: Wire,
    interface: Interface,
    /// Sockets of all that is not TCP: DHCP's.
    control: SocketSet<'static>,
    dhcp: Option<SocketHandle>,
    seed: u64,
}

/// The connection of a frame.
pub struct Flow {
    pub client: IpEndpoint,
    pub port: u16,
    /// Whether it is to begin.
    pub is_first: bool,
    /// The same number for all frames of a connection, and one that nobody else can choose.
    pub hash: u64,
}

impl Net {
    pub fn new(network: Network, site: &Site) -> Net {
        let hardware = HardwareAddress::Ethernet(EthernetAddress(network.mac_address()));
        let mut wire = Wire { network: RefCell::new(network), waiting: None, is_full: Cell::new(false) };
        let mut config = Config::new(hardware);
        config.random_seed = u64::from_le_bytes(random::bytes());
        let mut interface = Interface::new(config, &mut wire, instant(clock::milliseconds()));
        let mut control = SocketSet::new(vec![]);
        let dhcp = match site.address {
            Some(address) => {
                interface.update_ip_addrs(|all| _ = all.push(IpCidr::Ipv4(address)));
                if let Some(gateway) = site.gateway {
                    let _ = interface.routes_mut().add_default_ipv4_route(gateway);
                }
                say!("address {address}");
                None
            }
            None => Some(control.add(dhcpv4::Socket::new())),
        };
        Net { wire, interface, control, dhcp, seed: u64::from_le_bytes(random::bytes()) | 1 }
    }

    /// Whether a frame has come.
    pub fn has_come(&mut self) -> bool {
        if self.wire.waiting.is_none() {
            self.wire.waiting = self.wire.network.get_mut().receive();
        }
        self.wire.waiting.is_some()
    }

    /// Sleeps until a frame comes or the timer, unless one has come.
    pub fn sleep(&mut self) {
        self.wire.network.get_mut().hush();
        if !self.has_come() {
            interrupt::sleep();
        }
    }

    /// The connection of the frame that has come, if it is one of TCP.
    pub fn flow(&self) -> Option<Flow> {
        flow(self.wire.waiting.as_ref()?.bytes(), self.seed)
    }

    /// Takes the frame that has come, for one of the sockets. It stays where it is if no answer could be sent now.
    pub fn take(&mut self, sockets: &mut SocketSet<'static>, now: u64) {
        self.interface.poll_ingress_single(instant(now), &mut self.wire, sockets);
    }

    /// Takes the frame that has come, and is none of TCP.
    pub fn take_control(&mut self, now: u64) {
        self.interface.poll_ingress_single(instant(now), &mut self.wire, &mut self.control);
    }

    /// Sends what waits in the sockets: whether that was all.
    pub fn send(&mut self, sockets: &mut SocketSet<'static>, now: u64) -> bool {
        self.wire.is_full.set(false);
        while let PollResult::SocketStateChanged = self.interface.poll_egress(instant(now), &mut self.wire, sockets) {}
        !self.wire.is_full.get()
    }

    /// Keeps the address by DHCP.
    pub fn keep_address(&mut self, now: u64) {
        let Some(handle) = self.dhcp else { return };
        self.interface.poll_egress(instant(now), &mut self.wire, &mut self.control);
        match self.control.get_mut::<dhcpv4::Socket<'_>>(handle).poll() {
            Some(dhcpv4::Event::Configured(config)) => {
                let (address, router) = (config.address, config.router);
                self.interface.update_ip_addrs(|all| {
                    all.clear();
                    let _ = all.push(IpCidr::Ipv4(address));
                });
                if let Some(router) = router {
                    let _ = self.interface.routes_mut().add_default_ipv4_route(router);
                }
                say!("address {address} by DHCP");
            }
            Some(dhcpv4::Event::Deconfigured) => self.interface.update_ip_addrs(|all| all.clear()),
            None => {}
        }
    }
}

/// A socket for a connection.
pub fn socket() -> tcp::Socket<'static> {
    let (received, sent) = (vec![0; RECEIVED_BYTES], vec![0; SENT_BYTES]);
    let mut socket = tcp::Socket::new(tcp::SocketBuffer::new(received), tcp::SocketBuffer::new(sent));
    socket.set_timeout(Some(TIMEOUT));
    socket.set_nagle_enabled(false);
    socket
}

fn instant(milliseconds: u64) -> Instant {
    Instant::from_millis(i64::try_from(milliseconds).unwrap_or(i64::MAX))
}

/// Offsets in a frame of Ethernet with IPv4.
const TYPE: usize = 12;
const IP: usize = 14;
const PROTOCOL: usize = 23;
const SOURCE: usize = 26;
const FLAGS: usize = 13;
const IPV4: [u8; 2] = [8, 0];
const TCP: u8 = 6;
/// SYN and ACK of TCP's flags, and SYN alone.
const SYN_AND_ACK: u8 = 0x12;
const SYN: u8 = 0x02;

fn flow(frame: &[u8], seed: u64) -> Option<Flow> {
    if frame.get(TYPE..IP)? != IPV4 || *frame.get(PROTOCOL)? != TCP {
        return None;
    }
    let header = usize::from(frame.get(IP)? & 15) * 4;
    let tcp = frame.get(IP.checked_add(header)?..)?;
    let &[a, b, c, d] = frame.get(SOURCE..SOURCE + 4)? else { return None };
    let (Some(&[e, f, g, h]), Some(flags)) = (tcp.first_chunk(), tcp.get(FLAGS)) else { return None };
    let name = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    // Twice, so that each bit of the name counts in the upper ones.
    let hash = (name ^ seed).wrapping_mul(seed.rotate_left(31) | 1);
    let hash = (hash ^ hash >> 32).wrapping_mul(seed);
    let client = IpEndpoint::new(IpAddress::Ipv4(Ipv4Address::new(a, b, c, d)), u16::from_be_bytes([e, f]));
    Some(Flow { client, port: u16::from_be_bytes([g, h]), is_first: flags & SYN_AND_ACK == SYN, hash })
}

/// The device, a frame at a time. It is shared by the two tokens that smoltcp takes for a frame and its answer.
struct Wire {
    network: RefCell<Network>,
    waiting: Option<Frame>,
    /// Whether a frame could not be sent.
    is_full: Cell<bool>,
}

struct Received<'a>(&'a RefCell<Network>, Frame);
struct Sent<'a>(&'a RefCell<Network>);

impl Device for Wire {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Sent<'_>)> {
        if !self.network.get_mut().can_send() {
            return None;
        }
        let frame = self.waiting.take()?;
        Some((Received(&self.network, frame), Sent(&self.network)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        let can_send = self.network.get_mut().can_send();
        if !can_send {
            self.is_full.set(true);
        }
        can_send.then_some(Sent(&self.network))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME_BYTES_MAX;
        capabilities
    }
}

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        let taken = take(self.1.bytes());
        self.0.borrow_mut().recycle_frame(self.1);
        taken
    }
}

impl TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        self.0.borrow_mut().send(length, fill)
    }
}
