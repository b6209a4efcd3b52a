//! Commands that act on the mail, and the combinations that are allowed.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::test::place_of;
use super::{Action, Flow, Machine};
use crate::address;
use crate::mail::Field;
use crate::program::{Change, Command, Index, Matching, Text};

/// Flags of the system (RFC 9051, section 2.3.2) that a script may set.
const SYSTEM_FLAGS: [&str; 5] = ["\\answered", "\\flagged", "\\deleted", "\\seen", "\\draft"];
/// Flags of one mail.
const FLAGS_MAX: usize = 64;
/// Fields that no script may delete (RFC 5293, section 5).
const PROTECTED: [&str; 2] = ["received", "auto-submitted"];

impl<'a> Machine<'a> {
    pub(super) fn command(&mut self, command: &'a Command) -> Result<Flow, String> {
        match command {
            Command::If(_) => {}
            Command::Unknown(why) => return Err(why.clone()),
            Command::Error(text) => return Err(self.text(text)?),
            Command::Stop => return Ok(Flow::Stop),
            Command::Return => return Ok(Flow::Return),
            Command::Include { script, once } => return self.include(*script, *once),
            Command::Set { variable, value, modifiers } => self.set(variable, value, modifiers)?,
            Command::Flags { variable, change, flags } => self.change_flags(variable.as_deref(), *change, flags)?,
            Command::AddHeader { name, value, last } => self.add_header(name, value, *last)?,
            Command::DeleteHeader { name, index, matching } => self.delete_header(name, *index, matching.as_ref())?,
            Command::Keep { flags } => {
                let (flags, header) = (self.flags_of(flags.as_deref())?, self.header());
                self.act(Action::Keep { flags, is_implicit: false, header })?;
                self.is_kept = false;
            }
            Command::Discard => {
                self.is_kept = false;
                if !self.actions.contains(&Action::Discard) {
                    self.act(Action::Discard)?;
                }
            }
            Command::FileInto { mailbox, flags, copy, create, special_use } => {
                let mailbox = self.text(mailbox)?;
                if mailbox.is_empty() || mailbox.chars().any(char::is_control) {
                    return Err(format!("{mailbox:?} is not the name of a mailbox"));
                }
                let special_use = special_use.as_ref().map(|special_use| self.text(special_use)).transpose()?;
                let (flags, header) = (self.flags_of(flags.as_deref())?, self.header());
                self.act(Action::FileInto { mailbox, flags, create: *create, special_use, header })?;
                self.is_kept &= *copy;
            }
            Command::Redirect { address, copy } => {
                let text = self.text(address)?;
                let address = address::plain(&text).ok_or_else(|| format!("{text:?} is not an address"))?.in_ascii();
                self.act(Action::Redirect { address })?;
                self.is_kept &= *copy;
            }
            Command::Reject { reason, extended } => {
                let reason = self.text(reason)?;
                self.act(Action::Reject { reason, is_extended: *extended })?;
                self.is_kept = false;
            }
            Command::Vacation(vacation) => {
                let vacation = self.vacation(vacation)?;
                self.act(Action::Vacation(vacation))?;
            }
        }
        Ok(Flow::Next)
    }

    /// Adds an action, if it is compatible with the earlier ones (RFC 5228, section 2.10.4; RFC 5429, section 2.4).
    fn act(&mut self, action: Action) -> Result<(), String> {
        let is_reject = |action: &Action| matches!(action, Action::Reject { .. });
        let is_vacation = |action: &Action| matches!(action, Action::Vacation(_));
        let delivers = |action: &Action| !matches!(action, Action::Discard | Action::Reject { .. });
        if is_vacation(&action) && self.actions.iter().any(is_vacation) {
            return Err("vacation stands twice".into());
        }
        if is_reject(&action) && self.actions.iter().any(|other| delivers(other) || is_reject(other)) {
            return Err("reject does not go with what was done before".into());
        }
        if delivers(&action) && self.actions.iter().any(is_reject) {
            return Err("a mail that is rejected is neither stored nor answered".into());
        }
        if let Action::Redirect { .. } = &action {
            if self.actions.contains(&action) {
                return Ok(());
            }
            let redirects = self.actions.iter().filter(|other| matches!(other, Action::Redirect { .. })).count();
            if redirects >= self.setting.limits.redirects_max {
                return Err(format!("more than {} redirects", self.setting.limits.redirects_max));
            }
        }
        if self.actions.len() >= self.setting.limits.actions_max {
            return Err(format!("more than {} actions", self.setting.limits.actions_max));
        }
        self.store(action);
        Ok(())
    }

    /// Adds an action; a mailbox has the mail once, with the flags that were asked for last.
    pub(super) fn store(&mut self, action: Action) {
        let mailbox = stored_in(&action).map(str::to_string);
        let before =
            self.actions.iter_mut().find(|other| mailbox.is_some() && is_same(stored_in(other), mailbox.as_deref()));
        match (before, action) {
            (Some(_), Action::Keep { is_implicit: true, .. }) => {}
            (
                Some(Action::Keep { flags, .. } | Action::FileInto { flags, .. }),
                Action::Keep { flags: later, .. } | Action::FileInto { flags: later, .. },
            ) => *flags = later,
            (_, action) => self.actions.push(action),
        }
    }

