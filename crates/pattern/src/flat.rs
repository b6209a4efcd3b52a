//! Arrays of plain values that are owned, or lie in a file that somebody has mapped.
//!
//! Tables that are built once and only read afterwards are [`Flat`] arrays: to their users slices, wherever they lie. A
//! [`Writer`] writes arrays one after the other, a [`Reader`] gives them back in the same order, without copying: what
//! is read lies in the [`Owner`]'s bytes. What the arrays mean, and whether the numbers in them make sense, is their
//! users' business; this module vouches for their places, their alignment and the digest of the whole.
//!
//! # Format
//! Position-independent, in the byte order of the machine, which is marked in it.
//! ```text
//!  head     "SLUICEDB", version u32, byte order mark u32, padding to 64 bytes
//!  arrays   each at a multiple of 64 bytes, zeros between them
//!  places   for each array: offset u64, bytes u64, bytes of an element u64; at a multiple of 64 bytes
//!  foot     offset of the places u64, number of them u64, XXH3-128 of everything before the digest
//! ```
//! The foot is written last, so what was not written to its end is not read. XXH3 finds what chance, a disk or a broken
//! copy changes, at the speed of memory: a large file has to be read before the first mail. It is no defence against
//! somebody who may write the file; the file has to lie where nobody else may.

use std::fmt;
use std::io::{self, Write};
use std::ops::Deref;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use twox_hash::XxHash3_128;
use yoke::Yoke;

/// Raised whenever the order or the meaning of arrays changes.
const VERSION: u32 = 15;
const MAGIC: [u8; 8] = *b"SLUICEDB";
/// Differs when it is read in another byte order.
const ORDER: u32 = 0x0102_0304;
/// The alignment of every array: a cache line.
const LINE: usize = 64;
/// The most arrays of a file.
const PLACES_MAX: u64 = 1 << 16;

/// Bytes that stay where they are for as long as anybody holds them.
pub type Owner = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// An array that is only read.
pub struct Flat<T: Plain>(Yoke<&'static [T], Owner>);

/// A value of which all bytes are known and any bytes are one.
pub trait Plain: Pod + Send + Sync {}

impl<T: Pod + Send + Sync> Plain for T {}

struct Owned<T>(Vec<T>);

impl<T: Plain> AsRef<[u8]> for Owned<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

impl<T: Plain> From<Vec<T>> for Flat<T> {
    fn from(items: Vec<T>) -> Flat<T> {
        let owner: Owner = Arc::new(Owned(items));
        Flat(Yoke::attach_to_cart(owner, |owner| bytemuck::cast_slice(owner.as_ref())))
    }
}

impl<T: Plain> Deref for Flat<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        self.0.get()
    }
}

impl<T: Plain> Clone for Flat<T> {
    fn clone(&self) -> Flat<T> {
        Flat(self.0.clone())
    }
}

impl<T: Plain> Default for Flat<T> {
    fn default() -> Flat<T> {
        Vec::new().into()
    }
}

impl<T: Plain + fmt::Debug> fmt::Debug for Flat<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Why a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// It is no such file, or does not have its end.
    Incomplete,
    /// It was written by another version of the program, or on another kind of machine.
    Version,
    /// Its digest is not that of its content.
    Digest,
    /// Its content is not what a program of this version writes.
    Malformed,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unfit::Incomplete => "not a compiled database, or only a part of one",
            Unfit::Version => "compiled by another version, or on another kind of machine",
            Unfit::Digest => "damaged: its digest is another",
            Unfit::Malformed => "damaged: its tables do not fit together",
        })
    }
}

impl std::error::Error for Unfit {}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Head {
    magic: [u8; 8],
    version: u32,
    order: u32,
    padding: [u8; LINE - 16],
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Place {
    offset: u64,
    bytes: u64,
    element_bytes: u64,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Foot {
    places: u64,
    count: u64,
    digest: [u8; 16],
}

/// Where the digest stands in the foot.
const DIGEST_BYTES: usize = 16;

/// Writes arrays, one after the other; [`Writer::finish`] makes them readable.
pub struct Writer<'w> {
    sink: &'w mut dyn Write,
    digest: XxHash3_128,
    written: u64,
    places: Vec<Place>,
}

impl<'w> Writer<'w> {
    /// Begins a file.
    ///
    /// # Errors
    /// Those of the sink, here and below.
    pub fn new(sink: &'w mut dyn Write) -> io::Result<Writer<'w>> {
        let mut writer = Writer { sink, digest: XxHash3_128::new(), written: 0, places: Vec::new() };
        writer.put(bytemuck::bytes_of(&Head {
            magic: MAGIC,
            version: VERSION,
            order: ORDER,
            padding: [0; LINE - 16],
        }))?;
        Ok(writer)
    }

    /// Writes an array.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn array<T: Plain>(&mut self, items: &[T]) -> io::Result<()> {
        let bytes = bytemuck::cast_slice::<T, u8>(items);
        let element_bytes = size_of::<T>() as u64;
        self.places.push(Place { offset: self.written, bytes: bytes.len() as u64, element_bytes });
        self.put(bytes)
    }

