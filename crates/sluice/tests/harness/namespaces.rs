//! Three machines in a row, made of network namespaces: clients, the gateway, servers.
//!
//! ```text
//!  client 192.0.2.2 ── 192.0.2.1 gateway 198.51.100.1 ── 198.51.100.2 server      (and the same in 2001:db8:1::, :2::)
//! ```

use std::fs::File;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rustix::fd::AsFd;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

pub struct Machines {
    number: String,
}

impl Machines {
    /// Sets them up, if we may.
    pub fn start() -> Option<Machines> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let machines = Machines { number: format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed)) };
        if let Err(error) = machines.set_up() {
            eprintln!("skipped: no network namespaces for us: {error}");
            return None;
        }
        Some(machines)
    }

    fn set_up(&self) -> Result<(), String> {
        let [client, gateway, server] = ["client", "gateway", "server"].map(|name| self.name(name));
        let mut lines: Vec<String> = [&client, &gateway, &server].map(|name| format!("netns add {name}")).to_vec();
        lines.push(format!("link add uplink netns {client} type veth peer name clients netns {gateway}"));
        lines.push(format!("link add uplink netns {server} type veth peer name servers netns {gateway}"));
        for (machine, link, number, host) in [
            (&client, "uplink", 1, 2),
            (&gateway, "clients", 1, 1),
            (&gateway, "servers", 2, 1),
            (&server, "uplink", 2, 2),
        ] {
            let network = if number == 1 { "192.0.2" } else { "198.51.100" };
            lines.push(format!("-n {machine} link set lo up"));
            lines.push(format!("-n {machine} address add {network}.{host}/24 dev {link}"));
            lines.push(format!("-n {machine} address add 2001:db8:{number}::{host}/64 dev {link} nodad"));
            lines.push(format!("-n {machine} link set {link} up"));
            if host == 2 {
                lines.push(format!("-n {machine} route add default via {network}.1"));
                lines.push(format!("-n {machine} -6 route add default via 2001:db8:{number}::1"));
            }
        }
        run("nft", "--version")?;
        lines.iter().try_for_each(|line| run("ip", line))?;
        self.on("gateway", || {
            // A router does not forward before it is told to.
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")
                .and_then(|()| std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1"))
                .map_err(|error| error.to_string())
        })
    }

    fn name(&self, machine: &str) -> String {
        format!("sluice-{machine}-{}", self.number)
    }

    /// Does something on one of them. Sockets that are opened there, and programs that are started, stay there.
    pub fn on<T: Send>(&self, machine: &str, act: impl FnOnce() -> T + Send) -> T {
        let namespace = File::open(format!("/run/netns/{}", self.name(machine))).unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                act()
            });
            thread.join().unwrap()
        })
    }
}

fn run(program: &str, args: &str) -> Result<(), String> {
    let output = Command::new(program).args(args.split(' ')).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program} {args}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

impl Drop for Machines {
    fn drop(&mut self) {
        for machine in ["client", "gateway", "server"] {
            let _ = Command::new("ip").args(["netns", "del", &self.name(machine)]).output();
        }
    }
}
