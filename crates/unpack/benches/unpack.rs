//! Throughput of the readers, in MB/s of content, best of several runs: `cargo bench -p sluice-unpack`.
//!
//! The content is this program itself, repeated to 16 MB. The tools of the formats make the input; what is not
//! installed is left out.

use std::hint::black_box;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

use stream::{Event, FileType, Fuel, Limits, Nothing, Window};

const CONTENT_BYTES: usize = 16 << 20;
const WINDOW_BYTES: usize = 8192;
const RUNS: usize = 7;

fn main() {
    let content = content();
    let deflated = deflate(&content, 6);
    let gzip = gzip(&deflated, &content);
    let deflated_zip = zip(8, &deflated, &content);
    let stored_zip = zip(0, &content, &content);
    report(&[
        ("zlib-rs alone", &|| inflate_alone(&deflated)),
        ("gzip", &|| open(FileType::Gzip, &gzip)),
        ("zip, deflate", &|| open(FileType::Zip, &deflated_zip)),
    ]);
    report(&[
        ("zip, stored", &|| open(FileType::Zip, &stored_zip)),
        ("search for zip", &|| open(FileType::Pe, &content)),
        ("tar, as gap", &|| open(FileType::Tar, &content)),
    ]);
    let bzip2 = piped("bzip2", &["-c"], &content);
    report_packed("bzip2", FileType::Bzip2, bzip2);
    for (name, arguments) in [
        ("xz -6", &["-c", "-6"][..]),
        ("xz --x86 -C crc32", &["-c", "--x86", "--lzma2", "-C", "crc32"]),
        ("xz -0 -C sha256", &["-c", "-0", "-C", "sha256"]),
    ] {
        let packed = piped("xz", arguments, &content);
        report_packed(name, FileType::Xz, packed);
    }
    for (name, file_type, program, arguments) in [
        ("lzma", FileType::Lzma, "xz", &["-c", "--format=lzma"][..]),
        ("lzip", FileType::Lzip, "lzip", &["-c"]),
        ("compress", FileType::Compress, "compress", &["-c", "-f"]),
    ] {
        report_packed(name, file_type, piped(program, arguments, &content));
    }
    match piped("zstd", &["-c"], &content) {
        Some(packed) => {
            report(&[("ruzstd alone", &|| zstd_alone(&packed)), ("zstd", &|| open(FileType::Zstd, &packed))]);
        }
        None => println!("zstd skipped: no such tool"),
    }
}

fn content() -> Vec<u8> {
    let program = std::env::current_exe().and_then(std::fs::read).expect("a program can read itself");
    // A counter in each copy keeps long matches from making it too easy.
    let mut content = Vec::with_capacity(CONTENT_BYTES + program.len());
    while content.len() < CONTENT_BYTES {
        let count = content.len() as u32;
        let copy = program.iter().enumerate();
        content.extend(copy.map(|(i, &byte)| if i % 61 == 0 { byte ^ (count >> 12) as u8 } else { byte }));
    }
    content.truncate(CONTENT_BYTES);
    content
}

fn deflate(content: &[u8], level: i32) -> Vec<u8> {
    let mut output = vec![0; zlib_rs::compress_bound(content.len())];
    let config = zlib_rs::DeflateConfig { window_bits: -15, ..zlib_rs::DeflateConfig::new(level) };
    let (packed, _) = zlib_rs::compress_slice(&mut output, content, config);
    packed.to_vec()
}

fn gzip(deflated: &[u8], content: &[u8]) -> Vec<u8> {
    let crc = zlib_rs::crc32::crc32(0, content).to_le_bytes();
    let length = (content.len() as u32).to_le_bytes();
    [b"\x1f\x8b\x08\0\0\0\0\0\0\x03", deflated, &crc, &length].concat()
}

fn zip(method: u8, data: &[u8], content: &[u8]) -> Vec<u8> {
    let crc = zlib_rs::crc32::crc32(0, content).to_le_bytes();
    let sizes = [(data.len() as u32).to_le_bytes(), (content.len() as u32).to_le_bytes()].concat();
    let local = [b"PK\x03\x04\x14\0\0\0", &[method, 0, 0, 0, 0, 0][..], &crc, &sizes, b"\x01\0\0\0a"].concat();
    [local, data.to_vec()].concat()
}

fn piped(program: &str, arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let mut child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut stdin = child.stdin.take()?;
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().ok()?;
    writer.join().ok()?.ok()?;
    output.status.success().then_some(output.stdout)
}

fn report_packed(name: &str, file_type: FileType, packed: Option<Vec<u8>>) {
    match packed {
        Some(packed) => report(&[(name, &|| open(file_type, &packed))]),
        None => println!("{name:24} skipped: no such tool"),
    }
}

/// Runs the cases in turn, so that what else the machine does falls on all of them.
fn report(cases: &[(&str, &dyn Fn() -> u64)]) {
    let mut best = vec![f64::MAX; cases.len()];
    for _ in 0..RUNS {
        for ((_, run), best) in cases.iter().zip(&mut best) {
            let start = Instant::now();
            black_box(run());
            *best = best.min(start.elapsed().as_secs_f64());
        }
    }
    for ((name, _), best) in cases.iter().zip(best) {
        println!("{name:24} {:8.0} MB/s", CONTENT_BYTES as f64 / best / 1e6);
    }
}

fn inflate_alone(deflated: &[u8]) -> u64 {
    let mut inflate = zlib_rs::Inflate::new(false, 15);
    let mut output = vec![0; WINDOW_BYTES];
    for piece in deflated.chunks(WINDOW_BYTES) {
        let mut at = 0;
        while at < piece.len() {
            let before = inflate.total_in();
            let status = inflate.decompress(&piece[at..], &mut output, zlib_rs::InflateFlush::NoFlush);
            black_box(status.expect("it is sound"));
            at += (inflate.total_in() - before) as usize;
        }
    }
    inflate.total_out()
}

fn zstd_alone(packed: &[u8]) -> u64 {
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(packed).expect("it is a frame");
    std::io::copy(&mut decoder, &mut std::io::sink()).expect("it is sound")
}

fn open(file_type: FileType, input: &[u8]) -> u64 {
    let mut stage = unpack::opener(file_type, &Limits::default()).expect("there is a reader");
    let mut output = Window::with_capacity(WINDOW_BYTES);
    let mut content = 0;
    for piece in input.chunks(WINDOW_BYTES) {
        let mut at = 0;
        while at < piece.len() {
            let step = stage.step(&piece[at..], &mut output, &mut Fuel::unlimited());
            at += step.taken;
            content += output.len() as u64;
            output.clear();
            if step.event == Event::End {
                return content;
            }
        }
    }
    while stage.finish(&Nothing, &mut output, &mut Fuel::unlimited()) != Event::End {
        content += output.len() as u64;
        output.clear();
    }
    content
}
