//! A bucket of an S3 server: each request is signed, bounded and tried again, and each object is checked by its SHA-256.
//!
//! A write counts when the server says that it has an object of this length and sum; of a server that knows no sums the object is read back. So
//! a write whose answer was lost is found, and one that the server has taken and does not show yet is waited for.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cluster::{BLOCK_BYTES, Object};
use edge::net::agent;
use text::base64;
use ureq::Agent;
use ureq::http::{HeaderMap, Method, Request, StatusCode};

use super::PARALLEL;
use super::sign::{self, Head, Signer};
use crate::config::ObjectSettings;

/// Time for a request with its answer.
const WAIT: Duration = Duration::from_secs(30);

/// Attempts of a request, and the pause before the second, which doubles: 6.3 s in all.
const ATTEMPTS: u32 = 7;
const PAUSE: Duration = Duration::from_millis(if cfg!(test) { 5 } else { 100 });

/// The longest answer but an object: a page of names.
const ANSWER_BYTES_MAX: u64 = 2 << 20;

/// Bytes of a server's words that are shown.
const WORDS_MAX: usize = 200;

/// A bucket, for requests in threads that may wait.
pub struct Bucket {
    agent: Agent,
    signer: Signer,
    /// `https://HOST`, and its authority as `Host` has it.
    base: String,
    host: String,
    /// What stands before a name: the bucket, and the prefix.
    path: String,
    prefix: String,
    pub name: String,
    /// Requests that were made once more.
    pub repeated: AtomicU64,
}

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// No answer, or not the whole.
    Connection(String),
    /// The server refused it: status, code and words.
    Refused { status: u16, code: String, words: String, skew: Option<i64> },
    /// The object is not there.
    Missing,
    /// The object is another one than was written.
    Damaged(String),
}

struct Answer {
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Bucket {
    /// The bucket that the settings name.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn new(settings: &ObjectSettings, authorities: &Path) -> Result<Bucket, String> {
        let is_secured = settings.is_secured();
        let signer = Signer::read(&settings.access_key, &settings.access_secret_file, &settings.region)?;
        let (scheme, host) = settings.endpoint.trim_end_matches('/').split_once("://").unwrap_or_default();
        let host = host.strip_suffix(if is_secured { ":443" } else { ":80" }).unwrap_or(host).to_ascii_lowercase();
        let (host, path) = match settings.path_style {
            true => (host, format!("/{}/", settings.bucket)),
            false => (format!("{}.{host}", settings.bucket), "/".to_owned()),
        };
        Ok(Bucket {
            agent: agent::of_one(authorities, is_secured, WAIT, PARALLEL)?,
            signer,
            base: format!("{scheme}://{host}"),
            host,
            path,
            prefix: settings.prefix.clone(),
            name: settings.bucket.clone(),
            repeated: AtomicU64::new(0),
        })
    }

