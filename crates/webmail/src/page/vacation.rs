//! The answer of who is away: a text, and the days of it. Days are those of the user's time zone.

use alloc::string::String;

use ::text::date::{parse_day, timestamp};

use crate::call::Call;
use crate::fault::Fault;
use crate::filters::{TEXT_MAX, VALUE_MAX, Vacation};
use crate::html::{Html, Text, put};
use crate::reply::Reply;

use super::{Pages, Told};

const DAY: i64 = 86_400;

impl Pages<'_> {
    /// The page of the answer.
    pub fn vacation(&mut self, call: &Call) -> Reply {
        match self.known_filters() {
            Some((_, filters)) => self.vacation_form(&filters.vacation, self.told(call)),
            None => self.filters(call),
        }
    }

    fn vacation_form(&self, vacation: &Vacation, told: Told) -> Reply {
        let zone = i64::from(self.settings.zone_minutes).saturating_mul(60);
        let day = |time: Option<i64>, late: i64| {
            let written =
                time.map(|time| timestamp(time.saturating_add(zone).saturating_sub(late))).unwrap_or_default();
            written.get(..10).map(String::from).unwrap_or_default()
        };
        let (words, common) = (&self.words.vacation, &self.words.common);
        let mut main = Html::default();
        put!(main, "<h1>", words.title, "</h1><p class=\"soft\">", words.note, "</p>");
        self.form(&mut main, "action=\"/vacation\" class=\"wide\"");
        let checked = if vacation.is_on { " checked" } else { "" };
        put!(main, "<p><label><input type=\"checkbox\" name=\"on\"", checked, "> ", words.on, "</label></p>");
        for (name, label, value) in
            [("from", words.from, day(vacation.from, 0)), ("until", words.until, day(vacation.until, 1))]
        {
            put!(
                main,
                "<div class=\"field\"><label for=\"",
                name,
                "\">",
                label,
                "</label><input type=\"date\" id=\"",
                name
            );
            put!(main, "\" name=\"", name, "\" placeholder=\"2026-12-31\" value=\"", Text(&value), "\"></div>");
        }
        put!(
            main,
            "<div class=\"field\"><label for=\"subject\">",
            common.subject,
            "</label><input id=\"subject\" name=\"subject\" "
        );
        put!(main, "dir=\"auto\" maxlength=\"", VALUE_MAX, "\" value=\"", Text(&vacation.subject), "\"></div>");
        put!(
            main,
            "<div class=\"field short\"><label for=\"text\">",
            common.text,
            "</label><textarea id=\"text\" name=\"text\" rows=\"8\" "
        );
        put!(main, "dir=\"auto\" maxlength=\"", TEXT_MAX, "\">\n", Text(&vacation.text), "</textarea></div>");
        put!(main, "<div class=\"bar\"><button class=\"main-button\">", common.save, "</button></div></form>");
        self.page(words.title, None, told, main)
    }

    /// Keeps the answer.
    pub fn change_vacation(&mut self, call: &Call) -> Reply {
        let Some((script, mut filters)) = self.known_filters() else { return self.missing() };
        let zone = i64::from(self.settings.zone_minutes).saturating_mul(60);
        let form = &call.form;
        let mut is_wrong = false;
        let mut time = |name: &str, days: i64| {
            let typed = form.get(name).trim();
            let day = parse_day(typed);
            is_wrong |= day.is_none() && !typed.is_empty();
            day.map(|day| day.saturating_add(days).saturating_mul(DAY).saturating_sub(zone))
        };
        let (from, until) = (time("from", 0), time("until", 1));
        let vacation = Vacation::new(form.has("on"), (from, until), form.get("subject"), form.get("text"));
        let faults = [
            (is_wrong, Fault::Day),
            (from.zip(until).is_some_and(|(from, until)| from >= until), Fault::Days),
            (vacation.is_on && vacation.text.is_empty(), Fault::VacationEmpty),
        ];
        if let Some((_, why)) = faults.into_iter().find(|(is_so, _)| *is_so) {
            return self.vacation_form(&vacation, self.wrong(&why));
        }
        filters.vacation = vacation;
        match self.mail.set_script(&script.name, &filters.script()) {
            Ok(()) => Reply::see("/vacation?told=kept"),
            Err(why) => self.vacation_form(&filters.vacation, Told::Wrong(why.text(self.words))),
        }
    }
}
