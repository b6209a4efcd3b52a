//! The mails that tell somebody what was done with another mail.
//!
//! Each is a mail of its own with a null reverse-path, so that nothing can bounce off it, and marked as automatic
//! (RFC 3834) and as a notice. Who is told at which action is set in `[notices]`; `docs/operate/notices.md` has the
//! rules. In short: never because of a notice; a sender only where the client has made sure who that is, and never a list
//! or a machine; nobody more often than `Budget` allows.

mod budget;
mod nature;
mod template;

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use budget::Budget;
use flow::Action;
use proto::smtp::{Path, RcptTo};

use crate::message::trace::date;
use crate::settings::NoticeSettings;

pub use nature::Nature;
use template::Templates;

/// Findings that are named in a notice.
const FOUND_MAX: usize = 16;

/// Recipients that are named in a notice.
const RECIPIENTS_MAX: usize = 20;

/// Addressee of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// Recipients of the mail.
    Recipient,
    /// Sender of the mail.
    Sender,
    /// Administrator of the gateway.
    Postmaster,
}

impl Audience {
    /// All of them.
    pub const ALL: [Audience; 3] = [Audience::Recipient, Audience::Sender, Audience::Postmaster];

    /// The name, as the files of templates have it.
    pub const fn name(self) -> &'static str {
        match self {
            Audience::Recipient => "recipient",
            Audience::Sender => "sender",
            Audience::Postmaster => "postmaster",
        }
    }
}

/// Facts about a mail that a notice is about.
pub struct Incident<'a> {
    /// The gateway.
    pub hostname: &'a str,
    /// The mail's name.
    pub id: &'a str,
    /// Where it came from.
    pub client: IpAddr,
    /// Sender of the envelope.
    pub sender: &'a Path,
    /// Recipients of the envelope.
    pub recipients: &'a [RcptTo],
    /// Action taken.
    pub action: Action,
    /// Findings.
    pub found: &'a [String],
    /// Nature of the mail.
    pub nature: Nature,
}

/// A notice to be sent.
pub struct Notice {
    /// To whom.
    pub rcpt: RcptTo,
    /// The mail, CRLF line ends.
    pub text: String,
}

/// Notices: their addressees, texts and rates.
#[derive(Debug)]
pub struct Notices {
    settings: NoticeSettings,
    templates: Templates,
    postmaster: Path,
    /// One for the whole run.
    budget: Arc<Budget>,
}

impl Notices {
    /// Notices of a configuration; `old` has the counts of those sent.
    ///
    /// # Errors
    /// When a text or an address is none, or a language has no text for everybody.
    pub fn load(settings: &NoticeSettings, hostname: &str, old: Option<&Notices>) -> Result<Notices, String> {
        let templates = Templates::load(settings.templates.as_deref())?;
        let languages = std::iter::once(&settings.language).chain(settings.languages.values());
        for language in languages {
            if !templates.speaks(language) {
                return Err(format!("notices: no texts for everybody in the language {language:?}"));
            }
        }
        let postmaster = settings.postmaster_address.clone().unwrap_or_else(|| format!("postmaster@{hostname}"));
        Ok(Notices {
            settings: settings.clone(),
            templates,
            postmaster: postmaster.parse().map_err(|error| format!("notices: {postmaster:?}: {error}"))?,
            budget: old.map(|old| old.budget.clone()).unwrap_or_default(),
        })
    }

    /// The notices that an incident asks for, and how many more the budget does not allow.
    pub fn due(&self, incident: &Incident<'_>, now: Instant) -> (Vec<Notice>, u64) {
        let (mut due, mut suppressed) = (Vec::new(), 0);
        for (audience, path) in self.addressees(incident) {
            let NoticeSettings { per_address_per_hour, per_hour, .. } = self.settings;
            if self.budget.spend(path.as_str(), per_address_per_hour, per_hour, now) {
                let text = self.text(incident, audience, path);
                due.push(Notice { rcpt: RcptTo { path: path.clone(), ..RcptTo::default() }, text });
            } else {
                suppressed += 1;
            }
        }
        (due, suppressed)
    }

