//! Signatures: from the disk to a database that scans are made with.
//!
//! Without a folder for compiled databases the files are read and compiled here, at every start. With one they are
//! compiled once, in a process of its own ([`compile`]), to a file that every process maps ([`cache`]). When files have
//! changed since, those that are small are compiled into a small database that lies over the large one, in well under a
//! second; the rest is *due*, and waits for the whole to be compiled anew.

pub mod bar;
mod cache;
mod changes;
mod compile;
pub mod files;
pub mod signed;
mod source;
pub mod worker;

use std::fmt;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{MemfdFlags, SealFlags};
use scan::{Builder, Database, Unwanted};
use serde::{Deserialize, Serialize};

use self::bar::Bar;
use self::cache::{Base, Note, Place};
use self::changes::Changes;
use self::compile::{Done, Progress};
pub use self::files::{files, releases};
use self::signed::Checker;
use self::source::{Source, known};
use crate::cli::DatabaseArgs;
use crate::cli::pua::Pua;
use crate::output::Failure;

/// Sets of fewer bytes are compiled at every start unless a folder is named: it takes no longer than a blink.
const WORTHWHILE_BYTES: u64 = 4 << 20;

/// Warning for a start with the built-in signatures alone.
pub const NO_SIGNATURES: &str = "no signature files: only the EICAR test file is detected, and no real malware. \
                                 freshclam downloads ClamAV's into /var/lib/clamav, for `[database] paths` or `--database`";

/// Selection of signature files and signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Files, and folders of them.
    pub paths: Vec<PathBuf>,
    /// Selection of signatures.
    pub choice: Choice,
    /// The folder of compiled databases, if there is one.
    pub cache: Option<PathBuf>,
    /// Certificates of those who vouch for who signs containers; a file or a folder.
    pub certificates: Option<PathBuf>,
    /// Whether containers without a signature beside them are refused.
    pub signatures_required: bool,
}

/// Selection of signatures, in files and built in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Whether the built-in ones are, too.
    pub builtin: bool,
    /// Selection of potentially unwanted applications.
    pub pua: Pua,
}

/// Signatures, ready to be matched.
pub struct Loaded {
    /// The compiled signatures.
    pub database: Arc<Database>,
    /// How many there are.
    pub signatures: u64,
    /// Files that they came from, the built-in ones not counted.
    pub files: usize,
    /// Signatures that this version cannot match, each with its reason.
    pub refused: Vec<String>,
    /// Whether some files have changed that are only in force when the whole has been compiled anew.
    pub is_due: bool,
    /// The mapped file that they lie in, if they do.
    base: Option<Arc<Base>>,
    /// Overlay of that file: a small database, and the paths whose old signatures are off.
    overlay: Option<Arc<(File, Vec<Box<str>>)>>,
    /// The files as they were.
    sources: Vec<Source>,
}

impl Loaded {
    fn new(database: Database, sources: Vec<Source>) -> Loaded {
        let census = database.census();
        Loaded {
            signatures: census.signatures(),
            refused: census.refused.iter().map(|refused| format!("{}: {}", refused.name, refused.reason)).collect(),
            files: sources.len(),
            is_due: false,
            base: None,
            overlay: None,
            sources,
            database: Arc::new(database.dated(now())),
        }
    }

    fn of(base: Arc<Base>) -> Loaded {
        Loaded { base: Some(base.clone()), ..Loaded::new(base.database.clone(), base.note.sources.clone()) }
    }

    /// Identity of the signatures: another file, or another version of one, changes it.
    pub fn identity(&self) -> Vec<u8> {
        let mut identity = self.signatures.to_le_bytes().to_vec();
        self.sources.iter().for_each(|source| identity.extend(source.sha256.as_bytes()));
        identity
    }

    /// The same for processes that map them, too.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn signatures(&self) -> Result<jail::Signatures, Failure> {
        let base = match &self.base {
            Some(base) => base.file.try_clone()?,
            None => in_memory(|file| Ok(self.database.store("", &mut BufWriter::with_capacity(1 << 20, file))?))?,
        };
        let overlay = match self.overlay.as_deref() {
            Some((file, replaced)) => Some((file.try_clone()?.into(), replaced.clone())),
            None => None,
        };
        Ok(jail::Signatures {
            base: base.into(),
            overlay,
            takes_back: self.database.takes_back(),
            now: now(),
            rules: None,
            pages: None,
            intrusion: None,
        })
    }

    /// Whether these files, and no others, are as they were.
    fn is_current(&self, files: &[PathBuf]) -> bool {
        let is_as_it_was = |file: &PathBuf| known(&self.sources, file).is_some_and(Source::is_current);
        files.len() == self.sources.len() && files.iter().all(is_as_it_was)
    }

    /// Whether there are the built-in test signatures alone, or none at all.
    pub fn is_for_tests(&self) -> bool {
        self.sources.is_empty()
    }

    /// Says in the log what was not loaded.
    pub fn warn(&self) {
        if self.is_for_tests() {
            tracing::warn!("{NO_SIGNATURES}");
        }
        if let Some(first) = self.refused.first() {
            tracing::warn!(count = self.refused.len(), first, "signatures of unsupported forms not loaded");
        }
    }
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} signatures from {} files", self.signatures, self.files)?;
        if let Some(first) = self.refused.first() {
            write!(f, ", {} refused (first: {first})", self.refused.len())?;
        }
        Ok(())
    }
}

