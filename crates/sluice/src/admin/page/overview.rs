//! The overview: what is going on now, and over the last hour or day.

use std::collections::BTreeMap;
use std::time::SystemTime;

use webmail::html::{Html, Text, put};

use super::plot::{self, Line};
use crate::admin::history::{History, Span};

/// Writes the content of the page.
pub fn write(page: &mut Html, history: &History, span: Span, is_live: bool, kept: usize) {
    put!(page, "<h1>Overview</h1>");
    let numbers = match history.last() {
        Ok(numbers) if !numbers.is_empty() => numbers,
        Ok(_) => {
            return put!(
                page,
                "<p class=\"told\">The gateway has not been asked yet. Open the page again in some seconds.</p>"
            );
        }
        Err(error) => {
            put!(page, "<p class=\"told wrong\" role=\"alert\">The gateway does not answer: ", Text(&error), "</p>");
            return;
        }
    };
    tiles(page, &numbers, kept);
    choices(page, span, is_live);
    plots(page, history, span);
    if numbers.contains_key("store_size_bytes") {
        store(page, &numbers);
    }
}

fn tiles(page: &mut Html, numbers: &BTreeMap<String, f64>, kept: usize) {
    let level = |name: &str| numbers.get(name).copied().unwrap_or(0.0);
    let tiles: [(String, &'static str); 8] = [
        (plot::count(level("sessions_open")), "sessions now"),
        (plot::count(level("messages_total")), "messages since the start"),
        (plot::count(level("messages_rejected_total")), "rejected"),
        (plot::count(level("messages_quarantined_total")), "quarantined"),
        (plot::count(kept as f64), "in the quarantine now"),
        (plot::count(level("signatures")), "signatures"),
        (age(level("database_built_seconds")), "age of the signatures"),
        (plot::bytes(level("resident_bytes")), "memory of the edge"),
    ];
    put!(page, "<ul class=\"tiles\">");
    for (value, name) in tiles {
        put!(page, "<li><b>", Text(&value), "</b><span>", name, "</span></li>");
    }
    put!(page, "</ul>");
    if level("reload_failures_total") > 0.0 {
        put!(page, "<p class=\"told wrong\">", Text(&plot::count(level("reload_failures_total"))));
        put!(page, " times a new configuration or new signatures were not taken: the log says why.</p>");
    }
}

/// How long ago a time is, in seconds since 1970.
fn age(built: f64) -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    match since - built {
        _ if built <= 0.0 => "-".into(),
        seconds if seconds < 7_200.0 => format!("{:.0} min", (seconds / 60.0).max(0.0)),
        seconds if seconds < 172_800.0 => format!("{:.0} h", seconds / 3_600.0),
        seconds => format!("{:.0} days", seconds / 86_400.0),
    }
}

fn choices(page: &mut Html, span: Span, is_live: bool) {
    let (hour, day) = match span {
        Span::Hour => ("<b aria-current=\"true\">Last hour</b>", "<a href=\"/?span=day\">Last day</a>"),
        Span::Day => ("<a href=\"/\">Last hour</a>", "<b aria-current=\"true\">Last day</b>"),
    };
    put!(page, "<p class=\"bar\">", hour, " ", day, "<span class=\"end\">");
    put!(
        page,
        match (is_live, span) {
            (true, Span::Hour) => "Read anew every 10 seconds. <a href=\"/\">Stop</a>",
            (true, Span::Day) => "Read anew every 10 seconds. <a href=\"/?span=day\">Stop</a>",
            (false, Span::Hour) => "<a href=\"/?live=1\">Follow</a>",
            (false, Span::Day) => "<a href=\"/?span=day&amp;live=1\">Follow</a>",
        },
        "</span></p>"
    );
}

fn plots(page: &mut Html, history: &History, span: Span) {
    let rate = |name: &'static str, number: &str| Line { name, points: history.rates(number, span) };
    let level = |name: &'static str, number: &str| Line { name, points: history.levels(number, span) };
    put!(page, "<div class=\"plots\">");
    let messages = [
        rate("passed", "messages_passed_total"),
        rate("rejected", "messages_rejected_total"),
        rate("quarantined", "messages_quarantined_total"),
        rate("tagged", "messages_tagged_total"),
        rate("deferred", "messages_deferred_total"),
    ];
    plot::write(page, "Messages", plot::per_second, span, &messages);
    let (sums, counts) = (history.rates("inspect_seconds_sum", span), history.rates("inspect_seconds_count", span));
    let means =
        sums.iter().zip(&counts).map(|((ago, sum), (_, count))| (*ago, if *count > 0.0 { sum / count } else { 0.0 }));
    let inspection = [Line { name: "mean", points: means.collect() }];
    plot::write(page, "Inspection of a message", plot::milliseconds, span, &inspection);
    plot::write(page, "Content", plot::bytes_per_second, span, &[rate("inspected", "content_bytes_total")]);
    plot::write(page, "Sessions", plot::count, span, &[level("open", "sessions_open")]);
    plot::write(page, "Sessions refused", plot::per_second, span, &[rate("refused", "sessions_refused_total")]);
    plot::write(page, "Memory", plot::bytes, span, &[level("edge", "resident_bytes")]);
    put!(page, "</div>");
}

fn store(page: &mut Html, numbers: &BTreeMap<String, f64>) {
    let level = |name: &str| numbers.get(name).copied().unwrap_or(0.0);
    put!(page, "<h2>Mail store</h2><ul class=\"tiles\">");
    let tiles: [(String, &'static str); 6] = [
        (plot::count(level("store_messages")), "messages"),
        (plot::bytes(level("store_free_bytes")), "free"),
        (plot::bytes(level("store_size_bytes")), "in all"),
        (plot::count(level("store_queue_messages")), "wait to go out"),
        (plot::count(level("store_delivered_total")), "delivered since the start"),
        (plot::count(level("store_login_failures_total")), "failed logins"),
    ];
    for (value, name) in tiles {
        put!(page, "<li><b>", Text(&value), "</b><span>", name, "</span></li>");
    }
    put!(page, "</ul>");
}