    /// Addressees, whatever the budget.
    fn addressees<'a>(&'a self, incident: &'a Incident<'_>) -> Vec<(Audience, &'a Path)> {
        let mut all = Vec::new();
        // A notice about a notice could go on for ever.
        if incident.nature.notice && incident.sender.is_null() {
            return all;
        }
        if self.settings.recipient.contains(&incident.action) {
            all.extend(incident.recipients.iter().map(|rcpt| (Audience::Recipient, &rcpt.path)));
        }
        if self.settings.sender.contains(&incident.action) && self.knows_sender(incident) {
            all.push((Audience::Sender, incident.sender));
        }
        if self.settings.postmaster.contains(&incident.action) {
            all.push((Audience::Postmaster, &self.postmaster));
        }
        all
    }

    /// Whether the sender is surely the one that the envelope names, and somebody who reads.
    fn knows_sender(&self, incident: &Incident<'_>) -> bool {
        let domain = incident.sender.domain().unwrap_or_default();
        incident.nature.personal
            && !incident.sender.is_null()
            && !nature::is_machine(incident.sender.as_str())
            && self.settings.sender_networks.iter().any(|network| network.holds(incident.client))
            && self.settings.sender_domains.iter().any(|known| known.eq_ignore_ascii_case(domain))
    }

    fn language(&self, path: &Path) -> &str {
        let domain = path.domain().unwrap_or_default().to_lowercase();
        self.settings.languages.get(&domain).unwrap_or(&self.settings.language)
    }

    fn text(&self, incident: &Incident<'_>, audience: Audience, to: &Path) -> String {
        let Incident { hostname, id, .. } = incident;
        let template = self.templates.get(audience, self.language(to));
        let (subject, body) = template.render(incident.action, &|name| value(incident, name));
        let body = body.replace('\n', "\r\n");
        let (charset, coding, body) = if body.is_ascii() {
            ("us-ascii", "7bit", body)
        } else {
            ("utf-8", "base64", lines_of(&proto::base64::encode(body.as_bytes())))
        };
        format!(
            "From: Mail gateway <postmaster@{hostname}>\r\n\
             To: {to}\r\n\
             Subject: {}\r\n\
             Date: {}\r\n\
             Message-ID: <notice.{}.{id}@{hostname}>\r\n\
             Auto-Submitted: auto-replied\r\n\
             X-Sluice-Notice: {hostname}\r\n\
             MIME-Version: 1.0\r\n\
             Content-Type: text/plain; charset={charset}\r\n\
             Content-Transfer-Encoding: {coding}\r\n\
             \r\n\
             {body}",
            header_text(&subject),
            date(),
            audience.name(),
        )
    }
}

/// Value of a placeholder.
fn value(incident: &Incident<'_>, name: &str) -> String {
    match name {
        "id" => incident.id.into(),
        "hostname" => incident.hostname.into(),
        "client" => incident.client.to_string(),
        "sender" => incident.sender.as_str().into(),
        "recipients" => {
            let mut named: Vec<&str> =
                incident.recipients.iter().take(RECIPIENTS_MAX).map(|rcpt| rcpt.path.as_str()).collect();
            if incident.recipients.len() > RECIPIENTS_MAX {
                named.push("...");
            }
            named.join(", ")
        }
        "found" => {
            let found = incident.found.iter().take(FOUND_MAX);
            found.fold(String::new(), |mut text, found| {
                let _ = write!(text, "{}  {found}", if text.is_empty() { "" } else { "\n" });
                text
            })
        }
        _ => String::new(),
    }
}

