//! `sluice cluster documents` and `share`.

use std::io::{Write as _, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;

use super::file::Local;
use super::{Document, Documents};
use crate::cluster::postgres::Session;
use crate::output::Failure;

/// How long `share` waits for the server of this node.
const SHARE_WAIT: Duration = Duration::from_secs(20);

const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Lists documents, and files of this node that are none.
///
/// # Errors
/// When the database cannot be asked.
pub async fn list(documents: &Documents, files: &[Document], as_json: bool) -> Result<ExitCode, Failure> {
    let session = documents.database.connect().await?;
    let (listed, behind) = (session.documents().await?, session.behind().await?);
    let mut out = stdout().lock();
    if !as_json {
        writeln!(out, "{:<32} {:>7} {:>9} {:>12}  {:<12} HERE", "DOCUMENT", "VERSION", "BYTES", "CHANGED", "BY")?;
    }
    let mut is_right = true;
    for one in &listed {
        let file = files.iter().find(|file| file.name == one.name);
        let here = file.map(|file| here(documents, file, one.version.digest));
        let lacking: Vec<&str> =
            behind.iter().filter(|(_, name)| *name == one.name).map(|(node, _)| node.as_str()).collect();
        is_right &= lacking.is_empty();
        if as_json {
            let line = json!({"name": one.name, "version": one.version.number, "bytes": one.bytes,
                "changed_seconds": one.seconds, "node": one.node, "here": here, "behind": lacking});
            writeln!(out, "{line}")?;
            continue;
        }
        let here = here.unwrap_or("not a file of this node");
        let lacking = if lacking.is_empty() { String::new() } else { format!(", behind: {}", lacking.join(" ")) };
        let (number, bytes, seconds) = (one.version.number, one.bytes, one.seconds);
        writeln!(out, "{:<32} {number:>7} {bytes:>9} {seconds:>8} s ago  {:<12} {here}{lacking}", one.name, one.node)?;
    }
    for file in files.iter().filter(|file| listed.iter().all(|one| one.name != file.name) && file.path.exists()) {
        match as_json {
            true => writeln!(out, "{}", json!({"name": file.name, "version": null, "here": "not shared"}))?,
            false => writeln!(out, "{:<32} {:>7} not shared: sluice cluster share", file.name, "-")?,
        }
    }
    Ok(ExitCode::from(u8::from(!is_right)))
}

/// Prints the text of a document.
///
/// # Errors
/// When there is none, or it cannot be opened.
pub async fn get(documents: &Documents, name: &str) -> Result<ExitCode, Failure> {
    let session = documents.database.connect().await?;
    let found = documents.text(&session, name).await?;
    let (_, text) = found.ok_or_else(|| format!("no document is named {name:?}: sluice cluster documents"))?;
    stdout().lock().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// How nodes and documents stand.
///
/// # Errors
/// The nodes that lack the last version of one, and that the database cannot be asked.
pub async fn standing(session: &Session) -> Result<String, String> {
    let (listed, behind) = (session.documents().await?, session.behind().await?);
    if let Some((node, name)) = behind.first() {
        return Err(format!("{node} does not have the last {name}, and {} others", behind.len() - 1));
    }
    match (listed.len(), session.sharer().await?) {
        (0, None) => Ok("none: sluice cluster share on the node whose files are right".into()),
        (count, _) => Ok(format!("{count}, all nodes have them")),
    }
}

/// Whether the file of this node is the document.
fn here(documents: &Documents, file: &Document, digest: cluster::Digest) -> &'static str {
    let text = Local::at(&file.path).and_then(|local| local.read());
    match text {
        Ok(Some(text)) if documents.sealing.digest(&text.bytes) == digest => "yes",
        Ok(Some(_)) => "another text",
        Ok(None) => "missing",
        Err(_) => "not readable",
    }
}

/// Has the server of this node make documents of its files, as far as they are missing.
///
/// # Errors
/// When the database cannot be asked.
pub async fn share(documents: &Documents, files: &[Document]) -> Result<ExitCode, Failure> {
    let session = documents.database.connect().await?;
    session.share(&documents.node).await?;
    let (began, is_there) =
        (Instant::now(), |file: &&Document| file.path.metadata().is_ok_and(|found| found.len() > 0));
    loop {
        let listed = session.documents().await?;
        let mut missing = files.iter().filter(is_there).filter(|file| listed.iter().all(|one| one.name != file.name));
        match missing.next() {
            None => {
                println!("{} documents are in the cluster", listed.len());
                return Ok(ExitCode::SUCCESS);
            }
            Some(file) if began.elapsed() > SHARE_WAIT => {
                let name = file.path.display();
                return Err(format!("{name} is not shared yet: its log says why, if the server runs").into());
            }
            Some(_) => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}
