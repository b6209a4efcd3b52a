//! Generated magic of file types over generated files, against clamscan where it is installed: the same signatures of
//! target types for each file.

use std::fmt::Write as _;
use std::fs;

use crate::peer::{Random, hex};
use scan::Builder;
use stream::FileType;

const TYPES: [&str; 4] = ["GIF", "PDF", "SWF", "JAVA"];

/// Lines of magic. What is looked for anywhere has one type in each round: of several clamscan takes the one that is last
/// in a list of its own.
fn magic(random: &mut Random) -> String {
    let anywhere = random.one(&TYPES).to_owned();
    let mut text = String::new();
    for number in 0..14 {
        let at = random.below(6);
        let _ = match random.below(4) {
            0 => writeln!(text, "1:*:{}:n{number}:CL_TYPE_ANY:CL_TYPE_{anywhere}:1", hex(&random.word(4, 5))),
            1 => {
                let (a, b) = (hex(&random.word(2, 2)), hex(&random.word(1, 2)));
                writeln!(text, "1:{at},4:{a}??{b}:n{number}:CL_TYPE_ANY:CL_TYPE_{anywhere}")
            }
            _ => {
                let bytes = hex(&random.word(2, 3));
                writeln!(text, "0:{at}:{bytes}:n{number}:CL_TYPE_ANY:CL_TYPE_{}:10:255", random.one(&TYPES))
            }
        };
    }
    text
}

#[test]
fn the_types_are_those_of_clamscan() {
    if crate::peer::is_missing() {
        return;
    }
    let folder = crate::peer::scratch("magic");
    let targets = [("A", 0), ("G", 5), ("P", 10), ("F", 11), ("J", 12)];
    let ldb = targets.iter().fold(String::new(), |mut text, (name, target)| {
        let _ = writeln!(text, "{name};Engine:81-255,Target:{target};0;6e6565646c65");
        text
    });
    let rounds = std::env::var("SLUICE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(6);
    let (mut matches, mut files, mut wrong) = (0, 0, String::new());
    for round in 0..rounds {
        let mut random = Random(round);
        let databases = [("m.ftm", magic(&mut random)), ("m.ldb", ldb.clone())];
        let mut builder = Builder::new();
        builder.add("m.ftm", databases[0].1.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let database = builder.build();
        let mut paths = Vec::new();
        for number in 0..8 {
            // What stands behind the first kilobyte does not count.
            let beyond = [0, 0, 0, 1016, 1018, 1019, 1020, 1030][number];
            let mut bytes = vec![b'z'; beyond];
            bytes.extend(random.word(8, 40));
            bytes.extend(b" needle");
            let path = folder.join(format!("{number}.bin"));
            fs::write(&path, &bytes).expect("a file");
            paths.push((database.recognise(&bytes, FileType::Text).unwrap_or(FileType::Text), path));
        }
        files += paths.len();
        let before = wrong.len();
        matches += crate::peer::compare(&folder, &databases, &paths, &[], &mut wrong);
        if wrong.len() > before {
            let _ = writeln!(wrong, "   in round {round}: {}", databases[0].1);
        }
    }
    fs::remove_dir_all(&folder).expect("the scratch folder goes");
    assert!(wrong.is_empty(), "{wrong}");
    assert!(matches > files + 10, "the generator hits too little: {matches} of {files}");
}
