//! Tests over files that are damaged, full, or shared.

use super::*;

fn lesson(id: &str, is_spam: bool, words: &[u8], at: i64) -> Lesson {
    let tokens = Tokens::of(words.iter().map(|&word| [0, 0, 0, 0, word]).collect());
    Lesson { is_spam, ids: vec![id.into(), format!("{id}@other").into()], at, tokens, corrects: true }
}

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("learned.db");
    (folder, path)
}

fn counts(ledger: &mut Sqlite, word: u8) -> Option<(u64, u64)> {
    let (_, found) = ledger.recall("", &[[0, 0, 0, 0, word]]).unwrap();
    found.first().map(|counts| (counts.spam, counts.ham))
}

#[test]
fn a_mail_is_learned_once_corrected_and_forgotten() {
    let (_folder, path) = file();
    let mut ledger = Sqlite::open(&path).unwrap();
    let lessons = [lesson("a", true, &[1, 2], 100), lesson("b", false, &[2, 3], 200)];
    assert_eq!(ledger.learn("", &lessons).unwrap(), [Learned::New, Learned::New]);
    assert_eq!(ledger.learn("", &lessons[..1]).unwrap(), [Learned::Known]);
    assert_eq!([1, 2, 3, 4].map(|word| counts(&mut ledger, word)), [Some((1, 0)), Some((1, 1)), Some((0, 1)), None]);
    let opposite = lesson("a", false, &[1, 2], 100);
    let by_chance = Lesson { corrects: false, ..opposite.clone() };
    assert_eq!(ledger.learn("", &[by_chance]).unwrap(), [Learned::Known], "what a person said stands");
    assert_eq!(ledger.learn("", std::slice::from_ref(&opposite)).unwrap(), [Learned::Corrected]);
    assert_eq!([1, 2].map(|word| counts(&mut ledger, word)), [Some((0, 1)), Some((0, 2))]);
    assert!(ledger.forget("", &opposite.ids, &opposite.tokens).unwrap());
    assert!(!ledger.forget("", &opposite.ids, &opposite.tokens).unwrap());
    assert_eq!([1, 2].map(|word| counts(&mut ledger, word)), [None, Some((0, 1))]);
    let summary = ledger.summary("").unwrap();
    assert_eq!((summary.corpus, summary.words, summary.mails), (Corpus { spam: 0, ham: 1 }, 2, 1));
}

const MINUTE: i64 = 60;
const DAY: i64 = 86_400;

fn greeting(triplets: &[u8], vouchers: &[u8]) -> Greeting {
    let marks = |names: &[u8]| names.iter().map(|&name| [name; 16]).collect();
    Greeting { triplets: marks(triplets), vouchers: marks(vouchers), delay: 5 * MINUTE }
}