/// A subject in one line, encoded where it is not ASCII (RFC 2047).
fn header_text(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.is_ascii() {
        return text;
    }
    // An encoded word has 75 characters at most and holds whole characters.
    let mut words: Vec<String> = vec![String::new()];
    for c in text.chars() {
        let last = words.last_mut().expect("there is one from the start");
        if last.len() + c.len_utf8() > 42 {
            words.push(c.into());
        } else {
            last.push(c);
        }
    }
    let words = words.iter().map(|word| format!("=?utf-8?B?{}?=", proto::base64::encode(word.as_bytes())));
    words.collect::<Vec<_>>().join("\r\n ")
}

fn lines_of(text: &str) -> String {
    let lines = text.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line));
    lines.fold(String::new(), |text, line| text + &line + "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notices(settings: &str) -> Notices {
        Notices::load(&toml::from_str(settings).unwrap(), "mx.test", None).unwrap()
    }

    fn told(notices: &Notices, sender: &str, change: impl FnOnce(&mut Incident<'_>)) -> Vec<String> {
        let sender: Path = sender.parse().unwrap();
        let recipients = [RcptTo { path: "b@mx.test".parse().unwrap(), ..RcptTo::default() }];
        let mut incident = Incident {
            hostname: "mx.test",
            id: "abc",
            client: [10, 0, 0, 1].into(),
            sender: &sender,
            recipients: &recipients,
            action: Action::Blank,
            found: &[],
            nature: Nature { personal: true, notice: false },
        };
        change(&mut incident);
        let (due, _) = notices.due(&incident, Instant::now());
        due.iter().map(|notice| notice.rcpt.path.as_str().to_string()).collect()
    }

    const ANNA: &str = "anna@own.test";
    const SENDERS: &str = "recipient=[]\nsender=['blank']\nsender_networks=['10.0.0.0/8']\nsender_domains=['own.test']";

    #[test]
    fn only_a_sender_who_is_surely_that_is_told() {
        let notices = notices(SENDERS);
        assert_eq!(told(&notices, ANNA, |_| ()), [ANNA]);
        for (sender, what) in [("", "nobody"), ("a@else.test", "forged"), ("noreply@own.test", "a machine")] {
            assert!(told(&notices, sender, |_| ()).is_empty(), "{what}");
        }
        assert!(told(&notices, ANNA, |incident| incident.client = [192, 0, 2, 1].into()).is_empty(), "from elsewhere");
        assert!(told(&notices, ANNA, |incident| incident.nature.personal = false).is_empty(), "a list");
        assert!(told(&notices, ANNA, |incident| incident.action = Action::Quarantine).is_empty(), "not asked for");
    }

    #[test]
    fn nobody_is_told_about_a_notice() {
        let notices = notices("postmaster=['blank']\npostmaster_address='ops@mx.test'");
        assert_eq!(told(&notices, ANNA, |_| ()), ["b@mx.test", "ops@mx.test"]);
        let notice = Nature { personal: false, notice: true };
        assert!(told(&notices, "", |incident| incident.nature = notice).is_empty());
        assert_eq!(told(&notices, ANNA, |incident| incident.nature = notice).len(), 2, "a notice has no sender");
    }

    #[test]
    fn a_subject_beyond_ascii_is_encoded_in_words_of_whole_characters() {
        assert_eq!(header_text("plain\r\nX: y"), "plain  X: y");
        assert_eq!(header_text("für"), "=?utf-8?B?ZsO8cg==?=");
        let long = header_text(&"ü".repeat(60));
        assert!(long.split("\r\n ").all(|word| word.len() <= 75), "{long}");
    }

    #[test]
    fn what_would_tell_forged_senders_is_refused() {
        for settings in ["sender=['blank']", "sender=['reject']", "recipient=['tag']", "language='xx'"] {
            let read: Result<NoticeSettings, String> =
                toml::from_str(settings).map_err(|error: toml::de::Error| error.to_string());
            let checked = read.and_then(|settings| settings.check().map(|()| settings));
            let loaded = checked.and_then(|settings| Notices::load(&settings, "mx.test", None));
            assert!(loaded.is_err(), "{settings}");
        }
    }
}
