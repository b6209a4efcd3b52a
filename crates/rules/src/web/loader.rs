//! A configuration on its way in: what its files name is loaded once, however many groups share it.

use std::collections::HashMap;
use std::sync::Arc;

use super::bypass::{Bypass, Subject};
use super::config::{Options, Value};
use super::group::Group;
use super::list::{self, Bound, Kind, List};
use super::loading::{Loading, Source};
use super::manner::{Level, Manner};
use super::messages::Messages;
use super::phrase::{Dialect, Lists, Phrases, Role, Settings};
use super::shared::Shared;
use super::squidguard::{self, Branch, Plan, Redirects, Rules, Scope, Word};
use super::story::{self, Reader, State, Story};
use super::template::Template;
use crate::spam::Place;

/// How much was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Census {
    /// Lists, each counted once.
    pub lists: usize,
    /// Their entries.
    pub entries: usize,
    /// The bytes of their tables.
    pub bytes: usize,
    /// Phrases of all groups.
    pub phrases: usize,
    /// Lines of phrase lists with a phrase that never occurs as E2Guardian 5.3.5 reads it.
    pub revived: usize,
}

/// The options that name the phrase lists of pages.
pub(super) const PHRASE_LISTS: [&str; 3] = ["bannedphraselist", "weightedphraselist", "exceptionphraselist"];

/// The lists that phrases are of, and the limit of their group.
type PhrasesKey = (Vec<(Role, Box<str>)>, i32);

/// A configuration on its way in: lists and phrases that several groups name are loaded once.
pub(super) struct Loader<'l> {
    pub loading: Loading<'l>,
    dialect: Dialect,
    lists: HashMap<(Kind, Box<str>), Arc<List>>,
    phrases: HashMap<PhrasesKey, Arc<Phrases>>,
    templates: HashMap<Box<str>, Option<Arc<Template>>>,
}

