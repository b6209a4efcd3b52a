//! Filters: a list of rules with a form for each, and the script as a text. A script of other hands is shown as a text alone.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::call::Call;
use crate::fault::Fault;
use crate::filters::{Field, Filters, Match, Place, RULES_MAX, Rule, TESTS_MAX, Test, VALUE_MAX, by_word, line};
use crate::html::{Html, Text, put};
use crate::language::fill;
use crate::mail::{Purpose, Script};
use crate::recipients::typed;
use crate::reply::Reply;

use super::{PAGE_BYTES, Pages, Told};

/// Bytes of a script that is typed, as the host takes one.
const SCRIPT_BYTES_MAX: usize = 256 << 10;

impl Pages<'_> {
    /// The page of filters.
    pub fn filters(&mut self, call: &Call) -> Reply {
        self.filters_told(self.told(call))
    }

    fn filters_told(&mut self, told: Told) -> Reply {
        let Some(script) = self.mail.script() else { return self.missing() };
        let (words, mut main) = (&self.words.filters, Html::with_capacity(PAGE_BYTES));
        put!(main, "<h1>", words.title, "</h1><p class=\"soft\">", words.note, "</p><p class=\"bar\">");
        let filters = Filters::read(&script.text);
        if filters.as_ref().is_some_and(|filters| filters.rules.len() < RULES_MAX) {
            put!(main, "<a class=\"button main-button\" href=\"/filters/rule\">", words.new, "</a>");
        }
        put!(main, "<a class=\"button\" href=\"/filters/text\">", words.as_text, "</a></p>");
        match &filters {
            None => put!(main, "<p>", words.foreign, "</p>"),
            Some(filters) if filters.rules.is_empty() => put!(main, "<p class=\"soft\">", words.empty, "</p>"),
            Some(_) if !script.is_active => put!(main, "<p>", words.inactive, "</p>"),
            Some(_) => {}
        }
        let rules = filters.map(|filters| filters.rules).unwrap_or_default();
        for (at, rule) in rules.iter().enumerate() {
            self.rule(&mut main, at, rule, rules.len());
        }
        self.page(words.title, None, told, main)
    }

    fn rule(&self, main: &mut Html, at: usize, rule: &Rule, count: usize) {
        let (words, label) = (&self.words.filters, self.label(at, rule));
        put!(
            main,
            "<section class=\"card\"><h2><bdi>",
            Text(&label),
            "</bdi></h2><p>",
            Text(&self.summary(rule)),
            "</p>"
        );
        self.form(main, "action=\"/filters\" class=\"bar\"");
        put!(
            main,
            "<input type=\"hidden\" name=\"id\" value=\"",
            at,
            "\"><a class=\"button\" href=\"/filters/rule?id="
        );
        put!(main, at, "\">", words.change, "</a>");
        let last = count.saturating_sub(1);
        let delete = self.words.common.delete;
        for (is_there, action, text) in
            [(at > 0, "up", words.up), (at < last, "down", words.down), (true, "delete", delete)]
        {
            if is_there {
                put!(main, "<button name=\"do\" value=\"", action, "\">", text, "<span class=\"skip\">: ");
                put!(main, Text(&label), "</span></button>");
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
            Err(why) => self.filters_told(Told::Wrong(why.text(self.words))),
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
        let words = &self.words.filters;
        let title = if at.is_none() { words.new } else { words.one };
        let mut main = Html::default();
        put!(main, "<h1>", title, "</h1>");
        self.form(&mut main, "action=\"/filters/rule\" class=\"wide\"");
        if let Some(at) = at {
            put!(main, "<input type=\"hidden\" name=\"id\" value=\"", at, "\">");
        }
        field(&mut main, "name", self.words.common.name, &rule.name);
        put!(
            main,
            "<fieldset class=\"card\"><legend>",
            words.mails,
            "</legend><div class=\"field\"><label for=\"match\">"
        );
        put!(main, words.tests, "</label><select id=\"match\" name=\"match\"><option value=\"all\">", words.all);
        let any = if rule.is_any { " selected>" } else { ">" };
        put!(main, "</option><option value=\"any\"", any, words.any, "</option></select></div>");
        for number in 0..TESTS_MAX {
            self.test(&mut main, number.saturating_add(1), rule.tests.get(number));
        }
        put!(main, "</fieldset><fieldset class=\"card\"><legend>", words.done, "</legend>");
        self.places(&mut main, &rule.place);
        check(&mut main, "seen", words.mark_seen, rule.is_seen);
        check(&mut main, "flagged", self.words.common.flag, rule.is_flagged);
        field(&mut main, "forward", words.forward, &rule.forward);
        check(&mut main, "last", words.last, rule.is_last);
        put!(main, "</fieldset><div class=\"bar\"><button class=\"main-button\">", self.words.common.save);
        main.put("</button></div></form>");
        self.page(title, None, told, main)
    }

    fn places(&self, main: &mut Html, place: &Place) {
        let words = &self.words.filters;
        put!(
            main,
            "<div class=\"field\"><label for=\"place\">",
            self.words.common.folder,
            "</label><select id=\"place\" "
        );
        put!(main, "name=\"place\"><option value=\"\">", words.usual, "</option>");
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
            put!(main, "<option value=\"/", Text(name), selected, Text(self.label_of(name)), "</option>");
        }
        let nowhere = if *place == Place::Nowhere { "\" selected>" } else { "\">" };
        put!(main, "<option value=\"nowhere", nowhere, words.nowhere, "</option></select></div>");
    }

    /// The name of a folder as it is shown.
    fn label_of<'a>(&'a self, name: &'a str) -> &'a str {
        self.folders.iter().find(|folder| folder.name == name).map_or(name, |folder| folder.label(self.words))
    }

    fn test(&self, main: &mut Html, number: usize, test: Option<&Test>) {
        let words = &self.words.filters;
        let label = |text| fill(text, &[&self.words.number(number)]);
        let (field, how) = test.map_or((Field::Subject, Match::Contains), |test| (test.field, test.how));
        put!(
            main,
            "<div class=\"bar\"><select name=\"field",
            number,
            "\" aria-label=\"",
            Text(&label(words.test_field)),
            "\">"
        );
        for (word, one) in Field::ALL {
            option(main, word, self.field_name(one), one == field);
        }
        put!(main, "</select><select name=\"how", number, "\" aria-label=\"", Text(&label(words.test_how)), "\">");
        for (word, one) in Match::ALL {
            let name = match one {
                Match::Contains => words.contains,
                Match::Lacks => words.lacks,
                Match::Is => words.is,
            };
            option(main, word, name, one == how);
        }
        put!(
            main,
            "</select><input name=\"value",
            number,
            "\" aria-label=\"",
            Text(&label(words.test_value)),
            "\" dir=\"auto\" "
        );
        put!(main, "maxlength=\"", VALUE_MAX, "\" value=\"", Text(test.map_or("", |test| &test.value)), "\"></div>");
    }

    fn field_name(&self, field: Field) -> &'static str {
        let words = &self.words.filters;
        match field {
            Field::From => words.sender,
            Field::To => words.recipient,
            Field::Subject => words.subject,
            Field::List => words.list,
        }
    }

    fn label(&self, at: usize, rule: &Rule) -> String {
        match rule.name.is_empty() {
            true => fill(self.words.filters.unnamed, &[&self.words.number(at.saturating_add(1))]),
            false => rule.name.clone(),
        }
    }

    /// A rule in words.
    fn summary(&self, rule: &Rule) -> String {
        let words = &self.words.filters;
        let test = |test: &Test| {
            let sentence = match test.how {
                Match::Contains => words.does_contain,
                Match::Lacks => words.does_lack,
                Match::Is => words.does_equal,
            };
            fill(sentence, &[self.field_name(test.field), &test.value])
        };
        let tests: Vec<String> = rule.tests.iter().map(test).collect();
        let mut done = Vec::new();
        match &rule.place {
            Place::Usual => {}
            Place::Folder(name) => done.push(fill(words.into, &[self.label_of(name)])),
            Place::Nowhere => done.push(words.deleted.into()),
        }
        if !rule.forward.is_empty() {
            done.push(fill(words.copied, &[&rule.forward]));
        }
        let marks = [(rule.is_seen, words.seen), (rule.is_flagged, words.flagged), (rule.is_last, words.stops)];
        done.extend(marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, mark)| mark.into()));
        let tests = tests.join(if rule.is_any { words.or } else { words.and });
        fill(words.summary, &[&tests, &done.join(self.words.common.comma)])
    }

    /// Keeps a rule.
    pub fn change_filter(&mut self, call: &Call) -> Reply {
        let Some((script, mut filters)) = self.known_filters() else { return self.missing() };
        let (rule, rules) = (rule_of(call), &mut filters.rules);
        let at = call.form.get("id").parse().ok().filter(|&at: &usize| at < rules.len());
        if at.is_none() && call.form.has("id") {
            return self.missing();
        }
        let known = at.and_then(|at| rules.get(at)).map(|rule| rule.place.clone());
        if let Err(why) = self.checked(&rule, known.as_ref()) {
            return self.rule_form(at, &rule, self.wrong(&why));
        }
        let is_full = rules.len() >= RULES_MAX;
        match at.and_then(|at| rules.get_mut(at)) {
            Some(known) => *known = rule.clone(),
            None if is_full => {
                return self.rule_form(at, &rule, self.wrong(&Fault::Rules(RULES_MAX)));
            }
            None => rules.push(rule.clone()),
        }
        match self.mail.set_script(&script.name, &filters.script()) {
            Ok(()) => Reply::see("/filters?told=kept"),
            Err(why) => self.rule_form(at, &rule, Told::Wrong(why.text(self.words))),
        }
    }

    /// Checks a rule; the folder that it had before may be gone.
    fn checked(&self, rule: &Rule, known: Option<&Place>) -> Result<(), Fault> {
        if rule.tests.is_empty() {
            return Err(Fault::RuleEmpty);
        }
        if !rule.acts() {
            return Err(Fault::RuleNothing);
        }
        let is_there = |name: &str| self.folders.iter().any(|folder| folder.name == name);
        if matches!(&rule.place, Place::Folder(name) if !is_there(name) && known != Some(&rule.place)) {
            return Err(Fault::RuleFolder);
        }
        if rule.forward.is_empty() {
            return Ok(());
        }
        match &typed(&rule.forward)?[..] {
            [(_, address)] if self.mail.addresses().iter().any(|own| own.eq_ignore_ascii_case(address)) => {
                Err(Fault::RuleOwn)
            }
            [(_, address)] if *address == rule.forward => Ok(()),
            _ => Err(Fault::RuleForward),
        }
    }

    /// The script as a text.
    pub fn filter_text(&mut self, call: &Call) -> Reply {
        match self.mail.script() {
            Some(script) => self.text_form(&script.text, self.told(call)),
            None => self.missing(),
        }
    }

    fn text_form(&self, text: &str, told: Told) -> Reply {
        let (words, mut main) = (&self.words.filters, Html::with_capacity(PAGE_BYTES));
        put!(main, "<h1>", words.as_text, "</h1><p class=\"soft\">", words.text_note, "</p>");
        self.form(&mut main, "action=\"/filters/text\" class=\"wide\"");
        put!(
            main,
            "<div class=\"field\"><label for=\"text\">",
            words.script,
            "</label><textarea id=\"text\" name=\"text\" rows=\"20\" "
        );
        put!(
            main,
            "spellcheck=\"false\" dir=\"ltr\" class=\"code\">\n",
            Text(text),
            "</textarea></div><div class=\"bar\">"
        );
        put!(
            main,
            "<button class=\"main-button\">",
            self.words.common.save,
            "</button><a class=\"button\" href=\"/filters\">"
        );
        put!(main, words.rules, "</a></div></form>");
        self.page(words.as_text, None, told, main)
    }

    /// Keeps the script.
    pub fn change_filter_text(&mut self, call: &Call) -> Reply {
        let Some(script) = self.mail.script() else { return self.missing() };
        let text = call.form.get("text");
        if text.len() > SCRIPT_BYTES_MAX {
            return self.text_form(&script.text, self.wrong(&Fault::Script(SCRIPT_BYTES_MAX)));
        }
        match self.mail.set_script(&script.name, text) {
            Ok(()) => Reply::see("/filters?told=kept"),
            Err(why) => self.text_form(text, Told::Wrong(why.text(self.words))),
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

fn field(main: &mut Html, name: &'static str, label: &'static str, value: &str) {
    put!(main, "<div class=\"field\"><label for=\"", name, "\">", label, "</label><input id=\"", name, "\" name=\"");
    put!(main, name, "\" dir=\"auto\" maxlength=\"", VALUE_MAX, "\" value=\"", Text(value), "\"></div>");
}

fn check(main: &mut Html, name: &'static str, label: &'static str, is_set: bool) {
    let checked = if is_set { "\" checked> " } else { "\"> " };
    put!(main, "<p><label><input type=\"checkbox\" name=\"", name, checked, label, "</label></p>");
}

fn option(main: &mut Html, word: &'static str, text: &'static str, is_chosen: bool) {
    put!(main, "<option value=\"", word, if is_chosen { "\" selected>" } else { "\">" }, text, "</option>");
}
