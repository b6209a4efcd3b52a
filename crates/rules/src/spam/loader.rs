//! Files in, rules out: what each line means, in the order of the lines.
//!
//! A definition replaces an earlier one of the same name, whatever kind it was; scores, flags, priorities and descriptions
//! belong to the name and stay. What cannot be read is reported and has no effect.

mod definition;
mod files;
mod review;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::limits::Limits;
use super::problem::{Fault, Place, Problem, Severity, shown};
use super::replace::Tags;
use super::rule::{Rules, Setting};
use super::source::known::{self, Known, NO_PLUGIN};
use super::source::line::Line;
use super::source::users;
use super::syntax::dns::UriList;
use super::syntax::expression::{Checker, Expression};
use super::syntax::{self, word};
use files::COMPATIBLE;

/// A file, as the host read it.
#[derive(Debug, Clone)]
pub struct File {
    /// Name in problems; included names are relative to it.
    pub name: Arc<str>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Options of the reading of a configuration.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Value that conditions see as `version`: SpamAssassin's, 4.0.1 as 4.000001.
    pub version: f64,
    /// Value that conditions see as `perl_version`.
    pub perl_version: f64,
    /// Value that conditions see as `local_tests_only`.
    pub local_tests_only: bool,
    /// Load the plugins that Debian's package loads: for a configuration that has no `.pre` files.
    pub default_plugins: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { version: 4.000_001, perl_version: 5.036, local_tests_only: false, default_plugins: false }
    }
}

/// How the host finds a file that is included: by the place of the line and the name that stands there.
pub type Include<'a> = dyn FnMut(&Place, &str) -> Result<File, String> + 'a;

/// Reads files one after the other.
#[derive(Debug)]
pub struct Loader {
    options: Options,
    limits: Limits,
    known: Known,
    loaded: HashSet<&'static str>,
    compatible: HashSet<String>,
    tags: Tags,
    /// Rules in which tags are replaced.
    tagged: BTreeSet<Box<str>>,
    bytes: usize,
    place: Place,
    rules: Rules,
    /// The rules that there are, where the file is one of a user.
    of_user: Option<HashSet<Box<str>>>,
}

impl Loader {
    /// Nothing read yet.
    pub fn new(options: Options, limits: Limits) -> Loader {
        let known = Known::default();
        let loaded = if options.default_plugins { known.defaults().collect() } else { HashSet::new() };
        Loader {
            options,
            limits,
            known,
            loaded,
            compatible: HashSet::new(),
            tags: Tags::default(),
            tagged: BTreeSet::new(),
            bytes: 0,
            place: Place::default(),
            rules: Rules::default(),
            of_user: None,
        }
    }

    /// For a file of a user, to lie over what a site says: with its plugins and its templates, and only what users may write.
    pub(super) fn of_user(mut self, site: &Rules) -> Loader {
        self.loaded = site.plugins.iter().copied().collect();
        self.rules.templates = site.templates.clone();
        self.of_user = Some(site.live().map(|rule| rule.name.clone()).collect());
        self
    }

    /// Reads a file, and with it those that it includes. The order of files is the host's: [`order`](super::source::order).
    pub fn read(&mut self, file: &File, include: &mut Include<'_>) {
        self.file(file, include, 0);
    }

    /// Replaces tags, checks expressions and looks names up.
    pub fn finish(mut self, checker: &dyn Checker) -> Rules {
        self.replace();
        self.check(checker);
        match self.of_user.take() {
            Some(site) => self.strangers(&site),
            None => {
                self.synthetic();
                self.functions();
                self.metas();
                self.loose_ends();
            }
        }
        self.rules.plugins = self.loaded.iter().copied().collect();
        self.rules
    }

