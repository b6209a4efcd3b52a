//! Counts of one day, for reports: mails with the same results, by the domain whose policy applied.
//!
//! Bounds: [`BYTES_MAX`] in memory, of which one domain gets [`RECORDS_MAX`] records. Mails beyond are counted as left out, and the
//! report says how many. The file is JSON, replaced as a whole.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use edge::message::authenticity::Evaluations;
use flow::{Evaluation, Observation, Published};
use serde::{Deserialize, Serialize};

use crate::store::day;

/// Bytes of all records, as they are in memory.
const BYTES_MAX: usize = 16 << 20;

/// Records of one domain.
const RECORDS_MAX: usize = 5_000;

/// Bytes of a name: a record with a longer one is left out.
const NAME_BYTES_MAX: usize = 255;

/// Counts of the day that goes on.
#[derive(Debug, Default)]
pub struct Tally {
    counts: Mutex<Counts>,
    /// Reports that were handed to the queue.
    pub reports: AtomicU64,
    left_out: AtomicU64,
}

/// Counts of one day.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Days since 1970.
    pub day: u64,
    /// By the domain whose policy applied.
    pub domains: BTreeMap<Box<str>, Domain>,
    #[serde(skip)]
    bytes: usize,
    #[serde(skip)]
    is_changed: bool,
}

/// Counts of one domain.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Domain {
    /// The policy as it was seen last.
    pub published: Published,
    /// Mails by what was found.
    #[serde(with = "pairs")]
    pub records: BTreeMap<Observation, u64>,
    /// Mails that are not counted, for want of room.
    pub left_out: u64,
}

impl Evaluations for Tally {
    fn count(&self, evaluation: &Evaluation) {
        let Evaluation { policy_domain, published, observation } = evaluation;
        let mut counts = self.lock();
        if counts.domains.is_empty() {
            counts.day = day::today();
        }
        if !counts.add(policy_domain, published, observation, 1) {
            self.left_out.fetch_add(1, Relaxed);
        }
    }
}

impl Tally {
    /// Adds counts of the same day.
    pub fn add(&self, kept: Counts) {
        let mut counts = self.lock();
        for (domain, Domain { published, records, left_out }) in kept.domains {
            for (observation, count) in records {
                counts.add(&domain, &published, &observation, count);
            }
            if let Some(domain) = counts.domains.get_mut(&domain) {
                domain.left_out = domain.left_out.saturating_add(left_out);
            }
        }
        counts.day = kept.day;
    }

    /// Takes the counts if they are of a day before this one.
    pub fn take_before(&self, day: u64) -> Option<Counts> {
        let mut counts = self.lock();
        let is_past = !counts.domains.is_empty() && counts.day < day;
        is_past.then(|| std::mem::replace(&mut *counts, Counts { day, ..Counts::default() }))
    }

    /// Notes that the file is not right any more.
    pub fn change(&self) {
        self.lock().is_changed = true;
    }

    /// Writes the counts, if they have changed since.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let text = {
            let mut counts = self.lock();
            if !std::mem::take(&mut counts.is_changed) {
                return Ok(());
            }
            serde_json::to_vec(&*counts)?
        };
        let beside = file.with_extension("new");
        fs::write(&beside, text)?;
        fs::rename(&beside, file)
    }

    /// Its numbers, in Prometheus' text format.
    pub fn text(&self) -> String {
        let number = |name: &str, help: &str, number: &AtomicU64| {
            let name = format!("sluice_store_dmarc_{name}");
            format!("# HELP {name} {help}\n# TYPE {name} counter\n{name} {}\n", number.load(Relaxed))
        };
        number("reports_total", "DMARC reports handed to the queue.", &self.reports)
            + &number("left_out_total", "Mails that DMARC reports do not count, for want of room.", &self.left_out)
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// Counts mails; false if there is no room for them.
    fn add(&mut self, domain: &str, published: &Published, observation: &Observation, count: u64) -> bool {
        let bytes = bytes_of(observation);
        if domain.len() > NAME_BYTES_MAX {
            return false;
        }
        if !self.domains.contains_key(domain) {
            let room = self.bytes.checked_add(size_of::<Domain>() + NAME_BYTES_MAX).filter(|&bytes| bytes <= BYTES_MAX);
            let Some(room) = room else { return false };
            self.bytes = room;
            self.domains.insert(domain.into(), Domain::default());
        }
        let Some(counted) = self.domains.get_mut(domain) else { return false };
        self.is_changed = true;
        counted.published.clone_from(published);
        if let Some(known) = counted.records.get_mut(observation) {
            *known = known.saturating_add(count);
            return true;
        }
        let room = bytes.and_then(|bytes| self.bytes.checked_add(bytes)).filter(|&bytes| bytes <= BYTES_MAX);
        let Some(room) = room.filter(|_| counted.records.len() < RECORDS_MAX) else {
            counted.left_out = counted.left_out.saturating_add(count);
            return false;
        };
        self.bytes = room;
        counted.records.insert(observation.clone(), count);
        true
    }
}

