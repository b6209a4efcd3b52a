//! Room in which bytes wait: streams share it piece by piece, and what of a stream waits comes at its end and is taken from its
//! front.
//!
//! Pieces are linked by their numbers, so nothing is allocated but the pieces themselves. One that has its memory keeps it until
//! the room is [trimmed](Room::trim).

use alloc::vec::Vec;

use crate::lanes::BLOCK_BYTES;

/// Length of a piece. It is a multiple of a block, so no block spans two pieces if blocks are taken before.
pub(crate) const PIECE_BYTES: usize = 16 << 10;

const _: () = assert!(PIECE_BYTES.is_multiple_of(BLOCK_BYTES), "no block lies in two pieces");

/// So many pieces at the most.
#[derive(Debug)]
pub(crate) struct Room {
    pieces: Vec<Piece>,
    /// First unused piece.
    spare: Option<usize>,
    /// Number of unused pieces.
    spares: usize,
    pieces_max: usize,
    /// How many have memory.
    held: usize,
    /// The most that streams had at once since the room was trimmed.
    busiest: usize,
}

#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    next: Option<usize>,
}

/// Waiting bytes of one stream. They belong to one room, which has to get them back.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// The first and the last piece.
    ends: Option<(usize, usize)>,
    /// How much of the first is taken.
    at: usize,
    len: usize,
}

impl Waiting {
    /// How much waits.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}

impl Room {
    /// Makes an empty room of this size.
    pub(crate) const fn new(bytes_max: usize) -> Room {
        Room { pieces: Vec::new(), spare: None, spares: 0, pieces_max: bytes_max / PIECE_BYTES, held: 0, busiest: 0 }
    }

    /// Frees the memory of unused pieces, except as many as were in use since the last call.
    pub(crate) fn trim(&mut self) {
        let in_use = self.in_use();
        let mut kept = self.busiest - in_use;
        let mut next = self.spare;
        while let Some(place) = next {
            let piece = &mut self.pieces[place];
            next = piece.next;
            if piece.bytes.capacity() == 0 {
                continue;
            }
            match kept.checked_sub(1) {
                Some(left) => kept = left,
                None => {
                    piece.bytes = Vec::new();
                    self.held -= 1;
                }
            }
        }
        self.busiest = in_use;
    }

    /// Returns the number of held bytes.
    pub(crate) const fn held_bytes(&self) -> usize {
        self.held * PIECE_BYTES
    }

    /// Whether no more than one part in so many is free.
    pub(crate) const fn is_short(&self, parts: usize) -> bool {
        self.free_pieces() <= self.pieces_max / parts
    }

    /// Whether so much more of a stream can wait.
    pub(crate) fn has_room(&self, waiting: &Waiting, bytes: usize) -> bool {
        let last = waiting.ends.map_or(0, |(_, last)| PIECE_BYTES - self.pieces[last].bytes.len());
        bytes <= last + self.free_pieces() * PIECE_BYTES
    }

    /// More waits of a stream. There must be room.
    pub(crate) fn push(&mut self, waiting: &mut Waiting, mut bytes: &[u8]) {
        waiting.len += bytes.len();
        while !bytes.is_empty() {
            let last = match waiting.ends {
                Some((_, last)) if self.pieces[last].bytes.len() < PIECE_BYTES => last,
                _ => self.add(waiting),
            };
            let piece = &mut self.pieces[last].bytes;
            let (now, after) = bytes.split_at(bytes.len().min(PIECE_BYTES - piece.len()));
            piece.extend_from_slice(now);
            bytes = after;
        }
    }

    /// The next contiguous bytes of a stream.
    pub(crate) fn front(&self, waiting: &Waiting) -> &[u8] {
        waiting.ends.map_or(&[], |(first, _)| &self.pieces[first].bytes[waiting.at..])
    }

