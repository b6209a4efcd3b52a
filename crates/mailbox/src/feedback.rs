//! Feedback about mail from here (RFC 5965): who has reported a mail as spam gets no more.
//!
//! A report counts where the gateway says that DMARC passed for a domain whose reports are wanted: whoever could forge one could cut
//! off any recipient. Kinds that count are `abuse`, `fraud` and `opt-out`. The recipient is `Original-Rcpt-To`, or the one address
//! in `To` of the mail that is reported. Bounds: ten parts, ten recipients, and what is read
//! of a mail for scripts.

use keep::header::{end_of_header, fields, is_named, split};
use memchr::memmem;
use text::host::is_listed;

/// Parts of a report that are looked at.
const PARTS_MAX: usize = 10;

/// Recipients of one report.
const RECIPIENTS_MAX: usize = 10;

/// Where feedback comes in, and whose counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    /// The address.
    pub address: String,
    /// Domains: `example.org`, and `.example.org` for those below it.
    pub from: Vec<String>,
}

impl Feedback {
    /// Whether it comes in at an address.
    pub(crate) fn is_at(&self, address: &str) -> bool {
        self.address.eq_ignore_ascii_case(address)
    }

    /// The recipients that a mail says to have reported one; none if it is no report that counts.
    pub(crate) fn reported(&self, mail: &[u8]) -> Vec<String> {
        let header = mail.get(..end_of_header(mail, 0).unwrap_or(0)).unwrap_or_default();
        if !self.is_vouched_for(header) {
            return Vec::new();
        }
        let kind = value(header, "content-type").unwrap_or_default();
        let Some(boundary) = boundary(&kind).filter(|_| is_type(&kind, "multipart/report")) else { return Vec::new() };
        let parts = parts(mail.get(header.len().saturating_sub(2)..).unwrap_or_default(), &boundary);
        let of_type = |types: [&str; 2]| {
            parts.iter().find_map(|part| {
                let (header, body) = part.split_at(end_of_header(part, 0)?);
                let kind = value(header, "content-type")?;
                types.iter().any(|wanted| is_type(&kind, wanted)).then_some(body)
            })
        };
        let Some(report) = of_type(["message/feedback-report"; 2]) else { return Vec::new() };
        let kind = value(report, "feedback-type").unwrap_or_default().to_ascii_lowercase();
        if !["abuse", "fraud", "opt-out"].contains(&&*kind) {
            return Vec::new();
        }
        let named = fields(report).filter(|field| is_named(field, b"original-rcpt-to"));
        let recipients: Vec<String> = named.filter_map(|field| address(split(field)?.1)).take(RECIPIENTS_MAX).collect();
        if !recipients.is_empty() {
            return recipients;
        }
        let original = of_type(["message/rfc822", "text/rfc822-headers"]).unwrap_or_default();
        let to = fields(original).find(|field| is_named(field, b"to"));
        to.and_then(|field| address(split(field)?.1)).into_iter().collect()
    }

    /// Whether the gateway says that a domain whose reports count has sent it: in a field above its own `Received`.
    fn is_vouched_for(&self, header: &[u8]) -> bool {
        let ours = fields(header).take_while(|field| !is_named(field, b"received"));
        let results = ours.filter(|field| is_named(field, b"authentication-results"));
        let told = results.filter_map(|field| auth::report::parse(split(field)?.1));
        told.flat_map(|told| told.results).any(|found| {
            let is_from =
                |(name, domain): &(Box<str>, Box<str>)| &**name == "header.from" && is_listed(&self.from, domain);
            &*found.method == "dmarc" && &*found.result == "pass" && found.properties.iter().any(is_from)
        })
    }
}

/// The value of the first field of a name, on one line.
fn value(header: &[u8], name: &str) -> Option<String> {
    let field = fields(header).find(|field| is_named(field, name.as_bytes()))?;
    let text = String::from_utf8_lossy(split(field)?.1).replace(['\r', '\n', '\t'], " ");
    Some(text.trim().to_owned())
}

fn is_type(value: &str, wanted: &str) -> bool {
    value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(wanted))
}

fn boundary(value: &str) -> Option<String> {
    let at = value.to_ascii_lowercase().find("boundary=")?;
    let rest = value.get(at + "boundary=".len()..)?;
    let text = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => rest.split([';', ' ']).next()?,
    };
    Some(text.to_owned()).filter(|text| (1..=70).contains(&text.len()))
}

