//! A volume: the state, the log, and the one writer of both.
//!
//! Calling order: [`Volume::format`] once; [`Volume::open`]; then [`append`](Volume::append) and
//! [`transaction`](Volume::transaction) as often as wanted, and [`commit`](Volume::commit), which flushes once for all
//! transactions that were staged since the last one. What was staged is visible when `commit` has returned, and not before.

mod checkpoint;
mod commit;
mod room;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use crate::apply::Effects;
use crate::device::Device;
use crate::error::{Damage, Damaged, Error};
use crate::log::{Log, Segment};
use crate::read::{self, Content};
use crate::record::{self, SECTOR_BYTES};
use crate::recovery::{self, Options, Report};
use crate::state::{Message, State};
use crate::superblock::{Geometry, Root, Superblock};

/// How a volume is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Random: what ids are made of.
    pub identity: u128,
    /// The first UIDVALIDITY: the time, in seconds since 1970, so that volumes made anew give others.
    pub uid_validity: u32,
    /// A segment, in bytes.
    pub segment_bytes: u32,
    /// The largest piece of a message, in bytes.
    pub piece_bytes: u32,
}

impl Format {
    /// The sizes that suit disks.
    pub fn new(identity: u128, uid_validity: u32) -> Self {
        Format {
            identity,
            uid_validity,
            segment_bytes: 16 << 20,
            piece_bytes: (64 << 10) - record::HEADER_BYTES as u32,
        }
    }
}

/// A mail store on a device.
#[derive(Debug)]
pub struct Volume<D> {
    pub(crate) log: Log<D>,
    superblock: Superblock,
    options: Options,
    /// With what was staged.
    pub(crate) working: State,
    /// As of the last commit.
    published: State,
    pub(crate) staged: Vec<Staged>,
    /// Something became visible that was not flushed.
    is_unflushed: bool,
    pub(crate) effects: Effects,
    pub(crate) next_number: u64,
    /// Messages under ids that callers have given.
    known: BTreeMap<u128, u64>,
    /// Segments with pieces of messages that no transaction has made visible yet.
    pins: BTreeMap<u64, Pin>,
    /// Where the log was, in bytes written, at the last checkpoint.
    checkpoint_at: u64,
    /// The log between the last checkpoint and the opening of the volume, if none was taken since.
    log_bytes_before: u64,
    checkpoint_size: u64,
    /// Bytes of transactions since then, by which the next one grows.
    grown_bytes: u64,
    /// Where the log was when room was last made.
    reclaimed_at: u64,
    /// Bytes that died since then.
    died: u64,
    /// Making room was worth it the last time.
    has_garbage: bool,
    report: Report,
}

#[derive(Debug)]
pub(crate) struct Staged {
    pub commit: u64,
    pub payload: Vec<u8>,
    /// It makes the state larger.
    pub grows: bool,
}

#[derive(Debug)]
struct Pin {
    alive: Weak<()>,
    segments: BTreeSet<u32>,
    bytes: u64,
}

/// How full a volume is. Sizes in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// All segments.
    pub total_bytes: u64,
    /// Segments that may be written anew, at once or after the next checkpoint, without those kept in reserve.
    pub free_bytes: u64,
    /// Segments that messages leave free.
    pub reserve_bytes: u64,
    /// Records of messages that mailboxes point to.
    pub live_bytes: u64,
    /// Written since the volume was opened.
    pub written_bytes: u64,
    /// The last checkpoint.
    pub checkpoint_bytes: u64,
    /// Messages that mailboxes point to.
    pub messages: u64,
}

impl<D: Device> Volume<D> {
    /// Makes an empty volume of the whole device.
    pub fn format(device: D, format: &Format) -> Result<D, Error> {
        let segments = Geometry::segments_of(device.len(), format.segment_bytes);
        let geometry = Geometry {
            identity: format.identity,
            segment_bytes: format.segment_bytes,
            piece_bytes: format.piece_bytes,
            segments,
        }
        .checked(device.len())?;
        let mut log = Log::new(device, geometry, alloc::vec![Segment::default(); segments as usize], 1);
        log.free = (0..segments).collect();
        // Heads of segments of a former volume on this device mean nothing to this one, since it has another identity.
        let superblock = Superblock {
            geometry,
            generation: 1,
            opened: 1,
            closed_at: 0,
            closed_sequence: 0,
            current: Root::NONE,
            previous: Root::NONE,
        };
        let state = State::new(format.uid_validity);
        let mut volume = Volume::of(log, superblock, Options::default(), state, Report::default());
        volume.write_checkpoint()?;
        volume.close()
    }

