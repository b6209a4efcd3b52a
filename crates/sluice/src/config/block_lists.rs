//! Block lists of `[trust]`: lists asked over DNS, their resolvers, and lists read from files.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use ::dnsbl::client::{Client, Limits, sites};
use ::dnsbl::zone::Spec;
use edge::settings::TrustSettings;

/// Whether the settings can be followed.
///
/// # Errors
/// A list that cannot be read, or that nobody can be asked about.
pub fn check(settings: &TrustSettings) -> Result<(), String> {
    if settings.dnsbl.lists.is_empty() {
        return specs(settings).map(drop);
    }
    specs(settings)?;
    client(settings).and_then(|_| resolvers(settings)).map(drop)
}

/// The files of lists that are at hand; what is no list is told of elsewhere.
pub fn local_files(settings: &TrustSettings) -> Vec<PathBuf> {
    specs(settings).into_iter().flatten().flat_map(|spec| spec.files).map(PathBuf::from).collect()
}

pub fn specs(settings: &TrustSettings) -> Result<Vec<Spec>, String> {
    let sites = sites::read(&settings.dnsbl.lists.join(" ")).map_err(|error| format!("trust.dnsbl: {error}"))?;
    let read = |text: &String| {
        let spec: Spec = text.parse().map_err(|error| format!("trust.dnsbl.local: {error}"))?;
        let counts = spec.zone.as_ref().is_some_and(|zone| sites.iter().any(|site| site.zone == *zone));
        if !counts {
            return Err(format!("trust.dnsbl.local: {text:?} is not among the lists, so it would not count"));
        }
        match spec.files.iter().find(|file| !Path::new(file).is_absolute()) {
            Some(file) => Err(format!("trust.dnsbl.local: {file:?} is no absolute path")),
            None => Ok(spec),
        }
    };
    settings.dnsbl.local.iter().map(read).collect()
}

pub fn client(settings: &TrustSettings) -> Result<Client, String> {
    let sites = sites::read(&settings.dnsbl.lists.join(" ")).map_err(|error| format!("trust.dnsbl: {error}"))?;
    let mut zones: Vec<_> = Vec::new();
    for site in &sites {
        if !zones.contains(&site.zone) {
            zones.push(site.zone.clone());
        }
    }
    // Lists of whom to trust have no test points.
    let welcoming = |zone| sites.iter().filter(|site| site.zone == zone).all(|site| site.weight < 0);
    let welcoming: Vec<bool> = zones.into_iter().map(welcoming).collect();
    let mut client = Client::new(sites, RandomState::new().hash_one(std::process::id()), Limits::default());
    for (zone, _) in welcoming.into_iter().enumerate().filter(|&(_, welcomes)| welcomes) {
        client.expect_no_test_points(zone);
    }
    Ok(client)
}

/// Resolvers of the settings, or of resolv.conf(5).
pub fn resolvers(settings: &TrustSettings) -> Result<Vec<SocketAddr>, String> {
    if !settings.dnsbl.resolvers.is_empty() {
        return Ok(settings.dnsbl.resolvers.clone());
    }
    let resolvers = system_resolvers();
    let at_hand = specs(settings)?;
    let sites = sites::read(&settings.dnsbl.lists.join(" ")).unwrap_or_default();
    let is_at_hand = |zone| at_hand.iter().any(|spec| spec.zone.as_ref() == Some(zone));
    match resolvers.is_empty() && !sites.iter().all(|site| is_at_hand(&site.zone)) {
        true => Err("trust.dnsbl: no resolver in /etc/resolv.conf: resolvers = [\"ADDRESS:53\"]".into()),
        false => Ok(resolvers),
    }
}

/// Resolvers of resolv.conf(5).
pub fn system_resolvers() -> Vec<SocketAddr> {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let named = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok());
    named.map(|address: IpAddr| SocketAddr::new(address, 53)).collect()
}
