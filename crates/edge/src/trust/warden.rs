//! Admission of clients for all event loops: the settings, the lists, and records of clients.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use super::access::Access;
use super::clients::Clients;
use super::reputation::Reputation;
use super::tarpit::Tarpit;
use crate::settings::TrustSettings;

/// The settings in force, and what is known.
pub struct Warden {
    /// The settings.
    pub settings: TrustSettings,
    /// Trusted and refused networks.
    pub access: Access,
    /// Delays of suspicious clients.
    pub tarpit: Arc<Tarpit>,
    /// Reputation of clients.
    pub reputation: Option<Arc<dyn Reputation>>,
    clients: Arc<Mutex<Clients>>,
    started: Instant,
}

impl Warden {
    /// With these settings; what `old` knows of clients is kept.
    ///
    /// # Errors
    /// When a list cannot be read; the message names it.
    pub fn load(
        settings: &TrustSettings,
        reputation: Option<Arc<dyn Reputation>>,
        old: Option<&Warden>,
    ) -> Result<Warden, String> {
        let access = Access::load(settings)?;
        let kept = old.filter(|old| old.settings.clients_max == settings.clients_max);
        let clients = match kept {
            Some(old) => old.clients.clone(),
            None => Arc::new(Mutex::new(Clients::new(settings.clients_max))),
        };
        Ok(Warden {
            settings: settings.clone(),
            access,
            tarpit: old.map(|old| old.tarpit.clone()).unwrap_or_default(),
            reputation,
            clients,
            started: old.map_or_else(Instant::now, |old| old.started),
        })
    }

    /// Milliseconds since it is on guard.
    pub fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Records of clients.
    pub fn clients(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().expect("no holder panics")
    }

    /// The reputation's answer about a client, when it comes.
    pub fn ask(&self, client: IpAddr) -> Option<tokio::sync::oneshot::Receiver<super::reputation::Opinion>> {
        self.reputation.as_ref()?.ask(client)
    }
}
