//! Signatures of mail that goes out: the host has the keys.

/// Signs mails of accounts here.
pub trait Signer: Send + Sync {
    /// Begins to sign a mail of a domain with this header, its empty line left out; none if there is no key.
    fn begin(&self, domain: &str, header: Vec<u8>) -> Option<Box<dyn Signing>>;
}

/// A mail that is being signed.
pub trait Signing: Send {
    /// Takes the next bytes of its body.
    fn feed(&mut self, bytes: &[u8]);

    /// The fields that go in front of its header, with their line ends; empty if it cannot be signed.
    fn finish(self: Box<Self>) -> String;
}
