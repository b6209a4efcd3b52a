//! Files that end early: what the ordinary tool of a format still writes of them is among what ours reports, and that
//! something is missing is reported too.
//!
//! What a tool packs is cut at many places, and so are seeds of formats that no tool at hand packs. A tool that is not
//! installed is passed over.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::driver::Node;
use stream::Object;

/// How a tool packs its standard input or the file, and how it unpacks the file to its standard output.
struct Tool {
    name: &'static str,
    /// `{in}` is the content's file, `{out}` the packed one.
    pack: &'static str,
    /// `{in}` is the packed file.
    unpack: &'static str,
}

const fn tool(name: &'static str, pack: &'static str, unpack: &'static str) -> Tool {
    Tool { name, pack, unpack }
}

const TOOLS: &[Tool] = &[
    tool("x.gz", "gzip -c {in} > {out}", "gzip -dc {in}"),
    tool("x.bz2", "bzip2 -1c {in} > {out}", "bzip2 -dc {in}"),
    tool("x.xz", "xz -c {in} > {out}", "xz -dc {in}"),
    tool("bcj.xz", "xz -c --x86 --delta=dist=2 --lzma2 {in} > {out}", "xz -dc {in}"),
    tool("powerpc.xz", "xz -c --powerpc --lzma2 {in} > {out}", "xz -dc {in}"),
    tool("blocks.xz", "xz -c --block-size=9000 {in} > {out}", "xz -dc {in}"),
    tool("x.lzma", "xz --format=lzma -c {in} > {out}", "xz --format=lzma -dc {in}"),
    tool("x.lz", "lzip -c {in} > {out}", "lzip -dc {in}"),
    tool("x.zst", "zstd -qc {in} > {out}", "zstd -dqc {in}"),
    tool("frames.zst", "zstd -qc -B4096 {in} > {out}", "zstd -dqc {in}"),
    tool("x.lz4", "lz4 -qc {in} > {out}", "lz4 -dqc {in}"),
    tool("4.lz4", "lz4 -qc -B4 -BD -BX {in} > {out}", "lz4 -dqc {in}"),
    tool("legacy.lz4", "lz4 -qlc {in} > {out}", "lz4 -dqc {in}"),
    tool("x.lzo", "lzop -c {in} > {out}", "lzop -dc {in}"),
    tool("9.lzo", "lzop -9c {in} > {out}", "lzop -dc {in}"),
    tool("x.Z", "compress -c {in} > {out}", "compress -dc {in}"),
    tool("x.br", "brotli -c {in} > {out}", "brotli -dc {in}"),
    tool("x.sz_", "mscompress < {in} > {out}", "msexpand < {in}"),
    tool("store.zip", "7z a -mx0 {out} {in}", "7z x -so {in}"),
    tool("deflate.zip", "7z a {out} {in}", "7z x -so {in}"),
    tool("deflate64.zip", "7z a -mm=Deflate64 {out} {in}", "7z x -so {in}"),
    tool("bzip2.zip", "7z a -mm=BZip2 {out} {in}", "7z x -so {in}"),
    tool("lzma.zip", "7z a -mm=LZMA {out} {in}", "7z x -so {in}"),
    tool("ppmd.zip", "7z a -mm=PPMd {out} {in}", "7z x -so {in}"),
    tool("xz.zip", "7z a -mm=xz {out} {in}", "7z x -so {in}"),
    tool("tar.zip", "zip -q {out} {in}", "bsdtar -xOf {in}"),
    tool("unzip.zip", "zip -q {out} {in}", "unzip -p {in}"),
    tool("funzip.zip", "zip -q {out} {in}", "funzip {in}"),
    tool("x.tar", "tar cf {out} {in}", "bsdtar -xOf {in}"),
    tool("x.tar.xz", "tar cJf {out} {in}", "bsdtar -xOf {in}"),
    tool("7.tar.xz", "tar cJf {out} {in}", "7z x -so {in}"),
    tool("x.tar.gz", "tar czf {out} {in}", "bsdtar -xOf {in}"),
    tool("x.tar.bz2", "tar cjf {out} {in}", "bsdtar -xOf {in}"),
    tool("x.tar.zst", "tar --zstd -cf {out} {in}", "bsdtar -xOf {in}"),
    tool("x.tar.lz4", "bsdtar --lz4 -cf {out} {in}", "bsdtar -xOf {in}"),
    tool("x.tar.lzma", "bsdtar --lzma -cf {out} {in}", "bsdtar -xOf {in}"),
    tool("x.cpio", "bsdtar --format cpio -cf {out} {in}", "bsdtar -xOf {in}"),
];

