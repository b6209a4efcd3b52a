//! How fast mails are parsed and transfer codings undone: `cargo bench -p sluice-mime`. Prints MB of input a second, the
//! median of several runs and the range.

use std::hint::black_box;
use std::time::Instant;

use mime::{Decoder, Embedded, Parser, Utf16};
use stream::{Coding, Event, Fuel, Limits, Nothing, Stage, Step, Window};

const RUNS: usize = 7;
const BYTES: usize = 32 << 20;
const PIECE: usize = 16 << 10;

fn main() {
    let limits = Limits::default();
    let base64 = base64_lines();
    let mail = mail(&base64);
    let fields = "X-Field: a value of common length, as they are\r\n".repeat(BYTES / 50);
    let text = "A line of text that is about as long as lines of text tend to be in mails.\r\n".repeat(BYTES / 76);
    let sparse = "An =C3=A4 in a line of text that is otherwise plain, and a soft break=\r\n".repeat(BYTES / 70);
    let dense = "=D0=9F=D1=80=D0=B8=D0=B2=D0=B5=D1=82=2C =D0=BC=D0=B8=D1=80=D0=9F=D1=80=D0=B8=\r\n".repeat(BYTES / 78);
    let dashes = "-- \r\n--\r\n-----\r\n--=_NextPart_00\r\n".repeat(BYTES / 36);
    let dashes = format!("Content-Type: multipart/mixed; boundary=\"=_NextPart_01\"\r\n\r\n{dashes}");
    let uuencode = format!("begin 644 x\n{}end\n", format!("M{}\n", "86)C".repeat(15)).repeat(BYTES / 62));
    let yenc = format!(
        "=ybegin line=128 name=x\n{}=yend\n",
        format!("{}=}}{}\n", "k".repeat(90), "q".repeat(36)).repeat(BYTES / 129)
    );
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    measure("parser, Base64 part", &mail, || Box::new(Parser::new(&limits)));
    measure("parser, text", format!("Subject: x\r\n\r\n{text}").as_bytes(), || Box::new(Parser::new(&limits)));
    measure("parser, fields", fields.as_bytes(), || {
        Box::new(Parser::new(&Limits { fields_max: u32::MAX, ..limits.clone() }))
    });
    measure("parser, lines like delimiters", dashes.as_bytes(), || Box::new(Parser::new(&limits)));
    measure("Base64, 76 characters a line", &base64, || Box::new(Decoder::new(Coding::Base64)));
    let one_line: Vec<u8> = base64.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    measure("Base64, one line", &one_line, || Box::new(Decoder::new(Coding::Base64)));
    measure("quoted-printable, sparse", sparse.as_bytes(), || Box::new(Decoder::new(Coding::QuotedPrintable)));
    measure("quoted-printable, dense", dense.as_bytes(), || Box::new(Decoder::new(Coding::QuotedPrintable)));
    measure("uuencode", uuencode.as_bytes(), || Box::new(Decoder::new(Coding::Uuencode)));
    measure("yEnc", yenc.as_bytes(), || Box::new(Decoder::new(Coding::Yenc)));
    measure("embedded, text", text.as_bytes(), || Box::new(Embedded::new(&limits)));
    measure("UTF-16", &utf16, || Box::new(Utf16::new("utf-16le")));
}

fn base64_lines() -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut random = 1_u32;
    let mut lines = Vec::with_capacity(BYTES);
    while lines.len() < BYTES {
        for _ in 0..76 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            lines.push(ALPHABET[(random >> 26) as usize]);
        }
        lines.extend_from_slice(b"\r\n");
    }
    lines
}

fn mail(base64: &[u8]) -> Vec<u8> {
    let head = "From: a@example.org\r\nContent-Type: multipart/mixed; boundary=\"=_B\"\r\n\r\n--=_B\r\n\
        Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n";
    [head.as_bytes(), base64, b"--=_B--\r\n"].concat()
}

fn measure(name: &str, input: &[u8], make: impl Fn() -> Box<dyn Stage>) {
    let mut rates: Vec<f64> = (0..RUNS).map(|_| run(make(), input)).collect();
    rates.sort_by(f64::total_cmp);
    let (slowest, median, fastest) = (rates[0], rates[RUNS / 2], rates[RUNS - 1]);
    println!("{name:32} {median:8.0} MB/s  ({slowest:.0} to {fastest:.0})");
}

fn run(mut stage: Box<dyn Stage>, input: &[u8]) -> f64 {
    let mut window = Window::with_capacity(8 << 10);
    let start = Instant::now();
    for piece in input.chunks(PIECE) {
        let mut rest = piece;
        while !rest.is_empty() {
            window.clear();
            let Step { taken, event } = stage.step(rest, &mut window, &mut Fuel::unlimited());
            rest = &rest[taken..];
            black_box((&event, window.filled()));
        }
    }
    while stage.finish(&Nothing, &mut window, &mut Fuel::unlimited()) != Event::End {
        window.clear();
    }
    input.len() as f64 / 1e6 / start.elapsed().as_secs_f64()
}
