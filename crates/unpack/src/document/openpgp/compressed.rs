//! Compressed data of a message: an octet for the algorithm, and a stream made with it.
//!
//! Bounds: those of the decoder.

use stream::Limits;

use super::TRUNCATED;
use crate::codec::deflate::Deflate;
use crate::frame::codec::{Decoder, Fault, Progress, Told};
use crate::stream::bzip2::Bzip2;
use crate::stream::zlib::Zlib;

const DATA: Fault = Fault::fatal(stream::Class::Malformed, "Heuristics.Malformed.OpenPgp.Data");

/// A decoder of such data.
pub(crate) struct Packed {
    limits: Limits,
    method: Option<Method>,
}

enum Method {
    Stored,
    Zip(Box<Deflate>),
    Zlib(Zlib),
    Bzip2(Box<Bzip2>),
}

impl Packed {
    pub fn new(limits: &Limits) -> Packed {
        Packed { limits: limits.clone(), method: None }
    }

    fn begin(&mut self, input: &[u8]) -> Progress {
        let Some(algorithm) = input.first() else { return Progress::took(0) };
        let (method, told) = match algorithm {
            0 => (Method::Stored, Told::Begin(None)),
            1 => (Method::Zip(Box::new(Deflate::new(DATA.name, TRUNCATED.name))), Told::Begin(None)),
            // These tell their beginning themselves.
            2 => (Method::Zlib(Zlib::new()), Told::Nothing),
            3 => (Method::Bzip2(Box::new(Bzip2::single(&self.limits))), Told::Nothing),
            _ => return Progress::fault(1, DATA),
        };
        self.method = Some(method);
        Progress::tells(1, told)
    }

    fn decoder(&self) -> Option<&dyn Decoder> {
        match self.method.as_ref()? {
            Method::Stored => None,
            Method::Zip(deflate) => Some(&**deflate),
            Method::Zlib(zlib) => Some(zlib),
            Method::Bzip2(bzip2) => Some(&**bzip2),
        }
    }
}

impl Decoder for Packed {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Progress {
        match &mut self.method {
            None => self.begin(input),
            Some(Method::Stored) => {
                let count = input.len().min(output.len());
                output[..count].copy_from_slice(&input[..count]);
                Progress { taken: count, wrote: count, told: Told::Nothing }
            }
            Some(Method::Zip(deflate)) => deflate.decode(input, output),
            Some(Method::Zlib(zlib)) => zlib.decode(input, output),
            Some(Method::Bzip2(bzip2)) => bzip2.decode(input, output),
        }
    }

    fn missing(&self) -> Option<Fault> {
        match &self.method {
            None => Some(TRUNCATED),
            Some(Method::Stored) => None,
            Some(_) => self.decoder().and_then(Decoder::missing),
        }
    }

    fn surplus(&self) -> &[u8] {
        self.decoder().map(Decoder::surplus).unwrap_or_default()
    }
}
