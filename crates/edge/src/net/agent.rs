//! HTTP as a client: who is trusted, and for how long is waited.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::crypto::aws_lc_rs;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::AgentScope;

/// How long a connection may take to be made.
const CONNECT_WAIT: Duration = Duration::from_secs(30);

/// Redirections that are followed.
const REDIRECTIONS_MAX: u32 = 5;

/// A client; servers have to show a certificate from `authorities`. Every status is an answer.
///
/// # Errors
/// When the authorities cannot be read, and they are needed.
pub fn new(authorities: &Path, needed: bool, seconds_max: u64) -> Result<Agent, String> {
    let config = common(authorities, needed)?
        .timeout_connect(Some(CONNECT_WAIT))
        .timeout_global(Some(Duration::from_secs(seconds_max)))
        .max_redirects(REDIRECTIONS_MAX);
    Ok(config.build().into())
}

/// A client of one server, with connections that are kept for so many threads. Redirections are answers: requests may be signed for this server.
///
/// # Errors
/// When the authorities cannot be read, and they are needed.
pub fn of_one(authorities: &Path, needed: bool, wait: Duration, threads: usize) -> Result<Agent, String> {
    let config = common(authorities, needed)?
        .timeout_connect(Some(wait / 4))
        .timeout_global(Some(wait))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(threads)
        .max_idle_connections_per_host(threads);
    Ok(config.build().into())
}

/// Settings of all clients.
fn common(authorities: &Path, needed: bool) -> Result<ConfigBuilder<AgentScope>, String> {
    let config = Agent::config_builder().http_status_as_error(false);
    Ok(config.user_agent(concat!("Sluice/", env!("CARGO_PKG_VERSION"))).tls_config(tls(authorities, needed)?))
}

/// TLS with servers that show a certificate from `authorities`.
pub(super) fn tls(authorities: &Path, needed: bool) -> Result<TlsConfig, String> {
    let pem = match std::fs::read(authorities) {
        Err(error) if needed => return Err(format!("{}: {error}", authorities.display())),
        outcome => outcome.unwrap_or_default(),
    };
    let roots = parse_pem(&pem).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots.collect())))
        .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()))
        .build())
}
