//! Mail server and webmail as a virtual machine without an operating system.
//!
//! ```text
//!   machine  entry, memory, ports, clock, PCI, faults      the only unsafe code, each with its reason
//!   disk     the store's volume on a virtio block device, with a cache
//!   net      Ethernet to TCP on a virtio network device
//!   site     settings, from a second disk that is read only
//!   web      a browser: HTTP to pages          ┐ the same halves, pages and store as the program's
//!   mail     a mail server: SMTP to the INBOX  ┘
//!   tls      TLS 1.3 around either
//!   run      the loop: what has come, then each connection
//! ```
//! One task; interrupts only end its sleep: the loop takes what the network has, lets each connection go on as far as it can, and sends. A panic
//! restarts the machine; the store is made for that.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

extern crate alloc;

mod cache;
mod disk;
#[allow(unsafe_code)]
mod machine;
mod mail;
mod net;
mod office;
mod run;
mod site;
mod tls;
mod web;

use machine::say;

/// The machine has memory, a stack and a console.
fn start() -> Result<(), &'static str> {
    say!("Sluice {} without an operating system", env!("CARGO_PKG_VERSION"));
    let devices = machine::pci::find();
    let settings = devices.disks.iter().position(|disk| disk.is_read_only());
    let mut disks = devices.disks;
    let settings = settings.map(|at| disks.remove(at)).ok_or("no disk with settings: a second, read-only disk")?;
    let site = site::Site::read(&settings)?;
    let store = disks.pop().ok_or("no disk for the store")?.cached(machine::Free::now().total);
    let office = office::Office::open(store, site)?;
    let net = net::Net::new(devices.network.ok_or("no network device")?, office.site());
    run::run(office, net)
}
