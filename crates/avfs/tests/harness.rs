//! A folder that is mounted for a test, and a judge that knows one word.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use avfs::{Hit, Judge, Judging, Mode, Mounted, OnInfected, Options, Rescan, Rules, Settings, Unjudged, Words};

/// Content that the judge of these tests detects.
pub const EVIL: &[u8] = b"X-THIS-IS-EVIL-AND-FOUND-X";

/// Content that begins so has no verdict.
pub const DEADLY: &[u8] = b"DEADLY";

/// Content that begins so has the judge panic.
pub const PANIC: &[u8] = b"PANIC!";

/// Event that happens once, in the course of an inspection.
type Happens = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// Counts what it inspects.
#[derive(Default)]
pub struct Counts {
    /// Event before the next inspection has read anything.
    pub before: Happens,
    /// Event when the next inspection has read everything.
    pub behind: Happens,
    /// Inspections begun.
    pub begun: AtomicUsize,
    /// Bytes fed.
    pub bytes: AtomicUsize,
    /// How the contents begin.
    pub heads: Mutex<Vec<Vec<u8>>>,
}

/// Remembered bytes of each.
const HEAD_BYTES: usize = 16;

/// Knows one word, or two.
pub struct Word {
    pub counts: Arc<Counts>,
    /// The other, if it knows that.
    pub other: Option<&'static [u8]>,
}

impl Word {
    /// That knows the one.
    pub fn counting(counts: &Arc<Counts>) -> Word {
        Word { counts: counts.clone(), other: None }
    }
}

struct Reading {
    counts: Arc<Counts>,
    other: Option<&'static [u8]>,
    seen: Vec<u8>,
    fed: usize,
    is_deadly: bool,
}

impl Judge for Word {
    fn begin(&self) -> Box<dyn Judging> {
        self.counts.begun.fetch_add(1, Relaxed);
        happen(&self.counts.before);
        let Word { counts, other } = self;
        Box::new(Reading { counts: counts.clone(), other: *other, seen: Vec::new(), fed: 0, is_deadly: false })
    }

    fn generation(&self) -> Vec<u8> {
        [b"word", self.other.unwrap_or_default()].concat()
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
        let holds = |word: &[u8]| self.seen.windows(word.len()).any(|window| window == word);
        let is_evil = holds(EVIL) || self.other.is_some_and(holds);
        if self.fed == piece.len() {
            self.counts
                .heads
                .lock()
                .expect("nobody panics with it")
                .push(piece[..piece.len().min(HEAD_BYTES)].to_vec());
        }
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
    /// A word that is found, too.
    pub other: Option<&'static [u8]>,
    pub rescan: Rescan,
}

impl How {
    /// As nobody says otherwise.
    pub const PLAIN: How = How {
        passes_all: false,
        mode: Mode::Regular,
        on_infected: OnInfected::Immediate,
        held_max: None,
        known_max: None,
        rules: "",
        other: None,
        rescan: Rescan::Off,
    };
}

/// A mount, until it is dropped.
pub struct Mount {
    pub folder: tempfile::TempDir,
    pub source: PathBuf,
    pub point: PathBuf,
    pub counts: Arc<Counts>,
    /// The same of the background.
    pub aside: Arc<Counts>,
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
            aside: Arc::default(),
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
            judge: (!how.passes_all)
                .then(|| Box::new(Word { counts: self.counts.clone(), other: how.other }) as Box<dyn Judge>),
            mode: how.mode,
            on_infected: how.on_infected,
            rules: rules(how.rules),
            state: open("state"),
            evidence: (how.on_infected == OnInfected::Deferred || how.rules.contains("deferred"))
                .then(|| open("evidence"))
                .flatten(),
        };
        let (source, point) = (avfs::bare(&self.source).expect("the folder"), self.point.clone());
        let options = Options {
            source,
            point,
            threads: 4,
            held_max: how.held_max,
            known_max: how.known_max,
            settings,
            rescan: how.rescan,
        };
        self.mounted = Some(avfs::mount(options, || Ok(())).expect("it mounts"));
        self.rescan(how);
    }

    fn rescan(&self, how: How) {
        let judge = Word { counts: self.aside.clone(), other: how.other };
        self.mounted.as_ref().expect("it is mounted").rescan(Box::new(judge));
    }

    /// Has it know another word.
    pub fn renew(&self, how: How) {
        let judge = Box::new(Word { counts: self.counts.clone(), other: how.other });
        self.mounted.as_ref().expect("it is mounted").renew(judge);
        if how.rescan != Rescan::Off {
            self.rescan(how);
        }
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

/// Waits until something holds, for a minute: the background has the lowest priority.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..3000 {
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
