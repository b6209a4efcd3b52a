//! Lesson of a mail: its words, taken apart as SpamAssassin's configuration says, and its names.
//!
//! [`Study`] joins what rules see of a mail with the words of `learn`; it keeps nothing but memory to work in. What was learned is kept by the host, and
//! [`Study::recalled`] makes of it what rules are told. Lessons and questions see the same words, so fields `X-Spam-...` count in
//! neither: a mail that was marked is learned as it came. A mail that SpamAssassin wrapped in a report is learned with that.

use std::sync::{Mutex, PoisonError};

use digest::sha1;
use learn::{Collector, Corpus, Counts, Key, Opinion, Room, Sources, Terms, Tokens};
use pattern::expression::{Expression, Flags};
use rules::spam::message::{Message, mailboxes};
use rules::spam::run::{Engine, Outcome};
use rules::spam::syntax::value::Value;
use rules::spam::{Autolearn, Recalled, Settings, eval};

/// How mails are taken apart for one configuration.
#[derive(Debug, Clone, Default)]
pub struct Study {
    terms: Terms,
    rooms: Rooms,
    /// Whether it learns and is asked (`use_bayes`, `use_learner`).
    is_on: bool,
    /// Whether rules ask it (`use_bayes_rules`).
    is_asked: bool,
    /// So many words are kept (`bayes_expiry_max_db_size`).
    words_max: u64,
    /// Whether old ones are forgotten without being told (`bayes_auto_expire`).
    expires: bool,
    /// Whether mails are learned without being told (`bayes_auto_learn`).
    learns_by_itself: bool,
}

/// Lesson of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Studied {
    /// Names that it may be known by: what its recipients, its date and its body come to, and its Message-ID.
    pub ids: Vec<Box<str>>,
    /// When it came, in seconds since 1970; none where it does not say.
    pub at: Option<i64>,
    /// Its words.
    pub tokens: Tokens,
}

impl Study {
    /// Reads a configuration.
    pub fn new(engine: &Engine) -> Study {
        let settings = engine.settings();
        let is = |name: &str| settings.number(name, 1.0) != 0.0;
        let is_on = is("use_bayes") && is("use_learner");
        Study {
            terms: terms(engine, settings),
            rooms: Rooms::default(),
            is_on,
            is_asked: is_on && is("use_bayes_rules"),
            words_max: settings.number("bayes_expiry_max_db_size", 150_000.0).clamp(0.0, 1e12) as u64,
            expires: is("bayes_auto_expire"),
            learns_by_itself: is_on && is("bayes_auto_learn"),
        }
    }

    /// So many words are kept; beyond it old ones are forgotten.
    pub fn words_max(&self) -> u64 {
        self.words_max
    }

    /// Whether mails are learned of which the rules are sure.
    pub fn learns_by_itself(&self) -> bool {
        self.learns_by_itself
    }

    /// Has the outcome say what would be learned, where nothing is learned without being told.
    pub fn tell_unlearned(&self, engine: &Engine, outcome: &mut Outcome) {
        if self.learns_by_itself {
            outcome.autolearn = Some(Autolearn { is_unavailable: true, ..engine.autolearn(outcome) });
        }
    }

    /// Whether old tokens expire automatically.
    pub fn expires(&self) -> bool {
        self.expires
    }

    /// Whether anything is learned.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// How mails are taken apart.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Lesson of a mail; `None` where the configuration excludes it.
    pub fn lesson(&self, engine: &Engine, mail: &Message) -> Option<Studied> {
        let tokens = self.tokens(engine, mail)?;
        Some(Studied { ids: ids(mail), at: eval::received_at(mail), tokens })
    }

    /// The words that what was learned is asked for; none where it is not asked.
    pub fn question(&self, engine: &Engine, mail: &Message) -> Option<Tokens> {
        if self.is_asked { self.tokens(engine, mail) } else { None }
    }

    fn tokens(&self, engine: &Engine, mail: &Message) -> Option<Tokens> {
        let metadata = engine.metadata(mail);
        if !self.is_on || metadata.is_ignored {
            return None;
        }
        let mut room = self.rooms.take().unwrap_or_else(|| Room::new(&self.terms.stop_words));
        let mut collector = Collector::new(&self.terms, &mut room);
        mail.visible().iter().for_each(|line| collector.visible(line));
        mail.invisible().iter().for_each(|line| collector.invisible(line));
        mail.uris().iter().flat_map(|uri| &uri.cleaned).for_each(|uri| collector.uri(uri));
        let fields = mail.fields().iter().filter(|field| !is_mark(&field.name));
        collector.header(fields.map(|field| (&*field.name, &*field.value)), &people);
        metadata.fields.iter().for_each(|(name, value)| collector.known(name, value));
        let tokens = collector.finish();
        self.rooms.give_back(room);
        Some(tokens)
    }