    /// Writes an object.
    ///
    /// # Errors
    /// Why it is not there, or cannot be seen to be.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<Object, Fault> {
        let object = Object {
            name: name.into(),
            length: u32::try_from(bytes.len()).map_err(|_| Fault::Damaged("too long".into()))?,
            sum: sign::sum(bytes),
        };
        self.tried(|| {
            let headers = [("x-amz-checksum-sha256", base64::encode(&object.sum))];
            match self.ask(Method::PUT, name, &[], &headers, bytes) {
                Ok(_) => Ok(()),
                // Its answer may be lost, and not the object.
                Err(fault) if fault.may_pass() => self.verify(&object).map_err(|_| fault),
                Err(fault) => Err(fault),
            }
        })?;
        self.tried(|| self.verify(&object))?;
        Ok(object)
    }

    /// Whether an object is there as it should be.
    fn verify(&self, object: &Object) -> Result<(), Fault> {
        let mode = [("x-amz-checksum-mode", "ENABLED".to_owned())];
        let answer = self.ask(Method::HEAD, &object.name, &[], &mode, &[])?;
        let field = |name| answer.headers.get(name).and_then(|value| value.to_str().ok());
        if field("content-length") != Some(&object.length.to_string()) {
            return Err(Fault::Damaged(format!("it has {} bytes", field("content-length").unwrap_or("no"))));
        }
        match field("x-amz-checksum-sha256") {
            Some(sum) if sum == base64::encode(&object.sum) => Ok(()),
            Some(_) => Err(Fault::Damaged("its sum is another one".into())),
            None => self.read(object).map(drop),
        }
    }

    /// Reads an object, whole and as it was written.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn get(&self, object: &Object) -> Result<Vec<u8>, Fault> {
        self.tried(|| self.read(object))
    }

    fn read(&self, object: &Object) -> Result<Vec<u8>, Fault> {
        let body = self.ask(Method::GET, &object.name, &[], &[], &[])?.body;
        match body.len() {
            length if length != object.length as usize => Err(Fault::Damaged(format!("it has {length} bytes"))),
            _ if sign::sum(&body) != object.sum => Err(Fault::Damaged("its sum is another one".into())),
            _ => Ok(body),
        }
    }

    /// Deletes an object, which need not be there.
    ///
    /// # Errors
    /// When it may be there still.
    pub fn delete(&self, name: &str) -> Result<(), Fault> {
        self.tried(|| match self.ask(Method::DELETE, name, &[], &[], &[]) {
            Ok(_) | Err(Fault::Missing) => Ok(()),
            Err(fault) => Err(fault),
        })
    }

    /// Names that begin with these words and stand behind `after`: a page of them, none at the end.
    ///
    /// # Errors
    /// When there is no list.
    pub fn list(&self, words: &str, after: &str) -> Result<Vec<String>, Fault> {
        let (prefix, after) = (format!("{}{words}", self.prefix), format!("{}{after}", self.prefix));
        let mut query = vec![("list-type", "2"), ("max-keys", "1000"), ("prefix", &*prefix)];
        if after != self.prefix {
            query.push(("start-after", &after));
        }
        let body = self.tried(|| self.ask(Method::GET, "", &query, &[], &[]))?.body;
        let text = String::from_utf8_lossy(&body);
        if !text.contains("<ListBucketResult") {
            return Err(Fault::Connection("the answer is no list of objects".into()));
        }
        // Names of ours have nothing that XML would write otherwise; others are nobody's business here.
        let names = text.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
        Ok(names.filter_map(|(name, _)| name.strip_prefix(&self.prefix)).map(str::to_owned).collect())
    }

    /// Makes a request until it succeeds, or will not.
    fn tried<T>(&self, mut request: impl FnMut() -> Result<T, Fault>) -> Result<T, Fault> {
        let mut pause = PAUSE;
        for _ in 1..ATTEMPTS {
            match request() {
                Err(fault) if fault.may_pass() => tracing::debug!(%fault, "a request for an object is made once more"),
                outcome => return outcome,
            }
            self.repeated.fetch_add(1, Relaxed);
            std::thread::sleep(pause);
            pause *= 2;
        }
        request()
    }

    /// Makes one request; without a name it is for the bucket.
    fn ask(
        &self,
        method: Method,
        name: &str,
        query: &[(&str, &str)],
        more: &[(&'static str, String)],
        body: &[u8],
    ) -> Result<Answer, Fault> {
        let path = match name {
            "" if self.path == "/" => self.path.clone(),
            "" => self.path.trim_end_matches('/').to_owned(),
            name => format!("{}{}{name}", self.path, self.prefix),
        };
        let seconds = now();
        let mut headers: BTreeMap<&str, String> = more.iter().cloned().collect();
        headers.insert("host", self.host.clone());
        let head = Head { method: method.as_str(), path: &path, query, headers, sum: sign::sum(body), seconds };
        let fields = self.signer.fields(head);
        let question = if query.is_empty() { String::new() } else { format!("?{}", sign::query(query)) };
        let mut request = Request::builder().method(&method).uri(format!("{}{path}{question}", self.base));
        for (name, value) in &fields {
            request = request.header(*name, value);
        }
        let failed = |error: &dyn Display| Fault::Connection(error.to_string());
        let response = match method {
            Method::PUT => self.agent.run(request.body(body).map_err(|error| failed(&error))?),
            _ => self.agent.run(request.body(()).map_err(|error| failed(&error))?),
        };
        let (parts, mut body) = response.map_err(|error| failed(&error))?.into_parts();
        let bytes_max = if name.is_empty() { ANSWER_BYTES_MAX } else { BLOCK_BYTES };
        let mut bytes = Vec::new();
        if method != Method::HEAD {
            let mut reader = body.as_reader().take(bytes_max + 1);
            reader.read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        }
        match parts.status {
            status if status.is_success() => Ok(Answer { headers: parts.headers, body: bytes }),
            status => Err(refused(status, &parts.headers, &bytes, seconds)),
        }
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs().cast_signed())
}

/// The fault that an answer tells of.
fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8], now: i64) -> Fault {
    let text = String::from_utf8_lossy(body);
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        let words = rest.split_once("</")?.0.chars().filter(|letter| !letter.is_control());
        Some(words.take(WORDS_MAX).collect::<String>())
    };
    let code = element("Code").unwrap_or_default();
    // Of a bucket that is not there, the answer to HEAD says no more than of an object.
    if status == StatusCode::NOT_FOUND && matches!(&*code, "" | "NoSuchKey") {
        return Fault::Missing;
    }
    let date = headers.get("date").and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    let there = date.and_then(|date| Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs().cast_signed()));
    let skew = there.map(|there| now.saturating_sub(there));
    Fault::Refused { status: status.as_u16(), code, words: element("Message").unwrap_or_default(), skew }
}

