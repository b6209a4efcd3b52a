//! Views of mails: ours and those of Perl's Mail::SpamAssassin are the same.
//!
//! Of the mails at hand (`SLUICE_DATA`) and of those beside this file some are taken in turn, all of them where
//! `SLUICE_VIEWS=all` is set; `SLUICE_VIEWS=PATH` takes the files below a folder. What differs is printed by kind, and fails
//! the test where it is more than one view of a thousand.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rules::spam::message::{Field, Html, Message, MessageLimits, Part, Reading, Uri, eval};
use rules::spam::syntax::field::HeaderTest;
use rules::spam::{Rules, Test};
use serde_json::{Value, json};

use super::peer::{STOCK, latin1, load};

/// Mails taken where not all are.
const SAMPLE: usize = 150;

fn mails() -> Vec<PathBuf> {
    let wanted = std::env::var("SLUICE_VIEWS").unwrap_or_default();
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data");
    let data = std::env::var_os("SLUICE_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let mut found = Vec::new();
    let mut folders = match wanted.as_str() {
        "" | "all" => vec![
            data.join("mail-spamassassin/spamassassin-corpus"),
            data.join("mail-spamassassin/spamassassin-t"),
            data.join("mail-mime"),
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mails"),
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/mails"),
        ],
        path => vec![PathBuf::from(path)],
    };
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            found.extend(folder.is_file().then_some(folder));
            continue;
        };
        folders.extend(entries.flatten().map(|entry| entry.path()));
    }
    found.sort();
    if !wanted.is_empty() || found.len() <= SAMPLE {
        return found;
    }
    let is_own = |path: &&PathBuf| path.starts_with(env!("CARGO_MANIFEST_DIR"));
    let own = found.iter().filter(is_own).cloned().collect::<Vec<_>>();
    let step = found.len() / SAMPLE;
    let mut found: Vec<PathBuf> = found.into_iter().step_by(step).collect();
    found.extend(own);
    found.dedup();
    found
}

fn lines(lines: &[Box<[u8]>]) -> Value {
    lines.iter().map(|line| latin1(line)).collect()
}

fn fields(fields: &[Field]) -> Value {
    fields.iter().map(|field| json!([latin1(&field.name), latin1(&field.raw), latin1(&field.value)])).collect()
}

fn md5(bytes: &[u8]) -> String {
    digest::md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn part(part: &Part) -> Value {
    let content = (!part.has_parts).then(|| md5(part.decoded()));
    json!({
        "depth": part.depth, "type": &*part.kind, "effective": part.effective_kind(),
        "charset": part.charset.as_deref().map(latin1), "name": part.name.as_deref().map(latin1),
        "leaf": !part.has_parts, "decoded": content, "rendered": part.is_rendered, "fields": fields(&part.fields),
    })
}

fn uri(uri: &Uri) -> Value {
    let texts = |texts: &mut dyn Iterator<Item = &[u8]>| texts.map(latin1).collect::<Value>();
    json!({
        "types": uri.kinds, "cleaned": texts(&mut uri.cleaned.iter().map(|uri| &**uri)),
        "anchor": texts(&mut uri.anchor_texts.iter().map(|text| &**text)),
        "hosts": uri.hosts.iter().map(|(host, domain)| (latin1(host), json!(latin1(domain)))).collect::<Value>(),
        "domains": texts(&mut uri.domains().into_iter()),
    })
}

/// What of ours and of theirs is compared, by name.
type Views = BTreeMap<String, (Value, Value)>;

fn ours(message: &Message, theirs: &Value) -> Views {
    let mut out = Views::new();
    let mut put = |name: &str, ours: Value, theirs: &Value| out.insert(name.to_owned(), (ours, theirs.clone()));
    put("fields", fields(message.fields()), &theirs["fields"]);
    put("body", lines(message.body()), &theirs["body"]);
    put("visible", lines(message.visible()), &theirs["visible"]);
    put("invisible", lines(message.invisible()), &theirs["invisible"]);
    put("raw_body", lines(message.raw_body()), &theirs["raw_body"]);
    put("full", md5(message.full()).into(), &theirs["full"]);
    put("header_bytes", message.full_header().len().into(), &theirs["header_bytes"]);
    let uris: serde_json::Map<String, Value> =
        message.uris().iter().map(|found| (latin1(&found.raw), uri(found))).collect();
    put("uris", uris.into(), &theirs["uris"]);
    let structure = message.structure();
    put(
        "flags",
        json!({
            "missing_head_body_separator": structure.no_separator, "missing_mime_headers": structure.no_part_header,
            "missing_mime_head_body_separator": structure.no_part_separator,
            "mime_epilogue_exists": structure.epilogue, "truncated_header": structure.header_cut,
            "mimepart_limit_exceeded": structure.too_many_parts,
        }),
        &theirs["flags"],
    );
    let parts: Value = theirs["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| {
            let mut part = part.clone();
            let object = part.as_object_mut().unwrap();
            object.remove("message");
            object.remove("lines");
            part
        })
        .collect();
    put("parts", message.parts().iter().map(part).collect(), &parts);
    html(message, &theirs["html"], &mut out);
    out
}

