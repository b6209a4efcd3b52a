//! Walk over the files below the named paths, in the order of their names.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use edge::settings::Pattern;
use walkdir::{DirEntry, WalkDir};

use super::report::Text;
use crate::cli::ScanChoice;

/// One thing on the way.
pub enum Step {
    /// A file to be looked at; its size.
    File(PathBuf, u64),
    /// A folder was entered.
    Folder,
    /// Something is said, and nothing looked at.
    Said(Text),
    /// Something could not be reached.
    Failed(PathBuf, String),
}

/// Goes through `paths` and the list of files; `step` says whether to go on.
///
/// # Errors
/// When the list of files cannot be read.
pub fn walk(choice: &ScanChoice, paths: &[PathBuf], mut step: impl FnMut(Step)) -> io::Result<()> {
    let here = [PathBuf::from(".")];
    let paths = if paths.is_empty() && choice.file_list.is_none() { &here[..] } else { paths };
    paths.iter().for_each(|path| below(choice, path, &mut step));
    if let Some(list) = &choice.file_list {
        let text = fs::read(list).map_err(|error| io::Error::other(format!("{}: {error}", list.display())))?;
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            below(choice, Path::new(std::ffi::OsStr::from_bytes(line)), &mut step);
        }
    }
    Ok(())
}

fn below(choice: &ScanChoice, path: &Path, step: &mut impl FnMut(Step)) {
    if path == Path::new("-") {
        return step(Step::File(path.into(), 0));
    }
    let depth_max = if choice.recursive { choice.max_dir_recursion.unwrap_or(usize::MAX) } else { 1 };
    let mut walk = WalkDir::new(path)
        .sort_by_file_name()
        .max_depth(depth_max)
        .follow_links(choice.follow_dir_symlinks == 2)
        .same_file_system(!choice.cross_fs || choice.one_file_system)
        .into_iter();
    while let Some(entry) = walk.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = error.path().unwrap_or(path).to_path_buf();
                let reason = error.io_error().map_or_else(|| error.to_string(), io::Error::to_string);
                step(Step::Failed(path, reason));
                continue;
            }
        };
        let told = visit(choice, &entry);
        let passed_over = matches!(told, Some(Step::Said(_)));
        told.into_iter().for_each(&mut *step);
        match entry.depth() {
            0 if passed_over => return,
            _ if passed_over && entry.file_type().is_dir() => walk.skip_current_dir(),
            _ => {}
        }
    }
}

/// Step for one entry; none for pipes, sockets and devices below a folder.
fn visit(choice: &ScanChoice, entry: &DirEntry) -> Option<Step> {
    let path = entry.path();
    let said = |what: &str| Some(Step::Said(Text::passed_over(path, what)));
    // Behind a link that is not followed may be anything.
    let facts = match fs::metadata(path) {
        Ok(facts) => facts,
        Err(_) if entry.path_is_symlink() => return said("Symbolic link"),
        Err(error) => return Some(Step::Failed(path.into(), error.to_string())),
    };
    let named = u8::from(entry.depth() > 0) + 1;
    let follow = if facts.is_dir() { choice.follow_dir_symlinks } else { choice.follow_file_symlinks };
    if entry.path_is_symlink() && follow < named {
        return said("Symbolic link");
    }
    if !facts.is_dir() && !facts.is_file() {
        let error = || Step::Failed(path.into(), "Not supported file type".into());
        return (entry.depth() == 0).then(error);
    }
    let (exclude, include) =
        if facts.is_dir() { (&choice.exclude_dir, &choice.include_dir) } else { (&choice.exclude, &choice.include) };
    // As clamscan: an expression looks at the whole path from the root on.
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let matches =
        |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.0.is_match(whole.as_os_str().as_bytes()));
    if matches(exclude) || (!include.is_empty() && !matches(include)) {
        return said("Excluded");
    }
    Some(if facts.is_dir() { Step::Folder } else { Step::File(path.into(), facts.len()) })
}
