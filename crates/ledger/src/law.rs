//! The law of a ledger: what the trait promises, as tests that run over any implementation.
//!
//! [`LAWS`] are run over an empty ledger each, [`follows_the_model`] and [`answers_alike`] over ledgers that may share their storage, and
//! [`loses_nothing_at_once`] opens some of its own. All panic where the law is broken.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use std::collections::BTreeMap;

use learn::{Corpus, Key, Snapshot, Tokens};

use crate::{
    Conduct, Counts as By, Error, Fuzzy, Greeting, Learned, Ledger, Lesson, Mark, NAME_BYTES_MAX, Name, Summary,
};

/// A law: its name, and the test over an empty ledger.
pub type Law = (&'static str, fn(&mut dyn Ledger));

/// Laws of an empty ledger.
pub const LAWS: [Law; 10] = [
    ("learned, corrected, forgotten", a_mail_is_learned_once_corrected_and_forgotten),
    ("greylisting waits", a_mail_has_to_wait_once_and_for_all_of_its_recipients),
    ("deliveries vouch", who_has_delivered_in_three_hours_vouches),
    ("owners", each_owner_has_words_of_their_own),
    ("snapshots", a_snapshot_is_what_was_exported_and_a_bad_one_changes_nothing),
    ("expiry", words_of_no_use_are_forgotten_and_those_of_use_stay),
    ("senders", a_sender_is_known_for_each_mail_once_and_for_what_somebody_says),
    ("reports", a_mail_is_like_those_that_were_reported_until_somebody_says_that_it_is_none),
    ("odd names", names_may_be_long_and_of_any_bytes),
    ("odd times", times_may_be_any),
];

const MINUTE: i64 = 60;
const DAY: i64 = 86_400;

fn key(word: u8) -> Key {
    [0, 0, 0, 0, word]
}

fn lesson(id: &str, is_spam: bool, words: &[u8], at: i64) -> Lesson {
    let tokens = Tokens::of(words.iter().map(|&word| key(word)).collect());
    Lesson { is_spam, ids: vec![id.into(), format!("{id}@other").into()], at, tokens, corrects: true }
}

fn counts(ledger: &mut dyn Ledger, word: u8) -> Option<(u64, u64)> {
    let (_, found) = ledger.recall("", &[key(word)]).unwrap();
    found.first().map(|counts| (counts.spam, counts.ham))
}

fn exported(ledger: &mut dyn Ledger, owner: &str) -> Vec<Snapshot> {
    let mut items = Vec::new();
    let mut push = |item| {
        items.push(item);
        Ok(())
    };
    ledger.export(owner, &mut push).unwrap();
    items
}

fn a_mail_is_learned_once_corrected_and_forgotten(ledger: &mut dyn Ledger) {
    let lessons = [lesson("a", true, &[1, 2], 100), lesson("b", false, &[2, 3], 200)];
    assert_eq!(ledger.learn("", &lessons).unwrap(), [Learned::New, Learned::New]);
    assert_eq!(ledger.learn("", &lessons[..1]).unwrap(), [Learned::Known]);
    assert_eq!([1, 2, 3, 4].map(|word| counts(ledger, word)), [Some((1, 0)), Some((1, 1)), Some((0, 1)), None]);
    let opposite = lesson("a", false, &[1, 2], 100);
    let by_chance = Lesson { corrects: false, ..opposite.clone() };
    assert_eq!(ledger.learn("", &[by_chance]).unwrap(), [Learned::Known], "what a person said stands");
    assert_eq!(ledger.learn("", std::slice::from_ref(&opposite)).unwrap(), [Learned::Corrected]);
    assert_eq!([1, 2].map(|word| counts(ledger, word)), [Some((0, 1)), Some((0, 2))]);
    assert!(ledger.forget("", &opposite.ids, &opposite.tokens).unwrap());
    assert!(!ledger.forget("", &opposite.ids, &opposite.tokens).unwrap());
    assert_eq!([1, 2].map(|word| counts(ledger, word)), [None, Some((0, 1))]);
    let summary = ledger.summary("").unwrap();
    assert_eq!((summary.corpus, summary.words, summary.mails), (Corpus { spam: 0, ham: 1 }, 2, 1));
}

fn greeting(triplets: &[u8], vouchers: &[u8]) -> Greeting {
    let marks = |names: &[u8]| names.iter().map(|&name| [name; 16]).collect();
    Greeting { triplets: marks(triplets), vouchers: marks(vouchers), delay: 5 * MINUTE }
}

fn a_mail_has_to_wait_once_and_for_all_of_its_recipients(ledger: &mut dyn Ledger) {
    let mut greet = |triplets: &[u8], at| ledger.greet(&greeting(triplets, &[]), at).unwrap();
    assert!(!greet(&[1], 0) && !greet(&[1], 5 * MINUTE - 1), "too soon");
    assert!(!greet(&[1, 2], 5 * MINUTE), "the other has not waited");
    assert!(greet(&[1], 5 * MINUTE) && greet(&[1, 2], 10 * MINUTE));
    assert!(greet(&[1], 30 * DAY) && greet(&[1], 60 * DAY), "it is known for as long as it comes");
    assert!(!greet(&[1], 97 * DAY), "and no longer");
    assert!(!greet(&[3], 0) && !greet(&[3], 3 * DAY), "it has come too late");
    assert!(greet(&[3], 3 * DAY + 5 * MINUTE));
    assert!(!greet(&[4], 10 * DAY) && !greet(&[4], 9 * DAY), "a clock that goes back is no waiting");
}

fn who_has_delivered_in_three_hours_vouches(ledger: &mut dyn Ledger) {
    for at in [0, 1, MINUTE, 61 * MINUTE] {
        ledger.vouch(&[[9; 16]], at).unwrap();
    }
    assert!(!ledger.greet(&greeting(&[1], &[9]), 62 * MINUTE).unwrap(), "a burst counts once");
    ledger.vouch(&[[9; 16]], 130 * MINUTE).unwrap();
    assert!(ledger.greet(&greeting(&[1], &[8, 9]), 131 * MINUTE).unwrap());
    assert!(!ledger.greet(&greeting(&[2], &[9]), 40 * DAY).unwrap(), "that was long ago");
}

fn each_owner_has_words_of_their_own(ledger: &mut dyn Ledger) {
    ledger.learn("a", &[lesson("x", true, &[1], 1)]).unwrap();
    assert_eq!(counts(ledger, 1), None);
    assert_eq!(ledger.summary("a").unwrap().words, 1);
    assert_eq!(ledger.summary("b").unwrap(), Summary::default());
}

fn a_snapshot_is_what_was_exported_and_a_bad_one_changes_nothing(ledger: &mut dyn Ledger) {
    ledger.learn("", &[lesson("a", true, &[1, 2], 100), lesson("b", false, &[2], 200)]).unwrap();
    let items = exported(ledger, "");
    assert_eq!(items.len(), 3 + 2 + 2);
    ledger.import("other", &mut items.iter().cloned().map(Ok)).unwrap();
    assert_eq!(exported(ledger, "other"), items);
    let broken = [Ok(Snapshot::Version), Err(Error::Line(2, "it is wrong".into()))];
    assert!(ledger.import("", &mut broken.into_iter()).is_err());
    assert_eq!(exported(ledger, ""), items);
}

fn words_of_no_use_are_forgotten_and_those_of_use_stay(ledger: &mut dyn Ledger) {
    let words = |from: u32, count: u32| {
        Tokens::of(
            (from..from + count)
                .map(|word| {
                    let [a, b, c, d] = word.to_be_bytes();
                    [0, a, b, c, d]
                })
                .collect(),
        )
    };
    let many = |from: u32, days: i64| Lesson {
        tokens: words(from, 30_000),
        at: days * DAY,
        ..lesson(&from.to_string(), true, &[], 0)
    };
    let lessons: Vec<Lesson> = (0..5_u32).map(|part| many(part * 30_000, i64::from(part) * 20)).collect();
    ledger.learn("", &lessons).unwrap();
    let used = words(0, 1_000);
    ledger.touch("", used.keys(), 80 * DAY).unwrap();
    let forgotten = ledger.expire("", 120_000, 80 * DAY).unwrap();
    assert_eq!(forgotten, 29_000, "all of the first day but those of use");
    assert_eq!(ledger.recall("", used.keys()).unwrap().1.len(), 1_000);
    assert_eq!(ledger.expire("", 150_000, 80 * DAY).unwrap(), 0);
}

fn a_sender_is_known_for_each_mail_once_and_for_what_somebody_says(ledger: &mut dyn Ledger) {
    let conduct = |mail: u8| Conduct {
        mail: Some([mail; 16]),
        sender: vec![[1; 16], [2; 16]],
        recipients: vec![[3; 16]],
        welcome: 10.0,
        dilution: 1.0,
    };
    let rated = By::Rated { score: 4.0, moved: 3.0 };
    let known = |ledger: &mut dyn Ledger, names: &[u8]| {
        let names: Vec<Name> = names.iter().map(|&name| [name; 16]).collect();
        let found = ledger.standings("", &names).unwrap();
        found.into_iter().map(|standing| (standing.count, standing.total)).collect::<Vec<_>>()
    };
    assert_eq!(known(ledger, &[1, 9]), [(0, 0.0), (0, 0.0)]);
    for _ in 0..2 {
        ledger.count("", &conduct(9), rated, 100).unwrap();
        assert_eq!(known(ledger, &[1, 2, 3, 9]), [(1, 4.0), (1, 4.0), (1, -10.0), (1, 3.0)]);
    }
    for (points, total) in [(20.0, 28.0), (-20.0, -20.0), (20.0, 28.0)] {
        let unsigned = Conduct { sender: vec![[7; 16]], ..conduct(9) };
        ledger.count("", &unsigned, By::Taught(points), 100).unwrap();
        assert_eq!(known(ledger, &[1, 9]), [(2, total), (2, 2.0 * points)]);
    }
    ledger.count("", &conduct(9), By::Forgotten, 100).unwrap();
    assert_eq!(known(ledger, &[1, 9]), [(1, 4.0), (0, 0.0)]);
    ledger.count("other", &conduct(8), rated, 200).unwrap();
    assert_eq!(known(ledger, &[1, 8]), [(1, 4.0), (0, 0.0)], "each owner for themselves");
    assert_eq!((ledger.summary("").unwrap().senders, ledger.summary("other").unwrap().senders), (3, 4));
    assert_eq!(ledger.forget_senders(100, 150).unwrap(), 3);
    assert_eq!(ledger.forget_senders(1, 150).unwrap(), 3);
    assert_eq!(ledger.summary("other").unwrap().senders, 1);
}

fn a_mail_is_like_those_that_were_reported_until_somebody_says_that_it_is_none(ledger: &mut dyn Ledger) {
    let text = |from: u64, changed: usize| {
        let value = |place: usize| if place < changed { 7_000 + place as u64 } else { from + place as u64 };
        Fuzzy { shingles: (0..32).map(value).collect(), parts: Vec::new() }
    };
    let places = |ledger: &mut dyn Ledger, fuzzy: &Fuzzy| ledger.alike("", fuzzy).unwrap().places;
    assert_eq!(places(ledger, &text(100, 0)), 0);
    ledger.report("", &text(100, 0), true, 10).unwrap();
    ledger.report("", &text(100, 1), true, 20).unwrap();
    ledger.report("", &text(500, 0), true, 30).unwrap();
    assert_eq!(ledger.summary("").unwrap().reports, 2, "what is nearly the same is kept once");
    assert_eq!([0, 1, 10, 32].map(|changed| places(ledger, &text(100, changed))), [32, 31, 22, 0]);
    // Equal values at other positions do not count.
    let mut turned = text(100, 0);
    turned.shingles.rotate_left(1);
    assert_eq!(places(ledger, &turned), 0);
    let part = Fuzzy { shingles: Vec::new(), parts: vec![[9; 16]] };
    ledger.report("", &part, true, 10).unwrap();
    assert!(ledger.alike("", &part).unwrap().has_part && !ledger.alike("other", &part).unwrap().has_part);
    ledger.report("", &text(100, 2), false, 40).unwrap();
    assert_eq!((places(ledger, &text(100, 0)), places(ledger, &text(500, 0))), (0, 32));
    ledger.forget_reports(10, 25).unwrap();
    assert!(!ledger.alike("", &part).unwrap().has_part && places(ledger, &text(500, 0)) == 32);
    ledger.forget_reports(0, 0).unwrap();
    assert_eq!((places(ledger, &text(500, 0)), ledger.summary("").unwrap().reports), (0, 0));
}

fn names_may_be_long_and_of_any_bytes(ledger: &mut dyn Ledger) {
    let long = "ö".repeat(NAME_BYTES_MAX / 2);
    let longer = format!("{long}beyond the bound");
    let owners = [long.as_str(), "", "a\0b", "'; drop table word; --", "\u{10ffff}", "%", "\\x00"];
    let mut keys = vec![[0; 5], [255; 5], [0x80, 0, 0, 0, 0], [0x7f, 255, 255, 255, 255]];
    keys.sort_unstable();
    for (owner, spam) in owners.iter().zip(1_u64..) {
        for mail in 0..spam {
            let lesson =
                Lesson { tokens: Tokens::of(keys.clone()), ..lesson(&format!("{mail}\0{longer}"), true, &[], 1) };
            // Of ids as long as that only the beginning is kept.
            let known = ledger.learn(owner, std::slice::from_ref(&lesson)).unwrap();
            assert_eq!((known, ledger.learn(owner, &[lesson]).unwrap()), (vec![Learned::New], vec![Learned::Known]));
        }
    }
    for (owner, spam) in owners.iter().zip(1_u64..) {
        let (corpus, found) = ledger.recall(owner, &keys).unwrap();
        assert_eq!(corpus, Corpus { spam, ham: 0 }, "{owner:?}");
        let found: Vec<(Key, u64)> = found.into_iter().map(|counts| (counts.key, counts.spam)).collect();
        assert_eq!(found, keys.iter().map(|&key| (key, spam)).collect::<Vec<_>>(), "{owner:?}");
        let items = exported(ledger, owner);
        ledger.import("copy", &mut items.iter().cloned().map(Ok)).unwrap();
        assert_eq!(exported(ledger, "copy"), items);
    }
    assert_eq!(ledger.summary(&longer).unwrap().corpus.spam, 1, "a longer name is cut");
}

fn times_may_be_any(ledger: &mut dyn Ledger) {
    let times = [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX - 1, i64::MAX];
    let conduct = Conduct { mail: Some([1; 16]), sender: vec![[2; 16]], dilution: 1.0, ..Conduct::default() };
    for (at, mail) in times.into_iter().zip(0..) {
        ledger.learn("", &[lesson(&mail.to_string(), true, &[mail], at)]).unwrap();
        ledger.touch("", &[key(mail)], at).unwrap();
        ledger.expire("", 0, at).unwrap();
        for delay in [i64::MIN, 0, i64::MAX] {
            let greeting = Greeting { triplets: vec![[mail; 16], [9; 16]], vouchers: vec![[8; 16]], delay };
            ledger.greet(&greeting, at).unwrap();
        }
        ledger.vouch(&[[7; 16], [7; 16]], at).unwrap();
        ledger.count("", &conduct, By::Taught(f64::from(mail)), at).unwrap();
        let fuzzy = Fuzzy { shingles: vec![u64::MAX, 0, u64::from(mail)], parts: vec![[mail; 16], [mail; 16]] };
        ledger.report("", &fuzzy, true, at).unwrap();
        ledger.alike("", &fuzzy).unwrap();
        ledger.forget_reports(u64::MAX, at).unwrap();
        ledger.forget_senders(u64::MAX, at).unwrap();
    }
    let huge = learn::Counts { key: key(1), spam: u64::MAX, ham: i64::MAX.cast_unsigned() };
    let items = [Snapshot::Version, Snapshot::Spam(u64::MAX), Snapshot::Word(huge, i64::MAX)];
    ledger.import("", &mut items.into_iter().map(Ok)).unwrap();
    ledger.learn("", &[lesson("more", true, &[1], 1)]).unwrap();
    assert_eq!(counts(ledger, 1), Some((i64::MAX.cast_unsigned(), i64::MAX.cast_unsigned())));
}

/// Numbers without end, from a seed.
pub struct Chance(u64);

impl Chance {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `most`.
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most.max(1)
    }

    fn byte(&mut self, most: u64) -> u8 {
        u8::try_from(self.below(most)).unwrap_or(u8::MAX)
    }

    fn is_so(&mut self) -> bool {
        self.below(2) == 0
    }

    /// A mail of a few that there are, with words of its own.
    fn lesson(&mut self) -> Lesson {
        let mail = self.byte(12);
        let words: Vec<u8> = (0..9).map(|word| word * (mail % 5 + 1)).collect();
        let corrects = self.below(4) > 0;
        Lesson { corrects, ..lesson(&format!("m{mail}"), self.is_so(), &words, i64::from(mail)) }
    }
}