    /// Writes texts, to be read by [`Reader::texts`].
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn texts<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) -> io::Result<()> {
        let (mut all, mut ends) = (Vec::new(), Vec::new());
        for text in texts {
            all.extend_from_slice(text.as_bytes());
            ends.push(all.len() as u64);
        }
        self.array(&ends)?;
        self.array(&all)
    }

    /// Writes what makes the file whole.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn finish(mut self) -> io::Result<()> {
        let places = std::mem::take(&mut self.places);
        let mut foot = Foot { places: self.written, count: places.len() as u64, digest: [0; DIGEST_BYTES] };
        self.put(bytemuck::cast_slice(&places))?;
        let before = bytemuck::bytes_of(&foot).len() - DIGEST_BYTES;
        self.digest.write(&bytemuck::bytes_of(&foot)[..before]);
        foot.digest = self.digest.finish_128().to_le_bytes();
        self.sink.write_all(bytemuck::bytes_of(&foot))?;
        self.sink.flush()
    }

    /// Writes bytes, and zeros up to the next line.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let padding = bytes.len().next_multiple_of(LINE) - bytes.len();
        for bytes in [bytes, &[0; LINE][..padding]] {
            self.digest.write(bytes);
            self.sink.write_all(bytes)?;
            self.written += bytes.len() as u64;
        }
        Ok(())
    }
}

/// Gives arrays back in the order in which they were written.
pub struct Reader {
    owner: Owner,
    places: Flat<Place>,
    next: usize,
}

impl Reader {
    /// Checks a file as a whole: its ends, its digest and the places of its arrays. The bytes must begin at a multiple of
    /// 64, as those of a mapped file and of [`Aligned`] do.
    ///
    /// # Errors
    /// If it is not a whole file of this version.
    pub fn open(owner: Owner) -> Result<Reader, Unfit> {
        let bytes = (*owner).as_ref();
        let (body, foot) =
            bytes.split_at_checked(bytes.len().wrapping_sub(size_of::<Foot>())).ok_or(Unfit::Incomplete)?;
        let head: Head = body.get(..LINE).map(bytemuck::pod_read_unaligned).ok_or(Unfit::Incomplete)?;
        let foot: Foot = bytemuck::pod_read_unaligned(foot);
        if head.magic != MAGIC {
            return Err(Unfit::Incomplete);
        }
        if (head.version, head.order) != (VERSION, ORDER) {
            return Err(Unfit::Version);
        }
        let length = foot.count.checked_mul(size_of::<Place>() as u64).filter(|_| foot.count <= PLACES_MAX);
        let end = length.and_then(|length| foot.places.checked_add(length.next_multiple_of(LINE as u64)));
        if end != Some(body.len() as u64) {
            return Err(Unfit::Incomplete);
        }
        if XxHash3_128::oneshot(&bytes[..bytes.len() - DIGEST_BYTES]).to_le_bytes() != foot.digest {
            return Err(Unfit::Digest);
        }
        let place =
            Place { offset: foot.places, bytes: length.unwrap_or_default(), element_bytes: size_of::<Place>() as u64 };
        let places = cut(&owner, place)?;
        Ok(Reader { owner, places, next: 0 })
    }

    /// The next array.
    ///
    /// # Errors
    /// If there is none, or one of other elements.
    pub fn array<T: Plain>(&mut self) -> Result<Flat<T>, Unfit> {
        let place = *self.places.get(self.next).ok_or(Unfit::Malformed)?;
        self.next += 1;
        cut(&self.owner, place)
    }

    /// The next array, which has exactly so many elements.
    ///
    /// # Errors
    /// As [`Reader::array`], or if it has not.
    pub fn values<T: Plain, const N: usize>(&mut self) -> Result<[T; N], Unfit> {
        self.array::<T>()?.as_ref().try_into().map_err(|_| Unfit::Malformed)
    }

