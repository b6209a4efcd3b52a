//! Opens a file and prints how many bytes of content it holds: `open FILE` by the reader of its type, through the one
//! verb, `open --library NAME FILE` by the library that the reader stands on, called whole. `bench/unpack` runs it.

use std::io::Read;
use std::process::exit;

use stream::{Event, Fuel, Limits, Spool, Window};

/// As large as the driver's windows are by default.
const WINDOW_BYTES: usize = 4096;
/// Bytes that the libraries write at once.
const BUFFER_BYTES: usize = 64 << 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let told = match &arguments[..] {
        [file] => verb(&read(file), file),
        [option, library, file] if option == "--library" => whole(library, &read(file)),
        _ => Err("usage: open [--library NAME] FILE".into()),
    };
    match told {
        Ok(bytes) => println!("{bytes}"),
        Err(reason) => {
            eprintln!("open: {reason}");
            exit(1);
        }
    }
}

fn read(file: &str) -> Vec<u8> {
    std::fs::read(file).unwrap_or_else(|error| {
        eprintln!("open: {file}: {error}");
        exit(1);
    })
}

/// Bytes of content of all that the file holds, one layer deep. A finding is a failure.
fn verb(input: &[u8], name: &str) -> Result<u64, String> {
    let limits = Limits::default();
    let head = &input[..input.len().min(unpack::HEAD_BYTES)];
    let file_type = unpack::recognise(&input[..input.len().min(unpack::head_bytes(head))]);
    let claim = unpack::Claim { name: Some(name), ..unpack::Claim::of(file_type) };
    let mut openers = unpack::open(&claim, &limits, &unpack::Passwords::default());
    let named = openers.iter().position(|opener| opener.name == "named").unwrap_or_default();
    let stage = openers.get_mut(named).ok_or("there is no reader")?.stage.as_mut();
    let mut output = Window::with_capacity(WINDOW_BYTES);
    let mut spool = Spool::default();
    let (mut at, mut content) = (0, 0);
    loop {
        let mut fuel = Fuel::unlimited();
        let piece = &input[at..input.len().min(at + WINDOW_BYTES)];
        let (taken, event) = match piece {
            [] => (0, stage.finish(&spool, &mut output, &mut fuel)),
            _ => {
                let step = stage.step(piece, &mut output, &mut fuel);
                (step.taken, step.event)
            }
        };
        spool.pass(at as u64, &piece[..taken], u64::MAX);
        at += taken;
        match event {
            Event::Verbatim => content += taken as u64,
            Event::Wrote => content += output.len() as u64,
            Event::Keep(range) => _ = spool.ask(range, at as u64),
            Event::Note(note) => return Err(format!("{note:?}")),
            Event::End => return Ok(content),
            Event::Idle | Event::Open(_) | Event::Close => {}
        }
        output.clear();
    }
}

fn whole(library: &str, input: &[u8]) -> Result<u64, String> {
    match library {
        "zlib-rs" => inflate(input),
        "ruzstd" => drain(ruzstd::decoding::StreamingDecoder::new(input).map_err(|error| error.to_string())?),
        "brotli-decompressor" => drain(brotli_decompressor::Decompressor::new(input, BUFFER_BYTES)),
        _ => Err(format!("no library {library}")),
    }
}

fn drain(mut reader: impl Read) -> Result<u64, String> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut content = 0;
    loop {
        match reader.read(&mut buffer).map_err(|error| error.to_string())? {
            0 => return Ok(content),
            count => content += count as u64,
        }
    }
}

/// A gzip file of one member, its checksum compared.
fn inflate(input: &[u8]) -> Result<u64, String> {
    const GZIP: u8 = 16 + 15;
    let mut inflate = zlib_rs::Inflate::new(true, GZIP);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let rest = &input[inflate.total_in() as usize..];
        match inflate.decompress(rest, &mut buffer, zlib_rs::InflateFlush::NoFlush) {
            Ok(zlib_rs::Status::StreamEnd) => return Ok(inflate.total_out()),
            Ok(_) if !rest.is_empty() => {}
            other => return Err(format!("{other:?}")),
        }
    }
}
