//! Whole mails with the test virus in a file of each format, through each door.
//!
//! `eicar/formats.tsv` holds a file of each, made by the format's own tools where there are any, else by hand. Where a format
//! stores what it holds as it stands, something else stands in front of it, so that it is found by opening the file and
//! not in its raw bytes, where only the first kilobyte counts.

use std::io::Read;

use crate::harness::imap::{Imap, ask};
use crate::harness::mailbox::Pop3;
use crate::harness::{Behaviour, Gateway, Sink, base64, mail_with};

/// Formats in whose first kilobyte the test virus stands as it is.
const STANDS_IN_THE_OPEN: [&str; 1] = ["S/MIME (CMS)"];

/// Opens the samples that are encrypted.
const PASSWORDS: &str = "[archives]\npasswords = [\"infected\"]\n";

struct Sample {
    format: &'static str,
    file: &'static str,
    bytes: Vec<u8>,
}

fn samples() -> Vec<Sample> {
    let rows = include_str!("eicar/formats.tsv").lines().skip(1);
    rows.map(|row| {
        let mut fields = row.split('\t');
        let mut field = || fields.next().expect("three fields");
        let (format, file, packed) = (field(), field(), unbase64(field()));
        let mut bytes = Vec::new();
        flate2::read::ZlibDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("it is deflated");
        Sample { format, file, bytes }
    })
    .collect()
}

fn unbase64(text: &str) -> Vec<u8> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.bytes().filter_map(|byte| alphabet.iter().position(|&digit| digit == byte));
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0usize, 0);
    for digit in digits {
        (bits, count) = (bits << 6 | digit, count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    bytes
}

#[test]
fn a_mail_with_a_file_of_each_format_is_refused() {
    let sink = Sink::start(Behaviour::default());
    let gateway = Gateway::start_with(PASSWORDS, "smtp", &sink.forward(), "");
    let samples = samples();
    for Sample { format, file, bytes } in &samples {
        let mail = mail_with("base64", file, &base64(bytes));
        let reply = gateway.connect().deliver(&mail);
        assert!(reply.starts_with("554 5.7.1 Message refused: Eicar-Test-Signature"), "{format}: {reply}");
    }
    assert!(sink.mails().is_empty(), "something was delivered");
    assert!(samples.len() >= 46, "only {} formats", samples.len());
}

#[test]
fn the_same_mails_are_refused_by_pop3_and_imap() {
    let samples = samples();
    let mails: Vec<Vec<u8>> =
        samples.iter().map(|sample| mail_with("base64", sample.file, &base64(&sample.bytes))).collect();
    let mails: Vec<&[u8]> = mails.iter().map(Vec::as_slice).collect();
    let (pop3, imap) = (Pop3::with(&mails).start(), Imap::with(&mails).start());
    let refusing = |protocol: &str, port: u16| {
        Gateway::start_with(PASSWORDS, protocol, &format!("{protocol}://localhost:{port}"), "on_infected = \"reject\"")
    };
    let (by_pop3, by_imap) = (refusing("pop3", pop3.port()), refusing("imap", imap.port()));
    let (mut pop3, mut imap) = (by_pop3.connect(), by_imap.connect());
    pop3.talk("S: +OK *\nC: USER tim\nS: +OK\nC: PASS secret\nS: +OK");
    imap.talk("S: * OK *");
    ask(&mut imap, "LOGIN tim secret");
    ask(&mut imap, "SELECT INBOX");
    for (index, Sample { format, .. }) in samples.iter().enumerate() {
        pop3.send(format!("RETR {}\r\n", index + 1).as_bytes());
        let said = pop3.line();
        assert!(said.starts_with("-ERR [SYS/PERM] Message refused: Eicar-Test-Signature"), "{format}: {said}");
        let said = ask(&mut imap, &format!("FETCH {} BODY[]", index + 1)).status;
        assert!(said.starts_with("NO Message refused: Eicar-Test-Signature"), "{format}: {said}");
    }
}

#[test]
fn each_is_a_format_that_is_claimed_and_has_to_be_opened() {
    const IN_REACH: usize = 1024 + 68;
    let claimed = include_str!("../../../docs/engine/formats.md");
    let eicar = crate::harness::eicar();
    for Sample { format, bytes, .. } in samples() {
        assert!(claimed.contains(&format!("\n| {format} |")), "{format} is not in docs/engine/formats.md");
        let front = &bytes[..bytes.len().min(IN_REACH)];
        let is_open = front.windows(eicar.len()).any(|window| window == eicar);
        assert_eq!(is_open, STANDS_IN_THE_OPEN.contains(&format), "{format}");
    }
}

/// The local record of a zip member that is stored.
fn member(name: &str, content: &[u8]) -> Vec<u8> {
    let sizes = [(content.len() as u32).to_le_bytes(); 2].concat();
    let mut check = flate2::Crc::new();
    check.update(content);
    let name_bytes = (name.len() as u16).to_le_bytes();
    let head = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0";
    [&head[..], &check.sum().to_le_bytes(), &sizes, &name_bytes, b"\0\0", name.as_bytes(), content].concat()
}

#[test]
fn a_document_with_a_template_elsewhere_is_refused_where_that_is_asked_for() {
    let relationship = b"<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">\
        <Relationship Id=\"rId1\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/attachedTemplate\" \
        Target=\"http://elsewhere.test/a.dotm\" TargetMode=\"External\"/></Relationships>";
    let document = member("word/_rels/settings.xml.rels", relationship);
    let mail = mail_with("base64", "letter.docx", &base64(&document));
    let sink = Sink::start(Behaviour::default());
    let reply = Gateway::start(&sink.forward(), "on_external = \"reject\"").connect().deliver(&mail);
    assert!(reply.starts_with("554 5.7.1 Message refused: Heuristics.External.Ooxml.Template"), "{reply}");
    assert!(sink.mails().is_empty());
    let reply = Gateway::start(&sink.forward(), "").connect().deliver(&mail);
    assert!(reply.starts_with("250"), "{reply}");
}
