//! Executables, against clamscan where it is installed: places, digests of sections, digests of imports, version
//! information.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peer::{Random, hex};
use stream::FileType;

/// An executable of this machine, one made up, and those that `SLUICE_EXECUTABLES` names (colons between them). They
/// must not be packed: clamscan unpacks what it can, and looks at that too.
fn executables(folder: &Path) -> Vec<(FileType, u8, PathBuf)> {
    let (made, apple) = (folder.join("made.exe"), folder.join("made.macho"));
    fs::write(&made, crate::peer::pe::made_up()).expect("an executable");
    fs::write(&apple, made_up_for_apple()).expect("an executable");
    let mut all =
        vec![(FileType::Elf, 6, PathBuf::from("/bin/true")), (FileType::Pe, 1, made), (FileType::MachO, 9, apple)];
    let named = std::env::var("SLUICE_EXECUTABLES").unwrap_or_default();
    let named = named.split(':').filter(|path| !path.is_empty());
    all.extend(named.map(|path| (FileType::Pe, 1, PathBuf::from(path))));
    all.retain(|(_, _, path)| path.is_file());
    all
}

/// A thin Mach-O file for PowerPC with two sections and a thread. Of other processors clamscan 1.4 takes the entry point
/// to be 0.
fn made_up_for_apple() -> Vec<u8> {
    let mut random = Random(77);
    let mut file: Vec<u8> = (0..0x2000).map(|_| random.next() as u8).collect();
    file[..0x400].fill(0);
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    let words = |all: &[u32]| all.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    put(0, &words(&[0xfeed_face, 18, 3, 2, 2, 192 + 176, 0]));
    put(28, &words(&[1, 192]));
    put(28 + 8, b"__TEXT");
    put(28 + 24, &words(&[0x1000, 0x2000, 0, 0x2000, 7, 5, 2, 0]));
    put(84, b"__text");
    put(84 + 16, b"__TEXT");
    put(84 + 32, &words(&[0x1800, 0x600, 0x800, 4]));
    put(152, b"__data");
    put(152 + 16, b"__TEXT");
    put(152 + 32, &words(&[0x2000, 0x7f3, 0x1000, 4]));
    put(220, &words(&[5, 176, 1, 40]));
    put(220 + 16, &words(&[0x1834]));
    file
}

/// A body that stands somewhere in the file, with a place that may or may not be right.
fn placed(random: &mut Random, target: u8, file: &[u8], number: usize) -> String {
    // Zeros stand in so many places that the bounds on what is remembered would be tested, and nothing else.
    let at = loop {
        let end = [file.len().min(6000), file.len()][random.below(2)];
        let at = random.below(end - 16);
        if file[at..at + 8].iter().filter(|&&byte| byte != 0).count() > 3 {
            break at;
        }
    };
    let body = hex(&file[at..at + 8]);
    let delta = random.below(600);
    let shift = [0, 10, 300, 3000][random.below(4)];
    let section = random.below(if target == 6 { 28 } else { 4 });
    let place = match random.below(5) {
        0 => format!("EP+{delta},{shift}"),
        1 => format!("EP-{delta},{shift}"),
        2 => format!("S{section}+{delta},{shift}"),
        3 => format!("SL+{delta},{shift}"),
        _ => format!("SE{section}"),
    };
    format!("P{number}:{target}:{place}:{body}\n")
}

#[test]
fn places_in_executables_are_those_of_clamscan() {
    if crate::peer::is_missing() {
        return;
    }
    let folder = crate::peer::scratch("places");
    let (mut matches, mut wrong) = (0, String::new());
    for (seed, (file_type, target, path)) in executables(&folder).into_iter().enumerate() {
        let mut random = Random(seed as u64);
        let bytes = fs::read(&path).expect("an executable");
        let ndb: String = (0..3000).map(|number| placed(&mut random, target, &bytes, number)).collect();
        let found = crate::peer::compare(&folder, &[("p.ndb", ndb)], &[(file_type, path.clone())], &[], &mut wrong);
        assert!(found > 10, "{} hits too little: {found}", path.display());
        matches += found;
    }
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(wrong.is_empty(), "{wrong}");
    assert!(matches > 500, "the generator hits too little: {matches}");
}

#[test]
fn a_section_reaches_to_right_behind_it() {
    if crate::peer::is_missing() {
        return;
    }
    let folder = crate::peer::scratch("border");
    let (path, bytes) = (folder.join("made.exe"), crate::peer::pe::made_up());
    fs::write(&path, &bytes).expect("an executable");
    // The first section.
    let (start, end) = (0x400, 0xc00);
    let signature = |at: usize| format!("S{at}:1:SE0:{}\n", hex(&bytes[at..at + 8]));
    let ndb: String = [start - 1, start, end - 1, end, end + 1].into_iter().map(signature).collect();
    let mut wrong = String::new();
    let count = crate::peer::compare(&folder, &[("s.ndb", ndb)], &[(FileType::Pe, path)], &[], &mut wrong);
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(count, 3);
}

