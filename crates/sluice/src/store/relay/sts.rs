//! Policies of domains whose mail servers are spoken to in TLS alone (RFC 8461): found, kept, and matched with hosts.
//!
//! A record `_mta-sts.DOMAIN` says that there is a policy and which one; the policy comes from `https://mta-sts.DOMAIN`, whose certificate has to
//! be for that name. It is kept for as long as it says, in a file too, whatever becomes of the record meanwhile: who suppresses
//! answers of the DNS does not get rid of it. Bounds: [`POLICIES_MAX`] policies, those that end first make room; [`POLICY_BYTES_MAX`] of
//! one.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use edge::net::stream::Stream;
use edge::upstream::route::Route;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

/// Policies that are kept.
const POLICIES_MAX: usize = 20_000;

/// The longest policy, in bytes (RFC 8461, section 3.3).
const POLICY_BYTES_MAX: usize = 64 << 10;

/// The longest response with its head.
const RESPONSE_BYTES_MAX: u64 = (POLICY_BYTES_MAX + (16 << 10)) as u64;

/// How long a fetch may take.
const FETCH_WAIT: Duration = Duration::from_secs(30);

/// The longest time that a policy is kept, in seconds: a year (section 3.2).
const AGE_MAX: i64 = 31_557_600;

/// Mail servers of one policy.
const PATTERNS_MAX: usize = 100;

/// After how many seconds the record is looked at again.
const LOOK_AFTER: i64 = 300;

/// A policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// As the record names it.
    pub id: String,
    /// Whether mail waits for a host that is not as it says.
    pub mode: Mode,
    /// The mail servers: names, and `*.NAME` for one label below it.
    pub hosts: Vec<String>,
    /// Until when it holds, seconds since 1970.
    pub until: i64,
}

/// Whether mail waits for a host that is not as a policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It waits.
    Enforce,
    /// It is sent, and reported.
    Testing,
    /// The policy was withdrawn.
    Nothing,
}

impl Mode {
    const ALL: [(Mode, &str); 3] = [(Mode::Enforce, "enforce"), (Mode::Testing, "testing"), (Mode::Nothing, "none")];

    fn name(self) -> &'static str {
        Mode::ALL.iter().find(|(mode, _)| *mode == self).map_or("none", |(_, name)| name)
    }

    fn named(name: &str) -> Option<Mode> {
        Mode::ALL.iter().find(|(_, known)| *known == name).map(|(mode, _)| *mode)
    }
}

impl Policy {
    /// Reads a policy that was fetched at this time (section 3.2).
    pub fn parse(id: &str, text: &str, now: i64) -> Option<Policy> {
        let (mut version, mut mode, mut age, mut hosts) = (None, None, None, Vec::new());
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match key.trim() {
                "version" => _ = version.get_or_insert(value),
                "mode" => _ = mode.get_or_insert(value),
                "max_age" => _ = age.get_or_insert(value),
                "mx" if hosts.len() < PATTERNS_MAX && is_pattern(value) => hosts.push(value.to_ascii_lowercase()),
                _ => {}
            }
        }
        version.filter(|&version| version == "STSv1")?;
        let (mode, age) = (Mode::named(mode?)?, age?.parse::<i64>().ok().filter(|age| (0..=AGE_MAX).contains(age))?);
        let is_right = mode == Mode::Nothing || !hosts.is_empty();
        is_right.then(|| Policy { id: id.into(), mode, hosts, until: now.saturating_add(age) })
    }

    /// Whether a host is one of its mail servers (section 4.1): a star stands for one label.
    pub fn has(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let above = host.split_once('.').map(|(_, above)| above);
        self.hosts.iter().any(|pattern| match pattern.strip_prefix("*.") {
            Some(pattern) => above == Some(pattern),
            None => *pattern == host,
        })
    }
}

fn is_pattern(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    !name.is_empty()
        && name.len() < 254
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
}