/// The parts of a body that begins with the line end in front of it.
fn parts<'a>(body: &'a [u8], boundary: &str) -> Vec<&'a [u8]> {
    let delimiter = format!("\n--{boundary}");
    let marks: Vec<usize> = memmem::find_iter(body, delimiter.as_bytes()).take(PARTS_MAX + 1).collect();
    let ends = marks.iter().skip(1).copied().chain([body.len()]);
    let part = |(&mark, end): (&usize, usize)| {
        let part = body.get(mark + delimiter.len()..end)?;
        part.get(memchr::memchr(b'\n', part)? + 1..)
    };
    marks.iter().zip(ends).filter_map(part).collect()
}

/// The one address of a value: bare, in angle brackets, or behind `rfc822;`.
fn address(value: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(value).replace(['\r', '\n', '\t'], " ");
    let text = text.rsplit(';').next().unwrap_or_default();
    let text = text.rsplit_once('<').map_or(text, |(_, behind)| behind.split('>').next().unwrap_or_default()).trim();
    let is_one = value.iter().filter(|&&byte| byte == b'@').count() == 1;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic()) && text.split('@').all(|part| !part.is_empty());
    (is_one && is_plain && text.contains('@') && !text.contains(',')).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "Return-Path: <>\r\nDelivered-To: fbl@here.test\r\nAuthentication-Results: mx.test;\r\n\tspf=pass smtp.mailfrom=x@isp.test;\r\n\t\
        dmarc=pass (policy none of isp.test) header.from=isp.test\r\nReceived: by mx.test\r\nFrom: <fbl@isp.test>\r\nMIME-Version: 1.0\r\n\
        Content-Type: multipart/report; report-type=feedback-report;\r\n\tboundary=\"b1\"\r\n\r\n--b1\r\nContent-Type: text/plain\r\n\r\nspam\r\n\
        --b1\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nUser-Agent: x/1\r\nVersion: 1\r\n\
        Original-Rcpt-To: rfc822; Carl@isp.test\r\n\r\n--b1\r\nContent-Type: message/rfc822\r\n\r\nFrom: <ann@here.test>\r\n\
        To: Carl <c@isp.test>\r\nSubject: hello\r\n\r\nbody\r\n--b1--\r\n";

    fn reported(mail: &str) -> Vec<String> {
        let feedback = Feedback { address: "fbl@here.test".into(), from: vec!["isp.test".into(), ".many.test".into()] };
        feedback.reported(mail.as_bytes())
    }

    #[test]
    fn a_report_names_its_recipient_or_the_mail_does() {
        assert_eq!(reported(REPORT), ["Carl@isp.test"]);
        let redacted = REPORT.replace("Original-Rcpt-To: rfc822; Carl@isp.test\r\n", "");
        assert_eq!(reported(&redacted), ["c@isp.test"]);
        assert!(reported(&redacted.replace("<c@isp.test>", "<c@isp.test>, <d@isp.test>")).is_empty());
        let two = REPORT.replace("Original-Rcpt-To: ", "Original-Rcpt-To: <d@isp.test>\r\nOriginal-Rcpt-To: ");
        assert_eq!(reported(&two), ["d@isp.test", "Carl@isp.test"]);
        let many = REPORT.replace("Original-Rcpt-To: ", &"Original-Rcpt-To: d@isp.test\r\n".repeat(50));
        assert_eq!(reported(&many).len(), RECIPIENTS_MAX);
    }

    #[test]
    fn what_nobody_vouches_for_or_is_no_complaint_counts_for_nothing() {
        for (part, other) in [
            ("dmarc=pass", "dmarc=fail"),
            ("header.from=isp.test", "header.from=evil.test"),
            ("smtp.mailfrom=x@isp.test", "smtp.mailfrom=\"a; dmarc=pass header.from=isp.test\"@x; dmarc=none; x=pass"),
            ("Authentication-Results:", "Received: x\r\nAuthentication-Results:"),
            ("Feedback-Type: abuse", "Feedback-Type: not-spam"),
            ("Feedback-Type: abuse", "Feedback-Type: auth-failure"),
            ("multipart/report", "multipart/mixed"),
            ("message/feedback-report", "text/plain"),
            ("boundary=\"b1\"", "boundary=\"b2\""),
            ("Carl@isp.test", "Carl isp.test@x@"),
        ] {
            let mail = REPORT.replace(part, other).replace("To: Carl <c@isp.test>\r\n", "");
            let mail = if part.starts_with("smtp") {
                mail.replace("x=pass;\r\n\tdmarc=pass", "x=pass;\r\n\tspf=pass")
            } else {
                mail
            };
            assert!(reported(&mail).is_empty(), "{other}: {mail}");
        }
        assert!(reported("").is_empty() && reported("\r\n").is_empty());
        for length in 0..REPORT.len() {
            reported(&REPORT[..length]);
        }
    }
}