/// The plain model of words.
#[derive(Default)]
struct Model {
    mails: BTreeMap<Box<str>, bool>,
    words: BTreeMap<Key, (u64, u64)>,
    corpus: Corpus,
}

impl Model {
    fn count(&mut self, tokens: &Tokens, is_spam: bool, by: i64) {
        let of = |(spam, ham): &mut (u64, u64)| {
            let count = if is_spam { spam } else { ham };
            *count = count.checked_add_signed(by).expect("never below none");
        };
        for key in tokens.keys() {
            of(self.words.entry(*key).or_default());
        }
        self.words.retain(|_, counts| *counts != (0, 0));
        let count = if is_spam { &mut self.corpus.spam } else { &mut self.corpus.ham };
        *count = count.checked_add_signed(by).expect("never below none");
    }

    fn learn(&mut self, lesson: &Lesson) -> Learned {
        let before = lesson.ids.iter().find_map(|id| Some((id.clone(), *self.mails.get(id)?)));
        match &before {
            Some((_, is_spam)) if *is_spam == lesson.is_spam || !lesson.corrects => return Learned::Known,
            Some(_) => _ = self.forget(&lesson.ids, &lesson.tokens),
            None => {}
        }
        self.count(&lesson.tokens, lesson.is_spam, 1);
        self.mails.extend(lesson.ids.first().map(|id| (id.clone(), lesson.is_spam)));
        if before.is_some() { Learned::Corrected } else { Learned::New }
    }

