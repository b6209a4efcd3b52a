//! The same configuration for Perl's Mail::SpamAssassin and for us: names, kinds, priorities, score sets, flags, calls and
//! expressions are the same, for the stock set of Debian's package, for newer rules where they are at hand
//! (`SLUICE_DATA`), and for files in which lines are broken.
//!
//! What may differ: `eval_kind` and `expected_priority` say.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rules::spam::syntax::field::{Field, HeaderTest};
use rules::spam::{
    Census, Checker, File, Kind, Limits, Loader, Options, Rule, Rules, Severity, Test, Unchecked, View, source,
};
use serde_json::Value;

/// The stock set as Debian installs it: rules, and the folder of plugins and local settings.
pub const STOCK: [&str; 2] = ["/usr/share/spamassassin", "/etc/spamassassin"];

/// Reads folders as SpamAssassin does: what loads plugins first.
pub(crate) fn load(folders: &[&Path]) -> Rules {
    load_with(folders, false, &Unchecked)
}

/// As [`load`], offline or not, with a check of the expressions.
pub fn load_with(folders: &[&Path], local_tests_only: bool, checker: &dyn Checker) -> Rules {
    let mut files = Vec::new();
    for folder in folders {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        source::order(&mut names);
        files.extend(names.into_iter().map(|name| folder.join(name)));
    }
    // A stable sort: within a kind the folders keep their order.
    files.sort_by_key(|path| path.extension().is_some_and(|extension| extension == "cf"));
    let default_plugins = !files.iter().any(|path| path.extension().is_some_and(|extension| extension == "pre"));
    let read = |path: &Path| {
        let bytes = fs::read(path).map_err(|error| error.to_string())?;
        Ok(File { name: path.display().to_string().into(), bytes })
    };
    let mut loader =
        Loader::new(Options { default_plugins, local_tests_only, ..Options::default() }, Limits::default());
    for path in &files {
        loader
            .read(&read(path).unwrap(), &mut |place, name| read(&Path::new(&*place.file).parent().unwrap().join(name)));
    }
    loader.finish(checker)
}

/// What Perl's reader says of the folders of rules and of the site.
fn peer(rules: &Path, site: &Path, lint: bool) -> Option<Value> {
    if !Path::new("/usr/share/perl5/Mail/SpamAssassin.pm").exists() {
        eprintln!("skipped: SpamAssassin is not installed");
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peer.pl");
    let output = Command::new("perl").arg(script).arg(rules).arg(site).args(lint.then_some("lint")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&utf8(&output.stdout)).unwrap())
}

/// Bytes as letters of the same number: what Perl writes of bytes.
fn utf8(bytes: &[u8]) -> Vec<u8> {
    latin1(bytes).into_bytes()
}

pub(crate) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

fn field_text(field: &Field) -> String {
    let modifiers = field.modifiers.iter().fold(String::new(), |mut text, modifier| {
        let _ = write!(text, ":{}", format!("{modifier:?}").to_lowercase());
        text
    });
    format!("{}{modifiers}", field.name)
}

/// To SpamAssassin tests of MIME headers and of details of URIs are functions over the body.
fn eval_kind(rule: &Rule) -> String {
    match rule.test.as_ref().unwrap().kind() {
        Kind::MimeHeader | Kind::UriDetail => "body_eval".into(),
        kind => kind.name(),
    }
}

/// Flags in order. Metas become `net` by what they are made of: how deep, depends on the order of a hash in Perl, so that
/// it differs from run to run. Ours go all the way.
fn flags(text: &str, inherits_net: bool) -> String {
    let mut words: Vec<&str> = text.split_whitespace().filter(|word| !(inherits_net && *word == "net")).collect();
    words.sort_unstable();
    words.join(" ")
}

