//! `sluice dnsbl fetch`: a published list as a local file.
//!
//! The signature of the manifest is checked before anything in it is believed, and its digest before the file is replaced.
//! Nobody in between can make us take another file, an older version or one that nobody vouches for any more: such an answer
//! is an error, and the old file stays. A delta that does not lead to the digest is passed over for the whole file.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use ::dnsbl::delta::{self, Manifest};
use edge::net::agent;
use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};
use ureq::Agent;
use ureq::http::StatusCode;

use super::folder::replace;
use super::load::now;
use super::signature;
use crate::cli::DnsblFetch;
use crate::output::Failure;

/// The longest manifest.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// How long a request may take.
const SECONDS_MAX: u64 = 600;

/// Fetches a list.
pub fn run(args: &DnsblFetch) -> Result<ExitCode, Failure> {
    let agent = agent::new(&args.authorities, args.url.starts_with("https:"), SECONDS_MAX)?;
    let signed = String::from_utf8(get(&agent, &args.url, MANIFEST_BYTES_MAX)?)?;
    let manifest = read(&signed, &args.key).map_err(|error| format!("{}: {error}", args.url))?;
    let local = args.folder.join(&manifest.name);
    let old = fs::read(&local).unwrap_or_default();
    let record = format!("{}.list", manifest.name);
    let held = held(&args.folder.join(&record), &args.key);
    if held.as_ref().is_some_and(|held| held.serial > manifest.serial) {
        return Err(format!("{}: older than what is here", args.url).into());
    }
    if manifest.expires < now() {
        return Err(format!("{}: has expired", args.url).into());
    }
    if manifest.bytes > args.bytes_max {
        return Err(format!("{}: {} bytes are more than --bytes-max", args.url, manifest.bytes).into());
    }
    let (state, new) = match is_of(&old, &manifest) {
        true => ("unchanged", None),
        false => match by_delta(&agent, args, &manifest, held.as_ref(), &old) {
            Some(new) => ("updated by a delta", Some(new)),
            None => ("updated whole", Some(whole(&agent, args, &manifest)?)),
        },
    };
    if let Some(new) = new {
        replace(&args.folder, &manifest.name, &new).map_err(|error| format!("{}: {error}", local.display()))?;
    }
    replace(&args.folder, &record, signed.as_bytes())?;
    println!("{}: {state}, serial {}, {} bytes", local.display(), manifest.serial, manifest.bytes);
    Ok(ExitCode::SUCCESS)
}

fn read(signed: &str, key: &Path) -> Result<Manifest, Failure> {
    let text = signature::verified(signed, key)?;
    Ok(Manifest::read(text).ok_or("not a manifest")?)
}

/// The manifest of the file that is here.
fn held(path: &Path, key: &Path) -> Option<Manifest> {
    read(&fs::read_to_string(path).ok()?, key).ok()
}

fn is_of(bytes: &[u8], manifest: &Manifest) -> bool {
    u64::try_from(bytes.len()) == Ok(manifest.bytes) && Sha256::digest(bytes)[..] == manifest.digest
}

/// The new version by what changed; `None` if there is no way.
fn by_delta(
    agent: &Agent,
    args: &DnsblFetch,
    manifest: &Manifest,
    held: Option<&Manifest>,
    old: &[u8],
) -> Option<Vec<u8>> {
    let held = held.filter(|held| is_of(old, held) && manifest.deltas.contains(&held.serial))?;
    let packed = get(agent, &beside(&args.url, &manifest.delta_name(held.serial)), args.bytes_max).ok()?;
    let delta = unpacked(&packed, manifest.bytes.saturating_mul(2).saturating_add(1 << 20)).ok()?;
    let new = delta::apply(old, &delta, usize::try_from(manifest.bytes).ok()?)?;
    is_of(&new, manifest).then_some(new)
}

fn whole(agent: &Agent, args: &DnsblFetch, manifest: &Manifest) -> Result<Vec<u8>, Failure> {
    let url = beside(&args.url, &manifest.whole_name());
    let new = unpacked(&get(agent, &url, args.bytes_max)?, manifest.bytes.saturating_add(1))?;
    match is_of(&new, manifest) {
        true => Ok(new),
        false => Err(format!("{url}: not the file that was signed").into()),
    }
}

/// The URL of a file in the same folder.
fn beside(url: &str, name: &str) -> String {
    let folder = url.rfind('/').map_or("", |at| &url[..=at]);
    format!("{folder}{name}")
}

fn unpacked(packed: &[u8], bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn get(agent: &Agent, url: &str, bytes_max: u64) -> Result<Vec<u8>, Failure> {
    let mut response = agent.get(url).call().map_err(|error| format!("{url}: {error}"))?;
    if response.status() != StatusCode::OK {
        return Err(format!("{url}: {}", response.status()).into());
    }
    let mut bytes = Vec::new();
    let mut body = response.body_mut().as_reader().take(bytes_max.saturating_add(1));
    body.read_to_end(&mut bytes).map_err(|error| format!("{url}: {error}"))?;
    if u64::try_from(bytes.len())? > bytes_max {
        return Err(format!("{url}: more than {bytes_max} bytes").into());
    }
    Ok(bytes)
}
