//! Names in SpamAssassin itself: plugins, their functions and settings, and features that conditions ask for.
//!
//! The table `known.txt` has the names; none of the plugins' code is here.

use std::collections::{HashMap, HashSet};

use crate::spam::syntax::value::Form;

const TABLE: &str = include_str!("known.txt");
/// Prefix of plugins' names.
pub const PLUGIN: &str = "Mail::SpamAssassin::Plugin::";
/// Plugins that had another name, which conditions still ask for.
const RENAMED: [(&str, &str); 2] = [("WhiteListSubject", "WelcomeListSubject"), ("Dmarc", "DMARC")];
const CORE: &str = "Mail::SpamAssassin::Conf::";

/// The names, by who knows them.
#[derive(Debug)]
pub struct Known {
    settings: HashMap<&'static str, Vec<(Form, &'static str)>>,
    /// Beginnings of settings' names.
    beginnings: Vec<(&'static str, Form, &'static str)>,
    functions: HashMap<&'static str, Vec<&'static str>>,
    features: HashSet<(&'static str, &'static str)>,
    plugins: HashMap<&'static str, bool>,
    /// Settings that are read and have no effect.
    idle: HashSet<&'static str>,
}

/// Owner of names that belong to no plugin.
pub const NO_PLUGIN: &str = "";

impl Default for Known {
    fn default() -> Known {
        let mut known = Known {
            settings: HashMap::new(),
            beginnings: Vec::new(),
            functions: HashMap::new(),
            features: HashSet::new(),
            plugins: HashMap::new(),
            idle: HashSet::new(),
        };
        let mut owner = NO_PLUGIN;
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ');
            match (words.next().unwrap_or_default(), words.next()) {
                ("plugin", Some(name)) => {
                    owner = name;
                    known.plugins.insert(name, words.next() == Some("default"));
                }
                ("feature", Some(name)) => drop(known.features.insert((owner, name))),
                ("eval", Some(name)) => known.functions.entry(name).or_default().push(owner),
                (form, Some(name)) => {
                    known.add(form, name, owner);
                    known.idle.extend(words.next().filter(|word| *word == "idle").map(|_| name));
                }
                _ => {}
            }
        }
        known
    }
}

impl Known {
    fn add(&mut self, form: &str, name: &'static str, owner: &'static str) {
        let Some(form) = Form::from_name(form) else { return };
        match name.strip_suffix('*') {
            Some(beginning) => self.beginnings.push((beginning, form, owner)),
            None => self.settings.entry(name).or_default().push((form, owner)),
        }
    }

    /// The kinds of value of a setting, with the plugin that takes it.
    pub fn setting(&self, name: &str) -> Vec<(Form, &'static str)> {
        if let Some(found) = self.settings.get(name) {
            return found.clone();
        }
        let begins = self.beginnings.iter().filter(|(beginning, ..)| name.starts_with(beginning));
        begins.map(|&(_, form, owner)| (form, owner)).collect()
    }

    /// Whether a setting has no effect.
    pub fn is_idle(&self, name: &str) -> bool {
        self.idle.contains(name)
    }

    /// The plugins that have a function for `eval:`.
    pub fn function(&self, name: &str) -> &[&'static str] {
        self.functions.get(name).map_or(&[], Vec::as_slice)
    }

    /// How many functions there are.
    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// The plugin's own name, without its package; what was renamed is found by both names.
    pub fn plugin(&self, name: &str) -> Option<&'static str> {
        let short = name.strip_prefix(PLUGIN)?;
        let short = RENAMED.iter().find(|(old, _)| *old == short).map_or(short, |(_, new)| new);
        self.plugins.get_key_value(short).map(|(&name, _)| name)
    }

    /// The plugins that Debian's package loads.
    pub fn defaults(&self) -> impl Iterator<Item = &'static str> {
        self.plugins.iter().filter(|(_, is_default)| **is_default).map(|(&name, _)| name)
    }

    /// Whether `Package::function` is there, given the plugins that are loaded.
    pub fn has(&self, path: &str, loaded: &HashSet<&'static str>) -> bool {
        if let Some(feature) = path.strip_prefix(CORE) {
            return self.features.contains(&(NO_PLUGIN, feature));
        }
        let Some((plugin, function)) = path.rsplit_once("::") else { return false };
        let Some(plugin) = self.plugin(plugin).filter(|plugin| loaded.contains(plugin)) else { return false };
        self.features.contains(&(plugin, function)) || self.function(function).contains(&plugin)
    }
}

/// The name of a setting as this version writes it: some were renamed, and are found by both names.
pub fn canonical(name: &str) -> String {
    match name {
        "required_hits" => "required_score".into(),
        _ if !name.contains("list") => name.into(),
        _ => name.replace("whitelist", "welcomelist").replace("blacklist", "blocklist"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_understood_whole() {
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let (kind, name) = line.split_once(' ').unwrap_or((line, ""));
            let fits = ["core", "plugin", "feature", "eval"].contains(&kind) || Form::from_name(kind).is_some();
            assert!(fits && (kind == "core" || !name.is_empty()), "{line}");
        }
        let known = Known::default();
        assert_eq!(known.defaults().count(), 28);
        assert_eq!(known.setting("bayes_stopword_en"), [(Form::Text, "Bayes")]);
        assert!(known.is_idle("dns_server") && !known.is_idle("report_wrap_width"));
        assert_eq!(known.function("check_bayes"), ["Bayes"]);
    }

    #[test]
    fn a_plugins_functions_are_there_when_it_is_loaded() {
        let known = Known::default();
        let arc = "Mail::SpamAssassin::Plugin::DKIM::has_arc";
        assert!(!known.has(arc, &HashSet::new()));
        assert!(known.has(arc, &known.defaults().collect()));
        assert!(known.has("Mail::SpamAssassin::Conf::feature_bug6558_free", &HashSet::new()));
        assert_eq!(canonical("def_whitelist_auth"), "def_welcomelist_auth");
    }
}
