//! The whole inspection: what it finds, what it bounds, and that it does not depend on how it is driven.

use std::sync::Arc;

use crate::build::{base64, eicar, gzip, mail, tar, zip};
use crate::pipeline::{Drive, Seen, drive, inspect};
use flow::{Action, Policy};
use inspect::Engine;
use scan::{Builder, Database};
use stream::{Class, Coding, FileType, Limits};

fn engine() -> Arc<Engine> {
    engine_with(Limits::default())
}

fn engine_with(limits: Limits) -> Arc<Engine> {
    Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits })
}

fn engine_of(file: &str, text: &str) -> Arc<Engine> {
    let mut builder = Builder::new();
    builder.add(file, text.as_bytes()).unwrap();
    Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() })
}

fn blank() -> Policy {
    Policy { on_infected: Action::Blank, ..Policy::default() }
}

/// Each way to wrap the test file, with the position that is reported.
fn wrapped() -> Vec<(&'static str, Vec<u8>, Vec<&'static str>)> {
    let virus = eicar();
    let tar_gz = gzip(&tar(&[("readme", b"nothing"), ("e.com", &virus)]));
    let zip_in_zip = zip("inner.zip", &zip("e.com", &virus, true), false);
    let mail_in_mail = mail("inner.eml", &mail("a.zip", &zip_in_zip, 0), 0);
    vec![
        ("as it is", virus.clone(), vec![]),
        ("gzip", gzip(&virus), vec![]),
        ("zip, stored", zip("e.com", &virus, false), vec!["e.com"]),
        ("zip, deflated", zip("e.com", &virus, true), vec!["e.com"]),
        ("tar.gz", tar_gz, vec!["e.com"]),
        ("zip in zip in mail in mail", mail_in_mail, vec!["inner.eml", "a.zip", "inner.zip", "e.com"]),
    ]
}

#[test]
fn eicar_is_found_in_every_wrapping_and_its_position_is_told() {
    for (what, bytes, path) in wrapped() {
        let seen = inspect(&engine(), Policy::default(), &bytes);
        assert_eq!(seen.names(), ["Eicar-Test-Signature"], "{what}");
        let told: Vec<&str> = seen.verdict.findings[0].path.iter().map(|name| &**name).collect();
        assert_eq!(told, path, "{what}");
        assert_eq!(seen.verdict.action, Action::Reject, "{what}");
    }
}

#[test]
fn eicar_is_found_at_every_offset_around_a_segment_border() {
    let engine = engine();
    for (what, bytes, _) in wrapped() {
        for padding in (7_700..8_500).step_by(7).chain(8_180..8_200) {
            let mail = mail("attached", &bytes, padding);
            let how = Drive { piece: 8_192, fuel: u64::MAX, mail: true };
            let seen = drive(&engine, Policy::default(), &mail, how);
            assert_eq!(seen.names(), ["Eicar-Test-Signature"], "{what} behind {padding} bytes");
        }
    }
}

/// Everything that was told but the times.
fn facts(seen: &Seen) -> String {
    let objects = seen.objects.iter().map(|object| {
        format!(
            "{} {:?} {:?} {:?} {} {:?} {:?} {}\n",
            object.id,
            object.parent,
            object.kind,
            object.file_type,
            object.bytes,
            object.sha256,
            object.findings,
            object.second_reading
        )
    });
    format!("{:?}\n{}", seen.verdict, objects.collect::<String>())
}

#[test]
fn what_is_told_does_not_depend_on_how_the_inspection_is_driven() {
    let engine = engine();
    let mut inputs: Vec<Vec<u8>> = wrapped().into_iter().map(|(_, bytes, _)| mail("a", &bytes, 3_000)).collect();
    // Ambiguous: two encodings are declared, and data follows padding.
    let twice = "From: a\r\nContent-Transfer-Encoding: 7bit\r\nContent-Transfer-Encoding: base64\r\n\r\n";
    inputs.push(format!("{twice}{}", base64(&eicar())).into_bytes());
    inputs
        .push(format!("From: a\r\nContent-Transfer-Encoding: base64\r\n\r\nTVo=\r\n{}", base64(&eicar())).into_bytes());
    for input in inputs {
        let whole =
            facts(&drive(&engine, Policy::default(), &input, Drive { piece: usize::MAX, fuel: u64::MAX, mail: true }));
        for (piece, fuel) in [(1, u64::MAX), (7, 50), (8_191, 1), (8_193, 1_000), (100, 100)] {
            let cut = facts(&drive(&engine, Policy::default(), &input, Drive { piece, fuel, mail: true }));
            assert!(whole == cut, "pieces of {piece}, fuel {fuel}:\n{whole}\n{cut}");
        }
    }
}