/// The time, in seconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

impl Pua {
    fn unwanted(&self) -> Unwanted {
        match self {
            Pua { detect_pua: false, .. } => Unwanted::None,
            Pua { include_pua, .. } if !include_pua.is_empty() => Unwanted::Only(include_pua.clone()),
            Pua { exclude_pua, .. } => Unwanted::Except(exclude_pua.clone()),
        }
    }
}

impl Choice {
    fn builder(&self) -> Builder {
        Builder::new().dated(now()).potentially_unwanted(self.pua.unwanted())
    }
}

/// Loads the files and folders at `paths` now: what parses them is a process that may do nothing else ([`compile`]).
///
/// # Errors
/// When a file cannot be read, a line in it not be understood, or a signature beside it is not its own: the message says
/// which.
pub fn load(paths: &[PathBuf], choice: &Choice, checker: &Checker) -> Result<Loaded, Failure> {
    let files = files(paths)?;
    if files.is_empty() {
        let mut builder = choice.builder();
        if choice.builtin {
            builder.add_builtin();
        }
        return Ok(Loaded::new(builder.build(), Vec::new()));
    }
    let base = compiled(&files, choice, checker)?;
    Ok(Loaded::of(Arc::new(base)))
}

/// Opens what the command line names, with the built-in signatures.
///
/// # Errors
/// As [`Wanted::open`].
pub fn open(args: &DatabaseArgs) -> Result<Loaded, Failure> {
    wanted(args).open_told()
}

/// Selection by the command line.
pub fn wanted(args: &DatabaseArgs) -> Wanted {
    let paths = args.databases.clone();
    let cache = match &args.cache {
        Some(named) => named_cache(named),
        None => usual_cache().filter(|folder| is_worthwhile(&paths) && cache::is_ours(folder)),
    };
    let choice = Choice { builtin: true, pua: args.pua.clone() };
    let certificates = args.certificates.clone();
    Wanted { paths, choice, cache, certificates, signatures_required: false }
}

fn is_worthwhile(paths: &[PathBuf]) -> bool {
    let bytes = |file: &PathBuf| std::fs::metadata(file).map_or(0, |facts| facts.len());
    files(paths).is_ok_and(|files| files.iter().map(bytes).sum::<u64>() >= WORTHWHILE_BYTES)
}

impl Wanted {
    /// Prefers the command line's choice of unwanted applications, if it has one.
    pub fn choose(&mut self, pua: &Pua) {
        if *pua != Pua::default() {
            self.choice.pua = pua.clone();
        }
    }

    /// The signatures as the files have them now: mapped, if that is what was compiled last, with what has changed since
    /// over it; else compiled.
    ///
    /// # Errors
    /// As [`load`]; and if the folder of compiled databases cannot be used.
    pub fn open(&self, progress: &mut Progress<'_>) -> Result<Loaded, Failure> {
        let Some(place) = self.place() else {
            return self.load();
        };
        if let Some(base) = place.find() {
            let loaded = self.over(&Arc::new(base))?;
            if !loaded.is_due {
                return Ok(loaded);
            }
        }
        Ok(self.compile(progress)?.0)
    }

    /// The same, with a bar of progress.
    ///
    /// # Errors
    /// As [`Wanted::open`].
    pub fn open_told(&self) -> Result<Loaded, Failure> {
        let bar = Bar::new();
        let loaded = self.open(&mut |done, total| bar.set(done, total));
        bar.clear();
        loaded
    }

    /// Database in place of `old`, compiled as a whole again where that is due. Nothing if no file has changed.
    ///
    /// # Errors
    /// As [`Wanted::open`].
    pub fn renew(&self, old: &Loaded) -> Result<Option<Loaded>, Failure> {
        match self.refresh(old)? {
            Some(loaded) if loaded.is_due => Ok(Some(self.compile(&mut |_, _| ())?.0)),
            loaded => Ok(loaded),
        }
    }

