//! Phrase lists, read and compiled.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use pattern::words::Words;

use super::lens::Lens;
use super::line::{Entry, PHRASE_BYTES_MAX};
use super::prose::Prose;
use super::{Dialect, Settings, fold};
use crate::spam::Place;
use crate::web::loading::{Loading, Source, beside, included, lines};
use crate::web::moment::Window;

/// The kind of a phrase list. It says what a phrase without a weight does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Banned,
    Weighted,
    Exception,
}

/// Lists of phrases in the order in which they are read.
pub(crate) type Lists = Vec<(Role, Box<str>, Place)>;

/// Effect of a phrase or a combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Exception,
    Banned,
    Weighted(i32),
}

/// An effect with its circumstances.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub effect: Effect,
    /// A place in the list of categories; 0 is none.
    pub category: u32,
    pub window: Option<Window>,
}

impl Rule {
    /// Order of rules for one phrase: an exception counts before a ban, that before a weight, and of two weights the higher.
    pub fn rank(&self) -> (u8, i32) {
        match self.effect {
            Effect::Exception => (2, 0),
            Effect::Banned => (1, 0),
            Effect::Weighted(weight) => (0, weight),
        }
    }
}

/// Phrases that have to occur all.
#[derive(Debug, Clone)]
pub(super) struct Combination {
    pub members: Box<[u32]>,
    pub rule: Rule,
}

/// How many phrases there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Census {
    /// Lines with a phrase or a combination.
    pub lines: u32,
    /// Different phrases.
    pub phrases: u32,
    /// Combinations.
    pub combinations: u32,
    /// Lines with a phrase that never occurs as E2Guardian 5.3.5 reads it.
    pub revived: u32,
}

/// The phrases of a group. Immutable, to be shared by all pages.
#[derive(Debug)]
pub struct Phrases {
    pub(super) limit: i32,
    pub(super) settings: Settings,
    pub(super) words: Words,
    pub(super) lenses: Vec<Lens>,
    pub(super) texts: Vec<Box<[u8]>>,
    /// Effects of each phrase alone, one for each window of time.
    pub(super) rules: Vec<Vec<Rule>>,
    pub(super) combinations: Vec<Combination>,
    /// The combinations by their first phrase, and where those of each phrase begin.
    led: Vec<u32>,
    leads: Vec<u32>,
    pub(super) categories: Vec<Arc<str>>,
    census: Census,
}

impl Phrases {
    /// Reads lists and the files that they include, for pages that are blocked beyond `limit` points.
    pub(crate) fn load(lists: &Lists, limit: i32, settings: Settings, loading: &mut Loading<'_>) -> Phrases {
        let mut collector = Collector::new(limit, settings);
        for (role, path, place) in lists {
            if let Some(source) = loading.file(path, place) {
                collector.file(&source, Context { role: *role, category: 0, window: None }, 0, loading);
            }
        }
        collector.compile()
    }

    /// How many there are.
    pub fn census(&self) -> Census {
        self.census
    }

    /// The combinations whose first phrase is this.
    pub(super) fn led_by(&self, phrase: u32) -> &[u32] {
        let begin = |phrase: usize| self.leads.get(phrase).map_or(0, |&at| at as usize);
        self.led.get(begin(phrase as usize)..begin(phrase as usize + 1)).unwrap_or_default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The bytes that the table of phrases takes.
    pub fn bytes(&self) -> usize {
        self.words.bytes()
    }
}

/// Settings for the lines of a file until a line changes them. Included files inherit them.
#[derive(Debug, Clone, Copy)]
struct Context {
    role: Role,
    category: u32,
    window: Option<Window>,
}

/// Phrases on their way in.
struct Collector {
    limit: i32,
    settings: Settings,
    known: HashMap<Box<[u8]>, u32>,
    texts: Vec<Box<[u8]>>,
    rules: Vec<Vec<Rule>>,
    combinations: Vec<Combination>,
    categories: Vec<Arc<str>>,
    census: Census,
}

impl Collector {
    fn new(limit: i32, settings: Settings) -> Collector {
        Collector {
            limit,
            settings,
            known: HashMap::new(),
            texts: Vec::new(),
            rules: Vec::new(),
            combinations: Vec::new(),
            categories: vec!["".into()],
            census: Census::default(),
        }
    }

    fn file(&mut self, source: &Source, mut context: Context, depth: usize, loading: &mut Loading<'_>) {
        // Whatever `preservecase` says: that is about pages.
        let mut keeps_case = false;
        for (place, line) in lines(source) {
            // E2Guardian passes over a line with a byte order mark.
            let is_first = self.settings.dialect == Dialect::Sluice && place.line == 1;
            let line = if is_first && is_marked(line) { &line[MARK.len()..] } else { line };
            if line.len() < 2 {
                continue;
            }
            if line.starts_with(b"#") {
                self.directive(line, &place, &mut context, &mut keeps_case, loading);
            } else if let Some(path) = included(line) {
                self.include(&beside(&place.file, &path), &place, context, depth, loading);
            } else {
                self.entry(line, &place, context, keeps_case, loading);
            }
        }
    }

    fn include(&mut self, path: &str, place: &Place, context: Context, depth: usize, loading: &mut Loading<'_>) {
        if depth >= loading.limits.include_depth_max {
            return loading.error(place, "files include each other too deep", "take the line away");
        }
        if let Some(source) = loading.file(path, place) {
            self.file(&source, context, depth + 1, loading);
        }
    }

    fn directive(
        &mut self,
        line: &[u8],
        place: &Place,
        context: &mut Context,
        keeps_case: &mut bool,
        loading: &mut Loading<'_>,
    ) {
        if let Some(name) = category(line) {
            context.category = self.category(&name);
        } else if let Some(text) = line.strip_prefix(b"#time:") {
            context.window = Some(loading.window(text, place));
        } else if line.starts_with(b"#noconvert") {
            *keeps_case = true;
        }
    }

