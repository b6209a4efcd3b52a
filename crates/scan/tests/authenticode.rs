//! Signatures of programs: rules on certificates, catalogues. Against clamscan where it is installed.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use crate::peer::office::{Office, SIGNER, algorithm_of, der, digest, object, sequence};
use scan::{Builder, Database, Scan};
use stream::law;
use stream::{Event, FileType, Fuel, Note, Nothing, Stage, Window};

const INDIRECT_DATA: &[u8] = b"\x2b\x06\x01\x04\x01\x82\x37\x02\x01\x04";
const PE_IMAGE: &[u8] = b"\x2b\x06\x01\x04\x01\x82\x37\x02\x01\x0f";
const CAB_DATA: &[u8] = b"\x2b\x06\x01\x04\x01\x82\x37\x02\x01\x19";
const TRUST_LIST: &[u8] = b"\x2b\x06\x01\x04\x01\x82\x37\x0a\x01";
/// Where the program that is made here has its checksum, and where it says where its signature is.
const CHECKSUM: usize = 0x98 + 64;
const ENTRY: usize = 0x98 + 96 + 32;

/// Signed bytes of a program.
fn covered(program: &[u8]) -> Vec<u8> {
    [&program[..CHECKSUM], &program[CHECKSUM + 4..ENTRY], &program[ENTRY + 8..]].concat()
}

/// Message content that says what is digested, how, and its digest.
fn indirect(what: &[u8], algorithm: &str, sum: Vec<u8>) -> Vec<u8> {
    [sequence(&[object(what), sequence(&[])]), sequence(&[algorithm_of(algorithm), der(4, &[sum])])].concat()
}

/// A program with a message as its signature.
fn with_signature(program: &[u8], message: &[u8]) -> Vec<u8> {
    let mut file = program.to_vec();
    let length = (message.len() + 8).next_multiple_of(8);
    file[ENTRY..ENTRY + 4].copy_from_slice(&(program.len() as u32).to_le_bytes());
    file[ENTRY + 4..ENTRY + 8].copy_from_slice(&(length as u32).to_le_bytes());
    file.extend((length as u32).to_le_bytes());
    file.extend([0, 2, 2, 0]);
    file.extend(message);
    file.resize(program.len() + length, 0);
    file
}

impl Signs for Office {
    fn signed(&self, signers: &[&str], algorithm: &str, certificates: &[&str]) -> Vec<u8> {
        let program = crate::peer::pe::made_up();
        let content = indirect(PE_IMAGE, algorithm, digest(algorithm, &covered(&program)));
        with_signature(&program, &self.message(signers, algorithm, INDIRECT_DATA, &content, certificates))
    }

    fn catalogue(&self, digests: &[Vec<u8>], certificates: &[&str]) -> Vec<u8> {
        let member = |content: &Vec<u8>| {
            let attribute = sequence(&[object(INDIRECT_DATA), der(0x31, &[der(0x30, std::slice::from_ref(content))])]);
            let other = sequence(&[object(b"\x2b\x06\x01\x04\x01\x82\x37\x0c\x02\x02"), der(0x31, &[vec![5, 0]])]);
            sequence(&[der(4, &[b"name".to_vec()]), der(0x31, &[other, attribute])])
        };
        let list = [
            sequence(&[object(b"\x2b\x06\x01\x04\x01\x82\x37\x0c\x01\x01")]),
            der(4, &[vec![7; 16]]),
            der(0x17, &[b"260101000000Z".to_vec()]),
            sequence(&[object(b"\x2b\x06\x01\x04\x01\x82\x37\x0c\x01\x02"), vec![5, 0]]),
            sequence(&digests.iter().map(member).collect::<Vec<_>>()),
        ];
        self.message(&["signer"], "sha256", TRUST_LIST, &list.concat(), certificates)
    }
}

/// Further methods of this office.
trait Signs {
    fn signed(&self, signers: &[&str], algorithm: &str, certificates: &[&str]) -> Vec<u8>;
    fn catalogue(&self, digests: &[Vec<u8>], certificates: &[&str]) -> Vec<u8>;
}

const ALL: [&str; 3] = ["signer", "middle", "root"];
const DAY: i64 = 86_400;

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    since.as_secs() as i64 + 5
}