    /// The next texts.
    ///
    /// # Errors
    /// As [`Reader::array`], or if they are no texts.
    pub fn texts(&mut self) -> Result<Vec<String>, Unfit> {
        let (ends, all) = (self.array::<u64>()?, self.array::<u8>()?);
        let mut start = 0;
        let texts = ends.iter().map(|&end| {
            let end = usize::try_from(end).map_err(|_| Unfit::Malformed)?;
            let text = all.get(std::mem::replace(&mut start, end)..end).ok_or(Unfit::Malformed)?;
            Ok(std::str::from_utf8(text).map_err(|_| Unfit::Malformed)?.to_owned())
        });
        texts.collect()
    }
}

/// Puts the digest of what a file holds now into its foot: for those who try out what a changed file does.
pub fn reseal(bytes: &mut [u8]) {
    if let Some(at) = bytes.len().checked_sub(DIGEST_BYTES) {
        let digest = XxHash3_128::oneshot(&bytes[..at]).to_le_bytes();
        bytes[at..].copy_from_slice(&digest);
    }
}

/// The array at a place.
fn cut<T: Plain>(owner: &Owner, place: Place) -> Result<Flat<T>, Unfit> {
    if place.element_bytes != size_of::<T>() as u64 {
        return Err(Unfit::Malformed);
    }
    let yoke = Yoke::try_attach_to_cart(owner.clone(), |owner| {
        let end = place.offset.checked_add(place.bytes).ok_or(Unfit::Malformed)?;
        let range = usize::try_from(place.offset).ok().zip(usize::try_from(end).ok()).ok_or(Unfit::Malformed)?;
        let bytes = owner.as_ref().get(range.0..range.1).ok_or(Unfit::Malformed)?;
        bytemuck::try_cast_slice(bytes).map_err(|_| Unfit::Malformed)
    })?;
    Ok(Flat(yoke))
}

/// Bytes in memory that begin at a multiple of 64, to be read as a file.
pub struct Aligned {
    lines: Vec<AlignedLine>,
    length: usize,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct AlignedLine([u8; LINE]);

impl Aligned {
    /// A copy.
    pub fn new(bytes: &[u8]) -> Aligned {
        let mut lines = vec![AlignedLine([0; LINE]); bytes.len().div_ceil(LINE)];
        bytemuck::cast_slice_mut::<AlignedLine, u8>(&mut lines)[..bytes.len()].copy_from_slice(bytes);
        Aligned { lines, length: bytes.len() }
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).expect("memory");
        writer.array(&[1u32, 2, 3]).expect("memory");
        writer.texts(["one", "", "three"]).expect("memory");
        writer.array::<u64>(&[]).expect("memory");
        writer.array(&[[7u8; 20]; 5]).expect("memory");
        writer.finish().expect("memory");
        bytes
    }

    fn open(bytes: &[u8]) -> Result<Reader, Unfit> {
        Reader::open(Arc::new(Aligned::new(bytes)))
    }

    #[test]
    fn what_was_written_is_read_where_it_lies() {
        let bytes = written();
        let mut reader = open(&bytes).expect("a file");
        let numbers = reader.array::<u32>().expect("an array");
        assert_eq!(*numbers, [1, 2, 3]);
        assert_eq!(reader.texts().expect("texts"), ["one", "", "three"]);
        assert!(reader.array::<u64>().expect("an array").is_empty());
        assert_eq!(reader.values::<[u8; 20], 5>().expect("an array"), [[7; 20]; 5]);
        assert!(reader.array::<u8>().is_err());
        drop(reader);
        assert_eq!(*numbers.clone(), [1, 2, 3]);
    }

    #[test]
    fn an_array_of_other_elements_is_refused() {
        let mut reader = open(&written()).expect("a file");
        assert_eq!(reader.array::<u64>().err(), Some(Unfit::Malformed));
        let mut reader = open(&written()).expect("a file");
        assert_eq!(reader.values::<u32, 2>().err(), Some(Unfit::Malformed));
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_refused() {
        let bytes = written();
        for length in 0..bytes.len() {
            assert!(open(&bytes[..length]).is_err(), "{length}");
        }
        assert!(open(&[bytes.as_slice(), &[0]].concat()).is_err());
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&changed).is_err(), "{bit}");
        }
    }
}
