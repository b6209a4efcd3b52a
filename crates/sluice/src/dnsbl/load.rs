//! Zone files: read at the start, and again when they have changed.
//!
//! A data set that several zones share is read once. While files are read anew the old data answers; where they cannot be
//! read it goes on answering, and the log says so. A file that changes while it is read is read again at the next look.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ::dnsbl::zone::dataset::{Dataset, Kind};
use ::dnsbl::zone::loader::Loader;
use ::dnsbl::zone::{Spec, Zones};
use flate2::bufread::MultiGzDecoder;

/// Bytes of one read.
const PIECE_BYTES: usize = 1 << 16;

/// The first two bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Identity of one state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Stamp> {
        let metadata = path.metadata()?;
        Ok(Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

/// Files of a data set.
type Source = (Kind, Vec<String>);

/// Data sets as they were read, and of which files.
#[derive(Debug, Default, Clone)]
pub struct Loaded {
    sets: HashMap<Source, (Vec<Stamp>, Arc<Dataset>)>,
}

/// Outcome of loading a data set.
#[derive(Debug)]
pub struct Report {
    /// Files of the data set.
    pub files: String,
    /// The data set, or why there is none.
    pub outcome: Result<Arc<Dataset>, String>,
    /// Problems in its lines: the first ones.
    pub warnings: Vec<String>,
    /// How many lines something is wrong with.
    pub warning_count: usize,
    /// How long it took.
    pub milliseconds: u128,
}

impl Loaded {
    /// Reads what has changed. Returns what it came to; nothing, if nothing has.
    pub fn refresh(&mut self, specs: &[Spec]) -> Vec<Report> {
        let mut reports = Vec::new();
        let mut looked_at = Vec::new();
        for spec in specs {
            let source = (spec.kind, spec.files.clone());
            if looked_at.contains(&source) {
                continue;
            }
            looked_at.push(source.clone());
            let stamps: io::Result<Vec<Stamp>> = spec.files.iter().map(|file| Stamp::of(Path::new(file))).collect();
            if let (Ok(stamps), Some((known, _))) = (&stamps, self.sets.get(&source))
                && stamps == known
            {
                continue;
            }
            reports.push(self.read(source));
        }
        reports
    }

    fn read(&mut self, source: Source) -> Report {
        let began = Instant::now();
        let mut report = Report {
            files: source.1.join(","),
            outcome: Err(String::new()),
            warnings: Vec::new(),
            warning_count: 0,
            milliseconds: 0,
        };
        report.outcome = read(&source).map(|(stamps, dataset, warnings, count)| {
            (report.warnings, report.warning_count) = (warnings, count);
            let dataset = Arc::new(dataset);
            self.sets.insert(source, (stamps, dataset.clone()));
            dataset
        });
        report.milliseconds = began.elapsed().as_millis();
        report
    }

    /// The zones.
    pub fn zones(&self, specs: &[Spec]) -> Zones {
        let dataset = |spec: &Spec| self.sets.get(&(spec.kind, spec.files.clone())).map(|(_, dataset)| dataset.clone());
        Zones::new(specs.iter().map(|spec| (spec.zone.clone(), dataset(spec))).collect())
    }
}

/// States of files, what they hold, what is wrong with their lines: the first ones, and how many.
type Contents = (Vec<Stamp>, Dataset, Vec<String>, usize);

fn read((kind, files): &Source) -> Result<Contents, String> {
    let mut loader = Loader::new(*kind);
    let mut stamps = Vec::new();
    for file in files {
        let stamp = read_file(file, &mut loader).map_err(|error| format!("{file}: {error}"))?;
        stamps.push(stamp);
    }
    let (dataset, warnings, count) = loader.finish(now()).map_err(|error| error.to_string())?;
    Ok((stamps, dataset, warnings, count))
}

fn read_file(file: &str, loader: &mut Loader) -> io::Result<Stamp> {
    let path = Path::new(file);
    let before = Stamp::of(path)?;
    loader.begin(file, u64::try_from(before.changed.0).unwrap_or(0));
    let mut input = BufReader::with_capacity(PIECE_BYTES, File::open(path)?);
    if input.fill_buf()?.starts_with(&GZIP) {
        let mut input = MultiGzDecoder::new(input);
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match input.read(&mut piece)? {
                0 => break,
                count => loader.feed(&piece[..count]),
            }
        }
    } else {
        loop {
            let piece = input.fill_buf()?;
            if piece.is_empty() {
                break;
            }
            loader.feed(piece);
            let count = piece.len();
            input.consume(count);
        }
    }
    loader.end();
    if Stamp::of(path)? != before {
        return Err(io::Error::other("changed while being read"));
    }
    Ok(before)
}