    fn forget(&mut self, ids: &[Box<str>], tokens: &Tokens) -> bool {
        let Some(is_spam) = ids.iter().find_map(|id| self.mails.remove(id)) else { return false };
        self.count(tokens, is_spam, -1);
        true
    }

    /// A ledger knows what the model knows.
    fn is_as(&self, ledger: &mut dyn Ledger, owner: &str) {
        let mut mails = BTreeMap::new();
        let mut words = BTreeMap::new();
        for item in exported(ledger, owner) {
            match item {
                Snapshot::Word(counts, _) => _ = words.insert(counts.key, (counts.spam, counts.ham)),
                Snapshot::Mail(is_spam, id) => _ = mails.insert(id, is_spam),
                Snapshot::Spam(spam) => assert_eq!(spam, self.corpus.spam),
                Snapshot::Ham(ham) => assert_eq!(ham, self.corpus.ham),
                Snapshot::Version | Snapshot::Other => {}
            }
        }
        assert_eq!((words, mails), (self.words.clone(), self.mails.clone()));
    }
}

/// Ledgers that share their storage take turns with lessons, and know what the plain model knows.
pub fn follows_the_model(ledgers: &mut [Box<dyn Ledger>], owner: &str, seed: u64, steps: usize) {
    let (mut chance, mut model) = (Chance::new(seed), Model::default());
    let count = ledgers.len() as u64;
    for step in 0..steps {
        let turn = chance.below(count);
        let ledger = &mut ledgers[usize::try_from(turn).unwrap()];
        let lessons: Vec<Lesson> = (0..=chance.below(3)).map(|_| chance.lesson()).collect();
        if chance.below(3) > 0 {
            let wanted: Vec<Learned> = lessons.iter().map(|lesson| model.learn(lesson)).collect();
            assert_eq!(ledger.learn(owner, &lessons).unwrap(), wanted, "seed {seed}, step {step}");
        } else {
            let wanted = model.forget(&lessons[0].ids, &lessons[0].tokens);
            let done = ledger.forget(owner, &lessons[0].ids, &lessons[0].tokens).unwrap();
            assert_eq!(done, wanted, "seed {seed}, step {step}");
        }
        if step % 16 == 0 {
            ledgers.iter_mut().for_each(|ledger| model.is_as(&mut **ledger, owner));
        }
    }
    ledgers.iter_mut().for_each(|ledger| model.is_as(&mut **ledger, owner));
}

