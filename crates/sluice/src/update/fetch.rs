//! Fetching one file by HTTP, if it is another than the one that is there.

use std::io::{Cursor, Read};
use std::path::Path;
use std::time::SystemTime;

use edge::net::agent;
use httpdate::HttpDate;
use ureq::http::{HeaderMap, Response, StatusCode};
use ureq::{Agent, Body};

use super::folder::{Folder, Steps};
use super::state::Known;
use crate::config::update::{UpdateSettings, Wanted};

/// The head of a container.
const HEAD_BYTES: u64 = 512;
/// The longest incremental update.
const INCREMENT_BYTES_MAX: u64 = 64 << 20;
/// The longest file that is held in memory.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

/// How long a server is left alone that refuses us (403), or says that it was asked too often (429) and not for how long:
/// as freshclam does, since whoever asks on gets the whole network blocked.
const FORBIDDEN_SECONDS: u64 = 24 * 3_600;
const LIMITED_SECONDS: u64 = 4 * 3_600;
const FORBIDDEN: &str = ": it is not asked again for a day. ClamAV's own server lets in freshclam and cvdupdate only: have one of \
                         them download, and name its folder in [database] paths";

/// Asks servers for files.
pub struct Client {
    agent: Agent,
    file_bytes_max: u64,
}

/// Response of a server.
pub enum Fetched {
    /// The file has not changed.
    NotModified,
    /// The header is newer than the installed file by this many versions; the rest was not read.
    Ahead {
        /// The versions to go.
        steps: Steps,
        /// ETag of the file.
        etag: Option<String>,
        /// When it says it was changed.
        last_modified: Option<String>,
    },
    /// The file is in the folder, not in force yet.
    Body {
        /// ETag of the file.
        etag: Option<String>,
        /// When it says it was changed.
        last_modified: Option<String>,
    },
}

/// A file, unless it has not changed.
pub struct Answer {
    /// The file; none where it has not changed.
    pub body: Option<Vec<u8>>,
    /// ETag of the file.
    pub etag: Option<String>,
    /// When the server says it was changed.
    pub last_modified: Option<String>,
}

/// Why there is no answer.
pub struct Error {
    /// The reason, in words.
    pub reason: String,
    /// Seconds that the server asks us to wait.
    pub retry_after: Option<u64>,
    /// Whether it wants to be asked for nothing more now.
    pub wants_rest: bool,
}

impl Client {
    /// # Errors
    /// When the certificates of the authorities cannot be read and a URL needs them.
    pub fn new(settings: &UpdateSettings, authorities: &Path) -> Result<Client, String> {
        let is_secure = |url: &str| url.starts_with("https:");
        let secure = settings.wanted()?.iter().any(|wanted| is_secure(&wanted.url));
        let secure = secure || settings.rules.iter().any(|source| is_secure(source));
        let agent = agent::new(authorities, secure, settings.seconds_max)?;
        Ok(Client { agent, file_bytes_max: settings.file_bytes_max })
    }

    /// Asks for a file, and puts what comes beside what is in force.
    ///
    /// # Errors
    /// When there is no answer, or not the file.
    pub fn fetch(&self, wanted: &Wanted, known: &Known, folder: &Folder, whole: bool) -> Result<Fetched, Error> {
        let mut response = self.send(&wanted.url, known)?;
        let text = |name| header(response.headers(), name).map(String::from);
        match response.status() {
            StatusCode::NOT_MODIFIED if known.etag.is_some() || known.last_modified.is_some() => {
                Ok(Fetched::NotModified)
            }
            StatusCode::OK => {
                let (etag, last_modified) = (text("etag"), text("last-modified"));
                let mut body = response.body_mut().as_reader().take(self.file_bytes_max.saturating_add(1));
                let mut head = Vec::new();
                body.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(|error| failed(error.to_string()))?;
                if let Some(steps) = folder.steps(&wanted.name, &head).filter(|_| !whole) {
                    return Ok(Fetched::Ahead { steps, etag, last_modified });
                }
                let body = Cursor::new(head).chain(body);
                let count = folder.receive(&wanted.name, body).map_err(|error| failed(error.to_string()))?;
                if count > self.file_bytes_max {
                    return Err(failed(format!("larger than {} bytes", self.file_bytes_max)));
                }
                Ok(Fetched::Body { etag, last_modified })
            }
            status => Err(refused(status, response.headers())),
        }
    }

