//! Tags of reports and header fields, with their values: those of the manual page Mail::SpamAssassin::Conf and of plugins.
//!
//! A tag that is not known, or whose plugin has not set it, stays as it is.

use std::collections::BTreeMap;

use super::{Report, nonzero};
use crate::spam::recalled::Recalled;
use crate::spam::rule::Rule;
use crate::spam::run::check::Outcome;
use crate::spam::run::hit::Hit;
use crate::spam::tags::{self, Found};

/// Tags that are known and have no value here.
const EMPTY: [&str; 18] = [
    "TIMING",
    "RBL",
    "ASN",
    "ASNCIDR",
    "LANGUAGES",
    "AWL",
    "AWLMEAN",
    "AWLCOUNT",
    "AWLPRESCORE",
    "DCCB",
    "DCCR",
    "DCCREP",
    "PYZOR",
    "HAMMYTOKENS",
    "SPAMMYTOKENS",
    "DKIMIDENTITY",
    "DKIMDOMAIN",
    "DKIMSELECTOR",
];

impl Report<'_> {
    /// A template with the values of its tags.
    pub(super) fn filled(&self, template: &str) -> String {
        let mut out = String::new();
        let mut rest = template;
        while let Some(at) = rest.find('_') {
            out += &rest[..at];
            let inner = &rest[at + 1..];
            match tags::find(inner.as_bytes()) {
                Some(Found { name_end, argument, end }) => {
                    let (name, argument) = (&inner[..name_end], argument.map(|range| &inner[range]));
                    let value = self.value(name, argument);
                    match value {
                        Some(value) => out += &value,
                        None => out += &rest[at..at + 1 + end],
                    }
                    rest = &inner[end..];
                }
                None => {
                    out.push('_');
                    rest = inner;
                }
            }
        }
        out + rest
    }

    fn value(&self, name: &str, argument: Option<&str>) -> Option<String> {
        let outcome = self.outcome;
        let setting = |name: &str| self.settings.text(name).map(|text| String::from_utf8_lossy(text).into_owned());
        Some(match name {
            "YESNO" | "YESNOCAPS" => {
                let (yes, no) = argument.map_or(("Yes", "No"), |words| words.split_once(',').unwrap_or((words, "No")));
                let word = if outcome.is_spam() { yes } else { no };
                if name == "YESNO" { word.into() } else { word.to_uppercase() }
            }
            "SCORE" | "HITS" => padded(shown_score(outcome), argument),
            "REQD" => format!("{:.1}", outcome.required),
            "SUMMARY" => self.summary().trim_end_matches('\n').to_string() + "\n",
            "PREVIEW" => self.preview(),
            "HOSTNAME" => setting("report_hostname").unwrap_or_else(|| self.host.into()),
            "REMOTEHOSTNAME" => "localhost".into(),
            "REMOTEHOSTADDR" => "127.0.0.1".into(),
            "CONTACTADDRESS" => setting("report_contact").unwrap_or_else(|| "the administrator of that system".into()),
            "VERSION" => setting("version_tag").map_or("4.0.1".into(), |own| format!("4.0.1-{}", version_tag(&own))),
            // When that version was made.
            "SUBVERSION" => "2024-03-25".into(),
            "RULESVERSION" => self.engine.rules().versions.values().cloned().collect::<Vec<_>>().join(","),
            "DATE" => text::date::message(outcome.checked_at),
            "AUTOLEARN" if outcome.shortcircuited.is_some() => "disabled".into(),
            "AUTOLEARN" => match outcome.autolearn {
                Some(autolearn) if autolearn.is_forced => format!("{autolearn} ({})", self.engine.forcing(outcome)),
                Some(autolearn) => autolearn.to_string(),
                None => "disabled".into(),
            },
            "AUTOLEARNSCORE" => self.engine.plain_points(outcome).to_string(),
            "REPORT" => format!("\n{}", self.terse()),
            "SUBJPREFIX" => self.subject_prefix(),
            "TESTS" => self.names(argument, |rule, _| (!rule.is_subrule()).then(|| rule.name.to_string())),
            "TESTSSCORES" => self.names(argument, |rule, hit| {
                let points = hit.score(self.engine.rules(), outcome.set());
                (!rule.is_subrule()).then(|| format!("{}={points}", rule.name))
            }),
            "SUBTESTS" => self.names(argument, |rule, _| rule.is_subrule().then(|| rule.name.to_string())),
            "SUBTESTSCOLLAPSED" => self.collapsed(),
            "STARS" => {
                let star = argument.filter(|text| !text.is_empty()).unwrap_or("*");
                star.repeat(outcome.total.value().clamp(0.0, 50.0) as usize)
            }
            "SC" | "SCRULE" | "SCTYPE" => return self.shortcircuit(name),
            _ => return self.set_value(name, argument),
        })
    }

    /// The value of a tag that a rule, the mail or what was learned has set.
    fn set_value(&self, name: &str, argument: Option<&str>) -> Option<String> {
        let joined = |values: &[Box<[u8]>]| String::from_utf8_lossy(&values.join(&b' ')).into_owned();
        if let Some(values) = self.outcome.tags.get(name) {
            return Some(joined(values));
        }
        if let Some(value) = Recalled::tag(self.outcome.recalled.as_ref(), name) {
            return Some(value);
        }
        let is_looked_up = name == "URIHOSTS" || name == "URIDOMAINS";
        if EMPTY.contains(&name) || name.starts_with("EXTRACTTEXT") || (is_looked_up && !self.engine.options().set.net)
        {
            return Some(String::new()).filter(|_| !is_looked_up);
        }
        let hosts = || self.engine.lists().hosts_of(self.mail);
        let values = self.engine.look(self.mail, 0, |context| tags::of_mail(context, hosts, name, argument))?;
        let values: Vec<Box<[u8]>> = values.into_iter().map(Into::into).collect();
        Some(joined(&values))
    }

    /// A text of each hit, sorted, as often as it has hit.
    fn names(&self, separator: Option<&str>, name: impl Fn(&Rule, &Hit) -> Option<String>) -> String {
        const NAMES_MAX: usize = 1000;
        let rules = self.engine.rules();
        let mut names = Vec::new();
        for hit in &self.outcome.hits {
            let rule = &rules.names()[hit.rule as usize];
            let times = hit.count.min(rule.flags.hits_max()) as usize;
            let name = name(rule, hit).into_iter().flat_map(|name| std::iter::repeat_n(name, times));
            names.extend(name.take(NAMES_MAX.saturating_sub(names.len())));
        }
        names.sort_unstable();
        let separator = separator.filter(|text| !text.is_empty()).unwrap_or(",");
        if names.is_empty() { "none".into() } else { names.join(separator) }
    }

    /// The sub-rules that hit, each once with the number of its hits.
    fn collapsed(&self) -> String {
        let rules = self.engine.rules();
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for hit in &self.outcome.hits {
            let rule = &rules.names()[hit.rule as usize];
            if rule.is_subrule() {
                *counts.entry(&*rule.name).or_default() += hit.count.min(rule.flags.hits_max());
            }
        }
        let name = |(name, count): (&str, u32)| if count > 1 { format!("{name}({count})") } else { name.to_string() };
        let names: Vec<String> = counts.into_iter().map(name).collect();
        if names.is_empty() { "none".into() } else { names.join(",") }
    }

    /// Prefixes of the rules that hit, where the subject is rewritten.
    fn subject_prefix(&self) -> String {
        let mut all = String::new();
        if !self.templates.rewritten.iter().any(|(field, _)| **field == *"Subject") {
            return all;
        }
        let rules = self.engine.rules();
        let prefixes =
            self.outcome.hits.iter().filter_map(|hit| rules.names()[hit.rule as usize].subject_prefix.as_ref());
        for prefix in prefixes.map(|prefix| String::from_utf8_lossy(prefix)) {
            if !all.contains(&*prefix) {
                all += &format!("{prefix} ");
            }
        }
        all
    }

    /// Tags of the plugin Shortcircuit.
    fn shortcircuit(&self, name: &str) -> Option<String> {
        let rules = self.engine.rules();
        if !rules.plugins.contains("Shortcircuit") {
            return None;
        }
        let ended = self.outcome.shortcircuited;
        let rule = ended.and_then(|ended| ended.rule).map(|rule| &*rules.names()[rule as usize].name);
        let kind = ended.map_or("no", |ended| if ended.is_ham { "ham" } else { "spam" });
        Some(match (name, rule) {
            ("SC", Some(rule)) => format!("{rule} ({kind})"),
            ("SC", None) => "no".into(),
            ("SCRULE", rule) => rule.unwrap_or("none").into(),
            _ => kind.into(),
        })
    }
}

