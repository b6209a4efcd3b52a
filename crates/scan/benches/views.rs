//! MB/s of the normalisers alone: `cargo bench -p sluice-scan --bench views`. Seconds.
//!
//! The text is words in lines, the page that text in markup with a script now and then; no file is read.

use std::fs;
use std::time::Instant;

use scan::{Normaliser, View};
use stream::{Event, Fuel, Nothing, Stage, Window};

const DATA_BYTES: usize = 16 << 20;
const SEGMENT: usize = 8192;

/// Seconds that this thread has been on a processor, where the system tells; else since some moment.
fn seconds(since: Instant) -> f64 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    nanos.map_or_else(|| since.elapsed().as_secs_f64(), |nanos| nanos as f64 / 1e9)
}

fn text() -> Vec<u8> {
    const WORDS: [&str; 12] = [
        "the ",
        "and ",
        "Mail ",
        "of\r\n",
        "a ",
        "message, ",
        "which ",
        "Server ",
        "is\r\n",
        "delivered. ",
        "to ",
        "you ",
    ];
    let mut state = 1u64;
    let mut text = Vec::with_capacity(DATA_BYTES + 16);
    while text.len() < DATA_BYTES {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.extend_from_slice(WORDS[(state >> 33) as usize % WORDS.len()].as_bytes());
    }
    text
}

fn page(text: &[u8]) -> Vec<u8> {
    const MARKUP: [&str; 4] = [
        "<p class=\"Body\" style='color: red'>",
        "</p>\r\n<a href=\"http://www.example.org/a?b&amp;c\">",
        "</a><br />&nbsp;<td width=600 align=\"left\">",
        "<script>var total = 1.5; function f(name) { return \"a\" + 'b' + name; }</script>",
    ];
    let pieces = text.chunks(200).enumerate();
    pieces.flat_map(|(index, words)| [MARKUP[index % 4].as_bytes(), words].concat()).collect()
}

/// The best of three runs in MB/s, and how much was written.
fn measure(view: View, data: &[u8]) -> (f64, usize) {
    let mut best = 0.0f64;
    let mut written = 0;
    for _ in 0..3 {
        let since = Instant::now();
        let begin = seconds(since);
        written = run(Normaliser::new(view), data);
        best = best.max(data.len() as f64 / 1e6 / (seconds(since) - begin));
    }
    (best, written)
}

fn run(mut normaliser: Normaliser, data: &[u8]) -> usize {
    let mut window = Window::with_capacity(4096);
    let mut written = 0;
    for segment in data.chunks(SEGMENT) {
        let mut rest = segment;
        while !rest.is_empty() {
            rest = &rest[normaliser.step(rest, &mut window, &mut Fuel::unlimited()).taken..];
            written += window.len();
            window.clear();
        }
    }
    while normaliser.finish(&Nothing, &mut window, &mut Fuel::unlimited()) != Event::End {
        written += window.len();
        window.clear();
    }
    written
}

fn main() {
    let text = text();
    let page = page(&text);
    println!("{:>12} {:>6} {:>8} {:>8}", "view", "of", "MB/s", "% kept");
    for (view, of, data) in [
        (View::Text, "text", &text),
        (View::Text, "page", &page),
        (View::NoComment, "text", &text),
        (View::NoComment, "page", &page),
        (View::NoTags, "page", &page),
        (View::Scripts, "page", &page),
    ] {
        let (speed, written) = measure(view, data);
        println!("{:>12} {of:>6} {speed:>8.0} {:>8}", view.name(), written * 100 / data.len());
    }
}
