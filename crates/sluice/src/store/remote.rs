//! Servers that mails name, asked when a user of the webmail says so: for pictures, and to be taken off a list.
//!
//! All goes by [`Guarded`], which reaches no address of this machine and its networks. Pictures are fetched [`AT_ONCE`] at a time
//! within [`PICTURES_WAIT`], and kept for [`KEPT_FOR`]: within it a message that is opened again, or by another user, tells its sender
//! nothing. A list is asked once a signature of the mail is verified that covers both fields which name it (RFC 8058, section 4).
//! Bounds: [`PICTURE_BYTES_MAX`] of a picture, [`KEPT_BYTES_MAX`] and [`KEPT_MAX`] of those that are kept. What they are is looked at by the
//! webmail, and inspected, each time they are shown.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use auth::message::LineEnds;
use auth::{Check, Context, Limits, dkim};
use edge::message::asking::Resolver;
use edge::net::guarded::{Bounds, Guarded};
use edge::settings::Network;
use flow::{Answer, Ask, Outcome, Question, Record, RecordKind};
use mailbox::{NotLeft, Remote};

use crate::resolver::source::{Asks, Source};

/// Pictures of a message that are fetched at a time.
const AT_ONCE: usize = 4;

/// How long all pictures of a message may take.
const PICTURES_WAIT: Duration = Duration::from_secs(10);

/// The largest picture.
const PICTURE_BYTES_MAX: usize = 4 << 20;

/// The types that a server is asked for.
const ACCEPT: &str = "image/avif,image/webp,image/png,image/jpeg,image/gif";

/// How long a picture is kept.
const KEPT_FOR: Duration = Duration::from_secs(3_600);

/// Bytes of all pictures that are kept, with their URLs, and how many there are.
const KEPT_BYTES_MAX: usize = 32 << 20;
const KEPT_MAX: usize = 4_096;

/// The form by which a list is left (RFC 8058, section 3.2), and how its server is bounded.
const FORM: &str = "List-Unsubscribe=One-Click";
const OF_A_LIST: Bounds = Bounds { body_bytes_max: 0, wait: Duration::from_secs(20) };

/// The fields that a signature has to cover.
const FIELDS: [&str; 2] = ["list-unsubscribe", "list-unsubscribe-post"];

/// How long keys of signatures are waited for.
const KEYS_WAIT: Duration = Duration::from_secs(15);

/// The way to other servers.
pub struct Servers {
    guarded: Guarded,
    source: Source,
    kept: Mutex<Kept>,
}

impl Servers {
    /// Names are looked up by this resolver; `destinations` are networks that are reached although they are not of the open Internet.
    ///
    /// # Errors
    /// When the certificates of the authorities cannot be read.
    pub fn new(
        resolver: Arc<dyn Resolver>,
        authorities: &Path,
        hostname: &str,
        destinations: &[Network],
    ) -> Result<Servers, String> {
        let source = Source::of(resolver.clone(), KEYS_WAIT);
        let lookup = Box::new(move |name: &str, until| addresses(resolver.clone(), name, until));
        let guarded = Guarded::new(authorities, lookup, hostname, destinations.to_vec())?;
        Ok(Servers { guarded, source, kept: Mutex::default() })
    }

    fn picture(&self, url: &str, bounds: Bounds) -> Option<Vec<u8>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = kept.get(url, Instant::now()) {
            return Some(file.to_vec()).filter(|file| file.len() <= bounds.body_bytes_max);
        }
        drop(kept);
        match self.guarded.get(url, ACCEPT, bounds) {
            Ok(file) => {
                let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.put(url, file.clone().into(), Instant::now());
                Some(file)
            }
            Err(why) => {
                tracing::debug!(host = host(url), %why, "a picture is not fetched");
                None
            }
        }
    }

    /// Whether a signature that verifies covers the fields by which a list is left.
    fn is_signed(&self, read: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> Result<bool, NotLeft> {
        let now = u64::try_from(super::dkim::now()).unwrap_or(0);
        let mut check = Check::new(Context { now, ends: LineEnds::Any, ..Context::default() }, Limits::default());
        let mut piece = vec![0; 64 << 10];
        loop {
            match read(&mut piece).ok_or(NotLeft::Unread)? {
                0 => break,
                count => check.feed(&piece[..count]),
            }
        }
        check.finish();
        self.source.settle(&mut check).map_err(|_| NotLeft::Unread)?;
        let covers = |report: &dkim::Report| {
            let is_right = report.outcome == dkim::Outcome::Pass && !report.testing;
            is_right && FIELDS.iter().all(|field| report.covered.iter().any(|name| **name == **field))
        };
        Ok(check.results().is_some_and(|results| results.dkim.iter().any(covers)))
    }
}

