//! Nature of a mail that a notice would be about: from a list, automatic, or a notice itself.
//!
//! By the header fields that say so: RFC 3834 (automatic answers), RFC 2369 and 2919 (lists), and the `Precedence` that came
//! before them.

use std::borrow::Cow;

use flow::Field;

/// Nature of a mail, by its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Nature {
    /// A person may have written it: it is from no list and no machine, as far as it says.
    pub personal: bool,
    /// A gateway like this one sent it to tell somebody something.
    pub notice: bool,
}

impl Nature {
    /// The fields that say something of it.
    pub const FIELDS: &[Cow<'static, str>] = &[
        Cow::Borrowed("auto-submitted"),
        Cow::Borrowed("precedence"),
        Cow::Borrowed("list-id"),
        Cow::Borrowed("list-post"),
        Cow::Borrowed("list-unsubscribe"),
        Cow::Borrowed("list-help"),
        Cow::Borrowed("x-auto-response-suppress"),
        Cow::Borrowed("feedback-id"),
        Cow::Borrowed("x-sluice-notice"),
    ];

    /// That of a mail with these fields, of which those of [`Nature::FIELDS`] count.
    pub fn of(fields: &[Field]) -> Nature {
        let mut nature = Nature { personal: true, notice: false };
        for field in fields {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_lowercase();
            // A folded value is looked at as far as its first line.
            let value = field.value().split(|&byte| byte == b'\n').next().unwrap_or_default();
            nature.learn(&text(field.name()), text(value).trim());
        }
        nature
    }

    /// Learns from one field, in lower case.
    fn learn(&mut self, name: &str, value: &str) {
        match name {
            "auto-submitted" => self.personal &= value.split([';', ' ', '(']).next() == Some("no"),
            "precedence" => self.personal &= !["bulk", "list", "junk", "auto_reply"].contains(&value),
            "list-id" | "list-post" | "list-unsubscribe" | "list-help" | "x-auto-response-suppress" | "feedback-id" => {
                self.personal = false;
            }
            "x-sluice-notice" => *self = Nature { personal: false, notice: true },
            _ => {}
        }
    }
}

/// Whether an address is that of a machine, by its local part.
pub fn is_machine(address: &str) -> bool {
    let local = address.rsplit_once('@').map_or(address, |(local, _)| local).to_lowercase();
    let whole = ["mailer-daemon", "postmaster", "root", "noreply", "no-reply", "donotreply", "do-not-reply", "bounces"];
    whole.contains(&local.as_str())
        || local.starts_with("owner-")
        || local.starts_with("bounce")
        || ["-request", "-owner", "-bounces", "-relay"].iter().any(|end| local.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nature(field: &str) -> Nature {
        Nature::of(&[Field(b"From: a\r\n"[..].into()), Field(format!("{field}\r\n").into_bytes().into())])
    }

    #[test]
    fn lists_machines_and_notices_say_what_they_are() {
        assert!(nature("Subject: x").personal && nature("Auto-Submitted: no").personal);
        for header in [
            "List-Id: <x>\r\n more",
            "PRECEDENCE:bulk",
            "Auto-Submitted: auto-replied",
            "auto-submitted : auto-generated; x",
        ] {
            assert!(!nature(header).personal, "{header}");
        }
        assert_eq!(nature("X-Sluice-Notice: mx"), Nature { personal: false, notice: true });
    }

    #[test]
    fn machines_have_names_of_their_own() {
        for address in ["MAILER-DAEMON@x", "owner-list@x", "list-request@x", "bounces+a=b@x"] {
            assert!(is_machine(address), "{address}");
        }
        assert!(!is_machine("anna@x"));
    }
}