#[test]
fn a_second_reading_finds_what_the_first_does_not() {
    let twice = "From: a\r\nContent-Transfer-Encoding: 7bit\r\nContent-Transfer-Encoding: base64\r\n\r\n";
    let seen = inspect(&engine(), Policy::default(), format!("{twice}{}", base64(&eicar())).as_bytes());
    // Once in the second reading, once because the first finds Base64 in the lines of a text.
    let expected = ["Heuristics.Ambiguous.Mime.TransferEncoding", "Eicar-Test-Signature", "Eicar-Test-Signature"];
    assert_eq!(seen.names(), expected);
    assert_eq!(seen.verdict.findings[0].finding.class, Class::TwoReadings);
    assert!(seen.objects.iter().any(|object| object.second_reading && !object.findings.is_empty()));
}

#[test]
fn what_ends_at_the_padding_is_hashed_as_that_too() {
    // The signature is the hash of "MZ" alone: what a reader sees that stops at the padding.
    let engine = engine_of("t.hdb", "ac6ad5d9b99757c3a878f2d275ace198:2:Two.Bytes\n");
    let mail = "From: a\r\nContent-Transfer-Encoding: base64\r\n\r\nTVo=\r\nTVo=\r\n";
    let seen = inspect(&engine, Policy::default(), mail.as_bytes());
    assert_eq!(seen.names(), ["Heuristics.Ambiguous.Base64.Padding", "Two.Bytes.UNOFFICIAL"]);
}

#[test]
fn padding_in_a_line_of_base64_hides_nothing_from_readers_that_skip_it() {
    let whole = base64(&eicar());
    for at in [3, 7, 11, 20] {
        let (head, tail) = whole.split_at(at);
        let mail = format!("From: a\r\nContent-Transfer-Encoding: base64\r\n\r\n{head}={tail}\r\n");
        let seen = inspect(&engine(), Policy::default(), mail.as_bytes());
        assert_eq!(seen.verdict.action, Action::Reject, "{mail}");
    }
}

#[test]
fn a_field_without_a_name_does_not_hide_the_coding_behind_it() {
    let coding = "From: a\r\nTo: b\r\nSubject: c\r\nMIME-Version: 1.0\r\n:\r\nContent-Transfer-Encoding: base64\r\n";
    for blank in ["\r\n", ""] {
        // A backslash, which readers skip, so that no run of Base64 in a text is found.
        let body = base64(&eicar());
        let (head, tail) = body.split_at(70);
        let seen = inspect(&engine(), Policy::default(), format!("{coding}{blank}{head}\\{tail}\r\n").as_bytes());
        assert_eq!(seen.verdict.action, Action::Reject, "{blank:?}: {:?}", seen.names());
    }
}

#[test]
fn utf_16_is_read_as_text_too() {
    let hex: String = b"wide words".iter().map(|byte| format!("{byte:02x}")).collect();
    let engine = engine_of("t.ndb", &format!("Wide:0:*:{hex}\n"));
    let text: Vec<u8> = "\u{feff}some wide words".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(inspect(&engine, Policy::default(), &text).names(), ["Wide.UNOFFICIAL"]);
    let labelled = "From: a\r\nContent-Type: text/plain; charset=utf-16le\r\n\r\nnot wide at all\r\n";
    let seen = inspect(&engine, Policy::default(), labelled.as_bytes());
    assert_eq!(seen.verdict.objects, 3, "a label is believed once");
}

#[test]
fn an_allow_list_speaks_for_an_object_and_what_it_holds() {
    let mut builder = Builder::new();
    builder.add_builtin();
    let zip = zip("e.com", &eicar(), true);
    let seen = inspect(&engine(), Policy::default(), &zip);
    let hash: String = seen.objects[0].sha256.unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    builder.add("local.sfp", format!("{hash}:{}:Known.Good\n", zip.len()).as_bytes()).unwrap();
    let engine = Arc::new(Engine { database: Arc::new(builder.build()), limits: Limits::default() });
    assert_eq!(inspect(&engine, Policy::default(), &zip).verdict.action, Action::Pass);
    assert_eq!(inspect(&engine, Policy::default(), &mail("a.zip", &zip, 0)).verdict.action, Action::Pass);
    assert_eq!(inspect(&engine, Policy::default(), &eicar()).verdict.action, Action::Reject);
}

#[test]
fn a_match_in_a_part_is_blanked_where_the_part_is() {
    let text = mail("e.com", &eicar(), 100);
    let seen = inspect(&engine(), blank(), &text);
    assert!(seen.verdict.blankable);
    let blank = seen.blanks.last().unwrap();
    let body = base64(&eicar());
    let start = text.windows(body.len()).position(|window| window == body.as_bytes()).unwrap() as u64;
    assert_eq!((blank.part, blank.coding), (start, Coding::Base64));
    assert_eq!(blank.end, start + body.len() as u64 - 2, "the line end before the boundary is the boundary's");
}

