//! Rules that cannot hit, and why.

use super::eval::{self, Does};
use super::rule::{Rule, Rules, Test};

/// Why a rule cannot hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disabled {
    /// Its score is 0 in every score set.
    ZeroScore,
    /// It calls a function that is not there.
    Function(Box<str>),
    /// It calls a function that asks programs beside SpamAssassin, which is not done.
    Network(Box<str>),
    /// Nothing defines what makes it hit.
    Placeholder,
}

impl Disabled {
    /// Why, in words.
    pub fn reason(&self) -> String {
        match self {
            Disabled::ZeroScore => "its score is 0".into(),
            Disabled::Function(name) => format!("it calls {name}, which is not there yet"),
            Disabled::Network(name) => format!("it calls {name}, which asks others: that is not done"),
            Disabled::Placeholder => "nothing defines it".into(),
        }
    }
}

impl Rules {
    /// The rules that cannot hit. Rings of metas are among the problems.
    pub fn disabled(&self) -> impl Iterator<Item = (&Rule, Disabled)> {
        self.live().filter_map(|rule| why(rule).map(|why| (rule, why)))
    }
}

fn why(rule: &Rule) -> Option<Disabled> {
    match rule.test.as_ref()? {
        _ if rule.scores() == [0.0; 4] => Some(Disabled::ZeroScore),
        Test::Eval(view, call) => match eval::find(&call.function, *view).map(|function| function.does) {
            None => Some(Disabled::Function(call.function.clone())),
            Some(Does::Ask) => Some(Disabled::Network(call.function.clone())),
            Some(Does::Look(_) | Does::View(_) | Does::Know(_) | Does::Recall(_) | Does::List | Does::Reputation) => {
                None
            }
        },
        Test::Placeholder => Some(Disabled::Placeholder),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::limits::Limits;
    use super::super::loader::{File, Loader, Options};
    use super::super::syntax::expression::Unchecked;
    use super::*;

    #[test]
    fn rules_that_cannot_hit_are_listed_with_their_reason() {
        let mut loader = Loader::new(Options { default_plugins: true, ..Options::default() }, Limits::default());
        let text =
            b"body A /x/\nscore A 0\nbody B eval:check_bayes('0.00', '0.01')\nreuse C\nbody D /x/\nscore D 0 1 0 0\n\
              full E eval:check_pyzor()\nbody F eval:nosuch()\nheader G eval:check_all_trusted()\n";
        loader.read(&File { name: "a.cf".into(), bytes: text.to_vec() }, &mut |_, _| Err(String::new()));
        let rules = loader.finish(&Unchecked);
        let found: Vec<_> = rules.disabled().map(|(rule, why)| (&*rule.name, why)).collect();
        let expected = [
            ("A", Disabled::ZeroScore),
            ("C", Disabled::Placeholder),
            ("E", Disabled::Network("check_pyzor".into())),
            ("F", Disabled::Function("nosuch".into())),
        ];
        assert_eq!(found, expected);
    }
}
