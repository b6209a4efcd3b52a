//! Numbers of a day: every ten seconds for an hour, every two minutes for a day.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::numbers::Sample;

/// How often the gateway is asked.
pub const EVERY: Duration = Duration::from_secs(10);

const FINE_MAX: usize = 361;
const COARSE_MAX: usize = 721;
/// So many fine samples are one coarse.
const FINE_IN_COARSE: usize = 12;

/// Names that are kept: all that is plotted.
pub const NAMES: [&str; 14] = [
    "messages_passed_total",
    "messages_tagged_total",
    "messages_quarantined_total",
    "messages_rejected_total",
    "messages_deferred_total",
    "messages_total",
    "sessions_open",
    "sessions_refused_total",
    "content_bytes_total",
    "inspect_seconds_sum",
    "inspect_seconds_count",
    "resident_bytes",
    "store_messages",
    "store_queue_messages",
];

/// The kept numbers of one moment, in the order of [`NAMES`].
type Point = (Instant, [f64; NAMES.len()]);

/// The last day.
#[derive(Default)]
pub struct History(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    fine: VecDeque<Point>,
    coarse: VecDeque<Point>,
    taken: usize,
    last: BTreeMap<String, f64>,
    /// The reason for missing numbers.
    error: Option<String>,
}

/// A stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    Hour,
    Day,
}

impl History {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what the gateway has answered.
    pub fn take(&self, answer: Result<Sample, String>) {
        let mut inner = self.lock();
        let sample = match answer {
            Ok(sample) => sample,
            Err(error) => {
                inner.error = Some(error);
                return;
            }
        };
        let point = (sample.at, NAMES.map(|name| sample.level(name)));
        push(&mut inner.fine, point, FINE_MAX);
        if inner.taken.is_multiple_of(FINE_IN_COARSE) {
            push(&mut inner.coarse, point, COARSE_MAX);
        }
        inner.taken = inner.taken.wrapping_add(1);
        (inner.last, inner.error) = (sample.numbers, None);
    }

    /// The numbers of now, or why there are none.
    pub fn last(&self) -> Result<BTreeMap<String, f64>, String> {
        let inner = self.lock();
        inner.error.clone().map_or_else(|| Ok(inner.last.clone()), Err)
    }

    /// A number over a span, as seconds before now and its level.
    pub fn levels(&self, name: &str, span: Span) -> Vec<(f64, f64)> {
        self.points(span).iter().map(|(ago, values)| (*ago, value(values, name))).collect()
    }

    /// How fast a number has grown, a second, between each moment and the one before. One that falls was begun anew.
    pub fn rates(&self, name: &str, span: Span) -> Vec<(f64, f64)> {
        let points = self.points(span);
        let pairs = points.iter().zip(points.iter().skip(1));
        let rate = |((before_ago, before), (ago, now)): (&(f64, _), &(f64, _))| {
            let grown = (value(now, name) - value(before, name)).max(0.0);
            (*ago, grown / (before_ago - ago).max(0.001))
        };
        pairs.map(rate).collect()
    }

    fn points(&self, span: Span) -> Vec<(f64, [f64; NAMES.len()])> {
        let inner = self.lock();
        let now = Instant::now();
        let points = if span == Span::Hour { &inner.fine } else { &inner.coarse };
        points.iter().map(|(at, values)| (now.duration_since(*at).as_secs_f64(), *values)).collect()
    }
}

fn value(values: &[f64; NAMES.len()], name: &str) -> f64 {
    NAMES.iter().position(|known| *known == name).and_then(|at| values.get(at)).copied().unwrap_or(0.0)
}

fn push(points: &mut VecDeque<Point>, point: Point, points_max: usize) {
    if points.len() >= points_max {
        points.pop_front();
    }
    points.push_back(point);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: Instant, total: f64) -> Sample {
        Sample { at, numbers: [("messages_total".into(), total)].into() }
    }

    #[test]
    fn rates_are_those_between_moments_and_a_new_beginning_is_none() {
        let (history, now) = (History::default(), Instant::now());
        for (ago, total) in [(30, 100.0), (20, 150.0), (10, 5.0), (0, 25.0)] {
            history.take(Ok(sample(now.checked_sub(Duration::from_secs(ago)).unwrap(), total)));
        }
        let rates: Vec<f64> =
            history.rates("messages_total", Span::Hour).iter().map(|(_, rate)| rate.round()).collect();
        assert_eq!(rates, [5.0, 0.0, 2.0]);
        assert_eq!(history.last().unwrap()["messages_total"], 25.0);
        history.take(Err("gone".into()));
        assert_eq!(history.last(), Err("gone".into()));
    }

    #[test]
    fn a_day_is_kept_and_no_more() {
        let (history, now) = (History::default(), Instant::now());
        for count in 0..10_000 {
            history.take(Ok(sample(now, f64::from(count))));
        }
        assert_eq!(history.levels("messages_total", Span::Hour).len(), FINE_MAX);
        assert_eq!(history.levels("messages_total", Span::Day).len(), COARSE_MAX);
    }
}
