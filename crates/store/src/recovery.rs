//! Opening a volume: the last checkpoint, and forward through the log from there.
//!
//! A record that is damaged is either torn, since the power failed before it was flushed, or rotten. Records say how far the
//! log was on stable storage when they were written, and so do superblocks; what is damaged before that is rotten, and
//! reported. The log ends in front of the first damaged record of which nobody says that it was flushed: whatever comes
//! after it was never acknowledged.

mod parts;
mod scan;

use alloc::vec;
use alloc::vec::Vec;

use crate::apply::Effects;
use crate::checkpoint;
use crate::codec::Malformed;
use crate::device::Device;
use crate::error::{Damage, Damaged, Error};
use crate::log::{Head, Log, Segment};
use crate::operation::Operation;
use crate::record::{HEADER_BYTES, Header, SECTOR_BYTES};
use crate::state::State;
use crate::superblock::{COUNTER_MAX, Geometry, Root, SLOTS, Superblock};
use parts::Parts;

/// How a volume is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Nothing is written, not even when it is opened.
    pub read_only: bool,
    /// Damaged transactions are passed over. What can be read is there, and all UIDVALIDITYs are new ones.
    pub salvage: bool,
    /// A checkpoint is taken when this many bytes went into the log since the last one (and sixteen times its own size):
    /// what is read again after a crash.
    pub checkpoint_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { read_only: false, salvage: false, checkpoint_bytes: 64 << 20 }
    }
}

/// Report about the opening of a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// It had been closed, and nothing was done after that.
    pub was_closed: bool,
    /// Transactions since the checkpoint, which were done again.
    pub replayed: u64,
    /// Bytes of the log that were looked through.
    pub scanned_bytes: u64,
    /// Records behind the end of the log: none of them was acknowledged.
    pub discarded_records: u64,
    /// The last checkpoint was damaged, and the one before was taken.
    pub used_older_checkpoint: bool,
    /// Transactions are missing, and the volume was opened to salvage the rest.
    pub lost_transactions: bool,
    /// Damaged things. Only messages after the checkpoint are looked at.
    pub damage: Vec<Damage>,
}

pub(crate) struct Recovered<D> {
    pub log: Log<D>,
    pub superblock: Superblock,
    pub state: State,
    /// The state of the checkpoint, which may point into segments that the state now does not.
    pub before: State,
    pub report: Report,
    pub checkpoint_bytes: u64,
    /// Transactions since the checkpoint, in bytes.
    pub replayed_bytes: u64,
}

pub(crate) fn recover<D: Device>(device: D, options: &Options) -> Result<Recovered<D>, Error> {
    let mut report = Report::default();
    let slots = read_superblocks(&device, &mut report)?;
    let newest = slots.first().copied().ok_or(Error::NotAVolume)?;
    let geometry = newest.geometry.checked(device.len())?;
    let segments = read_segments(&device, &geometry, newest.opened)?;
    // All that any superblock knows to be on stable storage.
    let durable = slots.iter().flat_map(|slot| [slot.closed_sequence, slot.current.sequence]).max().unwrap_or(0);
    let durable = if newest.closed_sequence == 0 { newest.current.sequence } else { durable };
    let mut roots: Vec<Root> = Vec::new();
    for root in slots.iter().flat_map(|slot| [slot.current, slot.previous]) {
        if root.number != 0 && !roots.contains(&root) {
            roots.push(root);
        }
    }
    let mut first_error = None;
    for &root in &roots {
        let mut attempt = Attempt {
            device: &device,
            geometry,
            segments: &segments,
            options,
            durable,
            report: report.clone(),
            checkpoints: &roots,
            damaged: Vec::new(),
            transactions: Vec::new(),
        };
        match attempt.recover(root) {
            Ok(found) => {
                let mut report = attempt.report;
                report.used_older_checkpoint = root.number != newest.current.number;
                report.was_closed = newest.closed_sequence != 0 && found.sequence == newest.closed_sequence;
                let mut superblock = newest;
                if report.used_older_checkpoint {
                    superblock.current = root;
                    superblock.previous = Root::NONE;
                }
                let mut log = Log::new(device, geometry, segments, newest.opened);
                found.dropped.iter().for_each(|&segment| log.segments[segment as usize] = Segment::default());
                log.free = found.free;
                log.sequence = found.sequence;
                log.durable = found.sequence;
                log.last_epoch = found.last.map_or(0, |(segment, _)| log.segments[segment as usize].epoch);
                // Behind the end of a log that was closed nothing was ever written, so it can go on there.
                log.head = found
                    .last
                    .filter(|_| report.was_closed && report.damage.is_empty())
                    .map(|(segment, offset)| Head { segment, epoch: log.last_epoch, offset });
                let Outcome { state, before, checkpoint_bytes, replayed_bytes, .. } = found;
                return Ok(Recovered { log, superblock, state, before, report, checkpoint_bytes, replayed_bytes });
            }
            Err(error @ Error::Device(_)) => return Err(error),
            Err(error) => {
                if let Error::Damaged(damage) = error {
                    report.damage.push(damage);
                }
                first_error.get_or_insert(error);
            }
        }
    }
    Err(first_error.unwrap_or(Error::damaged(Damaged::Superblock, 0)))
}