    fn flags_of(&mut self, flags: Option<&[Text]>) -> Result<Vec<String>, String> {
        let Some(texts) = flags else { return Ok(self.flags.clone()) };
        let mut flags = Vec::new();
        add(&mut flags, &self.texts(texts)?);
        Ok(flags)
    }

    fn change_flags(&mut self, variable: Option<&str>, change: Change, texts: &[Text]) -> Result<(), String> {
        let texts = self.texts(texts)?;
        let mut flags = Vec::new();
        match variable {
            Some(name) => add(&mut flags, &[self.get(name).to_string()]),
            None => flags = core::mem::take(&mut self.flags),
        }
        match change {
            Change::Set => {
                flags.clear();
                add(&mut flags, &texts);
            }
            Change::Add => add(&mut flags, &texts),
            Change::Remove => {
                let mut removed = Vec::new();
                add(&mut removed, &texts);
                flags.retain(|flag: &String| !removed.iter().any(|other| other.eq_ignore_ascii_case(flag)));
            }
        }
        match variable {
            Some(name) => self.put(name, flags.join(" ")),
            None => self.flags = flags,
        }
        Ok(())
    }

    fn add_header(&mut self, name: &Text, value: &Text, last: bool) -> Result<(), String> {
        let (name, value) = (self.text(name)?, self.text(value)?);
        if !address::is_field_name(&name) {
            return Err(format!("{name:?} is not the name of a header field"));
        }
        self.added = self.added.saturating_add(1);
        if self.added > self.setting.limits.added_fields_max {
            return Err(format!("more than {} fields are added", self.setting.limits.added_fields_max));
        }
        // A variable may hold text of the mail: it must not end the field.
        let value: String =
            value.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut field = Field::new(&name, value.as_bytes());
        field.value = value;
        match last {
            true => self.fields.push(field),
            false => self.fields.insert(0, field),
        }
        self.header = Some(None);
        Ok(())
    }

    fn delete_header(
        &mut self,
        name: &Text,
        index: Index,
        matching: Option<&(Matching, Vec<Text>)>,
    ) -> Result<(), String> {
        let name = self.text(name)?;
        if PROTECTED.iter().any(|protected| protected.eq_ignore_ascii_case(&name)) {
            return Ok(());
        }
        let keys = matching.map(|(_, keys)| self.texts(keys)).transpose()?.unwrap_or_default();
        let is_named = |field: &Field| field.name.eq_ignore_ascii_case(&name);
        let count = self.fields.iter().filter(|field| is_named(field)).count();
        let wanted = place_of(index, count);
        let mut kept = Vec::new();
        let mut of_name = 0usize;
        for field in core::mem::take(&mut self.fields) {
            let at = of_name;
            of_name = of_name.saturating_add(usize::from(is_named(&field)));
            let is_meant = is_named(&field) && (index.number.is_none() || wanted == Some(at));
            let is_deleted = match matching {
                Some((matching, _)) if is_meant => {
                    self.matches(matching, core::slice::from_ref(&field.value), &keys)?
                }
                _ => is_meant,
            };
            match is_deleted {
                true => self.header = Some(None),
                false => kept.push(field),
            }
        }
        self.fields = kept;
        Ok(())
    }
}

/// Where an action stores the mail.
fn stored_in(action: &Action) -> Option<&str> {
    match action {
        Action::Keep { .. } => Some("INBOX"),
        Action::FileInto { mailbox, .. } => Some(mailbox),
        _ => None,
    }
}

fn is_same(left: Option<&str>, right: Option<&str>) -> bool {
    let is_inbox = |name: Option<&str>| name.is_some_and(|name| name.eq_ignore_ascii_case("INBOX"));
    left == right || (is_inbox(left) && is_inbox(right))
}

/// Adds new flags. A string may hold several; invalid ones are left out.
fn add(flags: &mut Vec<String>, texts: &[String]) {
    for flag in texts.iter().flat_map(|text| text.split_whitespace()) {
        let is_known = flags.iter().any(|known| known.eq_ignore_ascii_case(flag));
        if !is_known && is_flag(flag) && flags.len() < FLAGS_MAX {
            flags.push(flag.to_string());
        }
    }
}

fn is_flag(flag: &str) -> bool {
    let is_atom = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && !b"(){%*\"\\]".contains(&byte));
    match flag.starts_with('\\') {
        true => SYSTEM_FLAGS.iter().any(|known| known.eq_ignore_ascii_case(flag)),
        false => !flag.is_empty() && flag.len() <= 255 && is_atom(flag),
    }
}

/// A header as it is written, with its blank line.
pub(super) fn written(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        out.extend_from_slice(field.name.as_bytes());
        out.extend_from_slice(b": ");
        fold(&mut out, &field.raw, 0);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// A value in lines of at most about 78 characters, where it has blanks.
/// The first has `length` bytes already.
pub(super) fn fold(out: &mut Vec<u8>, value: &str, mut length: usize) {
    for (at, word) in value.split(' ').enumerate() {
        if at > 0 {
            if length.saturating_add(word.len()) > 76 && !word.is_empty() {
                out.extend_from_slice(b"\r\n");
                length = 0;
            }
            out.push(b' ');
        }
        out.extend_from_slice(word.as_bytes());
        length = length.saturating_add(word.len()).saturating_add(1);
    }
}
