//! Plain text: shown in a page, wrapped and unwrapped (`format=flowed`, RFC 3676), quoted in an answer, and made of HTML.

use alloc::string::String;
use alloc::vec::Vec;

use text::html::reference::{self, Place};
use text::html::{Token, Tokeniser, Within};

use crate::html::{Html, Text, put};
use crate::sanitise::{LINK_BYTES_MAX, link};

/// Links of a text, those that are none among them.
const LINKS_MAX: usize = 1_000;

/// Columns of a line that is written.
const COLUMNS: usize = 72;

/// Writes a text into a page, with its links and its quotes.
pub fn write(page: &mut Html, text: &str) {
    let mut links = 0;
    let mut in_quote = false;
    for line in text.trim_end().split('\n') {
        let is_quote = line.starts_with('>');
        match (in_quote, is_quote) {
            (false, true) => page.put("<span class=\"quote\">"),
            (true, false) => page.put("</span>"),
            _ => {}
        }
        in_quote = is_quote;
        write_line(page, line, &mut links);
        page.put("\n");
    }
    if in_quote {
        page.put("</span>");
    }
}

fn write_line(page: &mut Html, line: &str, links: &mut usize) {
    let (mut done, mut from) = (0usize, 0usize);
    while *links < LINKS_MAX
        && let Some(at) = candidate(line.as_bytes(), from)
    {
        let found = match line.as_bytes().get(at) {
            Some(b'@') => address(line, done, at),
            _ => url(line, at),
        };
        from = found.behind;
        *links = links.saturating_add(usize::from(found.counts));
        let Some((start, end, link)) = found.link else { continue };
        page.put(Text(line.get(done..start).unwrap_or_default()));
        put!(page, "<a target=\"_blank\" rel=\"noopener noreferrer nofollow\" href=\"", Text(&link), "\">");
        put!(page, Text(line.get(start..end).unwrap_or_default()), "</a>");
        done = end;
        from = end;
    }
    page.put(Text(line.get(done..).unwrap_or_default()));
}

/// A place at which a link may be.
struct Found {
    /// Where it begins and ends, and its URL.
    link: Option<(usize, usize, String)>,
    /// Where the next is looked for: no byte is read for two links.
    behind: usize,
    /// Whether it counts as a link: it has the beginning of one.
    counts: bool,
}

/// The next place from `from` on at which a link may begin, or an address has its `@`.
fn candidate(line: &[u8], from: usize) -> Option<usize> {
    let begins = |at: usize, word: &[u8]| {
        line.get(at..).and_then(|rest| rest.get(..word.len())).is_some_and(|head| head.eq_ignore_ascii_case(word))
    };
    let is_outer = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| line.get(at));
        before.is_none_or(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"@._-/".contains(byte))
    };
    (from..line.len()).find(|&at| match line.get(at) {
        Some(b'h' | b'H') => begins(at, b"http"),
        Some(b'w' | b'W') => begins(at, b"www.") && is_outer(at),
        byte => byte == Some(&b'@'),
    })
}

/// A URL that begins at a place.
fn url(line: &str, at: usize) -> Found {
    let from = line.get(at..).unwrap_or_default();
    let is_web = from.starts_with(['w', 'W']);
    let is_link =
        begins_link(from) || is_web && from.get(4..).is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
    if !is_link {
        return Found { link: None, behind: at.saturating_add(4), counts: false };
    }
    let run = run(from);
    let shown = without_end(run);
    let whole = match is_web {
        true if shown.bytes().filter(|&byte| byte == b'.').count() < 2 => None,
        true => link(&["http://", shown].concat()),
        false => link(shown),
    };
    let end = at.saturating_add(shown.len());
    Found { link: whole.map(|link| (at, end, link)), behind: at.saturating_add(run.len()), counts: true }
}

