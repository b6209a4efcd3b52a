//! An encrypted member, and the candidates that may open it.
//!
//! What tells whether a key is right is one byte of the traditional cipher and two of AES: with many candidates some are
//! right by chance. So the first data are decrypted and decoded with each that seems right, and the one is taken whose
//! content agrees with the checksum. Where the beginning is not all, all of the data are read and a [`Proof`] is made of
//! their checksum; content that looks like something decides only where no proof can be made.
//!
//! Sizes and checksum in front of the data mean nothing where a descriptor follows: the descriptor is looked for, the first
//! one before a record that has the length of the data.
//!
//! Bounds: [`WHOLE_BYTES_MAX`] of data and what is in front of them, [`SAMPLE_BYTES`] where the beginning suffices; one
//! decoder at a time; one candidate or one slice of a proof a turn. A proof, and the search for a descriptor, are paid for
//! like the making of a key.

use stream::{FileType, Limits};
use zlib_rs::crc32::crc32;

use super::cipher::{Cipher, Scheme};
use super::descriptor::{self, DESCRIPTOR_BYTES_MAX, Descriptor};
use super::methods;
use super::proof::{Proof, Proved};
use super::record::Header;
use super::unsized_raw::{SIGNATURE, up_to_signature};
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
    proof: Option<(Likelihood, Box<Proof>)>,
    /// Whether the descriptor is still looked for.
    seeks: bool,
    descriptor: Option<Descriptor>,
    /// Whether all of the data are wanted.
    whole: bool,
}

/// How likely it is that a candidate is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likelihood {
    /// The checksum disagrees.
    Doubtful,
    Possible,
    /// The content looks like something.
    Likely,
    /// The checksum agrees.
    Sure,
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
        let seeks = header.has_descriptor();
        let data_bytes = header.compressed.checked_sub(overhead);
        if data_bytes.is_none() && !seeks {
            return None;
        }
        let mut header = Header { method, compressed: data_bytes.unwrap_or(0), ..header };
        if seeks {
            header.crc = 0;
        }
        Some(Lock {
            scheme,
            header,
            data_bytes,
            sample: Vec::new(),
            turn: 0,
            best: None,
            proof: None,
            seeks,
            descriptor: None,
            whole: false,
        })
    }

    /// Takes the bytes by which passwords are judged; none once they are complete.
    pub fn take(&mut self, input: &[u8], passwords: &Passwords) -> usize {
        if self.seeks {
            let count = self.seek(input, passwords);
            if count > 0 {
                return count;
            }
        }
        let wanted = match self.whole_bytes().filter(|_| self.whole) {
            Some(whole) => whole,
            None => self.scheme.head_bytes() + self.sample_bytes(),
        };
        let count = input.len().min(wanted.saturating_sub(self.sample.len()));
        self.sample.extend_from_slice(&input[..count]);
        count
    }

    /// Takes bytes up to the next record, and looks for the descriptor in front of it.
    fn seek(&mut self, input: &[u8], passwords: &Passwords) -> usize {
        let bytes_max = WHOLE_BYTES_MAX as usize + self.overhead() + DESCRIPTOR_BYTES_MAX + SIGNATURE;
        let room = bytes_max.saturating_sub(self.sample.len());
        let (count, is_signed) = up_to_signature(&self.sample, &input[..input.len().min(room)]);
        self.sample.extend_from_slice(&input[..count]);
        let is_over = count == 0 || !passwords.grants(count as u64);
        if is_signed || is_over {
            let end = self.sample.len() - if is_signed { SIGNATURE } else { 0 };
            self.trust(descriptor::ending_at(&self.sample, end));
        }
        self.seeks &= !is_over;
        count
    }

    /// Takes the values of the descriptor for those of the header, if it has room for a head and a tail.
    fn trust(&mut self, descriptor: Option<Descriptor>) {
        let Some(found) = descriptor else { return };
        let Some(data) = found.compressed.checked_sub(self.overhead() as u64) else { return };
        let flags = self.header.flags & !Header::DESCRIPTOR;
        let (crc, uncompressed) = (found.crc, found.uncompressed);
        self.header = Header { flags, crc, uncompressed, compressed: data, ..self.header };
        self.scheme = self.scheme.with_checksum(crc);
        self.data_bytes = Some(data);
        self.descriptor = Some(found);
        self.seeks = false;
    }

    /// The descriptor behind the data, if it has been found.
    pub const fn descriptor(&self) -> Option<Descriptor> {
        self.descriptor
    }

    /// Bytes of the head and the tail.
    const fn overhead(&self) -> usize {
        self.scheme.head_bytes() + self.scheme.tail_bytes()
    }

    /// Whether the end of the data is known, or shows in them.
    const fn has_end(&self) -> bool {
        const ENDS_BY_ITSELF: u16 = 8;
        self.data_bytes.is_some() || self.header.method == ENDS_BY_ITSELF
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
        if let Some((likelihood, proof)) = self.proof.take() {
            return self.prove(likelihood, proof, passwords, work);
        }
        if !self.has_end() {
            return Tried::Done;
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
                Some(Likelihood::Sure) => return self.found(cipher),
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
            self.proof = Some((likelihood, Box::new(Proof::new(cipher, decoder, self.header.crc))));
            return Tried::More;
        }
        self.keep(likelihood, cipher)
    }

    fn prove(
        &mut self,
        likelihood: Likelihood,
        mut proof: Box<Proof>,
        passwords: &Passwords,
        work: &mut usize,
    ) -> Tried {
        let head = self.scheme.head_bytes();
        let whole = self.whole_bytes().filter(|whole| *whole <= self.sample.len());
        let Some(whole) = whole else {
            // The input ends before the data do: nothing proves anything.
            let looks_right = likelihood >= Likelihood::Likely;
            return if looks_right { self.keep(likelihood, proof.into_cipher()) } else { self.next() };
        };
        let (data, tail) = self.sample[head..whole].split_at(whole - self.overhead());
        match proof.go_on(data, tail, passwords, work) {
            Proved::More => {
                self.proof = Some((likelihood, proof));
                Tried::More
            }
            Proved::Right => self.found(proof.into_cipher()),
            // Content of some length that looks like something may be damaged.
            Proved::Wrong if likelihood >= Likelihood::Likely && data.len() > SAMPLE_BYTES => {
                self.keep(Likelihood::Doubtful, proof.into_cipher())
            }
            Proved::Wrong => self.next(),
            Proved::Damaged if likelihood < Likelihood::Likely => self.keep(Likelihood::Doubtful, proof.into_cipher()),
            Proved::Damaged | Proved::Unknown => self.keep(likelihood, proof.into_cipher()),
        }
    }

    /// Nothing speaks against this candidate: the right one, if no better one is found.
    fn keep(&mut self, likelihood: Likelihood, cipher: Cipher) -> Tried {
        if self.best.as_ref().is_none_or(|(best, ..)| likelihood > *best) {
            self.best = Some((likelihood, self.turn, cipher));
        }
        match (self.scheme, likelihood) {
            (_, Likelihood::Likely) | (Scheme::Aes { .. }, Likelihood::Possible) => Tried::Done,
            _ => self.next(),
        }
    }

    fn found(&mut self, cipher: Cipher) -> Tried {
        self.best = Some((Likelihood::Sure, self.turn, cipher));
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
            Some(true) => Likelihood::Sure,
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
