//! Replies: a page, a redirection, a download, with the fields that a browser keeps a page apart by.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use proto::http::Response;

use crate::html::Html;
use crate::structure::Content;

/// The policy of our pages: no script, nothing from elsewhere, forms come back here.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; frame-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'";

/// What pages with passkeys are allowed beside that: our script, which writes no markup.
const SCRIPT_POLICY: &str = "; script-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The policy of a mail in its frame: pictures that stand in it, styles that stand in it, and nothing else.
const FRAME_POLICY: &str = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; \
     frame-ancestors 'self'; sandbox allow-popups allow-popups-to-escape-sandbox";

/// The policy of a download, if a browser opens it after all.
const FILE_POLICY: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";

/// The policy of a PDF that is looked at. Viewers of browsers do not open one in a sandbox, and no script of one leaves the viewer.
const PDF_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

/// A reply.
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its fields but for those of the body's framing.
    pub fields: Vec<(&'static str, String)>,
    /// Its body.
    pub body: Body,
}

/// The body of a reply.
pub enum Body {
    /// As it stands.
    Bytes(Vec<u8>),
    /// Content of a mail, read while it is sent.
    Content(Content),
}

/// The value of `Content-Disposition` for a file that a browser saves under a name (RFC 6266).
pub fn attachment_named(name: &str) -> String {
    let mut value = String::from("attachment; filename*=UTF-8''");
    for byte in name.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
            true => value.push(char::from(byte)),
            false => value.push_str(&format!("%{byte:02X}")),
        }
    }
    value
}

impl Reply {
    fn new(status: u16, policy: &str, kind: &str, body: Body) -> Reply {
        let fields = [
            ("Content-Type", kind),
            ("Content-Security-Policy", policy),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Permissions-Policy", "camera=(), microphone=(), geolocation=()"),
            ("Cache-Control", "no-store"),
        ];
        Reply { status, fields: fields.map(|(name, value)| (name, value.into())).into(), body }
    }

    /// A page of ours.
    pub fn page(status: u16, page: Html) -> Reply {
        Reply::new(status, PAGE_POLICY, "text/html; charset=utf-8", Body::Bytes(page.into_string().into_bytes()))
    }

    /// The page with our script allowed.
    pub fn with_script(mut self) -> Reply {
        self.set("Content-Security-Policy", [PAGE_POLICY, SCRIPT_POLICY].concat());
        self
    }

    /// A mail for a frame.
    pub fn frame(page: Html) -> Reply {
        Reply::new(200, FRAME_POLICY, "text/html; charset=utf-8", Body::Bytes(page.into_string().into_bytes()))
    }

    /// The style sheet, which may be kept.
    pub fn style(text: &str) -> Reply {
        Reply::kept("text/css; charset=utf-8", text)
    }

    /// The script, which may be kept.
    pub fn script(text: &str) -> Reply {
        Reply::kept("text/javascript; charset=utf-8", text)
    }

    fn kept(kind: &str, text: &str) -> Reply {
        let mut reply = Reply::new(200, FILE_POLICY, kind, Body::Bytes(text.into()));
        reply.set("Cache-Control", "max-age=3600".into());
        reply
    }

    /// A file of a mail, which a browser saves. Its type is ours: what the mail says of it is not repeated.
    pub fn file(content: Content, name: &str) -> Reply {
        let mut reply = Reply::new(200, FILE_POLICY, "application/octet-stream", Body::Content(content));
        reply.set("Content-Disposition", attachment_named(name));
        reply
    }

    /// Bytes that a browser saves under a name of letters, digits, dots and hyphens.
    pub fn saved(content: Vec<u8>, name: &str) -> Reply {
        let mut reply = Reply::new(200, FILE_POLICY, "application/octet-stream", Body::Bytes(content));
        reply.set("Content-Disposition", format!("attachment; filename=\"{name}\""));
        reply
    }

    /// A value for programs.
    pub fn json(status: u16, text: String) -> Reply {
        Reply::new(status, FILE_POLICY, "application/json", Body::Bytes(text.into_bytes()))
    }

    /// A text as it stands, shown.
    pub fn source(content: Content) -> Reply {
        Reply::new(200, FILE_POLICY, "text/plain; charset=utf-8", Body::Content(content))
    }

    /// A picture of a mail, of a type that was told by its bytes.
    pub fn picture(content: Content, kind: &str) -> Reply {
        Reply::new(200, FILE_POLICY, kind, Body::Content(content))
    }

    /// A text of a mail, decoded.
    pub fn text(text: String) -> Reply {
        Reply::new(200, FILE_POLICY, "text/plain; charset=utf-8", Body::Bytes(text.into_bytes()))
    }

    /// A PDF of a mail.
    pub fn pdf(content: Content) -> Reply {
        Reply::new(200, PDF_POLICY, "application/pdf", Body::Content(content))
    }

    /// Sends the browser on with GET. `to` is a path of ours.
    pub fn see(to: &str) -> Reply {
        let mut reply = Reply::new(303, FILE_POLICY, "text/plain", Body::Bytes(Vec::new()));
        reply.fields.push(("Location", to.into()));
        reply
    }

    /// Sets a field.
    pub fn set(&mut self, name: &'static str, value: String) {
        self.fields.retain(|(known, _)| *known != name);
        self.fields.push((name, value));
    }

    /// The head of it for a connection. Bodies that are read while they are sent have no length.
    pub fn head(&self) -> Response {
        let mut response = Response::new(self.status);
        for (name, value) in &self.fields {
            response.fields.push(name, value.as_bytes());
        }
        response.framing = match &self.body {
            Body::Bytes(bytes) => proto::http::Framing::Length(bytes.len() as u64),
            Body::Content(_) => proto::http::Framing::Chunked,
        };
        response
    }
}