/// The address around an `@`, as far as it is not written yet.
fn address(line: &str, done: usize, at: usize) -> Found {
    let none = Found { link: None, behind: at.saturating_add(1), counts: false };
    let bytes = line.as_bytes();
    let is_local = |byte: &u8| byte.is_ascii_alphanumeric() || b".!#$%&*+/=?_{|}~-".contains(byte);
    let before = bytes.get(done..at).unwrap_or_default();
    let length = before.iter().rev().take(65).take_while(|byte| is_local(byte)).count();
    let dots = before.iter().rev().take(length).rev().take_while(|byte| **byte == b'.').count();
    let start = at.saturating_sub(length).saturating_add(dots);
    let is_host = |byte: &&u8| byte.is_ascii_alphanumeric() || b".-".contains(byte);
    let behind = bytes.get(at.saturating_add(1)..).unwrap_or_default();
    let mut host = behind.iter().take(254).take_while(is_host).count();
    while host.checked_sub(1).and_then(|last| behind.get(last)).is_some_and(|byte| b".-".contains(byte)) {
        host = host.saturating_sub(1);
    }
    let labels: Vec<&[u8]> = behind.get(..host).unwrap_or_default().split(|&byte| byte == b'.').collect();
    let is_domain = labels.len() > 1
        && labels.iter().all(|label| !label.is_empty() && label.len() < 64)
        && labels.last().is_some_and(|last| last.len() > 1 && last.iter().any(u8::is_ascii_alphabetic));
    let end = at.saturating_add(1).saturating_add(host);
    let goes_on = |byte: Option<&u8>| byte.is_some_and(|byte| !byte.is_ascii() || *byte == b'@');
    let is_cut = length > 64 || goes_on(start.checked_sub(1).and_then(|at| bytes.get(at))) || goes_on(bytes.get(end));
    if start == at || !is_domain || is_cut {
        return none;
    }
    let found = line.get(start..end).and_then(|address| link(&["mailto:", address].concat()));
    Found { link: found.map(|link| (start, end, link)), behind: end, counts: true }
}

/// Whether a text begins with a scheme and a host.
fn begins_link(text: &str) -> bool {
    ["http://", "https://"].into_iter().any(|scheme| {
        let (head, rest) = text.split_at_checked(scheme.len()).unwrap_or_default();
        head.eq_ignore_ascii_case(scheme) && rest.starts_with(|c: char| c.is_alphanumeric() || c == '[')
    })
}