    /// The first `count` bytes of that wait no more.
    pub(crate) fn take(&mut self, waiting: &mut Waiting, count: usize) {
        let Some((first, last)) = waiting.ends else { return };
        waiting.at += count;
        waiting.len -= count;
        if waiting.at < self.pieces[first].bytes.len() {
            return;
        }
        waiting.at = 0;
        waiting.ends = self.pieces[first].next.filter(|_| first != last).map(|next| (next, last));
        self.give_back(first);
    }

    /// Nothing of a stream waits any more.
    pub(crate) fn clear(&mut self, waiting: &mut Waiting) {
        while waiting.len > 0 {
            self.take(waiting, self.front(waiting).len());
        }
    }

    const fn free_pieces(&self) -> usize {
        self.pieces_max - self.pieces.len() + self.spares
    }

    /// Adds a piece to the end of a stream's list.
    fn add(&mut self, waiting: &mut Waiting) -> usize {
        if self.spare.is_none() {
            self.pieces.push(Piece { bytes: Vec::new(), next: None });
            self.give_back(self.pieces.len() - 1);
        }
        let place = self.spare.expect("one has been made");
        let piece = &mut self.pieces[place];
        if piece.bytes.capacity() == 0 {
            piece.bytes.reserve_exact(PIECE_BYTES);
            self.held += 1;
        }
        self.spare = piece.next.take();
        self.spares -= 1;
        self.busiest = self.busiest.max(self.in_use());
        if let Some((_, last)) = waiting.ends {
            self.pieces[last].next = Some(place);
        }
        waiting.ends = Some((waiting.ends.map_or(place, |(first, _)| first), place));
        place
    }

    /// Pieces that streams have.
    const fn in_use(&self) -> usize {
        self.pieces.len() - self.spares
    }

    /// Puts a place on top of the free ones: it is used again first, being the warmest.
    fn give_back(&mut self, place: usize) {
        let piece = &mut self.pieces[place];
        piece.bytes.clear();
        piece.next = self.spare.replace(place);
        self.spares += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_in_order_and_room_is_used_again() {
        let mut room = Room::new(4 * PIECE_BYTES);
        let mut streams = [(Waiting::default(), 0_u8, 0_u8), (Waiting::default(), 100, 100)];
        for round in 0..2_000_usize {
            let (waiting, next, expected) = &mut streams[round % 2];
            let count = round * 31 % 9_000;
            if room.has_room(waiting, count) {
                let bytes: Vec<u8> = (0..count).map(|n| next.wrapping_add(n as u8)).collect();
                *next = next.wrapping_add(count as u8);
                room.push(waiting, &bytes);
            }
            let front = room.front(waiting);
            let count = front.len().min(round * 17 % 8_000);
            for &byte in &front[..count] {
                assert_eq!(byte, *expected);
                *expected = expected.wrapping_add(1);
            }
            room.take(waiting, count);
            assert!(room.held_bytes() <= 4 * PIECE_BYTES);
        }
        streams.iter_mut().for_each(|(waiting, ..)| room.clear(waiting));
        assert_eq!(room.free_pieces(), 4);
    }

    #[test]
    fn the_memory_of_pieces_is_kept_as_long_as_it_is_used() {
        let (mut room, mut waiting) = (Room::new(8 * PIECE_BYTES), Waiting::default());
        assert_eq!(room.held_bytes(), 0);
        let mut held = |pieces: usize, room: &mut Room| {
            room.push(&mut waiting, &alloc::vec![1; pieces * PIECE_BYTES]);
            room.clear(&mut waiting);
            room.trim();
            room.held_bytes() / PIECE_BYTES
        };
        // As many as were in use before are kept, and those that were not are freed.
        assert_eq!([5, 2, 3, 0, 0].map(|pieces| held(pieces, &mut room)), [5, 2, 3, 0, 0]);
        room.push(&mut waiting, &[1; PIECE_BYTES + 1]);
        room.trim();
        assert_eq!((room.held_bytes(), waiting.len()), (2 * PIECE_BYTES, PIECE_BYTES + 1));
    }
}
