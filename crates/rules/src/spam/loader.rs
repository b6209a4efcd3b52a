//! Files in, rules out: what each line means, in the order of the lines.
//!
//! A definition replaces an earlier one of the same name, whatever kind it was; scores, flags, priorities and descriptions
//! belong to the name and stay. What cannot be read is reported and has no effect.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::limits::Limits;
use super::problem::{Fault, Place, Problem, Severity, shown};
use super::replace::Tags;
use super::rule::{NamedTest, Rule, Rules, Setting, Test, View};
use super::schedule::Schedule;
use super::source::condition::{self, World};
use super::source::known::{self, Known, NO_PLUGIN};
use super::source::line::Line;
use super::source::users;
use super::syntax::call::Call;
use super::syntax::dns::{AskDns, UriList};
use super::syntax::expression::{Checker, Expression};
use super::syntax::field::HeaderTest;
use super::syntax::flags::Flags;
use super::syntax::meta::Meta;
use super::syntax::score::Scores;
use super::syntax::{self, word, words};
use super::template::Audience;

/// A file, as the host read it.
#[derive(Debug, Clone)]
pub struct File {
    /// What it is called in problems, and what included names are relative to.
    pub name: Arc<str>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What a configuration is read for.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// What conditions see as `version`: SpamAssassin's, 4.0.1 as 4.000001.
    pub version: f64,
    /// What conditions see as `perl_version`.
    pub perl_version: f64,
    /// What conditions see as `local_tests_only`.
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

/// A condition that is open.
struct Frame {
    place: Place,
    /// What is around it is read.
    outer: bool,
    holds: bool,
}

/// The conditions that are open in a file.
#[derive(Default)]
struct Frames {
    open: Vec<Frame>,
    /// Conditions within the innermost of them that stand deeper than is followed.
    too_deep: usize,
}

impl Frames {
    /// Whether what stands in them is read.
    fn are_read(&self) -> bool {
        self.too_deep == 0 && self.open.last().is_none_or(|frame| frame.outer && frame.holds)
    }
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
                self.functions();
                self.metas();
                self.loose_ends();
            }
        }
        self.rules.plugins = self.loaded.iter().copied().collect();
        self.rules
    }

    /// Rules that a user names and that are not there.
    fn strangers(&mut self, site: &HashSet<Box<str>>) {
        let named = self.rules.rules.iter().filter(|rule| !site.contains(&rule.name));
        let named: Vec<(Box<str>, Place)> = named.map(|rule| (rule.name.clone(), rule.place.clone())).collect();
        for (name, place) in named {
            self.place = place;
            self.error(Some(name), Fault::new("there is no such rule", "the line has no effect: check its spelling"));
        }
    }

    fn file(&mut self, file: &File, include: &mut Include<'_>, depth: usize) {
        self.place = Place { file: file.name.clone(), line: 0 };
        if let Err(fault) = self.admit(file, depth) {
            return self.error(None, fault);
        }
        let mut frames = Frames::default();
        for (number, line) in lines(&file.bytes).enumerate() {
            self.place = Place { file: file.name.clone(), line: u32::try_from(number + 1).unwrap_or(u32::MAX) };
            let Some(line) = Line::read(line) else { continue };
            if self.conditional(&line, &mut frames) {
                continue;
            }
            if !frames.are_read() {
                self.rules.skipped += 1;
                continue;
            }
            if line.language.is_some() {
                self.rules.translated += 1;
                continue;
            }
            match &*line.keyword {
                "include" => self.include(&line.value, include, depth),
                "require_version" if !self.is_version(&line.value) => {
                    let reason = format!(
                        "the file is for version {} and not for {:.6}",
                        shown(&line.value),
                        self.options.version
                    );
                    return self.error(
                        None,
                        Fault::new(reason, "the rest of the file was not read: take the line away if it fits"),
                    );
                }
                "require_version" => {}
                _ => self.line(&line),
            }
        }
        for frame in frames.open {
            self.place = frame.place;
            self.error(None, Fault::new("the condition is not closed in this file", "write endif"));
        }
    }

    fn admit(&mut self, file: &File, depth: usize) -> Result<(), Fault> {
        const ADVICE: &str = "the file was not read";
        let Limits { file_bytes_max, files_max, bytes_max, include_depth_max, .. } = self.limits;
        if file.bytes.len() > file_bytes_max {
            return Err(Fault::new(format!("the file has more than {file_bytes_max} bytes"), ADVICE));
        }
        self.bytes = self.bytes.saturating_add(file.bytes.len());
        if self.bytes > bytes_max {
            return Err(Fault::new(format!("all files have more than {bytes_max} bytes"), ADVICE));
        }
        if depth > include_depth_max {
            return Err(Fault::new(format!("files include each other more than {include_depth_max} deep"), ADVICE));
        }
        if self.rules.files >= files_max as u64 {
            return Err(Fault::new(format!("there are more than {files_max} files"), ADVICE));
        }
        self.rules.files += 1;
        Ok(())
    }

    fn include(&mut self, value: &[u8], include: &mut Include<'_>, depth: usize) {
        let place = self.place.clone();
        let name = String::from_utf8_lossy(value).into_owned();
        if name.is_empty() {
            return self.error(None, Fault::new("no file is named", "write include FILE"));
        }
        match include(&place, &name) {
            Ok(file) => self.file(&file, include, depth + 1),
            Err(reason) => {
                self.error(None, Fault::new(format!("{name} cannot be included: {reason}"), "check its path"))
            }
        }
        self.place = place;
    }

    fn is_version(&self, value: &[u8]) -> bool {
        // What stands there before a release is made.
        const MARK: &[u8] = b"@@VERSION@@";
        let number = core::str::from_utf8(value).ok().and_then(|value| value.parse::<f64>().ok());
        value == MARK || number.is_some_and(|number| (number - self.options.version).abs() < 5e-7)
    }

    /// Opens, turns and closes conditions; `false` where the line does none of this.
    fn conditional(&mut self, line: &Line<'_>, frames: &mut Frames) -> bool {
        match &*line.keyword {
            "if" | "ifplugin" if frames.too_deep > 0 => frames.too_deep += 1,
            "else" if frames.too_deep > 0 => {}
            "endif" if frames.too_deep > 0 => frames.too_deep -= 1,
            "if" | "ifplugin" => {
                let outer = frames.are_read();
                if outer && line.value.is_empty() {
                    let fault = Fault::new("the condition is missing", "the line was not read: write one behind it");
                    self.error(None, fault);
                    return true;
                }
                if frames.open.len() >= self.limits.nesting_max {
                    let reason = format!("conditions stand more than {} deep", self.limits.nesting_max);
                    self.error(None, Fault::new(reason, "it counts as false: what stands in it is not read"));
                    frames.too_deep = 1;
                    return true;
                }
                let holds =
                    outer && if line.keyword == "if" { self.holds(&line.value) } else { self.is_loaded(&line.value) };
                frames.open.push(Frame { place: self.place.clone(), outer, holds });
            }
            "else" => match frames.open.last_mut() {
                Some(frame) => frame.holds = !frame.holds,
                None => self.error(None, Fault::new("else stands outside of a condition", "write if before it")),
            },
            "endif" => {
                if frames.open.pop().is_none() {
                    self.error(None, Fault::new("endif stands outside of a condition", "take it away"));
                }
            }
            _ => return false,
        }
        true
    }

    fn holds(&mut self, text: &[u8]) -> bool {
        match condition::read(text, self.limits.nesting_max, self) {
            Ok(outcome) => {
                if let Some(word) = outcome.unknown {
                    let reason = format!("a condition knows no {}", shown(word.as_bytes()));
                    self.error(
                        None,
                        Fault::new(reason, "it counts as true, as in Perl; write version, plugin(), has() or can()"),
                    );
                }
                outcome.holds
            }
            Err(fault) => {
                self.error(None, fault);
                false
            }
        }
    }

    fn is_loaded(&self, name: &[u8]) -> bool {
        let name = core::str::from_utf8(name).ok().and_then(|name| self.known.plugin(name));
        name.is_some_and(|name| self.loaded.contains(name))
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
        const KEYWORDS: [&str; 16] = [
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

    fn definition(&mut self, keyword: &str, value: &[u8]) -> Result<(), Fault> {
        let (name, text) = word(value);
        let name = rule_name(name)?;
        if text.is_empty() {
            return Err(Fault::new("the rule has no test", "write one behind its name"));
        }
        let test = match keyword {
            "header" => match Call::read(text) {
                Some(call) => Test::Eval(View::Header, call?),
                None => Test::Header(HeaderTest::read(text)?),
            },
            "body" => pattern(View::Body, text)?,
            "rawbody" => pattern(View::Rawbody, text)?,
            "full" => pattern(View::Full, text)?,
            "uri" => Test::Pattern(View::Uri, Expression::read(text)?),
            "mimeheader" => {
                self.require("MIMEHeader")?;
                match HeaderTest::read(text)? {
                    HeaderTest::Exists(_) => {
                        return Err(Fault::new("exists: is for header only", "write Field =~ /./"));
                    }
                    test => Test::MimeHeader(test),
                }
            }
            "uri_detail" => {
                self.require("URIDetail")?;
                Test::UriDetail(text.into())
            }
            "askdns" => {
                self.require("AskDNS")?;
                Test::AskDns(AskDns::read(text)?)
            }
            _ => Test::Meta(meta(text, &self.limits)?),
        };
        let place = self.place.clone();
        let rule = self.rule(name)?;
        rule.test = Some(test);
        rule.place = place;
        Ok(())
    }

    fn attribute(&mut self, keyword: &str, value: &[u8]) -> Result<(), Fault> {
        if keyword == "replace_rules" {
            self.require("ReplaceTags")?;
            self.tagged.extend(words(value).filter_map(syntax::name).map(Into::into));
            return Ok(());
        }
        let (name, text) = word(value);
        let name = rule_name(name)?;
        if text.is_empty() && keyword != "reuse" {
            return Err(Fault::new("the value is missing", "write it behind the rule's name"));
        }
        match keyword {
            "score" => self.score(name, Scores::read(text)?)?,
            "describe" => self.rule(name)?.description = Some(text.into()),
            "tflags" => self.rule(name)?.flags = Flags::read(text),
            "priority" => self.rule(name)?.given_priority = Some(priority(text)?),
            "subjprefix" => self.rule(name)?.subject_prefix = Some(text.into()),
            "reuse" => {
                let rule = self.rule(name)?;
                rule.test.get_or_insert(Test::Placeholder);
                rule.reused = words(text).filter_map(syntax::name).map(Into::into).collect();
            }
            _ => self.self_test(name, text)?,
        }
        Ok(())
    }

    fn score(&mut self, name: &str, scores: Scores) -> Result<(), Fault> {
        let rule = self.rule(name)?;
        let scores = match (scores, rule.given_scores) {
            (Scores::Absolute(scores), _) => scores,
            (Scores::Relative(more), Some(scores)) => core::array::from_fn(|at| scores[at] + more[at]),
            (Scores::Relative(_), None) => {
                return Err(Fault::new("a relative score has nothing before it", "write an absolute score first"));
            }
        };
        rule.given_scores = Some(scores);
        Ok(())
    }

    fn self_test(&mut self, name: &str, text: &[u8]) -> Result<(), Fault> {
        let (outcome, text) = word(text);
        let ok = match outcome {
            b"ok" => true,
            b"fail" => false,
            _ => return Err(Fault::new("a test of a rule is ok or fail", "write test NAME ok TEXT")),
        };
        if self.rules.self_tests.len() >= self.limits.settings_max {
            return Err(self.full());
        }
        self.rules.self_tests.push(NamedTest { rule: name.into(), ok, text: text.into(), place: self.place.clone() });
        Ok(())
    }

    fn uri_list(&mut self, keyword: &str, value: &[u8]) -> Result<(), Fault> {
        self.require("URIDNSBL")?;
        let (name, text) = word(value);
        let name = rule_name(name)?;
        let Some((subject, has_subtest)) = UriList::keyword(keyword) else { return Ok(()) };
        let list = UriList::read(subject, has_subtest, text)?;
        self.rule(name)?.uri_list = Some(list);
        Ok(())
    }

    fn tag(&mut self, keyword: &str, value: &[u8]) -> Result<(), Fault> {
        self.require("ReplaceTags")?;
        let (key, text) = word(value);
        let set = self.tags.set(keyword, key, text);
        if set { Ok(()) } else { Err(Fault::new("the value is missing", "write the tag and what stands for it")) }
    }

    fn template(&mut self, keyword: &str, value: &[u8]) -> Result<(), Fault> {
        const LINES_MAX: usize = 10_000;
        let templates = &mut self.rules.templates;
        let lines = if keyword.contains("unsafe") { &mut templates.unsafe_report } else { &mut templates.report };
        match keyword {
            "report" | "unsafe_report" | "report_template" | "unsafe_report_template" => {
                if lines.len() >= LINES_MAX {
                    return Err(Fault::new(format!("the report has more than {LINES_MAX} lines"), "shorten it"));
                }
                let quoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
                lines.push(quoted.unwrap_or(value).into());
                return Ok(());
            }
            "clear_report_template" | "clear_unsafe_report_template" => {
                lines.clear();
                return Ok(());
            }
            "clear_headers" => {
                templates.clear_headers();
                return Ok(());
            }
            _ => {}
        }
        let (first, rest) = word(value);
        if keyword == "rewrite_header" {
            let field =
                ["Subject", "From", "To"].into_iter().find(|field| field.as_bytes().eq_ignore_ascii_case(first));
            let field =
                field.ok_or_else(|| Fault::new("only Subject, From and To are rewritten", "name one of them"))?;
            templates.rewrite(field, rest);
            return Ok(());
        }
        let fault = || Fault::new("the field is not named", "write spam, ham or all, a name, and a text");
        let audience = Audience::from_name(first).ok_or_else(fault)?;
        let (name, text) = word(rest);
        let fits = !name.is_empty() && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let name = core::str::from_utf8(name).ok().filter(|_| fits).ok_or_else(fault)?;
        match keyword {
            "remove_header" => templates.remove(audience, name),
            _ if text.is_empty() => return Err(fault()),
            _ if templates.spam.len() + templates.ham.len() >= LINES_MAX => {
                return Err(Fault::new(format!("more than {LINES_MAX} fields are added"), "take some away"));
            }
            _ => templates.add(
                audience,
                name,
                text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text),
            ),
        }
        Ok(())
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
        self.rules.settings.push(Setting { name: name.into(), value, place: self.place.clone() });
        Ok(())
    }

    fn full(&self) -> Fault {
        Fault::new(format!("there are more than {} settings", self.limits.settings_max), "the line has no effect")
    }

    /// The rule of a name, made where there is none.
    fn rule(&mut self, name: &str) -> Result<&mut Rule, Fault> {
        let id = match self.rules.index.get(name) {
            Some(&id) => id as usize,
            None => {
                let id = self.rules.rules.len();
                if id >= self.limits.rules_max {
                    let reason = format!("there are more than {} rules", self.limits.rules_max);
                    return Err(Fault::new(reason, "the line has no effect"));
                }
                let place = self.place.clone();
                self.rules.rules.push(Rule { name: name.into(), place, ..Rule::default() });
                self.rules.index.insert(name.into(), u32::try_from(id).unwrap_or(u32::MAX));
                id
            }
        };
        self.rules.rules.get_mut(id).ok_or_else(|| Fault::new("the rule is not there", ""))
    }

    /// Replaces tags in the rules that are named for it.
    fn replace(&mut self) {
        let mut left = self.limits.replaced_bytes_max;
        for name in std::mem::take(&mut self.tagged) {
            let Some(&id) = self.rules.index.get(&name) else { continue };
            let rule = &mut self.rules.rules[id as usize];
            let Some(expression) = rule.test.as_mut().and_then(Test::replaceable) else { continue };
            let bytes_max = self.limits.expression_bytes_max.min(left);
            if let Some(source) = self.tags.replace(&expression.source, bytes_max) {
                left -= source.len().min(left);
                expression.source = source.into();
                continue;
            }
            rule.test = None;
            self.place = rule.place.clone();
            let reason = format!("with its tags replaced the expression has more than {bytes_max} bytes");
            self.error(Some(name), Fault::new(reason, "the rule has no effect: take tags away"));
        }
    }

    /// Drops the rules whose expressions the engine does not take.
    fn check(&mut self, checker: &dyn Checker) {
        let rules = self.rules.rules.iter().enumerate();
        let (ids, all): (Vec<usize>, Vec<&Expression>) =
            rules.filter_map(|(id, rule)| Some((id, rule.test.as_ref()?.expression()?))).unzip();
        let outcomes = checker.check(&all);
        for (id, outcome) in ids.into_iter().zip(outcomes) {
            let Err(reason) = outcome else { continue };
            let rule = &mut self.rules.rules[id];
            rule.test = None;
            self.place = rule.place.clone();
            let name = rule.name.clone();
            self.error(
                Some(name),
                Fault::new(format!("the expression is not understood: {reason}"), "the rule has no effect"),
            );
        }
    }

    /// Reports functions that no plugin that is loaded has.
    fn functions(&mut self) {
        let mut found = Vec::new();
        for rule in &self.rules.rules {
            let Some(Test::Eval(_, call)) = &rule.test else { continue };
            let owners = self.known.function(&call.function);
            if owners.iter().any(|owner| *owner == NO_PLUGIN || self.loaded.contains(owner)) {
                continue;
            }
            let (reason, advice) = match owners.first() {
                Some(owner) => (
                    format!("{} is a function of the plugin {owner}, which is not loaded", call.function),
                    "load it, or put the rule into ifplugin",
                ),
                None => {
                    (format!("no plugin has a function {}", call.function), "the rule never hits: check its spelling")
                }
            };
            found.push((rule.place.clone(), rule.name.clone(), Fault::new(reason, advice)));
        }
        self.report_all(found, Severity::Error);
    }

    /// Reports metas that are never evaluated, and says which of them ask the network.
    fn metas(&mut self) {
        let schedule = Schedule::new(&self.rules, &self.limits);
        let excluded = schedule.excluded().iter().map(|exclusion| {
            let rule = &self.rules.rules[exclusion.rule as usize];
            (
                rule.place.clone(),
                rule.name.clone(),
                Fault::new(exclusion.reason.clone(), "the meta never hits: take the ring apart"),
            )
        });
        let excluded = excluded.collect();
        self.report_all(excluded, Severity::Error);
        let order: Vec<(u32, Vec<u32>)> = schedule.parts().map(|(id, parts)| (id, parts.collect())).collect();
        for (id, parts) in order {
            let is_net = parts.iter().any(|&part| self.rules.rules[part as usize].is_net());
            self.rules.rules[id as usize].inherits_net = is_net;
        }
    }

    /// Notes names that mean nothing.
    fn loose_ends(&mut self) {
        let mut found = Vec::new();
        for rule in &self.rules.rules {
            if rule.test.is_none() {
                let fault = Fault::new("there is no rule of this name", "what is said of it has no effect");
                found.push((rule.place.clone(), rule.name.clone(), fault));
            }
            let Some(Test::Meta(meta)) = &rule.test else { continue };
            for name in &meta.names {
                if self.rules.get(name).is_none_or(|part| part.test.is_none()) {
                    let fault = Fault::new(format!("it is made of {name}, which is no rule"), "that counts as 0");
                    found.push((rule.place.clone(), rule.name.clone(), fault));
                }
            }
        }
        self.report_all(found, Severity::Note);
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

/// What the names of flags begin with that `enable_compat` sets.
const COMPATIBLE: &str = "Mail::SpamAssassin::Conf::compat_";

impl World for Loader {
    fn word(&self, word: &str) -> Option<f64> {
        match word {
            "version" => Some(self.options.version),
            "perl_version" => Some(self.options.perl_version),
            "local_tests_only" => Some(f64::from(u8::from(self.options.local_tests_only))),
            _ => None,
        }
    }

    fn call(&self, function: &str, argument: &str) -> Option<bool> {
        match function {
            "plugin" => Some(self.is_loaded(argument.as_bytes())),
            "has" | "can" => Some(self.compatible.contains(argument) || self.known.has(argument, &self.loaded)),
            _ => None,
        }
    }
}

/// The lines of a file, without what ends them.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    memchr::memchr_iter(b'\n', bytes)
        .chain([bytes.len()])
        .map(move |end| &bytes[std::mem::replace(&mut start, end + 1)..end])
}

fn rule_name(name: &[u8]) -> Result<&str, Fault> {
    let advice = "take letters, digits and _, no digit first, and at most 127 of them";
    if name.is_empty() {
        return Err(Fault::new("no rule is named", advice));
    }
    syntax::name(name).ok_or_else(|| Fault::new(format!("{} is no name of a rule", shown(name)), advice))
}

fn pattern(view: View, text: &[u8]) -> Result<Test, Fault> {
    match Call::read(text) {
        Some(call) => Ok(Test::Eval(view, call?)),
        None => Ok(Test::Pattern(view, Expression::read(text)?)),
    }
}

fn meta(text: &[u8], limits: &Limits) -> Result<Meta, Fault> {
    let meta = Meta::read(text, limits)?;
    if meta.evaluate(|_| 0.0, |_| 0.0).is_none() {
        return Err(Fault::new("it divides by zero where nothing hits", "add 1 to what it divides by"));
    }
    Ok(meta)
}

fn priority(text: &[u8]) -> Result<i64, Fault> {
    let fits = text.strip_prefix(b"-").unwrap_or(text).iter().all(u8::is_ascii_digit);
    let number = core::str::from_utf8(text).ok().filter(|_| fits).and_then(|text| text.parse().ok());
    number.ok_or_else(|| Fault::new("a priority is a whole number", "write one behind the rule's name"))
}

#[cfg(test)]
mod tests {
    use super::super::rule::Kind;
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
