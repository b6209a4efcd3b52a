//! Intrusion rules as they are handed to a process that inspects: the files, and the set that is compiled from them.

use std::sync::Arc;

use rules::ids::{Action, Limits, Loader, RuleSet, Selector};
use serde::{Deserialize, Serialize};

/// The files of a rule set, with all that changes how they are read. The same files make the same set, rule by rule.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct IntrusionFiles {
    /// Values of variables, by names without `$`.
    pub variables: Vec<(Box<str>, Box<str>)>,
    /// Files of classes.
    pub classes: Vec<Vec<u8>>,
    /// Files that data sets of rules name.
    pub data: Vec<(Box<str>, Vec<u8>)>,
    /// Files of rules.
    pub rules: Vec<(Box<str>, Vec<u8>)>,
    /// Files of thresholds and suppressions.
    pub thresholds: Vec<(Box<str>, Vec<u8>)>,
    /// Other actions for some rules; the last that means a rule decides.
    pub actions: Vec<IntrusionAction>,
}

/// Another action for some rules.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IntrusionAction {
    sid: Option<u32>,
    class: Option<Box<str>>,
    file: Box<str>,
    /// The name of the action; rules of any other name are not tried.
    action: Box<str>,
}

impl IntrusionAction {
    /// An action for the rules of a selector.
    pub fn new(selector: &Selector, action: Box<str>) -> IntrusionAction {
        let none = IntrusionAction { sid: None, class: None, file: Box::default(), action };
        match selector {
            Selector::Sid(sid) => IntrusionAction { sid: Some(*sid), ..none },
            Selector::Class(name) => IntrusionAction { class: Some(name.clone()), ..none },
            Selector::File(name) => IntrusionAction { file: name.clone(), ..none },
        }
    }

    fn selector(&self) -> Selector {
        match (self.sid, &self.class) {
            (Some(sid), _) => Selector::Sid(sid),
            (None, Some(class)) => Selector::Class(class.clone()),
            (None, None) => Selector::File(self.file.clone()),
        }
    }
}

/// Rules that are ready to be tried.
#[derive(Debug, Clone)]
pub struct IntrusionRules(pub(crate) Arc<RuleSet>);

impl IntrusionFiles {
    /// Compiles the rules.
    pub fn compile(&self) -> IntrusionRules {
        let mut loader = Loader::new(Limits::default());
        self.variables.iter().for_each(|(name, value)| loader.variable(name, value));
        self.classes.iter().for_each(|bytes| loader.classes(bytes));
        self.data.iter().for_each(|(name, bytes)| loader.data_file(name, bytes.clone()));
        self.actions.iter().for_each(|row| loader.action(row.selector(), Action::named(&row.action)));
        self.rules.iter().for_each(|(name, bytes)| loader.file(name, bytes));
        self.thresholds.iter().for_each(|(name, bytes)| loader.thresholds(name, bytes));
        IntrusionRules(Arc::new(loader.finish()))
    }
}

impl IntrusionRules {
    /// The set.
    pub fn set(&self) -> &RuleSet {
        &self.0
    }
}
