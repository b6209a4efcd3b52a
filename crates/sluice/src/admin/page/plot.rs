//! Lines of numbers over time, as SVG within a page: no script, colours of the page, and a table of the last values for who cannot see it.

use webmail::html::{Html, Text, put};

use crate::admin::history::Span;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 110.0;

/// Classes of lines: the style sheet has a colour and a pattern for each.
const LINES: [&str; 5] = [
    "<polyline class=\"l0",
    "<polyline class=\"l1",
    "<polyline class=\"l2",
    "<polyline class=\"l3",
    "<polyline class=\"l4",
];
const KEYS: [&str; 5] =
    ["<span class=\"k0\">", "<span class=\"k1\">", "<span class=\"k2\">", "<span class=\"k3\">", "<span class=\"k4\">"];

/// A line: its name and its points, as seconds before now and a value.
pub struct Line {
    pub name: &'static str,
    pub points: Vec<(f64, f64)>,
}

/// Writes a plot of at most five lines. `unit` says what a value is.
pub fn write(page: &mut Html, title: &'static str, unit: fn(f64) -> String, span: Span, lines: &[Line]) {
    let seconds = if span == Span::Hour { 3_600.0 } else { 86_400.0 };
    let values = lines.iter().flat_map(|line| &line.points).map(|(_, value)| *value);
    let top = values.fold(0.0, f64::max);
    let scale = if top > 0.0 { top } else { 1.0 };
    put!(page, "<figure class=\"plot\"><figcaption>", title, " <span class=\"soft\">up to ", Text(&unit(top)));
    put!(
        page,
        "</span></figcaption><svg viewBox=\"0 0 480 110\" role=\"img\" aria-label=\"",
        title,
        "\" preserveAspectRatio=\"none\">"
    );
    put!(page, "<path class=\"grid\" d=\"M0 1H480M0 55H480M0 109H480M120 0V110M240 0V110M360 0V110\"/>");
    for (line, class) in lines.iter().zip(LINES) {
        put!(page, class, "\" points=\"");
        for (ago, value) in line.points.iter().filter(|(ago, _)| *ago <= seconds) {
            let (x, y) = (WIDTH - ago / seconds * WIDTH, HEIGHT - 1.0 - value / scale * (HEIGHT - 4.0));
            put!(page, Text(&format!("{x:.1},{y:.1} ")));
        }
        put!(page, "\"/>");
    }
    put!(page, "</svg><p class=\"keys\">");
    for (line, key) in lines.iter().zip(KEYS) {
        let last = line.points.last().map_or_else(|| "-".into(), |(_, value)| unit(*value));
        put!(page, key, line.name, " <b>", Text(&last), "</b></span> ");
    }
    put!(page, "</p></figure>");
}

/// So many a second.
pub fn per_second(value: f64) -> String {
    format!("{value:.1}/s")
}

/// A count.
pub fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// Bytes.
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let (mut value, mut unit) = (value, 0);
    while value >= 1_000.0 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1_000.0, unit + 1);
    }
    let digits = if unit == 0 || value >= 100.0 { 0 } else { 1 };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// Bytes a second.
pub fn bytes_per_second(value: f64) -> String {
    format!("{}/s", bytes(value))
}

/// Milliseconds, of seconds.
pub fn milliseconds(value: f64) -> String {
    format!("{:.2} ms", value * 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_as_people_read_them() {
        assert_eq!([count(0.0), count(999.0), count(1_234_567.0)], ["0", "999", "1,234,567"]);
        assert_eq!([bytes(0.0), bytes(1_500.0), bytes(250e9)], ["0 B", "1.5 kB", "250 GB"]);
        assert_eq!([milliseconds(0.0015), per_second(2.25)], ["1.50 ms", "2.2/s"]);
    }

    #[test]
    fn a_plot_of_nothing_is_one() {
        let mut page = Html::default();
        write(&mut page, "Nothing", count, Span::Day, &[Line { name: "none", points: Vec::new() }]);
        assert!(page.into_string().contains("up to 0"));
    }
}
