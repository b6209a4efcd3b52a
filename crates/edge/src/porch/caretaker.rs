//! Certificates by ACME (RFC 8555): got when there is none, renewed in time, shown as soon as they are there.
//!
//! One task looks after all of them. Nothing waits for it: until there is a certificate a placeholder is shown, and
//! when the authority cannot be reached the old one stays. What it keeps is in `store`.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::metrics::Metrics;
use crate::net::acme::authority::Authority;
use crate::net::acme::challenge::{self, Answers, Responder};
use crate::net::identity::{self, Identities, Identity};
use crate::porch::control::Control;
use crate::settings::Tls;

/// How often a certificate is looked at, and the authority asked when it wants to see it renewed.
const LOOK_EVERY: u64 = 6 * 3_600;

/// The least time between two looks.
const LOOK_SECONDS_MIN: u64 = 600;

/// How long a failed attempt is left alone, in seconds: the first, the second, and so on.
const WAITS: [u64; 4] = [60, 600, 6_000, LOOK_EVERY];

/// How long one order may take.
const ORDER_WAIT: Duration = Duration::from_secs(600);

/// How often the challenges of another machine are looked at.
const CHALLENGES_EVERY: Duration = Duration::from_secs(1);

/// Whether this machine orders certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orders {
    /// For itself.
    Own,
    /// For all machines that share certificates with it.
    Shared,
    /// Another machine does, or nobody knows yet.
    Others,
}

/// Looks after the certificates of the runtime in force, until the program stops.
pub async fn keep(mut control: watch::Receiver<Control>, orders: watch::Receiver<Orders>) {
    loop {
        let Control { runtime, handed_over, stopping } = control.borrow_and_update().clone();
        if stopping || handed_over {
            return;
        }
        // Of the runtime no more than this: its signatures are not to outlive it here.
        let identities = runtime.identities.clone();
        let tls = runtime.settings.tls.clone();
        let caretaker = look_after(identities.clone(), tls.clone(), runtime.metrics.clone(), orders.clone());
        drop(runtime);
        let changed = control.wait_for(|control| {
            control.stopping || control.handed_over || !Arc::ptr_eq(&control.runtime.identities, &identities)
        });
        tokio::select! {
            () = caretaker => return,
            () = answer_for_others(&tls, orders.clone()), if tls.acme_names().next().is_some() => return,
            changed = changed => if changed.is_err() { return },
        }
    }
}

/// A certificate, and when it is to be looked at.
struct Appointment {
    identity: Arc<Identity>,
    at: Instant,
    failures: usize,
}

/// Answers challenges of the machine that orders, as long as that is another one.
async fn answer_for_others(settings: &Tls, mut orders: watch::Receiver<Orders>) {
    let (folder, address) = (&settings.acme.folder, settings.acme.http);
    loop {
        if orders.wait_for(|orders| *orders == Orders::Others).await.is_err() {
            return std::future::pending().await;
        }
        let (mut shown, mut responder) = (Answers::new(), None);
        while *orders.borrow() == Orders::Others {
            let answers = challenge::read(folder);
            if answers != shown {
                // The address is to be had again first.
                drop(responder.take());
                if !answers.is_empty() {
                    match Responder::open(address, answers.clone()).await {
                        Ok(opened) => responder = Some(opened),
                        Err(error) => tracing::warn!(%address, %error, "ACME challenges of another node not answered"),
                    }
                }
                shown = answers;
            }
            sleep(CHALLENGES_EVERY).await;
        }
    }
}

async fn look_after(
    identities: Arc<Identities>,
    settings: Tls,
    metrics: Arc<Metrics>,
    mut orders: watch::Receiver<Orders>,
) {
    let wanted = identities.all().iter().filter(|identity| !identity.names.is_empty());
    let now = Instant::now();
    let mut appointments: Vec<_> =
        wanted.map(|identity| Appointment { identity: identity.clone(), at: now, failures: 0 }).collect();
    if appointments.is_empty() {
        return std::future::pending().await;
    }
    let authority = match Authority::new(&settings) {
        Ok(authority) => authority,
        Err(error) => {
            tracing::error!(%error, "ACME: no certificates");
            return std::future::pending().await;
        }
    };
    loop {
        let next = appointments.iter_mut().min_by_key(|next| next.at).expect("there is one at least");
        sleep_until(next.at).await;
        let Ok(orders) = orders.wait_for(|orders| *orders != Orders::Others).await.map(|orders| *orders) else {
            return std::future::pending().await;
        };
        let name = &next.identity.label;
        let seconds = match look_at(&authority, &next.identity, orders == Orders::Shared).await {
            Ok(seconds) => {
                next.failures = 0;
                seconds
            }
            Err(error) => {
                metrics.certificate_failures_total.add(1);
                let seconds = longer(WAITS[next.failures.min(WAITS.len() - 1)]);
                let shown = if next.identity.certificate().is_some() { "the old one" } else { "a placeholder" };
                tracing::error!(name, %error, shown, retry_seconds = seconds, "ACME: certificate not obtained");
                next.failures += 1;
                seconds
            }
        };
        next.at = Instant::now() + Duration::from_secs(seconds);
    }
}

/// Gets a certificate if it is time; after how many seconds to look again.
async fn look_at(authority: &Authority, identity: &Identity, is_shared: bool) -> Result<u64, String> {
    let old = identity.certificate();
    if let Some(old) = old.as_ref().filter(|_| identity.is_complete()) {
        let left = due(authority, old).await.saturating_sub(now());
        if left > 0 {
            return Ok(u64::try_from(left).unwrap_or(0).clamp(LOOK_SECONDS_MIN, LOOK_EVERY));
        }
    }
    tracing::info!(name = identity.label, names = ?identity.names, "requesting a certificate");
    let asked = timeout(ORDER_WAIT, authority.certificate(&identity.names, old.as_ref(), is_shared)).await;
    let pem = asked.map_err(|_| "the ACME server timed out".to_string())??;
    let key = identity::parse(pem.as_bytes())?;
    if !identity::is_for(&key, &identity.names) {
        return Err("the ACME server issued a certificate for other names".into());
    }
    authority.keep(&identity.names[0], &pem)?;
    identity.show(key);
    tracing::info!("{identity}");
    Ok(LOOK_SECONDS_MIN)
}

/// When a certificate is to be renewed, in seconds since 1970: at a moment of its own within the window that the
/// authority names, or else when two thirds of its time are over, up to a twentieth later.
async fn due(authority: &Authority, certificate: &CertificateDer<'_>) -> i64 {
    let Some((start, end)) = identity::validity(certificate) else { return 0 };
    let own = (end - (end - start) / 3, end - (end - start) / 3 + (end - start) / 20);
    let (from, to) = authority.window(certificate).await.unwrap_or(own);
    // Were it always another moment, it would come ever earlier.
    let digest = Sha256::digest(certificate);
    let share = i64::from(u16::from_be_bytes([digest[0], digest[1]]));
    from.saturating_add((to.saturating_sub(from)).max(0).saturating_mul(share) >> 16)
}

/// Up to a quarter longer, so that many who failed together do not come back together.
fn longer(seconds: u64) -> u64 {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| u64::from(time.subsec_nanos()));
    seconds + seconds / 4 * (nanos % 1_000) / 1_000
}

fn now() -> i64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    i64::try_from(time).unwrap_or(i64::MAX)
}