/// The id of a policy, by the texts of `_mta-sts.DOMAIN`; none without one record that is right (section 3.1).
pub fn id_of(texts: &[Box<[u8]>]) -> Option<String> {
    let texts = texts.iter().filter_map(|text| std::str::from_utf8(text).ok());
    let mut records = texts.filter(|text| text.trim_start().starts_with("v=STSv1"));
    let record = records.next()?;
    if records.next().is_some() {
        return None;
    }
    let mut fields = record.split(';').filter_map(|field| field.split_once('='));
    let id = fields.find(|(key, _)| key.trim() == "id").map(|(_, id)| id.trim())?;
    let is_right = (1..=32).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_right.then(|| id.to_owned())
}

/// Policies of domains.
#[derive(Debug, Default)]
pub struct Policies {
    known: Mutex<HashMap<String, Known>>,
    /// Domains whose policy is being looked for: one after the other.
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    file: Option<PathBuf>,
}

/// Why a policy that a record announces is not there, as reports have it (RFC 8460, section 4.3.2.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub kind: &'static str,
    /// The reason in words.
    pub why: String,
}

impl Fault {
    const INVALID: &str = "sts-policy-invalid";
    const UNFETCHED: &str = "sts-policy-fetch-error";
    const UNTRUSTED: &str = "sts-webpki-invalid";

    /// A policy that cannot be fetched now.
    pub fn unfetched(why: impl Into<String>) -> Fault {
        Fault { kind: Fault::UNFETCHED, why: why.into() }
    }
}

#[derive(Debug, Clone)]
struct Known {
    policy: Option<Policy>,
    /// What was wrong when it was looked for last.
    fault: Option<Fault>,
    /// When the record was looked at.
    looked: i64,
    /// From when on the policy is fetched anew, though the record has the same id: half of its time has gone.
    renew: i64,
}

impl Policies {
    /// Policies of a file, in which changes are kept.
    pub fn open(file: Option<PathBuf>) -> Policies {
        let text = file.as_ref().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        let known = text.lines().filter_map(of_line).take(POLICIES_MAX);
        let known = known
            .map(|(domain, policy)| (domain, Known { policy: Some(policy), fault: None, looked: 0, renew: 0 }))
            .collect();
        Policies { known: Mutex::new(known), turns: Mutex::default(), file }
    }

    /// The policy of a domain; `id` looks for its record, and `fetch` for the policy.
    pub async fn of<I, F>(&self, domain: &str, now: i64, id: I, fetch: impl FnOnce() -> F) -> Option<Policy>
    where
        I: Future<Output = Option<String>>,
        F: Future<Output = Result<String, Fault>>,
    {
        if let Some(known) = self.fresh(domain, now) {
            return known;
        }
        let turn = lock(&self.turns).entry(domain.to_owned()).or_default().clone();
        let _turn = turn.lock().await;
        lock(&self.turns).retain(|_, turn| Arc::strong_count(turn) > 1);
        if let Some(known) = self.fresh(domain, now) {
            return known;
        }
        let before = self.valid(domain, now);
        let mut renew = lock(&self.known).get(domain).map_or(0, |known| known.renew);
        let mut fault = None;
        let policy = match id.await {
            None => before.clone(),
            Some(id) if now < renew && before.as_ref().is_some_and(|policy| policy.id == id) => before.clone(),
            Some(id) => match fetch().await {
                Ok(text) => match Policy::parse(&id, &text, now) {
                    Some(policy) => {
                        renew = now.saturating_add(policy.until.saturating_sub(now) / 2);
                        Some(policy)
                    }
                    None => {
                        tracing::warn!(domain, "invalid MTA-STS policy");
                        fault = Some(Fault { kind: Fault::INVALID, why: "the policy is not valid".into() });
                        before.clone()
                    }
                },
                Err(error) => {
                    tracing::warn!(domain, error = error.why, "the MTA-STS policy cannot be fetched");
                    fault = Some(error);
                    before.clone()
                }
            },
        };
        let is_new = policy != before;
        self.keep(domain, Known { policy: policy.clone(), fault, looked: now, renew }, now);
        if is_new {
            self.write(now);
        }
        policy.filter(|policy| policy.mode != Mode::Nothing)
    }