/// Several that learn and forget the same mails at once: the counts are those of the mails that are known in the end.
pub fn loses_nothing_at_once(open: &(dyn Fn() -> Box<dyn Ledger> + Sync), owner: &str, seed: u64, steps: usize) {
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || {
                let (mut ledger, mut chance) = (open(), Chance::new(seed * 7 + thread));
                for _ in 0..steps {
                    let lesson = chance.lesson();
                    match chance.below(8) {
                        0 => ledger.touch(owner, lesson.tokens.keys(), DAY).unwrap(),
                        1 | 2 => drop(ledger.forget(owner, &lesson.ids, &lesson.tokens).unwrap()),
                        _ => drop(ledger.learn(owner, &[lesson, chance.lesson()]).unwrap()),
                    }
                }
            });
        }
    });
    let mut ledger = open();
    let mut model = Model::default();
    for item in exported(&mut *ledger, owner) {
        let Snapshot::Mail(is_spam, id) = item else { continue };
        let mail: u8 = id.trim_start_matches('m').parse().unwrap();
        let words: Vec<u8> = (0..9).map(|word| word * (mail % 5 + 1)).collect();
        model.learn(&lesson(&id, is_spam, &words, 0));
    }
    model.is_as(&mut *ledger, owner);
}

/// Several that count mails of one sender at once, each mail by two of them: each counts once.
pub fn counts_each_mail_at_once(open: &(dyn Fn() -> Box<dyn Ledger> + Sync), owner: &str) {
    const MAILS: u8 = 60;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let mut ledger = open();
                for mail in (0..MAILS).filter(|mail| mail % 2 == thread % 2) {
                    let names = vec![[200; 16], [mail % 5 + 201; 16]];
                    let mail = Some([mail; 16]);
                    let conduct = Conduct { mail, sender: names, dilution: 1.0, ..Conduct::default() };
                    ledger.count(owner, &conduct, By::Rated { score: 1.0, moved: 1.0 }, 1).unwrap();
                }
            });
        }
    });
    let known = open().standings(owner, &[[200; 16]]).unwrap();
    assert_eq!(known.first().map(|known| (known.count, known.total)), Some((u32::from(MAILS), f64::from(MAILS))));
}