/// Scores, flags and the like of one of ours, as the script writes them.
fn ours(rule: &Rule) -> BTreeMap<&'static str, Value> {
    let test = rule.test.as_ref().unwrap();
    let mut out = BTreeMap::from([
        ("kind", eval_kind(rule).into()),
        ("scores", rule.scores().to_vec().into()),
        ("mimeheader", matches!(test, Test::MimeHeader(_)).into()),
        ("exists", matches!(test, Test::Header(HeaderTest::Exists(_))).into()),
    ]);
    out.insert("flags", flags(&latin1(rule.flags.as_bytes()), rule.inherits_net).into());
    if let Some(description) = &rule.description {
        out.insert("description", latin1(description).into());
    }
    if let Test::Header(header) = test {
        out.insert("header", field_text(header.field()).into());
        if let HeaderTest::Matches { negated, if_unset, .. } = header {
            out.insert("negated", (*negated).into());
            out.insert("unset", if_unset.as_ref().map(|text| latin1(text)).into());
        }
    }
    if let (Some(expression), false) = (test.expression(), matches!(test, Test::MimeHeader(_))) {
        let flags = &expression.flags;
        let source = latin1(&expression.source);
        out.insert("expression", if flags.is_empty() { source } else { format!("(?{flags}){source}") }.into());
    }
    if let Test::Eval(_, call) = test {
        let words = std::iter::once(call.function.to_string()).chain(call.arguments.iter().map(|text| latin1(text)));
        out.insert("call", words.collect::<Vec<_>>().into());
    }
    out
}

/// One of theirs, with what Perl writes around an expression taken off.
fn theirs(rule: &Value, inherits_net: bool) -> BTreeMap<&'static str, Value> {
    let mut out = BTreeMap::new();
    for key in ["kind", "scores", "mimeheader", "exists", "description", "header", "negated", "unset", "call"] {
        out.insert(key, rule[key].clone());
    }
    let scores: Vec<f64> = rule["scores"].as_array().unwrap().iter().map(|score| score.as_f64().unwrap()).collect();
    out.insert("scores", scores.into());
    out.insert("flags", flags(rule["flags"].as_str().unwrap(), inherits_net).into());
    if let Some(expression) = rule["expression"].as_str() {
        let inner = expression.strip_prefix("(?^aa:").and_then(|text| text.strip_suffix(')')).unwrap();
        let inner = inner.strip_prefix("(?aa)").unwrap_or(inner);
        // Perl escapes what stands for captured tags.
        out.insert(
            "expression",
            inner.replace(r"%\{", "%{").replace(r"GB_TO_ADDR\}", "GB_TO_ADDR}").replace(r"FOO\}", "FOO}").into(),
        );
    }
    out
}

/// Whether the priorities agree. Theirs of functions that ask the network become -100 when they are made ready to run, and
/// metas have none.
fn same_priority(rule: &Rule, theirs: &Value) -> bool {
    theirs["priority"].as_i64().is_none_or(|priority| {
        priority == rule.priority() || (priority == -100 && rule.is_net() && matches!(rule.test, Some(Test::Eval(..))))
    })
}

/// What differs between ours and theirs, by rule.
fn differences(rules: &Rules, peer: &Value) -> Vec<String> {
    let theirs_all = peer["rules"].as_object().unwrap();
    let mut found = Vec::new();
    for rule in rules.live() {
        let Some(their_rule) = theirs_all.get(&*rule.name) else {
            found.push(format!("{}: ours alone", rule.name));
            continue;
        };
        let (ours, theirs) = (ours(rule), theirs(their_rule, rule.inherits_net));
        for (key, value) in &ours {
            if *key == "call" && theirs["call"].is_null() {
                // A call that they cannot make.
                continue;
            }
            if theirs.get(key).unwrap_or(&Value::Null) != value {
                found.push(format!("{} {key}: ours {value}, theirs {:?}", rule.name, theirs.get(key)));
            }
        }
        if !same_priority(rule, their_rule) {
            found.push(format!("{} priority: ours {}, theirs {}", rule.name, rule.priority(), their_rule["priority"]));
        }
    }
    let missing = theirs_all.keys().filter(|name| rules.get(name).is_none_or(|rule| rule.test.is_none()));
    found.extend(missing.map(|name| format!("{name}: theirs alone")));
    found
}

fn assert_same(rules: &Rules, peer: &Value) {
    let found = differences(rules, peer);
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found[..found.len().min(60)].join("\n"));
    assert!(rules.live().count() > 20, "too few rules to say anything");
}

