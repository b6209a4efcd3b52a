//! Content outside of quotes in text: Base64 in the text of an element or over the lines of a file, and bytes as
//! numbers.
//!
//! Word's XML of 2003 (`binData`), Flat OPC (`binaryData`), flat ODF (`binary-data`), text areas of pages, attachments
//! of calendars and address cards, LDIF: none of their syntax is parsed. A run begins with a line, or the rest of one,
//! of [`LINE_MIN`] characters of the Base64 alphabet, or with fewer of them after a colon if the next line is folded;
//! it continues over line ends, and is decoded when it has [`RUN_MIN`] characters that look neither like words nor like
//! a digest, or that look like Base32. In the alphabet for URLs a run begins with [`URL_MIN`] characters. Numbers between commas and pairs of hexadecimal digits are
//! emitted as bytes ([`numbers`]), and so is a run of hexadecimal digits.
//!
//! Blocks after a line of dashes, of OpenPGP and PEM, have lines of any length (`armour`).
//!
//! Text is sampled in strides: a long run cannot hide between two samples, so plain text costs a look at every few
//! bytes.
//!
//! Bounds: [`BACK_BYTES`] of recent input, a run that is not yet long enough, a line of it. After [`RUNS_FREE`] runs
//! only those with a known type are emitted.

mod armour;
mod base64;
mod numbers;
mod property;
mod stretch;

use stream::ReadAt;

use crate::frame::reader::{CONTENT_BYTES, Ended, Outbox, Reader};
use armour::Armour;
use base64::{Base64, Decided};
use numbers::Numbers;
use property::{is_read_elsewhere, name_before};
use stretch::{BASE64, CLASSES, NUMBER, stretch, stretch_for_urls};
pub(super) use stretch::{is_base64, stretch_of_base64, stretch_of_pairs};

/// Bytes that are looked at together, and held that long.
const PIECE_BYTES: usize = 512;
/// Characters that a line needs to begin a run.
const LINE_MIN: usize = 40;
/// Characters that a run needs to be emitted.
const RUN_MIN: usize = 64;
/// Characters of the alphabet for URLs that begin a run.
const URL_MIN: usize = 64;
/// Hexadecimal digits that are emitted if they make sense; more than a digest has.
const HEX_MIN: usize = 132;
/// Length from which on a run is emitted whatever it looks like.
const RUN_SURE: usize = 1024;
/// Last bytes read, so that the beginning of a folded line is at hand.
const BACK_BYTES: usize = 256;

const _: () = assert!(armour::NAME_MAX <= BACK_BYTES);

/// Number of runs that are emitted whatever they hold.
const RUNS_FREE: u32 = 1000;

/// A reader of text.
pub(crate) struct Runs {
    /// Last bytes read that are not done with.
    held: Vec<u8>,
    /// How much of it is only looked back at.
    done: usize,
    state: State,
    runs: u32,
}

enum State {
    Outside,
    Base64(Box<Base64>),
    Numbers(Numbers),
    Armour(Armour),
}

impl Runs {
    pub fn new() -> Runs {
        Runs { held: Vec::new(), done: 0, state: State::Outside, runs: 0 }
    }

    fn work(&mut self, outbox: &mut Outbox) {
        let held = std::mem::take(&mut self.held);
        let mut at = self.done;
        let mut ahead = Ahead::default();
        loop {
            match std::mem::replace(&mut self.state, State::Outside) {
                State::Outside => match seek(&held, at, &mut ahead) {
                    Ok((state, behind)) => (self.state, at) = (state, behind),
                    Err(wait) => {
                        at = wait;
                        break;
                    }
                },
                State::Base64(mut run) => {
                    let goes_on = loop {
                        at += run.characters(&held[at..], outbox);
                        let Some(&byte) = held.get(at) else { break true };
                        if !run.byte(byte, &mut self.runs, outbox) {
                            break false;
                        }
                        at += 1;
                    };
                    if goes_on {
                        self.state = State::Base64(run);
                        break;
                    }
                    // A short line in front of anything else is a word, or a name.
                    let belongs = matches!(held[at], b'<' | b')' | b']' | b';' | b'"' | b'\'');
                    run.end(belongs, &mut self.runs, outbox);
                    at -= run.unread();
                }
                State::Numbers(mut run) => {
                    let goes_on = loop {
                        let Some(&byte) = held.get(at) else { break true };
                        if CLASSES[usize::from(byte)] & NUMBER == 0 || run.word == LINE_MIN || run.is_rule(byte) {
                            break false;
                        }
                        run.byte(byte, outbox);
                        at += 1;
                    };
                    if goes_on {
                        self.state = State::Numbers(run);
                        break;
                    }
                    run.end(outbox);
                    // The last word may begin something else, and so may a dash.
                    at -= run.unread();
                }
                State::Armour(mut armour) => {
                    let (taken, goes_on) = armour.read(&held[at..], outbox);
                    at += taken;
                    if goes_on {
                        self.state = State::Armour(armour);
                        break;
                    }
                    armour.close(outbox);
                    at -= armour.unread();
                }
            }
        }
        let back = at.saturating_sub(BACK_BYTES);
        self.done = at - back;
        self.held = held;
        self.held.drain(..back);
    }
}

