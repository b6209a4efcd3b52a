//! Reads files of intrusion rules and prints the census and what is wrong; with captures (`.pcap`) among the files, the alerts, as
//! `sid count`: `cargo run --example ids -- FILE...`.

use std::collections::BTreeMap;

use rules::ids::{Limits, Loader, capture};

fn main() -> std::io::Result<()> {
    let mut loader = Loader::new(Limits::default());
    let (captures, files): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|path| path.contains(".pcap"));
    for path in &files {
        loader.file(path, &std::fs::read(path)?);
    }
    let set = loader.finish();
    set.problems().iter().for_each(|problem| println!("{problem}"));
    for path in &captures {
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        for seen in capture::alerts(&set, &std::fs::read(path)?).unwrap_or_default() {
            *counts.entry(set.rules()[seen.rule].sid).or_default() += 1;
        }
        counts.iter().for_each(|(sid, count)| println!("{sid}\t{count}"));
    }
    if captures.is_empty() {
        println!("{:#?}", set.census());
    }
    Ok(())
}
