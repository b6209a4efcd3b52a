//! What sort of mail it is that somebody would be told about: from a list, from a machine, or a notice itself.
//!
//! Only the header is looked at, its first 64 KiB, and only where it is still held. RFC 3834 (automatic answers), RFC
//! 2369 and 2919 (lists), and the `Precedence` that came before them.

/// The bytes of a header that are looked at.
const HEADER_BYTES_MAX: usize = 64 << 10;

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Nature {
    /// A person may have written it: it is from no list and no machine, as far as it says.
    pub personal: bool,
    /// A gateway like this one sent it to tell somebody something.
    pub notice: bool,
}

impl Nature {
    /// That of a mail, from its first bytes on.
    pub fn of<'a>(mail: impl Iterator<Item = &'a [u8]>) -> Nature {
        let mut header = Vec::new();
        for piece in mail {
            let room = HEADER_BYTES_MAX - header.len();
            header.extend_from_slice(&piece[..piece.len().min(room)]);
            if header.len() == HEADER_BYTES_MAX {
                break;
            }
        }
        let mut nature = Nature { personal: true, notice: false };
        for line in header.split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                break;
            }
            nature.learn(&String::from_utf8_lossy(line).to_lowercase());
        }
        nature
    }

    /// Learns from one line, in lower case. A folded value is looked at as far as its first line.
    fn learn(&mut self, line: &str) {
        let Some((name, value)) = line.split_once(':') else { return };
        let value = value.trim();
        match name.trim_end() {
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

    fn nature(header: &str) -> Nature {
        // In pieces of three bytes, so that fields lie across them.
        Nature::of(format!("From: a\r\n{header}\r\n\r\nList-Id: body\r\n").as_bytes().chunks(3))
    }

    #[test]
    fn lists_machines_and_notices_say_what_they_are() {
        assert!(nature("Subject: x").personal && nature("Auto-Submitted: no").personal);
        for header in
            ["List-Id: <x>", "PRECEDENCE:bulk", "Auto-Submitted: auto-replied", "auto-submitted : auto-generated; x"]
        {
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
