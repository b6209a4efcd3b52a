//! How often rules alert: `threshold`, `detection_filter`, suppression, and the table that counts.

use core::net::IpAddr;
use std::collections::HashMap;

use super::address::{self, Variables};
use super::lexer::{items, text};
use super::rule::{Rate, Threshold, Track};

/// Reads a threshold.
pub(super) fn read(value: &[u8], is_filter: bool) -> Result<Threshold, String> {
    let mut threshold = Threshold {
        rate: if is_filter { Rate::Filter } else { Rate::Threshold },
        track: Track::Source,
        count: 1,
        seconds: 60,
        addresses: None,
        place: None,
    };
    let mut multiplier = 10;
    for item in items(value) {
        let item = text(item);
        let (word, rest) = item.split_once(char::is_whitespace).unwrap_or((&item, ""));
        let rest = rest.trim();
        match (word, rest) {
            ("type", "limit") => threshold.rate = Rate::Limit,
            ("type", "threshold") => threshold.rate = Rate::Threshold,
            ("type", "both") => threshold.rate = Rate::Both,
            ("type", "backoff") => threshold.rate = Rate::Backoff(multiplier),
            ("multiplier", factor) => multiplier = factor.parse().map_err(|_| "no multiplier")?,
            ("track", track) => threshold.track = self::track(track).ok_or_else(|| format!("no track {track}"))?,
            ("count", count) => threshold.count = count.parse().map_err(|_| "no count")?,
            ("seconds", seconds) => threshold.seconds = seconds.parse().map_err(|_| "no seconds")?,
            _ => return Err(format!("{item} is not supported")),
        }
    }
    if let Rate::Backoff(_) = threshold.rate {
        // It counts as long as the flow lasts.
        (threshold.rate, threshold.seconds) = (Rate::Backoff(multiplier), u64::MAX);
    }
    Ok(threshold)
}

fn track(name: &str) -> Option<Track> {
    Some(match name {
        "by_src" => Track::Source,
        "by_dst" => Track::Target,
        "by_both" => Track::Both,
        "by_rule" => Track::Rule,
        "by_flow" => Track::Flow,
        _ => return None,
    })
}

/// A line of a file of thresholds: the generator and the rule that it is about, 0 for all, and what holds for them.
pub(super) fn line(line: &str, variables: &Variables, items_max: usize) -> Result<(u32, u32, Threshold), String> {
    let (word, rest) = line.split_once(char::is_whitespace).ok_or("a word alone")?;
    let is_suppression = match word {
        "suppress" => true,
        "threshold" | "event_filter" => false,
        _ => return Err(format!("{word} is not supported")),
    };
    let (mut gid, mut sid, mut others, mut addresses, mut direction) = (0, 0, Vec::new(), None, Track::Rule);
    for item in address::split(rest).into_iter().map(str::trim) {
        let (word, value) = item.split_once(char::is_whitespace).unwrap_or((item, ""));
        let value = value.trim();
        match word {
            "gen_id" | "gid" => gid = value.parse().map_err(|_| "no generator")?,
            "sig_id" | "sid" => sid = value.parse().map_err(|_| "no rule")?,
            "ip" => addresses = Some(address::addresses(value, variables, items_max)?),
            "track" if is_suppression && value == "by_either" => direction = Track::Either,
            "track" if is_suppression => direction = track(value).ok_or("no track")?,
            _ => others.push(item.to_string()),
        }
    }
    if is_suppression {
        let (rate, track) = (Rate::Suppress, direction);
        return Ok((gid, sid, Threshold { rate, track, count: 0, seconds: 0, addresses, place: None }));
    }
    Ok((gid, sid, read(others.join(",").as_bytes(), false)?))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    rule: u32,
    threshold: usize,
    flow: u64,
    source: Option<IpAddr>,
    target: Option<IpAddr>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    since_ms: u64,
    count: u32,
}

/// Counts of rules by addresses.
#[derive(Debug, Default)]
pub(super) struct Rates(HashMap<Key, Count>);

/// A match that may alert.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub rule: u32,
    pub flow: u64,
    pub source: IpAddr,
    pub target: IpAddr,
    pub now_ms: u64,
}

impl Rates {
    /// Counts a match, and says whether it alerts. When the table is full and nothing in it is old, it alerts.
    pub fn allow(&mut self, thresholds: &[Threshold], event: Event, entries_max: usize) -> bool {
        let mut allowed = true;
        for (number, threshold) in thresholds.iter().enumerate() {
            allowed &= match threshold.rate {
                Rate::Suppress => !suppresses(threshold, event),
                _ => self.count(number, threshold, event, entries_max),
            };
        }
        allowed
    }