#[test]
fn a_mail_has_to_wait_once_and_for_all_of_its_recipients() {
    let (_folder, path) = file();
    let mut ledger = Sqlite::open(&path).unwrap();
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

#[test]
fn who_has_delivered_in_three_hours_vouches() {
    let (_folder, path) = file();
    let mut ledger = Sqlite::open(&path).unwrap();
    for at in [0, 1, MINUTE, 61 * MINUTE] {
        ledger.vouch(&[[9; 16]], at).unwrap();
    }
    assert!(!ledger.greet(&greeting(&[1], &[9]), 62 * MINUTE).unwrap(), "a burst counts once");
    ledger.vouch(&[[9; 16]], 130 * MINUTE).unwrap();
    assert!(ledger.greet(&greeting(&[1], &[8, 9]), 131 * MINUTE).unwrap());
    assert!(!ledger.greet(&greeting(&[2], &[9]), 40 * DAY).unwrap(), "that was long ago");
}

#[test]
fn of_marks_those_that_wait_longest_are_forgotten() {
    let (_folder, path) = file();
    let mut ledger = Sqlite::open(&path).unwrap();
    let all: Vec<u8> = (0..10).collect();
    ledger.greet(&greeting(&all[..1], &[]), 0).unwrap();
    ledger.greet(&greeting(&all[..1], &[]), 5 * MINUTE).unwrap();
    for (at, name) in all.iter().enumerate().skip(1) {
        ledger.greet(&greeting(&[*name], &[]), 6 * MINUTE + at as i64).unwrap();
    }
    ledger.write(|transaction| marks::forget(transaction, 4, 10 * MINUTE)).unwrap();
    let kept: Vec<u8> = ledger
        .read(|transaction| {
            let mut ask = transaction.prepare("SELECT id FROM mark ORDER BY id")?;
            ask.query_map([], |row| row.get::<_, Mark>(0))?.map(|mark| mark.map(|mark| mark[0])).collect()
        })
        .unwrap();
    assert_eq!(kept, [0, 7, 8, 9], "who has waited stays");
    ledger.write(|transaction| marks::forget(transaction, 4, 3 * DAY)).unwrap();
    let count: i64 = ledger.read(|file| file.query_row("SELECT count(*) FROM mark", [], |row| row.get(0))).unwrap();
    assert_eq!(count, 1);
}

#[test]
fn each_owner_has_words_of_their_own() {
    let (_folder, path) = file();
    let mut ledger = Sqlite::open(&path).unwrap();
    ledger.learn("a", &[lesson("x", true, &[1], 1)]).unwrap();
    assert_eq!(counts(&mut ledger, 1), None);
    assert_eq!(ledger.summary("a").unwrap().words, 1);
    assert_eq!(ledger.summary("b").unwrap(), Summary::default());
}

#[test]
fn a_snapshot_is_what_was_exported_and_a_bad_one_changes_nothing() {
    let (_folder, path) = file();
    let mut ledger = Sqlite::open(&path).unwrap();
    ledger.learn("", &[lesson("a", true, &[1, 2], 100), lesson("b", false, &[2], 200)]).unwrap();
    let export = |ledger: &mut Sqlite, owner: &str| {
        let mut items = Vec::new();
        ledger
            .export(owner, &mut |item| {
                items.push(item);
                Ok(())
            })
            .unwrap();
        items
    };
    let items = export(&mut ledger, "");
    assert_eq!(items.len(), 3 + 2 + 2);
    ledger.import("other", &mut items.iter().cloned().map(Ok)).unwrap();
    assert_eq!(export(&mut ledger, "other"), items);
    let broken = [Ok(Snapshot::Version), Err(Error::Line(2, "it is wrong".into()))];
    assert!(ledger.import("", &mut broken.into_iter()).is_err());
    assert_eq!(export(&mut ledger, ""), items);
}

#[test]
fn words_of_no_use_are_forgotten_and_those_of_use_stay() {
    let (_folder, path) = file();
    let mut ledger = Sqlite::open(&path).unwrap();
    const DAY: i64 = 86_400;
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

#[test]
fn what_is_no_database_and_what_is_not_ours_is_told() {
    let (_folder, path) = file();
    std::fs::write(&path, [b'x'; 5000]).unwrap();
    assert!(matches!(Sqlite::open(&path), Err(Error::Damaged(_))));
    std::fs::remove_file(&path).unwrap();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE a (b)").unwrap();
    assert!(matches!(Sqlite::open(&path), Err(Error::Foreign(_))));
    assert!(matches!(Sqlite::open(&path.join("below")), Err(Error::Failed(..))));
}

#[test]
fn a_file_with_a_damaged_page_is_an_error_and_no_panic() {
    let (_folder, path) = file();
    let many: Vec<u8> = (0..=255).collect();
    Sqlite::open(&path).unwrap().learn("", &[lesson("a", true, &many, 1)]).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.get_mut(4096..).unwrap().fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let mut ledger = Sqlite::open(&path).unwrap();
    assert!(matches!(ledger.recall("", &[[0; 5]]), Err(Error::Damaged(_))));
    assert!(matches!(ledger.check(), Err(Error::Damaged(_)) | Err(Error::Failed(..))));
}

#[test]
fn a_full_disk_keeps_what_was_there() {
    let (_folder, path) = file();
    let mut ledger = Sqlite::open(&path).unwrap();
    ledger.learn("", &[lesson("a", true, &[1], 1)]).unwrap();
    let pages: i64 = ledger.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    ledger.connection.pragma_update(None, "max_page_count", pages).unwrap();
    let large = Lesson {
        tokens: Tokens::of(
            (0..20_000_u16)
                .map(|word| {
                    let [a, b] = word.to_be_bytes();
                    [1, 0, 0, a, b]
                })
                .collect(),
        ),
        ..lesson("b", true, &[], 1)
    };
    assert!(matches!(ledger.learn("", &[large]), Err(Error::Full(_))));
    let summary = ledger.summary("").unwrap();
    assert_eq!((summary.corpus.spam, summary.words, summary.mails), (1, 1, 1));
}

#[test]
fn two_at_once_lose_nothing() {
    let (_folder, path) = file();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let path = &path;
            scope.spawn(move || {
                let mut ledger = Sqlite::open(path).unwrap();
                for mail in 0..50 {
                    ledger.learn("", &[lesson(&format!("{thread}-{mail}"), true, &[1], 1)]).unwrap();
                }
            });
        }
    });
    let mut ledger = Sqlite::open(&path).unwrap();
    assert_eq!((counts(&mut ledger, 1), ledger.summary("").unwrap().corpus.spam), (Some((100, 0)), 100));
}