/// Two implementations answer all calls alike; the first may be several ledgers that share their storage, and take turns.
pub fn answers_alike(ledgers: &mut [Box<dyn Ledger>], other: &mut dyn Ledger, seed: u64, steps: usize) {
    let mut chance = Chance::new(seed);
    let mut now = 1_000 * DAY;
    for step in 0..steps {
        let turn = chance.below(ledgers.len() as u64);
        let ledger = &mut *ledgers[usize::try_from(turn).unwrap()];
        now += i64::try_from(chance.below(40)).unwrap() * MINUTE * if chance.below(40) == 0 { 1_000 } else { 1 };
        let owner = ["", "ann"][usize::from(chance.is_so())];
        let ask = ask(&mut chance, owner, now);
        let (answer, wanted) = (ask(ledger), ask(other));
        assert_eq!(answer, wanted, "seed {seed}, step {step}");
    }
    for owner in ["", "ann"] {
        let wanted = (other.summary(owner).unwrap(), exported(other, owner));
        for ledger in &mut *ledgers {
            assert_eq!((ledger.summary(owner).unwrap(), exported(&mut **ledger, owner)), wanted, "seed {seed}");
        }
    }
}

/// A call, with its answer as text.
type Ask = Box<dyn Fn(&mut dyn Ledger) -> String>;

