//! Preferences of one user in place of the site's: SpamAssassin's `user_prefs`.
//!
//! A file of a user may have scores, `required_score`, lists of senders, recipients, subjects and hosts, and what is written into
//! mails. All else is an error that names its line, and has no effect: rules, what the site pays for, what holds for all.
//! It lies over a compiled configuration ([`Engine::preferences`](super::run::Engine::preferences)) and is read anew for each mail.
//!
//! Known wrongs: a rule that the site has turned off stays off; what `multiple` rules add is shown as one sum; mails are learned
//! by the site's scores. Bounds: [`BYTES_MAX`] of a file.

use std::collections::HashMap;

use super::loader::{File, Loader, Options};
use super::problem::Problem;
use super::settings::Settings;
use super::syntax::expression::Unchecked;
use super::template::Templates;
use super::{Limits, Rules, Severity};

/// The largest file of a user, in bytes.
pub const BYTES_MAX: usize = 64 << 10;

/// Preferences of a user.
#[derive(Debug)]
pub struct Preferences {
    /// Scores of rules, by their ids.
    pub(super) scores: HashMap<u32, [f64; 4]>,
    pub(super) required: Option<f64>,
    pub(super) settings: Settings,
    pub(super) templates: Templates,
    problems: Vec<Problem>,
}

impl Preferences {
    /// Reads a file of a user over the rules and the settings of the site.
    pub(super) fn read(file: &File, site: &Rules, mut settings: Settings) -> Preferences {
        let limits = Limits { file_bytes_max: BYTES_MAX, ..Limits::default() };
        let mut loader = Loader::new(Options::default(), limits).of_user(site);
        loader.read(file, &mut |_, _| Err("files of users include no others".into()));
        let own = loader.finish(&Unchecked);
        settings.add(&own);
        let scores = own.names().iter().filter_map(|rule| Some((site.id(&rule.name)?, rule.given_scores?)));
        Preferences {
            scores: scores.collect(),
            required: own.setting("required_score").is_some().then(|| own.required_score()),
            settings,
            templates: own.templates.clone(),
            problems: own.problems().iter().filter(|problem| problem.severity == Severity::Error).cloned().collect(),
        }
    }

    /// From which score on a mail is spam, where the user says so.
    pub fn required(&self) -> Option<f64> {
        self.required
    }

    /// Errors of the file, by line.
    pub fn errors(&self) -> &[Problem] {
        &self.problems
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::{Message, MessageLimits};
    use super::super::run::{Beside, Engine, EngineOptions, Expressions, Outcome, Report, Scratch};
    use super::*;

    const SITE: &str = "body BUY /buy/\nscore BUY 3\nbody OTHER /other/\nscore OTHER 1\nbody OFF /buy/\nscore OFF 0\n\
                        meta BOTH BUY && OTHER\nscore BOTH 1\nreport site _SCORE_\n\
                        header LISTED eval:check_from_in_welcomelist()\ntflags LISTED nice userconf\nscore LISTED -100\n\
                        header BLOCKED eval:check_from_in_blocklist()\nscore BLOCKED 100\nwelcomelist_from friend@site.test\n\
                        add_header all Level _STARS_\n";

    fn check(own: &str) -> (Outcome, String, Vec<String>) {
        let mut loader = Loader::new(Options { default_plugins: true, ..Options::default() }, Limits::default());
        let file = |name: &str, text: &str| File { name: name.into(), bytes: text.as_bytes().to_vec() };
        loader.read(&file("site.cf", SITE), &mut |_, _| Err(String::new()));
        let engine = Engine::new(loader.finish(&Expressions), EngineOptions::default());
        let preferences = engine.preferences(&file("joe", own));
        let mail = b"From: friend@site.test\nSubject: x\n\nbuy other\n";
        let mail = Message::read(mail, engine.reading(), &MessageLimits::default());
        let beside = Beside { preferences: Some(&preferences), ..Beside::default() };
        let outcome = engine.check_known(&mail, 0, false, beside, &mut Scratch::default());
        let report = Report::new(&engine, &mail, &outcome, "mx.test").of(Some(&preferences));
        let fields: Vec<String> = report.fields(false).into_iter().map(|(name, value)| name + "=" + &value).collect();
        let text = format!("{}{}", report.text(), fields.join(";"));
        let errors = preferences.errors().iter().map(ToString::to_string).collect();
        (outcome, text, errors)
    }

    fn total(own: &str) -> f64 {
        check(own).0.total.value()
    }

    #[test]
    fn scores_and_lists_of_a_user_count_and_those_of_the_site_otherwise() {
        assert_eq!(total(""), -95.0);
        assert_eq!(total("unwhitelist_from friend@site.test\n"), 5.0);
        assert_eq!(total("unwelcomelist_from friend@site.test\nscore BUY 7.5\n"), 9.5);
        assert_eq!(total("unwelcomelist_from friend@site.test\nblacklist_from *@site.test\n"), 105.0);
        // A rule that is not run is no part of a meta.
        assert_eq!(total("unwelcomelist_from friend@site.test\nscore BUY 0\n"), 1.0);
        let (outcome, ..) = check("required_score -200\n");
        assert!(outcome.is_spam() && outcome.required == -200.0);
    }

    #[test]
    fn what_is_written_is_what_the_user_wants() {
        assert_eq!(check("").1, "site -95.0\nChecker-Version=...;Level=".replace("Checker-Version=...;", ""));
        let own = "clear_report_template\nreport mine _REQD_\nrequired_score 3\nadd_header all Mine yes\n";
        assert_eq!(check(own).1, "mine 3.0\nLevel=;Mine=yes");
    }

    #[test]
    fn what_is_not_for_a_user_is_told_with_its_line_and_has_no_effect() {
        let own = "score BUY 1\nbody MINE /x/\ntrusted_networks 192.0.2.1\nscore NOSUCH 1\nscore OTHER 1 2\ninclude /etc/passwd\n\
                   loadplugin Mail::SpamAssassin::Plugin::TxRep\n";
        let (outcome, _, errors) = check(own);
        assert_eq!(outcome.total.value(), -97.0);
        let starts: Vec<String> = errors.iter().map(|error| error.split(' ').next().unwrap().into()).collect();
        assert_eq!(starts, ["joe:2:", "joe:3:", "joe:5:", "joe:6:", "joe:7:", "joe:4:"], "{errors:?}");
        assert!(check(&"#".repeat(BYTES_MAX + 1)).2[0].contains("more than 65536 bytes"));
    }
}
