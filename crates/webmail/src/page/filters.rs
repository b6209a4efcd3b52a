//! Filters: a list of rules with a form for each, and the script as a text. A script of other hands is shown as a text alone.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::call::Call;
use crate::compose::typed;
use crate::filters::{
    Field, Filters, Match, Place, RULES_MAX, Rule, TESTS_MAX, Test, VALUE_MAX, by_word, line, word_of,
};
use crate::html::{Html, Text, put};
use crate::mail::{Purpose, Script};
use crate::reply::Reply;

use super::{PAGE_BYTES, Pages, Told};

/// Bytes of a script that is typed, as the host takes one.
const SCRIPT_BYTES_MAX: usize = 256 << 10;

/// Fields, by their words, as a form names them.
const FIELDS: [(&str, &str); 4] =
    [("from", "The sender"), ("to", "A recipient"), ("subject", "The subject"), ("list", "The mailing list (List-Id)")];

/// Ways to compare, by their words, as a form names them.
const MATCHES: [(&str, &str); 3] = [("contains", "contains"), ("lacks", "does not contain"), ("is", "is")];

impl Pages<'_> {
    /// The page of filters.
    pub fn filters(&mut self, call: &Call) -> Reply {
        self.filters_told(Told::of(call))
    }

    fn filters_told(&mut self, told: Told) -> Reply {
        let Some(script) = self.mail.script() else { return self.missing() };
        let mut main = Html::with_capacity(PAGE_BYTES);
        put!(main, "<h1>Filters</h1><p class=\"soft\">What is done with mail that comes in.</p><p class=\"bar\">");
        let filters = Filters::read(&script.text);
        if filters.as_ref().is_some_and(|filters| filters.rules.len() < RULES_MAX) {
            put!(main, "<a class=\"button main-button\" href=\"/filters/rule\">New rule</a>");
        }
        put!(main, "<a class=\"button\" href=\"/filters/text\">Filters as text</a></p>");
        match &filters {
            None => put!(main, "<p>Your filters are a text that this form does not know: change them there.</p>"),
            Some(filters) if filters.rules.is_empty() => put!(main, "<p class=\"soft\">No rules here.</p>"),
            Some(_) if !script.is_active => {
                put!(main, "<p>These rules are switched off. With the next change they are switched on.</p>");
            }
            Some(_) => {}
        }
        let rules = filters.map(|filters| filters.rules).unwrap_or_default();
        for (at, rule) in rules.iter().enumerate() {
            self.rule(&mut main, at, rule, rules.len());
        }
        self.page("Filters", None, told, main)
    }

    fn rule(&self, main: &mut Html, at: usize, rule: &Rule, count: usize) {
        put!(main, "<section class=\"card\"><h2><bdi>", Text(&label(at, rule)), "</bdi></h2><p dir=\"auto\">");
        put!(main, Text(&summary(rule)), "</p>");
        self.form(main, "action=\"/filters\" class=\"bar\"");
        put!(
            main,
            "<input type=\"hidden\" name=\"id\" value=\"",
            at,
            "\"><a class=\"button\" href=\"/filters/rule?id="
        );
        put!(main, at, "\">Change</a>");
        let last = count.saturating_sub(1);
        for (is_there, action, text) in [(at > 0, "up", "Up"), (at < last, "down", "Down"), (true, "delete", "Delete")]
        {
            if is_there {
                put!(main, "<button name=\"do\" value=\"", action, "\">", text, "<span class=\"skip\">: ");
                put!(main, Text(&label(at, rule)), "</span></button>");
            }
        }
        put!(main, "</form></section>");
    }

    /// Moves or deletes a rule.
    pub fn change_filters(&mut self, call: &Call) -> Reply {
        let Some((script, mut filters)) = self.known_filters() else { return self.missing() };
        let (rules, at) = (&mut filters.rules, call.form.get("id").parse().unwrap_or(usize::MAX));
        let other = match call.form.get("do") {
            "up" => at.checked_sub(1),
            "down" => at.checked_add(1),
            "delete" => Some(at),
            _ => None,
        };
        match other.filter(|&other| at < rules.len() && other < rules.len()) {
            None => return self.missing(),
            Some(other) if other == at => drop(rules.remove(at)),
            Some(other) => rules.swap(at, other),
        }
        match self.mail.set_script(&script.name, &filters.script()) {
            Ok(()) => Reply::see("/filters?told=kept"),
            Err(why) => self.filters_told(Told::Wrong(why)),
        }
    }

    /// The form for a rule: a new one, or the one that is asked for.
    pub fn filter(&mut self, call: &Call) -> Reply {
        let Some((_, filters)) = self.known_filters() else { return self.missing() };
        let Ok(at) = call.query.get("id").parse::<usize>() else {
            return self.rule_form(None, &Rule::default(), Told::Nothing);
        };
        match filters.rules.get(at) {
            Some(rule) => self.rule_form(Some(at), rule, Told::Nothing),
            None => self.missing(),
        }
    }

    /// The form for the rule at a place, or for a new one.
    fn rule_form(&self, at: Option<usize>, rule: &Rule, told: Told) -> Reply {
        let title = if at.is_none() { "New rule" } else { "Rule" };
        let mut main = Html::default();
        put!(main, "<h1>", title, "</h1>");
        self.form(&mut main, "action=\"/filters/rule\" class=\"wide\"");
        if let Some(at) = at {
            put!(main, "<input type=\"hidden\" name=\"id\" value=\"", at, "\">");
        }
        field(&mut main, "name", "Name", &rule.name);
        put!(main, "<fieldset class=\"card\"><legend>Mails that it is about</legend>");
        put!(
            main,
            "<div class=\"field\"><label for=\"match\">Tests with a value</label><select id=\"match\" name=\"match\">"
        );
        let any = if rule.is_any { " selected" } else { "" };
        put!(main, "<option value=\"all\">all of them</option><option value=\"any\"", any, ">one of them</option>");
        main.put("</select></div>");
        for number in 0..TESTS_MAX {
            test(&mut main, number.saturating_add(1), rule.tests.get(number));
        }
        put!(main, "</fieldset><fieldset class=\"card\"><legend>What is done with them</legend>");
        self.places(&mut main, &rule.place);
        check(&mut main, "seen", "Mark as read", rule.is_seen);
        check(&mut main, "flagged", "Flag", rule.is_flagged);
        field(&mut main, "forward", "Forward a copy to this address", &rule.forward);
        check(&mut main, "last", "Try no rules behind this one", rule.is_last);
        put!(main, "</fieldset><div class=\"bar\"><button class=\"main-button\">Save</button></div></form>");
        self.page(title, None, told, main)
    }

    fn places(&self, main: &mut Html, place: &Place) {
        put!(main, "<div class=\"field\"><label for=\"place\">Folder</label><select id=\"place\" name=\"place\">");
        put!(main, "<option value=\"\">where it comes in</option>");
        let is_it = |name: &str| matches!(place, Place::Folder(known) if known == name);
        let mut names: Vec<&str> =
            self.folders.iter().filter(|folder| folder.purpose != Purpose::Inbox).map(|folder| &*folder.name).collect();
        // A folder that has another name by now is not taken from a rule unasked.
        if let Place::Folder(name) = place
            && !names.contains(&name.as_str())
        {
            names.push(name);
        }
        for name in names {
            let selected = if is_it(name) { "\" selected>" } else { "\">" };
            put!(main, "<option value=\"/", Text(name), selected, Text(name), "</option>");
        }
        let nowhere = if *place == Place::Nowhere { "\" selected>" } else { "\">" };
        put!(main, "<option value=\"nowhere", nowhere, "none: delete it for good</option></select></div>");
    }

    /// Keeps a rule.
    pub fn change_filter(&mut self, call: &Call) -> Reply {
        let Some((script, mut filters)) = self.known_filters() else { return self.missing() };
        let (rule, rules) = (rule_of(call), &mut filters.rules);
        let at = call.form.get("id").parse().ok().filter(|&at: &usize| at < rules.len());
        if at.is_none() && call.form.has("id") {
            return self.missing();
        }
        if let Err(why) = checked(&rule) {
            return self.rule_form(at, &rule, Told::Wrong(why));
        }
        let is_full = rules.len() >= RULES_MAX;
        match at.and_then(|at| rules.get_mut(at)) {
            Some(known) => *known = rule.clone(),
            None if is_full => {
                return self.rule_form(at, &rule, Told::Wrong(format!("There are {RULES_MAX} rules at most.")));
            }
            None => rules.push(rule.clone()),
        }
        match self.mail.set_script(&script.name, &filters.script()) {
            Ok(()) => Reply::see("/filters?told=kept"),
            Err(why) => self.rule_form(at, &rule, Told::Wrong(why)),
        }
    }

    /// The script as a text.
    pub fn filter_text(&mut self, call: &Call) -> Reply {
        match self.mail.script() {
            Some(script) => self.text_form(&script.text, Told::of(call)),
            None => self.missing(),
        }
    }

    fn text_form(&self, text: &str, told: Told) -> Reply {
        let mut main = Html::with_capacity(PAGE_BYTES);
        put!(
            main,
            "<h1>Filters as text</h1><p class=\"soft\">A script in Sieve (RFC 5228). One that is written here may be "
        );
        put!(main, "more than the form knows; an empty one does nothing.</p>");
        self.form(&mut main, "action=\"/filters/text\" class=\"wide\"");
        put!(
            main,
            "<div class=\"field\"><label for=\"text\">Script</label><textarea id=\"text\" name=\"text\" rows=\"20\" "
        );
        put!(
            main,
            "spellcheck=\"false\" dir=\"ltr\" class=\"code\">\n",
            Text(text),
            "</textarea></div><div class=\"bar\">"
        );
        put!(
            main,
            "<button class=\"main-button\">Save</button><a class=\"button\" href=\"/filters\">Rules</a></div></form>"
        );
        self.page("Filters as text", None, told, main)
    }

    /// Keeps the script.
    pub fn change_filter_text(&mut self, call: &Call) -> Reply {
        let Some(script) = self.mail.script() else { return self.missing() };
        let text = call.form.get("text");
        if text.len() > SCRIPT_BYTES_MAX {
            let why = format!("A script has at most {} kB.", SCRIPT_BYTES_MAX >> 10);
            return self.text_form(&script.text, Told::Wrong(why));
        }
        match self.mail.set_script(&script.name, text) {
            Ok(()) => Reply::see("/filters?told=kept"),
            Err(why) => self.text_form(text, Told::Wrong(why)),
        }
    }

    /// The script, and its filters if the forms know them.
    pub fn known_filters(&mut self) -> Option<(Script, Filters)> {
        let script = self.mail.script()?;
        let filters = Filters::read(&script.text)?;
        Some((script, filters))
    }
}

