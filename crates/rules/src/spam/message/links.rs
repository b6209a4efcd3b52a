//! Hosts and mail addresses that a mail has links to, each once.

use std::collections::BTreeSet;

use super::Message;
use super::perl::begins;

/// Keys of the domain that has signed a mail are no links of its text.
const SIGNED: &str = "domainkeys";

impl Message {
    /// Hosts of addresses that are not of mail, in lower case and as the DNS has them.
    pub fn linked_hosts(&self) -> BTreeSet<&[u8]> {
        let uris = self.uris().iter().filter(|uri| !uri.kinds.contains(SIGNED) && !begins(&uri.raw, b"mailto:"));
        uris.flat_map(|uri| uri.hosts.keys().map(|host| &**host)).collect()
    }

    /// Addresses of mail (`mailto:` or as they stand in a text), without what stands behind a question mark; the domain in lower case.
    pub fn linked_addresses(&self) -> BTreeSet<Vec<u8>> {
        let uris = self.uris().iter().filter(|uri| begins(&uri.raw, b"mailto:"));
        uris.flat_map(|uri| uri.cleaned.iter().filter_map(|uri| address(uri))).collect()
    }
}

fn address(uri: &[u8]) -> Option<Vec<u8>> {
    let address = uri.get(b"mailto:".len()..).filter(|_| begins(uri, b"mailto:"))?;
    let end = address.iter().position(|byte| b"?&%".contains(byte)).unwrap_or(address.len());
    let mut address = address.get(..end)?.to_vec();
    let at = address.iter().rposition(|byte| *byte == b'@').filter(|at| *at > 0 && at + 1 < end)?;
    address[at..].make_ascii_lowercase();
    Some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_what_stands_before_a_question_mark() {
        assert_eq!(address(b"mailto:Joe@Example.ORG?subject=x@y"), Some(b"Joe@example.org".to_vec()));
        assert_eq!(address(b"MAILTO:a@b"), Some(b"a@b".to_vec()));
        for none in [&b"mailto:"[..], b"mailto:a", b"mailto:@b", b"mailto:a@", b"mailto:?a@b", b"http://a@b"] {
            assert_eq!(address(none), None);
        }
    }
}
