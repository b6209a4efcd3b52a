//! Rules by which two sets differ, by their numbers: those that are new, gone, or changed.

use std::collections::BTreeMap;
use std::fmt;

use rules::ids::{Listed, listed};

use super::Files;

/// Differences of two sets.
#[derive(Debug, Default)]
pub struct Differences {
    rows: BTreeMap<(u32, u32), (Change, String)>,
}

/// A difference of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    New,
    Gone,
    Enabled,
    Disabled,
    Changed,
}

impl Change {
    const ALL: [Change; 5] = [Change::New, Change::Gone, Change::Changed, Change::Enabled, Change::Disabled];

    const fn name(self) -> &'static str {
        match self {
            Change::New => "new",
            Change::Gone => "gone",
            Change::Changed => "changed",
            Change::Enabled => "enabled",
            Change::Disabled => "disabled",
        }
    }
}

/// Rules by their numbers, each with its file; of several with one number the newest, as it is loaded.
type Rules<'f> = BTreeMap<(u32, u32), (&'f str, Listed)>;

fn rules(files: &Files) -> Rules<'_> {
    let mut rules = Rules::new();
    for (file, bytes) in files.iter().filter(|(file, _)| file.ends_with(".rules")) {
        for rule in listed(bytes) {
            let place = rules.entry(rule.id);
            let rank = |rule: &Listed| (rule.is_enabled, rule.rev);
            let entry = place.or_insert_with(|| (file.as_str(), rule.clone()));
            if rank(&rule) > rank(&entry.1) {
                *entry = (file.as_str(), rule);
            }
        }
    }
    rules
}

impl Differences {
    /// Compares two sets.
    pub fn between(old: &Files, new: &Files) -> Differences {
        let (mut old, new) = (rules(old), rules(new));
        let mut rows = BTreeMap::new();
        for (id, (file, rule)) in new {
            let told = |rule: &Listed, rev: String| format!("{rev}  {file}  {}", rule.message());
            let row = match old.remove(&id).map(|(_, before)| before) {
                None => {
                    let state = if rule.is_enabled { "" } else { ", disabled" };
                    (Change::New, told(&rule, format!("rev {}{state}", rule.rev)))
                }
                Some(before) if before.is_enabled != rule.is_enabled => {
                    let change = if rule.is_enabled { Change::Enabled } else { Change::Disabled };
                    (change, told(&rule, format!("rev {} -> {}", before.rev, rule.rev)))
                }
                Some(before) if before.rev != rule.rev || before.text != rule.text => {
                    (Change::Changed, told(&rule, format!("rev {} -> {}", before.rev, rule.rev)))
                }
                Some(_) => continue,
            };
            rows.insert(id, row);
        }
        for (id, (file, rule)) in old {
            rows.insert(id, (Change::Gone, format!("rev {}  {file}  {}", rule.rev, rule.message())));
        }
        Differences { rows }
    }

    /// Prints each rule.
    pub fn print(&self) {
        for ((gid, sid), (change, text)) in &self.rows {
            println!("{:<8}  {gid}:{sid}  {text}", change.name());
        }
    }
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |wanted: Change| self.rows.values().filter(|(change, _)| *change == wanted).count();
        let counts: Vec<String> = Change::ALL.iter().map(|kind| format!("{} {}", count(*kind), kind.name())).collect();
        f.write_str(&counts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_differ_by_their_numbers_wherever_they_stand() {
        let rule = |sid: u32, rev: u32, more: &str| {
            format!("alert http any any -> any any (msg:\"m{sid}\"; {more}sid:{sid}; rev:{rev};)\n")
        };
        let set = |files: &[(&str, String)]| -> Files {
            files.iter().map(|(name, text)| ((*name).to_owned(), text.clone().into_bytes())).collect()
        };
        let old = [rule(1, 1, ""), rule(2, 1, ""), rule(3, 1, ""), "#".to_owned() + &rule(4, 1, ""), rule(5, 1, "")];
        let new = [rule(1, 1, ""), rule(2, 2, ""), rule(4, 1, ""), "# ".to_owned() + &rule(5, 1, ""), rule(6, 1, "")];
        let differences = Differences::between(
            &set(&[("a.rules", old.concat()), ("b.rules", rule(7, 1, ""))]),
            &set(&[("a.rules", new.concat()), ("c.rules", rule(7, 1, "noalert; "))]),
        );
        let kinds: Vec<(u32, Change)> =
            differences.rows.iter().map(|((_, sid), (change, _))| (*sid, *change)).collect();
        let wanted = [
            (2, Change::Changed),
            (3, Change::Gone),
            (4, Change::Enabled),
            (5, Change::Disabled),
            (6, Change::New),
            (7, Change::Changed),
        ];
        assert_eq!(kinds, wanted);
        assert_eq!(differences.to_string(), "1 new, 1 gone, 2 changed, 1 enabled, 1 disabled");
        assert_eq!(differences.rows[&(1, 2)].1, "rev 1 -> 2  a.rules  m2");
    }
}
