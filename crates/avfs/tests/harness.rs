//! A folder that is mounted for a test, and a judge that knows one word.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use avfs::{Hit, Judge, Judging, Mode, Mounted, OnInfected, Options, Rules, Settings, Unjudged, Words};

/// What the judge of these tests finds.
pub const EVIL: &[u8] = b"X-THIS-IS-EVIL-AND-FOUND-X";

/// Content that begins so has no verdict.
pub const DEADLY: &[u8] = b"DEADLY";

/// Content that begins so has the judge panic.
pub const PANIC: &[u8] = b"PANIC!";

/// What happens once, in the course of an inspection.
type Happens = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// Counts what it inspects.
#[derive(Default)]
pub struct Counts {
    /// What happens before the next inspection has read anything.
    pub before: Happens,
    /// What happens when the next inspection has read everything.
    pub behind: Happens,
    /// Inspections begun.
    pub begun: AtomicUsize,
    /// Bytes fed.
    pub bytes: AtomicUsize,
}

/// Knows one word.
pub struct Word(pub Arc<Counts>);

struct Reading {
    counts: Arc<Counts>,
    seen: Vec<u8>,
    fed: usize,
    is_deadly: bool,
}

impl Judge for Word {
    fn begin(&self) -> Box<dyn Judging> {
        self.0.begun.fetch_add(1, Relaxed);
        happen(&self.0.before);
        Box::new(Reading { counts: self.0.clone(), seen: Vec::new(), fed: 0, is_deadly: false })
    }

    fn generation(&self) -> Vec<u8> {
        b"word".to_vec()
    }

    fn kind(&self, head: &[u8]) -> &'static str {
        if head.starts_with(b"LARGE") { "large" } else { "other" }
    }
}

impl Judging for Reading {
    fn feed(&mut self, piece: &[u8]) -> Result<Option<Hit>, Unjudged> {
        self.counts.bytes.fetch_add(piece.len(), Relaxed);
        assert!(self.fed > 0 || !piece.starts_with(PANIC), "as it has to");
        self.is_deadly |= self.fed == 0 && piece.starts_with(DEADLY);
        self.fed += piece.len();
        if self.is_deadly {
            return Err(Unjudged("it died".into()));
        }
        self.seen.extend(piece);
        let is_evil = self.seen.windows(EVIL.len()).any(|window| window == EVIL);
        let rest = self.seen.len().saturating_sub(EVIL.len() - 1);
        self.seen.drain(..rest);
        Ok(is_evil.then(|| Hit { name: "Test.Evil".into(), within: Vec::new() }))
    }

    fn finish(self: Box<Self>) -> Result<Option<Hit>, Unjudged> {
        happen(&self.counts.behind);
        if self.is_deadly { Err(Unjudged("it died".into())) } else { Ok(None) }
    }
}

fn happen(what: &Happens) {
    let what = what.lock().expect("nobody panics with it").take();
    what.into_iter().for_each(|what| what());
}

/// A test at a time: a process that another test starts would have this one's files open for a moment, and closing them is a
/// reason to inspect what was written so far.
static TURN: Mutex<()> = Mutex::new(());

/// Waits for the turn of a test.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn rules(text: &str) -> Rules {
    let user = |number: &str| number.parse().map_err(|_| "no number".to_owned());
    Rules::read(text, &Words { user: &user, is_kind: &|_| true }).expect("rules")
}

/// How a folder is mounted.
#[derive(Default, Clone, Copy)]
pub struct How {
    pub passes_all: bool,
    pub mode: Mode,
    pub on_infected: OnInfected,
    pub held_max: Option<usize>,
    pub known_max: Option<usize>,
    pub rules: &'static str,
}

/// A mount, until it is dropped.
pub struct Mount {
    pub folder: tempfile::TempDir,
    pub source: PathBuf,
    pub point: PathBuf,
    pub counts: Arc<Counts>,
    mounted: Option<Mounted>,
    _turn: MutexGuard<'static, ()>,
}

impl Mount {
    /// Mounts an empty folder; nothing where that cannot be.
    pub fn new(how: How) -> Option<Mount> {
        let is_root = rustix::process::geteuid().is_root();
        if !is_root || File::options().read(true).write(true).open("/dev/fuse").is_err() {
            eprintln!("skipped: only root can mount, and /dev/fuse has to be there");
            return None;
        }
        let turn = turn();
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["source", "point", "state", "evidence"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let mut mount = Mount {
            source: folder.path().join("source"),
            point: folder.path().join("point"),
            folder,
            counts: Arc::default(),
            mounted: None,
            _turn: turn,
        };
        mount.mount(how);
        Some(mount)
    }

    /// Mounts it once more.
    pub fn mount(&mut self, how: How) {
        let open = |name: &str| Some(File::open(self.folder.path().join(name)).expect("a folder").into());
        let settings = Settings {
            judge: (!how.passes_all).then(|| Box::new(Word(self.counts.clone())) as Box<dyn Judge>),
            mode: how.mode,
            on_infected: how.on_infected,
            rules: rules(how.rules),
            state: open("state"),
            evidence: (how.on_infected == OnInfected::Deferred || how.rules.contains("deferred"))
                .then(|| open("evidence"))
                .flatten(),
        };
        let (source, point) = (self.source.clone(), self.point.clone());
        let options = Options { source, point, threads: 4, held_max: how.held_max, known_max: how.known_max, settings };
        self.mounted = Some(avfs::mount(options, || Ok(())).expect("it mounts"));
    }

    /// How many files and folders the kernel remembers.
    pub fn known(&self) -> usize {
        self.mounted.as_ref().expect("it is mounted").known()
    }

    /// Unmounts it.
    pub fn end(&mut self) {
        self.mounted.take().map_or(Ok(()), Mounted::end).expect("it ends");
    }

    /// A path in the mount.
    pub fn at(&self, name: &str) -> PathBuf {
        self.point.join(name)
    }

    /// The same below.
    pub fn below(&self, name: &str) -> PathBuf {
        self.source.join(name)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Some(mounted) = self.mounted.take() {
            let _ = mounted.end();
        }
    }
}

/// Waits until something holds, for some seconds.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..200 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("never: {what}");
}

/// Whether a word is anywhere in a folder's files.
pub fn holds_word(folder: &Path, word: &[u8]) -> bool {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries.into_iter().any(|entry| {
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            return holds_word(&entry.path(), word);
        }
        kind.is_file() && std::fs::read(entry.path()).expect("a file").windows(word.len()).any(|window| window == word)
    })
}