/// Numbers, elements and texts of the HTML.
fn html(message: &Message, theirs: &Value, out: &mut Views) {
    let mut put = |name: &str, ours: Value, theirs: &Value| out.insert(name.to_owned(), (ours, theirs.clone()));
    let none = Html::default();
    let html = message.pages().last().unwrap_or(&none);
    let round = |number: f64| json!((number * 1e9).round() / 1e9);
    let ours: serde_json::Map<String, Value> =
        html.numbers.iter().map(|(name, number)| ((*name).to_owned(), round(*number))).collect();
    let mut numbers = serde_json::Map::new();
    for (name, value) in theirs.as_object().unwrap() {
        if let Some(number) = value.as_str().and_then(|text| text.parse().ok()).or(value.as_f64())
            && name != "uri_truncated"
        {
            numbers.insert(name.clone(), round(number));
        }
    }
    put("html numbers", ours.into(), &numbers.into());
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<i64>().ok()).or(value.as_i64());
    let empty = serde_json::Map::new();
    let inside = theirs["inside"].as_object().unwrap_or(&empty);
    let tags: Value = inside.iter().map(|(name, count)| (name.clone(), json!(number(count)))).collect();
    put("html tags", html.tags.iter().map(|(name, count)| (latin1(name.as_bytes()), json!(count))).collect(), &tags);
    for name in ["anchor", "title", "comment", "script"] {
        let ours = html.texts.get(name).map_or(Value::Null, |texts| lines(texts));
        put(&format!("html {name}"), ours, &theirs[name]);
    }
}

/// Fields with each of the modifiers; one view for each name.
fn got(message: &Message, reading: &Reading, theirs: &Value, all: &mut Views) {
    for (request, theirs) in theirs["get"].as_object().unwrap() {
        let Ok(test) = HeaderTest::read(format!("{request} =~ /x/").as_bytes()) else { continue };
        let ours = message.get(test.field(), reading);
        let kind = request.split_once(':').map_or("get", |(_, modifiers)| modifiers);
        let entry = all.entry(format!("get {kind}")).or_insert_with(|| (json!({}), json!({})));
        let ours = ours.iter().map(|text| latin1(text)).collect::<Value>();
        entry.0.as_object_mut().unwrap().insert(request.clone(), ours);
        entry.1.as_object_mut().unwrap().insert(request.clone(), theirs.clone());
    }
}

/// Rules that call a function over views, by name, and whether they hit.
fn evals(message: &Message, rules: &Rules, theirs: &Value, all: &mut Views) {
    let mut ours = serde_json::Map::new();
    for rule in rules.live() {
        let Some(Test::Eval(view, call)) = &rule.test else { continue };
        if let (Some((_, function)), true) = (eval::find(&call.function, *view), theirs.get(&*rule.name).is_some()) {
            ours.insert(rule.name.to_string(), json!(function(message, &call.arguments) != 0.0));
        }
    }
    all.insert("evals".into(), (ours.into(), theirs.clone()));
}

