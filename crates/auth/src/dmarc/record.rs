//! Records of DMARC (RFC 9989 section 4.7).
//!
//! Bounds: a record has at most [`BYTES_MAX`] bytes. Unknown tags are ignored, and so are those that the standard has
//! dropped (`pct`, `rf`, `ri`).

/// The longest record that is read.
pub const BYTES_MAX: usize = 8 << 10;

/// Action that owners request for failing mails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// Nothing.
    None,
    /// Suspicion.
    Quarantine,
    /// Refusal.
    Reject,
}

impl Policy {
    fn from_name(name: &str) -> Option<Policy> {
        let all = [Policy::None, Policy::Quarantine, Policy::Reject];
        all.into_iter().find(|policy| policy.name().eq_ignore_ascii_case(name))
    }

    /// As records have it.
    pub const fn name(self) -> &'static str {
        match self {
            Policy::None => "none",
            Policy::Quarantine => "quarantine",
            Policy::Reject => "reject",
        }
    }

    /// One less (`t=y`).
    #[must_use]
    pub const fn weakened(self) -> Policy {
        match self {
            Policy::Reject => Policy::Quarantine,
            Policy::Quarantine | Policy::None => Policy::None,
        }
    }
}

/// Whether a domain stands above organizations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suffix {
    /// `psd=y`.
    Yes,
    /// `psd=n`: it is an organization.
    No,
    /// The tree says.
    Unknown,
}

/// A policy record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// `p`: for the domain.
    pub policy: Policy,
    /// `sp`: for names below it.
    pub subdomains: Policy,
    /// `np`: for names below it that do not exist.
    pub missing: Policy,
    /// `adkim=s`: signers are of the very domain.
    pub strict_dkim: bool,
    /// `aspf=s`.
    pub strict_spf: bool,
    /// `t=y`: the owner is trying things out.
    pub testing: bool,
    /// `psd`.
    pub suffix: Suffix,
    /// Its policies can be understood, or else it wants reports: otherwise nothing is done for its domain (section 4.10.1).
    pub is_usable: bool,
}

impl Record {
    /// Reads a text; none where it is no record.
    pub fn parse(text: &[u8]) -> Option<Record> {
        let tags = tags(text)?;
        let get = |wanted: &str| {
            let tag = tags.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            tag.map(|(_, value)| *value)
        };
        let is = |name: &str, wanted: &str| get(name).is_some_and(|value| value.eq_ignore_ascii_case(wanted));
        let policies = ["p", "sp", "np"].map(|name| get(name).map(Policy::from_name));
        let is_odd = policies.contains(&Some(None));
        let [policy, subdomains, missing] = match is_odd {
            true => [Some(Policy::None); 3],
            false => policies.map(Option::flatten),
        };
        let policy = policy.unwrap_or(Policy::None);
        let subdomains = subdomains.unwrap_or(policy);
        Some(Record {
            policy,
            subdomains,
            missing: missing.unwrap_or(subdomains),
            strict_dkim: is("adkim", "s"),
            strict_spf: is("aspf", "s"),
            testing: is("t", "y"),
            is_usable: !is_odd || wants_reports(get("rua").unwrap_or("")),
            suffix: match () {
                () if is("psd", "y") => Suffix::Yes,
                () if is("psd", "n") => Suffix::No,
                () => Suffix::Unknown,
            },
        })
    }
}

/// The tags of a text behind its version; none where it is no record.
pub(super) fn tags(text: &[u8]) -> Option<Vec<(&str, &str)>> {
    let text = core::str::from_utf8(text).ok().filter(|text| text.len() <= BYTES_MAX)?;
    let mut tags = text.split(';').map(|tag| {
        let (name, value) = tag.split_once('=').unwrap_or((tag, ""));
        (name.trim(), value.trim())
    });
    (tags.next()? == ("v", "DMARC1")).then(|| tags.collect())
}

/// Whether there is an address that reports can go to.
fn wants_reports(uris: &str) -> bool {
    uris.split(',').any(|uri| {
        let mailbox = uri.trim().get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("mailto:"));
        mailbox.is_some_and(|_| uri.contains('@'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policies(text: &str) -> Option<[Policy; 3]> {
        let record = Record::parse(text.as_bytes()).filter(|record| record.is_usable);
        record.map(|record| [record.policy, record.subdomains, record.missing])
    }

    #[test]
    fn policies_of_subdomains_fall_back() {
        use Policy::{None, Quarantine, Reject};
        for (text, wanted) in [
            ("v=DMARC1; p=reject", Some([Reject, Reject, Reject])),
            ("v = DMARC1 ;p=Reject;sp=none;", Some([Reject, None, None])),
            ("v=DMARC1; p=none; sp=quarantine; np=reject", Some([None, Quarantine, Reject])),
            ("v=DMARC1; np=reject; pct=0; x=y; junk", Some([None, None, Reject])),
            ("v=DMARC1", Some([None; 3])),
            ("v=DMARC1; p=all; rua=mailto:a@b.example", Some([None; 3])),
            ("v=DMARC1; p=all; rua=https://a", Option::None),
            ("v=DMARC1; p=reject; sp=all", Option::None),
            ("v=dmarc1; p=reject", Option::None),
            ("v=DMARC10; p=reject", Option::None),
            ("p=reject; v=DMARC1", Option::None),
            ("", Option::None),
        ] {
            assert_eq!(policies(text), wanted, "{text}");
        }
        assert_eq!(policies(&format!("v=DMARC1; p=reject; {}", "x".repeat(BYTES_MAX))), Option::None);
    }

    #[test]
    fn other_tags_are_read() {
        let record = Record::parse(b"v=DMARC1;p=none;adkim=s;aspf=S;t=y;psd=n").unwrap();
        assert!(record.strict_dkim && record.strict_spf && record.testing);
        assert_eq!(record.suffix, Suffix::No);
        let record = Record::parse(b"v=DMARC1;adkim=r;psd=u;t=n").unwrap();
        assert!(!record.strict_dkim && !record.strict_spf && !record.testing);
        assert_eq!(record.suffix, Suffix::Unknown);
    }
}