    /// The place of a category in the list of all.
    fn category(&mut self, name: &str) -> u32 {
        let place = self.categories.iter().position(|known| **known == *name).unwrap_or_else(|| {
            self.categories.push(name.into());
            self.categories.len() - 1
        });
        u32::try_from(place).unwrap_or(0)
    }

    fn entry(&mut self, line: &[u8], place: &Place, context: Context, keeps_case: bool, loading: &mut Loading<'_>) {
        let Some(entry) = Entry::read(line) else {
            let advice = "write <phrase><weight>";
            return match line.first() {
                Some(b'<') => loading.note(place, "the phrase is not closed, and the line is passed over", advice),
                _ if is_marked(line) => loading.note(place, "the line begins with a mark, and is passed over", advice),
                _ => loading.error(place, "this is no phrase", advice),
            };
        };
        if self.texts.len() + entry.phrases.len() + self.combinations.len() > loading.limits.phrases_max {
            return loading.error(place, "there are too many phrases", "take some away");
        }
        let warning = entry.warning.or(match (entry.weight, context.role) {
            (Some(_), Role::Banned) => Some("a phrase with a weight is not banned but counts"),
            (Some(_), Role::Exception) => Some("a phrase with a weight is no exception but counts"),
            _ => None,
        });
        if let Some(warning) = warning {
            loading.note(place, warning, "check the line");
        }
        let effect = match (entry.weight, context.role) {
            (Some(weight), _) => Effect::Weighted(weight.points(self.limit)),
            (None, Role::Exception) => Effect::Exception,
            (None, Role::Banned | Role::Weighted) => Effect::Banned,
        };
        let rule = Rule { effect, category: context.category, window: context.window };
        self.count(&entry, keeps_case);
        let members: Box<[u32]> = entry.phrases.iter().map(|phrase| self.phrase(phrase, keeps_case)).collect();
        match &*members {
            [alone] => self.alone(*alone, rule),
            _ => self.combinations.push(Combination { members, rule }),
        }
    }

    fn count(&mut self, entry: &Entry<'_>, keeps_case: bool) {
        self.census.lines += 1;
        let is_dead = |phrase: &&[u8]| {
            if is_too_long(phrase) {
                return true;
            }
            let folded = fold::phrase(phrase, Dialect::E2guardian535, keeps_case);
            let page = fold::of_page(Dialect::E2guardian535, keeps_case);
            folded.iter().any(|&byte| page.iter().all(|&of_page| of_page != byte))
        };
        self.census.revived += u32::from(entry.phrases.iter().any(is_dead));
    }

    fn phrase(&mut self, phrase: &[u8], keeps_case: bool) -> u32 {
        let shown = match self.settings.dialect {
            Dialect::Sluice => Cow::Owned(Prose::whole(phrase, keeps_case)),
            Dialect::E2guardian535 | Dialect::E2guardian558 => Cow::Borrowed(phrase),
        };
        let text: Box<[u8]> = match self.settings.dialect {
            Dialect::E2guardian535 if is_too_long(phrase) => NEVER.into(),
            dialect => fold::phrase(&shown, dialect, keeps_case).into(),
        };
        if let Some(&known) = self.known.get(&text) {
            return known;
        }
        let number = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.known.insert(text.clone(), number);
        self.texts.push(text);
        self.rules.push(Vec::new());
        number
    }

    /// Merges lines with one phrase in one window.
    fn alone(&mut self, phrase: u32, rule: Rule) {
        let Some(rules) = self.rules.get_mut(phrase as usize) else { return };
        match rules.iter_mut().find(|known| known.window == rule.window) {
            Some(known) if rule.rank() > known.rank() => *known = rule,
            Some(_) => {}
            None => rules.push(rule),
        }
    }

    fn compile(mut self) -> Phrases {
        self.census.phrases = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.census.combinations = u32::try_from(self.combinations.len()).unwrap_or(u32::MAX);
        let first = |number: u32| self.combinations[number as usize].members.first().copied().unwrap_or_default();
        let mut led: Vec<u32> = (0..self.census.combinations).collect();
        led.sort_by_key(|&number| first(number));
        let begin = |phrase: u32| led.partition_point(|&number| first(number) < phrase) as u32;
        let leads = (0..=self.census.phrases).map(begin).collect();
        let words = Words::new(self.texts.iter().map(|text| &**text));
        Phrases {
            limit: self.limit,
            settings: self.settings,
            lenses: Lens::all(&words, &self.settings),
            words,
            texts: self.texts,
            rules: self.rules,
            combinations: self.combinations,
            led,
            leads,
            categories: self.categories,
            census: self.census,
        }
    }
}

/// A phrase that no page has: this byte counts as a blank in them.
const NEVER: &[u8] = b"\0";

/// Whether a phrase never occurs as E2Guardian 5.3.5 reads it, since its end is cut off with the zero behind it.
const fn is_too_long(phrase: &[u8]) -> bool {
    phrase.len() == PHRASE_BYTES_MAX
}

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

fn is_marked(line: &[u8]) -> bool {
    line.starts_with(MARK)
}

/// The name in `#listcategory: "name"`.
pub(crate) fn category(line: &[u8]) -> Option<String> {
    let name = line.strip_prefix(b"#listcategory:")?.trim_ascii();
    let name = name.strip_prefix(b"\"").unwrap_or(name);
    let end = name.iter().position(|&byte| byte == b'"').unwrap_or(name.len());
    Some(String::from_utf8_lossy(&name[..end]).into_owned())
}