/// The characters of a link that a text begins with, a few more than a link may have at the most.
fn run(text: &str) -> &str {
    let is_end = |c: char| c.is_whitespace() || c.is_control() || "<>\"'`{}|\\^".contains(c) || is_mark(c);
    let end = text.char_indices().find(|&(at, c)| at > LINK_BYTES_MAX || is_end(c)).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

/// Quotes and marks of the languages that have others than ASCII's.
const fn is_mark(c: char) -> bool {
    matches!(c, '\u{ab}' | '\u{bb}' | '\u{2018}'..='\u{201f}' | '\u{2026}' | '\u{2039}' | '\u{203a}')
        || matches!(
            c,
            '\u{60c}' | '\u{61b}' | '\u{61f}' | '\u{6d4}' | '\u{3001}' | '\u{3002}' | '\u{3008}'..='\u{3011}'
        )
        || matches!(
            c,
            '\u{ff01}' | '\u{ff08}' | '\u{ff09}' | '\u{ff0c}' | '\u{ff0e}' | '\u{ff1a}' | '\u{ff1b}' | '\u{ff1f}'
        )
}

/// A link without marks that end the sentence around it, or a bracket that was opened before it.
fn without_end(mut link: &str) -> &str {
    let count = |mark: char| link.matches(mark).count();
    let mut extra = [(')', count(')').saturating_sub(count('('))), (']', count(']').saturating_sub(count('[')))];
    while let Some(last) = link.chars().next_back() {
        let bracket = extra.iter_mut().find(|(bracket, count)| *bracket == last && *count > 0);
        match bracket {
            Some((_, count)) => *count = count.saturating_sub(1),
            None if ".,;:!?".contains(last) => {}
            None => break,
        }
        link = link.get(..link.len().saturating_sub(1)).unwrap_or_default();
    }
    link
}

/// Joins the lines of a text that was wrapped as `format=flowed`.
pub(crate) fn unflowed(text: &str, deletes_space: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut open: Option<usize> = None;
    for line in text.split('\n') {
        let depth = line.bytes().take_while(|&byte| byte == b'>').count();
        let content = line.get(depth..).unwrap_or_default();
        let content = content.strip_prefix(' ').unwrap_or(content);
        let is_signature = content == "-- ";
        if open == Some(depth) && !is_signature {
            out.push_str(content);
        } else {
            if open.is_some() {
                out.push('\n');
            }
            (0..depth).for_each(|_| out.push('>'));
            if depth > 0 {
                out.push(' ');
            }
            out.push_str(content);
        }
        open = None;
        if content.ends_with(' ') && !is_signature {
            if deletes_space {
                out.pop();
            }
            open = Some(depth);
        } else {
            out.push('\n');
        }
    }
    out.pop();
    out
}

/// Wraps a text as `format=flowed`: a line that goes on ends with a blank.
pub(crate) fn flowed(text: &str) -> String {
    let mut out = String::with_capacity(text.len().saturating_add(text.len() / 40));
    for line in text.split('\n') {
        let line = if line == "-- " { line } else { line.trim_end() };
        let mut columns = 0usize;
        // Quotes stay as they are: their depth counts.
        let is_quote = line.starts_with('>');
        if line.starts_with(' ') || line.starts_with("From ") {
            out.push(' ');
        }
        for word in line.split_inclusive(' ') {
            let width = word.chars().count();
            if columns > 0 && columns.saturating_add(width) > COLUMNS && !is_quote && !word.trim().is_empty() {
                out.push_str("\r\n");
                columns = 0;
                if word.starts_with('>') || word.starts_with(' ') || word.starts_with("From ") {
                    out.push(' ');
                }
            }
            out.push_str(word);
            columns = columns.saturating_add(width);
        }
        out.push_str("\r\n");
    }
    out
}

/// Quotes a text.
pub fn quoted(text: &str) -> String {
    let mut out = String::new();
    for line in text.trim_end().split('\n') {
        out.push_str(if line.starts_with('>') { ">" } else { "> " });
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The text of a page, for who reads or quotes it without markup.
pub fn of_html(page: &str) -> String {
    let mut reader = Reader::default();
    let mut tokeniser = Tokeniser::new();
    tokeniser.read(page.as_bytes(), &mut |_, token| reader.token(token));
    tokeniser.end(&mut |_, token| reader.token(token));
    reader.out.trim().into()
}

#[derive(Default)]
struct Reader {
    out: String,
    /// A blank is due before the next word.
    blank: bool,
    in_pre: bool,
    /// Within a list to choose from.
    in_list: bool,
}

impl Reader {
    fn token(&mut self, token: Token<'_>) {
        match token {
            Token::Text { within: Within::Page, bytes } if !self.in_list => {
                self.text(&String::from_utf8_lossy(&reference::decode(bytes, Place::Page)));
            }
            Token::Open(name) => self.open(name),
            Token::Close(b"br") => self.open(b"br"),
            Token::Close(b"pre") => {
                self.in_pre = false;
                self.line(1);
            }
            Token::Close(b"p" | b"table" | b"ul" | b"ol" | b"blockquote" | b"h1" | b"h2" | b"h3") => self.line(2),
            Token::Close(b"div" | b"tr" | b"li" | b"h4" | b"h5" | b"h6") => self.line(1),
            Token::Close(b"td" | b"th") => self.blank = true,
            Token::Close(b"select" | b"datalist") => self.in_list = false,
            _ => {}
        }
    }

    fn open(&mut self, name: &[u8]) {
        match name {
            b"br" => {
                self.out.push('\n');
                self.blank = false;
            }
            b"p" | b"table" | b"ul" | b"ol" | b"blockquote" | b"h1" | b"h2" | b"h3" => self.line(2),
            b"div" | b"tr" | b"h4" | b"h5" | b"h6" => self.line(1),
            b"li" => {
                self.line(1);
                self.out.push_str("* ");
            }
            b"hr" => {
                self.line(1);
                self.out.push_str("----\n");
            }
            b"pre" => {
                self.line(1);
                self.in_pre = true;
            }
            b"td" | b"th" => self.blank = true,
            b"select" | b"datalist" => self.in_list = true,
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_pre {
            return self.out.push_str(text);
        }
        for (at, word) in text.split(|c: char| c.is_ascii_whitespace()).enumerate() {
            self.blank |= at > 0;
            if word.is_empty() {
                continue;
            }
            if self.blank && !self.out.is_empty() && !self.out.ends_with(['\n', ' ']) {
                self.out.push(' ');
            }
            self.blank = false;
            self.out.push_str(word);
        }
    }

    /// Ends the line, and leaves so many line ends.
    fn line(&mut self, ends: usize) {
        (self.blank, self.in_list) = (false, false);
        while self.out.ends_with(' ') {
            self.out.pop();
        }
        let have = self.out.bytes().rev().take(ends).take_while(|&byte| byte == b'\n').count();
        if !self.out.is_empty() {
            (have..ends).for_each(|_| self.out.push('\n'));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_text_comes_back() {
        let long = "word ".repeat(40);
        let text = format!("Hello\n\n{}\n From x\n> a quote that stays\n-- \nme", long.trim_end());
        let wrapped = flowed(&text);
        assert!(wrapped.lines().all(|line| line.len() <= 74), "{wrapped}");
        assert_eq!(unflowed(&wrapped.replace("\r\n", "\n"), false).trim_end(), text);
    }

    #[test]
    fn links_in_text_are_links_and_nothing_else_is() {
        let mut page = Html::default();
        write(&mut page, "see https://a.example/b?c=d&e, <b>\n> old\nhttp:// javascript:x");
        let page = page.into_string();
        assert!(
            page.contains("href=\"https://a.example/b?c=d&amp;e\">https://a.example/b?c=d&amp;e</a>, &lt;b&gt;\n"),
            "{page}"
        );
        assert!(page.contains("<span class=\"quote\">&gt; old\n</span>http:// javascript:x"), "{page}");
    }

    #[test]
    fn names_of_servers_and_addresses_are_links() {
        for (text, wanted) in [
            ("see www.example.org/a, WWW.x.example.", "http://www.example.org/a http://WWW.x.example"),
            (
                "(a.b+c@d.example), <e@f.example>; \"g@h.example\"",
                "mailto:a.b+c@d.example mailto:e@f.example mailto:g@h.example",
            ),
            ("mailto:a@b.example .x@y.example.", "mailto:a@b.example mailto:x@y.example"),
            ("www.x awww.b.example x/www.c.example www. a@b @c.example d@ e@f..g h@1.2 i@j.k @@l.example", ""),
            ("https://u@a.example/@b c@d.example", "https://u@a.example/@b mailto:c@d.example"),
            ("j\u{f6}rg@a.example b@\u{fc}.example", ""),
        ] {
            let page = written(text);
            let hrefs: Vec<&str> = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
            assert_eq!(hrefs.join(" ").replace("%2B", "+"), wanted, "{page}");
        }
    }

    #[test]
    fn a_link_ends_before_marks_of_the_sentence() {
        for (text, wanted) in [
            ("https://a.example/Foo_(bar)", "https://a.example/Foo_(bar)"),
            ("(https://a.example/b), [https://a.example/[x]]", "https://a.example/b https://a.example/[x]"),
            ("(https://a.example/Foo_(bar).)", "https://a.example/Foo_(bar)"),
            ("https://a.example/b。好 https://a.example/c，下", "https://a.example/b https://a.example/c"),
            (
                "https://a.example/d، «https://a.example/f» “https://a.example/e”",
                "https://a.example/d https://a.example/f https://a.example/e",
            ),
            ("https://a.example/j… HTTPS://a.example/B http:", "https://a.example/j HTTPS://a.example/B"),
            ("http://[::1]/ http://[::1]", "http://[::1]/ http://[::1]"),
        ] {
            let mut page = Html::default();
            write(&mut page, text);
            let page = page.into_string();
            let shown: Vec<&str> = page.split("<a ").skip(1).filter_map(|link| link.split(['>', '<']).nth(1)).collect();
            assert_eq!(shown.join(" "), wanted, "{text}");
        }
    }

    #[test]
    fn pages_become_text() {
        let page = "<title>t</title><style>x</style><p>A &amp;\n b<br>c</p><ul><li>d<li>e</ul><script>f</script>\
                    <select><option>g</select><select><option>h";
        assert_eq!(of_html(page), "A & b\nc\n\n* d\n* e");
        assert_eq!(of_html("<table><tr><td>a<td>b<tr><th>c<th>d</th></table>"), "a b\nc d");
        assert_eq!(of_html("a</br>b</p>c"), "a\nb\n\nc");
    }

    fn written(text: &str) -> String {
        let mut page = Html::default();
        write(&mut page, text);
        page.into_string()
    }

    fn made_safe(page: &str) -> String {
        crate::sanitise::sanitise(page, &mut |_| None).html
    }

    type Reading = fn(&str) -> String;

    #[test]
    fn hostile_text_takes_the_time_of_other_text() {
        const BYTES: usize = 64 << 10;
        let time = |reading: Reading, text: &str| {
            let once = || {
                let begun = std::time::Instant::now();
                std::hint::black_box(reading(text));
                begun.elapsed()
            };
            (0..3).map(|_| once()).min().unwrap_or_default()
        };
        let of = |piece: &str| piece.repeat(BYTES.div_ceil(piece.len()));
        let usual = of("Some words of a mail (https://a.example/b), and a <b>tag</b> &amp; more.\n");
        let all: [(&str, Reading, &[&str]); 6] = [
            (
                "write",
                written,
                &[
                    "http://x.example/(((((",
                    "http",
                    "http://",
                    "https://a.example/]",
                    "http://a\u{e4}",
                    "www.",
                    "a@",
                    "a@b.example",
                ],
            ),
            ("quoted", quoted, &[">", "> ", " ", "\n"]),
            ("flowed", flowed, &[" ", "a ", "> ", "\n"]),
            ("unflowed", |text| unflowed(text, true), &[">", " \n", "> \n"]),
            ("of_html", of_html, &["<br>", "<p>", "<br><p>", "&", "<", "<li>", "<pre> ", "<td>"]),
            (
                "sanitise",
                made_safe,
                &[
                    "<br>",
                    "<p>",
                    "<div>",
                    "&",
                    "<",
                    "</p>",
                    "<table>",
                    "<a href=http://",
                    "<!--",
                    "<p style=",
                    "<img src=cid:",
                ],
            ),
        ];
        for (name, reading, pieces) in all {
            let wanted = time(reading, &usual) * 200 + std::time::Duration::from_millis(250);
            for piece in pieces {
                let took = time(reading, &of(piece));
                assert!(
                    took < wanted,
                    "{name} of {piece:?} takes {took:?}, and {wanted:?} is two hundred times that of a mail and the noise of a busy machine"
                );
            }
            // Two runs, of which the one behind looks at the one before.
            for (first, second) in [("<br>", "<p>"), ("http://a", "http://a "), (" ", "<p>"), ("\n", "<div>")] {
                let took = time(reading, &[of(first), of(second)].concat());
                assert!(took < wanted, "{name} of {first:?} and {second:?} takes {took:?}");
            }
        }
    }
}