/// What `version_tag` adds to the version.
fn version_tag(text: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '_' };
    text.chars().map(|own| letter(own.to_ascii_lowercase())).collect()
}

/// The score with one decimal, and never on the wrong side of what is required.
fn shown_score(outcome: &Outcome) -> String {
    let value = outcome.total.value();
    let mut shown = format!("{:.1}", nonzero(value));
    let required = format!("{:.1}", outcome.required);
    if !outcome.is_spam() && shown.parse::<f64>().unwrap_or(0.0) >= required.parse::<f64>().unwrap_or(0.0) {
        shown = format!("{:.1}", outcome.required - 0.1);
    }
    shown
}

/// `_SCORE(00)_` and the like: the argument says how wide it gets.
fn padded(score: String, argument: Option<&str>) -> String {
    let Some(pad) = argument.filter(|pad| !pad.is_empty() && pad.bytes().all(|byte| byte == b'0' || byte == b' '))
    else {
        return score;
    };
    let missing = (pad.len() + 3).saturating_sub(score.len());
    pad[..missing.min(pad.len())].to_string() + &score
}

#[cfg(test)]
mod tests {
    use super::super::Report;
    use crate::spam::message::{Message, MessageLimits};
    use crate::spam::run::{Engine, EngineOptions, Expressions, Scratch};
    use crate::spam::{File, Limits, Loader, Options};