/// Seeds of formats that few tools pack, and what unpacks them.
const SEEDS: &[(&str, &str)] = &[
    ("cab", "cabextract -pq {in}"),
    ("cab", "7z x -so {in}"),
    ("chm", "7z x -so {in}"),
    ("lha", "lha pq {in}"),
    ("rar", "7zz x -so -p- {in}"),
    ("7z", "7zz x -so -p- {in}"),
    ("7z", "bsdtar -xOf {in}"),
    ("zip", "7zz x -so -p- {in}"),
    ("zip", "bsdtar -xOf {in}"),
    ("xz", "xz -dc {in}"),
    ("lz4", "lz4 -dqc {in}"),
    ("zstd", "zstd -dqc {in}"),
    ("gzip", "gzip -dc {in}"),
    ("bzip2", "bzip2 -dc {in}"),
    ("lzma", "xz --format=lzma -dc {in}"),
    ("lzma", "lzip -dc {in}"),
    ("lzop", "lzop -dc {in}"),
    ("compress", "compress -dc {in}"),
    ("brotli", "brotli -dc {in}"),
    ("szdd", "7z x -so {in}"),
    ("rpm", "bsdtar -xOf {in}"),
    ("tar", "bsdtar -xOf {in}"),
    ("cpio", "bsdtar -xOf {in}"),
    ("ar", "bsdtar -xOf {in}"),
    ("nsis", "7z x -so {in}"),
];

/// Seeds that tools read in another way, or fill up with anything where they end: `lhx` and `pm1` in lhasa, imploded
/// data and frames of LZX in 7-Zip.
const UNLIKE: &[&str] = &["lhx.lzh", "pm1.pma", "implode.zip", "shrink.zip", "help.chm"];

const CUTS: usize = 24;

/// Text that packs well, numbers that hardly do, and zeros.
fn content(length: usize) -> Vec<u8> {
    let mut seed = 7u32;
    let mut content = Vec::new();
    while content.len() < length {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let line = match seed >> 28 {
            0..=8 => format!("line {} of what is told, and again what is told\r\n", content.len()),
            9..=13 => format!("{seed:x}{:x}\u{e8}\u{1}\u{2}", seed.rotate_left(13)),
            _ => "\0".repeat((seed >> 20) as usize & 255),
        };
        content.extend(line.bytes());
    }
    content.truncate(length);
    content
}

