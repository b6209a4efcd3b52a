//! Pages of others, hostile ones and templates of mails, of the folder `html-xss` below `SLUICE_DATA`: the law of the sanitiser holds for
//! each, and what people read of a template stays. None where there is no such folder.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// All files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => files(&path, found),
            path => found.push(path),
        }
    }
}

fn corpus() -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(data) = std::env::var_os("SLUICE_DATA") {
        files(&PathBuf::from(data).join("html-xss"), &mut found);
    }
    found.sort();
    found
}

/// All texts of a value, however deep.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(all) => all.iter().for_each(|value| texts(value, found)),
        Value::Object(all) => all.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

#[test]
fn the_law_holds_for_hostile_pages() {
    let mut count = 0;
    for path in corpus() {
        let bytes = fs::read(&path).expect("a file of the corpus");
        let mut pages = vec![String::from_utf8_lossy(&bytes).into_owned()];
        if let Ok(value) = serde_json::from_slice(&bytes) {
            texts(&value, &mut pages);
        }
        // A vector a line, in lists of them.
        pages.extend(String::from_utf8_lossy(&bytes).lines().take(20_000).map(str::to_owned));
        for page in pages {
            webmail::fuzz_sanitise(page.as_bytes());
            count += 1;
        }
    }
    eprintln!("{count} pages");
}

/// Words that people read: of a text beyond tags, letters alone.
fn words(page: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut tokeniser = text::html::Tokeniser::new();
    let mut add = |_: u64, token: text::html::Token<'_>| {
        if let text::html::Token::Text { within: text::html::Within::Page, bytes } = token {
            let text = text::html::reference::decode(bytes, text::html::reference::Place::Page);
            let text = String::from_utf8_lossy(&text).into_owned();
            words.extend(text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned));
        }
    };
    tokeniser.read(page.as_bytes(), &mut add);
    tokeniser.end(&mut add);
    words
}

#[test]
fn no_word_of_a_template_is_lost() {
    for path in corpus().into_iter().filter(|path| path.to_string_lossy().contains("templates")) {
        if path.extension().is_none_or(|end| end != "html") {
            continue;
        }
        let page = fs::read_to_string(&path).expect("a template");
        let safe = webmail::sanitise(&page, &mut |_| None);
        assert_eq!(words(&safe.html), words(&page), "{}", path.display());
    }
}