/// Where the next stretches and the next block begin, or may begin, as far as they were looked for.
type Ahead = [Option<Result<usize, usize>>; 3];

/// Finds the next run from `from` on, and the beginning of its bytes; otherwise returns the searched end. Text ahead is
/// searched once.
fn seek(held: &[u8], from: usize, ahead: &mut Ahead) -> Result<(State, usize), usize> {
    let [known_base64, known_numbers, known_armour] = ahead;
    let armour = look(known_armour, from, || armour::find(held, from).map(|(at, ..)| at));
    let base64 = look(known_base64, from, || stretch(held, from, BASE64, LINE_MIN));
    let numbers = look(known_numbers, from, || stretch(held, from, NUMBER, LINE_MIN));
    let url = stretch_for_urls(held, from);
    let is_for_urls = url.is_ok_and(|url| base64.is_err() || base64.is_ok_and(|base64| url <= base64));
    let base64 = if is_for_urls { url } else { base64 };
    let in_front = |other: Result<usize, usize>| other.unwrap_or(usize::MAX);
    if armour.is_ok_and(|at| at < in_front(base64).min(in_front(numbers)))
        && let Ok((_, armour, behind)) = armour::find(held, from)
    {
        return Ok((State::Armour(armour), behind));
    }
    if let Err(wait) = url
        && wait <= in_front(base64).min(in_front(numbers))
    {
        // Its first characters have not all come.
        let waits = [base64, numbers, armour].map(|found| found.unwrap_or_else(|wait| wait));
        return Err(waits.into_iter().fold(wait, usize::min));
    }
    match (base64, numbers) {
        (base64, Ok(at)) if base64.is_ok_and(|base64| base64 > at) || base64.is_err() => {
            // Within a number it is read from its end on.
            let skip = at > 0 && held[at - 1].is_ascii_alphanumeric();
            Ok((State::Numbers(Numbers::new(skip)), at))
        }
        (Ok(at), _) => {
            let mut run = Base64::default();
            run.is_for_urls = is_for_urls;
            match beginning(&held[..at]) {
                Some(before) => {
                    run.held.extend_from_slice(before);
                    run.folded = Some(true);
                }
                None if is_read_elsewhere(&held[..at]) => run.decided = Decided::Dropped,
                None => {}
            }
            run.name = name_before(&held[..at]);
            Ok((State::Base64(Box::new(run)), at))
        }
        (Err(base64), Err(numbers) | Ok(numbers)) => Err(base64.min(numbers).min(armour.unwrap_or_else(|wait| wait))),
    }
}

/// Looks ahead, if that is not done yet.
fn look(
    known: &mut Option<Result<usize, usize>>,
    from: usize,
    find: impl FnOnce() -> Result<usize, usize>,
) -> Result<usize, usize> {
    let is_ahead = known.is_some_and(|found| found.unwrap_or_else(|wait| wait) >= from);
    match *known {
        Some(found) if is_ahead => found,
        _ => *known.insert(find()),
    }
}

/// Returns the beginning of a run before a folded line: the text between a colon and the line end.
fn beginning(before: &[u8]) -> Option<&[u8]> {
    let before = &before[before.len().saturating_sub(BACK_BYTES)..];
    let unfolded = before.trim_ascii_end();
    let fold = &before[unfolded.len()..];
    let is_folded = fold.contains(&b'\n') && matches!(fold.last(), Some(b' ' | b'\t'));
    if !is_folded || fold.len() > 3 {
        return None;
    }
    let count = unfolded.iter().rev().take_while(|&&byte| is_base64(byte)).count();
    let (front, begins) = unfolded.split_at(unfolded.len() - count);
    (front.trim_ascii_end().last() == Some(&b':')).then_some(begins)
}

