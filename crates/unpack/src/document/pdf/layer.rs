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

/// An entry of `DecodeParms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Predictor,
    Colors,
    Bits,
    Columns,
    EarlyChange,
    /// `Name`, of a crypt filter: 1 if it is `Identity`.
    Identity,
}

impl Parameters {
    /// Sets an entry; `None` is its default.
    pub fn set(&mut self, entry: Entry, value: Option<u64>) {
        let default = Parameters::default();
        match entry {
            Entry::Predictor => self.predictor = value.unwrap_or(default.predictor),
            Entry::Colors => self.colors = value.unwrap_or(default.colors),
            Entry::Bits => self.bits = value.unwrap_or(default.bits),
            Entry::Columns => self.columns = value.unwrap_or(default.columns),
            Entry::EarlyChange => self.early_change = value.is_none_or(|value| value != 0),
            Entry::Identity => self.is_identity = value == Some(1),
        }
    }
}

/// An entry whose value is another object.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryReference {
    /// The filter's place in the array.
    pub index: usize,
    pub entry: Entry,
    /// The number of the object.
    pub number: u64,
}

/// One filter at work. As [`Decoder`], but told of the end.
pub(super) trait Layer: Send {
    /// Takes a prefix of `input` and fills a prefix of `output`, which has room for 4 KiB. `last` marks the end of the
    /// input. With empty input it writes buffered output.
    fn decode(&mut self, input: &[u8], last: bool, output: &mut [u8]) -> Progress;
}
