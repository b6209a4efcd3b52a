//! Tests over files that are damaged, full, or shared.

use super::*;
use crate::law;

fn lesson(id: &str, is_spam: bool, words: &[u8], at: i64) -> Lesson {
    let tokens = Tokens::of(words.iter().map(|&word| [0, 0, 0, 0, word]).collect());
    Lesson { is_spam, ids: vec![id.into(), format!("{id}@other").into()], at, tokens, corrects: true }
}

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("learned.db");
    (folder, path)
}

const MINUTE: i64 = 60;
const DAY: i64 = 86_400;

fn greeting(triplets: &[u8], vouchers: &[u8]) -> Greeting {
    let marks = |names: &[u8]| names.iter().map(|&name| [name; 16]).collect();
    Greeting { triplets: marks(triplets), vouchers: marks(vouchers), delay: 5 * MINUTE }
}

fn counts(ledger: &mut Sqlite, word: u8) -> Option<(u64, u64)> {
    let (_, found) = ledger.recall("", &[[0, 0, 0, 0, word]]).unwrap();
    found.first().map(|counts| (counts.spam, counts.ham))
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
fn the_law_holds() {
    for (name, law) in law::LAWS {
        eprintln!("{name}");
        let (_folder, path) = file();
        law(&mut Sqlite::open(&path).unwrap());
    }
}

#[test]
fn two_that_take_turns_or_learn_at_once_end_with_the_right_counts() {
    let (_folder, path) = file();
    let open = || Box::new(Sqlite::open(&path).unwrap()) as Box<dyn Ledger>;
    law::follows_the_model(&mut [open(), open()], "turns", 1, 300);
    law::loses_nothing_at_once(&open, "at once", 1, 100);
    law::counts_each_mail_at_once(&open, "counts");
}

#[test]
fn a_mail_that_came_to_one_and_again_to_the_other_has_waited() {
    let (_folder, path) = file();
    let mut all = [Sqlite::open(&path).unwrap(), Sqlite::open(&path).unwrap()];
    let [one, other] = &mut all;
    law::waits_once(one, other);
}