/// The rule of a form.
fn rule_of(call: &Call) -> Rule {
    let form = &call.form;
    let of_row = |number: usize| {
        let get = |name: &str| form.get(&format!("{name}{number}")).to_string();
        let value = line(&get("value"));
        let (field, how) = (by_word(&Field::ALL, &get("field"))?, by_word(&Match::ALL, &get("how"))?);
        (!value.is_empty()).then_some(Test { field, how, value })
    };
    Rule {
        name: line(form.get("name")),
        is_any: form.get("match") == "any",
        tests: (1..=TESTS_MAX).filter_map(of_row).collect(),
        place: match form.get("place") {
            "" => Place::Usual,
            "nowhere" => Place::Nowhere,
            folder => Place::Folder(line(folder.strip_prefix('/').unwrap_or(folder))),
        },
        is_seen: form.has("seen"),
        is_flagged: form.has("flagged"),
        forward: line(form.get("forward")),
        is_last: form.has("last"),
    }
}

fn checked(rule: &Rule) -> Result<(), String> {
    if rule.tests.is_empty() {
        return Err("A rule needs a test with a value.".into());
    }
    if rule.forward.is_empty() {
        return Ok(());
    }
    match &typed(&rule.forward)?[..] {
        [(_, address)] if *address == rule.forward => Ok(()),
        _ => Err("A copy is forwarded to one address, without a name.".into()),
    }
}

