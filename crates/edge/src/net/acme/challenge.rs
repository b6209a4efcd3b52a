//! Answers to the authority's requests at port 80 (HTTP-01, RFC 8555, section 8.3), as long as there are challenges.
//!
//! Machines that share certificates share the file `challenges.json`, too: the authority may ask any of them.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::store;
use crate::net::http::{self, Page};

/// Answers by path.
pub type Answers = HashMap<String, String>;

/// Where the answer to a token is looked for.
pub fn path(token: &str) -> String {
    format!("/.well-known/acme-challenge/{token}")
}

/// The file of answers that machines share.
pub fn shared(folder: &Path) -> PathBuf {
    folder.join("challenges.json")
}

/// Answers of another machine; none where there is no file, or one that makes no sense.
pub fn read(folder: &Path) -> Answers {
    let text = store::read(&shared(folder)).ok().flatten();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Answers until it is dropped.
pub struct Responder {
    task: JoinHandle<()>,
    /// The folder of answers that others are to forget.
    shared: Option<PathBuf>,
}

impl Responder {
    /// Begins to answer.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn open(address: SocketAddr, answers: Answers) -> io::Result<Responder> {
        let listener = TcpListener::bind(address).await?;
        let page = move |path: &[u8]| {
            let path = str::from_utf8(path).ok()?;
            let text = answers.get(path)?;
            tracing::debug!(path, "ACME challenge answered");
            Some(Page::ok(text.clone()))
        };
        Ok(Responder { task: tokio::spawn(http::serve(listener, "ACME challenge", page)), shared: None })
    }

    /// Has other machines answer, too.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn share(&mut self, folder: &Path, answers: &Answers) -> io::Result<()> {
        store::keep(&shared(folder), &serde_json::to_vec(answers)?)?;
        self.shared = Some(folder.to_owned());
        Ok(())
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(folder) = &self.shared {
            let _ = store::keep(&shared(folder), b"{}");
        }
    }
}
