//! A small authority that speaks ACME: one account, one order at a time. It believes every signature, takes each nonce
//! once, and really asks at the port of HTTP-01.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use rcgen::{BasicConstraints, CertificateParams, CertificateSigningRequestParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use time::{Duration, OffsetDateTime};

use super::tls::{Certificate, Secured};

/// The authority.
pub struct Authority {
    /// Certificate for clients of its server.
    pub server: Certificate,
    /// Root for clients that are shown its certificates.
    pub root: Certificate,
    /// Where it is.
    pub directory: String,
    state: Arc<Mutex<State>>,
}

/// State of the authority, and its faults.
#[derive(Default)]
pub struct State {
    /// It does not answer.
    pub away: bool,
    /// When it wants certificates to be renewed: seconds from now.
    pub window: Option<(i64, i64)>,
    /// It has forgotten its accounts.
    pub forgetful: bool,
    /// Accounts that were opened.
    pub accounts: usize,
    /// Orders that were asked for.
    pub orders: usize,
    /// Certificates that replaced others.
    pub replaced: Vec<String>,
    nonces: HashSet<String>,
    nonces_given: usize,
    thumbprint: String,
    names: Vec<String>,
    proved: HashMap<usize, Result<(), String>>,
    chain: Option<String>,
}

impl Authority {
    /// Starts it; it asks at this port of the loopback address.
    pub fn start(http_port: u16) -> Authority {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let directory = format!("https://localhost:{}/directory", listener.local_addr().unwrap().port());
        let (server, root) = (Certificate::of("localhost"), root());
        let state = Arc::new(Mutex::new(State::default()));
        let desk = Desk {
            base: directory.trim_end_matches("/directory").into(),
            http_port,
            root: root.clone(),
            state: state.clone(),
        };
        let shown = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if !desk.state.lock().unwrap().away {
                    let _ = desk.serve(shown.server()(stream.unwrap()));
                }
            }
        });
        Authority { server, root, directory, state }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// A certificate for this name that holds from then to then, in days from now; with its key, as it is kept.
    pub fn issue(&self, name: &str, from: i64, to: i64) -> String {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_string()]).unwrap();
        let now = OffsetDateTime::now_utc();
        (params.not_before, params.not_after) = (now + Duration::days(from), now + Duration::days(to));
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &issuer(&self.root)).unwrap();
        key.serialize_pem() + &certificate.pem()
    }
}

fn root() -> Certificate {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Certificate { chain: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}

fn issuer(root: &Certificate) -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Issuer::new(params, KeyPair::from_pem(&root.key).unwrap())
}

struct Desk {
    base: String,
    http_port: u16,
    root: Certificate,
    state: Arc<Mutex<State>>,
}

