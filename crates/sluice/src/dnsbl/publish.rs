//! `sluice dnsbl publish`: a list as files that any web server serves.
//!
//! In the folder are, for each list, `NAME.list` (the signed manifest), `NAME.SERIAL.gz` for the newest version and those
//! that have a delta, and `NAME.FROM-TO.gz` (the deltas to the newest). Files that a manifest names are there before it is,
//! and are removed after it is gone, so that who fetches meanwhile is served: a crash in between leaves files too many.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use ::dnsbl::delta::{self, Manifest};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::folder::replace;
use super::load::now;
use super::signature;
use crate::cli::DnsblPublish;
use crate::output::Failure;

/// The longest version that is published, or compared with.
const LIST_BYTES_MAX: u64 = 4 << 30;

/// Publishes a file.
pub fn run(args: &DnsblPublish) -> Result<ExitCode, Failure> {
    if !delta::is_name(&args.name) {
        return Err(format!("{:?}: lower-case letters, digits, dots, hyphens and underscores", args.name).into());
    }
    let shown = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let new = fs::read(&args.file).map_err(|error| shown(&args.file, error))?;
    let digest: [u8; 32] = Sha256::digest(&new).into();
    let path = args.folder.join(format!("{}.list", args.name));
    let before = before(&path)?;
    let unchanged = before.as_ref().filter(|before| before.digest == digest);
    let mut manifest = Manifest {
        name: args.name.clone(),
        serial: before.as_ref().map_or(now(), |before| now().max(before.serial + 1)),
        expires: now().saturating_add(args.expires),
        bytes: u64::try_from(new.len())?,
        digest,
        deltas: Vec::new(),
    };
    if let Some(before) = unchanged {
        (manifest.serial, manifest.deltas) = (before.serial, before.deltas.clone());
    } else {
        let mut versions: Vec<u64> =
            before.iter().flat_map(|before| before.deltas.iter().copied().chain([before.serial])).collect();
        versions.drain(..versions.len().saturating_sub(args.keep));
        for from in versions {
            let whole = args.folder.join(format!("{}.{from}.gz", args.name));
            let Ok(old) = unpacked(&whole) else { continue };
            write(&args.folder, &manifest.delta_name(from), &delta::diff(&old, &new))?;
            manifest.deltas.push(from);
        }
        write(&args.folder, &manifest.whole_name(), &new)?;
    }
    let signed = signature::sign(&manifest.write(), &args.key)?;
    replace(&args.folder, &format!("{}.list", args.name), signed.as_bytes()).map_err(|error| shown(&path, error))?;
    sweep(&args.folder, &manifest)?;
    let state = if unchanged.is_some() { "unchanged" } else { "published" };
    println!(
        "{}: {state}, serial {}, {} bytes, {} deltas",
        path.display(),
        manifest.serial,
        new.len(),
        manifest.deltas.len()
    );
    Ok(ExitCode::SUCCESS)
}

/// Manifest published before; its signature is not checked, since it is ours.
fn before(path: &Path) -> Result<Option<Manifest>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(Manifest::read(&text).ok_or_else(|| format!("{}: not a manifest", path.display()))?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display()).into()),
    }
}

fn unpacked(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(File::open(path)?).take(LIST_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(bytes)?;
    replace(folder, name, &packed.finish()?).map_err(|error| format!("{}: {error}", folder.join(name).display()).into())
}

/// Removes versions and deltas that the manifest does not name.
fn sweep(folder: &Path, manifest: &Manifest) -> Result<(), Failure> {
    let mut kept: Vec<String> = manifest.deltas.iter().map(|&from| manifest.delta_name(from)).collect();
    kept.extend(manifest.deltas.iter().map(|from| format!("{}.{from}.gz", manifest.name)));
    kept.push(manifest.whole_name());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let version = name.strip_prefix(&manifest.name).and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".gz"));
        let is_ours = version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'));
        if is_ours && !kept.contains(&name) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
