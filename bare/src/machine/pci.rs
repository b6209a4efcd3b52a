//! Devices on the PCI bus. The firmware has given them their addresses.

use alloc::vec::Vec;

use virtio_drivers::device::blk::VirtIOBlk;
use virtio_drivers::transport::DeviceType;
use virtio_drivers::transport::pci::bus::{Command, ConfigurationAccess, DeviceFunction, PciRoot};
use virtio_drivers::transport::pci::{PciTransport, virtio_device_type};

use super::frames::Network;
use super::memory::Identity;
use super::{interrupt, port, say};
use crate::disk::Disk;

pub type Block = VirtIOBlk<Identity, PciTransport>;

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
        let command = Command::IO_SPACE | Command::MEMORY_SPACE | Command::BUS_MASTER;
        // Only the network ends the sleep: disks are waited for.
        let quiet = if kind == DeviceType::Network { Command::empty() } else { Command::INTERRUPT_DISABLE };
        root.set_command(function, command | quiet);
        let Ok(transport) = PciTransport::new::<Identity, _>(&mut root, function) else {
            say!("a virtio device at {function} cannot be used");
            continue;
        };
        match kind {
            DeviceType::Block => devices.disks.extend(VirtIOBlk::new(transport).ok().map(Disk::new)),
            DeviceType::Network => {
                devices.network = Network::new(transport);
                interrupt::start(Ports.read_word(function, INTERRUPT_LINE) as u8);
            }
            _ => {}
        }
    }
    devices
}

/// The configuration space by its two ports.
struct Ports;

const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;
/// The register whose first byte is the interrupt that the firmware has given a device.
const INTERRUPT_LINE: u8 = 0x3c;

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
