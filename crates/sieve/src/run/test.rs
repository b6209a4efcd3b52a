//! Tests: where their values come from.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Machine, Seen, matching};
use crate::address::{self, Address};
use crate::date::{self, Date};
use crate::expression::Regex;
use crate::mail::{Field, of_html};
use crate::program::{AddressPart, Duplicate, Index, Match, Matching, Source, Test, Text, Transform, Zone};

impl Machine<'_> {
    pub(super) fn test(&mut self, test: &Test) -> Result<bool, String> {
        self.burn(1)?;
        Ok(match test {
            Test::Constant(value) | Test::Has(value) => *value,
            Test::Unknown(why) => return Err(why.clone()),
            Test::Not(test) => !self.test(test)?,
            Test::All(tests) => {
                for test in tests {
                    if !self.test(test)? {
                        return Ok(false);
                    }
                }
                true
            }
            Test::Any(tests) => {
                for test in tests {
                    if self.test(test)? {
                        return Ok(true);
                    }
                }
                false
            }
            Test::Size { over: true, bytes } => self.mail.size() > *bytes,
            Test::Size { bytes, .. } => self.mail.size() < *bytes,
            Test::Exists(names) => {
                let names = self.texts(names)?;
                names.iter().all(|name| self.fields.iter().any(|field| field.name.eq_ignore_ascii_case(name)))
            }
            Test::MailboxExists(names) => self.texts(names)?.iter().all(|name| self.setting.host.has_mailbox(name)),
            Test::SpecialUseExists { mailbox, uses } => {
                let mailbox = mailbox.as_ref().map(|mailbox| self.text(mailbox)).transpose()?;
                let host = self.setting.host;
                self.texts(uses)?.iter().all(|one| host.has_special_use(mailbox.as_deref(), one))
            }
            Test::Duplicate(duplicate) => self.duplicate(duplicate)?,
            Test::Values { source, matching, keys } => {
                let mut values = self.values(source)?;
                let mut keys = self.texts(keys)?;
                if let (Source::Strings(_), Match::Count(_)) = (source, &matching.kind) {
                    // Empty strings do not count (RFC 5229, section 5).
                    values.retain(|value| !value.is_empty());
                }
                if let (Source::Flags(_), false) = (source, matches!(matching.kind, Match::Count(_) | Match::Regex(_)))
                {
                    // Keys are lists of flags, like the values.
                    keys = keys.iter().flat_map(|key| key.split_whitespace()).map(str::to_string).collect();
                }
                self.matches(matching, &values, &keys)?
            }
        })
    }

    /// Returns whether the mail is a duplicate, and notes its id for the end of the run.
    fn duplicate(&mut self, duplicate: &Duplicate) -> Result<bool, String> {
        let handle = duplicate.handle.as_ref().map(|handle| self.text(handle)).transpose()?.unwrap_or_default();
        let id = match &duplicate.unique_id {
            Some(id) => self.text(id)?,
            None => {
                let name = duplicate.header.as_ref().map(|name| self.text(name)).transpose()?;
                let name = name.as_deref().unwrap_or("message-id");
                let field = self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name));
                field.map(|field| field.raw.trim().to_string()).unwrap_or_default()
            }
        };
        // A mail without an id is never a duplicate.
        if id.is_empty() {
            return Ok(false);
        }
        let seen = Seen { handle, id, seconds: duplicate.seconds };
        let is_known = self.setting.host.has_seen(&seen.handle, &seen.id);
        if !is_known || duplicate.last {
            let others = self.seen.iter().filter(|other| (&other.handle, &other.id) != (&seen.handle, &seen.id));
            if others.count() >= self.setting.limits.seen_max {
                return Err(format!("more than {} mails are remembered", self.setting.limits.seen_max));
            }
            self.seen.retain(|other| (&other.handle, &other.id) != (&seen.handle, &seen.id));
            self.seen.push(seen);
        }
        Ok(is_known)
    }

    /// Matches values against keys; keeps the matches of wildcards.
    pub(super) fn matches(&mut self, matching: &Matching, values: &[String], keys: &[String]) -> Result<bool, String> {
        let comparator = matching.comparator;
        if let Match::Count(relation) = matching.kind {
            let count = values.len().to_string();
            return Ok(keys.iter().any(|key| relation.holds(comparator.order(&count, key))));
        }
        for value in values {
            for (at, key) in keys.iter().enumerate() {
                self.burn_bytes(value.len().saturating_add(key.len()))?;
                let fits = match &matching.kind {
                    Match::Is => comparator.order(value, key).is_eq(),
                    Match::Contains => comparator.contains(value, key),
                    Match::Value(relation) => relation.holds(comparator.order(value, key)),
                    Match::Matches => {
                        let found = matching::wildcards(value, key, comparator, &mut self.fuel);
                        self.burn(1)?;
                        self.capture(found)
                    }
                    Match::Regex(known) => {
                        let found = match known.get(at) {
                            Some(Some(known)) => known.find(value),
                            _ => {
                                self.burn_bytes(key.len().saturating_mul(1_000))?;
                                Regex::new(key, comparator.folds())?.find(value)
                            }
                        };
                        // Compiled ones look at each byte about as often as they are long.
                        self.burn_bytes(value.len().saturating_mul(key.len()))?;
                        self.capture(found)
                    }
                    Match::Count(_) => false,
                };
                if fits {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn capture(&mut self, found: Option<Vec<String>>) -> bool {
        let Some(mut found) = found else { return false };
        found.truncate(crate::compile::MATCH_VARIABLES_MAX.saturating_add(1));
        for text in &mut found {
            super::cut(text, self.setting.limits.variable_bytes_max);
        }
        self.matches = found;
        true
    }

    fn values(&mut self, source: &Source) -> Result<Vec<String>, String> {
        let values = match source {
            Source::Header { names, index } => {
                self.selected(names, *index)?.into_iter().map(|field| field.value).collect()
            }
            Source::Address { names, part, index } => {
                let fields = self.selected(names, *index)?;
                fields.iter().flat_map(|field| addresses_of(field, *part)).collect()
            }
            Source::Envelope { parts, part } => {
                let names = self.texts(parts)?;
                names.iter().filter_map(|name| self.envelope(name, *part)).collect()
            }
            Source::Body(transform) => self.body(transform)?,
            Source::Strings(texts) => self.texts(texts)?,
            Source::Flags(variables) => match variables.as_slice() {
                [] => self.flags.clone(),
                names => names.iter().flat_map(|name| self.get(name).split_whitespace()).map(str::to_string).collect(),
            },
            Source::Date { name, zone, part, index } => {
                let fields = self.selected(core::slice::from_ref(name), *index)?;
                let zone = self.zone(zone)?;
                let part = self.text(part)?.to_ascii_lowercase();
                let dates = fields.iter().take(1).filter_map(|field| {
                    let text = field.raw.rsplit(';').next().unwrap_or_default();
                    let date = Date::parse(text)?;
                    date.in_zone(zone.unwrap_or(date.zone)).part(&part)
                });
                dates.collect()
            }
            Source::CurrentDate { zone, part } => {
                let zone = self.zone(zone)?.unwrap_or(self.setting.zone);
                let part = self.text(part)?.to_ascii_lowercase();
                Date::new(self.setting.now, zone).part(&part).into_iter().collect()
            }
            Source::Spam { percent } => {
                let known = self.setting.spam_percent.map(|known| known.min(100));
                let value = match (percent, known) {
                    (_, None) => 0,
                    (true, Some(known)) => known,
                    // From 1 to 10.
                    (false, Some(known)) => known.saturating_mul(9).checked_div(100).unwrap_or(0).saturating_add(1),
                };
                Vec::from([value.to_string()])
            }
            Source::Virus => Vec::from([self.setting.virus.min(5).to_string()]),
            Source::Environment(name) => {
                let name = self.text(name)?;
                self.environment(&name).into_iter().collect()
            }
        };
        self.burn_bytes(values.iter().map(String::len).fold(0, usize::saturating_add))?;
        Ok(values)
    }

    fn environment(&self, name: &str) -> Option<String> {
        let hostname = self.setting.hostname;
        Some(match name.to_ascii_lowercase().as_str() {
            "domain" => hostname.split_once('.').map_or("", |(_, domain)| domain).to_string(),
            "host" => hostname.to_string(),
            "location" => "MDA".into(),
            "phase" => "during".into(),
            "name" => "Sluice".into(),
            _ => return None,
        })
    }

    /// Fields by their names, in the order of the names; of all of them the one that is asked for.
    pub(super) fn selected(&mut self, names: &[Text], index: Index) -> Result<Vec<Field>, String> {
        let names = self.texts(names)?;
        self.burn(u64::try_from(self.fields.len().saturating_mul(names.len()) / 16).unwrap_or(u64::MAX))?;
        let mut found: Vec<&Field> = Vec::new();
        for name in names {
            found.extend(self.fields.iter().filter(|field| field.name.eq_ignore_ascii_case(&name)));
        }
        if index.number.is_some() {
            found = place_of(index, found.len()).and_then(|at| found.get(at).copied()).into_iter().collect();
        }
        let bytes = found.iter().map(|field| field.raw.len()).fold(0, usize::saturating_add);
        let found = found.into_iter().cloned().collect();
        self.burn_bytes(bytes)?;
        Ok(found)
    }

    fn envelope(&self, name: &str, part: AddressPart) -> Option<String> {
        let path = match name.to_ascii_lowercase().as_str() {
            "from" => self.setting.from,
            "to" => self.setting.to,
            _ => return None,
        };
        match Address::of_envelope(path) {
            Some(address) => part_of(&address, part),
            // The null path is the empty string, whichever part of it is asked for.
            None => Some(String::new()),
        }
    }

    fn body(&mut self, transform: &Transform) -> Result<Vec<String>, String> {
        if let Transform::Raw = transform {
            let body = self.mail.body();
            self.burn_bytes(body.len())?;
            return Ok(Some(body).into_iter().filter(|body| !body.is_empty()).collect());
        }
        let parts = match self.parts.take() {
            Some(parts) => parts,
            None => self.mail.parts(),
        };
        let values = match transform {
            Transform::Content(kinds) => {
                let kinds = self.texts(kinds)?;
                let fits = |kind: &str| kinds.iter().any(|wanted| is_kind(kind, wanted));
                parts.iter().filter(|part| fits(&part.kind)).map(|part| part.content.clone()).collect()
            }
            _ => {
                let texts = parts.iter().filter(|part| part.kind.starts_with("text/"));
                let text = |part: &crate::mail::Part| match part.kind.as_str() {
                    "text/html" => of_html(&part.content),
                    _ => part.content.clone(),
                };
                texts.map(text).collect()
            }
        };
        self.parts = Some(parts);
        Ok(values)
    }

    /// None: that of the field.
    fn zone(&mut self, zone: &Zone) -> Result<Option<i32>, String> {
        Ok(match zone {
            Zone::Local => Some(self.setting.zone),
            Zone::Original => None,
            Zone::Given(text) => Some(date::zone(&self.text(text)?).unwrap_or(self.setting.zone)),
        })
    }
}

/// Requested position among so many, from 0.
pub(super) fn place_of(index: Index, count: usize) -> Option<usize> {
    let number = usize::try_from(index.number?).ok()?;
    match index.from_last {
        true => count.checked_sub(number),
        false => number.checked_sub(1).filter(|at| *at < count),
    }
}

/// A field without an address is compared as a whole, by `:all` alone.
fn addresses_of(field: &Field, part: AddressPart) -> Vec<String> {
    let addresses = address::list(&field.raw);
    if addresses.is_empty() && part == AddressPart::All && !field.raw.is_empty() {
        return Vec::from([field.raw.clone()]);
    }
    addresses.iter().filter_map(|address| part_of(address, part)).collect()
}

fn part_of(address: &Address, part: AddressPart) -> Option<String> {
    let (user, detail) = address.user_and_detail();
    Some(match part {
        AddressPart::All => address.whole(),
        AddressPart::LocalPart => address.local.clone(),
        AddressPart::Domain => address.domain.clone(),
        AddressPart::User => user.to_string(),
        AddressPart::Detail => detail?.to_string(),
    })
}

/// Whether a media type is one that is asked for (RFC 5173, section 5.2).
fn is_kind(kind: &str, wanted: &str) -> bool {
    match wanted.split_once('/') {
        _ if wanted.is_empty() => true,
        Some((main, sub)) if main.is_empty() || sub.is_empty() || sub.contains('/') => false,
        Some(_) => kind.eq_ignore_ascii_case(wanted),
        None => kind.split('/').next().is_some_and(|main| main.eq_ignore_ascii_case(wanted)),
    }
}