    /// Facts for the rules about a mail of so many words, by the records of the words; `None` where too little was
    /// learned. With it come the words that decided.
    pub fn recalled(&self, words: usize, corpus: Corpus, counts: &[Counts]) -> Option<(Recalled, Vec<Key>)> {
        if !self.is_asked || !corpus.is_enough(&self.terms) {
            return None;
        }
        let hapaxes = self.terms.hapaxes;
        let likely = |counts: &Counts| learn::probability(*counts, corpus, hapaxes);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let known = count(counts.iter().filter(|counts| likely(counts).is_some()).count());
        let opinion = learn::opinion(counts.iter().copied(), corpus, hapaxes);
        let Some(Opinion { probability, words: decided }) = opinion else {
            return Some((Recalled { words: count(words), known, ..Recalled::default() }, Vec::new()));
        };
        let speaks_for_spam = |key: &&Key| {
            let counts = counts.iter().find(|counts| counts.key == **key);
            counts.and_then(likely).is_some_and(|probability| probability >= 0.5)
        };
        let spam = count(decided.iter().filter(speaks_for_spam).count());
        let ham = count(decided.len()) - spam;
        Some((Recalled { probability: Some(probability), words: count(words), known, spam, ham }, decided))
    }
}

/// Rooms that nobody works in: as many as threads have worked at a time.
#[derive(Debug, Default)]
struct Rooms(Mutex<Vec<Room>>);

/// A room of more bytes is not kept.
const ROOM_BYTES_MAX: usize = 8 << 20;

impl Rooms {
    fn take(&self) -> Option<Room> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give_back(&self, room: Room) {
        if room.bytes() <= ROOM_BYTES_MAX {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(room);
        }
    }
}

impl Clone for Rooms {
    fn clone(&self) -> Rooms {
        Rooms::default()
    }
}

/// Fields that scanners leave.
fn is_mark(name: &[u8]) -> bool {
    name.get(..7).is_some_and(|start| start.eq_ignore_ascii_case(b"x-spam-"))
}

fn people(value: &[u8]) -> Vec<learn::Mailbox> {
    let mailbox =
        |found: rules::spam::message::Mailbox| learn::Mailbox { phrase: found.phrase, address: found.address };
    mailboxes(value).into_iter().map(mailbox).collect()
}

/// The names of a mail, as SpamAssassin gives them.
pub(crate) fn ids(mail: &Message) -> Vec<Box<str>> {
    let line = |name: &[u8]| mail.field(name).map(|field| field.line()).unwrap_or_default();
    let body = hex(&sha1::digest(&with_line_feeds(mail.full_body())));
    let all = [&line(b"To")[..], b"\0", &line(b"Date"), b"\0", body.as_bytes()].concat();
    let made = hex(&sha1::digest(&all)) + "@sa_generated";
    let own = mail.field(b"Message-Id").and_then(|field| {
        let id = field.value.trim_ascii().strip_prefix(b"<")?.strip_suffix(b">")?;
        (!id.is_empty()).then(|| String::from_utf8_lossy(id).replace(['\t', '\r', '\n'], " "))
    });
    std::iter::once(made).chain(own).map(String::into_boxed_str).collect()
}