/// Bytes of a record in memory; none if it is not one that a mail can have.
fn bytes_of(observation: &Observation) -> Option<usize> {
    let Observation { disposition, reason, header_from, envelope_from, spf_domain, spf, signatures, .. } = observation;
    let own = [disposition, reason, header_from, envelope_from, spf_domain, spf];
    let theirs = signatures.iter().flat_map(|one| [&one.domain, &one.selector, &one.result]);
    let (mut bytes, mut longest) = (2 * size_of::<Observation>() + 128 * signatures.len(), 0);
    for text in own.into_iter().chain(theirs) {
        bytes += text.len();
        longest = longest.max(text.len());
    }
    (longest <= NAME_BYTES_MAX && signatures.len() <= Observation::SIGNATURES_MAX).then_some(bytes)
}

/// Reads the counts of a file; none if there is none, or it is of another kind.
pub fn read(file: &Path) -> Counts {
    let text = match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Counts::default(),
        text => text.map_err(|error| error.to_string()),
    };
    let counts = text.and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()));
    counts.unwrap_or_else(|error| {
        tracing::warn!(file = %file.display(), error, "what DMARC reports counted is lost");
        Counts::default()
    })
}

/// A map whose keys are no strings, as a list of pairs.
mod pairs {
    use std::collections::BTreeMap;

    use flow::Observation;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(records: &BTreeMap<Observation, u64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(records)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Observation, u64>, D::Error> {
        let pairs: Vec<(Observation, u64)> = Vec::deserialize(deserializer)?;
        Ok(pairs.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluation(domain: &str, host: u32) -> Evaluation {
        let observation = Observation {
            client: std::net::Ipv4Addr::from(host).into(),
            disposition: "none".into(),
            reason: "".into(),
            dkim_aligned: false,
            spf_aligned: true,
            header_from: domain.into(),
            envelope_from: domain.into(),
            spf_domain: domain.into(),
            spf: "pass".into(),
            signatures: Vec::new(),
        };
        Evaluation { policy_domain: domain.into(), published: Published::default(), observation }
    }

    #[test]
    fn mails_with_the_same_results_are_one_record_through_a_restart() {
        let (tally, folder) = (Tally::default(), tempfile::tempdir().unwrap());
        let file = folder.path().join("dmarc");
        for host in [1, 1, 2] {
            tally.count(&evaluation("a.test", host));
        }
        tally.write(&file).unwrap();
        let (next, kept) = (Tally::default(), read(&file));
        let day = kept.day;
        next.count(&evaluation("a.test", 1));
        next.count(&evaluation("b.test", 1));
        next.add(kept);
        assert!(next.take_before(day).is_none(), "the day goes on");
        let counts = next.take_before(day + 1).unwrap();
        let of = |domain: &str| counts.domains[domain].records.values().copied().collect::<Vec<u64>>();
        assert_eq!((counts.day, of("a.test"), of("b.test")), (day, vec![3, 1], vec![1]));
        assert!(next.take_before(day + 2).is_none());
        next.change();
        next.write(&file).unwrap();
        assert!(read(&file).domains.is_empty(), "what was sent is not kept");
        fs::write(&file, "{").unwrap();
        assert!(read(&file).domains.is_empty());
    }

    #[test]
    fn what_finds_no_room_is_left_out_and_counted() {
        let tally = Tally::default();
        (0..RECORDS_MAX as u32 + 3).for_each(|host| tally.count(&evaluation("a.test", host)));
        tally.count(&evaluation("b.test", 1));
        let mut long = evaluation("b.test", 1);
        long.observation.spf_domain = "x".repeat(NAME_BYTES_MAX + 1).into();
        tally.count(&long);
        {
            let counts = tally.lock();
            let of = |domain: &str| (counts.domains[domain].records.len(), counts.domains[domain].left_out);
            assert_eq!((of("a.test"), of("b.test")), ((RECORDS_MAX, 3), (1, 1)));
        }
        for number in 0..100_000 {
            tally.count(&evaluation(&format!("{number}.test"), 1));
        }
        let counts = tally.lock();
        assert!(counts.bytes <= BYTES_MAX && counts.domains.len() < 100_000, "{}", counts.domains.len());
        assert!(tally.left_out.load(Relaxed) > 4);
    }
}
