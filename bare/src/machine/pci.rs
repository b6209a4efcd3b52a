//! Devices on the PCI bus. The firmware has given them their addresses.

use alloc::vec::Vec;

use virtio_drivers::device::blk::VirtIOBlk;
use virtio_drivers::device::net::VirtIONet;
use virtio_drivers::transport::DeviceType;
use virtio_drivers::transport::pci::bus::{Command, ConfigurationAccess, DeviceFunction, PciRoot};
use virtio_drivers::transport::pci::{PciTransport, virtio_device_type};

use super::memory::Identity;
use super::{port, say};
use crate::disk::Disk;

/// Frames that wait at the network device, each way.
const FRAMES: usize = 64;
/// Bytes of a frame, with the header of virtio.
const FRAME_BYTES: usize = 2_048;

pub type Block = VirtIOBlk<Identity, PciTransport>;
pub type Network = VirtIONet<Identity, PciTransport, FRAMES>;

/// Devices found on the bus.
#[derive(Default)]
pub struct Devices {
    pub disks: Vec<Disk>,
    pub network: Option<Network>,
}

/// Finds the virtio devices of the first bus.
pub fn find() -> Devices {
    let mut root = PciRoot::new(Ports);
    let mut devices = Devices::default();
    let found: Vec<_> = root.enumerate_bus(0).collect();
    for (function, info) in found {
        let Some(kind) = virtio_device_type(&info) else { continue };
        root.set_command(function, Command::IO_SPACE | Command::MEMORY_SPACE | Command::BUS_MASTER);
        let Ok(transport) = PciTransport::new::<Identity, _>(&mut root, function) else {
            say!("a virtio device at {function} cannot be used");
            continue;
        };
        match kind {
            DeviceType::Block => devices.disks.extend(VirtIOBlk::new(transport).ok().map(Disk::new)),
            DeviceType::Network => devices.network = VirtIONet::new(transport, FRAME_BYTES).ok(),
            _ => {}
        }
    }
    devices
}

/// The configuration space by its two ports.
struct Ports;

const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;

impl Ports {
    fn choose(function: DeviceFunction, register: u8) {
        let DeviceFunction { bus, device, function } = function;
        let place = u32::from(bus) << 16 | u32::from(device) << 11 | u32::from(function) << 8;
        // SAFETY: chooses what the other port is.
        unsafe { port::write(ADDRESS, 1 << 31 | place | u32::from(register & !3)) };
    }
}

impl ConfigurationAccess for Ports {
    fn read_word(&self, function: DeviceFunction, register: u8) -> u32 {
        Ports::choose(function, register);
        // SAFETY: no effect.
        unsafe { port::read(DATA) }
    }

    fn write_word(&mut self, function: DeviceFunction, register: u8, value: u32) {
        Ports::choose(function, register);
        // SAFETY: what `PciRoot` writes: commands, and addresses that it puts back.
        unsafe { port::write(DATA, value) };
    }

    unsafe fn unsafe_clone(&self) -> Ports {
        Ports
    }
}