impl Remote for Servers {
    fn pictures(&self, urls: &[String], bytes_max: usize) -> Vec<Option<Vec<u8>>> {
        let until = Instant::now() + PICTURES_WAIT;
        let (next, left) = (AtomicUsize::new(0), AtomicUsize::new(bytes_max));
        let found: Vec<OnceLock<Vec<u8>>> = urls.iter().map(|_| OnceLock::new()).collect();
        let work = || {
            while let Some((url, place)) = urls.iter().zip(&found).nth(next.fetch_add(1, Relaxed)) {
                let wait = until.saturating_duration_since(Instant::now());
                let body_bytes_max = PICTURE_BYTES_MAX.min(left.load(Relaxed));
                if wait.is_zero() || body_bytes_max == 0 {
                    return;
                }
                let Some(file) = self.picture(url, Bounds { body_bytes_max, wait }) else { continue };
                let spend = |left: usize| left.checked_sub(file.len());
                if left.fetch_update(Relaxed, Relaxed, spend).is_ok() {
                    let _ = place.set(file);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(urls.len()) {
                // Without a thread there are fewer pictures.
                let _ = thread::Builder::new().name("fetch".into()).spawn_scoped(scope, work);
            }
        });
        found.into_iter().map(OnceLock::into_inner).collect()
    }

    fn leave(&self, url: &str, read: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> Result<(), NotLeft> {
        if !self.is_signed(read)? {
            return Err(NotLeft::Unsigned);
        }
        self.guarded.post(url, FORM, OF_A_LIST).map_err(|why| {
            // The rest of the URL says who leaves the list.
            tracing::warn!(host = host(url), %why, "unsubscribe request refused by the server of a list");
            NotLeft::Unreached
        })
    }
}

/// The host of a URL, for the log.
fn host(url: &str) -> &str {
    url.split('/').nth(2).unwrap_or_default()
}

/// The addresses of a name, waited for until then.
fn addresses(resolver: Arc<dyn Resolver>, name: &str, until: Instant) -> Vec<IpAddr> {
    let mut names = Names { asked: Vec::new(), found: Vec::new() };
    for (id, kind) in [(0, RecordKind::Aaaa), (1, RecordKind::A)] {
        let question = Question { name: name.to_ascii_lowercase().into(), kind };
        names.asked.push(Ask { id, question, list: Box::default() });
    }
    let wait = until.saturating_duration_since(Instant::now());
    match Source::of(resolver, wait).settle(&mut names) {
        Ok(()) => names.found,
        Err(_) => Vec::new(),
    }
}

/// Questions for the addresses of a name, and the addresses.
struct Names {
    asked: Vec<Ask>,
    found: Vec<IpAddr>,
}

impl Asks for Names {
    fn ask(&mut self) -> Option<Ask> {
        self.asked.pop()
    }

    fn answer(&mut self, answer: Answer) {
        let Outcome::Records(records) = answer.outcome else { return };
        self.found.extend(records.into_iter().filter_map(|record| match record {
            Record::A(address) => Some(IpAddr::from(address)),
            Record::Aaaa(address) => Some(IpAddr::from(address)),
            _ => None,
        }));
    }
}

/// Pictures that are kept, by URL, with the time since when.
#[derive(Default)]
struct Kept {
    files: HashMap<String, (Instant, Arc<[u8]>)>,
    bytes: usize,
}

impl Kept {
    fn get(&mut self, url: &str, now: Instant) -> Option<Arc<[u8]>> {
        let (since, file) = self.files.get(url)?;
        (now.saturating_duration_since(*since) < KEPT_FOR).then(|| file.clone())
    }

    fn put(&mut self, url: &str, file: Arc<[u8]>, now: Instant) {
        self.bytes += url.len() + file.len();
        if let Some((_, before)) = self.files.insert(url.to_owned(), (now, file)) {
            self.bytes -= url.len() + before.len();
        }
        while self.bytes > KEPT_BYTES_MAX || self.files.len() > KEPT_MAX {
            let oldest = self.files.iter().min_by_key(|(_, (since, _))| *since).map(|(url, _)| url.clone());
            let Some((url, (_, file))) = oldest.and_then(|url| self.files.remove_entry(&url)) else { return };
            self.bytes -= url.len() + file.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_kept_for_an_hour_within_bounds() {
        let (mut kept, now) = (Kept::default(), Instant::now());
        let file = |bytes: usize| Arc::<[u8]>::from(vec![0; bytes]);
        kept.put("a", file(1), now);
        assert!(kept.get("a", now + KEPT_FOR - Duration::from_secs(1)).is_some());
        assert!(kept.get("a", now + KEPT_FOR).is_none());
        for number in 0..20 {
            kept.put(&number.to_string(), file(PICTURE_BYTES_MAX), now + Duration::from_secs(number + 1));
            assert!(kept.bytes <= KEPT_BYTES_MAX, "{}", kept.bytes);
        }
        let now = now + Duration::from_secs(30);
        assert!(kept.get("19", now).is_some() && kept.get("0", now).is_none() && kept.get("a", now).is_none());
        kept.put("19", file(2), now);
        let held = |kept: &Kept| kept.files.iter().map(|(url, (_, file))| url.len() + file.len()).sum::<usize>();
        assert_eq!(kept.bytes, held(&kept));
        for number in 0..20 {
            let url = format!("{number}{}", "x".repeat(PICTURE_BYTES_MAX));
            kept.put(&url, file(0), now + Duration::from_secs(number));
            assert!(kept.bytes <= KEPT_BYTES_MAX && kept.bytes == held(&kept), "URLs count, too: {}", kept.bytes);
        }
        assert!(kept.files.len() < 10);
    }
}