    const RULES: &str = "util_rb_tld example\ninternal_networks 192.0.2.0/24\ntrusted_networks 192.0.2.0/24\n\
                         body AA /alpha/\nscore AA 1.234\ndescribe AA one two three four five six seven eight nine ten\n\
                         body MM /beta/\ntflags MM multiple maxhits=3\nscore MM 0.5\nsubjprefix MM [M]\n\
                         rewrite_header Subject *\nheader __SUB Subject =~ /x/\nbody __SUBS /alpha/\ntflags __SUBS multiple\n\
                         header CAP Subject =~ /(?<CAPTURED>x\\w+)/\nscore CAP 0.001\n\
                         body OFAUTHOR /%{AUTHORDOMAIN}/\nscore OFAUTHOR 1\nbody OFSENDER /%{SENDERDOMAIN}/\n\
                         body OFFIELD /%{HEADER(From:name)}/\nversion_tag My Rules\nreport_wrap_width 50\nfold_headers 0\n\
                         # UPDATE version 1908\nclear_report_template\nclear_headers\n";

    const MAIL: &str = "Received: from out.example (rdns.example [198.51.100.7]) by mx.example; Mon, 1 Jan 2024 00:00:00 +0000\n\
                        From: Joe <joe@author.example>\nSubject: xx\nX-Word: gamma\n\nalpha beta beta beta beta alpha author.example\n";

    /// Values of tags, and the rows of a report.
    fn report(template: &str, mail: &str) -> String {
        // A comment stands on a line of its own.
        let text = format!("{RULES}report {template}\n");
        let options = Options { default_plugins: true, local_tests_only: true, ..Options::default() };
        let mut loader = Loader::new(options, Limits::default());
        loader.read(&File { name: "a.cf".into(), bytes: text.into() }, &mut |_, name| Err(name.into()));
        let engine = Engine::new(loader.finish(&Expressions), EngineOptions::default());
        assert_eq!(engine.rules().errors(), 0, "{:?}", engine.rules().problems());
        let mail = Message::read(mail.as_bytes(), engine.reading(), &MessageLimits::default());
        let outcome = engine.check(&mail, 86_400, false, &mut Scratch::default());
        Report::new(&engine, &mail, &outcome, "mx.test").text().trim_end().into()
    }

