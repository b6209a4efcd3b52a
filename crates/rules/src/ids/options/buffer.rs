//! Options that choose the buffer of the tests behind them, and the places where tests are put.

use super::{Options, modify, part_of_name};
use crate::ids::buffer::{Buffer, Direction, Side};
use crate::ids::events::event_named;
use crate::ids::handshake;
use crate::ids::lexer::{Opt, items, text};
use crate::ids::rule::{Content, Port, Section, Test, Value};
use crate::ids::transform::Transform;
use crate::ids::values;

impl Options<'_, '_> {
    /// Moves the last test to the section of a buffer.
    pub(super) fn move_to(&mut self, buffer: Buffer) -> Result<(), String> {
        let from = self.last.ok_or("no content before it")?;
        let section = self.rule.sections.get_mut(from).ok_or("no content before it")?;
        if section.buffer == buffer {
            return Ok(());
        }
        let test = section.tests.pop().ok_or("no content before it")?;
        if !matches!(test, Test::Content(_) | Test::DataAt { .. } | Test::Pcre(_)) {
            return Err("no content before it".into());
        }
        if section.tests.is_empty() {
            self.rule.sections.remove(from);
        }
        self.push_to(buffer, &[], test);
        Ok(())
    }

    /// Adds a test to the section of a buffer; the first of its kind is made.
    pub(super) fn push_to(&mut self, buffer: Buffer, transforms: &[Transform], test: Test) {
        self.push_of(None, buffer, transforms, test);
    }

    pub(super) fn push_of(&mut self, way: Option<Direction>, buffer: Buffer, transforms: &[Transform], test: Test) {
        let is_one = |one: &Section| one.buffer == buffer && one.transforms == transforms && one.way == way;
        let known = self.rule.sections.iter().rposition(is_one);
        let at = known.filter(|_| !self.is_fresh).unwrap_or_else(|| {
            self.rule.sections.push(Section { buffer, way, transforms: transforms.to_vec(), tests: Vec::new() });
            self.rule.sections.len() - 1
        });
        self.is_fresh = false;
        self.last = Some(at);
        if matches!(test, Test::Content(_)) {
            self.content_at = Some(at);
        }
        self.rule.sections[at].tests.push(test);
    }

    pub(super) fn push(&mut self, test: Test) -> Result<(), String> {
        if self.rule.tests() >= self.shared.limits.tests_max {
            return Err("too many tests".into());
        }
        if self.in_base64 {
            let is_content = matches!(test, Test::Content(_));
            self.last_tests().ok_or("no base64_decode before it")?.push(test);
            if is_content {
                self.content_at = self.last;
            }
            return Ok(());
        }
        let transforms = std::mem::take(&mut self.transforms);
        self.push_of(self.way, self.buffer, &transforms, test);
        self.transforms = transforms;
        Ok(())
    }

    /// Options that are a section of their own: about the file that a message carries, and Suricata's older ones about certificates.
    pub(super) fn section(&mut self, option: &Opt<'_>) -> Result<bool, String> {
        let (buffer, test) = match (option.name, option.value) {
            ("filename", Some(value)) => (Buffer::FileName, Test::Content(Box::new(part_of_name(value, "")?))),
            ("fileext", Some(value)) => (Buffer::FileName, Test::Content(Box::new(part_of_name(value, ".")?))),
            ("filesize", Some(value)) => (Buffer::FileData, Test::Size(values::sizes(value)?)),
            // There is a file.
            ("filestore", _) => {
                let (count, is_relative, is_negated) = (Value::Number(0), false, false);
                (Buffer::FileData, Test::DataAt { count, is_relative, is_negated })
            }
            ("app-layer-event", Some(value)) => {
                let Some(event) = event_named(&text(value)) else { return Ok(false) };
                let content =
                    Content { bytes: event.into(), at_end: true, offset: Some(Value::Number(0)), ..Content::default() };
                (Buffer::Event, Test::Content(Box::new(content)))
            }
            (name @ ("filemd5" | "filesha1" | "filesha256"), Some(value)) => {
                (Buffer::FileDigest, self.shared.sets.read_digests(name, value, self.shared.limits)?)
            }
            ("tls.cert_chain_len", Some(value)) => (Buffer::TlsChain, Test::Size(values::sizes(value)?)),
            ("tls.version" | "ssl_version" | "ssl_state" | "tls_cert_valid" | "tls_cert_expired", _) => {
                let Some(facts) = facts_of_tls(option) else { return Ok(false) };
                (Buffer::TlsFact, Test::Pcre(Box::new(values::pcre(format!("/^(?:{facts})$/").as_bytes())?.0)))
            }
            ("tls.subject", Some(value)) => (Buffer::TlsSubject, Test::Content(Box::new(values::content(value)?.0))),
            ("tls.issuerdn", Some(value)) => (Buffer::TlsIssuer, Test::Content(Box::new(values::content(value)?.0))),
            ("tls.fingerprint", Some(value)) => {
                let mut content = part_of_name(value, "")?;
                modify(&mut content, "startswith", "", &self.names)?;
                (Buffer::TlsFingerprint, Test::Content(Box::new(Content { at_end: true, ..content })))
            }
            _ => return Ok(false),
        };
        if self.whole.len() >= self.shared.limits.tests_max {
            return Err("too many tests".into());
        }
        self.whole.push(Section { buffer, way: None, transforms: Vec::new(), tests: vec![test] });
        Ok(true)
    }

