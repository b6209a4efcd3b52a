//! `sluice ids explain`: a rule by its number, with all that decides about it: its file and line, the files that change it, its tests
//! as they were understood, and its effect at the doors.

use std::process::ExitCode;

use rules::ids::{Action, Limits, Listed, Loader, Rule, RuleSet, default_variables, listed};

use super::settings_of;
use crate::cli::IdsExplain;
use crate::config::ids::IdsSettings;
use crate::output::Failure;

pub fn run(args: &IdsExplain) -> Result<ExitCode, Failure> {
    let settings = settings_of(&args.rules, &args.names, args.config.as_deref())?;
    let changes = settings.changes()?;
    changes.problems().iter().for_each(|problem| eprintln!("sluice: {problem}"));
    let files = settings.collect(&changes)?;
    let compiled = files.compile();
    let (mut is_found, mut is_loaded) = (false, false);
    for ((name, written), (_, changed)) in settings.written()?.iter().zip(&files.rules) {
        for (written, changed) in listed(written).into_iter().zip(listed(changed)) {
            if ![written.id.1, changed.id.1].contains(&args.sid) {
                continue;
            }
            is_found = true;
            let places = changes.trace(name, &written.text);
            let mut rows = Vec::new();
            if !written.is_enabled {
                rows.push(("written", "behind #".to_owned()));
            }
            rows.extend(places.iter().map(|(change, place)| (change.name(), place.to_string())));
            if !written.is_enabled && changed.is_enabled && !places.iter().any(|(change, _)| change.name() == "enable")
            {
                rows.push(("enabled", "without alerts, since enabled rules need its flowbits".into()));
            }
            let case = Case { settings: &settings, set: compiled.set(), file: name, changed: &changed };
            match case.loaded() {
                Some(rule) => {
                    is_loaded = true;
                    case.describe(rule, &mut rows);
                }
                None => rows.push(("loaded", format!("no: {}", case.reason()))),
            }
            println!(
                "{name}:{}: [{}:{}:{}] {}",
                written.line,
                changed.id.0,
                changed.id.1,
                changed.rev,
                changed.message()
            );
            print(&rows);
        }
    }
    match is_found {
        true => Ok(ExitCode::from(u8::from(!is_loaded))),
        false => Err(format!("no file of rules has a rule {}", args.sid).into()),
    }
}

/// Prints rows, the label of several in a row once.
fn print(rows: &[(&str, String)]) {
    let mut last = "";
    for (label, text) in rows {
        let text = text.replace(char::is_control, "?");
        println!("  {:<20} {text}", if *label == last { "" } else { label });
        last = label;
    }
}

/// A rule of a file as it is after all changes, and the set that has it or not.
struct Case<'a> {
    settings: &'a IdsSettings,
    set: &'a RuleSet,
    file: &'a str,
    changed: &'a Listed,
}

impl Case<'_> {
    fn loaded(&self) -> Option<&Rule> {
        let is_it = |rule: &&Rule| rule.place.line == self.changed.line && &*rule.place.file == self.file;
        self.set.rules().iter().find(is_it)
    }

    /// The reason for which a rule is not in the set.
    fn reason(&self) -> String {
        let is_it = |rule: &&Rule| (rule.gid, rule.sid) == self.changed.id;
        let place = |file: &str, line| line == self.changed.line && file == self.file;
        if !self.changed.is_enabled {
            return "it is disabled".into();
        }
        if let Some(problem) = self.set.problems().iter().find(|one| place(&one.place.file, one.place.line)) {
            return format!("{}: {}", problem.rule.as_deref().unwrap_or("rule"), problem.reason);
        }
        if let Some(other) = self.set.rules().iter().find(is_it) {
            return format!("{} has revision {} of it", other.place, other.rev);
        }
        let mut alone = Loader::new(Limits::default());
        self.settings.variables.iter().for_each(|(name, value)| alone.variable(name, value));
        alone.file(self.file, &self.changed.text);
        match alone.finish().census().skipped.keys().next() {
            Some(missing) => format!("it requires {missing}"),
            None => "[[ids.action]] turns it off".into(),
        }
    }

    fn describe(&self, rule: &Rule, rows: &mut Vec<(&'static str, String)>) {
        let text = String::from_utf8_lossy(&self.changed.text).into_owned();
        let head: Vec<&str> = text.split('(').next().unwrap_or_default().split_whitespace().collect();
        let written = head.first().and_then(|word| Action::named(word));
        let by = if written == Some(rule.action) { "" } else { ", by [[ids.action]]" };
        rows.push(("action", format!("{}{by}", rule.action.name())));
        rows.push(("class", format!("{}, priority {}", rule.category, rule.priority).trim_start_matches(", ").into()));
        rows.push(("head", head.get(1..).unwrap_or_default().join(" ")));
        rows.extend(self.variables(&text).into_iter().map(|text| ("variables", text)));
        let words = self.set.words(rule);
        rows.push(("looks at", words.way.into()));
        for (buffer, tests) in words.buffers {
            rows.push(("in", buffer));
            rows.extend(tests.into_iter().map(|test| ("in", format!("  {test}"))));
        }
        rows.push((
            "selected by",
            match words.selector {
                Some((buffer, text)) => format!("text {text:?} in {buffer}"),
                None if rule.idle.is_some() => "nothing".into(),
                None => "nothing: it is tried each time".into(),
            },
        ));
        rows.extend(words.state.into_iter().map(|state| ("bits", state)));
        let setters: Vec<String> = self.set.setters(rule).iter().take(SETTERS_SHOWN).map(u32::to_string).collect();
        if !setters.is_empty() {
            rows.push(("bits set by", setters.join(", ")));
        }
        for (threshold, place) in words.thresholds {
            rows.push(("threshold", place.map_or(threshold.clone(), |place| format!("{threshold} ({place})"))));
        }
        let effect = match rule.action {
            Action::Pass => "ends the inspection by rules",
            Action::Drop | Action::Reject => "blocks",
            Action::Alert if words.is_silent => "is silent: it changes bits",
            Action::Alert => "alerts",
        };
        rows.push(("matches at", words.doors.map_or_else(|reason| reason, |doors| doors.join("; ") + ": " + effect)));
    }

    /// The variables of its head, with their values.
    fn variables(&self, text: &str) -> Vec<String> {
        let head = text.split('(').next().unwrap_or_default();
        let names = head.split('$').skip(1).map(|rest| rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next());
        let mut names: Vec<&str> = names.flatten().collect();
        names.sort_unstable();
        names.dedup();
        let usual = default_variables();
        let value = |name: &str| self.settings.variables.get(name).or_else(|| usual.get(name)).cloned();
        names.into_iter().map(|name| format!("{name} = {}", value(name).unwrap_or_default())).collect()
    }
}

/// Rules that are named as those that set a bit.
const SETTERS_SHOWN: usize = 20;
