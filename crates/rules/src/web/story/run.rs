//! Storyboards, run.

use super::{Action, Ending, Messages, State, Step, Story, What};

/// Lines that a run may take. The stock storyboards take some sixty.
const STEPS_MAX: u32 = 20_000;
/// How deep functions call each other.
const DEPTH_MAX: usize = 32;

/// The request that a storyboard is run for.
pub(crate) trait World {
    /// Whether a state holds, by lists at these places.
    fn holds(&mut self, state: State, lists: &[usize], messages: Messages) -> bool;
    /// Makes a message the reason of what is done next, where a line names one and no list.
    fn say(&mut self, messages: Messages);
    /// Does something, and says whether it came to something.
    fn act(&mut self, action: Action) -> bool;
    /// Whether the host of the request is only claimed, and so exempts from nothing.
    fn is_claimed(&self) -> bool {
        false
    }
}

/// State of a run.
struct Run<'w> {
    world: &'w mut dyn World,
    steps: u32,
    /// The function under way was called because of the host.
    is_by_host: bool,
}

impl Story {
    /// Runs a function. False where there is none, and where it takes too many steps.
    pub fn run(&self, function: &str, world: &mut dyn World) -> bool {
        let Some(&function) = self.names.get(function) else { return false };
        self.call(function, 0, &mut Run { world, steps: STEPS_MAX, is_by_host: false })
    }

    /// Whether there is a function.
    pub fn has(&self, function: &str) -> bool {
        self.names.contains_key(function)
    }

    fn call(&self, function: usize, depth: usize, run: &mut Run<'_>) -> bool {
        let Some(steps) = self.functions.get(function).filter(|_| depth < DEPTH_MAX) else { return false };
        let mut has_returned = false;
        for step in steps {
            run.steps = run.steps.saturating_sub(1);
            if run.steps == 0 {
                return false;
            }
            if !holds(step, has_returned, run) || exempts_claimed(step, run) {
                has_returned = false;
                continue;
            }
            has_returned = match step.what {
                What::Do(action) => run.world.act(action),
                What::Call(function) => {
                    let is_by_host = run.is_by_host;
                    run.is_by_host |= step.state.is_by_host();
                    let has_returned = self.call(function, depth + 1, run);
                    run.is_by_host = is_by_host;
                    has_returned
                }
            };
            match step.ending {
                Ending::Returns => return has_returned,
                Ending::ReturnsIfTrue if has_returned => return true,
                Ending::ReturnsIfTrue | Ending::GoesOn => {}
            }
        }
        false
    }
}

/// Whether a line exempts a request because of a host that is only claimed.
fn exempts_claimed(step: &Step, run: &Run<'_>) -> bool {
    let exempts = matches!(step.what, What::Do(action) if action.exempts());
    exempts && (run.is_by_host || step.state.is_by_host()) && run.world.is_claimed()
}

fn holds(step: &Step, has_returned: bool, run: &mut Run<'_>) -> bool {
    let holds = match step.state {
        State::True => true,
        State::Returned => has_returned,
        state => run.world.holds(state, &step.lists, step.messages),
    };
    let is_met = holds != step.is_negated;
    if is_met && step.messages.shown > 0 && matches!(step.state, State::True | State::Flag(_)) {
        run.world.say(step.messages);
    }
    is_met
}

#[cfg(test)]
mod tests {
    use super::super::Reader;
    use super::*;
    use crate::web::limits::Limits;
    use crate::web::loading::{Loading, Source};

    /// Lists whose name begins with `y` have what is looked for.
    struct Talk(Vec<Action>);

    impl World for Talk {
        fn holds(&mut self, _: State, lists: &[usize], _: Messages) -> bool {
            lists == [1]
        }

        fn say(&mut self, _: Messages) {}

        fn act(&mut self, action: Action) -> bool {
            self.0.push(action);
            action != Action::False
        }
    }

    fn run(text: &str) -> (bool, Vec<Action>, Vec<String>) {
        let mut nothing = |_: &str| Err("there is none".to_string());
        let mut loading = Loading::new(&mut nothing, Limits::default());
        let mut reader = Reader::default();
        reader.file(&Source { name: "s".into(), bytes: text.as_bytes().into() }, 0, &mut loading);
        let story = reader.finish(&|_, name| Box::new([usize::from(name.starts_with('y'))]), &mut loading);
        let mut talk = Talk(Vec::new());
        let returned = story.run("main", &mut talk);
        (returned, talk.0, loading.problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn lines_run_in_order_and_functions_are_left_as_they_say() {
        let text = "Function(main)\nif(urlin,no) setblock\nIF(urlin,yes) setgrey\nif(returnset) setdone\nif(true) returnif other\n\
                    ifnot(urlin,no,5,6) return setexception\nif(true) setblock\nfunction(other)\nif(true) return false\nend()\n";
        let wanted = vec![Action::Grey, Action::Done, Action::False, Action::Exception];
        assert_eq!(run(text), (true, wanted, vec![]));
    }

    #[test]
    fn a_later_function_replaces_an_earlier_one() {
        let text = "function(main)\nif(true) a\nfunction(a)\nif(true) setgrey\nfunction(a)\nif(true) setblock\n";
        assert_eq!(run(text).1, [Action::Block]);
    }

    #[test]
    fn lines_that_are_not_understood_are_told_and_rings_end() {
        let text =
            "if(true) setgrey\nfunction(main)\nif(nope) setgrey\nif(true) nothing\nif(true main\nwhat\nif(true) main\n";
        let (returned, actions, problems) = run(text);
        assert!(!returned && actions.is_empty());
        let places: Vec<&str> = problems.iter().filter_map(|told| told.split(':').nth(1)).collect();
        assert_eq!(places, ["1", "3", "5", "6", "4"]);
    }
}