const _: () = assert!(CONTENT_BYTES >= 4096, "a piece of input makes fewer bytes than it has");

impl Reader for Runs {
    fn read(&mut self, input: &[u8], outbox: &mut Outbox) -> usize {
        outbox.worked(input.len() / 4);
        for piece in input.chunks(PIECE_BYTES) {
            self.held.extend_from_slice(piece);
            self.work(outbox);
        }
        input.len()
    }

    fn end(&mut self, _: &dyn ReadAt, outbox: &mut Outbox) -> Ended {
        if matches!(self.state, State::Outside) {
            self.held.push(b'\n');
            self.work(outbox);
        }
        match std::mem::replace(&mut self.state, State::Outside) {
            State::Outside => {}
            State::Base64(mut run) => run.end(true, &mut self.runs, outbox),
            State::Numbers(mut run) => run.end(outbox),
            State::Armour(mut armour) => armour.end(&self.held[self.done..], outbox),
        }
        Ended::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::reader::Reading;
    use stream::law::{self, Told};

    fn found(text: &str) -> Vec<Vec<u8>> {
        let make = || Reading::new(Runs::new());
        law::holds(make, text.as_bytes());
        law::holds_at_every_cut(make, text.as_bytes());
        let mut found: Vec<Vec<u8>> = Vec::new();
        for told in law::tell(make(), text.as_bytes()) {
            match told {
                Told::Open(_) => found.push(Vec::new()),
                Told::Content(bytes) => found.last_mut().expect("open").extend(bytes),
                _ => {}
            }
        }
        found
    }

    const CONTENT: &[u8] =
        b"What a file holds: words, numbers 0123456789 and marks; enough of them for three lines, the last one short.!";

    fn encoded(line: usize, between: &str) -> String {
        let text = text::base64::encode(CONTENT).into_bytes();
        assert_eq!(CONTENT.len() % 3, 0);
        let lines: Vec<_> = text.chunks(line).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        lines.join(between)
    }

    #[test]
    fn base64_in_elements_and_lines_is_found() {
        for text in [
            format!("<?xml?><w:binData w:name='x'>{}</w:binData>", encoded(999, "")),
            format!("<pkg:binaryData>{}</pkg:binaryData>", encoded(76, "\r\n")),
            format!("<office:binary-data>\n  {}\n </office:binary-data><x/>", encoded(72, "\n  ")),
            format!("<textarea>{}</textarea>", encoded(60, "\n")),
            format!("<x>{}</x>", encoded(76, "&#13;\n")),
            format!("ATTACH;ENCODING=BASE64;VALUE=BINARY:{}\r\nEND:VEVENT\r\n", encoded(999, "")),
            format!("ATTACH;VALUE=BINARY:\r\n {}\r\nEND:VEVENT\r\n", encoded(74, "\r\n ")),
            format!("ATTACH;FILENAME=a;ENCODING=BASE64:{}\r\n", encoded(999, "")),
            format!("PHOTO;ENCODING=b:{}\r\n {}\r\nEND:VCARD\r\n", &encoded(999, "")[..7], &encoded(999, "")[7..]),
            format!("dn: x\njpegPhoto:: {}\n {}\ncn: y\n", &encoded(999, "")[..64], &encoded(999, "")[64..]),
            format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", encoded(64, "\n")),
            format!("{}\n", encoded(76, "\n")),
            format!("id,content\n7,{}\n", encoded(999, "")),
            format!("id,content,x\n7,{},8\n", encoded(999, "")),
        ] {
            assert_eq!(found(&text), [CONTENT], "{text}");
        }
    }

    #[test]
    fn the_alphabet_for_urls_is_read_as_one() {
        let content: Vec<u8> = (0..300u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for skip in 0..24 {
            let encoded = text::base64::encode(&content[skip..]).replace('+', "-").replace('/', "_");
            let encoded = encoded.trim_end_matches('=');
            assert!(encoded.contains('-') && encoded.contains('_'));
            for text in [
                format!("raw: {encoded}\n"),
                format!("<x>{encoded}</x>"),
                format!("eyJhbGciOiJSUzI1NiJ9.{encoded}.x"),
                format!("?{encoded}=&b=c"),
                format!("x {encoded}"),
            ] {
                assert_eq!(found(&text), [&content[skip..]], "{text}");
            }
            assert_eq!(found(&format!("x = \"{encoded}\";")), Vec::<Vec<u8>>::new());
        }
    }

    #[test]
    fn names_with_dashes_are_no_base64() {
        for text in [
            "/blog/2024-01-how-to-read-a-title-that-is-longer-than-a-line-of-text-should-be-in-any-page\n".repeat(20),
            "A-Title-Of-A-Page-With-Many-Words-And-Capitals-But-Without-Any-Number-In-It-At-All\n".repeat(20),
            "550e8400-e29b-41d4-a716-446655440000_550e8400-e29b-41d4-a716-446655440000_550e8400-e29b\n".repeat(20),
            "block__element--modifier-of-a-very-long-name__that-continues-behind-it--and-so-on-for-64\n".repeat(20),
        ] {
            assert_eq!(found(&text), Vec::<Vec<u8>>::new(), "{text}");
        }
    }

    #[test]
    fn armour_has_lines_of_any_length_and_fields_in_front() {
        let padded = text::base64::encode(&CONTENT[..CONTENT.len() - 1]);
        for text in [
            format!(
                "Hello,\n\n-----BEGIN PGP MESSAGE-----\n\n{}\n=abcd\n-----END PGP MESSAGE-----\n",
                encoded(20, "\n")
            ),
            format!(
                "-----BEGIN PGP MESSAGE-----  \r\nVersion: 1\r\nComment: {}\r\nHash:\r\n \r\n{}\r\n-----END",
                "long".repeat(40),
                encoded(7, "\r\n")
            ),
            format!("- -----BEGIN PKCS7-----\n{}", encoded(5, "\n")),
            format!("-----BEGIN X-----\n{}", encoded(999, "")),
        ] {
            assert_eq!(found(&text), [CONTENT], "{text}");
        }
        let padded = format!("-----BEGIN PGP MESSAGE-----\n\n{padded}\n=abcd\n-----END PGP MESSAGE-----\n");
        assert_eq!(found(&padded), [&CONTENT[..CONTENT.len() - 1]]);
    }

    #[test]
    fn signed_text_is_told_with_its_dashes() {
        let signature = encoded(20, "\n");
        let text = format!(
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\na\n- -b\n- --c\n{}\n-----BEGIN PGP SIGNATURE-----\n\n{signature}",
            encoded(60, "\n")
        );
        let signed = format!("a\n-b\n--c\n{}\n", encoded(60, "\n"));
        assert_eq!(found(&text), [signed.as_bytes(), CONTENT]);
        assert_eq!(found("-----BEGIN PGP SIGNED MESSAGE-----\n\na\n-"), [b"a\n-"]);
    }

    #[test]
    fn a_block_hides_nothing_that_stands_in_it() {
        for text in [
            format!("-----BEGIN A-----\n<x>{}</x>", encoded(76, "\n")),
            format!("-----BEGIN A-----\n\nword <x>{}</x>", encoded(76, "\n")),
            format!("-----BEGIN {}\n", encoded(999, "")),
            format!("-----BEGIN <x>-----{}", encoded(999, "")),
            format!("-----BEGIN A-----\njpegPhoto:: {}\n", encoded(999, "")),
            format!("-----BEGIN PGP SIGNED MESSAGE-----\n{}\n", encoded(999, "")),
        ] {
            assert_eq!(found(&text), [CONTENT], "{text}");
        }
    }

    #[test]
    fn base32_is_decoded_where_nothing_speaks_for_base64() {
        let bits = CONTENT.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect::<Vec<_>>();
        let value = |bits: &[u8]| bits.iter().chain([0; 5].iter()).take(5).fold(0, |value, bit| value << 1 | bit);
        let encoded: Vec<u8> =
            bits.chunks(5).map(|bits| b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[usize::from(value(bits))]).collect();
        let lines: Vec<_> = encoded.chunks(76).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        assert_eq!(found(&format!("{}====\n", lines.join("\n"))), [CONTENT]);
        assert_eq!(found(&"ABCDEF23".repeat(12)), [b""; 0]);
    }

    #[test]
    fn numbers_are_bytes() {
        let decimal: Vec<_> = CONTENT.iter().map(u8::to_string).collect();
        let hex: Vec<_> = CONTENT.iter().map(|byte| format!("0x{byte:02X}")).collect();
        assert_eq!(found(&format!("var b = new Uint8Array([{}]);", decimal.join(","))), [CONTENT]);
        assert_eq!(found(&format!("[Byte[]] $b = {}\r\n$c = 1", hex.join(", "))), [CONTENT]);
        let content: Vec<u8> =
            [&b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff\0\0\xb8\0\0"[..], &[0x80, 0xf1].repeat(30)].concat();
        let signed: Vec<_> = content.iter().map(|&byte| (byte as i8).to_string()).collect();
        assert_eq!(found(&format!("byte[] b={{{}}};", signed.join(","))), [&content[..]]);
        assert_eq!(found(&format!("byte[] b = {{ {} }};\n--\n", signed.join(", "))), [&content[..]]);
    }

    #[test]
    fn pairs_of_hexadecimal_digits_are_bytes() {
        let pairs: Vec<_> = CONTENT.iter().map(|byte| format!("{byte:02x}")).collect();
        let lines: Vec<_> = pairs.chunks(20).map(|line| line.join(",")).collect();
        assert_eq!(found(&format!("[HKCU\\x]\r\n\"a\"=hex:{}\r\n", lines.join(",\\\r\n  "))), [CONTENT]);
        assert_eq!(found(&format!("from(\"{}\".split(' '))", pairs.join(" "))), [CONTENT]);
        assert_eq!(found(&format!("<pre>{}</pre>", pairs.join(":"))), [CONTENT]);
        let digest = (0..=255).map(|byte: u8| format!("{:02x} ", byte.wrapping_mul(167))).collect::<String>();
        assert_eq!(found(&format!("{digest}\n")), [b""; 0]);
    }

    #[test]
    fn hexadecimal_digits_outside_of_quotes_are_bytes() {
        let digits: String = CONTENT.iter().map(|byte| format!("{byte:02x}")).collect();
        for text in [
            format!("VALUES(0x{digits});"),
            format!("VALUES('\\x{}');", digits.to_uppercase()),
            format!("<b type=\"hexBinary\">{digits}</b>"),
            format!(
                "<b>\n  {}\n</b>",
                digits.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line)).collect::<Vec<_>>().join("\n  ")
            ),
        ] {
            assert_eq!(found(&text), [CONTENT], "{text}");
        }
        let long: Vec<u8> = (0..900u32).map(|at| ((at * at) >> 3) as u8).collect();
        let digits: String = long.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found(&format!("0x{digits};")), [long]);
    }