fn label(at: usize, rule: &Rule) -> String {
    if rule.name.is_empty() { format!("Rule {}", at.saturating_add(1)) } else { rule.name.clone() }
}

/// A rule in words.
fn summary(rule: &Rule) -> String {
    let of = |names: &[(&'static str, &'static str)], word: &str| {
        names.iter().find(|(known, _)| *known == word).map_or("", |(_, name)| *name)
    };
    let test = |test: &Test| {
        let (field, how) = (word_of(&Field::ALL, test.field), word_of(&Match::ALL, test.how));
        format!("{} {} \u{201c}{}\u{201d}", of(&FIELDS, field), of(&MATCHES, how), test.value)
    };
    let tests: Vec<String> = rule.tests.iter().map(test).collect();
    let place = match &rule.place {
        Place::Usual => String::new(),
        Place::Folder(name) => format!("into \u{201c}{name}\u{201d}"),
        Place::Nowhere => "deleted".into(),
    };
    let marks = [(rule.is_seen, "read"), (rule.is_flagged, "flagged"), (rule.is_last, "no rules behind it")];
    let forward = if rule.forward.is_empty() { String::new() } else { format!("a copy to {}", rule.forward) };
    let marks = marks.iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| mark.to_string());
    let done: Vec<String> = [place, forward].into_iter().chain(marks).filter(|text| !text.is_empty()).collect();
    format!("{}: {}", tests.join(if rule.is_any { ", or " } else { ", and " }), done.join(", "))
}