/// A short account of where two values part.
fn apart(ours: &Value, theirs: &Value) -> String {
    match (ours, theirs) {
        (Value::Array(ours), Value::Array(theirs)) => {
            let at = ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs);
            match at {
                Some(at) => format!("[{at}] {}", apart(&ours[at], &theirs[at])),
                None => format!(
                    "{} against {}: {}",
                    ours.len(),
                    theirs.len(),
                    cut(&ours.get(theirs.len()).or(theirs.get(ours.len())).unwrap().to_string())
                ),
            }
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            let mut keys: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
            keys.sort();
            keys.dedup();
            let differ: Vec<_> = keys.into_iter().filter(|key| ours.get(*key) != theirs.get(*key)).collect();
            let null = Value::Null;
            differ
                .iter()
                .take(2)
                .map(|key| {
                    format!(
                        "{{{}}} {}",
                        cut(key),
                        apart(ours.get(*key).unwrap_or(&null), theirs.get(*key).unwrap_or(&null))
                    )
                })
                .collect::<Vec<_>>()
                .join("; ")
        }
        (Value::String(ours), Value::String(theirs)) => {
            let at = ours.chars().zip(theirs.chars()).take_while(|(ours, theirs)| ours == theirs).count();
            let tail = |text: &str| text.chars().skip(at.saturating_sub(30)).take(90).collect::<String>();
            format!("at {at}\n      ours   {:?}\n      theirs {:?}", tail(ours), tail(theirs))
        }
        (ours, theirs) => format!("{} against {}", cut(&ours.to_string()), cut(&theirs.to_string())),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

#[test]
fn mails_are_seen_as_spamassassin_sees_them() {
    let [folder, site] = STOCK.map(Path::new);
    if !Path::new("/usr/share/perl5/Mail/SpamAssassin.pm").exists() || !folder.join("20_aux_tlds.cf").exists() {
        eprintln!("skipped: SpamAssassin is not installed");
        return;
    }
    let mails = mails();
    let rules = load(&[folder, site]);
    let reading = Reading::new(&rules.settings);
    let functions = eval::all().map(|(name, _)| name).collect::<Vec<_>>().join(",");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/views.pl");
    let mut child = Command::new("perl")
        .arg(script)
        .arg(functions)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let names: String = mails.iter().map(|path| format!("{}\n", path.display())).collect();
    let writer = std::thread::spawn(move || input.write_all(names.as_bytes()));
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (mut compared, mut differing): (BTreeMap<String, u32>, BTreeMap<String, Vec<String>>) = Default::default();
    for path in &mails {
        let mut line = Vec::new();
        output.read_until(b'\n', &mut line).unwrap();
        let theirs: Value =
            serde_json::from_str(&latin1(&line)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(theirs["file"], latin1(path.to_string_lossy().as_bytes()));
        let mail = fs::read(path).unwrap();
        let message = Message::read(&mail, &reading, &MessageLimits::default());
        let mut views = ours(&message, &theirs);
        got(&message, &reading, &theirs, &mut views);
        evals(&message, &rules, &theirs["evals"], &mut views);
        for (name, (ours, theirs)) in views {
            *compared.entry(name.clone()).or_default() += 1;
            if ours != theirs {
                let short = path.iter().rev().take(2).collect::<Vec<_>>();
                let account = format!("{:?}/{:?} {}", short.last().unwrap(), short[0], apart(&ours, &theirs));
                differing.entry(name).or_default().push(account);
            }
        }
    }
    assert!(writer.join().unwrap().is_ok() && child.wait().unwrap().success());
    let total: u32 = compared.values().sum();
    let apart: usize = differing.values().map(Vec::len).sum();
    eprintln!("{} mails, {total} views, {apart} differ", mails.len());
    let shown = std::env::var("SLUICE_SHOWN").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    for (name, accounts) in &differing {
        eprintln!("{name}: {} of {}", accounts.len(), compared[name]);
        accounts.iter().take(shown).for_each(|account| eprintln!("    {account}"));
    }
    assert!(apart * 1000 <= total as usize, "{apart} of {total} views differ");
}
