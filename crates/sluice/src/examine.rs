//! One file through one inspection, in this process.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use inspect::{Context, Engine, In, Inspection, ObjectReport, Out, Policy, Progress, Verdict};
use stream::{Fuel, Object};

/// Bytes read from a file at a time.
const SEGMENT_BYTES: usize = 64 << 10;

/// What a file turned out to hold.
pub struct Examined {
    /// What was decided.
    pub verdict: Verdict,
    /// What was seen, in the order in which objects begin; empty unless asked for.
    pub objects: Vec<ObjectReport>,
    /// Bytes read.
    pub bytes: u64,
}

/// How a file is looked at.
#[derive(Default)]
pub struct Look {
    /// What findings ask for.
    pub policy: Policy,
    /// Whether each object is described, with the time spent in each stage.
    pub explain: bool,
}

/// Opens `path`, or the standard input for `-`.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(std::fs::File::open(path)?))
}

/// Reads `source` to its end through an inspection; `progress` is told of each piece read.
pub fn examine(
    engine: &Arc<Engine>,
    look: &Look,
    mut source: impl Read,
    mut progress: impl FnMut(u64),
) -> io::Result<Examined> {
    let context = Context { policy: look.policy, object: Object::default(), explain: look.explain };
    let mut inspection = Inspection::new(engine.clone(), context);
    if look.explain {
        inspection = inspection.with_clock(nanoseconds);
    }
    let mut segment = vec![0; SEGMENT_BYTES];
    let mut examined = Examined { verdict: Verdict::default(), objects: Vec::new(), bytes: 0 };
    loop {
        let count = match source.read(&mut segment) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            outcome => outcome?,
        };
        if count == 0 {
            break;
        }
        examined.bytes += count as u64;
        progress(count as u64);
        let mut piece = &segment[..count];
        while !piece.is_empty() {
            let taken = inspection.tell(In::Feed(piece));
            piece = &piece[taken..];
            inspection.work(&mut Fuel::unlimited());
            hear(&mut inspection, &mut examined);
        }
    }
    inspection.tell(In::Finish);
    while inspection.work(&mut Fuel::unlimited()) != Progress::Done {}
    hear(&mut inspection, &mut examined);
    examined.objects.sort_by_key(|object| object.id);
    Ok(examined)
}

fn hear(inspection: &mut Inspection, examined: &mut Examined) {
    while let Some(out) = inspection.hear() {
        match out {
            Out::Object(object) => examined.objects.push(*object),
            Out::Verdict(verdict) => examined.verdict = verdict,
            Out::Cleared(_) | Out::Blank(_) | Out::Finding(_) => {}
        }
    }
}

fn nanoseconds() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