impl<'l> Loader<'l> {
    pub fn new(loading: Loading<'l>, dialect: Dialect) -> Loader<'l> {
        Loader { loading, dialect, lists: HashMap::new(), phrases: HashMap::new(), templates: HashMap::new() }
    }

    /// The options of the main file.
    pub fn main(&mut self, path: &str) -> Options {
        let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let mut options = Options::new(folder);
        if let Some(source) = self.loading.file(path, &Place { file: path.into(), line: 0 }) {
            options.read(&source, &mut self.loading);
        }
        options
    }

    /// The options of a group, beside those of the main file.
    pub fn options(&mut self, path: &str, number: u32, main: &Options) -> Options {
        let mut options = Options::of_group(number, main);
        if let Some(source) = self.loading.file(path, &Place { file: path.into(), line: 0 }) {
            options.read(&source, &mut self.loading);
        }
        options
    }

    pub fn settings(&mut self, options: &Options) -> Settings {
        let loading = &mut self.loading;
        Settings {
            dialect: self.dialect,
            weighting: options.number("weightedphrasemode", 2, loading),
            views: options.number("phrasefiltermode", 2, loading),
            case: options.number("preservecase", 0, loading),
            decodes_percent: options.is_on("hexdecodecontent"),
            page_bytes_max: options.number("maxcontentfiltersize", 2048u64, loading).saturating_mul(1024),
        }
    }

    pub fn shared(&mut self, options: &Options) -> Shared {
        let settings = self.settings(options);
        let types = options.get("textmimetypes").map_or("", |value| &value.text).to_ascii_lowercase();
        let types = types.split(',').map(|kind| kind.trim().into()).collect();
        let messages = self.messages(options);
        let lists = self.bind(options);
        let preauth = match options.get("preauthstoryboard").cloned() {
            Some(value) => {
                let source = self.loading.file(&value.text, &value.place);
                self.story(source, &lists)
            }
            None => Story::default(),
        };
        let leaves_addresses = options.is("searchsitelistforip", "off");
        Shared { settings, messages, lists, preauth, types, leaves_addresses }
    }

    /// The texts of the language that is set, where the host has them.
    fn messages(&mut self, options: &Options) -> Messages {
        let Some(folder) = options.get("languagedir") else { return Messages::default() };
        let language = options.get("language").map_or("ukenglish", |value| &value.text);
        let path = format!("{}/{language}/messages", folder.text);
        match self.loading.optional(&path) {
            Some(source) => Messages::read(&source, &mut self.loading),
            None => Messages::default(),
        }
    }

    pub fn group(&mut self, path: &str, number: u32, main: &Options, shared: &Arc<Shared>) -> Group {
        let options = self.options(path, number, main);
        let story = match options.get("storyboard").cloned() {
            Some(value) => self.loading.file(&value.text, &value.place),
            None => Some(Source { name: "standard.story".into(), bytes: story::STANDARD.as_bytes().into() }),
        };
        self.group_of(&options, story, number, main, shared)
    }

    fn group_of(
        &mut self,
        options: &Options,
        story: Option<Source>,
        number: u32,
        main: &Options,
        shared: &Arc<Shared>,
    ) -> Group {
        let limit = options.number("naughtynesslimit", 50, &mut self.loading);
        let phrases = self.phrases(options, &PHRASE_LISTS, limit, shared.settings);
        let search_limit = options.number("searchtermlimit", 0, &mut self.loading);
        let search = (search_limit > 0).then(|| {
            let names = ["bannedsearchtermlist", "weightedsearchtermlist", "exceptionsearchtermlist"];
            let has_own = names.iter().any(|name| options.get(name).is_some());
            let names = if has_own { names } else { PHRASE_LISTS };
            (search_limit, self.phrases(options, &names, search_limit, shared.settings))
        });
        let lists = self.bind(options);
        let story = self.story(story, &lists);
        Group {
            number,
            name: options.get("groupname").map(|value| value.text.clone()).unwrap_or_default(),
            shared: shared.clone(),
            lists,
            story,
            rules: None,
            limit,
            category_points_min: options.number("categorydisplaythreshold", 0, &mut self.loading),
            phrases,
            search,
            bypass: self.bypass(options, Subject::Site, ["bypass", "bypasskey"], number),
            scan_bypass: self.bypass(options, Subject::Url, ["infectionbypass", "infectionbypasskey"], number),
            bypasses_faults_alone: !options.is("infectionbypasserrorsonly", "off"),
            manner: self.manner(options, main),
            intercepts: options.is_on("sslmitm"),
        }
    }

    /// The terms on which blocks of one kind can be passed. Without a key they are of the host's secret.
    fn bypass(&mut self, options: &Options, subject: Subject, names: [&str; 2], group: u32) -> Option<Bypass> {
        let [seconds, key] = names;
        let seconds: i64 = options.number(seconds, 0, &mut self.loading);
        let seconds = u64::try_from(seconds).ok().filter(|&seconds| seconds > 0)?;
        let key = options.get(key).map(|value| value.text.as_bytes().into()).unwrap_or_default();
        Some(Bypass { subject, seconds, key, group })
    }

    /// How a group tells that something is blocked. Its options count before those of the main file.
    fn manner(&mut self, options: &Options, main: &Options) -> Manner {
        let option = |name| options.get(name).or_else(|| main.get(name));
        let number = |value: &Value| value.text.parse().ok();
        let level = match option("reportinglevel") {
            None => Level::Template,
            Some(value) => number(value).and_then(Level::of_number).unwrap_or_else(|| {
                self.loading.error(&value.place, "there is no such level", "write a number from -1 to 3");
                Level::Template
            }),
        };
        let address = option("accessdeniedaddress").filter(|value| {
            let is_url = ["http://", "https://"].iter().any(|scheme| value.text.starts_with(scheme))
                && value.text.bytes().all(|byte| byte.is_ascii_graphic());
            if !is_url {
                self.loading.error(&value.place, format!("{} is no URL of HTTP", value.text), "write http://...");
            }
            is_url
        });
        Manner {
            level,
            address: address.map(|value| value.text.clone()),
            has_own_delimiters: option("nonstandarddelimiter").is_none_or(|value| &*value.text != "off"),
            template: (level == Level::Template).then(|| self.template(options, main)).flatten(),
            redirects: Redirects::default(),
        }
    }

    /// The template of the language that is set, where the host has it.
    fn template(&mut self, options: &Options, main: &Options) -> Option<Arc<Template>> {
        let folder = main.get("languagedir")?;
        let language = main.get("language").map_or("ukenglish", |value| &value.text);
        let name = options.get("htmltemplate").or_else(|| main.get("htmltemplate"));
        let path = format!("{}/{language}/{}", folder.text, name.map_or("template.html", |value| &value.text));
        if let Some(known) = self.templates.get(&*path) {
            return known.clone();
        }
        let source = self.loading.optional(&path);
        let template = source.and_then(|source| match Template::read(&source.bytes) {
            Some(template) => Some(Arc::new(template)),
            None => {
                let place = Place { file: source.name, line: 0 };
                self.loading.error(&place, "the template is too large", "another page is shown");
                None
            }
        });
        self.templates.insert(path.into(), template.clone());
        template
    }

    pub fn phrases(&mut self, options: &Options, names: &[&str; 3], limit: i32, settings: Settings) -> Arc<Phrases> {
        let roles = [Role::Banned, Role::Weighted, Role::Exception];
        let named = roles.into_iter().zip(names).filter_map(|(role, name)| Some((role, options.get(name)?)));
        let lists: Lists = named.map(|(role, value)| (role, value.text.clone(), value.place.clone())).collect();
        let key = (lists.iter().map(|(role, path, _)| (*role, path.clone())).collect(), limit);
        if let Some(known) = self.phrases.get(&key) {
            return known.clone();
        }
        let phrases = Arc::new(Phrases::load(&lists, limit, settings, &mut self.loading));
        self.phrases.insert(key, phrases.clone());
        phrases
    }

    /// The configuration of squidGuard with this main file.
    pub fn plan(&mut self, path: &str) -> Plan {
        let source = self.loading.file(path, &Place { file: path.into(), line: 0 });
        source.map(|source| squidguard::read(&source, &mut self.loading)).unwrap_or_default()
    }

    /// The group of a branch of access rules.
    pub fn branch(&mut self, branch: &Branch, number: u32, plan: &Plan, shared: &Arc<Shared>) -> Group {
        let nothing = Options::new("");
        let group = self.group_of(&nothing, None, number, &nothing, shared);
        let mut group = Group { limit: 0, intercepts: true, ..group };
        group.name = branch.source.clone();
        let words: Vec<Word> = branch.words.iter().map(|word| self.word(word, plan, &mut group.lists)).collect();
        let words = if words.is_empty() { vec![Word { scope: Scope::All, passes: false }] } else { words };
        group.rules = Some(Rules { source: branch.source.clone(), words });
        let of_destinations = plan.destinations.iter();
        group.manner.redirects = Redirects {
            own: branch.redirect.clone(),
            of_destinations: of_destinations
                .filter_map(|(name, destination)| Some((name.clone(), destination.redirect.clone()?)))
                .collect(),
        };
        group
    }

    /// A word of `pass`, with its lists at the end of those of the group.
    fn word(&mut self, word: &str, plan: &Plan, lists: &mut Vec<Bound>) -> Word {
        let (name, passes) = word.strip_prefix('!').map_or((word, true), |name| (name, false));
        match name {
            // A `!` before them is passed over.
            "any" | "all" => Word { scope: Scope::All, passes: true },
            "none" => Word { scope: Scope::All, passes: false },
            "in-addr" => Word { scope: Scope::Addresses, passes },
            name => {
                let destination = plan.destinations.get(name);
                let begin = lists.len();
                let definitions = destination.iter().flat_map(|destination| &destination.lists);
                lists.extend(definitions.flat_map(|definition| self.bound(definition)));
                let when = destination.map(|destination| destination.when.clone()).unwrap_or_default();
                Word { scope: Scope::Destination { lists: (begin..lists.len()).collect(), when }, passes }
            }
        }
    }

    /// A list, and behind it the network rules in its files.
    fn bound(&mut self, definition: &list::Definition) -> impl Iterator<Item = Bound> + use<> {
        let list = self.list(definition);
        let network = list.has_network().then(|| list::Definition { kind: Kind::Network, ..definition.clone() });
        let definitions = std::iter::once(definition.clone()).chain(network);
        definitions.map(move |definition| Bound { list: list.clone(), definition })
    }

    fn bind(&mut self, options: &Options) -> Vec<Bound> {
        options.lists.values().flat_map(|definition| self.bound(definition)).collect()
    }

    fn list(&mut self, definition: &list::Definition) -> Arc<List> {
        let key = (definition.kind, definition.path.clone());
        if let Some(known) = self.lists.get(&key) {
            return known.clone();
        }
        let decodes = self.dialect == Dialect::Sluice;
        let list = list::load(definition.kind, &definition.path, &definition.place, decodes, &mut self.loading);
        let list = Arc::new(list);
        self.lists.insert(key, list.clone());
        list
    }

    fn story(&mut self, source: Option<Source>, lists: &[Bound]) -> Story {
        let mut reader = Reader::default();
        if let Some(source) = source {
            reader.file(&source, 0, &mut self.loading);
        }
        let resolve = |state: State, name: &str| {
            let of_kind = |kind: Kind| {
                let is_it = move |bound: &Bound| {
                    bound.definition.kind == kind && bound.definition.name.eq_ignore_ascii_case(name)
                };
                lists.iter().position(is_it)
            };
            state.kinds().iter().filter_map(|kind| of_kind(*kind)).collect()
        };
        reader.finish(&resolve, &mut self.loading)
    }

    pub fn census(&self) -> Census {
        let sections = || self.lists.values().flat_map(|list| &list.sections);
        Census {
            lists: self.lists.len(),
            entries: sections().map(|section| section.body.len()).sum(),
            bytes: sections().map(|section| section.body.bytes()).sum(),
            phrases: self.phrases.values().map(|phrases| phrases.census().phrases as usize).sum(),
            revived: self.phrases.values().map(|phrases| phrases.census().revived as usize).sum(),
        }
    }
}