    /// A keyword that stands before contents.
    pub(super) fn choose_buffer(&mut self, option: &Opt<'_>) -> bool {
        if option.name == "base64_data" {
            self.in_base64 = true;
            return true;
        }
        let address = match option.name {
            "ip.src" => Some(Port::Source),
            "ip.dst" => Some(Port::Target),
            _ => None,
        };
        if address.is_some() {
            (self.address, self.in_base64) = (address, false);
            return true;
        }
        let Some(buffer) = Buffer::sticky(option.name) else { return false };
        let way = match option.value {
            Some(b"to_server") => Some(Direction::ToServer),
            Some(b"to_client") => Some(Direction::ToClient),
            _ => None,
        };
        let narrowed = match option.value.filter(|_| way.is_none()) {
            None => Some((buffer, part_of_random(option.name))),
            Some(b"mime") if option.name == "file_data" => Some((buffer, None)),
            Some(value) if option.name.starts_with("http_") => narrowed(buffer, value),
            Some(_) => None,
        };
        let Some((buffer, part)) = narrowed else { return false };
        (self.buffer, self.in_base64, self.is_fresh) = (buffer, false, buffer.is_multi());
        (self.way, self.address) = (way.filter(|_| buffer.side() == Side::Both), None);
        self.transforms = part.into_iter().collect();
        true
    }
}

/// The buffer that Snort 3's words behind a keyword choose, and the part of it: a field of a head, a part of a URI.
/// The part of the random bytes of TLS that a keyword means.
fn part_of_random(name: &str) -> Option<Transform> {
    let expression: &[u8] = match name {
        "tls.random_time" => b"\"(?s)^(.{4})\"",
        "tls.random_bytes" => b"\"(?s)^.{4}(.{28})\"",
        _ => return None,
    };
    Transform::read("pcrexform", Some(expression))?.ok()
}

/// The facts of a handshake that an option asks for, as an expression; none where they are not known.
fn facts_of_tls(option: &Opt<'_>) -> Option<String> {
    let value = option.value.map(text);
    let version = |name: &str| handshake::version_named(name.trim()).map(|number| format!("version {number}"));
    let state = |name: &str| {
        let is_known = matches!(name.trim(), "client_hello" | "server_hello" | "server_keyx");
        is_known.then(|| format!("state {}", name.trim()))
    };
    let all = match (option.name, value.as_deref()) {
        ("tls_cert_valid", None) => Some(vec!["certificate valid".into()]),
        ("tls_cert_expired", None) => Some(vec!["certificate expired".into()]),
        ("tls.version", Some(name)) => version(name).map(|fact| vec![fact]),
        ("ssl_version", Some(names)) => match names.trim().strip_prefix('!') {
            Some(names) => {
                let excluded: Vec<String> = names.split(',').map(version).collect::<Option<_>>()?;
                let others = handshake::VERSIONS.iter().filter_map(|(name, _)| version(name));
                Some(others.filter(|fact| !excluded.contains(fact)).collect())
            }
            None => names.split(',').map(version).collect(),
        },
        ("ssl_state", Some(names)) => names.split([',', '|']).map(state).collect::<Option<Vec<String>>>(),
        _ => None,
    };
    all.map(|all| all.join("|"))
}

fn narrowed(buffer: Buffer, words: &[u8]) -> Option<(Buffer, Option<Transform>)> {
    let mut chosen = (buffer, None);
    for item in items(words) {
        let item = text(item);
        let (word, name) = item.split_once(char::is_whitespace).unwrap_or((&item, ""));
        chosen = match (buffer, word) {
            // They say when the rule is tried.
            (_, "request" | "with_header" | "with_body" | "with_trailer") => continue,
            (Buffer::Header | Buffer::HeaderRaw, "field") => match Buffer::of_field(name.trim().as_bytes()) {
                Some(of_field) => (of_field, None),
                None => (buffer, Some(Transform::Field(name.trim().into()))),
            },
            // What is in front of the path is in the URI as it was sent.
            (Buffer::Uri | Buffer::UriRaw, "scheme" | "host" | "port") => {
                (Buffer::UriRaw, Transform::part_of_uri(word))
            }
            (Buffer::Uri | Buffer::UriRaw, "path" | "query" | "fragment") => (buffer, Transform::part_of_uri(word)),
            _ => return None,
        };
    }
    Some(chosen)
}
