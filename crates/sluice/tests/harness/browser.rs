//! Requests as browsers send them, and what comes back.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A response.
#[derive(Debug)]
pub struct Page {
    pub status: u16,
    pub fields: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// A browser with at most one cookie.
pub struct Browser {
    pub address: SocketAddr,
    pub cookie: String,
}

impl Page {
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map(String::as_str).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Text after the first `before`, up to the next quote.
    pub fn quoted(&self, before: &str) -> String {
        let text = self.text();
        let at = text.find(before).unwrap_or_else(|| panic!("no {before} in {text}"));
        text[at + before.len()..].split('"').next().unwrap().into()
    }

    pub fn token(&self) -> String {
        self.quoted("name=\"token\" value=\"")
    }
}

impl Browser {
    pub fn ask(&self, head: &str, body: &[u8]) -> Page {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let cookie = if self.cookie.is_empty() { String::new() } else { format!("Cookie: {}\r\n", self.cookie) };
        let head = format!("{head}\r\nHost: {}\r\nConnection: close\r\n{cookie}", self.address);
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        stream.write_all(format!("{head}{length}\r\n").as_bytes()).unwrap();
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        page(&answer)
    }

    pub fn get(&self, path: &str) -> Page {
        self.ask(&format!("GET {path} HTTP/1.1"), b"")
    }

    pub fn post(&self, path: &str, form: &str) -> Page {
        self.post_with(path, form, "Sec-Fetch-Site: same-origin")
    }

    pub fn post_with(&self, path: &str, form: &str, field: &str) -> Page {
        let kind = "Content-Type: application/x-www-form-urlencoded";
        self.ask(&format!("POST {path} HTTP/1.1\r\n{kind}\r\n{field}"), form.as_bytes())
    }

    /// Sends a form with files: name, file name, content.
    pub fn upload(&self, path: &str, fields: &[(&str, &str)], files: &[(&str, &str, &[u8])]) -> Page {
        let mut body = Vec::new();
        for (name, value) in fields {
            body.extend(format!("--cut\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").bytes());
        }
        for (name, file, content) in files {
            body.extend(
                format!(
                    "--cut\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\n\
                     Content-Type: application/x-test\r\n\r\n"
                )
                .bytes(),
            );
            body.extend_from_slice(content);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"--cut--\r\n");
        let kind = "Content-Type: multipart/form-data; boundary=cut\r\nSec-Fetch-Site: same-origin";
        self.ask(&format!("POST {path} HTTP/1.1\r\n{kind}"), &body)
    }
}

fn page(answer: &[u8]) -> Page {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a response");
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let fields: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.into()))
        .collect();
    let mut rest = &answer[end + 4..];
    let mut body = rest.to_vec();
    if fields.contains_key("transfer-encoding") {
        body.clear();
        loop {
            let line = rest.windows(2).position(|two| two == b"\r\n").expect("the size of a chunk");
            let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
            body.extend_from_slice(&rest[line + 2..line + 2 + size]);
            rest = &rest[line + 4 + size..];
            if size == 0 {
                break;
            }
        }
    }
    Page { status, fields, body }
}