    fn line(&mut self, line: &Line<'_>) {
        let (keyword, value) = (&*line.keyword, &*line.value);
        let is_forbidden = self.of_user.is_some() && !users::is_of_users(&known::canonical(keyword));
        let outcome = match keyword {
            _ if is_forbidden => {
                Err(Fault::new("it is not for a user's file", "the line has no effect: have it put into the site's"))
            }
            "loadplugin" | "tryplugin" => self.plugin(keyword, value),
            "enable_compat" => self.enable(value),
            "header" | "body" | "rawbody" | "full" | "uri" | "meta" | "mimeheader" | "uri_detail" | "askdns" => {
                self.definition(keyword, value)
            }
            "score" | "describe" | "tflags" | "priority" | "subjprefix" | "reuse" | "test" | "replace_rules" => {
                self.attribute(keyword, value)
            }
            "add_header"
            | "remove_header"
            | "clear_headers"
            | "rewrite_header"
            | "report"
            | "unsafe_report"
            | "report_template"
            | "unsafe_report_template"
            | "clear_report_template"
            | "clear_unsafe_report_template" => self.template(keyword, value),
            "shortcircuit" => self.shortcircuit(value),
            _ if UriList::keyword(keyword).is_some() => self.uri_list(keyword, value),
            _ if Tags::is_keyword(keyword) => self.tag(keyword, value),
            _ => self.setting(keyword, value),
        };
        if let Err(fault) = outcome {
            let rule = word(value).0;
            let rule = if self.is_about_a_rule(keyword) { syntax::name(rule).map(Into::into) } else { None };
            let reason = format!("{keyword}: {}", fault.reason);
            self.error(rule, Fault { reason, ..fault });
        }
    }

    fn is_about_a_rule(&self, keyword: &str) -> bool {
        const KEYWORDS: [&str; 17] = [
            "header",
            "body",
            "rawbody",
            "full",
            "uri",
            "meta",
            "mimeheader",
            "uri_detail",
            "askdns",
            "score",
            "describe",
            "tflags",
            "priority",
            "subjprefix",
            "reuse",
            "test",
            "shortcircuit",
        ];
        KEYWORDS.contains(&keyword) || UriList::keyword(keyword).is_some()
    }

    fn plugin(&mut self, keyword: &str, value: &[u8]) -> Result<(), Fault> {
        let (name, path) = word(value);
        let text = String::from_utf8_lossy(name);
        match self.known.plugin(&text) {
            Some(plugin) => drop(self.loaded.insert(plugin)),
            None if name.is_empty() => return Err(Fault::new("no plugin is named", "write its package behind")),
            None if keyword == "tryplugin" => {}
            None => {
                let reason = format!("{} is no plugin of SpamAssassin 4, and no code in Perl is run", shown(name));
                return Err(Fault::new(reason, "its rules have no effect: take the line away, or write tryplugin"));
            }
        }
        if !path.is_empty() {
            let reason = format!("{keyword}: the code in {} is not run", shown(path));
            self.note(None, Fault::new(reason, "the plugin of this name that SpamAssassin brings is meant"));
        }
        Ok(())
    }

    fn enable(&mut self, value: &[u8]) -> Result<(), Fault> {
        let name =
            syntax::name(value).ok_or_else(|| Fault::new("there is no such flag", "write letters, digits and _"))?;
        self.compatible.insert(format!("{COMPATIBLE}{name}"));
        Ok(())
    }

    /// Fails where a keyword belongs to a plugin that is not loaded.
    fn require(&self, plugin: &'static str) -> Result<(), Fault> {
        if self.loaded.contains(plugin) {
            return Ok(());
        }
        let reason = format!("the plugin {plugin} is not loaded");
        Err(Fault::new(reason, "load it with loadplugin in a .pre file, or put the line into ifplugin"))
    }