/// Output of sigtool for a file, after this word.
fn sigtool(argument: &str, path: &Path, word: &str) -> Vec<String> {
    let output = Command::new("sigtool").arg(argument).arg(path).output().expect("sigtool runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let told = text.lines().filter_map(|line| Some(line.split_once(word)?.1.rsplit(' ').next()?.to_owned()));
    told.collect()
}

#[test]
fn digests_of_sections_and_imports_are_those_of_sigtool() {
    if crate::peer::is_missing() {
        return;
    }
    let folder = crate::peer::scratch("digests");
    let mut wrong = String::new();
    let mut count = 0;
    for (file_type, _, path) in executables(&folder) {
        if file_type != FileType::Pe {
            continue;
        }
        let bytes = fs::read(&path).expect("an executable");
        let digests = sigtool("--mdb", &path, "Section{").into_iter().filter(|told| told.contains(':'));
        let mut mdb = String::new();
        for (number, told) in digests.enumerate() {
            mdb.push_str(&format!(
                "{told}:Right{number}\n*:{}:Any{number}:73\n",
                told.split(':').nth(1).expect("a digest")
            ));
            mdb.push_str(&format!("9{told}:Size{number}\n{}:Digest{number}\n", told.replace(['0', '1', '2'], "3")));
        }
        let imports = sigtool("--imp", &path, "Imphash:").into_iter().filter(|told| !told.ends_with(":0"));
        let imp: String = imports.map(|told| format!("{told}:Imports\n9{}:Other\n", &told[1..])).collect();
        let ldb = format!(
            "N;Engine:81-255,Target:1,NumberOfSections:4-4;0;{body}\nM;Engine:81-255,Target:1,NumberOfSections:5-96;0;{body}\n\
             E;Engine:81-255,Target:1,EntryPoint:0-4096;0;{body}\nF;Engine:81-255,Target:1,EntryPoint:4097-900000;0;{body}\n",
            body = hex(b"PE\0\0")
        );
        assert!(!mdb.is_empty() && !imp.is_empty(), "{}", path.display());
        let msb = format!("2048:{}:First\n", sha256(&bytes));
        let databases = [("s.mdb", mdb), ("s.msb", msb), ("s.imp", imp), ("s.ldb", ldb)];
        count += crate::peer::compare(&folder, &databases, &[(file_type, path.clone())], &[], &mut wrong);
    }
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 9, "too little was found: {count}");
}

/// The digest of the first section of the file that is made here.
fn sha256(file: &[u8]) -> String {
    use sha2::Digest as _;
    hex(&sha2::Sha256::digest(&file[0x400..0xc00]))
}

#[test]
fn places_in_version_information_are_those_of_clamscan() {
    if crate::peer::is_missing() {
        return;
    }
    let folder = crate::peer::scratch("version");
    let path = folder.join("made.exe");
    fs::write(&path, crate::peer::pe::made_up()).expect("an executable");
    let wide = |text: &str| hex(&text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
    let mut ndb = String::new();
    for (number, (name, value)) in crate::peer::pe::VERSION.into_iter().enumerate() {
        let (name, value) = (wide(name), wide(value));
        let padding = if (6 + name.len() / 2 + 2) % 4 == 0 { "" } else { "0000" };
        // The whole; the name; something that does not start there; a value; anywhere.
        ndb.push_str(&format!("W{number}:1:VI:{name}0000{padding}{value}\nN{number}:1:VI:{name}0000\n"));
        ndb.push_str(&format!("T{number}:1:VI:{}\n", &name[4..]));
        ndb.push_str(&format!("V{number}:1:VI:{value}\nA{number}:1:*:{name}{{-8}}{value}\n"));
    }
    let ldb = format!(
        "L;Engine:81-255,Target:1;0&1;VI:{};VI:{}\nM;Engine:81-255,Target:1;0&1;VI:{};VI:{}\n",
        wide("CompanyName"),
        wide("FileVersion"),
        wide("CompanyName"),
        wide("leVersion")
    );
    let mut wrong = String::new();
    let files = [(FileType::Pe, path)];
    let count = crate::peer::compare(&folder, &[("v.ndb", ndb), ("v.ldb", ldb)], &files, &[], &mut wrong);
    // clamscan does not find bodies of several parts there.
    let parts = format!("P:1:VI:{}*{}\n", wide("CompanyName"), wide("Makers"));
    let ours = crate::peer::ours(&[("p.ndb", parts)], FileType::Pe, &crate::peer::pe::made_up());
    assert_eq!(ours.into_iter().collect::<Vec<_>>(), ["P.UNOFFICIAL"]);
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(count, 3 * crate::peer::pe::VERSION.len() + 1);
}
