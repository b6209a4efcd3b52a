//! How often rules alert: `threshold`, `detection_filter`, suppression, and the table that counts.

use core::net::IpAddr;
use std::collections::{HashMap, HashSet};

use super::action::Action;
use super::address::{self, Variables};
use super::lexer::{items, text};
use super::rule::{Port, Rate, Threshold, Track};

/// How many ports there are.
const PORTS: u32 = 65_536;
/// Ports that all counts keep; beyond that each match counts.
const PORTS_MAX: usize = 1 << 20;

/// Reads a threshold.
pub(super) fn read(value: &[u8], is_filter: bool) -> Result<Threshold, String> {
    let mut threshold = Threshold {
        rate: if is_filter { Rate::Filter } else { Rate::Threshold },
        track: Track::Source,
        count: 1,
        seconds: 60,
        unique: None,
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
            ("unique_on", "src_port") => threshold.unique = Some(Port::Source),
            ("unique_on", "dst_port") => threshold.unique = Some(Port::Target),
            ("count", count) => threshold.count = count.parse().map_err(|_| "no count")?,
            ("seconds", seconds) => threshold.seconds = seconds.parse().map_err(|_| "no seconds")?,
            _ => return Err(format!("{item} is not supported")),
        }
    }
    if threshold.unique.is_some() && (!is_filter || threshold.count >= PORTS) {
        return Err("unique_on stands in detection_filter, with a count below 65536".into());
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
        "rate_filter" => return change(rest),
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
        return Ok((gid, sid, Threshold { rate, track, count: 0, seconds: 0, unique: None, addresses, place: None }));
    }
    Ok((gid, sid, read(others.join(",").as_bytes(), false)?))
}

