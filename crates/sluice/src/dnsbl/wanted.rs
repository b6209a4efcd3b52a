//! Settings of the command line in place of `[dnsbl]`.

use crate::cli::DnsblServe;
use crate::config::Config;
use crate::config::dnsbl::Settings;
use crate::output::Failure;

/// How many threads answer at most.
const THREADS_MAX: usize = 256;

impl Settings {
    /// Settings of the command line, and of the configuration for the rest.
    ///
    /// # Errors
    /// When the configuration cannot be read, or nothing would be served.
    pub fn of(args: &DnsblServe) -> Result<Settings, Failure> {
        let mut settings = match &args.config {
            Some(path) => Config::read(path)?.dnsbl,
            None => Settings::default(),
        };
        if !args.listen.is_empty() {
            settings.listen = args.listen.clone();
        }
        if !args.zones.is_empty() {
            settings.zones = args.zones.clone();
        }
        settings.check_seconds = args.check.unwrap_or(settings.check_seconds);
        settings.threads = args.threads.unwrap_or(settings.threads);
        settings.metrics = args.metrics.or(settings.metrics);
        settings.prefixes_in_aaaa |= args.aaaa;
        settings.prefixes &= !args.no_prefixes;
        settings.transfer_to.extend(args.transfer_to.iter().copied());
        settings.notify.extend(args.notify.iter().copied());
        if settings.listen.is_empty() {
            return Err("nowhere to listen: --listen ADDRESS:PORT, or listen in [dnsbl]".into());
        }
        if !settings.zones.iter().any(|spec| spec.zone.is_some()) {
            return Err("no zone: --zone NAME:TYPE:FILE[,FILE], or zones in [dnsbl]".into());
        }
        if !(512..=65_535).contains(&settings.udp_bytes_max) {
            return Err("udp_bytes_max in [dnsbl] has to be between 512 and 65535".into());
        }
        if settings.threads == 0 {
            settings.threads = std::thread::available_parallelism().map_or(1, usize::from);
        }
        settings.threads = settings.threads.min(THREADS_MAX);
        Ok(settings)
    }
}