fn field(main: &mut Html, name: &'static str, label: &'static str, value: &str) {
    put!(main, "<div class=\"field\"><label for=\"", name, "\">", label, "</label><input id=\"", name, "\" name=\"");
    put!(main, name, "\" dir=\"auto\" maxlength=\"", VALUE_MAX, "\" value=\"", Text(value), "\"></div>");
}

fn check(main: &mut Html, name: &'static str, label: &'static str, is_set: bool) {
    let checked = if is_set { "\" checked> " } else { "\"> " };
    put!(main, "<p><label><input type=\"checkbox\" name=\"", name, checked, label, "</label></p>");
}

fn test(main: &mut Html, number: usize, test: Option<&Test>) {
    put!(main, "<div class=\"bar\">");
    let words = test.map(|test| (word_of(&Field::ALL, test.field), word_of(&Match::ALL, test.how)));
    choice(main, ("field", "Field of test ", number), &FIELDS, words.map_or("subject", |(field, _)| field));
    choice(main, ("how", "Comparison of test ", number), &MATCHES, words.map_or("contains", |(_, how)| how));
    put!(main, "<input name=\"value", number, "\" aria-label=\"Value of test ", number, "\" dir=\"auto\" maxlength=\"");
    put!(main, VALUE_MAX, "\" value=\"", Text(test.map_or("", |test| &test.value)), "\"></div>");
}

fn choice(
    main: &mut Html,
    (name, label, number): (&'static str, &'static str, usize),
    all: &[(&'static str, &'static str)],
    chosen: &str,
) {
    put!(main, "<select name=\"", name, number, "\" aria-label=\"", label, number, "\">");
    for &(word, text) in all {
        put!(main, "<option value=\"", word, if word == chosen { "\" selected>" } else { "\">" }, text, "</option>");
    }
    main.put("</select>");
}
