//! The same mails through SMTP, POP3 and IMAP: each door comes to the same verdict.

use std::path::{Path, PathBuf};

use crate::harness::imap::{Imap, ask};
use crate::harness::mailbox::Pop3;
use crate::harness::{Gateway, Wire, base64, files, mail_with};

/// The folder of a pack, if it is there: unpacked below `SLUICE_DATA`.
fn pack(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("SLUICE_DATA").map(PathBuf::from)?.join(name);
    folder.is_dir().then_some(folder)
}

/// A mail with CRLF, as it stands, or with a file attached.
fn mail(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    if path.extension().is_none_or(|ending| ending != "eml") {
        return mail_with("base64", "attached.bin", &base64(&bytes));
    }
    let text: Vec<u8> = bytes.into_iter().filter(|&byte| byte != b'\r').collect();
    let mut mail = Vec::with_capacity(text.len() + text.len() / 30);
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        mail.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
        mail.extend_from_slice(b"\r\n");
    }
    mail
}

/// Finding in the refusal of a door.
fn found(said: &str) -> Option<String> {
    let found = said.split_once("refused: ")?.1;
    Some(found.rsplit_once(" (id").map_or(found, |(found, _)| found).to_string())
}

fn retrieved(wire: &mut Wire, number: usize) -> Option<String> {
    wire.send(format!("RETR {number}\r\n").as_bytes());
    let status = wire.line();
    if status.starts_with("+OK") {
        wire.lines_to_dot();
    }
    found(&status)
}

#[test]
fn each_door_comes_to_the_same_verdict() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/wrapped");
    let marked = files(&own).into_iter().filter(|path| path.extension().is_none_or(|ending| ending != "ndb"));
    let refused = verdicts(marked.collect(), &[own.join("marker.ndb")], None);
    assert!(refused > 10, "{refused} refused");
}

#[test]
fn each_door_comes_to_the_same_verdict_of_the_packs() {
    let packs = (pack("av-evasion/evasion"), pack("archives"), pack("av-clamav/clamav-scanfiles"));
    let (Some(evasion), Some(archives), Some(inputs)) = packs else {
        return eprintln!("no pack: av-evasion, archives or av-clamav");
    };
    let small = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|facts| facts.len() < 1_000_000);
    let mails: Vec<PathBuf> = files(&evasion)
        .into_iter()
        .filter(|path| !path.to_string_lossy().ends_with("db") && !path.to_string_lossy().ends_with(".tsv"))
        .chain(files(&archives))
        .chain(files(&inputs.join("clamav_hdb_scanfiles")))
        .filter(small)
        .collect();
    let count = mails.len();
    let refused = verdicts(mails, &["clamav.hdb", "clam-body.ndb"].map(|name| evasion.join(name)), Some(&inputs));
    assert!(count > 600 && refused > 60, "{count} mails, {refused} refused");
}

/// How many mails are refused, at each door the same ones; those below `infected` are among them.
fn verdicts(mails: Vec<PathBuf>, signatures: &[PathBuf], infected: Option<&Path>) -> u32 {
    let bodies: Vec<Vec<u8>> = mails.iter().map(|path| mail(path)).collect();
    let all: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
    let (pop3, imap) = (Pop3::with(&all).start(), Imap::with(&all).start());
    let classes = ["infected", "limit", "ambiguous", "unopened", "malformed"];
    let strict = classes.map(|class| format!("on_{class} = \"reject\"\n")).concat();
    let door = |protocol: &str, forward: String| {
        format!(
            "[[listener]]\nprotocol = \"{protocol}\"\naddress = \"127.0.0.1:0\"\nforward = \"{forward}\"\n{strict}\n"
        )
    };
    // What is larger than its window is cut off where mailboxes are read, and refused when it is asked for again.
    let gateway = Gateway::with(&format!(
        "hostname = \"mx.test\"\nthreads = 1\n[resources]\nhead_window_bytes = 4194304\n[database]\npaths = {0:?}\n{1}{2}{3}",
        signatures,
        door("smtp", "discard:".into()),
        door("pop3", format!("pop3://localhost:{}", pop3.port())) + "forward_tls = \"off\"\n",
        door("imap", format!("imap://localhost:{}", imap.port())),
    ));
    let [mut smtp, mut pop3, mut imap] = [0, 1, 2].map(|at| Wire::connect(gateway.addresses[at]));
    pop3.talk("S: +OK *\nC: USER tim\nS: +OK\nC: PASS secret\nS: +OK");
    imap.talk("S: * OK *");
    ask(&mut imap, "LOGIN tim secret");
    ask(&mut imap, "SELECT INBOX");
    let mut refused = 0;
    for (index, path) in mails.iter().enumerate() {
        // A session ends after so many refusals.
        if index % 16 == 0 {
            smtp = Wire::connect(gateway.addresses[0]);
            smtp.talk("S: 220 *\nC: EHLO client.test\nS: 250-*");
        }
        let by_smtp = found(&smtp.transaction(&bodies[index]));
        let by_pop3 = retrieved(&mut pop3, index + 1);
        let by_imap = found(&ask(&mut imap, &format!("FETCH {} BODY[]", index + 1)).status);
        assert_eq!((&by_smtp, &by_smtp), (&by_pop3, &by_imap), "{}", path.display());
        let is_test_file = infected.is_some_and(|folder| path.starts_with(folder));
        assert!(!is_test_file || by_smtp.is_some(), "ClamAV's own test file is found in {}", path.display());
        refused += u32::from(by_smtp.is_some());
    }
    println!("{} mails, {refused} refused", mails.len());
    refused
}
