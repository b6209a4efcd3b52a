//! Files in lines of texts.

use super::*;
use crate::frame::reader::Reading;
use stream::law;

fn found(text: &str) -> Vec<Vec<u8>> {
    let make = || Reading::new(Lines::new());
    law::holds(make, text.as_bytes());
    let mut found: Vec<Vec<u8>> = Vec::new();
    for told in law::tell(make(), text.as_bytes()) {
        match told {
            law::Told::Open(_) => found.push(Vec::new()),
            law::Told::Content(bytes) => found.last_mut().expect("open").extend(bytes),
            _ => {}
        }
    }
    found
}

const CONTENT: &[u8] =
    b"#!/bin/sh\n# What a script writes line by line: words, numbers 0123456789 and marks, enough of them for a few \
    lines, and the last line is short.\nexit 0\n";

/// The lines of an encoded file, each through `form` with its number.
fn lines(encoded: &str, length: usize, form: impl Fn(usize, &str) -> String) -> String {
    let lines = encoded.as_bytes().chunks(length).map(|line| std::str::from_utf8(line).expect("ASCII"));
    lines.enumerate().map(|(at, line)| form(at, line)).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn files_between_the_same_words_of_lines_are_found() {
    let base64 = text::base64::encode(CONTENT);
    let hex = hex(CONTENT);
    let large: Vec<u8> = (0..40_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for (text, content) in [
        (lines(&base64, 50, |_, line| format!("echo {line} >> x.b64\r\n")), CONTENT),
        (lines(&base64, 50, |_, line| format!("@echo {line}>>%temp%\\x.b64\n")), CONTENT),
        (lines(&base64, 30, |_, line| format!("> {line}\n")), CONTENT),
        (lines(&base64, 30, |at, line| format!("Dim a{at}: a{at} = Chr(34) & f(\"{line}\")\n")), CONTENT),
        (lines(&base64, 24, |_, line| format!("  sb.Append(\"{line}\");\n")), CONTENT),
        (lines(&hex, 32, |at, line| format!("{at:04}: {line}  |\n")), CONTENT),
        (lines(&hex, 32, |_, line| format!("out.write('{line}')\n")), CONTENT),
        (lines(&text::base64::encode(&large), 60, |_, line| format!("echo {line} >> x\n")), &large),
    ] {
        let text = format!("@echo off\n\n{text}certutil -decode x.b64 x.exe\n");
        assert_eq!(found(&text), [content], "{}", &text[..text.len().min(2_000)]);
    }
}

#[test]
fn pairs_of_digits_in_lines_are_found() {
    let each = |length: usize, form: fn(usize, &[u8]) -> String| -> String {
        CONTENT.chunks(length).enumerate().map(|(at, bytes)| form(at * length, bytes)).collect()
    };
    fn parted(bytes: &[u8], between: &str) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(between)
    }
    for text in [
        each(32, |_, bytes| format!("echo {}>>x.hex\r\n", parted(bytes, " "))),
        each(16, |at, bytes| format!("echo e {:04x} {}>>x\r\n", at + 256, parted(bytes, " "))),
        each(16, |_, bytes| format!("printf '\\x{}' >> x\n", parted(bytes, "\\x"))),
        each(16, |_, bytes| format!("echo -ne '\\x{}' >> x\n", parted(bytes, "\\x"))),
        each(16, |at, bytes| {
            let words: Vec<_> = bytes.chunks(2).map(|two| parted(two, "")).collect();
            let text: String = bytes.iter().map(|&byte| if byte < 32 { '.' } else { byte.into() }).collect();
            format!("{at:08x}: {:<40} {text}\n", words.join(" "))
        }),
        each(16, |at, bytes| format!("{at:08x}  {:<49} |text|\n", parted(bytes, " "))),
    ] {
        assert_eq!(found(&format!("#!/bin/sh\n\n{text}exit\n")), [CONTENT], "{text}");
    }
}

#[test]
fn records_of_programs_are_found() {
    let sum = |bytes: &[u8]| bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    let record = |at: usize, data: &[u8]| [&[data.len() as u8, (at >> 8) as u8, at as u8, 0][..], data].concat();
    let intel: String = (CONTENT.chunks(16).enumerate())
        .map(|(at, data)| record(16 * at, data))
        .map(|bytes| format!(":{}{:02X}\n", hex(&bytes), sum(&bytes).wrapping_neg()))
        .collect();
    assert_eq!(found(&format!(":020000040800F2\n{intel}:00000001FF\nmore\n")), [CONTENT]);
    let record = |at: usize, data: &[u8]| [&[data.len() as u8 + 3, (at >> 8) as u8, at as u8][..], data].concat();
    let motorola: String = (CONTENT.chunks(20).enumerate())
        .map(|(at, data)| record(20 * at, data))
        .map(|bytes| format!("S1{}{:02X}\r\n", hex(&bytes), !sum(&bytes)))
        .collect();
    assert_eq!(found(&format!("S0030000FC\r\n{motorola}S9030000FC\r\n")), [CONTENT]);
}

#[test]
fn tables_listings_and_programs_are_none() {
    let digest = |at: usize| {
        format!("{:016x}{:016x}", at.wrapping_mul(0x9e37_79b9_7f4a_7c15), at.wrapping_mul(0x2545_f491_4f6c_dd1d))
    };
    for text in [
        (1..90).map(|at| format!("{}  file-{at}\n", digest(at))).collect::<String>(),
        (1..90).map(|at| format!("use crates::documents::lines::record{at};\n")).collect(),
        (1..90).map(|at| format!("    anotherFunctionWithALongName{at}(value);\n")).collect(),
        (1..90).map(|at| format!("/usr/share/documentation/of/a/program/{at}.html\n")).collect(),
        "=".repeat(5_000),
        format!("{}\n", "=".repeat(500)).repeat(20),
    ] {
        assert_eq!(found(&text), [b""; 0], "{text}");
    }
}