/// A body that the program has, and a digest that none of them has.
fn body() -> (&'static str, Vec<u8>) {
    ("b.ndb", format!("Body:1:0:{}*{}\n", crate::peer::hex(b"MZ\0\0"), crate::peer::hex(b"PE\0\0")).into_bytes())
}

fn database(files: &[(&str, Vec<u8>)], now: i64) -> Database {
    let mut builder = Builder::new().dated(now);
    for (name, bytes) in files {
        builder.add(name, bytes).unwrap_or_else(|error| panic!("{error}"));
    }
    builder.build().dated(now)
}

/// Detections in a file that comes in pieces, unless it is trusted.
fn told(database: &Database, file: &[u8], piece: usize) -> Vec<String> {
    let mut scan = Scan::new(Arc::new(database.clone()), FileType::Pe, None);
    let (mut window, mut fuel) = (Window::with_capacity(1), Fuel::unlimited());
    let (mut taken, mut names) = (0, Vec::new());
    loop {
        let event = if taken < file.len() {
            let step = scan.step(&file[taken..file.len().min(taken + piece)], &mut window, &mut fuel);
            taken += step.taken;
            step.event
        } else {
            scan.finish(&Nothing, &mut window, &mut fuel)
        };
        match event {
            Event::Note(Note::Finding(finding)) => names.push(finding.name.to_string()),
            Event::End => break,
            _ => {}
        }
    }
    names.sort();
    if scan.allowed() { Vec::new() } else { names }
}

/// Output of clamscan.
fn clamscan(office: &Office, files: &[(&str, Vec<u8>)], file: &[u8]) -> Vec<String> {
    let folder = office.path("db");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("a folder");
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).expect("written");
    }
    fs::write(office.path("program"), file).expect("written");
    let mut command = Command::new("clamscan");
    command.args(["--allmatch", "--no-summary", "-d"]).arg(&folder).arg(office.path("program"));
    let output = command.output().expect("clamscan runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("Error:") && !errors.contains("ERROR"), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.strip_suffix(" FOUND")?.rsplit(' ').next().map(str::to_owned));
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    names
}

/// Compares with clamscan, if it is there; says what is told.
fn both(office: &Office, files: &[(&str, Vec<u8>)], file: &[u8], what: &str) -> Vec<String> {
    let ours = told(&database(files, now()), file, 1000);
    if !crate::peer::is_missing() {
        assert_eq!(ours, clamscan(office, files, file), "{what}");
    }
    ours
}

const NOTHING: [&str; 0] = [];
const BODY: [&str; 1] = ["Body.UNOFFICIAL"];

#[test]
fn a_program_is_trusted_by_rules_on_who_signed_it() {
    let Some(office) = Office::open("trusted") else { return };
    let file = office.signed(&["signer"], "sha256", &ALL);
    for (what, rules, told) in [
        ("no rule", String::new(), &BODY[..]),
        ("the root", office.rule("R", 1, "root", [1, 1, 1], false), &NOTHING),
        ("the root without times", office.rule("R", 1, "root", [1, 0, 1], true), &NOTHING),
        ("the root that may not sign code", office.rule("R", 1, "root", [0, 1, 1], false), &BODY),
        ("the root that may not sign certificates", office.rule("R", 1, "root", [1, 1, 0], false), &BODY),
        ("the one between", office.rule("M", 1, "middle", [1, 1, 1], false), &NOTHING),
        ("the signer", office.rule("S", 1, "signer", [1, 0, 0], true), &NOTHING),
        ("the signer for too little", office.rule("S", 1, "signer", [0, 1, 1], true), &BODY),
        (
            "later certificates",
            office.rule("R", 1, "signer", [1, 1, 1], false).replace(";0;note", ";2000000000;note"),
            &BODY,
        ),
        ("another serial", with_other_serial(&office.rule("S", 1, "signer", [1, 0, 0], true)), &BODY),
    ] {
        let files = [body(), ("c.crb", rules.into_bytes())];
        assert_eq!(both(&office, &files, &file, what), told, "{what}");
    }
    let root = || ("c.crb", office.rule("R", 1, "root", [1, 1, 1], false).into_bytes());
    // Digests by SHA-1, certificates that are missing, messages of others.
    for (what, file, told) in [
        ("SHA-1", office.signed(&["signer"], "sha1", &ALL), &NOTHING[..]),
        ("without the root", office.signed(&["signer"], "sha256", &ALL[..2]), &NOTHING),
        ("without the one between", office.signed(&["signer"], "sha256", &["signer", "root"]), &BODY),
        ("signed by an authority", office.signed(&["middle"], "sha256", &ALL), &NOTHING),
        ("more behind it", [&file[..], b"more"].concat(), &BODY),
        ("cut off", file[..file.len() - 8].to_vec(), &BODY),
        ("unsigned", crate::peer::pe::made_up(), &BODY),
    ] {
        assert_eq!(both(&office, &[body(), root()], &file, what), told, "{what}");
    }
    // A certificate counts as long as it is valid, and not if nobody says what time it is.
    let at = |time| told_of(&database(&[body(), root()], time), &file);
    assert_eq!((at(now()), at(now() + 11 * DAY), at(now() - DAY)), (vec![], told_body(), told_body()));
    let mut builder = Builder::new();
    [body(), root()].iter().for_each(|(name, bytes)| _ = builder.add(name, bytes).expect("read"));
    assert_eq!(told_of(&builder.build(), &file), told_body());
}

