//! Nothing stands still: every stage of `unpack` and `mime` over every seed of the fuzz targets, and the stages that open a
//! seed over mutants of it, under budgets of turns, of memory and of processor time.
//!
//! A mutant has lengths set to values at which sums wrap, and its checksums mended, so that readers believe it
//! (`steady/mutants.rs`). A case that never returns is seen by a watch; it and every case that is over its budget is
//! written to `CARGO_TARGET_TMPDIR`. `SLUICE_STEADY=N` tries N times as many mutants, with another seed for each N;
//! `SLUICE_STEADY_SEED=TEXT` tries only the seeds with this text in their names.

#[path = "steady/mutants.rs"]
mod mutants;
#[path = "steady/stages.rs"]
mod stages;

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mutants::Random;
use stages::{Cost, STAGES};

/// Mutants of a seed.
const MUTANTS: usize = 6;
/// Longer seeds are run as they are; they would take the time of many short ones.
const MUTATED_BYTES_MAX: usize = 40 << 10;
/// Calls of a stage besides one for each byte: more than what stands still may do before it is ended, with a finding in each.
const TURNS_MAX: u64 = 400_000;
/// Memory that a stage may take at any time: what its limits allow, and its content.
const PEAK_BYTES_MAX: usize = 64 << 20;
/// Processor time of one case, and of one turn, in a test build.
const CASE_MAX: Duration = Duration::from_secs(8);
const TURN_MAX: Duration = Duration::from_millis(1500);
/// Time after which a run counts as hanging, however busy the machine is.
const HANG: Duration = Duration::from_secs(30);

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator with the caller's own arguments; only counters are added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(held, Relaxed);
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(held, Relaxed);
        // SAFETY: the caller keeps `alloc_zeroed`'s contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Processor time of this thread, or of the clock where the system does not say.
fn processor_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = stat.and_then(|stat| stat.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| START.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

/// The case under way.
type Current = Arc<Mutex<(String, Vec<u8>, Instant)>>;

struct Trial {
    current: Current,
    /// The costliest turns: processor time, case.
    worst: Vec<(Duration, String)>,
    failures: Vec<String>,
    cases: usize,
    standing: usize,
}

impl Trial {
    /// Runs a stage over a stream; whether it opened something.
    fn case(&mut self, name: &str, stage: usize, input: &[u8]) -> bool {
        let Some(mut machine) = STAGES[stage].make() else { return false };
        let name = format!("{name} by {}", STAGES[stage].name());
        let start = |current: &Current| {
            let mut current = current.lock().expect("nobody panics with it");
            *current = (name.clone(), input.to_vec(), Instant::now());
        };
        start(&self.current);
        let (held, before) = (HELD.load(Relaxed), processor_time());
        PEAK.store(held, Relaxed);
        let turns_max = TURNS_MAX + input.len() as u64;
        let cost: Cost = stages::drive(machine.as_mut(), input, turns_max, processor_time);
        let spent = processor_time() - before;
        let peak = PEAK.load(Relaxed) - held;
        self.cases += 1;
        self.standing += usize::from(cost.stalled);
        let is_over = cost.turns >= turns_max || peak > PEAK_BYTES_MAX || spent > CASE_MAX || cost.longest > TURN_MAX;
        if is_over {
            let file = keep(&name, input);
            let Cost { turns, longest, .. } = cost;
            self.failures.push(format!(
                "{name}: {turns} turns, {} KiB, {spent:?}, the longest turn {longest:?}: {}",
                peak >> 10,
                file.display()
            ));
        }
        self.worst.push((cost.longest, name));
        self.worst.sort_by_key(|(longest, _)| std::cmp::Reverse(*longest));
        self.worst.truncate(10);
        cost.opened
    }

    /// Every stage over a seed; then those that opened something, and another one, over mutants of it.
    fn seed(&mut self, name: &str, input: &[u8], mutants: usize, random: &mut Random) {
        let own: Vec<usize> = (0..STAGES.len()).filter(|&stage| self.case(name, stage, input)).collect();
        if input.len() > MUTATED_BYTES_MAX {
            return;
        }
        for number in 0..mutants {
            let mutant = mutants::of(input, random);
            let other = random.below(STAGES.len());
            for &stage in own.iter().chain([&other]) {
                self.case(&format!("{name}, mutant {number}"), stage, &mutant);
            }
        }
    }
}

/// Keeps an input that is worth looking at.
fn keep(name: &str, input: &[u8]) -> PathBuf {
    let name: String = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, input).expect("the folder can be written");
    file
}

