//! Web pages: their phrases are counted beside all other readers, and the score comes with the verdict.

use std::sync::Arc;

use crate::build;
use flow::{Action, Context, In, Out, PageOutcome, PageScore, Paging, Verdict};
use inspect::{Engine, Inspection, PageFiles, PageRules, Progress};
use rules::web::phrase::Dialect;
use scan::Database;
use stream::{ContentCoding, Fuel, Limits, Object};

const FILES: [(&str, &str); 4] = [
    ("/e/e2guardian.conf", "filtergroups = 2\n"),
    ("/e/e2guardianf1.conf", "naughtynesslimit = 50\nweightedphraselist = '/e/weighted'\n"),
    ("/e/e2guardianf2.conf", "naughtynesslimit = 500\nweightedphraselist = '/e/weighted'\n"),
    ("/e/weighted", "#listcategory: \"Games\"\n<zork><40>\n<grue>,<lamp><30>\n<mailbox><-5>\n"),
];

fn rules() -> Arc<PageRules> {
    let mut read = |name: &str| {
        let file = FILES.iter().find(|(known, _)| *known == name);
        file.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| format!("no {name}"))
    };
    let files = PageFiles::collect("/e/e2guardian.conf", Dialect::Sluice, &mut read);
    let bytes = flow::wire::write(&files, Vec::new());
    Arc::new(flow::wire::read::<PageFiles>(&bytes).expect("its own form").compile())
}

fn inspect(rules: &Arc<PageRules>, group: u32, page: &[u8], piece: usize) -> Verdict {
    inspect_coded(rules, group, page, piece, &[])
}

fn inspect_coded(rules: &Arc<PageRules>, group: u32, page: &[u8], piece: usize, codings: &[ContentCoding]) -> Verdict {
    let engine = Arc::new(Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() });
    let object = Object { media_type: Some("text/html".into()), content_codings: codings.into(), ..Object::default() };
    let paging = Some(Paging { group, day: 0, minute: 0, blocks: true });
    let mut inspection = Inspection::new(engine, Context { object, paging, ..Context::default() });
    inspection = inspection.with_pages(Some(rules.clone()));
    for mut bytes in page.chunks(piece) {
        while !bytes.is_empty() {
            bytes = &bytes[inspection.tell(In::Feed(bytes))..];
            inspection.work(&mut Fuel::unlimited());
        }
    }
    inspection.tell(In::Finish);
    while inspection.work(&mut Fuel::unlimited()) != Progress::Done {}
    let verdict = std::iter::from_fn(|| inspection.hear()).find_map(|out| match out {
        Out::Verdict(verdict) => Some(verdict),
        _ => None,
    });
    verdict.expect("a verdict")
}

#[test]
fn a_page_is_scored_by_the_phrases_of_its_group() {
    let rules = rules();
    let page = b"<html><body>West of house. A zork, a <b>lamp</b> and a grue.</body></html>";
    for (group, points, action) in [(1, 70, Action::Reject), (2, 70, Action::Pass)] {
        for piece in [1, 7, page.len()] {
            let verdict = inspect(&rules, group, page, piece);
            let score = verdict.page.as_deref().expect("a score");
            assert_eq!((score.points, verdict.action), (points, action), "group {group}, pieces of {piece}");
            assert_eq!(score.categories, [("Games".into(), 70)]);
        }
    }
    let small = inspect(&rules, 1, b"<p>a mailbox, and a zork</p>", 5);
    let score = small.page.expect("a score");
    assert_eq!((score.points, score.outcome), (35, PageOutcome::Passed));
}

#[test]
fn a_page_is_scored_without_its_codings_and_what_lies_in_it_is_not() {
    let (rules, page) = (rules(), b"<html>zork grue lamp zork</html>");
    let once = build::gzip(page);
    let twice = build::gzip(&once);
    for (bytes, codings) in [(&once, 1), (&twice, 2)] {
        let verdict = inspect_coded(&rules, 1, bytes, 9, &vec![ContentCoding::Gzip; codings]);
        assert_eq!(verdict.page.map(|score| score.points), Some(70), "{codings}");
    }
    let file = inspect(&rules, 1, &once, 9);
    assert_eq!(file.page.map(|score| score.points), Some(0), "a file that was asked for as such");
}

#[test]
fn a_group_that_is_none_has_no_score() {
    let verdict = inspect(&rules(), 3, b"zork", 4);
    assert_eq!((verdict.page, verdict.action), (None::<Box<PageScore>>, Action::Pass));
}
