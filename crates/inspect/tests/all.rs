//! Most tests of the crate in one program, which is linked once; those that count every allocation have their own.

mod archives;
mod budget;
#[path = "pipeline/build.rs"]
mod build;
mod clamav;
mod company;
mod differential;
mod documents;
mod evasion;
mod facts;
mod forwarded;
mod guesses;
mod held;
mod inspection;
mod intrusion;
mod magic;
mod metadata;
mod names;
mod pages;
mod passwords;
mod phishing;
mod pipeline;
mod readings;
mod tails;
mod texts;
mod turns;
mod views;
