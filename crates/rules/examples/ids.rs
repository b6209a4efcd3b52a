//! Reads files of intrusion rules and prints the census and what is wrong: `cargo run --example ids -- FILE...`.

use rules::ids::{Limits, Loader};

fn main() -> std::io::Result<()> {
    let mut loader = Loader::new(Limits::default());
    for path in std::env::args().skip(1) {
        loader.file(&path, &std::fs::read(&path)?);
    }
    let set = loader.finish();
    set.problems().iter().for_each(|problem| println!("{problem}"));
    println!("{:#?}", set.census());
    Ok(())
}
