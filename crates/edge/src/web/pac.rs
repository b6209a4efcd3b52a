//! The script by which browsers find the proxy, as an origin server would have it: at `/proxy.pac`, and at `/wpad.dat` for browsers
//! that look for a host `wpad`. Nobody has to log in for it.

use std::io;

use proto::http::{Framing, Request, Response, Target};

use super::line::Ending;
use super::session::Session;
use crate::settings::Mode;

/// The paths of the script.
const PATHS: [&[u8]; 2] = [b"/proxy.pac", b"/wpad.dat"];

impl Session {
    /// The script, if a request asks for it and the door has one.
    pub(super) fn proxy_script(&self, request: &Request) -> Option<String> {
        let is_asked = self.settings.mode == Mode::Explicit
            && self.opened.is_none()
            && matches!(request.method.as_str(), "GET" | "HEAD")
            && matches!(request.target, Target::Origin(_));
        let path = request.path().split(|&byte| byte == b'?').next().unwrap_or_default();
        let is_there = is_asked && PATHS.contains(&path);
        is_there.then(|| self.settings.proxy_script(self.is_encrypted)).flatten()
    }

    /// Answers with the script, and writes it down.
    pub(super) async fn answer_script(&mut self, request: &Request, script: &str) -> io::Result<()> {
        let mut response = Response { framing: Framing::Length(script.len() as u64), ..Response::new(200) };
        response.fields.push("Content-Type", b"application/x-ns-proxy-autoconfig");
        response.fields.push("Cache-Control", b"max-age=3600");
        self.answer_own(request, &response, script.as_bytes()).await
    }

    /// Answers a request that may go no further (RFC 9110, section 7.6.2).
    pub(super) async fn answer_options(&mut self, request: &Request) -> io::Result<()> {
        self.answer_own(request, &Response::new(200), b"").await
    }

    /// Answers with a response of our own.
    async fn answer_own(&mut self, request: &Request, response: &Response, body: &[u8]) -> io::Result<()> {
        self.server.answer(response, body);
        let (status, bytes) = (response.status.0, body.len() as u64);
        self.log(&request.method, request.path(), &Ending { status, bytes, action: "pass", ..Ending::default() });
        self.send().await
    }
}