    #[test]
    fn blocks_behind_rules_and_numbers_are_found() {
        for rule in ["-".repeat(60), "1, 2, 3, ".repeat(9), format!("{}7", "- ".repeat(50))] {
            let text = format!("{rule}\n-----BEGIN X-----\n{}", encoded(20, "\n"));
            assert_eq!(found(&text), [CONTENT], "{text}");
        }
    }

    #[test]
    fn what_looks_like_numbers_without_any_is_passed_at_once() {
        for text in [" \n".repeat(2000), "abcdef, ".repeat(200), "xxxx".repeat(200), ",".repeat(4000)] {
            let mut runs = Runs::new();
            let mut outbox = Outbox::default();
            for piece in text.as_bytes().chunks(7) {
                runs.read(piece, &mut outbox);
                assert!(runs.held.len() <= BACK_BYTES + LINE_MIN + 7, "{}", runs.held.len());
            }
        }
    }

    #[test]
    fn words_digests_and_tables_are_none() {
        let digest = "0123456789abcdef".repeat(8);
        let path = "usr/share/doc/some/very/long/path/of/directories/without/any/dots/in/it/at/all";
        for text in [
            &format!("{digest}  file\n{digest}  other\n")[..],
            path,
            "The quick brown fox\njumps over the lazy dog\n",
            &"1,2,300,4,5000,".repeat(20),
            &format!("a|{}|b", "0121".repeat(60)),
            &format!("x = \"{}\"", encoded(999, "")),
        ] {
            assert_eq!(found(text), Vec::<Vec<u8>>::new(), "{text}");
        }
    }
}