impl Fault {
    /// Whether the same request may succeed later.
    fn may_pass(&self) -> bool {
        match self {
            Fault::Connection(_) | Fault::Missing | Fault::Damaged(_) => true,
            Fault::Refused { status: 408 | 429 | 500.., .. } => true,
            Fault::Refused { code, .. } => {
                matches!(
                    &**code,
                    "RequestTimeout" | "SlowDown" | "BadDigest" | "XAmzContentSHA256Mismatch" | "IncompleteBody"
                )
            }
        }
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Connection(why) => f.write_str(why),
            Fault::Missing => f.write_str("the object is not there"),
            Fault::Damaged(how) => write!(f, "the object is damaged: {how}"),
            Fault::Refused { status, code, words, skew } => {
                let skewed;
                let advice = match (&**code, skew) {
                    ("RequestTimeTooSkewed", Some(skew)) => {
                        let side = if *skew < 0 { "behind" } else { "ahead of" };
                        skewed = format!("the clock of this machine is {} s {side} the server's", skew.abs());
                        &*skewed
                    }
                    ("InvalidAccessKeyId" | "XAdminUserNotFound", _) => "access_key is not known there",
                    ("SignatureDoesNotMatch", _) => "the secret in access_secret_file is not that of access_key",
                    ("NoSuchBucket", _) => "there is no such bucket",
                    ("AccessDenied" | "", _) if *status == 403 => "access_key may not do this in the bucket",
                    (
                        "AuthorizationHeaderMalformed" | "PermanentRedirect" | "IllegalLocationConstraintException",
                        _,
                    ) => "region or endpoint are not those of the bucket",
                    _ if (300..400).contains(status) => "endpoint is another one: the server redirects",
                    _ => "",
                };
                let joint = if advice.is_empty() { "" } else { ": " };
                write!(f, "{advice}{joint}{status} {code} {words}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_in_the_path_or_in_the_name_of_the_host() {
        let key = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&key, "secret").unwrap();
        let place = |endpoint: &str, path_style| {
            let settings = ObjectSettings {
                endpoint: endpoint.into(),
                bucket: "mail".into(),
                region: "r".into(),
                access_key: "id".into(),
                access_secret_file: key.path().into(),
                path_style,
                prefix: String::new(),
                keep_days: 7,
                write: true,
            };
            let Bucket { base, host, path, .. } = Bucket::new(&settings, key.path()).unwrap();
            [base, host, path]
        };
        assert_eq!(place("https://S3.test:443/", true), ["https://s3.test", "s3.test", "/mail/"]);
        assert_eq!(place("http://s3.test:443", true), ["http://s3.test:443", "s3.test:443", "/mail/"]);
        assert_eq!(place("https://s3.test", false), ["https://mail.s3.test", "mail.s3.test", "/"]);
    }

    #[test]
    fn an_answer_is_told_in_words_that_say_what_to_change() {
        let mut headers = HeaderMap::new();
        headers.insert("date", "Fri, 24 May 2013 00:00:00 GMT".parse().unwrap());
        let said = |status, code: &str| {
            let body = format!(
                "<Error><Code>{code}</Code><Message>Some\nwords.</Message><StringToSign>s</StringToSign></Error>"
            );
            let status = StatusCode::from_u16(status).unwrap();
            refused(status, &headers, body.as_bytes(), 1_369_353_600 + 1_200).to_string()
        };
        assert_eq!(
            said(403, "RequestTimeTooSkewed"),
            "the clock of this machine is 1200 s ahead of the server's: 403 RequestTimeTooSkewed Somewords."
        );
        assert!(said(403, "SignatureDoesNotMatch").starts_with("the secret in access_secret_file is not that of"));
        assert!(said(404, "NoSuchBucket").starts_with("there is no such bucket"));
        assert!(said(301, "PermanentRedirect").starts_with("region or endpoint"));
        assert_eq!(said(404, "NoSuchKey"), "the object is not there");
        assert_eq!(said(500, "InternalError"), "500 InternalError Somewords.");
        let long = refused(StatusCode::BAD_GATEWAY, &headers, &[b'<'; 5_000], 0).to_string();
        assert!(long.len() < 300, "{long}");
    }
}