/// The seeds of the stages, by name.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut seeds = Vec::new();
    for folder in std::fs::read_dir(corpus).expect("the corpus is there") {
        let folder = folder.expect("it can be listed");
        let target = folder.file_name().into_string().expect("targets have plain names");
        let Some((krate @ ("unpack" | "mime"), format)) = target.split_once('_') else { continue };
        for seed in std::fs::read_dir(folder.path()).expect("a folder of seeds") {
            let path = seed.expect("it can be listed").path();
            let bytes = std::fs::read(&path).expect("it can be read");
            // The first bytes of a seed choose the cut.
            let stream = match (krate, format) {
                ("mime", _) => bytes.get(2..).unwrap_or_default().to_vec(),
                (_, "iso" | "hfs") => unpack::fuzz::blocks(&bytes).split_off(1),
                _ => bytes.get(1..).unwrap_or_default().to_vec(),
            };
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            seeds.push((format!("{target}/{name}"), stream));
        }
    }
    seeds.sort();
    seeds
}

fn run(current: Current) -> Trial {
    let times: usize = std::env::var("SLUICE_STEADY").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let mut trial = Trial { current, worst: Vec::new(), failures: Vec::new(), cases: 0, standing: 0 };
    let mut random = Random::new(times as u64);
    let wanted = std::env::var("SLUICE_STEADY_SEED").unwrap_or_default();
    for (name, stream) in mutants::standing().into_iter().filter(|(name, _)| name.contains(&wanted)) {
        trial.seed(name, &stream, 40 * times, &mut random);
    }
    for (name, stream) in seeds().into_iter().filter(|(name, _)| name.contains(&wanted)) {
        trial.seed(&name, &stream, MUTANTS * times, &mut random);
    }
    trial
}

// One test, since the counters are the process's.
#[test]
fn nothing_stands_still() {
    let current: Current = Arc::new(Mutex::new((String::new(), Vec::new(), Instant::now())));
    let done = Arc::new(AtomicBool::new(false));
    let worker = std::thread::spawn({
        let (current, done) = (current.clone(), done.clone());
        move || {
            // Whether it returns or panics.
            struct Done(Arc<AtomicBool>);
            impl Drop for Done {
                fn drop(&mut self) {
                    self.0.store(true, Relaxed);
                }
            }
            let _done = Done(done);
            run(current)
        }
    });
    while !done.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
        let current = current.lock().expect("nobody panics with it");
        if current.2.elapsed() > HANG && !current.0.is_empty() {
            panic!("{} never comes back: {}", current.0, keep(&current.0, &current.1).display());
        }
    }
    let trial = match worker.join() {
        Ok(trial) => trial,
        Err(panic) => {
            let (name, input, _) = &*current.lock().expect("nobody panics with it");
            eprintln!("{name} panics: {}", keep(name, input).display());
            std::panic::resume_unwind(panic);
        }
    };
    println!("{} cases, {} of them ended for standing still", trial.cases, trial.standing);
    println!("the longest turns:");
    trial.worst.iter().for_each(|(longest, name)| println!("  {longest:>12?}  {name}"));
    let is_whole = std::env::var_os("SLUICE_STEADY_SEED").is_none();
    assert!(trial.cases > 10_000 || !is_whole, "the corpus is there");
    assert!(trial.failures.is_empty(), "over their budgets:\n{}", trial.failures.join("\n"));
}
