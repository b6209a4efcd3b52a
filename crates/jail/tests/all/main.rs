//! Jails from outside: what they report, what becomes of inspections when one dies, and what a hostile one can reach.
//!
//! A program without the usual harness, since it is its own jail: it is started again with `jail` as its argument.

use std::panic::catch_unwind;
use std::process::ExitCode;

use jail::Counting;

/// A test with its name.
type Test = (&'static str, fn());

/// The tests of a module.
macro_rules! tests {
    ($($test:ident),* $(,)?) => { &[$((stringify!($test), $test)),*] };
}

mod bells;
mod death;
mod reports;
mod sandbox;
mod site;
mod template;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TESTS: [&[Test]; 5] = [reports::TESTS, death::TESTS, bells::TESTS, sandbox::TESTS, template::TESTS];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    match first.as_deref() {
        Some("jail") => return jail::run(),
        Some("hostile") => return sandbox::hostile(),
        Some("--list") => {
            TESTS.iter().copied().flatten().for_each(|(name, _)| println!("{name}: test"));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let filter = first.filter(|argument| !argument.starts_with('-')).unwrap_or_default();
    let mut failed = 0;
    for (name, test) in TESTS.iter().copied().flatten().filter(|(name, _)| name.contains(&filter)) {
        let passed = catch_unwind(test).is_ok();
        failed += u32::from(!passed);
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
    }
    println!("\ntest result: {}. {failed} failed", if failed == 0 { "ok" } else { "FAILED" });
    ExitCode::from(u8::from(failed > 0))
}
