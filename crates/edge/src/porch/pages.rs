//! The gateway's pages for monitors: `GET /metrics`, `/healthz` (the program runs) and `/readyz` (it takes new sessions, with
//! signatures that are fresh enough). They are meant for a private address.

use super::control::Control;
use super::runtime::Runtime;
use crate::net::http::Page;

/// The page at a path.
pub(crate) fn page(control: &Control, path: &[u8]) -> Option<Page> {
    match path {
        b"/metrics" => Some(Page::ok(numbers(&control.runtime))),
        b"/healthz" => Some(Page::ok("ok\n".into())),
        b"/readyz" if control.stopping => Some(Page::unavailable("stopping\n".into())),
        b"/readyz" if control.runtime.signatures.is_too_old() => Some(Page::unavailable("signatures too old\n".into())),
        b"/readyz" => Some(Page::ok("ready\n".into())),
        _ => None,
    }
}

fn numbers(runtime: &Runtime) -> String {
    let metrics = &runtime.metrics;
    for (count, now) in [
        (&metrics.head_pool_free_bytes, runtime.means.pool.free_bytes() as u64),
        (&metrics.signatures, runtime.signatures.count),
        (&metrics.signature_files, runtime.signatures.files),
        (&metrics.database_built_seconds, runtime.signatures.built.unwrap_or(0)),
        (&metrics.database_generation, runtime.signatures.generation),
        (&metrics.resident_bytes, resident_bytes()),
        (&metrics.trust_clients, runtime.warden.clients().count() as u64),
    ] {
        count.set(now);
    }
    let more = (runtime.measure)(metrics);
    metrics.text() + &runtime.identities.text() + &more
}

/// The memory of the program that is in RAM (proc_pid_statm(5)); 0 where the system does not tell.
pub fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}