    /// What was wrong with the policy of a domain when it was looked for last.
    pub fn fault(&self, domain: &str) -> Option<Fault> {
        lock(&self.known).get(domain)?.fault.clone()
    }

    /// Policy that was checked recently.
    fn fresh(&self, domain: &str, now: i64) -> Option<Option<Policy>> {
        let known = lock(&self.known);
        let found = known.get(domain).filter(|known| now.saturating_sub(known.looked) < LOOK_AFTER)?;
        // One that has ended is looked for again at once.
        let is_over = found.policy.as_ref().is_some_and(|policy| policy.until <= now);
        (!is_over).then(|| found.policy.clone().filter(|policy| policy.mode != Mode::Nothing))
    }

    fn valid(&self, domain: &str, now: i64) -> Option<Policy> {
        lock(&self.known).get(domain).and_then(|known| known.policy.clone()).filter(|policy| policy.until > now)
    }

    fn keep(&self, domain: &str, one: Known, now: i64) {
        let mut known = lock(&self.known);
        if known.len() >= POLICIES_MAX {
            let is_old = |one: &Known| now.saturating_sub(one.looked) >= LOOK_AFTER;
            known.retain(|_, one| one.policy.as_ref().is_some_and(|policy| policy.until > now) || !is_old(one));
        }
        if known.len() >= POLICIES_MAX {
            let until = |one: &Known| one.policy.as_ref().map_or(0, |policy| policy.until);
            let first = known.iter().min_by_key(|(_, one)| until(one)).map(|(domain, _)| domain.clone());
            first.map(|domain| known.remove(&domain));
        }
        known.insert(domain.to_owned(), one);
    }