    fn count(&mut self, number: usize, threshold: &Threshold, event: Event, entries_max: usize) -> bool {
        let Event { rule, now_ms, .. } = event;
        let (source, target, flow) = match threshold.track {
            Track::Rule => (None, None, 0),
            Track::Source => (Some(event.source), None, 0),
            Track::Target => (None, Some(event.target), 0),
            Track::Both | Track::Either => (Some(event.source), Some(event.target), 0),
            Track::Flow => (None, None, event.flow),
        };
        let key = Key { rule, threshold: number, flow, source, target };
        if self.0.len() >= entries_max && !self.0.contains_key(&key) {
            self.0.retain(|_, count| now_ms.saturating_sub(count.since_ms) < 60_000);
            if self.0.len() >= entries_max {
                return true;
            }
        }
        let entry = self.0.entry(key).or_insert(Count { since_ms: now_ms, count: 0 });
        if now_ms.saturating_sub(entry.since_ms) >= threshold.seconds.saturating_mul(1000) && entry.count > 0 {
            *entry = Count { since_ms: now_ms, count: 0 };
        }
        entry.count = entry.count.saturating_add(1);
        match threshold.rate {
            Rate::Limit => entry.count <= threshold.count,
            Rate::Threshold => {
                let is_due = entry.count >= threshold.count;
                if is_due {
                    entry.count = 0;
                }
                is_due
            }
            Rate::Both => entry.count == threshold.count,
            Rate::Backoff(factor) => is_step(entry.count, threshold.count, factor),
            Rate::Filter => entry.count > threshold.count,
            Rate::Suppress => true,
        }
    }
}

/// Whether a count is the first one times a power of a factor.
fn is_step(count: u32, first: u32, factor: u32) -> bool {
    let mut step = first.max(1);
    while step < count && factor > 1 {
        step = step.saturating_mul(factor);
    }
    step == count
}

fn suppresses(threshold: &Threshold, event: Event) -> bool {
    let Some(addresses) = &threshold.addresses else { return true };
    let has = |address| addresses.has(address::number(address));
    match threshold.track {
        Track::Source => has(event.source),
        Track::Target => has(event.target),
        _ => has(event.source) || has(event.target),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(value: &str, is_filter: bool, times: u32) -> u32 {
        let thresholds = [read(value.as_bytes(), is_filter).expect("a threshold")];
        let mut rates = Rates::default();
        let home = IpAddr::from([10, 0, 0, 1]);
        let event = Event { rule: 1, flow: 0, source: home, target: home, now_ms: 0 };
        (0..times).map(|_| u32::from(rates.allow(&thresholds, event, 10))).sum()
    }

    #[test]
    fn thresholds_alert_as_often_as_their_kind_says() {
        assert_eq!(allowed("type limit, track by_src, count 2, seconds 60", false, 7), 2);
        assert_eq!(allowed("type threshold, track by_src, count 3, seconds 60", false, 7), 2);
        assert_eq!(allowed("type both, track by_dst, count 3, seconds 60", false, 7), 1);
        assert_eq!(allowed("track by_src, count 3, seconds 60", true, 7), 4);
        assert_eq!(allowed("type backoff, track by_flow, count 1, multiplier 3", false, 28), 4);
    }

    #[test]
    fn a_line_of_a_file_names_the_rule_it_is_about() {
        let variables = address::default_variables();
        let (gid, sid, threshold) =
            line("suppress gen_id 1, sig_id 7, track by_src, ip [10.0.0.1,10.0.0.2]", &variables, 9).expect("a line");
        assert_eq!((gid, sid, threshold.rate), (1, 7, Rate::Suppress));
        let (.., either) =
            line("suppress gen_id 1, sig_id 7, track by_either, ip 10.0.0.1", &variables, 9).expect("a line");
        let event = |source: u8, target: u8| {
            let [source, target] = [source, target].map(|end| IpAddr::from([10, 0, 0, end]));
            Event { rule: 1, flow: 0, source, target, now_ms: 0 }
        };
        assert!(
            suppresses(&either, event(1, 2)) && suppresses(&either, event(2, 1)) && !suppresses(&either, event(2, 3))
        );
        assert!(
            line("threshold gen_id 1, sig_id 7, type limit, track by_src, count 1, seconds 9", &variables, 9).is_ok()
        );
    }
}
