//! The replies.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use text::hazard::{self, is_hazard};

use super::request::Form;

/// Between parts of an answer.
const BOUNDARY: &str = "result-of-sluice";

/// Result for a mail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer<'a> {
    /// Whether it is spam.
    pub is_spam: bool,
    /// Its score, from which score on it is spam, and from which score on it is refused.
    pub scores: [f64; 3],
    /// Action in Rspamd's words: `no action`, `add header`, `rewrite subject`, `reject` and others.
    pub action: &'a str,
    /// The rules that hit, for the older form.
    pub symbols: &'a [&'a str],
    /// All of it, as JSON, for HTTP.
    pub json: &'a [u8],
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The request makes no sense.
    Malformed(&'static str),
    /// Nobody here knows the command.
    Unknown,
    /// The client may not do that.
    Forbidden,
    /// The mail exceeds `size_max`.
    TooLarge,
    /// The client takes no form of answer that there is.
    NotAcceptable,
    /// It is coded in a way that is not undone here.
    Coded,
    /// The service is unavailable now.
    Unavailable(String),
}

impl Answer<'_> {
    /// As it stands on the wire.
    pub(super) fn bytes(&self, form: Form) -> Vec<u8> {
        if form != Form::Rspamc {
            // Senders choose much of what is told.
            let json = str::from_utf8(self.json).map_or(Cow::Borrowed(self.json), |json| match hazard::json(json) {
                Cow::Borrowed(json) => Cow::Borrowed(json.as_bytes()),
                Cow::Owned(json) => Cow::Owned(json.into_bytes()),
            });
            return match form {
                Form::Parts => parts("form-data", "form-data; name=\"result\"", &json),
                Form::Mixed => parts("mixed", "attachment; name=\"result\"", &json),
                Form::Http | Form::Rspamc => http("200 OK", "application/json", &json),
            };
        }
        let [score, required, reject] = self.scores;
        let is_spam = if self.is_spam { "True" } else { "False" };
        let mut text = format!(
            "RSPAMD/1.3 0 EX_OK\r\nMetric: default; {is_spam}; {score:.2} / {required:.2} / {reject:.2}\r\nAction: {}\r\n",
            self.action
        );
        for symbol in self.symbols {
            text += &format!("Symbol: {symbol}\r\n");
        }
        text += "\r\n";
        text.into_bytes()
    }
}

impl Refusal {
    /// As it stands on the wire.
    pub(super) fn bytes(&self, form: Form) -> Vec<u8> {
        let (status, code, why) = match self {
            Refusal::Malformed(why) => ("400 Bad Request", 76, *why),
            Refusal::Unknown => ("404 Not Found", 76, "invalid command"),
            Refusal::Forbidden => ("403 Forbidden", 76, "unauthorized"),
            Refusal::TooLarge => ("413 Content Too Large", 69, "the message is too large"),
            Refusal::NotAcceptable => {
                ("406 Not Acceptable", 76, "answers are multipart/form-data, message/rfc822 or application/json")
            }
            Refusal::Coded => ("415 Unsupported Media Type", 69, "neither compressed nor encrypted requests are taken"),
            Refusal::Unavailable(why) => ("503 Service Unavailable", 69, &**why),
        };
        let why: String = why.chars().filter(|letter| !is_hazard(*letter) && !matches!(letter, '"' | '\\')).collect();
        match form {
            Form::Rspamc => format!("RSPAMD/1.3 {code} {why}\r\n\r\n").into_bytes(),
            _ => http(status, "application/json", format!("{{\"error\":\"{why}\"}}").as_bytes()),
        }
    }
}

/// Reply to a request to learn a mail, in Rspamd's words.
pub(super) fn learned(is_new: bool) -> Vec<u8> {
    match is_new {
        true => http("200 OK", "application/json", b"{\"success\":true}"),
        false => {
            let body = b"{\"error\":\"the message has been already learned as such, ignore it\"}";
            http("208 Already Reported", "application/json", body)
        }
    }
}

/// The answer to a question for methods.
pub(super) fn options() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nAllow: OPTIONS, GET, HEAD, POST\r\nContent-Length: 0\r\n\r\n".to_vec()
}

/// The answer to a ping, in Rspamd's words.
pub(super) fn pong(form: Form) -> Vec<u8> {
    match form {
        Form::Rspamc => b"RSPAMD/1.3 0 PONG\r\n\r\n".to_vec(),
        _ => http("200 OK", "text/plain", b"pong\r\n"),
    }
}

/// An answer of one part. No line of it begins with the boundary, since JSON has no line ends in its texts.
fn parts(kind: &str, disposition: &str, json: &[u8]) -> Vec<u8> {
    let head = format!("--{BOUNDARY}\r\nContent-Disposition: {disposition}\r\nContent-Type: application/json\r\n\r\n");
    let end = format!("\r\n--{BOUNDARY}--\r\n");
    let body = [head.as_bytes(), json, end.as_bytes()].concat();
    http("200 OK", &format!("multipart/{kind}; boundary=\"{BOUNDARY}\""), &body)
}

fn http(status: &str, media_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_escaped() {
        let json = "{\"message-id\":\"a\u{202e}b\u{7f}\u{2028}é\"}";
        let answer =
            Answer { is_spam: false, scores: [0.0; 3], action: "no action", symbols: &[], json: json.as_bytes() };
        let bytes = answer.bytes(Form::Http);
        let body = "{\"message-id\":\"a\\u202eb\\u007f\\u2028é\"}";
        assert!(bytes.ends_with(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()));
        let refused = Refusal::Unavailable("a\u{202e}b".into()).bytes(Form::Http);
        assert!(refused.ends_with(b"{\"error\":\"ab\"}"));
    }
}
