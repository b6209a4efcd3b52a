//! Whole lists where they are (`SLUICE_DATA`): those of Debian's e2guardian, and the domains of the University of Toulouse.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use rules::web::phrase::{Dialect, Page};
use rules::web::{Filter, Limits, Moment, Request, Severity, Verdict};

/// A pack below `SLUICE_DATA`.
pub(crate) fn pack(name: &str) -> Option<PathBuf> {
    let pack = std::env::var_os("SLUICE_DATA").map(|data| PathBuf::from(data).join(name));
    let pack = pack.filter(|pack| pack.is_dir());
    if pack.is_none() {
        eprintln!("no pack: {name}");
    }
    pack
}

const GROUP: &str = "naughtynesslimit = 50\nbannedphraselist = '/etc/e2guardian/lists/bannedphraselist'\n\
    weightedphraselist = '/etc/e2guardian/lists/weightedphraselist'\n\
    exceptionphraselist = '/etc/e2guardian/lists/exceptionphraselist'\n\
    bannedsitelist = '/etc/e2guardian/lists/bannedsitelist'\nbannedurllist = '/etc/e2guardian/lists/bannedurllist'\n\
    bannedregexpurllist = '/etc/e2guardian/lists/bannedregexpurllist'\n\
    bannedextensionlist = '/etc/e2guardian/lists/bannedextensionlist'\n\
    bannedmimetypelist = '/etc/e2guardian/lists/bannedmimetypelist'\n\
    urlregexplist = '/etc/e2guardian/lists/urlregexplist'\nheaderregexplist = '/etc/e2guardian/lists/headerregexplist'\n\
    addheaderregexplist = '/etc/e2guardian/lists/addheaderregexplist'\n\
    searchregexplist = '/etc/e2guardian/lists/searchregexplist'\n";

/// Debian's lists in a small configuration.
fn debian(dialect: Dialect) -> Option<Filter> {
    let lists = pack("web-filter")?.join("e2guardian-lists");
    let mut read = |path: &str| match path {
        "e.conf" => Ok(Vec::new()),
        "ef1.conf" => Ok(GROUP.as_bytes().to_vec()),
        _ => {
            let path = path.strip_prefix("/etc/e2guardian/lists/").ok_or("it lies elsewhere")?;
            fs::read(lists.join(path)).map_err(|error| error.to_string())
        }
    };
    Some(Filter::load("e.conf", dialect, Limits::default(), &mut read))
}

#[test]
fn debians_lists_load_without_an_error() {
    let Some(filter) = debian(Dialect::Sluice) else { return };
    let errors: Vec<String> = filter
        .problems()
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .map(ToString::to_string)
        .collect();
    assert_eq!(errors, Vec::<String>::new());
    let census = filter.groups()[0].phrases().census();
    assert!(census.phrases > 6000 && census.lines > 6800 && census.revived > 300, "{census:?}");
}

#[test]
fn every_page_has_one_score_however_it_is_cut() {
    let (Some(filter), Some(pages)) = (debian(Dialect::Sluice), pack("web-pages")) else { return };
    let phrases = filter.groups()[0].phrases();
    let mut count = 0;
    for folder in fs::read_dir(pages.join("debian-doc-pages")).expect("a folder").flatten() {
        for file in fs::read_dir(folder.path()).expect("a folder").flatten() {
            let page = fs::read(file.path()).expect("a page");
            let run = |size: usize| {
                let mut run = Page::new(phrases);
                page.chunks(size).for_each(|piece| run.feed(piece));
                run.finish(Moment::default())
            };
            let whole = run(usize::MAX);
            assert_eq!(run(1460), whole, "{}", file.path().display());
            count += 1;
        }
    }
    assert!(count > 100);
}

/// `cargo test -p sluice-rules --release --test all -- --ignored --nocapture web_packs::`
#[test]
#[ignore = "a measurement"]
fn measure_a_page_of_40_kb() {
    let (Some(filter), Some(pages)) = (debian(Dialect::Sluice), pack("web-pages")) else { return };
    let phrases = filter.groups()[0].phrases();
    let mut text = Vec::new();
    for folder in fs::read_dir(pages.join("debian-doc-pages")).expect("a folder").flatten() {
        let is_english = folder.file_name().to_string_lossy().ends_with("-en");
        for file in fs::read_dir(folder.path()).expect("a folder").flatten().filter(|_| is_english) {
            text.extend(fs::read(file.path()).expect("a page"));
        }
    }
    let pages: Vec<&[u8]> = text.chunks_exact(40 << 10).take(10).collect();
    let mut times = Vec::new();
    for _ in 0..50 {
        for page in &pages {
            let begun = Instant::now();
            let mut run = Page::new(phrases);
            run.feed(page);
            let score = run.finish(Moment::default());
            times.push((begun.elapsed(), score.found.len()));
        }
    }
    times.sort();
    eprintln!(
        "{} pages: median {:?}, least {:?}, tables of {} bytes",
        times.len(),
        times[times.len() / 2].0,
        times[0].0,
        phrases.bytes()
    );
}

