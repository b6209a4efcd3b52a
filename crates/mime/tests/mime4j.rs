//! Fields and decoded parts are those that Apache Mime4J expects for its test messages, when they are unpacked.

use std::path::{Path, PathBuf};

use mime::{Decoder, Parser};
use stream::law::{self, Told};
use stream::{Coding, Kind, Limits, Object};

/// Messages that are read otherwise, and why.
const DIFFERENT: [(&str, &str); 6] = [
    ("hdr-fakeout", GARBAGE),
    ("basic-plain-with-bad-header-separator", GARBAGE),
    ("malformedHeaderStartsBody-nocrlfcrlf", GARBAGE),
    ("very-long-boundary", SPACE),
    ("very-very-long-boundary", SPACE),
    ("weird-boundary", SPACE),
];
const GARBAGE: &str = "Mime4J drops lines in the header that are no fields; here the body begins with them, and \
    the second reading goes on";
const SPACE: &str = "Mime4J compares the white space at the end of a boundary; here it is dropped (RFC 2046 forbids \
    it), and the second reading compares it";

#[test]
fn fields_and_parts_are_those_of_mime4j() {
    let Some(folder) = crate::packs::folder("mail-mime/mime4j/core/src/test/resources") else {
        return;
    };
    let mut compared = 0;
    let mut differing = Vec::new();
    for (path, mail) in crate::packs::files(&folder) {
        if path.extension().is_none_or(|extension| extension != "msg") {
            continue;
        }
        let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
        let wanted = wanted(&path.with_file_name(format!("{name}_decoded.xml")));
        let seen = seen(&mail);
        compared += 1;
        if seen == wanted {
            continue;
        }
        let at = (0..).find(|&at| seen.get(at) != wanted.get(at)).expect("they differ");
        println!("{name}, item {at}\n  ours {:?}\n  Mime4J {:?}", seen.get(at), wanted.get(at));
        differing.push(name);
    }
    println!("{compared} compared, {} differ", differing.len());
    let known: Vec<&str> = DIFFERENT.iter().map(|(name, _)| *name).collect();
    assert_eq!(differing, known);
    assert_ne!(compared, 0);
}

/// One line for each field, container and body, bodies decoded, line ends as LF.
fn seen(mail: &[u8]) -> Vec<String> {
    let mut lines = vec!["message".to_owned()];
    flatten(&law::tell(Parser::new(&Limits::default()), mail), &mut lines);
    lines
}

fn flatten(told: &[Told], lines: &mut Vec<String>) {
    let mut open: Vec<(Object, Vec<u8>)> = Vec::new();
    for item in told {
        match item {
            Told::Open(object) => {
                match object.kind {
                    Kind::Message => lines.push("message".to_owned()),
                    Kind::Multipart => lines.push("multipart".to_owned()),
                    _ => {}
                }
                open.push((object.clone(), Vec::new()));
            }
            Told::Content(bytes) => open.last_mut().expect("open").1.extend(bytes),
            Told::Close => {
                let (object, content) = open.pop().expect("open");
                close(&object, &content, lines);
            }
            _ => {}
        }
    }
}

fn close(object: &Object, content: &[u8], lines: &mut Vec<String>) {
    let message = object.media_type.as_deref() == Some("message/rfc822");
    match object.kind {
        // The line of mbox files is no field for Mime4J.
        Kind::Field if content.starts_with(b"From ") => {}
        Kind::Field => lines.push(format!("field {}", text(content).trim_end_matches('\n'))),
        Kind::Part if message && object.coding != Coding::Identity => {
            lines.push("message".to_owned());
            let decoded = decode(object.coding, content);
            flatten(&law::tell(Parser::new(&Limits::default()), &decoded), lines);
        }
        Kind::Part => push_body(&decode(object.coding, content), lines),
        _ => {}
    }
}

fn decode(coding: Coding, content: &[u8]) -> Vec<u8> {
    law::content(&law::tell(Decoder::new(coding), content))
}

/// Empty lines around preamble and epilogue are not told; empty bodies are not compared.
fn push_body(content: &[u8], lines: &mut Vec<String>) {
    let body = text(content);
    let body = body.trim_matches('\n');
    if !body.is_empty() {
        lines.push(format!("body {body}"));
    }
}

/// The bytes as characters, line ends as LF.
fn text(bytes: &[u8]) -> String {
    let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
    text.replace("\r\n", "\n")
}

/// Reads the expectations of Mime4J's tests in the same form.
fn wanted(path: &Path) -> Vec<String> {
    let xml = text(&std::fs::read(path).expect("the expectation stands beside the message"));
    let mut lines = Vec::new();
    let mut rest = xml.as_str();
    let mut content = String::new();
    while let Some((before, behind)) = rest.split_once('<') {
        content.push_str(before);
        let (tag, behind) = behind.split_once('>').expect("tags are closed");
        element(tag, &content, path, &mut lines);
        content.clear();
        rest = behind;
    }
    lines
}

fn element(tag: &str, content: &str, path: &Path, lines: &mut Vec<String>) {
    let unescape = || {
        let content = content.replace("&lt;", "<").replace("&gt;", ">");
        content.replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
    };
    match tag {
        "message" | "multipart" => lines.push(tag.to_owned()),
        "/field" => lines.push(format!("field {}", unescape().trim_matches('\n'))),
        "/preamble" | "/epilogue" => {
            let content: Vec<u8> = unescape().chars().map(|character| character as u8).collect();
            push_body(&content, lines);
        }
        _ => {
            if let Some(name) = tag.split('"').nth(1) {
                let body: PathBuf = path.with_file_name(name);
                push_body(&std::fs::read(body).expect("the body stands beside"), lines);
            }
        }
    }
}