fn with_other_serial(rule: &str) -> String {
    let mut fields: Vec<&str> = rule.split(';').collect();
    fields[3] = "0123456789012345678901234567890123456789";
    fields.join(";")
}

fn root(office: &Office) -> (&'static str, Vec<u8>) {
    ("c.crb", office.rule("R", 1, "root", [1, 1, 1], false).into_bytes())
}

fn told_of(database: &Database, file: &[u8]) -> Vec<String> {
    told(database, file, usize::MAX >> 1)
}

fn told_body() -> Vec<String> {
    BODY.map(str::to_owned).to_vec()
}

#[test]
fn a_program_is_told_by_rules_on_its_certificates() {
    let Some(office) = Office::open("told") else { return };
    let file = office.signed(&["signer"], "sha256", &ALL);
    office.certify("other", "middle", SIGNER, 10);
    for (what, rules, told) in [
        ("the signer", office.rule("Bad.Signer", 0, "signer", [1, 1, 1], true), &["Bad.Signer", "Body.UNOFFICIAL"][..]),
        ("any serial", office.rule("Bad.Signer", 0, "signer", [1, 0, 0], false), &["Bad.Signer", "Body.UNOFFICIAL"]),
        ("the root", office.rule("Bad.Root", 0, "root", [0, 0, 0], false), &["Bad.Root", "Body.UNOFFICIAL"]),
        ("somebody else", office.rule("Bad.Other", 0, "other", [1, 1, 1], false), &BODY),
    ] {
        let files = [body(), ("c.crb", rules.into_bytes())];
        assert_eq!(both(&office, &files, &file, what), told, "{what}");
    }
    let told = [body(), ("c.crb", office.rule("Bad", 0, "root", [1, 1, 1], false).into_bytes())];
    assert!(!database(&told, now()).takes_back() && database(&[body(), root(&office)], now()).takes_back());
    // Trust does not help then.
    let rules =
        office.rule("R", 1, "root", [1, 1, 1], false) + &office.rule("Bad.Signer", 0, "signer", [1, 1, 1], true);
    let files = [body(), ("c.crb", rules.into_bytes())];
    assert_eq!(told_of(&database(&files, now()), &file), ["Bad.Signer", "Body.UNOFFICIAL"]);
    if !crate::peer::is_missing() {
        assert!(clamscan(&office, &files, &file).contains(&"Bad.Signer".to_owned()));
    }
}

#[test]
fn a_signature_does_not_count_for_another_digest() {
    let Some(office) = Office::open("another") else { return };
    let rule = || ("c.crb", office.rule("R", 1, "root", [1, 1, 1], false).into_bytes());
    let program = crate::peer::pe::made_up();
    let (right, wrong) = (digest("sha256", &covered(&program)), vec![7; 32]);
    // What was signed for another program gets the digest of this one.
    let message =
        office.message(&["signer"], "sha256", INDIRECT_DATA, &indirect(PE_IMAGE, "sha256", wrong.clone()), &ALL);
    let at = message.windows(32).position(|window| window == wrong).expect("the digest");
    let forged = [&message[..at], &right, &message[at + 32..]].concat();
    assert_eq!(both(&office, &[body(), rule()], &with_signature(&program, &forged), "forged"), BODY);
    assert_eq!(both(&office, &[body(), rule()], &with_signature(&program, &message), "of another"), BODY);
    // A catalogue's message is no signature of a program, nor the other way round.
    let content = indirect(PE_IMAGE, "sha256", right);
    let message = office.message(&["signer"], "sha256", TRUST_LIST, &content, &ALL);
    assert_eq!(both(&office, &[body(), rule()], &with_signature(&program, &message), "of a catalogue"), BODY);
}

