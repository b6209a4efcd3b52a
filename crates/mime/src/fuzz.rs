//! Fuzz bodies: each runs a stage over data twice, cut differently, and asserts what must hold.
//!
//! The first two bytes of the data choose how it is cut and the window; the rest is the input.

use alloc::boxed::Box;
use alloc::vec::Vec;

use stream::{Coding, Event, Fuel, Limits, Note, Nothing, Object, Stage, Step, Window};

use crate::{Decoder, Embedded, Parser, Utf16, looks_like_mail};

/// Fuzz body: the parser tells the same however it is cut, opens and closes in balance, and content is a run of the
/// input where it says it is. Second readings are run too.
///
/// # Panics
/// If any of that does not hold.
pub fn fuzz_parser(data: &[u8]) {
    let limits =
        Limits { multipart_depth_max: 5, fields_max: 7, name_bytes_max: 80, field_bytes_max: 300, ..Limits::default() };
    let (cut, input) = Cut::from(data);
    let told = run_twice(cut, input, &|| Box::new(Parser::new(&limits)));
    assert_runs(&told, input);
    looks_like_mail(input);
}

/// Fuzz body: each decoder, and the converter from UTF-16, writes the same however it is cut.
///
/// # Panics
/// If it does not.
pub fn fuzz_decoder(data: &[u8]) {
    let (cut, input) = Cut::from(data);
    for coding in
        [Coding::Identity, Coding::Base64, Coding::QuotedPrintable, Coding::Uuencode, Coding::BinHex, Coding::Yenc]
    {
        run_twice(cut, input, &|| Box::new(Decoder::new(coding)));
    }
    run_twice(cut, input, &|| Box::new(Decoder::trimming(Coding::QuotedPrintable)));
    run_twice(cut, input, &|| Box::new(Utf16::new("utf-16")));
}

/// Fuzz body: the finder of embedded files tells the same however it is cut, and content is a run of the input.
///
/// # Panics
/// If any of that does not hold.
pub fn fuzz_embedded(data: &[u8]) {
    let (cut, input) = Cut::from(data);
    let limits = Limits::default();
    let told = run_twice(cut, input, &|| Box::new(Embedded::new(&limits)));
    assert_runs(&told, input);
}

#[derive(Debug, Clone, Copy)]
struct Cut {
    piece: usize,
    window: usize,
}

impl Cut {
    fn from(data: &[u8]) -> (Cut, &[u8]) {
        let (choice, input) = data.split_at(data.len().min(2));
        let at = |index: usize| usize::from(choice.get(index).copied().unwrap_or(0)) + 1;
        let cut = Cut { piece: at(0), window: at(1) };
        (cut, input)
    }
}

/// An emitted event, adjacent content joined.
#[derive(Debug, Clone, PartialEq)]
enum Told {
    Content(Vec<u8>),
    Event(Event),
    Alternative(usize, Vec<Told>),
}

fn run_twice(cut: Cut, input: &[u8], make: &dyn Fn() -> Box<dyn Stage>) -> Vec<Told> {
    let whole = Cut { piece: usize::MAX, window: 4096 };
    let told = run(make(), input, whole, 0);
    assert_eq!(told, run(make(), input, cut, 0), "cut by {cut:?}");
    told
}

fn run(mut stage: Box<dyn Stage>, input: &[u8], cut: Cut, depth: u32) -> Vec<Told> {
    let mut may_close = depth > 0;
    let mut told = Vec::new();
    let mut open = 0_u32;
    let mut at = 0_usize;
    let mut offered = 0;
    loop {
        let mut window = Window::with_capacity(cut.window);
        if offered <= at {
            offered = at.saturating_add(cut.piece).min(input.len());
        }
        let given = &input[at..offered];
        let mut fuel = Fuel::unlimited();
        let Step { taken, event } = if at < input.len() {
            stage.step(given, &mut window, &mut fuel)
        } else {
            Step::tell(0, stage.finish(&Nothing, &mut window, &mut fuel))
        };
        assert!(taken > 0 || event != Event::Idle, "no progress at {at}");
        at += taken;
        match event {
            Event::Idle => {}
            Event::Verbatim => content(&mut told, &given[..taken]),
            Event::Wrote => content(&mut told, window.filled()),
            Event::End => {
                assert_eq!(open, 0, "ended with objects open");
                return told;
            }
            event => {
                match &event {
                    Event::Open(_) => open += 1,
                    // A second reading may close objects that were open at its beginning.
                    Event::Close if open == 0 && may_close => may_close = false,
                    Event::Close => open = open.checked_sub(1).expect("closed what was not open"),
                    _ => {}
                }
                let fork = matches!(event, Event::Note(Note::Fork(_)));
                told.push(Told::Event(event));
                if fork && depth == 0 {
                    let other = stage.alternative().expect("a fork has a second reading");
                    let other = run(other, &input[at..], cut, depth + 1);
                    told.push(Told::Alternative(at, other));
                }
            }
        }
    }
}

fn content(told: &mut Vec<Told>, bytes: &[u8]) {
    match told.last_mut() {
        Some(Told::Content(joined)) => joined.extend_from_slice(bytes),
        _ => told.push(Told::Content(bytes.to_vec())),
    }
}

/// Asserts that the content behind each opening is the run of `input` that the object declares.
fn assert_runs(told: &[Told], input: &[u8]) {
    for (index, seen) in told.iter().enumerate() {
        match (seen, told.get(index + 1)) {
            (Told::Event(Event::Open(object)), Some(Told::Content(bytes))) => {
                assert_run(object, bytes, input);
            }
            (Told::Alternative(at, other), _) => assert_runs(other, &input[*at..]),
            _ => {}
        }
    }
}

fn assert_run(object: &Object, bytes: &[u8], input: &[u8]) {
    let Some(offset) = object.raw_offset else {
        return;
    };
    let rest = usize::try_from(offset).ok().and_then(|at| input.get(at..));
    let rest = rest.expect("an object begins within the input");
    assert!(rest.starts_with(bytes), "{object:?} is not what stands there");
}
