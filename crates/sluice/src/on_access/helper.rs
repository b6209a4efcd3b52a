//! `mount.sluice`: how mount(8) and fstab(5) reach `sluice mount`. It is this program by another name.
//!
//! ```text
//!  /srv/upload  /srv/upload  sluice  database=/var/lib/clamav,state=/var/lib/sluice/upload,strict  0 0
//! ```

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Options of fstab for mount(8) and systemd, or without effect here.
const OTHERS: [&str; 14] = [
    "defaults", "rw", "auto", "noauto", "nofail", "_netdev", "user", "nouser", "users", "owner", "group", "async",
    "relatime", "noatime",
];

/// Flags that mount(8) may put in front: be tolerant, keep no table, be verbose.
const FLAGS: [&str; 3] = ["-s", "-n", "-v"];

/// Whether mount(8) has started us.
pub fn is_meant(arguments: &[OsString]) -> bool {
    arguments.first().and_then(|name| Path::new(name).file_name()) == Some(OsStr::new("mount.sluice"))
}

/// Becomes `sluice mount`.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let arguments: Option<Vec<&str>> = arguments.iter().skip(1).map(|argument| argument.to_str()).collect();
    let translated = arguments.ok_or_else(|| "an argument is not UTF-8".to_owned()).and_then(|all| translated(&all));
    let error = match translated {
        Ok(None) => return ExitCode::SUCCESS,
        Ok(Some(arguments)) => Command::new(super::program()).arg0("sluice").args(arguments).exec().to_string(),
        Err(error) => error,
    };
    eprintln!("mount.sluice: {error}");
    // mount(8): incorrect invocation or permissions.
    ExitCode::from(1)
}

/// The arguments of `sluice mount`; nothing where all but the mounting is wanted.
fn translated(arguments: &[&str]) -> Result<Option<Vec<String>>, String> {
    let mut paths = Vec::new();
    let mut all = vec!["mount".to_owned(), "--background".to_owned()];
    let mut rest = arguments.iter();
    while let Some(&argument) = rest.next() {
        match argument {
            "-f" => return Ok(None),
            "-t" | "-N" => drop(rest.next()),
            "-o" => {
                let options = rest.next().ok_or("-o wants options")?;
                for option in options.split(',').filter(|option| !option.is_empty()) {
                    all.extend(translated_option(option)?);
                }
            }
            flag if FLAGS.contains(&flag) => {}
            flag if flag.starts_with('-') => return Err(format!("{flag}: unknown")),
            path => paths.push(path.to_owned()),
        }
    }
    if paths.len() != 2 {
        return Err("a source and a mount point are wanted".into());
    }
    all.push("--".into());
    all.extend(paths);
    Ok(Some(all))
}

fn translated_option(option: &str) -> Result<Option<String>, String> {
    let name = option.split('=').next().unwrap_or_default();
    if OTHERS.contains(&option) || option.starts_with("x-") || option.starts_with("comment=") {
        return Ok(None);
    }
    // What would be taken for granted, and would not hold.
    if ["ro", "nosuid", "nodev", "noexec", "sync"].contains(&option) {
        return Err(format!("{option}: mount the source so; the mount has what its source has"));
    }
    let is_known = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    if is_known(name) { Ok(Some(format!("--{option}"))) } else { Err(format!("{option}: unknown")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_mount_become_those_of_sluice() {
        let said = |text: &str| translated(&text.split(' ').collect::<Vec<_>>());
        let all = |text: &str| said(text).expect("it is understood").map(|all| all.join(" "));
        assert_eq!(
            all("/a /b -n -v -o rw,nofail,x-systemd.automount,database=/d,strict -t sluice").as_deref(),
            Some("mount --background --database=/d --strict -- /a /b")
        );
        assert_eq!(all("/a /b -f"), None);
        for wrong in ["/a", "/a /b /c", "/a /b -o", "/a /b -o ro", "/a /b -o -b", "/a /b -o nodev,strict", "/a /b -x"] {
            assert!(said(wrong).is_err(), "{wrong}");
        }
    }
}