#[test]
fn every_byte_of_a_signed_program_counts() {
    let Some(office) = Office::open("bytes") else { return };
    let file = office.signed(&["signer"], "sha256", &ALL);
    let database = database(&[body(), ("c.crb", office.rule("R", 1, "root", [1, 1, 1], false).into_bytes())], now());
    let mut random = crate::peer::Random(5);
    for at in (0..60).map(|_| random.below(0x3000)).chain([CHECKSUM - 1, CHECKSUM + 4, ENTRY - 1, ENTRY + 8]) {
        let mut changed = file.clone();
        changed[at] ^= 1;
        assert_ne!(told_of(&database, &changed), NOTHING, "{at:#x}");
    }
    let mut changed = file.clone();
    changed[CHECKSUM + 2] ^= 1;
    assert_eq!(told_of(&database, &changed), NOTHING, "the checksum alone does not count");
    let mut trusted = Vec::new();
    for at in (0x3008..file.len() - 8).step_by(11) {
        let mut changed = file.clone();
        changed[at] ^= 4;
        if told_of(&database, &changed).is_empty() {
            trusted.push(at - 0x3008);
        }
    }
    // Versions, the list of algorithms, and the root's own certificate are not looked at.
    assert!(trusted.len() < 80, "{trusted:?}");
    for piece in [1, 7, 0x98, 4096, 0x3004] {
        assert_eq!(told(&database, &file, piece), NOTHING, "{piece}");
    }
}

#[test]
fn a_countersignature_outlives_the_certificate() {
    let Some(office) = Office::open("stamped") else { return };
    office.certify("stamp", "root", &SIGNER.replace("codeSigning", "timeStamping"), 10);
    let file = office.signed(&["signer", "stamp"], "sha256", &["signer", "middle", "root", "stamp"]);
    let rule = |uses| ("c.crb", office.rule("R", 1, "root", uses, false).into_bytes());
    assert_eq!(both(&office, &[body(), rule([1, 1, 1])], &file, "trusted for times"), NOTHING);
    assert_eq!(both(&office, &[body(), rule([1, 0, 1])], &file, "not trusted for times"), BODY);
    assert_eq!(told_of(&database(&[body(), rule([1, 1, 1])], now() + 9_999 * DAY), &file), NOTHING);
    let by_nobody = office.signed(&["signer", "stamp"], "sha256", &ALL);
    assert_eq!(both(&office, &[body(), rule([1, 1, 1])], &by_nobody, "by nobody"), BODY);
    let of_others =
        office.signed(&["signer", "stamp", "other bytes"], "sha256", &["signer", "middle", "root", "stamp"]);
    assert_eq!(both(&office, &[body(), rule([1, 1, 1])], &of_others, "of other bytes"), BODY);
    let certificates = ["signer", "middle", "root", "stamp"];
    let before = office.signed(&["signer", "stamp", "", "200101000000Z"], "sha256", &certificates);
    assert_eq!(both(&office, &[body(), rule([1, 1, 1])], &before, "before the certificate was valid"), BODY);
    let by_signer = office.signed(&["signer", "signer"], "sha256", &ALL);
    assert_eq!(both(&office, &[body(), rule([1, 1, 1])], &by_signer, "by who may not"), BODY);
}

