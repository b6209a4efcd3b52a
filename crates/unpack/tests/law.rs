//! The law: however the input is cut, whatever the fuel and the window, the same is emitted.

use std::path::Path;

use crate::driver::reader;
use stream::{Event, FileType, Fuel, Limits, ReadAt, Stage, Step, Window, law};
use unpack::Claim;

/// The reader of a type, as one type that the harness can make again and again.
struct Reader(Box<dyn Stage>);

impl Reader {
    fn of(file_type: FileType) -> Reader {
        Reader(unpack::reader(file_type, &Limits::default(), &crate::driver::passwords()).expect("there is a reader"))
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

type Make = fn(&[u8]) -> Option<Box<dyn Stage>>;

/// Makes the reader of what the content does not show.
fn unseen(format: &str) -> Option<Make> {
    match format {
        "mbox" => Some(|head| reader("mbox", &Claim { head, ..Claim::of(FileType::Mail) })),
        "relationships" => {
            Some(|_| reader("relationships", &Claim { name: Some("a.rels"), ..Claim::of(FileType::Binary) }))
        }
        "dmg" => Some(|_| reader("named", &Claim { name: Some("a.dmg"), ..Claim::of(FileType::Binary) })),
        "brotli" => {
            Some(|_| reader("part", &Claim { media_type: Some("application/x-brotli"), ..Claim::of(FileType::Binary) }))
        }
        "stowaway" => Some(|_| reader("carried", &Claim::of(FileType::Binary))),
        "shar" => Some(|_| reader("shar", &Claim::of(FileType::Text))),
        "makeself" => Some(|_| reader("makeself", &Claim::of(FileType::Text))),
        "dar" => Some(|_| reader("dar", &Claim::of(FileType::Binary))),
        "pyinstaller" => Some(|_| reader("pyinstaller", &Claim::of(FileType::Elf))),
        "openpgp" => Some(|_| reader("openpgp", &Claim::of(FileType::Binary))),
        "packed" => Some(|head| reader("packed", &Claim::of(unpack::recognise(head)))),
        _ => None,
    }
}

fn readers(input: &[u8]) -> [FileType; 2] {
    [unpack::recognise(&input[..input.len().min(unpack::HEAD_BYTES_MAX)]), FileType::Binary]
}

#[test]
fn it_holds_for_every_seed() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for format in [
        "gzip",
        "zip",
        "executable",
        "stowaway",
        "tar",
        "bzip2",
        "xz",
        "rar",
        "lha",
        "7z",
        "ar",
        "cpio",
        "cab",
        "arc",
        "arj",
        "recognise",
        "lzma",
        "zstd",
        "compress",
        "swf",
        "szdd",
        "lz4",
        "iso",
        "brotli",
        "snappy",
        "lzop",
        "zisofs",
        "rpm",
        "xar",
        "alz",
        "nsis",
        "installshield",
        "sis",
        "packed",
        "appledouble",
        "macbinary",
        "mbox",
        "lnk",
        "chm",
        "activemime",
        "dmg",
        "hfs",
        "disk",
        "jffs2",
        "cramfs",
        "wim",
        "squashfs",
        "runs",
        "relationships",
        "openpgp",
        "shar",
        "makeself",
        "dar",
        "pyinstaller",
    ] {
        let folder = match format {
            "makeself" => "shar",
            format => format,
        };
        let folder = corpus.join(format!("unpack_{folder}"));
        for file in std::fs::read_dir(folder).expect("the corpus is there") {
            let bytes = std::fs::read(file.expect("it can be listed").path()).expect("it can be read");
            let input = &crate::driver::stream_of(format, &bytes)[..];
            if let Some(make) = unseen(format) {
                law::holds(|| Reader(make(input).expect("there is a reader")), input);
            }
            for file_type in readers(input).into_iter().filter(|&file_type| file_type != FileType::Empty) {
                law::holds(|| Reader::of(file_type), input);
            }
        }
    }
}

#[test]
fn it_holds_at_every_cut_of_the_small_seeds() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for seed in [
        "gzip/junk-behind.gz",
        "gzip/all-fields.gz",
        "gzip/bad-header-crc.gz",
        "zip/comment-behind.zip",
        "zip/comment-directory.zip",
        "zip/descriptor-bare.zip",
        "zip/descriptor-signed.zip",
        "zip/held-central.zip",
        "zip/held-directory-end.zip",
        "zip/held-gap.zip",
        "zip/held-junk.zip",
        "zip/held-local-2.zip",
        "zip/held-local-3.zip",
        "zip/held-local.zip",
        "zip/held-locator.zip",
        "zip/held-name.zip",
        "zip/in-comment.zip",
        "zip/prefix.zip",
        "zip/short-size.zip",
        "tar/pax-unicode.tar",
        "bzip2/junk-behind.bz2",
        "xz/streams.xz",
        "xz/crc32-x86.xz",
        "xz/junk-behind.xz",
    ] {
        let bytes = std::fs::read(corpus.join(format!("unpack_{seed}"))).expect("the seed is there");
        let input = &bytes[1..];
        for file_type in readers(input) {
            law::holds_at_every_cut(|| Reader::of(file_type), input);
        }
    }
}

#[test]
fn it_holds_for_public_archives() {
    const SMALL: u64 = 3 << 9;
    let Some(folder) = crate::driver::data("archives") else {
        return;
    };
    let mut files = Vec::new();
    list(&folder, &mut files);
    for path in files {
        if path.metadata().is_ok_and(|file| file.len() > SMALL) {
            continue;
        }
        let input = std::fs::read(&path).expect("it can be read");
        let [file_type, _] = readers(&input);
        if file_type != FileType::Empty {
            law::holds(|| Reader::of(file_type), &input);
        }
    }
}

fn list(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    for file in std::fs::read_dir(folder).expect("it is a folder") {
        let path = file.expect("it can be listed").path();
        if path.is_dir() {
            list(&path, files);
        } else {
            files.push(path);
        }
    }
}