/// Output of the command, and whether it is content with its input; `None` where there is no such program.
fn run(command: &str, input: &Path, output: &Path) -> Option<(Vec<u8>, bool)> {
    const OUTPUT_BYTES_MAX: u64 = 4 << 20;
    let program = command.split(' ').next()?;
    let known = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().ok()?;
    if !known.status.success() {
        return None;
    }
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let command = command.replace("{in}", &name(input)).replace("{out}", &name(output));
    let mut child = Command::new("timeout")
        .args(["20", "sh", "-c", &command])
        .current_dir(input.parent()?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut written = Vec::new();
    let _ = child.stdout.take()?.take(OUTPUT_BYTES_MAX).read_to_end(&mut written);
    Some((written, child.wait().ok()?.success()))
}

/// 7-Zip puts a few bytes of ones behind data that end early, and makes this much of them at most; or it fills up with NULs.
const PADDING_MAX: usize = 600;

/// Rest of the tool's output when the contents that we report are taken off its front.
fn unseen<'a>(mut output: &'a [u8], nodes: &[&Node]) -> &'a [u8] {
    loop {
        if nodes.iter().any(|node| node.content.starts_with(output)) {
            return b"";
        }
        let fits = nodes.iter().filter(|node| !node.content.is_empty() && output.starts_with(&node.content));
        match fits.map(|node| node.content.len()).max() {
            Some(length) => output = &output[length..],
            None => return output,
        }
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("sluice-cuts-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether what the tool makes of `packed`, cut at `at`, is all seen, and told to be cut where it is not `content`.
fn is_seen(folder: &Folder, name: &str, packed: &[u8], at: usize, unpack: &str, content: Option<&[u8]>) -> bool {
    let file = folder.0.join(name);
    std::fs::write(&file, &packed[..at]).expect("it can be written");
    let Some((output, is_fine)) = run(unpack, &file, &file) else { return true };
    let object = Object { name: Some(name.into()), ..Object::default() };
    let root = Node::open(object, packed[..at].to_vec(), 4);
    let left = unseen(&output, &root.all());
    let is_padding = unpack.starts_with("7z") && left.len() < output.len() && left.len() <= PADDING_MAX;
    let is_raw = packed.windows(left.len().max(1)).any(|window| window == left);
    let is_all = content.is_none_or(|content| output == content);
    let is_told = is_fine || is_all || output.is_empty() || !root.finding_names().is_empty();
    if (left.iter().all(|&byte| byte == 0) || is_padding || is_raw) && is_told {
        return true;
    }
    let sizes: Vec<_> = root.all().iter().map(|node| node.content.len()).collect();
    println!(
        "{unpack} of {name} at {at} of {}: {} of {} bytes unseen, contents {sizes:?}, {:?}",
        packed.len(),
        left.len(),
        output.len(),
        root.finding_names()
    );
    false
}

/// Whether a seed is a good file for the tool and for us.
fn is_sound(folder: &Folder, name: &str, seed: &[u8], unpack: &str) -> bool {
    let file = folder.0.join(name);
    std::fs::write(&file, seed).expect("it can be written");
    let is_fine = run(unpack, &file, &file).is_some_and(|(_, is_fine)| is_fine);
    is_fine && Node::open(Object::default(), seed.to_vec(), 4).finding_names().is_empty()
}

#[test]
fn what_tools_still_write_of_a_file_that_ends_early_is_seen() {
    let folder = Folder::new("tools");
    let mut wrong = 0;
    for length in [3_000, 300_000] {
        let content = content(length);
        for tool in TOOLS {
            let (plain, packed) = (folder.0.join("plain"), folder.0.join(tool.name));
            std::fs::write(&plain, &content).expect("it can be written");
            let _ = std::fs::remove_file(&packed);
            let Some(_) = run(tool.pack, &plain, &packed) else {
                eprintln!("skipped: {}", tool.pack);
                continue;
            };
            let Ok(bytes) = std::fs::read(&packed) else {
                eprintln!("skipped: {} makes nothing", tool.pack);
                continue;
            };
            let cuts = (1..=CUTS).map(|cut| bytes.len() * cut / CUTS);
            wrong += cuts.filter(|&at| !is_seen(&folder, tool.name, &bytes, at, tool.unpack, Some(&content))).count();
        }
    }
    assert_eq!(wrong, 0, "contents that were not seen");
}

#[test]
fn what_tools_still_write_of_seeds_that_end_early_is_seen() {
    let folder = Folder::new("seeds");
    let mut wrong = 0;
    for &(format, unpack) in SEEDS {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fuzz/corpus/unpack_{format}"));
        for file in std::fs::read_dir(seeds).expect("the corpus is there") {
            let path = file.expect("it can be listed").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let bytes = crate::driver::stream_of(format, &std::fs::read(&path).expect("it can be read"));
            if UNLIKE.contains(&name.as_str()) || !is_sound(&folder, &name, &bytes, unpack) {
                continue;
            }
            let cuts = [bytes.len() / 3, bytes.len() / 2, bytes.len() * 4 / 5, bytes.len().saturating_sub(1)];
            wrong += cuts.into_iter().filter(|&at| !is_seen(&folder, &name, &bytes, at, unpack, None)).count();
        }
    }
    assert_eq!(wrong, 0, "contents that were not seen");
}

/// Readers of help files begin at the frame where LZX begins anew in front of the member that they want.
#[test]
fn a_broken_frame_of_a_help_file_hides_no_later_one() {
    let seed =
        |name| std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/unpack_chm").join(name));
    let open = |name| {
        let seed = seed(name).expect("the seed is there");
        Node::open(Object::default(), crate::driver::stream_of("chm", &seed), 2)
    };
    let (whole, broken) = (open("help.chm"), open("broken.chm"));
    assert!(broken.finding_names().contains(&"Heuristics.Malformed.Chm.Data".to_string()));
    let toc = |node: &Node| {
        let named = node.children.iter().find(|child| child.object.name.as_deref() == Some("toc.hhc"));
        named.map(|child| child.content.clone())
    };
    assert!(toc(&whole).is_some_and(|content| content.iter().any(|&byte| byte != 0)));
    assert_eq!(toc(&broken), toc(&whole));
}

/// Whether somewhere in what is opened is content that begins like this.
fn holds(bytes: Vec<u8>, beginning: &[u8]) -> bool {
    let root = Node::open(Object::default(), bytes, 4);
    root.all().iter().skip(1).any(|node| node.content.starts_with(beginning))
}

#[test]
fn damaged_lzma_is_read_up_to_the_damage() {
    let folder = Folder::new("lzma");
    let (plain, packed) = (folder.0.join("plain"), folder.0.join("packed"));
    let content = content(3_000);
    std::fs::write(&plain, &content).expect("it can be written");
    if run("xz --format=lzma -c {in} > {out}", &plain, &packed).is_none() {
        return eprintln!("skipped: no xz");
    }
    let bytes = std::fs::read(&packed).expect("it is packed");
    for at in (100..bytes.len()).step_by(37) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        assert!(holds(damaged, &content[..48]), "{at}");
    }
}