#[test]
fn a_sender_is_known_for_each_mail_once_and_for_what_somebody_says() {
    use crate::Counts as By;
    let (_folder, path) = file();
    let mut ledger = Sqlite::open(&path).unwrap();
    let conduct = |mail: u8| Conduct {
        mail: Some([mail; 16]),
        sender: vec![[1; 16], [2; 16]],
        recipients: vec![[3; 16]],
        welcome: 10.0,
        dilution: 1.0,
    };
    let rated = By::Rated { score: 4.0, moved: 3.0 };
    let known = |ledger: &mut Sqlite, names: &[u8]| {
        let names: Vec<Name> = names.iter().map(|&name| [name; 16]).collect();
        let found = ledger.standings("", &names).unwrap();
        found.into_iter().map(|standing| (standing.count, standing.total)).collect::<Vec<_>>()
    };
    assert_eq!(known(&mut ledger, &[1, 9]), [(0, 0.0), (0, 0.0)]);
    for _ in 0..2 {
        ledger.count("", &conduct(9), rated, 100).unwrap();
        assert_eq!(known(&mut ledger, &[1, 2, 3, 9]), [(1, 4.0), (1, 4.0), (1, -10.0), (1, 3.0)]);
    }
    for (points, total) in [(20.0, 28.0), (-20.0, -20.0), (20.0, 28.0)] {
        let unsigned = Conduct { sender: vec![[7; 16]], ..conduct(9) };
        ledger.count("", &unsigned, By::Taught(points), 100).unwrap();
        assert_eq!(known(&mut ledger, &[1, 9]), [(2, total), (2, 2.0 * points)]);
    }
    ledger.count("", &conduct(9), By::Forgotten, 100).unwrap();
    assert_eq!(known(&mut ledger, &[1, 9]), [(1, 4.0), (0, 0.0)]);
    ledger.count("other", &conduct(8), rated, 200).unwrap();
    assert_eq!(known(&mut ledger, &[1, 8]), [(1, 4.0), (0, 0.0)], "each owner for themselves");
    assert_eq!((ledger.summary("").unwrap().senders, ledger.summary("other").unwrap().senders), (3, 4));
    assert_eq!(ledger.forget_senders(100, 150).unwrap(), 3);
    assert_eq!(ledger.forget_senders(1, 150).unwrap(), 3);
    assert_eq!(ledger.summary("other").unwrap().senders, 1);
}

#[test]
fn files_of_earlier_forms_are_taken_over() {
    const FUZZY: &str = "DROP TABLE text; DROP TABLE shingle; DROP TABLE part;";
    for (form, missing) in [(1, "DROP TABLE mark; DROP TABLE sender;"), (2, "DROP TABLE sender;"), (3, "")] {
        let missing = &[FUZZY, missing].concat();
        let (_folder, path) = file();
        Sqlite::open(&path).unwrap().learn("", &[lesson("a", true, &[1], 1)]).unwrap();
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(missing).unwrap();
        connection.pragma_update(None, "user_version", form).unwrap();
        drop(connection);
        let mut ledger = Sqlite::open(&path).unwrap();
        assert_eq!((ledger.summary("").unwrap().words, ledger.standings("", &[[0; 16]]).unwrap().len()), (1, 1));
        ledger.vouch(&[[0; 16]], 1).unwrap();
    }
}

#[test]
fn a_mail_is_like_those_that_were_reported_until_somebody_says_that_it_is_none() {
    let (_folder, path) = file();
    let mut ledger = Sqlite::open(&path).unwrap();
    let text = |from: u64, changed: usize| {
        let value = |place: usize| if place < changed { 7_000 + place as u64 } else { from + place as u64 };
        Fuzzy { shingles: (0..32).map(value).collect(), parts: Vec::new() }
    };
    let places = |ledger: &mut Sqlite, fuzzy: &Fuzzy| ledger.alike("", fuzzy).unwrap().places;
    assert_eq!(places(&mut ledger, &text(100, 0)), 0);
    ledger.report("", &text(100, 0), true, 10).unwrap();
    ledger.report("", &text(100, 1), true, 20).unwrap();
    ledger.report("", &text(500, 0), true, 30).unwrap();
    assert_eq!(ledger.summary("").unwrap().reports, 2, "what is nearly the same is kept once");
    assert_eq!([0, 1, 10, 32].map(|changed| places(&mut ledger, &text(100, changed))), [32, 31, 22, 0]);
    // Equal values at other positions do not count.
    let mut turned = text(100, 0);
    turned.shingles.rotate_left(1);
    assert_eq!(places(&mut ledger, &turned), 0);
    let part = Fuzzy { shingles: Vec::new(), parts: vec![[9; 16]] };
    ledger.report("", &part, true, 10).unwrap();
    assert!(ledger.alike("", &part).unwrap().has_part && !ledger.alike("other", &part).unwrap().has_part);
    ledger.report("", &text(100, 2), false, 40).unwrap();
    assert_eq!((places(&mut ledger, &text(100, 0)), places(&mut ledger, &text(500, 0))), (0, 32));
    ledger.forget_reports(10, 25).unwrap();
    assert!(!ledger.alike("", &part).unwrap().has_part && places(&mut ledger, &text(500, 0)) == 32);
    ledger.forget_reports(0, 0).unwrap();
    assert_eq!((places(&mut ledger, &text(500, 0)), ledger.summary("").unwrap().reports), (0, 0));
}
