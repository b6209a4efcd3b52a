//! Networks that are trusted, and those that are turned away. Of all that hold an address the smallest decides; of two
//! equal ones the trust does.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;

use crate::settings::{AccessEntry, Network, TrustSettings};

/// Networks of all files together.
const NETWORKS_MAX: usize = 1_000_000;

/// Right of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// The client is exempt from tests and limits.
    Permit,
    /// The client is refused.
    Reject,
}

/// Trusted and refused networks.
#[derive(Debug, Default)]
pub struct Access {
    rights: HashMap<Network, Right>,
    /// The lengths that there are, the longest first: of IPv4, of IPv6.
    lengths: [Vec<u8>; 2],
}

impl Access {
    /// Reads the networks of the settings and of the files that they name.
    ///
    /// # Errors
    /// When a file cannot be read or a line of it is no network; the message names both.
    pub fn load(settings: &TrustSettings) -> Result<Access, String> {
        let mut access = Access::default();
        access.add_all(&settings.reject, Right::Reject)?;
        access.add_all(&settings.permit, Right::Permit)?;
        for lengths in &mut access.lengths {
            lengths.sort_unstable_by(|one, other| other.cmp(one));
            lengths.dedup();
        }
        Ok(access)
    }

    fn add_all(&mut self, entries: &[AccessEntry], right: Right) -> Result<(), String> {
        for entry in entries {
            match entry {
                AccessEntry::Network(network) => self.add(*network, right),
                AccessEntry::File(path) => self.add_file(path, right)?,
            }
        }
        Ok(())
    }

    /// A network a line; what follows it, and what follows a `#`, does not count.
    fn add_file(&mut self, path: &Path, right: Right) -> Result<(), String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("trust: {}: {error}", path.display()))?;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            let Some(word) = line.split_whitespace().next() else { continue };
            let network = word.parse().map_err(|error| format!("trust: {}:{number}: {error}", path.display()))?;
            if self.rights.len() >= NETWORKS_MAX {
                return Err(format!("trust: {}: more than {NETWORKS_MAX} networks", path.display()));
            }
            self.add(network, right);
        }
        Ok(())
    }

    fn add(&mut self, network: Network, right: Right) {
        let network = network.trimmed();
        self.lengths[usize::from(!network.is_ipv4())].push(network.bits());
        self.rights.insert(network, right);
    }

    /// Right of an address, if it has an entry.
    pub fn right(&self, address: IpAddr) -> Option<Right> {
        let address = address.to_canonical();
        let lengths = &self.lengths[usize::from(address.is_ipv6())];
        lengths.iter().find_map(|&bits| self.rights.get(&Network::around(address, bits)).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(permit: &[&str], reject: &[&str]) -> TrustSettings {
        let read = |all: &[&str]| all.iter().map(|text| text.parse().unwrap()).collect();
        TrustSettings { permit: read(permit), reject: read(reject), ..TrustSettings::default() }
    }

    fn right(access: &Access, address: &str) -> Option<Right> {
        access.right(address.parse().unwrap())
    }

    #[test]
    fn the_smallest_network_decides() {
        let settings = settings(&["192.0.2.7", "2001:db8:1::/48"], &["192.0.2.9/24", "2001:db8::/32", "192.0.2.7"]);
        let access = Access::load(&settings).unwrap();
        assert_eq!(right(&access, "192.0.2.7"), Some(Right::Permit), "of two equal ones the trust counts");
        assert_eq!(right(&access, "::ffff:192.0.2.8"), Some(Right::Reject));
        assert_eq!(right(&access, "192.0.3.1"), None);
        assert_eq!(right(&access, "2001:db8:1::9"), Some(Right::Permit));
        assert_eq!(right(&access, "2001:db8:2::9"), Some(Right::Reject));
    }

    #[test]
    fn files_are_read_and_wrong_lines_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known");
        std::fs::write(&path, "# friends\n\n192.0.2.0/24 REJECT whatever\n2001:db8::1 # one\n").unwrap();
        let shown = path.display().to_string();
        let access = Access::load(&settings(&[], &[&shown])).unwrap();
        assert_eq!(right(&access, "192.0.2.200"), Some(Right::Reject));
        assert_eq!(right(&access, "2001:db8::1"), Some(Right::Reject));
        std::fs::write(&path, "192.0.2.0/24\nmail.example\n").unwrap();
        let refusal = Access::load(&settings(&[], &[&shown])).unwrap_err();
        assert!(refusal.contains(&format!("{shown}:2: \"mail.example\" is not a network")), "{refusal}");
    }
}