impl Desk {
    fn serve(&self, stream: Secured) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.clone());
        let (mut line, mut length) = (String::new(), 0);
        reader.read_line(&mut line)?;
        let words: Vec<String> = line.split(' ').map(String::from).collect();
        loop {
            let mut field = String::new();
            reader.read_line(&mut field)?;
            if field.trim().is_empty() {
                break;
            }
            if let Some(value) = field.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let (status, location, answer) = self.answer(&words[1], serde_json::from_slice(&body).ok());
        let mut state = self.state.lock().unwrap();
        state.nonces_given += 1;
        let nonce = format!("nonce{}", state.nonces_given);
        state.nonces.insert(nonce.clone());
        let location = location.map_or(String::new(), |path| format!("Location: {}{path}\r\n", self.base));
        let head = format!(
            "HTTP/1.1 {status} X\r\nReplay-Nonce: {nonce}\r\nRetry-After: 1\r\n{location}Connection: close\r\n\
             Content-Length: {}\r\n\r\n",
            answer.len()
        );
        let mut stream = stream;
        let answer = if words[0] == "HEAD" { String::new() } else { answer };
        stream.write_all((head + &answer).as_bytes())?;
        stream.flush()
    }

    fn answer(&self, path: &str, jws: Option<Value>) -> (u16, Option<&'static str>, String) {
        let url = |path: &str| format!("{}{path}", self.base);
        let mut state = self.state.lock().unwrap();
        let parts = jws.map(|jws| (decoded(&jws["protected"]), decoded(&jws["payload"])));
        if let Some((head, _)) = &parts {
            if !state.nonces.remove(head["nonce"].as_str().unwrap()) {
                return (400, None, json!({"type": "urn:ietf:params:acme:error:badNonce"}).to_string());
            }
            assert_eq!(head["url"], url(path), "a request for another place");
        }
        let (head, payload) = parts.unwrap_or_default();
        let number = || path.rsplit('/').next().unwrap().parse::<usize>().unwrap();
        match path.split('/').nth(1).unwrap() {
            "directory" => {
                let mut directory = json!({
                    "newNonce": url("/nonce"), "newAccount": url("/account"), "newOrder": url("/order"),
                });
                if state.window.is_some() {
                    directory["renewalInfo"] = url("/renewal").into();
                }
                (200, None, directory.to_string())
            }
            "nonce" => (200, None, String::new()),
            "account" => {
                assert_eq!(payload["termsOfServiceAgreed"], true);
                (state.accounts, state.forgetful) = (state.accounts + 1, false);
                state.thumbprint = thumbprint(&head["jwk"]);
                (201, Some("/account/1"), json!({"status": "valid"}).to_string())
            }
            "order" if state.forgetful => {
                let problem = json!({"type": "urn:ietf:params:acme:error:accountDoesNotExist", "detail": "who?"});
                (400, None, problem.to_string())
            }
            "order" if payload["identifiers"].is_array() => {
                state.orders += 1;
                let names = payload["identifiers"].as_array().unwrap().iter();
                state.names = names.map(|name| name["value"].as_str().unwrap().into()).collect();
                (state.proved, state.chain) = (HashMap::new(), None);
                let mut order = self.order(&state);
                if let Some(replaced) = payload["replaces"].as_str() {
                    state.replaced.push(replaced.into());
                    order["replaces"] = replaced.into();
                }
                (201, Some("/orders/1"), order.to_string())
            }
            "orders" => (200, None, self.order(&state).to_string()),
            "authorization" => (200, None, self.authorization(&state, number()).to_string()),
            "challenge" => {
                let (index, thumbprint) = (number(), state.thumbprint.clone());
                let name = state.names[index].clone();
                let proved = self.look(&name, &format!("token{index}"), &thumbprint);
                state.proved.insert(index, proved);
                (200, None, self.authorization(&state, index)["challenges"][0].to_string())
            }
            "finalize" => {
                let request = base64url(payload["csr"].as_str().unwrap()).into();
                let mut request = CertificateSigningRequestParams::from_der(&request).unwrap();
                request.params.not_after = OffsetDateTime::now_utc() + Duration::days(90);
                request.params.not_before = OffsetDateTime::now_utc() - Duration::hours(1);
                request.params.use_authority_key_identifier_extension = true;
                state.chain = Some(request.signed_by(&issuer(&self.root)).unwrap().pem());
                (200, None, self.order(&state).to_string())
            }
            "certificate" => (200, None, state.chain.clone().unwrap()),
            "renewal" => {
                let (start, end) = state.window.unwrap();
                let at = |seconds| {
                    let form = &time::format_description::well_known::Rfc3339;
                    (OffsetDateTime::now_utc() + Duration::seconds(seconds)).format(form).unwrap()
                };
                (200, None, json!({"suggestedWindow": {"start": at(start), "end": at(end)}}).to_string())
            }
            other => panic!("{other} was asked for"),
        }
    }

    fn order(&self, state: &State) -> Value {
        let status = match (&state.chain, state.proved.len() == state.names.len()) {
            (Some(_), _) => "valid",
            _ if state.proved.values().any(Result::is_err) => "invalid",
            (None, true) => "ready",
            (None, false) => "pending",
        };
        let authorizations: Vec<String> =
            (0..state.names.len()).map(|index| format!("{}/authorization/{index}", self.base)).collect();
        let (finalize, certificate) = (format!("{}/finalize/1", self.base), format!("{}/certificate/1", self.base));
        json!({
            "status": status, "authorizations": authorizations, "finalize": finalize, "certificate": certificate,
            "identifiers": [],
        })
    }

    fn authorization(&self, state: &State, index: usize) -> Value {
        let (status, error) = match state.proved.get(&index) {
            None => ("pending", None),
            Some(Ok(())) => ("valid", None),
            Some(Err(reason)) => ("invalid", Some(reason)),
        };
        let url = format!("{}/challenge/{index}", self.base);
        let mut challenge = json!({"type": "http-01", "url": url, "token": format!("token{index}"), "status": status});
        if let Some(reason) = error {
            challenge["error"] = json!({"type": "urn:ietf:params:acme:error:unauthorized", "detail": reason});
        }
        let name = &state.names[index];
        json!({"identifier": {"type": "dns", "value": name}, "status": status, "challenges": [challenge]})
    }

    /// Asks the host behind a name; all names lead to the loopback address.
    fn look(&self, name: &str, token: &str, thumbprint: &str) -> Result<(), String> {
        if name.starts_with("refused.") {
            return Err(format!("no A record for {name}"));
        }
        let mut stream = TcpStream::connect(("127.0.0.1", self.http_port)).map_err(|error| error.to_string())?;
        let path = format!("/.well-known/acme-challenge/{token}");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {name}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let wanted = format!("\r\n\r\n{token}.{thumbprint}");
        if answer.starts_with("HTTP/1.1 200 ") && answer.ends_with(&wanted) { Ok(()) } else { Err(answer) }
    }
}

fn decoded(text: &Value) -> Value {
    serde_json::from_slice(&base64url(text.as_str().unwrap())).unwrap_or_default()
}

/// RFC 7638.
fn thumbprint(key: &Value) -> String {
    let text = format!(r#"{{"crv":{},"kty":{},"x":{},"y":{}}}"#, key["crv"], key["kty"], key["x"], key["y"]);
    let coded = super::base64(&Sha256::digest(text));
    coded.trim_end().trim_end_matches('=').replace('+', "-").replace('/', "_")
}

fn base64url(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digit = |byte: u8| ALPHABET.iter().position(|&known| known == byte).unwrap() as u32;
    let mut bytes = Vec::new();
    for group in text.as_bytes().chunks(4) {
        let word = group.iter().enumerate().fold(0, |word, (at, &byte)| word | digit(byte) << (18 - 6 * at));
        bytes.extend_from_slice(&word.to_be_bytes()[1..group.len()]);
    }
    bytes
}