/// A body whose lines end in LF alone, where its first ends in CRLF.
fn with_line_feeds(body: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    let first = body.split_inclusive(|&byte| byte == b'\n').next().unwrap_or_default();
    if !first.ends_with(b"\r\n") {
        return body.into();
    }
    let lines = body.split_inclusive(|&byte| byte == b'\n');
    lines
        .flat_map(|line| line.strip_suffix(b"\r\n").map_or([line, b""], |line| [line, b"\n"]))
        .flatten()
        .copied()
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn terms(engine: &Engine, settings: &Settings) -> Terms {
    let usual = Terms::default();
    let number = |name: &str, usual: u64| settings.number(name, usual as f64).clamp(0.0, 1e9) as u64;
    let lower = |word: &[u8]| word.to_ascii_lowercase();
    let ignored = settings.all_words("bayes_ignore_header").iter().flat_map(|words| split(words));
    Terms {
        stop_words: languages(engine).iter().filter_map(|language| stop_words(settings, language)).collect(),
        word_bytes_max: number("bayes_max_token_length", usual.word_bytes_max as u64) as usize,
        ignored_fields: ignored.map(|name| lower(name).into()).collect(),
        sources: sources(settings, usual.sources),
        hapaxes: settings.number("bayes_use_hapaxes", 1.0) != 0.0,
        ham_min: number("bayes_min_ham_num", usual.ham_min),
        spam_min: number("bayes_min_spam_num", usual.spam_min),
    }
}

/// The languages whose stop words say nothing: those of the last line that names some.
fn languages(engine: &Engine) -> Vec<String> {
    let settings = engine.rules().settings.iter().rev();
    let named = settings.filter(|setting| &*setting.name == "bayes_stopword_languages").find_map(|setting| {
        let Value::Words(words) = &setting.value else { return None };
        Some(words.join(&b' '))
    });
    let Some(named) = named else { return vec!["en".into()] };
    let text = String::from_utf8_lossy(&named).to_lowercase();
    let words = text.split(|letter: char| letter == ',' || letter.is_ascii_whitespace());
    words.filter(|word| !word.is_empty() && *word != "disable").map(str::to_owned).collect()
}

fn stop_words(settings: &Settings, language: &str) -> Option<Expression> {
    let text = settings.text(&format!("bayes_stopword_{language}"))?;
    // Of several, the last counts.
    let text = split(text).last()?;
    Expression::new(&[b"^(?i)", text, b"$"].concat(), Flags::NONE).ok()
}

fn sources(settings: &Settings, mut sources: Sources) -> Sources {
    for word in settings.all_words("bayes_token_sources").iter().flat_map(|words| split(words)) {
        let word = word.to_ascii_lowercase();
        let (name, is_on) = match word.strip_prefix(b"no") {
            Some(b"ne") => (&b"all"[..], false),
            Some(name) => (name, false),
            None => (&word[..], true),
        };
        let all = name == b"all";
        for (known, source) in [
            (&b"header"[..], &mut sources.header),
            (b"visible", &mut sources.visible),
            (b"invisible", &mut sources.invisible),
            (b"uri", &mut sources.uri),
        ] {
            if all || name == known {
                *source = is_on;
            }
        }
    }
    sources
}

fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use rules::spam::message::MessageLimits;
    use rules::spam::run::{EngineOptions, Expressions};
    use rules::spam::{File, Limits, Loader, Options};

    use super::*;

    fn engine(text: &str) -> Engine {
        let mut loader = Loader::new(Options { default_plugins: true, ..Options::default() }, Limits::default());
        let file = File { name: "own.cf".into(), bytes: text.as_bytes().to_vec() };
        loader.read(&file, &mut |_, _| Err(String::new()));
        Engine::new(loader.finish(&Expressions), EngineOptions::default())
    }

    fn studied(engine: &Engine, mail: &[u8]) -> Option<Studied> {
        let mail = Message::read(mail, engine.reading(), &MessageLimits::default());
        Study::new(engine).lesson(engine, &mail)
    }

    const MAIL: &str = "Received: from a (b [192.0.2.1]) by c; Thu, 22 Aug 2002 12:34:53 +0100\nFrom: A <a@b.example>\n\
                        Message-Id: <x@y>\nSubject: hello there\n\nsome words\n";

    #[test]
    fn a_mail_is_known_by_what_it_is_and_by_its_name() {
        let engine = engine("");
        let found = studied(&engine, MAIL.as_bytes()).unwrap();
        assert_eq!((found.at, &*found.ids[1]), (Some(1_030_016_093), "x@y"));
        let marked = format!("X-Spam-Level: ***\n{MAIL}");
        assert_eq!(studied(&engine, marked.as_bytes()).unwrap(), found, "a mark changes nothing");
        let wired = studied(&engine, MAIL.replace('\n', "\r\n").as_bytes()).unwrap();
        assert_eq!(wired, found, "nor do line ends");
        assert_ne!(studied(&engine, MAIL.replace("words", "others").as_bytes()).unwrap().ids[0], found.ids[0]);
    }

    #[test]
    fn the_configuration_says_what_is_taken_and_of_whom() {
        let count = |text: &str| studied(&engine(text), MAIL.as_bytes()).map_or(0, |found| found.tokens.keys().len());
        let all = count("");
        assert!(count("bayes_token_sources none visible\n") < all);
        assert_eq!(count("bayes_token_sources none\n"), 0);
        assert_eq!(count("bayes_token_sources all\n"), all);
        assert_eq!(count("bayes_stopword_en (?:words|some)\n"), all - 2);
        assert_eq!(count("bayes_stopword_en (?:words|some)\nbayes_stopword_languages disable\n"), all);
        assert!(count("bayes_ignore_header From\n") < all);
        assert_eq!(
            [count("bayes_ignore_from *@b.example\n"), count("use_bayes 0\n"), count("bayes_ignore_to x@y\n")],
            [0, 0, all]
        );
    }

    #[test]
    fn too_little_is_not_asked_and_unknown_words_have_no_probability() {
        let study = Study::new(&engine("bayes_min_spam_num 2\nbayes_min_ham_num 2\n"));
        let key = |key: u8| [key; 5];
        let spam = [Counts { key: key(1), spam: 2, ham: 0 }];
        assert_eq!(study.recalled(7, Corpus { spam: 2, ham: 1 }, &spam), None);
        let corpus = Corpus { spam: 2, ham: 2 };
        let nothing = Recalled { words: 7, ..Recalled::default() };
        assert_eq!(study.recalled(7, corpus, &[]), Some((nothing, vec![])));
        let (recalled, decided) = study.recalled(7, corpus, &spam).unwrap();
        assert_eq!((recalled.spam, recalled.ham, recalled.known, decided), (1, 0, 1, vec![key(1)]));
        // Half of what was learned is spam, which counts like a word that says nothing.
        let probability = recalled.probability.unwrap();
        assert!((0.74..0.75).contains(&probability), "{probability}");
    }
}
