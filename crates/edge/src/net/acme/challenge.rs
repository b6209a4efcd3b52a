//! Answers to the authority's requests at port 80 (HTTP-01, RFC 8555, section 8.3), as long as there are challenges.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::net::accept::accepted;
use crate::net::http::{Page, answer};

/// Requests at a time; what comes beyond is closed at once.
const REQUESTS_MAX: usize = 64;

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
        Ok(Responder(tokio::spawn(serve(listener, Arc::new(answers)))))
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn serve(listener: TcpListener, answers: Arc<Answers>) {
    let mut requests = JoinSet::new();
    loop {
        let (stream, client) = accepted("ACME challenge", || listener.accept()).await;
        while requests.try_join_next().is_some() {}
        if requests.len() >= REQUESTS_MAX {
            continue;
        }
        let answers = answers.clone();
        requests.spawn(async move {
            let page = |path: &[u8]| {
                let text = answers.get(str::from_utf8(path).ok()?)?;
                tracing::debug!(%client, "ACME challenge answered");
                Some(Page::ok(text.clone()))
            };
            let _ = answer(stream, page).await;
        });
    }
}