fn errors(rules: &Rules) -> Vec<String> {
    let errors = rules.problems().iter().filter(|problem| problem.severity == Severity::Error);
    errors.map(ToString::to_string).collect()
}

#[test]
fn the_stock_set_is_read_as_perl_reads_it() {
    let [folder, site] = STOCK.map(Path::new);
    if !folder.join("72_active.cf").exists() {
        eprintln!("skipped: SpamAssassin is not installed");
        return;
    }
    let rules = load(&[folder, site]);
    assert_eq!(errors(&rules), [""; 0]);
    let census = Census::new(&rules);
    let of = |kind: Kind| census.of(kind);
    assert_eq!((census.total(), of(Kind::Meta), census.existence), (2946, 921, 76), "{census:?}");
    assert_eq!(
        [View::Header, View::Body, View::Rawbody, View::Uri, View::Full].map(|view| of(Kind::Pattern(view))),
        [769, 622, 58, 144, 4]
    );
    assert_eq!([View::Header, View::Rawbody, View::Full].map(|view| of(Kind::Eval(view))), [104, 7, 13]);
    // Those over the body, with those over headers of parts.
    assert_eq!(of(Kind::Eval(View::Body)) + of(Kind::MimeHeader) + of(Kind::UriDetail), 206);
    assert_eq!((of(Kind::MimeHeader), of(Kind::Rbl), of(Kind::Placeholder)), (61, 66, 32));
    if let Some(peer) = peer(folder, site, false) {
        assert_same(&rules, &peer);
    }
}

#[test]
fn newer_rules_are_read_as_perl_reads_them() {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../data");
    let root = std::env::var_os("SLUICE_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let folder = root.join("mail-spamassassin/spamassassin-rules/rules");
    if !folder.is_dir() {
        eprintln!("no pack: mail-spamassassin");
        return;
    }
    // Rules apart from what loads plugins, as Perl's reader wants them.
    let scratch = tempfile::tempdir().unwrap();
    let (rules, site) = (scratch.path().join("rules"), scratch.path().join("site"));
    for (target, extension) in [(&rules, "cf"), (&site, "pre")] {
        fs::create_dir(target).unwrap();
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            if entry.path().extension().is_some_and(|found| found == extension) {
                fs::copy(entry.path(), target.join(entry.file_name())).unwrap();
            }
        }
    }
    let ours = load(&[&rules, &site]);
    assert!(ours.live().count() > 800, "{}", ours.live().count());
    if let Some(peer) = peer(&rules, &site, false) {
        assert_same(&ours, &peer);
    }
}

/// Lines that are right, odd or broken: the same rules come out. What an expression's own syntax would decide is not among
/// them.
#[test]
fn broken_files_come_to_what_they_come_to_in_perl() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let scratch = tempfile::tempdir().unwrap();
        let (rules, site) = (scratch.path().join("rules"), scratch.path().join("site"));
        fs::create_dir(&rules).unwrap();
        fs::create_dir(&site).unwrap();
        fs::write(rules.join("0.cf"), "util_rb_tld com\n").unwrap();
        fs::copy(&path, site.join("local.cf")).unwrap();
        let plugins = [
            "DKIM",
            "URIDNSBL",
            "ReplaceTags",
            "MIMEHeader",
            "AskDNS",
            "URIDetail",
            "FreeMail",
            "HeaderEval",
            "BodyEval",
        ];
        let plugins = plugins.into_iter().chain(["Check", "DNSEval", "MIMEEval", "WLBLEval", "Razor2", "Bayes"]);
        let text: String = plugins.map(|name| format!("loadplugin {}{name}\n", source::known::PLUGIN)).collect();
        fs::write(site.join("init.pre"), text).unwrap();
        let ours = load(&[&rules, &site]);
        assert!(ours.errors() > 0, "{}", path.display());
        if let Some(peer) = peer(&rules, &site, true) {
            eprintln!("{}: {} errors of ours, {} of theirs", path.display(), ours.errors(), peer["errors"]);
            assert_same(&ours, &peer);
        }
    }
}