fn ask(chance: &mut Chance, owner: &'static str, now: i64) -> Ask {
    let names = |chance: &mut Chance| -> Vec<Name> { (0..chance.below(4)).map(|_| [chance.byte(9); 16]).collect() };
    let lesson = chance.lesson();
    match chance.below(14) {
        0..=2 => {
            let lessons = vec![Lesson { at: now, ..lesson }, chance.lesson()];
            Box::new(move |ledger| format!("{:?}", ledger.learn(owner, &lessons).unwrap()))
        }
        3 => Box::new(move |ledger| format!("{:?}", ledger.forget(owner, &lesson.ids, &lesson.tokens).unwrap())),
        4 => Box::new(move |ledger| {
            ledger.touch(owner, lesson.tokens.keys(), now).unwrap();
            let fuzzy = Fuzzy { shingles: (0..32).collect(), parts: vec![[3; 16]] };
            let names: Vec<Name> = (0..9).map(|name| [name; 16]).collect();
            let recalled = ledger.ask(owner, lesson.tokens.keys(), &names, Some(&fuzzy)).unwrap();
            assert_eq!(recalled.words, ledger.recall(owner, lesson.tokens.keys()).unwrap().1);
            assert_eq!(ledger.ask(owner, &[], &[], None).unwrap().alike, None);
            format!("{recalled:?} {:?}", ledger.summary(owner).unwrap())
        }),
        5..=7 => {
            let delay = i64::try_from(chance.below(3)).unwrap() * 20 * MINUTE;
            let greeting = Greeting { triplets: names(chance), vouchers: names(chance), delay };
            Box::new(move |ledger| format!("{:?}", ledger.greet(&greeting, now).unwrap()))
        }
        8 => {
            let vouchers: Vec<Mark> = names(chance);
            let vouchers: Vec<Mark> = vouchers.first().copied().into_iter().collect();
            Box::new(move |ledger| format!("{:?}", ledger.vouch(&vouchers, now).unwrap()))
        }
        9 | 10 => {
            let mail = chance.is_so().then_some([chance.byte(5) + 100; 16]);
            let (welcome, dilution) = (0.5, 0.98);
            let conduct = Conduct { mail, sender: names(chance), recipients: names(chance), welcome, dilution };
            let score = chance.below(100) as f64 / 7.0;
            let by = [By::Rated { score, moved: score / 2.0 }, By::Taught(score - 7.0), By::Forgotten];
            let by = by[usize::try_from(chance.below(3)).unwrap()];
            let all: Vec<Name> = (0..9).chain(100..105).map(|name| [name; 16]).collect();
            Box::new(move |ledger| {
                ledger.count(owner, &conduct, by, now).unwrap();
                format!("{:?}", ledger.standings(owner, &all).unwrap())
            })
        }
        11 | 12 => {
            let from = u64::from(chance.byte(4)) * 40;
            let changed = chance.below(6);
            let shingles = (0..32).map(|at| if at < changed { 7_000 + from + at } else { from + at }).collect();
            let fuzzy = Fuzzy { shingles, parts: names(chance) };
            let is_spam = chance.below(4) > 0;
            Box::new(move |ledger| {
                let before = ledger.alike(owner, &fuzzy).unwrap();
                ledger.report(owner, &fuzzy, is_spam, now).unwrap();
                format!("{before:?} {:?}", ledger.alike(owner, &fuzzy).unwrap())
            })
        }
        _ => Box::new(move |ledger| {
            let senders = ledger.forget_senders(u64::MAX, now - DAY).unwrap();
            ledger.forget_reports(u64::MAX, now - DAY).unwrap();
            format!("{senders} {} {:?}", ledger.expire(owner, 100, now).unwrap(), ledger.summary(owner).unwrap())
        }),
    }
}

/// A mail that came to one and is tried again at the other passes after the delay, at both.
pub fn waits_once(one: &mut dyn Ledger, other: &mut dyn Ledger) {
    let greeting = greeting(&[200], &[201]);
    assert!(!one.greet(&greeting, 0).unwrap() && !other.greet(&greeting, 4 * MINUTE).unwrap(), "too soon");
    assert!(other.greet(&greeting, 5 * MINUTE).unwrap() && one.greet(&greeting, 6 * MINUTE).unwrap());
    one.vouch(&greeting.vouchers, 0).unwrap();
    other.vouch(&greeting.vouchers, 61 * MINUTE).unwrap();
    one.vouch(&greeting.vouchers, 122 * MINUTE).unwrap();
    let stranger = Greeting { triplets: vec![[202; 16]], ..greeting };
    assert!(other.greet(&stranger, 123 * MINUTE).unwrap(), "deliveries to both vouch");
}
