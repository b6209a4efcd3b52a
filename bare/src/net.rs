//! Ethernet to TCP: smoltcp on a virtio network device. The address is that of the settings, or DHCP's.

use alloc::vec;
use core::cell::RefCell;

use smoltcp::iface::{Config, Interface, PollIngressSingleResult, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::{dhcpv4, tcp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpCidr};
use virtio_drivers::device::net::RxBuffer;

use crate::machine::pci::Network;
use crate::machine::{clock, random, say};
use crate::site::Site;

/// Bytes of a connection that wait to be read.
const RECEIVED_BYTES: usize = 8 << 10;
/// Bytes of a connection that wait to be sent, or for the answer that they have come.
const SENT_BYTES: usize = 32 << 10;
/// Bytes of a frame, with its header.
const FRAME_BYTES_MAX: usize = 1_514;
/// Frames that are taken before connections have their turn.
const FRAMES_MAX: usize = 64;
/// A connection of which nothing is heard for so long is over.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The network.
pub struct Net {
    wire: Wire,
    interface: Interface,
    pub sockets: SocketSet<'static>,
    dhcp: Option<SocketHandle>,
}

impl Net {
    pub fn new(network: Network, site: &Site) -> Net {
        let hardware = HardwareAddress::Ethernet(EthernetAddress(network.mac_address()));
        let (mut wire, mut config) = (Wire(RefCell::new(network)), Config::new(hardware));
        config.random_seed = u64::from_le_bytes(random::bytes());
        let mut interface = Interface::new(config, &mut wire, now());
        let mut sockets = SocketSet::new(vec![]);
        let dhcp = match site.address {
            Some(address) => {
                interface.update_ip_addrs(|all| _ = all.push(IpCidr::Ipv4(address)));
                if let Some(gateway) = site.gateway {
                    let _ = interface.routes_mut().add_default_ipv4_route(gateway);
                }
                say!("address {address}");
                None
            }
            None => Some(sockets.add(dhcpv4::Socket::new())),
        };
        Net { wire, interface, sockets, dhcp }
    }

    /// A connection that waits to be made.
    pub fn listen(&mut self) -> SocketHandle {
        let (received, sent) = (vec![0; RECEIVED_BYTES], vec![0; SENT_BYTES]);
        let mut socket = tcp::Socket::new(tcp::SocketBuffer::new(received), tcp::SocketBuffer::new(sent));
        socket.set_timeout(Some(TIMEOUT));
        socket.set_nagle_enabled(false);
        self.sockets.add(socket)
    }

    pub fn socket(&mut self, handle: SocketHandle) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(handle)
    }

    /// Takes what has come, at most [`FRAMES_MAX`], and sends what waits. `changed` is called when a frame has changed a connection.
    pub fn poll(&mut self, mut changed: impl FnMut(&mut SocketSet<'static>)) {
        for _ in 0..FRAMES_MAX {
            match self.interface.poll_ingress_single(now(), &mut self.wire, &mut self.sockets) {
                PollIngressSingleResult::None => break,
                PollIngressSingleResult::PacketProcessed => {}
                PollIngressSingleResult::SocketStateChanged => changed(&mut self.sockets),
            }
        }
        self.interface.poll_egress(now(), &mut self.wire, &mut self.sockets);
        let Some(handle) = self.dhcp else { return };
        match self.sockets.get_mut::<dhcpv4::Socket<'_>>(handle).poll() {
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

fn now() -> Instant {
    Instant::from_millis(i64::try_from(clock::milliseconds()).unwrap_or(i64::MAX))
}

/// The device, a frame at a time. It is shared by the two tokens that smoltcp takes for a frame and its answer.
struct Wire(RefCell<Network>);

struct Received<'a>(&'a RefCell<Network>, RxBuffer);
struct Sent<'a>(&'a RefCell<Network>);

impl Device for Wire {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Sent<'_>)> {
        let frame = self.0.borrow_mut().receive().ok()?;
        Some((Received(&self.0, frame), Sent(&self.0)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        self.0.borrow().can_send().then_some(Sent(&self.0))
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
        let taken = take(self.1.packet());
        // A frame's buffer that the device does not take back is one less: the device has failed then.
        let _ = self.0.borrow_mut().recycle_rx_buffer(self.1);
        taken
    }
}

impl TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut network = self.0.borrow_mut();
        let mut frame = network.new_tx_buffer(length);
        let filled = fill(frame.packet_mut());
        // A frame that is not sent is lost, as frames are: TCP sends it again.
        let _ = network.send(frame);
        filled
    }
}
