//! Objects that were broken off: who asks for one again gets the page at once.
//!
//! An object is known by its URL and by what tells its versions apart (RFC 9110, section 8.8), and forgotten after ten minutes.
//! Bounds: 4,096 objects of a listener, the oldest go first.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use proto::http::Response;

use super::filter::Cause;

/// How long an object is remembered.
const MEMORY: Duration = Duration::from_secs(600);

/// Objects remembered.
const CUTS_MAX: usize = 4_096;

/// Objects that were broken off. Keyed hashes stand for them: nobody can choose two that are alike.
#[derive(Debug, Default)]
pub struct Cuts {
    hasher: RandomState,
    cuts: Mutex<VecDeque<Cut>>,
}

#[derive(Debug)]
struct Cut {
    object: u64,
    told: (Box<str>, Cause),
    until: Instant,
}

impl Cuts {
    /// Remembers an object, and what the client is told of it: the words and the cause.
    pub fn add(&self, url: &[u8], response: &Response, told: (Box<str>, Cause), now: Instant) {
        let object = self.hash(url, response);
        let mut cuts = self.cuts.lock().expect("no holder panics");
        cuts.retain(|cut| cut.object != object && cut.until > now);
        if cuts.len() >= CUTS_MAX {
            cuts.pop_front();
        }
        cuts.push_back(Cut { object, told, until: now + MEMORY });
    }

    /// Notice for an object, if it is remembered.
    pub fn find(&self, url: &[u8], response: &Response, now: Instant) -> Option<(Box<str>, Cause)> {
        let cuts = self.cuts.lock().expect("no holder panics");
        if cuts.is_empty() {
            return None;
        }
        let object = self.hash(url, response);
        cuts.iter().find(|cut| cut.object == object && cut.until > now).map(|cut| cut.told.clone())
    }

    fn hash(&self, url: &[u8], response: &Response) -> u64 {
        let validators = ["etag", "last-modified", "content-length"].map(|name| response.fields.get(name));
        self.hasher.hash_one((url, validators))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(tag: &str) -> Response {
        let mut response = Response::new(200);
        response.fields.push("ETag", tag.as_bytes());
        response
    }

    #[test]
    fn an_object_is_known_by_its_url_and_version_for_a_time() {
        let (cuts, now) = (Cuts::default(), Instant::now());
        cuts.add(b"http://o.test/a", &version("1"), ("no".into(), Cause::Page), now);
        assert_eq!(cuts.find(b"http://o.test/a", &version("1"), now), Some(("no".into(), Cause::Page)));
        assert_eq!(cuts.find(b"http://o.test/a", &version("2"), now), None);
        assert_eq!(cuts.find(b"http://o.test/b", &version("1"), now), None);
        assert_eq!(cuts.find(b"http://o.test/a", &version("1"), now + MEMORY), None);
    }

    #[test]
    fn the_oldest_go_first() {
        let (cuts, now) = (Cuts::default(), Instant::now());
        for number in 0..=CUTS_MAX {
            cuts.add(format!("{number}").as_bytes(), &version("1"), (Box::default(), Cause::Malware), now);
        }
        assert_eq!(cuts.find(b"0", &version("1"), now), None);
        assert!(cuts.find(b"1", &version("1"), now).is_some());
        assert_eq!(cuts.cuts.lock().unwrap().len(), CUTS_MAX);
    }
}
