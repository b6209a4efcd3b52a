//! Answers to the authority's requests at port 80 (HTTP-01, RFC 8555, section 8.3), as long as there are challenges.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::net::http::{self, Page};

/// Answers by path.
pub type Answers = HashMap<String, String>;

/// Where the answer to a token is looked for.
pub fn path(token: &str) -> String {
    format!("/.well-known/acme-challenge/{token}")
}

/// Answers until it is dropped.
pub struct Responder(JoinHandle<()>);

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
        Ok(Responder(tokio::spawn(http::serve(listener, "ACME challenge", page))))
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.0.abort();
    }
}
