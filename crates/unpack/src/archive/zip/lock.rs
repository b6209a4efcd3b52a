//! An encrypted member, and the candidates that may open it.
//!
//! What tells whether a key is right is one byte of the traditional cipher and two of AES: with many candidates some are
//! right by chance. So the first data are decrypted and decoded with each that seems right, and the one is taken whose
//! content agrees with the checksum or looks like something. Where the beginning says neither, all of the data are
//! read and a [`Proof`] is made of their checksum.
//!
//! Bounds: [`WHOLE_BYTES_MAX`] of data and what is in front of them, [`SAMPLE_BYTES`] where the beginning suffices; one
//! decoder at a time; one candidate or one slice of a proof a turn. A proof is paid for like the making of a key.

use stream::{FileType, Limits};
use zlib_rs::crc32::crc32;

use super::cipher::{Cipher, Scheme};
use super::methods;
use super::proof::{Proof, Proved};
use super::record::Header;
use crate::frame::codec::{Decoder, Progress, Told};
use crate::frame::password::Passwords;
use crate::recognise;

/// Data that a candidate is judged by.
const SAMPLE_BYTES: usize = 1024;

/// Data that are read for a proof, at most.
const WHOLE_BYTES_MAX: u64 = 1 << 20;

/// Least cost of an attempt, however cheap its cipher is.
const ATTEMPT_MIN: usize = 64;

/// Content that is looked at.
const CONTENT_BYTES: usize = 4096;

/// A member on trial.
pub(super) struct Lock {
    scheme: Scheme,
    /// Header of the encrypted member.
    header: Header,
    /// Bytes of data, if that is known.
    data_bytes: Option<u64>,
    sample: Vec<u8>,
    turn: usize,
    best: Option<(Likelihood, usize, Cipher)>,
    /// The candidate of this turn seems right, and all of the data shall prove it.
    proof: Option<Box<Proof>>,
    /// Whether all of the data are wanted.
    whole: bool,
}

/// How likely it is that a candidate is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likelihood {
    /// The checksum disagrees.
    Doubtful,
    Possible,
    /// The checksum agrees, or the content looks like something.
    Likely,
}

/// How a turn went.
pub(super) enum Tried {
    /// Further candidates remain.
    More,
    /// The work that is granted is used up; or all were tried.
    Refused,
    Done,
}

impl Lock {
    /// The trial of a member with this header, if it can be opened at all.
    pub fn new(header: Header, scheme: Scheme, method: u16) -> Option<Lock> {
        let overhead = (scheme.head_bytes() + scheme.tail_bytes()) as u64;
        let is_sized = !header.has_descriptor() || header.compressed != 0;
        let data_bytes = if is_sized { Some(header.compressed.checked_sub(overhead)?) } else { None };
        // A method without an end of its own needs a length.
        const ENDS_BY_ITSELF: u16 = 8;
        if data_bytes.is_none() && method != ENDS_BY_ITSELF {
            return None;
        }
        let header = Header { method, compressed: data_bytes.unwrap_or(0), ..header };
        Some(Lock { scheme, header, data_bytes, sample: Vec::new(), turn: 0, best: None, proof: None, whole: false })
    }

    /// Takes the bytes by which passwords are judged; none once they are complete.
    pub fn take(&mut self, input: &[u8]) -> usize {
        let wanted = match self.whole_bytes().filter(|_| self.whole) {
            Some(whole) => whole,
            None => self.scheme.head_bytes() + self.sample_bytes(),
        };
        let count = input.len().min(wanted.saturating_sub(self.sample.len()));
        self.sample.extend_from_slice(&input[..count]);
        count
    }

    /// Data that a candidate is judged by at first.
    fn sample_bytes(&self) -> usize {
        self.data_bytes.map_or(SAMPLE_BYTES, |data| data.min(SAMPLE_BYTES as u64) as usize)
    }

    /// Bytes of the head, all data and the tail, where a proof can be made of them.
    fn whole_bytes(&self) -> Option<usize> {
        let data = self.data_bytes.filter(|data| *data <= WHOLE_BYTES_MAX)?;
        (self.header.crc != 0 || self.scheme.tail_bytes() > 0)
            .then_some(self.scheme.head_bytes() + data as usize + self.scheme.tail_bytes())
    }

    /// Tries the next candidate, or goes on with its proof; the cost is added to `work`.
    pub fn attempt(&mut self, passwords: &Passwords, limits: &Limits, work: &mut usize) -> Tried {
        if let Some(proof) = self.proof.take() {
            return self.prove(proof, passwords, work);
        }
        let Some(password) = passwords.get(self.turn) else { return Tried::Done };
        if matches!(self.scheme, Scheme::Aes { .. }) && !passwords.grants(self.scheme.cost()) {
            return Tried::Refused;
        }
        *work = work.saturating_add((self.scheme.cost() as usize).max(ATTEMPT_MIN));
        let Some((head, data)) = self.sample.split_at_checked(self.scheme.head_bytes()) else { return Tried::Done };
        let data = &data[..data.len().min(self.sample_bytes())];
        if let Some(cipher) = self.scheme.open(password, head) {
            *work = work.saturating_add(data.len()).saturating_add(CONTENT_BYTES);
            match self.judge(cipher.clone(), data, limits) {
                None => {}
                Some(Likelihood::Likely) => return self.found(cipher),
                Some(likelihood) => return self.ask_for_proof(likelihood, cipher, passwords, limits),
            }
        }
        self.next()
    }

