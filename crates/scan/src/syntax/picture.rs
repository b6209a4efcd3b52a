//! Pictures that look alike: `fuzzy_img#hash`, a hash of 64 bits of what a picture shows.
//!
//! It is the perceptual hash of the `imagehash` package ("pHash"): the picture in grey (ITU-R 601), 32 by 32 pixels large by
//! Lanczos' filter, is transformed by a DCT-II in both directions; of the 8 by 8 lowest frequencies each is a bit, whether
//! it is above their median. In arithmetic of 32 bits, with the libraries that clamscan has it from, since what is nearly
//! at the median depends on both.
//!
//! A picture has to be whole and decoded for that, so this is done at the end, and only where some signature has such a
//! hash. Bounds: [`PICTURE_BYTES_MAX`] of file, `PIXELS_MAX` pixels, `DECODER_BYTES_MAX` for the decoder. What is larger, or
//! cannot be decoded (damaged, or of a kind that is not known here), has no hash; nor have those beyond what the
//! pictures of an inspection may have together (`Limits::pixels_max`). Unlike other bounds these are not told when they are reached:
//! every photograph, and every mail with an album, would be a finding.

#[cfg_attr(not(feature = "pictures"), path = "picture/hidden.rs")]
mod shown;

use crate::syntax::line::Reject;
#[cfg(feature = "pictures")]
pub use shown::fuzz_picture;
pub(crate) use shown::{Shown, decoded, hash};

/// The longest file.
pub(crate) const PICTURE_BYTES_MAX: u64 = 4 << 20;

/// A subsignature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Picture {
    /// Number of the subsignature.
    pub(crate) sub: u8,
    pub(crate) hash: u64,
}

impl Picture {
    /// Whether a subsignature is a picture hash.
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
            _ if cfg!(not(feature = "pictures")) => {
                Err(Reject::Unsupported("pictures, without the feature of that name".to_owned()))
            }
            (None | Some("" | "0"), None) => Ok(Picture { sub, hash }),
            (Some(distance), None) if distance.parse::<u32>().is_ok() => {
                Err(Reject::Unsupported("pictures at a distance other than 0".to_owned()))
            }
            _ => Err(Reject::Malformed(format!("{text:?} is no hash of a picture"))),
        }
    }
}

#[cfg(all(test, feature = "pictures"))]
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
}