/// The rest of a line that gives a rule another action while it matches often.
fn change(rest: &str) -> Result<(u32, u32, Threshold), String> {
    let (mut gid, mut sid, mut others, mut action, mut timeout) = (0, 0, Vec::new(), None, 0);
    for item in rest.split(',').map(str::trim) {
        let (word, value) = item.split_once(char::is_whitespace).unwrap_or((item, ""));
        let value = value.trim();
        match word {
            "gen_id" | "gid" => gid = value.parse().map_err(|_| "no generator")?,
            "sig_id" | "sid" => sid = value.parse().map_err(|_| "no rule")?,
            "new_action" => action = Some(Action::named(value).ok_or_else(|| format!("{value} is no action"))?),
            "timeout" => timeout = value.parse().map_err(|_| "no timeout")?,
            _ => others.push(item),
        }
    }
    let action = action.ok_or("no new_action")?;
    let threshold = read(others.join(",").as_bytes(), true)?;
    if threshold.unique.is_some() {
        return Err("unique_on stands in detection_filter alone".into());
    }
    Ok((gid, sid, Threshold { rate: Rate::Change { action, seconds: timeout }, ..threshold }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    rule: u32,
    threshold: usize,
    flow: u64,
    source: Option<IpAddr>,
    target: Option<IpAddr>,
}

#[derive(Debug, Clone, Default)]
struct Count {
    since_ms: u64,
    count: u32,
    /// Ports that have counted.
    ports: HashSet<u16>,
    /// Since when the rule has another action.
    changed_ms: Option<u64>,
}

/// Counts of rules by addresses.
#[derive(Debug, Default)]
pub(super) struct Rates {
    counts: HashMap<Key, Count>,
    /// Ports that all of them keep.
    ports: usize,
}

/// A match that may alert. A port of 0 is not known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub rule: u32,
    pub flow: u64,
    pub source: (IpAddr, u16),
    pub target: (IpAddr, u16),
    pub now_ms: u64,
}

impl Rates {
    /// Counts a match, and says whether it alerts. When the table is full and nothing in it is old, it alerts.
    pub fn allow(&mut self, thresholds: &[Threshold], event: Event, entries_max: usize) -> bool {
        // What is suppressed is not counted either.
        if thresholds.iter().any(|threshold| threshold.rate == Rate::Suppress && suppresses(threshold, event)) {
            return false;
        }
        let mut allowed = true;
        for (number, threshold) in thresholds.iter().enumerate() {
            allowed &= match threshold.rate {
                Rate::Suppress | Rate::Change { .. } => true,
                _ => self.is_due(number, threshold, event, entries_max),
            };
        }
        allowed
    }

    /// Counts a match, and says whether it is one that alerts.
    fn is_due(&mut self, number: usize, threshold: &Threshold, event: Event, entries_max: usize) -> bool {
        let Some(count) = self.count(number, threshold, event, entries_max) else { return true };
        match threshold.rate {
            Rate::Limit => count.count <= threshold.count,
            Rate::Threshold => {
                let is_due = count.count >= threshold.count;
                if is_due {
                    count.count = 0;
                }
                is_due
            }
            Rate::Both => count.count == threshold.count,
            Rate::Backoff(factor) => is_step(count.count, threshold.count, factor),
            Rate::Filter => count.count > threshold.count,
            Rate::Suppress | Rate::Change { .. } => true,
        }
    }

    /// Counts a match, and says which other action its rule has because it matches so often.
    pub fn changed(&mut self, thresholds: &[Threshold], event: Event, entries_max: usize) -> Option<Action> {
        let mut changed = None;
        for (number, threshold) in thresholds.iter().enumerate() {
            let Rate::Change { action, seconds } = threshold.rate else { continue };
            let Some(count) = self.count(number, threshold, event, entries_max) else { continue };
            let is_on = |since: u64| event.now_ms.saturating_sub(since) <= seconds.saturating_mul(1000);
            if !count.changed_ms.is_some_and(is_on) {
                count.changed_ms = (count.count > threshold.count).then_some(event.now_ms);
            }
            changed = count.changed_ms.map(|_| action).or(changed);
        }
        changed
    }

    /// Counts a match, unless its port has counted before; none where there is no room.
    fn count(&mut self, number: usize, threshold: &Threshold, event: Event, entries_max: usize) -> Option<&mut Count> {
        let Event { rule, now_ms, .. } = event;
        let (source, target) = (Some(event.source.0), Some(event.target.0));
        let (source, target, flow) = match threshold.track {
            Track::Rule => (None, None, 0),
            Track::Source => (source, None, 0),
            Track::Target => (None, target, 0),
            // Both ways are one pair.
            Track::Both | Track::Either => (source.min(target), source.max(target), 0),
            Track::Flow => (None, None, event.flow),
        };
        let key = Key { rule, threshold: number, flow, source, target };
        if self.counts.len() >= entries_max && !self.counts.contains_key(&key) {
            self.counts.retain(|_, count| now_ms.saturating_sub(count.since_ms) < 60_000);
            self.ports = self.counts.values().map(|count| count.ports.len()).sum();
            if self.counts.len() >= entries_max {
                return None;
            }
        }
        let entry = self.counts.entry(key).or_insert_with(|| Count { since_ms: now_ms, ..Count::default() });
        if now_ms.saturating_sub(entry.since_ms) >= threshold.seconds.saturating_mul(1000) && entry.count > 0 {
            self.ports = self.ports.saturating_sub(entry.ports.len());
            *entry = Count { since_ms: now_ms, changed_ms: entry.changed_ms, ..Count::default() };
        }
        let port = match threshold.unique {
            None => 0,
            Some(Port::Source) => event.source.1,
            Some(Port::Target) => event.target.1,
        };
        // Beyond the count no more ports are needed.
        let is_kept = port != 0 && self.ports < PORTS_MAX && entry.ports.len() <= threshold.count as usize;
        if is_kept && entry.ports.insert(port) {
            self.ports += 1;
        } else if port != 0 && (is_kept || entry.ports.contains(&port)) {
            return Some(entry);
        }
        entry.count = entry.count.saturating_add(1);
        Some(entry)
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
        Track::Source => has(event.source.0),
        Track::Target => has(event.target.0),
        _ => has(event.source.0) || has(event.target.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(value: &str, is_filter: bool, times: u32) -> u32 {
        let thresholds = [read(value.as_bytes(), is_filter).expect("a threshold")];
        let mut rates = Rates::default();
        let home = IpAddr::from([10, 0, 0, 1]);
        let event = Event { rule: 1, flow: 0, source: (home, 0), target: (home, 0), now_ms: 0 };
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
    fn a_port_counts_once_where_the_filter_says_so() {
        let filter = [read(b"track by_dst, count 2, seconds 60, unique_on dst_port", true).expect("a filter")];
        let mut rates = Rates::default();
        let home = IpAddr::from([10, 0, 0, 1]);
        let mut to = |port: u16, now_ms: u64| {
            let event = Event { rule: 1, flow: 0, source: (home, 9), target: (home, port), now_ms };
            rates.allow(&filter, event, 10)
        };
        assert_eq!([1, 1, 2, 2, 3, 1, 4].map(|port| to(port, 0)), [false, false, false, false, true, true, true]);
        assert_eq!([1, 2, 2, 3].map(|port| to(port, 60_000)), [false, false, false, true]);
        assert!(read(b"type limit, track by_src, count 1, seconds 9, unique_on dst_port", false).is_err());
        assert!((0..=u16::MAX).all(|port| [port != 0, true].contains(&to(port, 60_000))));
        assert!(rates.ports <= 4);
    }

    #[test]
    fn a_rule_has_another_action_while_it_matches_often() {
        let text = "rate_filter gen_id 1, sig_id 7, track by_src, count 2, seconds 10, new_action drop, timeout 30";
        let (gid, sid, change) = line(text, &address::default_variables(), 9).expect("a line");
        assert_eq!((gid, sid), (1, 7));
        let (changes, mut rates) = ([change], Rates::default());
        let home = IpAddr::from([10, 0, 0, 1]);
        let mut at = |seconds: u64| {
            let event = Event { rule: 1, flow: 0, source: (home, 0), target: (home, 0), now_ms: seconds * 1000 };
            assert!(rates.allow(&changes, event, 10));
            rates.changed(&changes, event, 10)
        };
        let drop = Some(Action::Drop);
        assert_eq!([0, 1, 2, 12, 32].map(&mut at), [None, None, drop, drop, drop]);
        assert_eq!([33, 34, 45, 65].map(&mut at), [None, drop, drop, None]);
        assert!(line("rate_filter gen_id 1, sig_id 7, count 2, seconds 10", &address::default_variables(), 9).is_err());
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
            Event { rule: 1, flow: 0, source: (source, 0), target: (target, 0), now_ms: 0 }
        };
        assert!(
            suppresses(&either, event(1, 2)) && suppresses(&either, event(2, 1)) && !suppresses(&either, event(2, 3))
        );
        // What is suppressed takes the place of no other.
        let limit = read(b"type limit, track by_src, count 1, seconds 60", false).expect("a limit");
        let (both, mut rates) = ([limit, either], Rates::default());
        assert_eq!(
            [event(1, 2), event(2, 1), event(2, 3)].map(|event| rates.allow(&both, event, 9)),
            [false, false, true]
        );
        assert!(
            line("threshold gen_id 1, sig_id 7, type limit, track by_src, count 1, seconds 9", &variables, 9).is_ok()
        );
    }
}
