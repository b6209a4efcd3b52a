//! Documents: the law over every seed, and damage of every kind within bounded memory.

mod driver;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::{Path, PathBuf};

use stream::{Event, FileType, Fuel, Limits, ReadAt, Spool, Stage, Step, Window, law};

/// The fuzz targets of documents, and the most memory that a reader of theirs takes over any seed or damaged seed, with
/// the windows, and without what is kept.
const FORMATS: &[(&str, Fuzz, usize)] = &[
    ("pdf", unpack::fuzz::fuzz_pdf, 1 << 20),
    ("ole2", unpack::fuzz::fuzz_ole2, 1 << 20),
    ("rtf", unpack::fuzz::fuzz_rtf, 1 << 18),
    ("tnef", unpack::fuzz::fuzz_tnef, 1 << 18),
    ("html", unpack::fuzz::fuzz_html, 1 << 18),
    ("onenote", unpack::fuzz::fuzz_onenote, 1 << 18),
    ("cms", unpack::fuzz::fuzz_cms, 1 << 18),
];

type Fuzz = fn(&[u8]);

/// Seeds longer than this are damaged in fewer places.
const SHORT: usize = 700;

struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call goes to the system's allocator unchanged; the counters are not its business.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn seeds(format: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let files = std::fs::read_dir(corpus.join(format!("unpack_{format}"))).expect("the corpus is there");
    let paths = files.map(|file| file.expect("it can be listed").path());
    paths.map(|path| (path.clone(), std::fs::read(path).expect("it can be read"))).collect()
}

/// The reader of a stream, as one type that the harness can make again and again.
struct Reader(Box<dyn Stage>);

impl Reader {
    fn of(input: &[u8]) -> Reader {
        let file_type = unpack::recognise(&input[..input.len().min(unpack::HEAD_BYTES)]);
        let stage = unpack::reader(file_type, &Limits::default(), &unpack::Passwords::default());
        Reader(
            stage
                .or_else(|| unpack::reader(FileType::Binary, &Limits::default(), &unpack::Passwords::default()))
                .expect("there is a reader"),
        )
    }
}

impl Stage for Reader {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        let (before, room) = (fuel.left(), output.room());
        let step = self.0.step(input, output, fuel);
        let work = step.taken + room - output.room();
        let burned = before - fuel.left();
        assert!(burned >= (work as u64).min(before), "did {work} for {burned}");
        assert!(step.event == Event::Idle && step.taken == 0 || burned > 0, "did something for nothing");
        step
    }

    fn finish(&mut self, kept: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        self.0.finish(kept, output, fuel)
    }
}

#[test]
fn the_law_holds_for_every_seed() {
    for (format, _, _) in FORMATS {
        for (path, bytes) in seeds(format) {
            println!("{}", path.display());
            let input = &bytes[1..];
            law::holds(|| Reader::of(input), input);
            if input.len() < SHORT {
                law::holds_at_every_cut(|| Reader::of(input), input);
            }
        }
    }
}

/// The seed, cut at every length, and with a bit of every byte turned; of long ones some. The first byte varies.
fn damaged(seed: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let stride = 1 + seed.len() / SHORT;
    (1..seed.len()).step_by(stride).flat_map(move |at| {
        let vary = |mut bytes: Vec<u8>| {
            bytes[0] = 20 + (at % 40) as u8;
            bytes
        };
        let mut turned = seed.to_vec();
        turned[at] ^= 1 << (at / stride % 8);
        [vary(seed[..at].to_vec()), vary(turned)]
    })
}

#[test]
fn damaged_seeds_are_read_to_their_end() {
    for (format, fuzz, _) in FORMATS {
        for (_, bytes) in seeds(format) {
            fuzz(&bytes);
            damaged(&bytes).for_each(|damaged| fuzz(&damaged));
        }
    }
}

/// Reads `input`, forgets what is emitted, and returns the most bytes that were held besides those kept.
fn peak(input: &[u8]) -> usize {
    let mut spool = Spool::default();
    let mut output = Window::with_capacity(4096);
    let before = HELD.get();
    let mut peak = 0;
    let mut stage = Reader::of(input);
    let mut left = input;
    loop {
        output.clear();
        let mut fuel = Fuel::new(4096);
        let offered = &left[..left.len().min(4096)];
        PEAK.set(HELD.get());
        let spooled = spool.len() as isize;
        let (taken, event) = match offered {
            [] => (0, stage.finish(&spool, &mut output, &mut fuel)),
            _ => {
                let step = stage.step(offered, &mut output, &mut fuel);
                (step.taken, step.event)
            }
        };
        peak = peak.max(PEAK.get() - before - spooled.max(0));
        match event {
            Event::Keep(range) => assert!(spool.ask(range, (input.len() - left.len() + taken) as u64)),
            Event::End => return peak.max(0) as usize,
            _ => {}
        }
        spool.pass((input.len() - left.len()) as u64, &offered[..taken], u64::MAX);
        left = &left[taken..];
    }
}

#[test]
fn memory_stays_below_the_ceiling() {
    for (format, _, ceiling) in FORMATS {
        let mut most = 0;
        for (path, bytes) in seeds(format) {
            for input in std::iter::once(bytes.clone()).chain(damaged(&bytes).step_by(41)) {
                let peak = peak(&input[1..]);
                assert!(peak <= *ceiling, "{}: {peak}", path.display());
                most = most.max(peak);
            }
        }
        println!("{format}: {most} bytes at most, {ceiling} allowed");
    }
}
