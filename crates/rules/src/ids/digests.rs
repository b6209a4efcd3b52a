//! Digests of a file while it comes, for rules that ask whether a list has one: `filemd5`, `filesha1`, `filesha256`.

use digest::lanes::{BLOCK_BYTES, Block};
use digest::{md5, sha1, sha256};

/// The kinds of digests that rules ask for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kinds {
    pub md5: bool,
    pub sha1: bool,
    pub sha256: bool,
}

impl Kinds {
    /// Whether there is one.
    pub fn is_any(self) -> bool {
        self.md5 || self.sha1 || self.sha256
    }
}

/// Digests of one file.
#[derive(Debug)]
pub(super) struct Digests {
    md5: Option<md5::State>,
    sha1: Option<sha1::State>,
    sha256: Option<sha256::State>,
    /// Bytes that are no whole block.
    rest: Vec<u8>,
    length: u64,
}

impl Digests {
    pub fn new(kinds: Kinds) -> Digests {
        Digests {
            md5: kinds.md5.then_some(md5::INITIAL),
            sha1: kinds.sha1.then_some(sha1::INITIAL),
            sha256: kinds.sha256.then_some(sha256::INITIAL),
            rest: Vec::with_capacity(BLOCK_BYTES),
            length: 0,
        }
    }

    /// Takes a piece.
    pub fn update(&mut self, mut piece: &[u8]) {
        self.length = self.length.saturating_add(piece.len() as u64);
        if !self.rest.is_empty() {
            let (own, behind) = piece.split_at(piece.len().min(BLOCK_BYTES - self.rest.len()));
            self.rest.extend_from_slice(own);
            piece = behind;
            if let Ok(block) = Block::try_from(&self.rest[..]) {
                self.rest.clear();
                self.compress(&[block]);
            }
        }
        let (blocks, rest) = piece.as_chunks::<BLOCK_BYTES>();
        self.compress(blocks);
        self.rest.extend_from_slice(rest);
    }

    fn compress(&mut self, blocks: &[Block]) {
        if let Some(state) = &mut self.md5 {
            md5::compress(&mut [(state, blocks)]);
        }
        if let Some(state) = &mut self.sha1 {
            sha1::compress(&mut [(state, blocks)]);
        }
        if let Some(state) = &mut self.sha256 {
            sha256::compress(&mut [(state, blocks)]);
        }
    }

    /// The digests of what has come.
    pub fn finish(self) -> Vec<Vec<u8>> {
        let (rest, length) = (&self.rest[..], self.length);
        let digests = [
            self.md5.map(|state| md5::finish(state, rest, length).to_vec()),
            self.sha1.map(|state| sha1::finish(state, rest, length).to_vec()),
            self.sha256.map(|state| sha256::finish(state, rest, length).to_vec()),
        ];
        digests.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_the_same_however_a_file_is_cut() {
        let file: Vec<u8> = (0..1000_u32).flat_map(u32::to_be_bytes).collect();
        let wanted = vec![md5::digest(&file).to_vec(), sha1::digest(&file).to_vec(), sha256::digest(&file).to_vec()];
        for size in [1, 7, 63, 64, 65, 4000] {
            let mut digests = Digests::new(Kinds { md5: true, sha1: true, sha256: true });
            file.chunks(size).for_each(|piece| digests.update(piece));
            assert_eq!(digests.finish(), wanted, "{size}");
        }
    }
}