#[test]
fn domains_and_urls_of_a_tree_are_found() {
    let Some(tree) = pack("web-filter").map(|pack| pack.join("ut1/blacklists")) else { return };
    let group = "sitelist = 'name=banned,messageno=500,path=sites'\nurllist = 'name=banned,messageno=501,path=urls'\n";
    let folders: Vec<PathBuf> = fs::read_dir(&tree).expect("a folder").flatten().map(|entry| entry.path()).collect();
    let all = |name: &str| {
        folders.iter().filter_map(|folder| fs::read(folder.join(name)).ok()).collect::<Vec<_>>().join(&b'\n')
    };
    let (sites, urls) = (all("domains"), all("urls"));
    let mut read = |path: &str| match path {
        "e.conf" => Ok(Vec::new()),
        "ef1.conf" => Ok(group.as_bytes().to_vec()),
        "sites" => Ok(sites.clone()),
        "urls" => Ok(urls.clone()),
        _ => Err("there is no such file".to_string()),
    };
    let begun = Instant::now();
    let filter = Filter::load("e.conf", Dialect::Sluice, Limits::default(), &mut read);
    let census = filter.census();
    eprintln!("{} entries in {} bytes, loaded in {:?}", census.entries, census.bytes, begun.elapsed());
    assert!(census.entries > 10_000 && census.bytes < census.entries * 60);
    let verdict =
        |url: String| filter.request(&Request { method: b"GET", url: url.as_bytes(), ..Request::default() }).verdict;
    let lines = |text: &[u8]| String::from_utf8_lossy(text).lines().map(str::to_string).collect::<Vec<_>>();
    for site in lines(&sites).iter().step_by(97).filter(|site| site.len() > 3 && !site.contains(['#', ' '])) {
        assert_eq!(verdict(format!("http://www.{site}/x")), Verdict::Block, "{site}");
    }
    assert_eq!(verdict("http://nowhere.example/".into()), Verdict::Allow);
}

/// `cargo test -p sluice-rules --release --test all -- --ignored --nocapture web_packs::`
#[test]
#[ignore = "a measurement"]
fn measure_a_list_of_a_million_sites() {
    let mut seed = 1u64;
    let mut line = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let name = format!("{:x}", seed >> 20);
        format!(
            "{}.{}\n",
            &name[..name.len().min(6 + (seed >> 60) as usize)],
            ["com", "net", "org", "co.uk"][(seed >> 40) as usize % 4]
        )
    };
    let sites: String = (0..1_000_000).map(|_| line()).collect();
    let mut read = |path: &str| match path {
        "e.conf" => Ok(Vec::new()),
        "ef1.conf" => Ok(b"sitelist = 'name=banned,messageno=500,path=sites'\n".to_vec()),
        "sites" => Ok(sites.clone().into_bytes()),
        _ => Err("there is no such file".to_string()),
    };
    let begun = Instant::now();
    let filter = Filter::load("e.conf", Dialect::Sluice, Limits::default(), &mut read);
    let census = filter.census();
    eprintln!(
        "{} sites of {} bytes in {} bytes, loaded in {:?}",
        census.entries,
        sites.len(),
        census.bytes,
        begun.elapsed()
    );
    let request = Request { method: b"GET", url: b"http://www.a.b.example.com/some/page?x=1", ..Request::default() };
    let begun = Instant::now();
    (0..10_000).for_each(|_| assert_eq!(filter.request(&request).verdict, Verdict::Allow));
    eprintln!("a request takes {:?}", begun.elapsed() / 10_000);
}

#[test]
fn a_page_that_is_built_to_cost_much_is_bounded() {
    let Some(filter) = debian(Dialect::Sluice) else { return };
    let phrases = filter.groups()[0].phrases();
    for text in [" sex ", "<", "a", " xxx", "sexy girl "] {
        let page = text.repeat((4 << 20) / text.len());
        let begun = Instant::now();
        let mut run = Page::new(phrases);
        run.feed(page.as_bytes());
        run.finish(Moment::default());
        eprintln!("{text:?}: {:?}", begun.elapsed());
        assert!(begun.elapsed().as_secs() < 120, "{text:?}");
    }
}