    /// Database that can be in force at once in place of `old`: small changed files over the last compiled one.
    /// Nothing if no file has changed.
    ///
    /// # Errors
    /// As [`Wanted::open`].
    pub fn refresh(&self, old: &Loaded) -> Result<Option<Loaded>, Failure> {
        let files = files(&self.paths)?;
        // A folder that is not mounted now, or changed by somebody in two steps, is no wish to go without.
        if files.is_empty() && !self.paths.is_empty() && !old.is_for_tests() {
            return Err("no signature files are there any more".into());
        }
        let Some(place) = self.place() else {
            let is_current = old.is_current(&files);
            return if is_current { Ok(None) } else { self.load().map(Some) };
        };
        let mapped = old.base.as_ref().filter(|base| place.has(base));
        if mapped.is_some() && old.is_current(&files) {
            return Ok(None);
        }
        match mapped.cloned().or_else(|| place.find().map(Arc::new)).or_else(|| old.base.clone()) {
            Some(base) => self.over(&base).map(Some),
            None => self.open(&mut |_, _| ()).map(Some),
        }
    }

    /// Compiles the whole, unless somebody else has just done so. `progress` is told how many bytes of how many have been
    /// read. Says what the compiler said, if it was asked.
    ///
    /// # Errors
    /// As [`Wanted::open`].
    pub fn compile(&self, progress: &mut Progress<'_>) -> Result<(Loaded, Option<Done>), Failure> {
        let place = self.place().ok_or("there is no folder for compiled signatures: name one with --cache")?;
        let _lock = place.lock()?;
        let files = files(&self.paths)?;
        if let Some(base) = place.find() {
            let loaded = Loaded::of(Arc::new(base));
            if loaded.is_current(&files) {
                return Ok((loaded, None));
            }
        }
        let mut done = None;
        let base = place.replace(|sink| {
            done = Some(compile::compile(&files, &self.choice, &self.checker()?, sink, progress)?);
            Ok(())
        })?;
        Ok((Loaded::of(Arc::new(base)), done))
    }

    /// The file of the compiled database.
    pub fn file(&self) -> Option<PathBuf> {
        self.place().map(|place| place.file())
    }

    fn place(&self) -> Option<Place> {
        let certificates = self.certificates.as_deref();
        self.cache
            .as_ref()
            .map(|folder| Place::new(folder, &self.paths, &self.choice, certificates, self.signatures_required))
    }

    fn checker(&self) -> Result<Checker, Failure> {
        Ok(Checker::open(self.certificates.as_deref())?.requiring(self.signatures_required))
    }

    fn load(&self) -> Result<Loaded, Failure> {
        load(&self.paths, &self.choice, &self.checker()?)
    }

    /// A compiled database with what has changed since over it, as far as that is small.
    fn over(&self, base: &Arc<Base>) -> Result<Loaded, Failure> {
        let files = files(&self.paths)?;
        let changes = Changes::between(&base.note.sources, &files);
        if changes == Changes::default() {
            return Ok(Loaded::of(base.clone()));
        }
        let choice = Choice { builtin: false, pua: self.choice.pua.clone() };
        let replaced = changes.replaced.iter().map(|path| Box::from(*path)).collect();
        let kept = base.note.sources.iter().filter(|source| !changes.replaced.contains(&&*source.path));
        let over = compiled(&changes.added, &choice, &self.checker()?)?;
        let database = base.database.with_overlay(over.database, &changes.replaced);
        let sources = over.note.sources;
        let sources = kept.filter(|source| known(&sources, Path::new(&source.path)).is_none()).chain(&sources);
        let loaded = Loaded::new(database, sources.cloned().collect());
        let overlay = Some(Arc::new((over.file, replaced)));
        Ok(Loaded { is_due: changes.is_due, base: Some(base.clone()), overlay, ..loaded })
    }
}

/// A database of these files, in memory.
fn compiled(files: &[PathBuf], choice: &Choice, checker: &Checker) -> Result<Base, Failure> {
    let memory = in_memory(|mut file| {
        if files.is_empty() {
            let note = serde_json::to_string(&Note::new(choice.clone(), Vec::new()))?;
            return Ok(Builder::new().build().store(&note, &mut file)?);
        }
        compile::compile(files, choice, checker, file.try_clone()?, &mut |_, _| ()).map(drop)
    })?;
    Base::open(memory)
}

/// A file in memory that nobody can change once it is written.
fn in_memory(write: impl FnOnce(&File) -> Result<(), Failure>) -> Result<File, Failure> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(rustix::fs::memfd_create("signatures", flags)?);
    write(&file)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// The folder of compiled signatures that somebody has named; `none` is none.
pub fn named_cache(name: &Path) -> Option<PathBuf> {
    (name != Path::new("none")).then(|| name.to_owned())
}

/// The folder of compiled signatures if none is named: the service manager's, or the user's own.
pub fn usual_cache() -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let own = || Some(named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))?.join("sluice"));
    service_cache().or_else(own)
}

/// The folder that a service manager has made for what a service can make again.
pub fn service_cache() -> Option<PathBuf> {
    let folders = std::env::var("CACHE_DIRECTORY").ok()?;
    // More than one are named with colons between them.
    folders.split(':').next().filter(|first| !first.is_empty()).map(PathBuf::from)
}
