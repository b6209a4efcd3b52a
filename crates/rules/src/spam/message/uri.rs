//! Addresses in a mail.

/// In what an address was found; several may be so at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UriKinds(pub Vec<Box<str>>);

/// An address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uri {
    /// As it is written in the mail.
    pub raw: Box<[u8]>,
    /// The spellings that `uri` rules look at: it, and what it comes to when it is decoded, cut and redirected.
    pub cleaned: Vec<Box<[u8]>>,
    /// Where it was found: `a`, `img`, `form`, `parsed`, `unlinked`, `domainkeys`, ...
    pub kinds: UriKinds,
    /// What the links to it say.
    pub anchor_texts: Vec<Box<[u8]>>,
    /// Hosts, with the registered domain of each.
    pub hosts: Vec<(Box<[u8]>, Box<[u8]>)>,
}
