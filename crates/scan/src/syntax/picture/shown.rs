//! A picture as it is shown: decoded, and its hash.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use image::{DynamicImage, GrayImage, ImageReader, Limits};
use rustdct::Dct2;
use rustdct::algorithm::Type2And3SplitRadix;
use rustdct::algorithm::type2and3_butterflies::{Type2And3Butterfly8, Type2And3Butterfly16};

use crate::allowance::Allowance;

/// The most pixels.
const PIXELS_MAX: u64 = 2 << 20;
/// The most pixels in a row or a column.
const SIDE_PIXELS_MAX: u32 = 1 << 16;
/// The most that a decoder may allocate beside the picture.
const DECODER_BYTES_MAX: u64 = 48 << 20;

/// Least cost of looking at a picture, of the allowance.
const PIXELS_MIN: u64 = 16 << 10;
/// How far Lanczos' filter reaches.
const LANCZOS: f32 = 3.0;

/// The side of the small picture.
const SIDE: usize = 32;
/// The frequencies that count, in each direction.
const LOW: usize = 8;

/// A picture that was decoded.
pub(crate) type Shown = DynamicImage;

/// A picture, if it can be decoded and the allowance lets it, and how much work that was.
pub(crate) fn decoded(bytes: &[u8], allowance: &Allowance) -> (Option<DynamicImage>, u64) {
    // Decoders are others' work: should one of them fail on a picture, that is the end of the picture alone.
    let looked = catch_unwind(AssertUnwindSafe(|| {
        let pixels = pixels(bytes)?;
        // A decoder that fails at the last pixel has decoded the others.
        let granted = allowance.grants_pixels(pixels.max(PIXELS_MIN));
        Some((granted.then(|| decode(bytes)).flatten(), pixels))
    }));
    let (picture, pixels) = looked.ok().flatten().unwrap_or_default();
    (picture, bytes.len() as u64 + pixels)
}

/// How many pixels it says that it has, unless they are too many.
fn pixels(bytes: &[u8]) -> Option<u64> {
    let (width, height) = reader(bytes)?.into_dimensions().ok()?;
    let pixels = u64::from(width) * u64::from(height);
    (1..=PIXELS_MAX).contains(&pixels).then_some(pixels)
}

fn reader(bytes: &[u8]) -> Option<ImageReader<Cursor<&[u8]>>> {
    ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()
}

fn decode(bytes: &[u8]) -> Option<DynamicImage> {
    let mut limits = Limits::no_limits();
    limits.max_image_width = Some(SIDE_PIXELS_MAX);
    limits.max_image_height = Some(SIDE_PIXELS_MAX);
    limits.max_alloc = Some(DECODER_BYTES_MAX);
    let mut reader = reader(bytes)?;
    reader.limits(limits);
    reader.decode().ok()
}

/// The hash of a picture. Work for as much fuel as it has pixels.
pub(crate) fn hash(picture: DynamicImage) -> u64 {
    let small = shrunk(&grey(picture));
    let mut values: Vec<f32> = small.iter().map(|&grey| f32::from(grey) / 255.0).collect();
    for _ in 0..2 {
        values = transformed_columns(&values);
    }
    let low: Vec<f32> = values.chunks(SIDE).take(LOW).flat_map(|row| &row[..LOW]).copied().collect();
    let mut sorted = low.clone();
    sorted.sort_by(f32::total_cmp);
    let median = (sorted[LOW * LOW / 2 - 1] + sorted[LOW * LOW / 2]) / 2.0;
    low.iter().fold(0, |bits, &value| bits << 1 | u64::from(value > median))
}

/// Without what is transparent.
fn grey(picture: DynamicImage) -> GrayImage {
    let colours = picture.into_rgb8();
    let (width, height) = colours.dimensions();
    let grey = |pixel: &[u8]| {
        let value = 0.299 * f32::from(pixel[0]) + 0.587 * f32::from(pixel[1]) + 0.114 * f32::from(pixel[2]);
        // What `round` does, which is a call of a function for each pixel on most machines.
        let whole = value as u8;
        whole + u8::from(value - f32::from(whole) >= 0.5)
    };
    let pixels = colours.as_raw().chunks_exact(3).map(grey).collect();
    GrayImage::from_raw(width, height, pixels).expect("one value for each pixel")
}

/// Shrinks a picture as `imageops::resize` does by Lanczos' filter, the same to the last bit: the sums are those of one
/// channel out of four, in the same order, and whole rows are added at a time.
fn shrunk(picture: &GrayImage) -> Vec<u8> {
    let (width, height) = picture.dimensions();
    if (width, height) == (SIDE as u32, SIDE as u32) {
        return picture.as_raw().clone();
    }
    let rows: Vec<&[u8]> = picture.as_raw().chunks_exact(width as usize).collect();
    let mut narrow = vec![0.0; width as usize];
    let mut small = vec![0; SIDE * SIDE];
    for (weights, small) in weights(height).zip(small.chunks_exact_mut(SIDE)) {
        narrow.fill(0.0);
        for (weight, row) in weights.of.iter().zip(&rows[weights.first..]) {
            narrow.iter_mut().zip(*row).for_each(|(sum, &value)| *sum += f32::from(value) * weight);
        }
        for (weights, small) in self::weights(width).zip(small) {
            let mut sum = 0.0;
            weights.of.iter().zip(&narrow[weights.first..]).for_each(|(weight, value)| sum += value * weight);
            *small = sum.clamp(0.0, 255.0).round() as u8;
        }
    }
    small
}