    fn setting(&mut self, keyword: &str, value: &[u8]) -> Result<(), Fault> {
        let name = known::canonical(keyword);
        let forms = self.known.setting(&name);
        let taken = forms.iter().find(|(_, owner)| *owner == NO_PLUGIN || self.loaded.contains(owner));
        let form = match (taken, forms.first()) {
            (Some(&(form, _)), _) => form,
            (None, Some(&(_, owner))) => return self.require(owner),
            (None, None) => {
                return Err(Fault::new(
                    "there is no such setting",
                    "check its spelling, or load the plugin that has it",
                ));
            }
        };
        if name == "redirector_pattern" {
            Expression::read(value)?;
        }
        let value = form.read(&name, value)?;
        if self.rules.settings.len() >= self.limits.settings_max {
            return Err(self.full());
        }
        if self.known.is_idle(&name) && self.rules.setting(&name).is_none() {
            self.note(
                None,
                Fault::new(format!("{keyword} has no effect here"), "the line can stay: SpamAssassin reads it"),
            );
        }
        self.rules.settings.push(Setting { name: name.into(), value, place: self.place.clone() });
        Ok(())
    }

    fn full(&self) -> Fault {
        Fault::new(format!("there are more than {} settings", self.limits.settings_max), "the line has no effect")
    }

    fn report_all(&mut self, found: Vec<(Place, Box<str>, Fault)>, severity: Severity) {
        for (place, name, fault) in found {
            self.place = place;
            self.report(severity, Some(name), fault);
        }
    }

    fn error(&mut self, rule: Option<Box<str>>, fault: Fault) {
        self.report(Severity::Error, rule, fault);
    }

    fn note(&mut self, rule: Option<Box<str>>, fault: Fault) {
        self.report(Severity::Note, rule, fault);
    }

