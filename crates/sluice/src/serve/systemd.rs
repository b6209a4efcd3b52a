//! Telling the service manager how we are (sd_notify(3)): ready, reloading, stopping, and alive.
//!
//! Where there is no `NOTIFY_SOCKET`, nothing is told. We are alive while every event loop comes round: each beats once
//! a second, and a thread of its own passes it on (`WATCHDOG_USEC`) only if all of them have.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How often an event loop says that it is alive.
const BEAT_EVERY: Duration = Duration::from_secs(1);

/// The way to the service manager.
pub struct Manager(Option<(UnixDatagram, SocketAddr)>);

impl Manager {
    /// The one that the environment names, if it does.
    pub fn find() -> Manager {
        Manager(std::env::var_os("NOTIFY_SOCKET").and_then(|name| {
            let address = match name.as_bytes() {
                [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
                _ => SocketAddr::from_pathname(&name),
            };
            Some((UnixDatagram::unbound().ok()?, address.ok()?))
        }))
    }

    /// Everything is open; `status` is shown to people.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}"));
    }

    /// The configuration is being read anew; [`Manager::ready`] follows.
    pub fn reloading(&self) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
    }

    /// Sessions come to their end.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=waiting for sessions to end");
    }

    fn tell(&self, text: &str) {
        if let Some((socket, address)) = &self.0
            && let Err(error) = socket.send_to_addr(text.as_bytes(), address)
        {
            tracing::debug!(%error, "the service manager does not listen");
        }
    }

    /// Passes on that all of `beats` go on, as often as the service manager asks for.
    pub fn watch(beats: Vec<Arc<Beat>>) {
        let asked = std::env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse().ok()).map(Duration::from_micros);
        let ours = std::env::var("WATCHDOG_PID").is_ok_and(|pid| pid == std::process::id().to_string());
        let Some(within) = asked.filter(|within| !within.is_zero() && ours) else { return };
        let watch = move || {
            let manager = Manager::find();
            let mut seen = vec![0; beats.len()];
            loop {
                let now: Vec<u64> = beats.iter().map(|beat| beat.0.load(Relaxed)).collect();
                if now.iter().zip(&seen).all(|(now, seen)| now > seen) {
                    manager.tell("WATCHDOG=1");
                    seen = now;
                }
                std::thread::sleep((within / 4).max(BEAT_EVERY / 2));
            }
        };
        let _ = std::thread::Builder::new().name("watchdog".into()).spawn(watch);
    }
}

/// How often an event loop has come round.
#[derive(Debug, Default)]
pub struct Beat(AtomicU64);

impl Beat {
    /// Goes on as long as the event loop does.
    pub async fn go_on(self: Arc<Beat>) {
        loop {
            self.0.fetch_add(1, Relaxed);
            tokio::time::sleep(BEAT_EVERY).await;
        }
    }
}
