//! Interface of one filter in a chain, and its parameters.

use crate::frame::codec::Progress;

/// `DecodeParms` of one filter (tables 8 and 14).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parameters {
    pub predictor: u64,
    pub colors: u64,
    pub bits: u64,
    pub columns: u64,
    pub early_change: bool,
    /// The crypt filter that encrypts nothing.
    pub is_identity: bool,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { predictor: 1, colors: 1, bits: 8, columns: 1, early_change: true, is_identity: false }
    }
}

/// One filter at work. As [`Decoder`], but told of the end.
pub(super) trait Layer: Send {
    /// Takes a prefix of `input` and fills a prefix of `output`, which has room for 4 KiB. `last` marks the end of the
    /// input. With empty input it writes buffered output.
    fn decode(&mut self, input: &[u8], last: bool, output: &mut [u8]) -> Progress;
}