/// The superblocks that are whole, the newest first.
fn read_superblocks<D: Device>(device: &D, report: &mut Report) -> Result<Vec<Superblock>, Error> {
    let mut slots = Vec::new();
    if device.len() < SLOTS[1] + SECTOR_BYTES as u64 {
        return Err(Error::NotAVolume);
    }
    for slot in SLOTS {
        let mut sector = [0; SECTOR_BYTES];
        device.read_at(slot, &mut sector)?;
        match Superblock::decode(&sector, slot) {
            Some(superblock) => slots.push(superblock?),
            None => report.damage.push(Damage { what: Damaged::Superblock, position: slot }),
        }
    }
    slots.sort_by_key(|slot| core::cmp::Reverse(slot.generation));
    Ok(slots)
}

/// The heads of all segments. One of an opening that has not been was never written.
fn read_segments<D: Device>(device: &D, geometry: &Geometry, opened: u32) -> Result<Vec<Segment>, Error> {
    let mut segments = Vec::new();
    for number in 0..geometry.segments {
        let at = geometry.segment_at(number);
        let mut sector = [0; SECTOR_BYTES];
        device.read_at(at, &mut sector)?;
        let segment = Segment::decode(&sector, geometry.volume(), at);
        segments.push(segment.filter(|segment| segment.epoch >> 32 <= u64::from(opened)).unwrap_or_default());
    }
    Ok(segments)
}

/// Recovery from one checkpoint.
struct Attempt<'a, D> {
    device: &'a D,
    geometry: Geometry,
    segments: &'a [Segment],
    options: &'a Options,
    /// Records before this one were on stable storage.
    durable: u64,
    report: Report,
    checkpoints: &'a [Root],
    /// Damaged records, each with its sequence number.
    damaged: Vec<(u64, Damage)>,
    transactions: Vec<Place>,
}

/// Place of a transaction in the log.
struct Place {
    sequence: u64,
    position: u64,
    header: Header,
}

struct Outcome {
    state: State,
    before: State,
    /// Segments behind the last one that the log needs.
    dropped: Vec<u32>,
    free: alloc::collections::BTreeSet<u32>,
    sequence: u64,
    /// Where the log ends: segment and offset.
    last: Option<(u32, u32)>,
    checkpoint_bytes: u64,
    replayed_bytes: u64,
}

