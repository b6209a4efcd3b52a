//! RunLengthDecode (ISO 32000-2, 7.4.5).

use super::layer::Layer;
use crate::frame::codec::{Progress, Told};

const RUN_MAX: usize = 128;

/// Counts, each with bytes to copy or one to repeat, up to 128.
#[derive(Default)]
pub(super) enum RunLength {
    #[default]
    Count,
    Copy(usize),
    Repeat(usize),
}

impl Layer for RunLength {
    fn decode(&mut self, input: &[u8], _: bool, output: &mut [u8]) -> Progress {
        let mut wrote = 0;
        for (at, &byte) in input.iter().enumerate() {
            if wrote + RUN_MAX > output.len() {
                return Progress { wrote, ..Progress::took(at) };
            }
            let next;
            (next, wrote) = match (&self, byte) {
                (RunLength::Count, 128) => return Progress { taken: at + 1, wrote, told: Told::Over },
                (RunLength::Count, 0..128) => (RunLength::Copy(usize::from(byte) + 1), wrote),
                (RunLength::Count, _) => (RunLength::Repeat(257 - usize::from(byte)), wrote),
                (RunLength::Copy(left), _) => {
                    output[wrote] = byte;
                    (if *left > 1 { RunLength::Copy(left - 1) } else { RunLength::Count }, wrote + 1)
                }
                (RunLength::Repeat(count), _) => {
                    output[wrote..wrote + count].fill(byte);
                    (RunLength::Count, wrote + count)
                }
            };
            *self = next;
        }
        Progress { wrote, ..Progress::took(input.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_copied_and_repeated() {
        let mut output = [0; 4096];
        let progress = RunLength::default().decode(b"\x02abc\xfed\x80x", true, &mut output);
        assert_eq!(progress, Progress { taken: 7, wrote: 6, told: Told::Over });
        assert_eq!(&output[..6], b"abcddd");
    }
}
