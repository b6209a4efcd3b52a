//! Signs what accounts here send, with the keys of the file, which is read again when it has changed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use auth::body::BodyHashes;
use auth::dkim::sign::{NAMES, Signer as DkimSigner, SigningKey, WANTED};
use auth::header::Header;
use aws_lc_rs::rand::SystemRandom;
use mailbox::{Signer, Signing};

use super::keys::Keys;

/// The keys of a file.
pub struct Signers {
    path: PathBuf,
    known: Mutex<(Option<SystemTime>, Arc<Keys>)>,
}

impl Signers {
    /// Signers with the keys of this file, which may be missing.
    pub fn new(path: PathBuf) -> Signers {
        Signers { path, known: Mutex::default() }
    }

    fn keys(&self) -> Arc<Keys> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.path.metadata().and_then(|found| found.modified()).ok();
        if changed != known.0 {
            match Keys::read(&self.path) {
                Ok(keys) => *known = (changed, Arc::new(keys)),
                Err(error) => {
                    tracing::error!(file = %self.path.display(), %error, "DKIM keys not loaded, the old ones stay");
                    known.0 = changed;
                }
            }
        }
        known.1.clone()
    }
}

impl Signer for Signers {
    fn begin(&self, domain: &str, header: Vec<u8>) -> Option<Box<dyn Signing>> {
        let keys = self.keys();
        let now = super::now();
        let above = domain.match_indices('.').filter_map(|(dot, _)| domain.get(dot + 1..));
        // A domain without keys is signed for by the nearest above it that has some.
        let signs = |domain: &str| keys.all().iter().any(|key| key.domain == domain && keys.signs(key, now));
        let domain = std::iter::once(domain).chain(above).find(|domain| signs(domain))?.to_owned();
        Some(Box::new(Mail { keys, domain, now, header: Header::new(header), body: BodyHashes::new([WANTED]) }))
    }
}

struct Mail {
    keys: Arc<Keys>,
    domain: String,
    now: i64,
    header: Header,
    body: BodyHashes,
}

impl Signing for Mail {
    fn feed(&mut self, bytes: &[u8]) {
        self.body.feed(bytes);
    }

    fn finish(mut self: Box<Self>) -> String {
        self.body.finish();
        let mut fields = String::new();
        for key in self.keys.all().iter().filter(|key| key.domain == self.domain && self.keys.signs(key, self.now)) {
            let signed = SigningKey::from_der(&key.private).and_then(|private| {
                let (domain, selector) = (&*key.domain, &*key.selector);
                let signer = DkimSigner { key: &private, domain, selector, names: NAMES, seconds: None };
                signer.sign(&self.header, &self.body, u64::try_from(self.now).unwrap_or(0), &SystemRandom::new())
            });
            match signed {
                Ok(field) => fields.push_str(&field),
                Err(error) => tracing::warn!(domain = key.domain, selector = key.selector, %error, "not signed"),
            }
        }
        fields
    }
}