#[test]
fn a_time_stamp_token_outlives_the_certificate() {
    let Some(office) = Office::open("token") else { return };
    office.certify("stamp", "root", &SIGNER.replace("=codeSigning", "=critical,timeStamping"), 10);
    fs::write(office.path("stamps.pem"), ["stamp.crt", "root.crt"].map(|name| office.read(name)).concat())
        .expect("written");
    let program = crate::peer::pe::made_up();
    let content = indirect(PE_IMAGE, "sha256", digest("sha256", &covered(&program)));
    let message = office.message(&["signer"], "sha256", INDIRECT_DATA, &content, &ALL);
    let with = |signature: &[u8]| {
        let token = office.token("stamp", "stamps.pem", signature);
        with_signature(&program, &Office::with_attribute(&message, &token))
    };
    let rule = |uses| ("c.crb", office.rule("R", 1, "root", uses, false).into_bytes());
    let at = |uses, time, file: &[u8]| told_of(&database(&[body(), rule(uses)], time), file);
    let (file, of_others) = (with(&Office::signature_in(&message)), with(b"other bytes"));
    let late = now() + 9_999 * DAY;
    assert_eq!(at([1, 1, 1], now(), &file), NOTHING);
    assert_eq!(at([1, 1, 1], late, &file), NOTHING, "it was signed in time");
    assert_eq!(at([1, 1, 1], late, &with_signature(&program, &message)), BODY, "nobody says so");
    assert_eq!(at([1, 0, 1], now(), &file), BODY, "not trusted for times");
    assert_eq!(at([1, 1, 1], now(), &of_others), BODY, "of other bytes");
    for at_byte in (0..file.len() - program.len()).step_by(13).map(|at| program.len() + 8 + at) {
        let mut changed = file.clone();
        changed[at_byte.min(file.len() - 1)] ^= 4;
        let _ = at([1, 1, 1], late, &changed);
    }
}

#[test]
fn a_signature_within_a_signature_counts() {
    let Some(office) = Office::open("nested") else { return };
    office.certify("other", "root", SIGNER, 10);
    let program = crate::peer::pe::made_up();
    let signed = |algorithm, signer, certificates: &[&str]| {
        let content = indirect(PE_IMAGE, algorithm, digest(algorithm, &covered(&program)));
        office.message(&[signer], algorithm, INDIRECT_DATA, &content, certificates)
    };
    let nested = sequence(&[
        object(b"\x2b\x06\x01\x04\x01\x82\x37\x02\x04\x01"),
        der(0x31, &[signed("sha256", "other", &["other", "root"])]),
    ]);
    let outer = signed("sha1", "signer", &["signer", "middle"]);
    let file = with_signature(&program, &Office::with_attribute(&outer, &nested));
    let told = |trusts, name, file: &[u8]| {
        told_of(
            &database(&[body(), ("c.crb", office.rule("Rule", trusts, name, [1, 0, 1], false).into_bytes())], now()),
            file,
        )
    };
    assert_eq!(told(1, "other", &file), NOTHING, "the inner one");
    assert_eq!(told(1, "middle", &file), NOTHING, "the outer one");
    assert_eq!(told(1, "other", &with_signature(&program, &outer)), BODY, "the outer one alone");
    assert_eq!(told(0, "other", &file), ["Body.UNOFFICIAL", "Rule"]);
    assert_eq!(told(0, "signer", &file), ["Body.UNOFFICIAL", "Rule"]);
    let mut other = file;
    other[0x2000] ^= 1;
    assert_eq!(told(1, "other", &other), BODY, "of another program");
}

#[test]
fn a_catalogue_that_somebody_vouches_for_is_a_list_of_programs() {
    let Some(office) = Office::open("catalogue") else { return };
    let program = crate::peer::pe::made_up();
    let of = |what, algorithm| indirect(what, algorithm, digest(algorithm, &covered(&program)));
    let rule = || ("c.crb", office.rule("R", 1, "root", [1, 1, 1], false).into_bytes());
    let mut other = program.clone();
    other[0x2000] ^= 1;
    let unknown = with_signature(&program, &office.message(&["root"], "sha256", INDIRECT_DATA, &[5, 0], &["root"]));
    for (what, list, file, told) in [
        ("SHA-1", vec![of(CAB_DATA, "sha256"), of(PE_IMAGE, "sha1")], &program, &NOTHING[..]),
        ("SHA-256", vec![of(PE_IMAGE, "sha256")], &program, &NOTHING),
        ("another program", vec![of(PE_IMAGE, "sha256")], &other, &BODY),
        ("another kind of file", vec![of(CAB_DATA, "sha256")], &program, &BODY),
        ("nothing", vec![], &program, &BODY),
        ("a signature that nobody vouches for", vec![of(PE_IMAGE, "sha256")], &unknown, &NOTHING),
    ] {
        let files = [body(), rule(), ("k.cat", office.catalogue(&list, &ALL))];
        assert_eq!(both(&office, &files, file, what), told, "{what}");
    }
    // Nobody vouches for it, or not any more: it is refused by name.
    let list = office.catalogue(&[of(PE_IMAGE, "sha256")], &ALL);
    for (files, time) in [(vec![body()], now()), (vec![body(), rule()], now() + 11 * DAY)] {
        let database = database(&[&files[..], &[("k.cat", list.clone())]].concat(), time);
        let refused: Vec<_> = database.census().refused.iter().map(|one| (&*one.name, &*one.reason)).collect();
        assert_eq!(refused, [("k.cat.UNOFFICIAL", "a catalogue that no certificate rule vouches for")]);
        assert_eq!((database.census().allowed, told_of(&database, &program)), (0, told_body()));
    }
}

