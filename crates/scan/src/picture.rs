//! Pictures that look alike: `fuzzy_img#hash`, a hash of 64 bits of what a picture shows.
//!
//! It is the perceptual hash of the `imagehash` package ("pHash"): the picture in grey (ITU-R 601), 32 by 32 pixels large by
//! Lanczos' filter, is transformed by a DCT-II in both directions; of the 8 by 8 lowest frequencies each is a bit, whether
//! it is above their median. In arithmetic of 32 bits, with the libraries that clamscan has it from, since what is nearly
//! at the median depends on both.
//!
//! A picture has to be whole and decoded for that, so this is done at the end, and only where some signature has such a
//! hash. Bounds: [`PICTURE_BYTES_MAX`] of file, [`PIXELS_MAX`] pixels, [`DECODER_BYTES_MAX`] for the decoder. What is larger, or
//! cannot be decoded (damaged, or of a kind that is not known here), has no hash. Unlike other bounds these are not told when
//! they are reached: every photograph would be a finding.

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use image::imageops::{FilterType, resize};
use image::{DynamicImage, GrayImage, ImageReader, Limits, Luma};
use rustdct::DctPlanner;

use crate::signature::Reject;

/// The longest file.
pub(crate) const PICTURE_BYTES_MAX: u64 = 4 << 20;
/// The most pixels.
const PIXELS_MAX: u64 = 4 << 20;
/// The most pixels in a row or a column.
const SIDE_PIXELS_MAX: u32 = 1 << 16;
/// The most that a decoder may allocate beside the picture.
const DECODER_BYTES_MAX: u64 = 48 << 20;

/// The side of the small picture.
const SIDE: usize = 32;
/// The frequencies that count, in each direction.
const LOW: usize = 8;

/// A subsignature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Picture {
    /// Which one it is.
    pub(crate) sub: u8,
    pub(crate) hash: u64,
}

impl Picture {
    /// Whether a subsignature is one.
    pub(crate) fn looks_like_one(text: &str) -> bool {
        text.starts_with("fuzzy_img#")
    }

    /// Reads `fuzzy_img#hash[#distance]`. As with clamscan the distance has to be 0.
    pub(crate) fn parse(text: &str, sub: u8) -> Result<Picture, Reject> {
        let mut fields = text.split('#').skip(1);
        let digits = fields
            .next()
            .filter(|digits| digits.len() == 16)
            .ok_or_else(|| "a hash that does not have 64 bits".to_owned())?;
        let hash = u64::from_str_radix(digits, 16).map_err(|_| format!("{digits:?} is no hash"))?;
        match (fields.next(), fields.next()) {
            (None | Some("" | "0"), None) => Ok(Picture { sub, hash }),
            (Some(distance), None) if distance.parse::<u32>().is_ok() => {
                Err(Reject::Unsupported("pictures at a distance other than 0".to_owned()))
            }
            _ => Err(Reject::Malformed(format!("{text:?} is no hash of a picture"))),
        }
    }
}

/// The hash of a picture, if it has one, and how much work that was, in pixels.
pub(crate) fn look(bytes: &[u8]) -> (Option<u64>, u64) {
    // Decoders are others' work: should one of them fail on a picture, that is the end of the picture alone.
    let decoded = catch_unwind(AssertUnwindSafe(|| decode(bytes))).unwrap_or_default();
    let pixels = decoded.as_ref().map_or(0, |picture| u64::from(picture.width()) * u64::from(picture.height()));
    (decoded.map(hash), pixels)
}

fn decode(bytes: &[u8]) -> Option<DynamicImage> {
    let reader = || ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok();
    let (width, height) = reader()?.into_dimensions().ok()?;
    if width == 0 || height == 0 || u64::from(width) * u64::from(height) > PIXELS_MAX {
        return None;
    }
    let mut limits = Limits::no_limits();
    limits.max_image_width = Some(SIDE_PIXELS_MAX);
    limits.max_image_height = Some(SIDE_PIXELS_MAX);
    limits.max_alloc = Some(DECODER_BYTES_MAX);
    let mut reader = reader()?;
    reader.limits(limits);
    reader.decode().ok()
}

fn hash(picture: DynamicImage) -> u64 {
    let small = resize(&grey(picture), SIDE as u32, SIDE as u32, FilterType::Lanczos3);
    let mut values: Vec<f32> = small.as_raw().iter().map(|&grey| f32::from(grey) / 255.0).collect();
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
    let grey = |[red, green, blue]: [u8; 3]| {
        (0.299 * f32::from(red) + 0.587 * f32::from(green) + 0.114 * f32::from(blue)).round() as u8
    };
    GrayImage::from_fn(colours.width(), colours.height(), |x, y| Luma([grey(colours.get_pixel(x, y).0)]))
}

/// The columns, each transformed, as rows.
fn transformed_columns(values: &[f32]) -> Vec<f32> {
    let transform = DctPlanner::new().plan_dct2(SIDE);
    let mut scratch = vec![0.0; transform.get_scratch_len()];
    let mut rows = Vec::with_capacity(SIDE * SIDE);
    for column in 0..SIDE {
        let mut row: Vec<f32> = values.iter().skip(column).step_by(SIDE).copied().collect();
        transform.process_dct2_with_scratch(&mut row, &mut scratch);
        rows.extend(row);
    }
    rows
}

/// Looks at pictures from `data`, for a fuzzer: no picture stops a scan.
#[doc(hidden)]
pub fn fuzz_picture(data: &[u8]) {
    let decoded = decode(data);
    let pixels = decoded.as_ref().map_or(0, |picture| u64::from(picture.width()) * u64::from(picture.height()));
    assert!(pixels <= PIXELS_MAX);
    assert_eq!(look(data).0, decoded.map(hash));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read_and_what_is_none_is_told() {
        assert_eq!(
            Picture::parse("fuzzy_img#af2ad01ed42993c7", 1),
            Ok(Picture { sub: 1, hash: 0xaf2a_d01e_d429_93c7 })
        );
        assert_eq!(Picture::parse("fuzzy_img#AF2AD01ED42993C7#0", 0).map(|one| one.hash), Ok(0xaf2a_d01e_d429_93c7));
        assert!(matches!(Picture::parse("fuzzy_img#af2ad01ed42993c7#1", 0), Err(Reject::Unsupported(_))));
        for wrong in [
            "fuzzy_img#",
            "fuzzy_img#abcdef#0",
            "fuzzy_img#gf2ad01ed42993c7",
            "fuzzy_img#af2ad01ed42993c7#x",
            "fuzzy_img#af2ad01ed42993c7#0#0",
        ] {
            assert!(matches!(Picture::parse(wrong, 0), Err(Reject::Malformed(_))), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_picture_or_too_large_has_no_hash() {
        assert_eq!(look(b"no picture"), (None, 0));
        assert_eq!(look(b"\x89PNG\r\n\x1a\n"), (None, 0));
        let mut head = b"BM".to_vec();
        for value in [54u32, 0, 54, 40, 60_000, 60_000, 1 | 24 << 16, 0, 0, 0, 0, 0, 0] {
            head.extend(value.to_le_bytes());
        }
        assert_eq!(look(&head), (None, 0));
    }
}
