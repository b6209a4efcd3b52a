//! The envelope of a mail in the maildrop: lines in front of its content, up to an empty one.
//!
//! ```text
//!  sluice maildrop 1
//!  from ADDRESS            missing: the user; <>: the null sender
//!  name NAME
//!  notify NEVER            as NOTIFY= has it
//!  return full | header
//!  envid TEXT              in xtext
//!  to ADDRESS              for each recipient
//! ```
//!
//! Whoever wrote the file may have written anything: an envelope is read as a whole, or not at all.

use proto::smtp::{Path, Return};

/// The first line.
const FIRST: &str = "sluice maildrop 1";

/// The longest envelope, in bytes.
pub const BYTES_MAX: usize = 4 << 20;

/// An envelope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The sender that was asked for; none is the user.
    pub from: Option<String>,
    /// The name of the sender.
    pub name: String,
    /// `NOTIFY=` of all recipients.
    pub notify: String,
    /// `RET=`
    pub ret: Option<Return>,
    /// `ENVID=`, in xtext.
    pub envid: String,
    /// The recipients.
    pub recipients: Vec<String>,
}

impl Envelope {
    /// As it stands in the file. A value cannot add a line.
    pub fn write(&self) -> String {
        let mut text = format!("{FIRST}\n");
        let mut line = |key: &str, value: &str| {
            let value = value.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
            text.extend(key.chars().chain([' ']).chain(value).chain(['\n']));
        };
        if let Some(from) = &self.from {
            line("from", if from.is_empty() { "<>" } else { from });
        }
        match self.ret {
            Some(Return::Full) => line("return", "full"),
            Some(Return::Headers) => line("return", "header"),
            None => {}
        }
        for (key, value) in [("name", &self.name), ("notify", &self.notify), ("envid", &self.envid)] {
            if !value.is_empty() {
                line(key, value);
            }
        }
        self.recipients.iter().for_each(|to| line("to", to));
        text.push('\n');
        text
    }

    /// Reads the beginning of a file: the envelope, and where the content begins. None if it is not one.
    pub fn read(bytes: &[u8]) -> Option<(Envelope, usize)> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n")?;
        let mut lines = std::str::from_utf8(bytes.get(..end)?).ok()?.split('\n');
        lines.next().filter(|&first| first == FIRST)?;
        let mut envelope = Envelope::default();
        for line in lines {
            let (key, value) = line.split_once(' ')?;
            let value = value.to_owned();
            match key {
                "from" if value == "<>" => envelope.from = Some(String::new()),
                "from" => envelope.from = Some(address(value)?),
                "name" => envelope.name = value,
                "notify" => envelope.notify = value,
                "return" => envelope.ret = Some(if value == "full" { Return::Full } else { Return::Headers }),
                "envid" => envelope.envid = value,
                "to" => envelope.recipients.push(address(value).filter(|to| !to.is_empty())?),
                _ => return None,
            }
        }
        let is_safe = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let is_right = !envelope.recipients.is_empty() && is_safe(&envelope.notify) && is_safe(&envelope.envid);
        is_right.then_some((envelope, end + 2))
    }
}

fn address(text: String) -> Option<String> {
    text.parse::<Path>().is_ok().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_comes_back_as_it_was() {
        let envelope = Envelope {
            from: Some(String::new()),
            name: "Ann B\u{fc}".into(),
            notify: "NEVER".into(),
            ret: Some(Return::Headers),
            envid: "a+2Bb".into(),
            recipients: vec!["root".into(), "\"a b\"@example.org".into()],
        };
        let text = envelope.write() + "Subject: x\n\nto b@c\n";
        assert_eq!(Envelope::read(text.as_bytes()).map(|(read, at)| (read, &text[at..])), {
            Some((envelope.clone(), "Subject: x\n\nto b@c\n"))
        });
        let sly = Envelope { name: "a\nto eve@example.org".into(), ..envelope };
        assert_eq!(Envelope::read(sly.write().as_bytes()).unwrap().0.recipients.len(), 2, "a value adds no line");
    }

    #[test]
    fn what_is_no_envelope_is_not_read() {
        for text in [
            "",
            "\n\n",
            "sluice maildrop 1\n\n",
            "sluice maildrop 1\nto a@b\n",
            "sluice maildrop 2\nto a@b\n\n",
            "sluice maildrop 1\nto a b\n\n",
            "sluice maildrop 1\nto \n\n",
            "sluice maildrop 1\nto <a@b>\n\n",
            "sluice maildrop 1\nfrom a\rb\nto a@b\n\n",
            "sluice maildrop 1\nenvid a b\nto a@b\n\n",
            "sluice maildrop 1\nelse x\nto a@b\n\n",
        ] {
            assert_eq!(Envelope::read(text.as_bytes()), None, "{text:?}");
        }
    }
}
