//! Common part of the lines of all kinds: reasons for a refusal, levels, numbers.

/// The functionality level of ClamAV whose signatures are understood: that of version 1.4.
pub const FUNCTIONALITY_LEVEL: u32 = 216;

/// Why icons are not compared.
pub(crate) const ICONS: &str = "icons are not compared: how they are measured is nowhere written down";

/// Why a line makes no signature.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reject {
    /// The line is not in the grammar, and clamscan does not load a file with it either.
    Malformed(String),
    /// The line asks for something that is not supported, or that means nothing.
    Unsupported(String),
    /// The signature is for other versions of the engine.
    OtherEngine,
}

impl From<String> for Reject {
    fn from(reason: String) -> Reject {
        Reject::Malformed(reason)
    }
}

/// Checks the functionality levels at the end of a line: `[:min[:max]]`. As with clamscan an empty one is 0.
pub(crate) fn check_levels(levels: &[&str]) -> Result<(), Reject> {
    let level = |index: usize, absent: u32| match levels.get(index).map(|text| text.trim()) {
        None => Ok(absent),
        Some("") => Ok(0),
        Some(text) => number(text).map_err(|error| Reject::Unsupported(format!("functionality level: {error}"))),
    };
    let (min, max) = (level(0, 0)?, level(1, u32::MAX)?);
    if levels.len() > 2 {
        return Err(Reject::Malformed("more fields than the format has".to_owned()));
    }
    if (min..=max).contains(&FUNCTIONALITY_LEVEL) { Ok(()) } else { Err(Reject::OtherEngine) }
}

/// A decimal number.
pub(crate) fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = if digits { text.parse().ok() } else { None };
    parsed.ok_or_else(|| format!("{text:?} is not a number in range"))
}