    /// Opens a volume: reads its last checkpoint, and does again what was committed since. The report says what was found.
    pub fn open(device: D, options: Options) -> Result<Self, Error> {
        let recovered = recovery::recover(device, &options)?;
        let mut volume = Volume::of(recovered.log, recovered.superblock, options, recovered.state, recovered.report);
        volume.checkpoint_size = recovered.checkpoint_bytes;
        // As if this process had written them: bounds hold over any number of lives.
        (volume.log_bytes_before, volume.grown_bytes) = (volume.report.scanned_bytes, recovered.replayed_bytes);
        volume.count_live(&recovered.before);
        if !options.read_only {
            volume.superblock.opened = volume.superblock.opened.checked_add(1).ok_or(Error::Failed)?;
            (volume.superblock.closed_at, volume.superblock.closed_sequence) = (0, 0);
            volume.log.opened = volume.superblock.opened;
            volume.give_up_previous();
            // Both, so that no superblock is left whose count is given again.
            volume.write_superblock()?;
            volume.write_superblock()?;
            volume.free_segments();
            if options.salvage && volume.report.lost_transactions {
                volume.renumber()?;
            }
            if volume.log.free.len() <= volume.reserve() && volume.has_empty_segments() {
                volume.checkpoint_alone()?;
            }
        }
        Ok(volume)
    }

    fn of(log: Log<D>, superblock: Superblock, options: Options, state: State, report: Report) -> Self {
        let ids = |(number, message): (u64, &Message)| {
            (id_of(superblock.geometry.identity, number) != message.id).then_some((message.id, number))
        };
        Volume {
            log,
            superblock,
            options,
            next_number: state.next_message.max(1),
            known: state.messages.iter().filter_map(ids).collect(),
            published: state.clone(),
            working: state,
            staged: Vec::new(),
            is_unflushed: false,
            effects: Effects::default(),
            pins: BTreeMap::new(),
            checkpoint_at: 0,
            log_bytes_before: 0,
            checkpoint_size: 0,
            grown_bytes: 0,
            reclaimed_at: 0,
            died: 0,
            has_garbage: true,
            report,
        }
    }

    /// The report of the opening.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// How the volume is divided: what readers need.
    pub fn geometry(&self) -> &Geometry {
        &self.log.geometry
    }

    /// The device, for readers.
    pub fn device(&self) -> &D {
        &self.log.device
    }

    /// The device, for tests that make it fail.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.log.device
    }

    /// Everything as of the last commit. Its copies are snapshots.
    pub fn state(&self) -> &State {
        &self.published
    }

    /// The message with this id.
    pub fn message_by_id(&self, id: u128) -> Option<u64> {
        let derived = number_of(self.log.geometry.identity, id);
        let number = derived.or_else(|| self.known.get(&id).copied())?;
        self.working.messages.get(number).filter(|message| message.id == id).map(|_| number)
    }

    /// Reads a message from `offset`: as much as there is room for, less at its end. For one read; [`Content`] holds a piece
    /// from one to the next.
    pub fn read(&self, number: u64, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let message = self.published.message(number).ok_or(crate::Refused::NoSuchMessage)?;
        let mut content = Content::new(number, message);
        let mut done = 0;
        while done < buffer.len() {
            let piece = self.read_piece(&mut content, offset.saturating_add(done as u64), &mut buffer[done..]);
            match piece.map_err(|error| definite(error, Damaged::Message(number), 0))? {
                0 => break,
                length => done += length,
            }
        }
        Ok(done)
    }

    /// Reads on in a message of the present state.
    pub fn read_piece(&self, content: &mut Content, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        content.read_at(&self.log.device, &self.log.geometry, offset, buffer)
    }

    /// The digest of a message.
    pub fn digest(&self, number: u64) -> Result<Vec<u8>, Error> {
        let message = self.published.message(number).ok_or(crate::Refused::NoSuchMessage)?;
        read::digest(&self.log.device, &self.log.geometry, number, message)
            .map_err(|error| definite(error, Damaged::Digest(number), message.digest))
    }

    /// Reads every record of a message.
    pub fn verify(&self, number: u64) -> Result<(), Error> {
        let message = self.published.message(number).ok_or(crate::Refused::NoSuchMessage)?;
        let geometry = &self.log.geometry;
        let mut content = Content::new(number, message);
        for piece in 0..message.pieces(geometry.piece_bytes) {
            let offset = u64::from(piece) * u64::from(geometry.piece_bytes);
            let position = message.place.piece(piece, geometry.stride()).unwrap_or(0);
            self.read_piece(&mut content, offset, &mut [0])
                .map_err(|error| definite(error, Damaged::Message(number), position))?;
        }
        self.digest(number).map(drop)
    }

    /// Verifies messages from number `from` on, about `bytes` of them, and calls `damaged` for each that is not what was
    /// written. Returns where to go on, nothing at the end.
    pub fn scrub(&self, from: u64, bytes: u64, damaged: &mut dyn FnMut(u64, Error)) -> Option<u64> {
        let mut seen = 0u64;
        for (number, message) in self.published.messages.from(from) {
            if seen > bytes {
                return Some(number);
            }
            seen = seen.saturating_add(message.size).saturating_add(SECTOR_BYTES as u64);
            if let Err(error) = self.verify(number) {
                damaged(number, error);
            }
        }
        None
    }

    /// How full the volume is.
    pub fn usage(&self) -> Usage {
        let segment = u64::from(self.log.geometry.segment_bytes);
        Usage {
            total_bytes: u64::from(self.log.geometry.segments) * segment,
            free_bytes: self.reclaimable_segments().saturating_sub(self.reserve()) as u64 * segment,
            reserve_bytes: (self.reserve() as u64).saturating_mul(segment),
            live_bytes: self.log.segments.iter().map(|segment| segment.live).sum(),
            written_bytes: self.log.written_bytes,
            checkpoint_bytes: self.checkpoint_size,
            messages: self.published.messages.len() as u64,
        }
    }

    /// Commits, takes a checkpoint, and says that the log ends here: the next open need not look for more, and finds damage
    /// wherever it is.
    pub fn close(mut self) -> Result<D, Error> {
        if self.options.read_only {
            return Ok(self.log.device);
        }
        self.publish()?;
        // On a full volume what was committed is in the log all the same.
        match self.write_checkpoint() {
            Err(Error::Full) => {}
            outcome => outcome?,
        }
        (self.superblock.closed_at, self.superblock.closed_sequence) = (self.log.end(), self.log.sequence);
        // Both say so: if one is lost, the log still ends where it ended.
        self.write_superblock()?;
        self.write_superblock()?;
        Ok(self.log.device)
    }

    /// Opens the volume anew, as after a kill: what was staged is gone, and messages that were coming in are refused from here on.
    pub fn reopen(self) -> Result<Self, Error> {
        let options = self.options;
        Volume::open(self.abandon(), Options { salvage: false, ..options })
    }

    /// Whether a write or a flush has failed: nothing is written any more until the volume is opened anew.
    pub fn has_failed(&self) -> bool {
        self.log.failed
    }

    /// The volume opened anew by another hold on its device, as after a kill, after its device failed. This one stays as it is, to be read.
    pub fn renewed(&self, device: D) -> Result<Self, Error> {
        let mut volume = Volume::open(device, Options { salvage: false, ..self.options })?;
        // Of a flush that failed the device may show what it has lost: nothing that comes now stands on it.
        volume.checkpoint_alone()?;
        Ok(volume)
    }

    /// The device as it is, without another write: what a killed process leaves.
    pub fn abandon(self) -> D {
        self.log.device
    }

    pub(crate) fn writable(&self) -> Result<(), Error> {
        match (self.options.read_only, self.log.failed) {
            (true, _) => Err(Error::ReadOnly),
            (false, true) => Err(Error::Failed),
            (false, false) => Ok(()),
        }
    }

    /// Keeps the segment at `position` from being freed while somebody has `alive`.
    pub(crate) fn pin(&mut self, number: u64, alive: &Arc<()>, position: u64, bytes: u64) {
        let Some(segment) = self.log.geometry.segment_of(position) else { return };
        let pin = || Pin { alive: Arc::downgrade(alive), segments: BTreeSet::new(), bytes: 0 };
        let pin = self.pins.entry(number).or_insert_with(pin);
        pin.segments.insert(segment);
        pin.bytes = pin.bytes.saturating_add(bytes);
    }

    /// Damage of what was read is damage, where nobody can have moved it.
    pub(crate) fn present(&self, error: Error, number: u64) -> Error {
        definite(error, Damaged::Message(number), 0)
    }
}