/// Weights of the pixels of a row or column in one pixel of the small picture.
struct Weights {
    first: usize,
    of: Vec<f32>,
}

/// The weights of each pixel of the small picture, of a side of that length.
fn weights(side: u32) -> impl Iterator<Item = Weights> {
    let ratio = side as f32 / SIDE as f32;
    let scale = ratio.max(1.0);
    let reach = LANCZOS * scale;
    (0..SIDE).map(move |pixel| {
        let centre = (pixel as f32 + 0.5) * ratio;
        let first = ((centre - reach).floor() as i64).clamp(0, i64::from(side) - 1);
        let end = ((centre + reach).ceil() as i64).clamp(first + 1, i64::from(side));
        let mut of: Vec<f32> = (first..end).map(|at| lanczos((at as f32 - (centre - 0.5)) / scale)).collect();
        let mut sum = 0.0;
        of.iter().for_each(|weight| sum += weight);
        of.iter_mut().for_each(|weight| *weight /= sum);
        Weights { first: first as usize, of }
    })
}

fn lanczos(x: f32) -> f32 {
    fn sinc(x: f32) -> f32 {
        let a = x * std::f32::consts::PI;
        if x == 0.0 { 1.0 } else { a.sin() / a }
    }
    if x.abs() < LANCZOS { sinc(x) * sinc(x / LANCZOS) } else { 0.0 }
}

/// The columns, each transformed, as rows.
fn transformed_columns(values: &[f32]) -> Vec<f32> {
    // The planner would make the same, and bring its transforms of all other lengths.
    let half = Arc::new(Type2And3Butterfly16::new());
    let transform = Type2And3SplitRadix::new(half, Arc::new(Type2And3Butterfly8::new()));
    let mut rows = Vec::with_capacity(SIDE * SIDE);
    for column in 0..SIDE {
        let mut row: Vec<f32> = values.iter().skip(column).step_by(SIDE).copied().collect();
        transform.process_dct2(&mut row);
        rows.extend(row);
    }
    rows
}

/// Looks at pictures from `data`, for a fuzzer: no picture stops a scan.
#[doc(hidden)]
pub fn fuzz_picture(data: &[u8]) {
    let decoded = pixels(data).and_then(|_| decode(data));
    let pixels = decoded.as_ref().map_or(0, |picture| u64::from(picture.width()) * u64::from(picture.height()));
    assert!(pixels <= PIXELS_MAX);
    let (picture, work) = self::decoded(data, &Allowance::default());
    assert!(work <= data.len() as u64 + PIXELS_MAX);
    assert_eq!(picture.map(hash), decoded.map(hash));
}

#[cfg(test)]
mod tests {
    use image::Luma;
    use image::imageops::{FilterType, resize};

    use super::*;

    #[test]
    fn what_is_no_picture_or_too_large_has_no_hash() {
        let hash_of = |bytes: &[u8]| decoded(bytes, &Allowance::default()).0.map(hash);
        assert_eq!(hash_of(b"no picture"), None);
        assert_eq!(hash_of(b"\x89PNG\r\n\x1a\n"), None);
        let mut head = b"BM".to_vec();
        for value in [54u32, 0, 54, 40, 60_000, 60_000, 1 | 24 << 16, 0, 0, 0, 0, 0, 0] {
            head.extend(value.to_le_bytes());
        }
        assert_eq!(hash_of(&head), None);
    }

    /// Values that do not repeat.
    fn noise(width: u32, height: u32) -> GrayImage {
        let mut seed = width << 16 | height;
        GrayImage::from_fn(width, height, |_, _| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Luma([(seed >> 24) as u8])
        })
    }

    #[test]
    fn shrinking_is_that_of_the_library_to_the_last_bit() {
        for (width, height) in [(1, 1), (7, 31), (32, 32), (32, 33), (33, 32), (300, 20), (64, 1), (1, 500), (411, 233)]
        {
            let picture = noise(width, height);
            let expected = resize(&picture, SIDE as u32, SIDE as u32, FilterType::Lanczos3);
            assert_eq!(shrunk(&picture), expected.into_raw(), "{width} x {height}");
        }
    }

    #[test]
    fn what_is_not_granted_is_not_decoded() {
        let mut file = Cursor::new(Vec::new());
        noise(200, 200).write_to(&mut file, image::ImageFormat::Png).expect("a picture");
        let bytes = file.into_inner();
        let allowance = Allowance::new(100_000, 0);
        let hashes: Vec<bool> = (0..4).map(|_| decoded(&bytes, &allowance).0.is_some()).collect();
        assert_eq!(hashes, [true, true, false, false], "40,000 pixels each");
        let mut broken = bytes.clone();
        let middle = bytes.len() / 2;
        broken[middle] ^= 1;
        let allowance = Allowance::new(50_000, 0);
        assert!(decoded(&broken, &allowance).0.is_none());
        assert!(decoded(&bytes, &allowance).0.is_none(), "what fails late has cost as much");
    }
}