    /// Writes those that hold. Without the file they are looked for again after a restart.
    fn write(&self, now: i64) {
        let Some(file) = &self.file else { return };
        let text: String = {
            let known = lock(&self.known);
            let policies = known.iter().filter_map(|(domain, one)| Some((domain, one.policy.as_ref()?)));
            policies.filter(|(_, policy)| policy.until > now).map(|(domain, policy)| line(domain, policy)).collect()
        };
        if let Err(error) = written(file, &text) {
            tracing::warn!(file = %file.display(), %error, "MTA-STS policies cannot be stored");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn written(file: &Path, text: &str) -> io::Result<()> {
    let beside = file.with_extension("new");
    fs::write(&beside, text)?;
    fs::rename(&beside, file)
}

/// `DOMAIN ID MODE UNTIL HOST,HOST`.
fn line(domain: &str, policy: &Policy) -> String {
    let Policy { id, mode, hosts, until } = policy;
    format!("{domain} {id} {} {until} {}\n", mode.name(), hosts.join(","))
}

fn of_line(line: &str) -> Option<(String, Policy)> {
    let mut words = line.split(' ');
    let (domain, id, mode, until) =
        (words.next()?, words.next()?, Mode::named(words.next()?)?, words.next()?.parse().ok()?);
    let hosts = words.next()?.split(',').filter(|host| is_pattern(host)).map(str::to_owned).collect();
    Some((domain.to_owned(), Policy { id: id.into(), mode, hosts, until }))
}

/// Fetches a policy from one of these addresses, over the route of HTTPS.
///
/// # Errors
/// Why it is not there.
pub async fn fetch(host: &str, addresses: &[String], route: &Route) -> Result<String, Fault> {
    let mut fault = Fault::unfetched(format!("{host} has no address"));
    for address in addresses {
        fault = match timeout(FETCH_WAIT, exchange(host, address, route)).await {
            Ok(Ok((response, is_cut))) => return body(&response, is_cut).map_err(Fault::unfetched),
            // So TLS says what is wrong with a certificate.
            Ok(Err(wrong)) if wrong.kind() == io::ErrorKind::InvalidData => {
                Fault { kind: Fault::UNTRUSTED, why: format!("{host}: {wrong}") }
            }
            Ok(Err(wrong)) => Fault::unfetched(format!("{host}: {wrong}")),
            Err(_) => Fault::unfetched(format!("{host} does not answer in time")),
        };
    }
    Err(fault)
}

/// Response of a server, and whether the connection broke off before TLS ended.
async fn exchange(host: &str, address: &str, route: &Route) -> io::Result<(Vec<u8>, bool)> {
    let stream = Stream::connect(address).await?;
    let mut stream = route.for_name(host).connector.secure(stream).await?;
    let request = format!("GET /.well-known/mta-sts.txt HTTP/1.0\r\nHost: {host}\r\nUser-Agent: Sluice\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut response = Vec::new();
    let read = (&mut stream).take(RESPONSE_BYTES_MAX).read_to_end(&mut response).await;
    // Some servers close without saying so: then the length has to.
    match read {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        read => Ok((response, read.is_err())),
    }
}

/// The text of a response (section 3.3): one of the status 200 that is text, whole, and not moved elsewhere.
fn body(response: &[u8], is_cut: bool) -> Result<String, String> {
    let end = response.windows(4).position(|four| four == b"\r\n\r\n").ok_or("the response has no head")?;
    let (head, body) = (String::from_utf8_lossy(&response[..end]), &response[end + 4..]);
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    if status != "200" {
        return Err(format!("the status is {status:?}"));
    }
    let fields: Vec<(String, &str)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
        .collect();
    let field = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    let kind = field("content-type").unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("text/plain") {
        return Err(format!("the type is {kind:?}, and not text/plain"));
    }
    if field("transfer-encoding").is_some() || field("content-encoding").is_some() {
        return Err("the response is encoded".into());
    }
    let length = field("content-length").map(|length| length.parse::<usize>().map_err(|_| "no length")).transpose()?;
    let body = match length {
        Some(length) => body.get(..length).ok_or("the response is cut")?,
        None if is_cut => return Err("the response is cut".into()),
        None => body,
    };
    if body.len() > POLICY_BYTES_MAX {
        return Err("the policy is longer than 64 KiB".into());
    }
    String::from_utf8(body.to_vec()).map_err(|_| "the policy is not text".into())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const TEXT: &str =
        "version: STSv1\r\nmode: enforce\r\nmx: mail.example.org\r\nmx: *.example.NET\r\nmax_age: 1000\r\nelse: x\r\n";

    #[test]
    fn policies_are_read_and_hosts_matched_by_one_label() {
        let policy = Policy::parse("a1", TEXT, 10).unwrap();
        assert_eq!((policy.mode, policy.until), (Mode::Enforce, 1_010));
        for (host, has) in [
            ("mail.example.org", true),
            ("MAIL.example.org.", true),
            ("a.example.net", true),
            ("a.b.example.net", false),
            ("example.net", false),
            ("x.mail.example.org", false),
        ] {
            assert_eq!(policy.has(host), has, "{host}");
        }
        for wrong in [
            TEXT.replace("STSv1", "STSv2"),
            TEXT.replace("enforce", "force"),
            TEXT.replace("mx:", "my:"),
            TEXT.replace("1000", "-1"),
            TEXT.replace("1000", "99999999999"),
            String::new(),
        ] {
            assert_eq!(Policy::parse("a1", &wrong, 10), None, "{wrong}");
        }
        assert_eq!(
            Policy::parse("b", "version:STSv1\nmode:none\nmax_age:1", 0).map(|policy| policy.mode),
            Some(Mode::Nothing)
        );
        assert_eq!(of_line(line("example.org", &policy).trim_end()), Some(("example.org".into(), policy)));
    }

    #[test]
    fn a_domain_has_one_record() {
        let id = |texts: &[&str]| id_of(&texts.iter().map(|text| text.as_bytes().into()).collect::<Vec<_>>());
        assert_eq!(id(&["v=STSv1; id=20260101T0;"]), Some("20260101T0".into()));
        assert_eq!(id(&["other", "v=STSv1;id=a"]), Some("a".into()));
        for texts in [&["v=STSv1; id=a", "v=STSv1; id=b"][..], &["v=STSv1"], &["v=STSv1; id=a b"], &[]] {
            assert_eq!(id(texts), None, "{texts:?}");
        }
    }

    #[test]
    fn only_a_whole_text_is_a_policy() {
        let text = |head: &str, text: &str| body(format!("HTTP/1.1 {head}\r\n\r\n{text}").as_bytes(), false);
        assert_eq!(
            text("200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 2", "abc"),
            Ok("ab".into())
        );
        for head in [
            "301 Moved\r\nContent-Type: text/plain\r\nLocation: https://x/",
            "200 OK\r\nContent-Type: text/html",
            "200 OK",
            "200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9",
            "200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked",
        ] {
            assert!(text(head, "abc").is_err(), "{head}");
        }
        assert!(text("200 OK\r\nContent-Type: text/plain", &"x".repeat(POLICY_BYTES_MAX + 1)).is_err());
        assert!(body(b"", false).is_err());
        let cut = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nversion: STSv1";
        assert!(body(cut, false).is_ok() && body(cut, true).is_err(), "the end may be missing");
    }

    #[test]
    fn a_policy_is_kept_as_long_as_it_says_and_through_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mta-sts");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let fetched = Cell::new(0);
        let ask = |policies: &Policies, now: i64, id: Option<&str>, text: Result<&str, &str>| {
            let (id, text) = (id.map(str::to_owned), text.map(str::to_owned).map_err(Fault::unfetched));
            let fetch = || {
                fetched.set(fetched.get() + 1);
                async { text }
            };
            runtime.block_on(policies.of("example.org", now, async { id }, fetch)).map(|policy| policy.id)
        };
        let policies = Policies::open(Some(file.clone()));
        let kind = |policies: &Policies| policies.fault("example.org").map(|fault| fault.kind);
        assert_eq!(ask(&policies, 0, None, Ok(TEXT)), None);
        assert_eq!(ask(&policies, 100, Some("a"), Ok(TEXT)), None, "it was looked at just now");
        assert_eq!(ask(&policies, 400, Some("a"), Err("no")), None);
        assert_eq!(kind(&policies), Some("sts-policy-fetch-error"));
        assert_eq!(ask(&policies, 800, Some("a"), Ok(TEXT)).as_deref(), Some("a"));
        assert_eq!(
            (ask(&policies, 1_200, Some("a"), Ok("")).as_deref(), fetched.get()),
            (Some("a"), 2),
            "it is the same"
        );
        assert_eq!(ask(&policies, 1_600, Some("b"), Err("no")).as_deref(), Some("a"), "the old one holds");
        let policies = Policies::open(Some(file));
        assert_eq!(
            ask(&policies, 1_700, None, Err("no")).as_deref(),
            Some("a"),
            "the record is gone, the policy holds"
        );
        assert_eq!(ask(&policies, 2_100, None, Err("no")), None, "its time is over");
        assert_eq!(ask(&policies, 10_000, Some("a"), Ok(TEXT)).as_deref(), Some("a"));
        assert_eq!(ask(&policies, 10_900, Some("a"), Err("no")).as_deref(), Some("a"), "it is asked for anew in time");
        assert_eq!(ask(&policies, 11_010, Some("a"), Ok(TEXT)).as_deref(), Some("a"), "and at once where it has ended");
    }
}