fn definite(error: Error, what: Damaged, position: u64) -> Error {
    match error {
        Error::Moved => Error::Damaged(Damage { what, position }),
        error => error,
    }
}

/// Where the records of a message are, and what they take.
pub(crate) fn records_of(message: &Message, geometry: &Geometry) -> Vec<(u64, u64)> {
    let mut records = Vec::new();
    let pieces = message.pieces(geometry.piece_bytes);
    let mut piece = 0;
    for (first, count) in message.place.runs(pieces) {
        for within in 0..count.min(pieces - piece) {
            let position = first.saturating_add(u64::from(within).saturating_mul(geometry.stride()));
            records.push((position, record::stored_bytes(message.piece_length(piece, geometry.piece_bytes))));
            piece += 1;
        }
    }
    if message.digest != 0 {
        records.push((message.digest, record::stored_bytes(u64::from(message.digest_bytes))));
    }
    records
}

/// The id of a message that was given none: its number, so mixed that nobody can tell one from another.
pub(crate) fn id_of(identity: u128, number: u64) -> u128 {
    let mixed = number ^ identity as u64;
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let mixed = mixed ^ (mixed >> 31);
    identity >> 64 << 64 | u128::from(mixed)
}

/// The number that such an id was made of.
fn number_of(identity: u128, id: u128) -> Option<u64> {
    if id >> 64 != identity >> 64 {
        return None;
    }
    let mixed = id as u64;
    let mixed = (mixed ^ (mixed >> 31) ^ (mixed >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    let mixed = (mixed ^ (mixed >> 27) ^ (mixed >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    Some((mixed ^ (mixed >> 30) ^ (mixed >> 60)) ^ identity as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_lead_back_to_numbers() {
        let identity = 0x1234_5678_9abc_def0_0fed_cba9_8765_4321;
        for number in [1, 2, 3, 1 << 32, u64::MAX] {
            assert_eq!(number_of(identity, id_of(identity, number)), Some(number));
        }
        assert_ne!(id_of(identity, 1) + 1, id_of(identity, 2));
    }
}
