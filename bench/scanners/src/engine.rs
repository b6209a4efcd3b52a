//! What `bench/scan` runs of ours, one process a figure: made signatures, and our engine.
//!
//! Each command but the first prints one line of JSON. `SET` is a folder that `generate` or `bench/start` made; `INPUT`
//! a file that is one object, or a folder whose files are objects of their own.
//! ```text
//!  generate KIND COUNT CORPUS CLEAN SET    signatures of a kind, none of which occurs in the file CLEAN
//!  compile SET FILE                        a database, compiled and stored
//!  scan FILE INPUT SECONDS [md5 | together | md5-together | pages]
//!                                          what is stored, mapped; with the MD5 of every byte, eight objects at once,
//!                                          both, or in pages of 4 kB
//! ```

mod generate;
mod input;
mod instructions;
mod ours;

use std::error::Error;

use ours::Also;

fn main() -> Result<(), Box<dyn Error>> {
    instructions::limit();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["generate", kind, count, corpus, clean, set] => generate::write(kind, count.parse()?, corpus, clean, set),
        ["compile", set, file] => ours::compile(set, file),
        ["scan", file, input, seconds] => ours::scan(file, input, seconds.parse()?, Also::Nothing),
        ["scan", file, input, seconds, "md5"] => ours::scan(file, input, seconds.parse()?, Also::Md5),
        ["scan", file, input, seconds, "together"] => ours::scan(file, input, seconds.parse()?, Also::Together),
        ["scan", file, input, seconds, "md5-together"] => ours::scan(file, input, seconds.parse()?, Also::Md5Together),
        ["scan", file, input, seconds, "pages"] => ours::scan(file, input, seconds.parse()?, Also::SmallPages),
        _ => Err("see the head of engine.rs".into()),
    }
}
