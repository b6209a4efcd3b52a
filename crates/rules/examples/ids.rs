//! Reads files of intrusion rules and prints the census and what is wrong; with captures (`.pcap`) among the files, the alerts, as
//! `source target sid`: `cargo run --example ids -- FILE...`.

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
        for seen in capture::alerts(&set, &std::fs::read(path)?).unwrap_or_default() {
            let [source, target] = [seen.source, seen.target].map(std::net::SocketAddr::from);
            println!("{source} {target} {}", set.rules()[seen.rule].sid);
        }
    }
    if captures.is_empty() {
        println!("{:#?}", set.census());
    }
    Ok(())
}