    fn report(&mut self, severity: Severity, rule: Option<Box<str>>, fault: Fault) {
        let Fault { reason, advice } = fault;
        let problem = Problem { severity, place: self.place.clone(), rule, reason, advice: advice.into() };
        self.rules.report(problem, self.limits.problems_max);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::{Kind, Test, View};
    use super::super::syntax::expression::Unchecked;
    use super::*;

    fn load(text: &str) -> Rules {
        load_with(text, Limits::default())
    }

    fn load_with(text: &str, limits: Limits) -> Rules {
        let mut loader = Loader::new(Options { default_plugins: true, ..Options::default() }, limits);
        let file = |name: &str, text: &str| File { name: name.into(), bytes: text.as_bytes().to_vec() };
        loader.read(&file("a.cf", text), &mut |_, name| match name {
            "b.cf" => Ok(file("b.cf", "body FROM_B /b/\nnonsense\n")),
            "ring.cf" => Ok(file("ring.cf", "include ring.cf")),
            _ => Err("it is not there".into()),
        });
        loader.finish(&Unchecked)
    }

    fn errors(rules: &Rules) -> Vec<String> {
        let errors = rules.problems().iter().filter(|problem| problem.severity == Severity::Error);
        errors.map(ToString::to_string).collect()
    }

    fn live(rules: &Rules) -> Vec<&str> {
        rules.live().map(|rule| &*rule.name).collect()
    }

    #[test]
    fn conditions_choose_lines() {
        let rules = load(
            "if (version >= 3.004000)\nbody A /x/\nelse\nbody B /x/\nnonsense\nif 1\nbody C /x/\nendif\nendif\n\
             ifplugin Mail::SpamAssassin::Plugin::PDFInfo\nbody D /x/\nendif\n\
             if !can(Mail::SpamAssassin::Conf::compat_x)\nbody E /x/\nendif\nenable_compat x\n\
             if can(Mail::SpamAssassin::Conf::compat_x)\nbody F /x/\nendif\n\
             loadplugin Mail::SpamAssassin::Plugin::PDFInfo\n\
             ifplugin Mail::SpamAssassin::Plugin::PDFInfo\nbody G /x/\nendif\n",
        );
        assert_eq!(live(&rules), ["A", "E", "F", "G"]);
        assert!(errors(&rules).is_empty(), "{:?}", errors(&rules));
        assert_eq!(rules.skipped, 4);
    }

    #[test]
    fn conditions_that_are_not_closed_end_with_the_file() {
        let rules = load("endif\nelse\nif 0\nbody A /x/\n");
        assert_eq!(errors(&rules).len(), 3);
        assert!(errors(&rules)[2].starts_with("a.cf:3: error: the condition is not closed"), "{:?}", errors(&rules));
    }

    #[test]
    fn what_is_included_stands_where_it_is_included_and_places_are_its_own() {
        let rules = load("body A /x/\ninclude b.cf\nbody FROM_B /later/\ninclude none.cf\nnonsense\n");
        let Some(Test::Pattern(View::Body, expression)) = &rules.get("FROM_B").unwrap().test else { panic!("no test") };
        assert_eq!(&*expression.source, b"later");
        let errors = errors(&rules);
        assert!(errors[0].starts_with("b.cf:2: error: nonsense: there is no such setting"), "{errors:?}");
        assert!(errors[1].starts_with("a.cf:4: error: none.cf cannot be included: it is not there"), "{errors:?}");
        assert!(errors[2].starts_with("a.cf:5:"), "{errors:?}");
        assert!(load("include ring.cf\n").errors() == 1);
    }

    #[test]
    fn a_later_definition_counts_and_what_belongs_to_the_name_stays() {
        let rules =
            load("body A /one/\ntflags A nice\nscore A 3\nheader A Subject =~ /two/\nscore A (1)\npriority A -5\n");
        let rule = rules.get("A").unwrap();
        assert_eq!(rule.test.as_ref().unwrap().kind(), Kind::Pattern(View::Header));
        assert_eq!((rule.scores(), rule.priority(), rule.flags.has("nice")), ([4.0; 4], -5, true));
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_rule_and_changes_nothing() {
        let rules = load("body A /x/\nscore A 2\nscore A 1 2\nbody A //\nscore B (1)\nheader 1X Subject =~ /x/\n");
        assert_eq!(rules.get("A").unwrap().scores(), [2.0; 4]);
        assert!(rules.get("A").unwrap().test.is_some());
        assert_eq!(errors(&rules).len(), 4);
        assert!(
            errors(&rules)[0].starts_with("a.cf:3: error: A: score: there are 2 scores; write one"),
            "{:?}",
            errors(&rules)
        );
    }

    #[test]
    fn other_languages_and_versions_are_left() {
        let rules =
            load("lang de describe A b\nrequire_version 4.000001\nbody A /x/\nrequire_version 3.0\nbody B /x/\n");
        assert_eq!((live(&rules), rules.translated, rules.errors()), (vec!["A"], 1, 1));
    }

    #[test]
    fn functions_are_known_by_the_plugins_that_are_loaded() {
        let rules = load("header A eval:check_rbl('a')\nbody B eval:nosuch()\nbody C eval:pdf_count(1)\n");
        assert_eq!(live(&rules), ["A", "B", "C"]);
        assert_eq!(rules.get("A").unwrap().test.as_ref().unwrap().kind(), Kind::Rbl);
        let errors = errors(&rules);
        assert!(errors[0].contains("B: no plugin has a function nosuch"), "{errors:?}");
        assert!(errors[1].contains("C: pdf_count is a function of the plugin PDFInfo"), "{errors:?}");
    }

    #[test]
    fn rings_of_metas_are_reported_and_so_is_what_is_made_of_them() {
        let rules = load("body A /x/\nmeta B C || A\nmeta C B || A\nmeta D B || A\nmeta E E\nmeta F A || NONE\n");
        let errors = errors(&rules);
        assert_eq!(errors.len(), 4, "{errors:?}");
        assert!(errors[0].contains("B: it depends on C"), "{errors:?}");
        assert!(rules.problems().iter().any(|problem| problem.reason.contains("made of NONE")));
    }

    #[test]
    fn a_meta_asks_the_network_if_what_it_is_made_of_does() {
        let rules = load("body A /x/\ntflags A net\nmeta B C\nmeta C A\nmeta D !E\nbody E /x/\n");
        let net: Vec<&str> = rules.live().filter(|rule| rule.is_net()).map(|rule| &*rule.name).collect();
        assert_eq!(net, ["A", "B", "C"]);
    }

    #[test]
    fn tags_are_replaced_once_all_is_read() {
        let rules = load("body A /<A>b<A>/\nreplace_rules A\nbody B /<A>/\nreplace_tag A [a@]\n");
        let source = |name: &str| rules.get(name).unwrap().test.as_ref().unwrap().expression().unwrap().source.clone();
        assert_eq!((&*source("A"), &*source("B")), (&b"[a@]b[a@]"[..], &b"<A>"[..]));
    }

    #[test]
    fn settings_are_found_by_old_and_new_names() {
        let rules = load("required_hits 6.5\nwhitelist_from a@b *@c\ndef_whitelist_auth x@y\nuse_pyzor 0\nuse_dcc 0\n");
        assert_eq!(rules.required_score(), 6.5);
        let names: Vec<&str> = rules.settings.iter().map(|setting| &*setting.name).collect();
        assert_eq!(names, ["required_score", "welcomelist_from", "def_welcomelist_auth", "use_pyzor"]);
        assert!(errors(&rules)[0].contains("use_dcc: the plugin DCC is not loaded"));
    }

    #[test]
    fn settings_without_effect_are_noted() {
        let rules = load("dns_server 192.0.2.1\nreport_wrap_width 60\ntime_limit 5\n");
        let notes: Vec<String> = rules.problems().iter().map(ToString::to_string).collect();
        assert_eq!((notes.len(), rules.errors(), rules.settings.len()), (2, 0, 3), "{notes:?}");
        assert!(notes[0].contains("dns_server has no effect here"), "{notes:?}");
    }

    #[test]
    fn limits_hold() {
        let limits = Limits { rules_max: 2, settings_max: 1, nesting_max: 3, problems_max: 4, ..Limits::default() };
        let text = format!(
            "body A /x/\nbody B /x/\nbody C /x/\n{}{}use_bayes 1\nuse_bayes 0\n",
            "if 1\n".repeat(9),
            "endif\n".repeat(14)
        );
        let rules = load_with(&text, limits);
        assert_eq!((live(&rules), rules.settings.len()), (vec!["A", "B"], 1));
        assert_eq!((rules.problems().len(), rules.errors()), (4, 8));
        assert_eq!(load_with(&text, Limits { file_bytes_max: 10, ..limits }).errors(), 1);
        let tags = "replace_tag A xxxxxxxxxx\nbody A /<A><A>/\nreplace_rules A\n";
        assert_eq!(load_with(tags, Limits { expression_bytes_max: 15, ..limits }).live().count(), 0);
    }

    #[test]
    fn a_condition_beyond_the_bound_closes_none_around_it() {
        let limits = Limits { nesting_max: 3, ..Limits::default() };
        for deep in 1..9 {
            for (outside, inside) in [("if 0", vec!["OK"]), ("if 1", vec!["LIVE", "OK"])] {
                let (open, close) = ("if 1\nelse\n".repeat(deep), "endif\n".repeat(deep));
                let text = format!("{outside}\n{open}body DEEP /x/\n{close}body LIVE /x/\nendif\nbody OK /x/\n");
                let mut names = live(&load_with(&text, limits)).iter().map(ToString::to_string).collect::<Vec<_>>();
                names.sort();
                assert_eq!(names, inside, "{deep} {outside}");
            }
        }
    }

    #[test]
    fn templates_are_kept_as_they_stand() {
        let rules = load(
            "report old\nclear_report_template\nreport \"  _SCORE_\"\nadd_header all Status \"_YESNO_, x\"\nadd_header x A b\n\
             remove_header ham Status\nrewrite_header subject ***\nrewrite_header X-Foo y\n",
        );
        let templates = &rules.templates;
        assert_eq!((&*templates.report[0], templates.report.len()), (&b"  _SCORE_"[..], 1));
        assert_eq!((&*templates.spam[0].text, templates.ham.len()), (&b"_YESNO_, x"[..], 0));
        assert_eq!(templates.rewritten, [("Subject".into(), b"***"[..].into())]);
        assert_eq!(rules.errors(), 2);
    }
}