#[test]
fn a_match_in_plain_text_is_blanked_and_one_in_a_header_is_not() {
    let body = String::from_utf8(eicar()).unwrap();
    let text = format!("From: a\r\nSubject: x\r\n\r\n{body}\r\n");
    let seen = inspect(&engine(), blank(), text.as_bytes());
    assert!(seen.verdict.blankable && !seen.blanks.is_empty());
    assert_eq!(seen.blanks[0].part, text.find(&body).unwrap() as u64);

    let hex: String = b"evil subject".iter().map(|byte| format!("{byte:02x}")).collect();
    let engine = engine_of("t.ndb", &format!("Subject:4:*:{hex}\n"));
    let seen = inspect(&engine, blank(), b"From: a\r\nSubject: evil subject\r\n\r\nbody\r\n");
    assert_eq!(seen.names(), ["Subject.UNOFFICIAL"]);
    assert!(!seen.verdict.blankable);
}

#[test]
fn depth_objects_and_ratio_are_bounded_and_told() {
    let mut nested = eicar();
    for _ in 0..12 {
        nested = gzip(&nested);
    }
    let seen = inspect(&engine_with(Limits { depth_max: 5, ..Limits::default() }), Policy::default(), &nested);
    assert_eq!(seen.names(), ["Heuristics.Limits.Exceeded.Depth"]);

    let names: Vec<String> = (0..100).map(|n| format!("f{n}")).collect();
    let members: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"x"[..])).collect();
    let limits = Limits { objects_max: 10, ..Limits::default() };
    let seen = inspect(&engine_with(limits), Policy::default(), &tar(&members));
    assert_eq!(seen.names(), ["Heuristics.Limits.Exceeded.Objects"]);
    assert!(seen.verdict.objects <= 11);

    let bomb = gzip(&vec![0; 20 << 20]);
    let limits = Limits { ratio_free_bytes: 1 << 20, ..Limits::default() };
    let seen = inspect(&engine_with(limits), Policy::default(), &bomb);
    assert_eq!(seen.names(), ["Heuristics.Limits.Exceeded.Ratio"]);
    assert!(seen.verdict.bytes < 6 << 20, "it went on to {} bytes", seen.verdict.bytes);
    assert_eq!(inspect(&engine(), Policy::default(), &bomb).verdict.action, Action::Pass, "20 MB are free");
}

#[test]
fn types_are_told_by_content_and_names_are_decoded() {
    let text = mail("=?utf-8?q?rechnung=20=C3=A4?=.zip", &zip("a.txt", b"hello hello hello", true), 10);
    let seen = inspect(&engine(), Policy::default(), &text);
    let types: Vec<Option<FileType>> = seen.objects.iter().map(|object| object.file_type).collect();
    assert_eq!(types, [Some(FileType::Mail), None, Some(FileType::Text), Some(FileType::Zip), Some(FileType::Text)]);
    assert_eq!(seen.objects[3].name.as_deref(), Some("rechnung \u{e4}.zip"));
    assert_eq!(seen.cleared, text.len() as u64);
}

#[test]
fn windows_are_few_however_large_the_object() {
    let noise: Vec<u8> = (0..4_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let bytes = mail("a.tar.gz", &gzip(&tar(&[("noise", &noise)])), 0);
    let seen = inspect(&engine(), Policy::default(), &bytes);
    assert_eq!(seen.verdict.action, Action::Pass);
    assert!(seen.window_bytes_max <= 9 * 4_096, "{} bytes of windows", seen.window_bytes_max);
}

#[test]
fn an_object_that_much_comes_through_has_a_wider_window() {
    let windows = |bytes: usize| {
        let noise: Vec<u8> = (0..bytes as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let seen = inspect(&engine(), Policy::default(), &mail("a.bin", &noise, 0));
        assert_eq!(seen.verdict.bytes, seen.objects.iter().map(|object| object.bytes).sum::<u64>());
        seen.window_bytes_max
    };
    let [few, some, much] = [20_000, 30_000, 1_000_000].map(windows);
    assert_eq!(some, few, "nobody's window is wider before there is much");
    assert!(some < much && much <= some + (8 << 10), "{some} bytes of windows, and {much}");
}

#[test]
fn no_mail_of_random_bytes_or_mutations_breaks_the_inspection() {
    let engine = engine();
    let mut random = 7u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for (_, bytes, _) in wrapped() {
        let original = mail("a", &bytes, 500);
        for _ in 0..60 {
            let mut mutated = original.clone();
            for _ in 0..1 + next() % 8 {
                let at = next() as usize % mutated.len();
                mutated[at] = next() as u8;
            }
            mutated.truncate(1 + next() as usize % mutated.len());
            inspect(&engine, blank(), &mutated);
        }
    }
}