    /// Asks for a file, if it is another than the known one.
    fn send(&self, url: &str, known: &Known) -> Result<Response<Body>, Error> {
        let mut request = self.agent.get(url);
        if let Some(etag) = &known.etag {
            request = request.header("If-None-Match", etag);
        }
        if let Some(date) = &known.last_modified {
            request = request.header("If-Modified-Since", date);
        }
        request.call().map_err(|error| failed(error.to_string()))
    }

    /// Asks for a file that is held in memory.
    ///
    /// # Errors
    /// When there is no answer, or the file is too long.
    pub fn ask(&self, url: &str, known: &Known) -> Result<Answer, Error> {
        let mut response = self.send(url, known)?;
        let text = |name| header(response.headers(), name).map(String::from);
        let (etag, last_modified) = (text("etag"), text("last-modified"));
        match response.status() {
            StatusCode::NOT_MODIFIED if known.etag.is_some() || known.last_modified.is_some() => {
                Ok(Answer { body: None, etag, last_modified })
            }
            StatusCode::OK => {
                let bytes_max = self.file_bytes_max.min(MEMORY_BYTES_MAX);
                Ok(Answer { body: Some(whole(response.body_mut(), bytes_max)?), etag, last_modified })
            }
            status => Err(refused(status, response.headers())),
        }
    }

    /// An incremental update.
    ///
    /// # Errors
    /// When there is none, or it is too long.
    pub fn increment(&self, url: &str) -> Result<Vec<u8>, Error> {
        let mut response = self.agent.get(url).call().map_err(|error| failed(error.to_string()))?;
        if response.status() != StatusCode::OK {
            return Err(refused(response.status(), response.headers()));
        }
        whole(response.body_mut(), INCREMENT_BYTES_MAX)
    }
}

/// A body of no more than so many bytes.
fn whole(body: &mut Body, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut body = body.as_reader().take(bytes_max + 1);
    body.read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    match bytes.len() as u64 > bytes_max {
        true => Err(failed(format!("larger than {bytes_max} bytes"))),
        false => Ok(bytes),
    }
}

impl From<String> for Error {
    fn from(reason: String) -> Error {
        failed(reason)
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn failed(reason: String) -> Error {
    Error { reason, retry_after: None, wants_rest: false }
}

/// Error for a refusal by the server. `Retry-After` is seconds, or a date (RFC 9110, section 10.2.3).
fn refused(status: StatusCode, headers: &HeaderMap) -> Error {
    let seconds_to = |date| SystemTime::from(date).duration_since(SystemTime::now()).unwrap_or_default().as_secs();
    let retry_after = header(headers, "retry-after").and_then(|text| {
        let date = || text.parse::<HttpDate>().ok().map(seconds_to);
        text.parse().ok().or_else(date)
    });
    let is_forbidden = status == StatusCode::FORBIDDEN;
    let is_limited = status == StatusCode::TOO_MANY_REQUESTS;
    let wants_rest = is_forbidden || is_limited || status == StatusCode::SERVICE_UNAVAILABLE;
    let retry_after = match status {
        StatusCode::FORBIDDEN => Some(retry_after.unwrap_or(0).max(FORBIDDEN_SECONDS)),
        StatusCode::TOO_MANY_REQUESTS => retry_after.or(Some(LIMITED_SECONDS)),
        _ => retry_after,
    };
    let hint = if is_forbidden { FORBIDDEN } else { "" };
    Error { reason: format!("the server says {status}{hint}"), retry_after, wants_rest }
}