#[test]
fn a_signature_that_is_too_long_is_told_as_a_limit() {
    let Some(office) = Office::open("long") else { return };
    let program = crate::peer::pe::made_up();
    let content = indirect(PE_IMAGE, "sha256", digest("sha256", &covered(&program)));
    let message = office.message(&["signer"], "sha256", INDIRECT_DATA, &content, &ALL);
    let database = database(&[body(), ("c.crb", office.rule("R", 1, "root", [1, 1, 1], false).into_bytes())], now());
    let with = |message: &[u8]| told_of(&database, &with_signature(&program, message));
    let padded = |bytes: usize| [&message[..], &vec![0; bytes]].concat();
    assert_eq!(with(&padded(300 << 10)), NOTHING, "what is behind it does not matter");
    let names = &["signer"; 1];
    let long = office.message(names, "sha256", INDIRECT_DATA, &[content, der(4, &[vec![7; 300 << 10]])].concat(), &ALL);
    assert_eq!(with(&long), ["Body.UNOFFICIAL", "Heuristics.Limits.Exceeded.Signatures"]);
}

#[test]
fn what_osslsigncode_signs_is_trusted() {
    let Some(office) = Office::open("osslsigncode") else { return };
    if Command::new("osslsigncode").arg("--version").output().is_err() {
        eprintln!("skipped: osslsigncode is not installed");
        return;
    }
    fs::write(office.path("in.exe"), crate::peer::pe::made_up()).expect("written");
    fs::write(
        office.path("chain.pem"),
        ["signer.crt", "middle.crt", "root.crt"].map(|name| office.read(name)).concat(),
    )
    .expect("written");
    for algorithm in ["sha1", "sha256", "sha384", "sha512"] {
        let out = format!("{algorithm}.exe");
        let mut command = Command::new("osslsigncode");
        command.args([
            "sign",
            "-certs",
            "chain.pem",
            "-key",
            "signer.key",
            "-h",
            algorithm,
            "-in",
            "in.exe",
            "-out",
            &out,
        ]);
        let done = command.current_dir(&office.0).output().expect("osslsigncode runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        let files = [body(), ("c.crb", office.rule("R", 1, "root", [1, 1, 1], false).into_bytes())];
        let file = office.read(&out);
        assert_eq!(both(&office, &files, &file, algorithm), NOTHING, "{algorithm}");
        let mut changed = file.clone();
        changed[0x40] ^= 1;
        assert_eq!(both(&office, &files, &changed, algorithm), BODY, "{algorithm}, changed");
    }
}

#[test]
fn the_law_holds_and_a_stored_database_says_the_same() {
    let Some(office) = Office::open("law") else { return };
    let file = office.signed(&["signer"], "sha256", &ALL);
    let rules = office.rule("R", 1, "root", [1, 1, 1], false) + &office.rule("Bad", 0, "signer", [1, 1, 1], true);
    let database = database(&[body(), ("c.crb", rules.into_bytes())], now());
    assert_eq!(database.census().bounded.values().sum::<u64>(), 1);
    let mut stored = Vec::new();
    database.store("", &mut stored).expect("memory takes it");
    let loaded = Database::load(Arc::new(scan::Aligned::new(&stored))).expect("what was stored").dated(now());
    assert_eq!(told_of(&loaded, &file), ["Bad", "Body.UNOFFICIAL"]);
    let database = Arc::new(database);
    law::holds(|| Scan::new(database.clone(), FileType::Pe, None), &file);
}