    /// The beginning does not tell whether this candidate is right.
    fn ask_for_proof(
        &mut self,
        likelihood: Likelihood,
        cipher: Cipher,
        passwords: &Passwords,
        limits: &Limits,
    ) -> Tried {
        let decoder = self.whole_bytes().and_then(|whole| {
            let decoder = self.decoder(limits)?;
            passwords.grants(whole as u64).then_some(decoder)
        });
        if let Some(decoder) = decoder {
            self.whole = true;
            self.proof = Some(Box::new(Proof::new(cipher, decoder, self.header.crc)));
            return Tried::More;
        }
        self.keep(likelihood, cipher)
    }

    fn prove(&mut self, mut proof: Box<Proof>, passwords: &Passwords, work: &mut usize) -> Tried {
        let head = self.scheme.head_bytes();
        let whole = self.whole_bytes().filter(|whole| *whole == self.sample.len());
        let Some(data) = whole.map(|whole| &self.sample[head..whole - self.scheme.tail_bytes()]) else {
            // The input ends before the data do: nothing proves anything.
            return self.next();
        };
        let tail = &self.sample[head + data.len()..];
        match proof.go_on(data, tail, passwords, work) {
            Proved::More => {
                self.proof = Some(proof);
                Tried::More
            }
            Proved::Right => self.found(proof.into_cipher()),
            Proved::Wrong => self.next(),
            Proved::Damaged => self.keep(Likelihood::Doubtful, proof.into_cipher()),
            Proved::Unknown => self.keep(Likelihood::Possible, proof.into_cipher()),
        }
    }

    /// Nothing speaks against this candidate: the right one, if no better one is found.
    fn keep(&mut self, likelihood: Likelihood, cipher: Cipher) -> Tried {
        if self.best.as_ref().is_none_or(|(best, ..)| likelihood > *best) {
            self.best = Some((likelihood, self.turn, cipher));
        }
        match (self.scheme, likelihood) {
            (Scheme::Aes { .. }, Likelihood::Possible) => Tried::Done,
            _ => self.next(),
        }
    }

    fn found(&mut self, cipher: Cipher) -> Tried {
        self.best = Some((Likelihood::Likely, self.turn, cipher));
        Tried::Done
    }

    fn next(&mut self) -> Tried {
        self.turn += 1;
        Tried::More
    }

    /// Judges the content that `cipher` makes of `data`; `None` if it makes no sense.
    fn judge(&self, mut cipher: Cipher, data: &[u8], limits: &Limits) -> Option<Likelihood> {
        // Where the input ends before the sample does, the decoder is to say so.
        let is_whole = self.data_bytes == Some(data.len() as u64) || data.len() < SAMPLE_BYTES;
        let mut data = data.to_vec();
        cipher.decrypt(&mut data);
        let mut decoder = self.decoder(limits)?;
        let (mut content, mut length, mut at, mut is_over) = ([0; CONTENT_BYTES], 0, 0, false);
        // Empty input says that no more follows.
        while length < CONTENT_BYTES && !is_over && (is_whole || at < data.len()) {
            let progress = decoder.decode(&data[at..], &mut content[length..]);
            (at, length) = (at + progress.taken, length + progress.wrote);
            match progress.told {
                Told::Fault(fault) if fault.fatal => return None,
                Told::Over => is_over = true,
                Told::Nothing if progress == Progress::took(0) => break,
                _ => {}
            }
        }
        let content = &content[..length];
        let checksum = (is_over && self.header.crc != 0).then(|| crc32(0, content) == self.header.crc);
        Some(match checksum {
            Some(false) if matches!(self.scheme, Scheme::Traditional { .. }) => return None,
            Some(false) => Likelihood::Doubtful,
            None if matches!(recognise(content), FileType::Binary | FileType::Empty) => Likelihood::Possible,
            _ => Likelihood::Likely,
        })
    }

    fn decoder(&self, limits: &Limits) -> Option<Box<dyn Decoder>> {
        match self.header.method {
            0 => Some(Box::new(Stored { left: self.header.compressed })),
            _ => methods::decoder(&self.header, limits),
        }
    }

    /// Bytes taken, to be given back.
    pub fn sample(&self) -> &[u8] {
        &self.sample
    }

    /// The decoder of the encrypted content, if a candidate opens it.
    pub fn open(self, passwords: &mut Passwords, limits: &Limits) -> Option<super::unlocked::Unlocked> {
        let decoder = self.decoder(limits)?;
        let (_, turn, cipher) = self.best?;
        passwords.opened(turn);
        Some(super::unlocked::Unlocked::new(self.scheme, cipher, self.data_bytes, decoder))
    }
}

/// Content that is encrypted and not compressed.
struct Stored {
    left: u64,
}

impl Decoder for Stored {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        if self.left == 0 {
            return Progress::tells(0, Told::Over);
        }
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let count = input.len().min(output.len()).min(left);
        output[..count].copy_from_slice(&input[..count]);
        self.left -= count as u64;
        Progress { wrote: count, ..Progress::took(count) }
    }

    fn missing(&self) -> Option<crate::frame::codec::Fault> {
        Some(super::unlocked::TRUNCATED)
    }
}
