//! The rules that mails are scored with, as the processes that inspect are handed them.
//!
//! Files are read here; what stands there is looked at once, for what is wrong with it, and compiled by whoever scores: this
//! process, or each that inspects. They come to those as a file in memory that nobody can change.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use flow::wire;
use inspect::Scorer;
use rules::spam::run::{Expressions, Syntax};
use rules::spam::syntax::value::Value;
use rules::spam::{Checker, Rules, Severity};
use rustix::fs::{MemfdFlags, SealFlags};

use crate::config::rule_files;
use crate::config::{Config, Isolation};
use crate::output::Failure;
use crate::resolver::blocks::BlockRules;

/// Errors that the log names.
const ERRORS_SHOWN: usize = 10;

/// Rules, ready to be used.
pub struct SpamRules {
    /// Compiled, where this process scores.
    pub scorer: Option<Arc<Scorer>>,
    /// The file for those that inspect.
    file: Option<OwnedFd>,
    /// How many words are kept, where old ones are forgotten.
    pub words_max: Option<u64>,
    /// Lists that say by a rule that they may not be asked.
    pub blocks: Arc<BlockRules>,
}

impl SpamRules {
    /// Reads the rules of the configuration; none where mails are not scored, or there are no rules to be found. What is wrong
    /// in them is said in the log, and without effect.
    ///
    /// # Errors
    /// When a file or a folder cannot be read.
    pub fn load(config: &Config) -> Result<Option<SpamRules>, Failure> {
        let Some(folders) = config.rule_folders() else { return Ok(None) };
        if folders.is_empty() {
            tracing::warn!(
                "mails are not scored: SpamAssassin's rules are not installed, and spam.rules names no others"
            );
            return Ok(None);
        }
        let is_here = config.isolation == Isolation::None;
        let checker: &dyn Checker = if is_here { &Expressions } else { &Syntax };
        let (files, rules) = rule_files::collect(&folders, config.rule_purpose(), checker)?;
        let words_max = words_max(&rules);
        let blocks = Arc::new(BlockRules::of(&rules));
        let errors = rules.problems().iter().filter(|problem| problem.severity == Severity::Error);
        errors.take(ERRORS_SHOWN).for_each(|error| tracing::warn!(%error, "spam rule ignored"));
        tracing::info!(
            files = files.files.len(),
            rules = rules.names().len(),
            errors = rules.errors(),
            "spam rules loaded"
        );
        let scorer = is_here.then(|| Arc::new(Scorer::of(rules, &files)));
        let file = if is_here { None } else { Some(sealed(&wire::write(&files, Vec::new()))?) };
        Ok(Some(SpamRules { scorer, file, words_max, blocks }))
    }

    /// The file, for one more set of processes.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn file(&self) -> std::io::Result<Option<OwnedFd>> {
        self.file.as_ref().map(OwnedFd::try_clone).transpose()
    }
}

/// How many words are kept, unless the rules say that none are forgotten.
fn words_max(rules: &Rules) -> Option<u64> {
    const USUAL: f64 = 150_000.0;
    let of =
        |name: &str| rules.settings.iter().rev().find(|setting| &*setting.name == name).map(|setting| &setting.value);
    if of("bayes_auto_expire") == Some(&Value::Switch(false)) {
        return None;
    }
    let number = match of("bayes_expiry_max_db_size") {
        Some(Value::Number(number)) => *number,
        _ => USUAL,
    };
    Some(number.max(0.0) as u64)
}

/// A file in memory that nobody can change any more.
pub(super) fn sealed(bytes: &[u8]) -> std::io::Result<OwnedFd> {
    let mut file = File::from(rustix::fs::memfd_create("rules", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(bytes)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(file.into())
}
