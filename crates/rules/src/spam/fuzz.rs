//! Fuzz body.

use super::limits::Limits;
use super::loader::{File, Loader, Options};
use super::rule::{Kind, Rules};
use super::schedule::Schedule;
use super::syntax::expression::Unchecked;
use super::total::{ScoreSet, Total};
use stream::Fuel;

/// Fuzz body: a configuration, with small limits. It is read the same twice, every number that comes out is finite, and
/// metas come to something with the fuel that their steps need.
pub fn fuzz_load(data: &[u8]) {
    let limits = Limits {
        rules_max: 200,
        settings_max: 200,
        problems_max: 50,
        nesting_max: 16,
        expression_bytes_max: 4096,
        replaced_bytes_max: 16 << 10,
        meta_steps_max: 500,
        metas_steps_max: 5000,
        ..Limits::default()
    };
    let load = || -> Rules {
        let mut loader = Loader::new(Options { default_plugins: true, ..Options::default() }, limits);
        let file = File { name: "a.cf".into(), bytes: data.to_vec() };
        loader.read(&file, &mut |place, _| {
            let name = format!("{}+", place.file).into();
            Ok(File { name, bytes: data.iter().take(200).copied().collect() })
        });
        loader.finish(&Unchecked)
    };
    let rules = load();
    assert_eq!(format!("{:?}", rules.problems()), format!("{:?}", load().problems()));
    assert!(rules.names().len() <= limits.rules_max && rules.settings.len() <= limits.settings_max);
    assert!(rules.problems().iter().all(|problem| !problem.to_string().contains('\n')));
    let schedule = Schedule::new(&rules, &limits);
    let metas = rules.live().filter(|rule| rule.test.as_ref().is_some_and(|test| test.kind() == Kind::Meta)).count();
    assert_eq!(schedule.order().count() + schedule.excluded().len(), metas);
    let mut values = vec![1.0; rules.names().len()];
    assert!(schedule.evaluate(&mut values, &[], |_| 0.0, &mut Fuel::new(limits.metas_steps_max as u64)).1);
    assert!(values.iter().all(|value| value.is_finite()));
    let mut total = Total::new(ScoreSet::default());
    rules.live().for_each(|rule| total.add(rule, 1));
    let _ = total.to_string();
}
