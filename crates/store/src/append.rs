//! Storing a message in pieces, as it arrives. It is invisible before a transaction points to it; a message without
//! such a transaction is garbage.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::device::Device;
use crate::error::{Error, Refused};
use crate::log::Record;
use crate::read::Content;
use crate::record::{self, Kind};
use crate::state::{MESSAGE_BYTES_MAX, Message, Place};
use crate::volume::{Volume, id_of};

/// A message that is coming in. Holds at most one piece of it, and eight bytes for each piece in the log.
#[derive(Debug)]
pub struct Append {
    number: u64,
    id: u128,
    size: u64,
    mode: Mode,
    alive: Arc<()>,
    /// The opening of the volume that it belongs to.
    opened: u32,
}

#[derive(Debug)]
enum Mode {
    Writing {
        piece: Vec<u8>,
        positions: Vec<u64>,
    },
    /// A message with this id exists: the content has to be equal.
    Comparing(Content),
}

/// A message that has come in whole: to be [delivered](crate::Transaction::deliver).
#[derive(Debug, Clone)]
pub struct Sealed {
    pub(crate) number: u64,
    pub(crate) message: Message,
    /// Whether the message existed before.
    pub(crate) is_known: bool,
    /// The opening of the volume that it belongs to: in another one its records may be something else.
    pub(crate) opened: u32,
    /// Keeps the segments of the message in place while the value exists.
    pub(crate) _alive: Arc<()>,
}

impl Sealed {
    /// The id of the message.
    pub fn id(&self) -> u128 {
        self.message.id
    }

    /// The number of the message.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its size, in bytes.
    pub fn size(&self) -> u64 {
        self.message.size
    }

    /// Returns whether a message with this id and this content existed before: nothing was written.
    pub fn is_known(&self) -> bool {
        self.is_known
    }
}

impl<D: Device> Volume<D> {
    /// Begins a message. Without an id it gets one; with a known id, its content has to equal the stored one.
    pub fn append(&mut self, id: Option<u128>) -> Result<Append, Error> {
        self.writable()?;
        let number = self.next_number;
        self.next_number += 1;
        let known = id.and_then(|id| self.message_by_id(id));
        let mode = match known.and_then(|known| Some(Content::new(known, self.working.message(known)?))) {
            Some(content) => Mode::Comparing(content),
            None => Mode::Writing { piece: Vec::new(), positions: Vec::new() },
        };
        let id = id.unwrap_or_else(|| id_of(self.geometry().identity, number));
        Ok(Append {
            number: known.unwrap_or(number),
            id,
            size: 0,
            mode,
            alive: Arc::default(),
            opened: self.log.opened,
        })
    }

    /// Adds bytes to a message.
    pub fn write(&mut self, append: &mut Append, bytes: &[u8]) -> Result<(), Error> {
        self.belongs(append.opened)?;
        let size = append.size.checked_add(bytes.len() as u64).filter(|&size| size <= MESSAGE_BYTES_MAX);
        let size = size.ok_or(Refused::TooLarge)?;
        match &mut append.mode {
            Mode::Comparing(content) => match self.compare(content, append.size, bytes) {
                Err(Error::Moved) => {
                    // Compaction came between.
                    let message = self.working.message(append.number).ok_or(Refused::NoSuchMessage)?;
                    *content = Content::new(append.number, message);
                    let compared = self.compare(content, append.size, bytes);
                    compared.map_err(|error| self.present(error, append.number))?;
                }
                compared => compared?,
            },
            Mode::Writing { piece, positions } => {
                let piece_bytes = self.log.geometry.piece_bytes as usize;
                let mut rest = bytes;
                while !rest.is_empty() {
                    let (taken, more) = rest.split_at(rest.len().min(piece_bytes - piece.len()));
                    piece.extend_from_slice(taken);
                    rest = more;
                    if piece.len() == piece_bytes {
                        let record = piece_record(append.number, positions.len(), piece);
                        positions.push(self.append_record(record, &append.alive)?);
                        piece.clear();
                    }
                }
            }
        }
        append.size = size;
        Ok(())
    }

    /// Ends a message. `digest` is any data of the host for later use without the message (envelope, structure), at
    /// most one piece long; messages of one `thread` have the same number there.
    pub fn seal(&mut self, append: Append, digest: &[u8], thread: u64) -> Result<Sealed, Error> {
        let Append { number, id, size, mode, alive, opened } = append;
        self.belongs(opened)?;
        let (piece, mut positions) = match mode {
            Mode::Writing { piece, positions } => (piece, positions),
            Mode::Comparing(content) if content.message().size != size => {
                return Err(Refused::KnownIdOtherContent.into());
            }
            Mode::Comparing(content) => {
                let message = content.message().clone();
                return Ok(Sealed { number, message, is_known: true, opened, _alive: alive });
            }
        };
        if digest.len() > self.geometry().piece_bytes as usize {
            return Err(Refused::TooLarge.into());
        }
        if !piece.is_empty() {
            positions.push(self.append_record(piece_record(number, positions.len(), &piece), &alive)?);
        }
        let mut message = Message {
            id,
            size,
            thread,
            links: 0,
            digest: 0,
            digest_bytes: digest.len() as u32,
            place: Place::of(&positions, self.geometry().stride()),
        };
        if !digest.is_empty() {
            let record = Record { kind: Kind::Digest, index: 0, payload: digest, ..piece_record(number, 0, &[]) };
            message.digest = self.append_record(record, &alive)?;
        }
        Ok(Sealed { number, message, is_known: false, opened, _alive: alive })
    }

    /// Reads a message before any transaction points to it, as [`Volume::read`] reads a visible one.
    pub fn read_sealed(&mut self, sealed: &Sealed, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.belongs(sealed.opened)?;
        self.log.write_out()?;
        let mut content = Content::new(sealed.number, &sealed.message);
        let mut done = 0;
        while done < buffer.len() {
            match self.read_piece(&mut content, offset.saturating_add(done as u64), &mut buffer[done..])? {
                0 => break,
                length => done += length,
            }
        }
        Ok(done)
    }

    /// Refuses messages that were begun before the volume was opened again.
    pub(crate) fn belongs(&self, opened: u32) -> Result<(), Error> {
        if opened == self.log.opened { Ok(()) } else { Err(Error::Failed) }
    }

    fn append_record(&mut self, record: Record<'_>, alive: &Arc<()>) -> Result<u64, Error> {
        let (number, keep) = (record.subject, self.reserve());
        let position = match self.log.append(Record { keep, ..record }) {
            Err(Error::Full) if self.is_worth_reclaiming() => {
                self.reclaim()?;
                self.log.append(Record { keep: self.reserve(), ..record })?
            }
            outcome => outcome?,
        };
        self.pin(number, alive, position, record::stored_bytes(record.payload.len() as u64));
        Ok(position)
    }

    fn compare(&self, content: &mut Content, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let mut stored = vec![0; bytes.len().min(self.geometry().piece_bytes as usize)];
        let mut done = 0;
        while done < bytes.len() {
            let wanted = stored.len().min(bytes.len() - done);
            let length = self.read_piece(content, offset + done as u64, &mut stored[..wanted])?;
            if length == 0 || stored[..length] != bytes[done..done + length] {
                return Err(Refused::KnownIdOtherContent.into());
            }
            done += length;
        }
        Ok(())
    }
}

fn piece_record(number: u64, index: usize, payload: &[u8]) -> Record<'_> {
    Record {
        kind: Kind::Piece,
        last: false,
        subject: number,
        index: index as u32,
        payload,
        ends_commit: false,
        keep: 0,
    }
}
