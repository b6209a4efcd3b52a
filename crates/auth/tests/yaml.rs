//! Suites in YAML, of the folder that `SLUICE_DATA` names: every file of a pattern, none where there is no such folder.

use std::fs;
use std::path::{Path, PathBuf};

use yaml_rust2::{Yaml, YamlLoader};

/// Files below a folder of the data whose names end so.
pub fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let Some(data) = std::env::var_os("SLUICE_DATA") else { return Vec::new() };
    let mut found = Vec::new();
    collect(&Path::new(&data).join(folder), ending, &mut found);
    found.sort();
    found
}

fn collect(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => collect(&path, ending, found),
            false if path.to_string_lossy().ends_with(ending) => found.push(path),
            false => {}
        }
    }
}

pub fn documents(path: &Path) -> Vec<Yaml> {
    let text = fs::read_to_string(path).unwrap();
    YamlLoader::load_from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text of a scalar, whatever type YAML gives it.
pub fn text(yaml: &Yaml) -> Option<String> {
    Some(match yaml {
        Yaml::String(text) | Yaml::Real(text) => text.clone(),
        Yaml::Integer(number) => number.to_string(),
        Yaml::Boolean(value) => value.to_string(),
        _ => return None,
    })
}

/// The items of a list, or the one that stands for a list.
pub fn items(yaml: &Yaml) -> Vec<&Yaml> {
    match yaml {
        Yaml::Array(items) => items.iter().collect(),
        Yaml::BadValue | Yaml::Null => Vec::new(),
        one => vec![one],
    }
}