    #[test]
    fn tags_have_the_values_of_the_mail_and_of_the_check() {
        for (tag, expected) in [
            ("_TESTS_", "AA,CAP,MM,MM,MM,OFAUTHOR"),
            ("_TESTSSCORES(;)_", "AA=1.234;CAP=0.001;MM=0.5;MM=0.5;MM=0.5;OFAUTHOR=1"),
            ("_SUBTESTS( )_", "__SUB __SUBS __SUBS"),
            ("_SUBTESTSCOLLAPSED_", "__SUB,__SUBS(2)"),
            ("_AUTOLEARNSCORE_ _SCORE_", "3.735 3.7"),
            ("_VERSION_ _SUBVERSION_ _RULESVERSION_", "4.0.1-my_rules 2024-03-25 1908"),
            ("_DATE_", "Fri, 02 Jan 1970 00:00:00 +0000"),
            ("_CAPTURED_ _SUBJPREFIX_.", "xx [M] ."),
            ("_AUTHORDOMAIN_ _SENDERDOMAIN_", "author.example _SENDERDOMAIN_"),
            (
                "_LASTEXTERNALIP_ _LASTEXTERNALREVIP_ _LASTEXTERNALRDNS_ _LASTEXTERNALHELO_",
                "198.51.100.7 7.100.51.198 rdns.example out.example",
            ),
            ("_FIRSTTRUSTEDIP_._RELAYSTRUSTED_.", ".."),
            (
                "_RELAYSEXTERNAL_",
                "[ ip=198.51.100.7 rdns=rdns.example helo=out.example by=mx.example ident= envfrom= intl=0 id= auth= msa=0 ]",
            ),
            ("_HEADER(Subject)_._HEADER(None)_", "xx\n."),
            ("_HEADER(From:addr)_ _REMOTEHOSTADDR_ _REMOTEHOSTNAME_", "joe@author.example 127.0.0.1 localhost"),
            ("_RBL_._ASN_._DKIMDOMAIN_._PYZOR_._LANGUAGES_._TIMING_._EXTRACTTEXTWORDS_", "......"),
            (
                "_NOSUCH_ _NOSUCH(x)_ _SCORE_X_ _ADDEDHEADER_ _SC_ _URIHOSTS_ _a_",
                "_NOSUCH_ _NOSUCH(x)_ _SCORE_X_ _ADDEDHEADER_ _SC_ _URIHOSTS_ _a_",
            ),
        ] {
            assert_eq!(report(tag, MAIL), expected, "{tag}");
        }
        let mail = format!("Return-Path: <a@author.example>\n{MAIL}X-\n");
        assert_eq!(report("_TESTS_ _SENDERDOMAIN_", &mail), "AA,CAP,MM,MM,MM,OFAUTHOR,OFSENDER author.example");
        let mail = MAIL.replace("alpha author", "Joe author");
        assert_eq!(report("_TESTS_", &mail), "AA,CAP,MM,MM,MM,OFAUTHOR,OFFIELD");
    }

    #[test]
    fn a_report_has_a_row_for_each_hit_wrapped_where_the_configuration_says() {
        let rows = "  1.2 AA                     BODY: one two three four five six seven\n                            eight nine ten\n";
        let row = " 0.5 MM                     BODY: No description available.\n";
        let found = report("_SUMMARY_", MAIL);
        assert!(found.contains(rows.trim_start_matches(' ')), "{found}");
        assert_eq!(found.matches(row.trim_end()).count(), 3, "{found}");
        assert_eq!(report("_REPORT_", MAIL).matches("*  0.5 MM BODY: ").count(), 3);
    }
}
