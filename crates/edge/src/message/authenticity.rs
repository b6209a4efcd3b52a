//! Authentication results of a mail: the field `Authentication-Results`, and log fields.
//!
//! An inspection says what was found; what would end the field or the header is not written.

use flow::{Action, Authenticating, Authenticity, Evaluation, Flow, Verdict};

use super::trace;
use crate::settings::Authentication;

/// The name of the field.
pub const NAME: &str = "Authentication-Results";

/// The longest line of the field, in bytes; the hard bound of RFC 5322 section 2.1.1.
const LINE_BYTES_MAX: usize = 990;

/// A counter of evaluations of DMARC, for reports.
pub trait Evaluations: Send + Sync {
    /// Counts one mail.
    fn count(&self, evaluation: &Evaluation);
}

/// Checks wanted for a mail.
pub fn asked(settings: &Authentication, flow: &Flow) -> Option<Authenticating> {
    // Who has logged in has shown who it is, and sends from anywhere.
    if flow.login.is_some() {
        return None;
    }
    Some(Authenticating {
        authserv_id: settings.authserv_id.clone(),
        // What comes from this machine was sent to somebody else before, who has not said from where.
        client: flow.client.filter(|client| !client.to_canonical().is_loopback()),
        on_spf_fail: settings.on_spf_fail,
        on_dmarc_reject: settings.on_dmarc_reject,
        on_dmarc_quarantine: settings.on_dmarc_quarantine,
    })
}

/// The value of the field; folded lines end in `line_end`.
pub fn value(settings: &Authentication, found: &Authenticity, line_end: &str) -> String {
    let mut value = String::from(&*settings.authserv_id);
    for method in found.methods.iter().take(Authenticity::METHODS_MAX) {
        let line: String = method.chars().filter(|letter| (' '..='~').contains(letter)).take(LINE_BYTES_MAX).collect();
        value += &format!(";{line_end}\t{}", line.trim());
    }
    if found.methods.is_empty() {
        value += "; none";
    }
    value
}

/// The field as it stands in a header, where one is wanted and there is something to say.
pub fn field(settings: Option<&Authentication>, verdict: &Verdict) -> Option<String> {
    let (settings, found) = settings.filter(|settings| settings.header).zip(verdict.authenticity.as_deref())?;
    Some(format!("{NAME}: {}\r\n", value(settings, found, "\r\n")))
}

/// Why something follows from it, where something does.
pub fn reason(verdict: &Verdict) -> Option<String> {
    let found = verdict.authenticity.as_deref().filter(|found| found.action > Action::Pass)?;
    Some(trace::printable(&found.reason))
}

/// All results, for the log.
pub fn results(verdict: &Verdict) -> Option<String> {
    let found = verdict.authenticity.as_deref()?;
    let Authenticity { spf, dkim, dmarc, arc, .. } = found;
    Some(trace::printable(&format!("spf={spf} dkim={dkim} dmarc={dmarc} arc={arc}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::AuthenticationSettings;

    fn settings(text: &str) -> Authentication {
        let settings: AuthenticationSettings = toml::from_str(text).unwrap();
        settings.under([None, None], true).unwrap()
    }

    #[test]
    fn what_an_inspection_makes_up_stays_within_the_field() {
        let methods = vec!["spf=pass\r\nBcc: x".into(), "dkim=\u{e9}none".into(), "x".repeat(5_000).into()];
        let verdict = Verdict {
            authenticity: Some(Box::new(Authenticity { methods, ..Authenticity::default() })),
            ..Verdict::default()
        };
        let ours = settings("authserv_id = 'mx.test'");
        let told = field(Some(&ours), &verdict).unwrap();
        assert!(told.starts_with("Authentication-Results: mx.test;\r\n\tspf=passBcc: x;\r\n\tdkim=none;\r\n\txxx"));
        assert!(told.lines().all(|line| line.len() < 998) && told.lines().count() == 4, "{told}");
        assert_eq!(field(Some(&settings("header = false")), &verdict), None);
        assert_eq!(field(Some(&ours), &Verdict::default()), None);
        assert_eq!(value(&ours, &Authenticity::default(), "\n"), "mx.test; none");
    }

    #[test]
    fn spf_is_not_asked_about_this_machine_nor_anything_about_who_has_logged_in() {
        let flow = |client: [u8; 4], login| Flow { client: Some(client.into()), login, ..Flow::default() };
        let client = |flow| asked(&settings(""), &flow).map(|asked| asked.client);
        assert_eq!(client(flow([192, 0, 2, 1], None)), Some(Some([192, 0, 2, 1].into())));
        assert_eq!(client(flow([127, 0, 0, 9], None)), Some(None));
        assert_eq!(client(flow([192, 0, 2, 1], Some("a".into()))), None);
    }
}
