//! Answers for one command: from a file, or from resolvers; asked until time is up.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use edge::message::asking::{self, Asking};
use flow::{Answer, Ask};

use super::Resolver;
use super::zone::Zone;
use crate::config::dns::DnsSettings;
use crate::output::Failure;

/// Somebody with questions, who may have further ones when some are answered.
pub trait Asks {
    /// The next question, if there is one now.
    fn ask(&mut self) -> Option<Ask>;

    /// Takes the answer to one.
    fn answer(&mut self, answer: Answer);
}

/// A resolver, and the total time of one inquiry.
pub struct Source {
    resolver: Arc<dyn asking::Resolver>,
    wait: Duration,
}

impl Source {
    /// The file that is named, or these resolvers, or those of `/etc/resolv.conf`.
    ///
    /// # Errors
    /// A file that cannot be read or understood; and when there is nobody to ask.
    pub fn new(zone: Option<&Path>, resolvers: &[SocketAddr], wait: Duration) -> Result<Source, Failure> {
        if let Some(path) = zone {
            let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let zone = Zone::parse(&text).map_err(|error| format!("{}:{error}", path.display()))?;
            return Ok(Source { resolver: Arc::new(zone), wait });
        }
        let query_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let settings = DnsSettings { servers: resolvers.to_vec(), query_ms, ..DnsSettings::default() };
        if settings.servers().is_err() {
            return Err("no resolver in /etc/resolv.conf: name one with --resolver".into());
        }
        Ok(Source { resolver: Resolver::start(&settings, &Arc::default(), None)?, wait })
    }

    /// This resolver.
    pub fn of(resolver: Arc<dyn asking::Resolver>, wait: Duration) -> Source {
        Source { resolver, wait }
    }

    /// Answers all that somebody asks; what is not answered when time is up is unavailable.
    ///
    /// # Errors
    /// When the operating system has no event loop for us.
    pub fn settle(&self, who: &mut impl Asks) -> io::Result<()> {
        let mut asking = Asking::new(Some(self.resolver.clone()), Arc::default(), self.wait);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        runtime.block_on(async {
            loop {
                while let Some(ask) = who.ask() {
                    asking.ask(ask);
                }
                match asking.next().await {
                    Some(answer) => who.answer(answer),
                    None => return Ok(()),
                }
            }
        })
    }
}