impl<D: Device> Attempt<'_, D> {
    fn recover(&mut self, root: Root) -> Result<Outcome, Error> {
        let mut chain = self.chain(&root)?;
        let mut parts = Parts {
            attempt: self,
            root,
            chain: &chain,
            position: root.position,
            at: 0,
            held: Vec::new(),
            index: 0,
            is_last: false,
            bytes: 0,
        };
        let decoded = checkpoint::decode(&mut parts);
        let (failed_at, checkpoint_bytes, ended) = (parts.position, parts.bytes, parts.is_last);
        let (mut state, mut free) =
            decoded.ok().filter(|_| ended).ok_or(Error::damaged(Damaged::Checkpoint, failed_at))?;
        self.check(&state)?;
        let before = state.clone();
        let end = self.scan(&root, &chain)?;
        let mut cut = self.cut(end.sequence)?;
        if cut >= COUNTER_MAX {
            return Err(Error::damaged(Damaged::Log, root.position));
        }
        let dropped = self.drop_tail(&mut chain, &root, cut);
        let mut last = (end.segment, end.offset);
        if let (Some(&first), Some(&kept)) = (dropped.last(), chain.last()) {
            cut = cut.min(self.segments[first as usize].first);
            last = (kept, self.geometry.segment_bytes);
        }
        let replayed_bytes = self.replay(&mut state, cut)?;
        self.check(&state)?;
        free.extend(&dropped);
        free.retain(|segment| *segment < self.geometry.segments && !chain.contains(segment));
        Ok(Outcome { state, before, dropped, free, sequence: cut, last: Some(last), checkpoint_bytes, replayed_bytes })
    }

    /// Takes segments off the end of the log that have neither a transaction nor anything that is said to be on stable storage:
    /// pieces of messages that never became visible, or a checkpoint that was not finished. The first of them comes last.
    fn drop_tail(&self, chain: &mut Vec<u32>, root: &Root, cut: u64) -> Vec<u32> {
        let transactions = self.transactions.iter().map(|found| found.sequence).filter(|&sequence| sequence < cut);
        let needed = transactions.fold(root.sequence.saturating_add(root.records), |needed, at| needed.max(at + 1));
        let needed = needed.max(self.durable);
        let mut dropped = Vec::new();
        while let [_, .., last] = chain[..] {
            if self.segments[last as usize].first < needed {
                break;
            }
            dropped.push(last);
            chain.pop();
        }
        dropped
    }

    /// Whether what the state says of messages can be: sizes are not counted on before.
    fn check(&self, state: &State) -> Result<(), Error> {
        let total = u64::from(self.geometry.segments) * u64::from(self.geometry.segment_bytes);
        let counters = [state.commits, state.next_message];
        let is_possible = counters.iter().all(|&counter| counter < COUNTER_MAX)
            && state.messages.iter().all(|(number, message)| {
                number < COUNTER_MAX && message.size <= total && message.digest_bytes <= self.geometry.piece_bytes
            });
        if is_possible { Ok(()) } else { Err(Error::damaged(Damaged::Checkpoint, 0)) }
    }

    /// Does again what was committed before the cut; returns how many bytes that were.
    fn replay(&mut self, state: &mut State, cut: u64) -> Result<u64, Error> {
        let mut bytes = 0u64;
        for found in core::mem::take(&mut self.transactions) {
            if found.sequence >= cut {
                break;
            }
            let before = state.clone();
            if self.replay_one(state, &found).is_err() {
                *state = before;
                if !self.options.salvage {
                    return Err(Error::damaged(Damaged::Transaction, found.position));
                }
                self.report.lost_transactions = true;
            }
            state.commits = state.commits.max(found.header.subject);
            self.report.replayed += 1;
            bytes = bytes.saturating_add(u64::from(found.header.length));
        }
        Ok(bytes)
    }

    fn replay_one(&self, state: &mut State, found: &Place) -> Result<(), Error> {
        let damaged = || Error::damaged(Damaged::Transaction, found.position);
        if found.header.subject != state.commits + 1 && !self.report.lost_transactions {
            return Err(damaged());
        }
        let mut payload = vec![0; found.header.length as usize];
        self.device.read_at(found.position + HEADER_BYTES as u64, &mut payload)?;
        let mut source = payload.as_slice();
        let mut effects = Effects::default();
        while !source.is_empty() {
            let operation = Operation::decode(&mut source).map_err(|Malformed| damaged())?;
            state.apply(&operation, found.header.subject, &mut effects)?;
        }
        for (number, _) in core::mem::take(&mut effects.added) {
            state.forget_unlinked(number, &mut effects);
        }
        state.commits = found.header.subject;
        Ok(())
    }
}
