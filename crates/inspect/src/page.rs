//! Phrases of web pages: the lists as they are handed to a process that inspects, and the score of a page.

use std::sync::Arc;

use flow::{PageOutcome, PageScore, Paging, Phrase};
use rules::web::phrase::{Dialect, Outcome, Page, Phrases, Score};
use rules::web::{self, Moment};
use serde::{Deserialize, Serialize};

/// Fuel that a byte of a page costs: most are looked at in two views.
pub(crate) const PAGE_COST: usize = 2;

/// The files of a configuration that have to do with phrases.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PageFiles {
    /// The main file.
    path: Box<str>,
    dialect: Box<str>,
    files: Vec<(Box<str>, Vec<u8>)>,
}

/// The phrases of each filter group.
#[derive(Debug)]
pub struct PageRules(Vec<Arc<Phrases>>);

impl PageFiles {
    /// Collects the files by reading the configuration as a process that inspects will.
    pub fn collect(path: &str, dialect: Dialect, read: &mut web::Read<'_>) -> PageFiles {
        let mut files: Vec<(Box<str>, Vec<u8>)> = Vec::new();
        let mut keep = |name: &str| {
            let bytes = read(name)?;
            files.push((name.into(), bytes.clone()));
            Ok(bytes)
        };
        web::load_phrases(path, dialect, web::Limits::default(), &mut keep);
        PageFiles { path: path.into(), dialect: dialect.name().into(), files }
    }

    /// Compiles the phrases.
    pub fn compile(&self) -> PageRules {
        let dialect = Dialect::of_name(&self.dialect).unwrap_or_default();
        let mut read = |name: &str| {
            let file = self.files.iter().find(|(known, _)| **known == *name);
            file.map(|(_, bytes)| bytes.clone()).ok_or_else(|| "it was not handed over".into())
        };
        PageRules(web::load_phrases(&self.path, dialect, web::Limits::default(), &mut read))
    }
}

impl PageRules {
    /// A page of which nothing has come; none where the group has no phrases.
    pub(crate) fn page(&self, paging: &Paging, charset: Option<&str>) -> Option<Page> {
        let phrases = self.0.get(paging.group.checked_sub(1)? as usize)?;
        (!phrases.is_empty()).then(|| Page::labelled(phrases, charset.unwrap_or_default().as_bytes()))
    }
}

/// The score of a page that is over.
pub(crate) fn score(page: Page, paging: &Paging) -> PageScore {
    let Score { points, outcome, found, categories } =
        page.finish(Moment { day: paging.day, minute: paging.minute, ..Moment::default() });
    let outcome = match outcome {
        Outcome::Passed => PageOutcome::Passed,
        Outcome::Exception { phrase, is_together } => PageOutcome::Exception(phrase.into(), is_together),
        Outcome::Banned { phrase, is_together } => PageOutcome::Banned(phrase.into(), is_together),
        Outcome::Weighted => PageOutcome::Weighted,
        Outcome::Dense => PageOutcome::Dense,
    };
    let phrase =
        |found: web::phrase::Found| Phrase { text: found.phrase.into(), count: found.count, weight: found.weight };
    PageScore {
        points,
        outcome,
        blocks: paging.blocks,
        phrases: found.into_iter().take(PageScore::PHRASES_MAX).map(phrase).collect(),
        categories: categories.into_iter().map(|(name, points)| ((*name).into(), points)).collect(),
    }
}
