//! Whether a mail is from whom it says, as rules ask for it: what SPF, DKIM, ARC and DMARC came to. Plain values, which whoever
//! checks them hands in.

use core::net::IpAddr;
use std::collections::BTreeMap;

/// Client that handed the mail to the site's own servers: the subject of SPF.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sender {
    /// Its address; none where only the site's own servers are in the path.
    pub client: Option<IpAddr>,
    /// Name in its HELO or EHLO.
    pub helo: Box<str>,
    /// The sender of the envelope, in lower case; none where the header does not tell it, or cannot be believed.
    pub envelope: Option<Box<str>>,
}

impl Sender {
    /// Whether what it called itself is a name that can have a policy.
    pub fn has_helo(&self) -> bool {
        let bare = self.helo.trim_start_matches(['[', '!']).trim_end_matches([']', '!']);
        self.helo.contains('.') && bare.parse::<core::net::Ipv4Addr>().is_err()
    }
}

/// Result of SPF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spf {
    /// The client may send.
    Pass,
    /// Nobody says anything about it.
    Neutral,
    /// No policy.
    None,
    /// It may not.
    Fail,
    /// It probably may not.
    SoftFail,
    /// The policy cannot be understood.
    PermError,
    /// The policy cannot be had.
    TempError,
}

/// A signature of DKIM.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signature {
    /// `d=`, in lower case.
    pub domain: Box<str>,
    /// `i=`, or its default.
    pub identity: Box<str>,
    /// `s=`
    pub selector: Box<str>,
    /// It verifies, and has not expired.
    pub is_valid: bool,
    /// Its key could not be had.
    pub is_unavailable: bool,
    /// The length of its key, where there is one.
    pub key_bits: Option<u32>,
    /// Set if the key is published for testing.
    pub is_testing: bool,
}

impl Signature {
    /// Domain of the signer's identity.
    pub fn signer(&self) -> &str {
        self.identity.rsplit_once('@').map_or(&self.domain, |(_, domain)| domain)
    }
}

/// Policy of the author's domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dmarc {
    /// It asks for nothing.
    Missing,
    /// The mail is the author's.
    Pass,
    /// It is not, and nothing is to be done.
    None,
    /// It is to be held back.
    Quarantine,
    /// It is to be refused.
    Reject,
}

/// Results of authentication.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Authentic {
    /// SPF for the envelope's sender; none where it was not checked.
    pub spf: Option<Spf>,
    /// SPF for what the client called itself.
    pub helo: Option<Spf>,
    /// All signatures, from the top.
    pub signatures: Vec<Signature>,
    /// Whether there is a chain of those who passed the mail on.
    pub has_chain: bool,
    /// Whether it is whole.
    pub is_chain_valid: bool,
    /// The author's policy; none where it was not checked, or could not be.
    pub dmarc: Option<Dmarc>,
}

impl Authentic {
    /// The valid signatures.
    pub fn valid(&self) -> impl Iterator<Item = &Signature> {
        self.signatures.iter().filter(|signature| signature.is_valid && !signature.selector.is_empty())
    }
}

/// Authentication results for functions.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Results.
    pub authentic: &'a Authentic,
    /// Subject of SPF.
    pub sender: &'a Sender,
    /// ADSP practices of authors without a signature: a letter for each domain.
    pub practices: &'a BTreeMap<Box<[u8]>, u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_asked_for_of_names_alone() {
        for (helo, has) in
            [("mx.example", true), ("mx", false), ("[192.0.2.1]", false), ("192.0.2.1", false), ("", false)]
        {
            assert_eq!(Sender { helo: helo.into(), ..Sender::default() }.has_helo(), has, "{helo}");
        }
    }

    #[test]
    fn who_signs_is_the_domain_of_the_identity() {
        let signature = |identity: &str| Signature {
            domain: "example.com".into(),
            identity: identity.into(),
            ..Signature::default()
        };
        assert_eq!(signature("@news.example.com").signer(), "news.example.com");
        assert_eq!(signature("").signer(), "example.com");
    }
}
