//! Cost of a text with all filters on: `text ROUNDS SIGNATURES LISTS FILE...` inspects each file as a web page, scored by the lists of
//! E2Guardian in one folder, and as the text of a mail, with the built-in signatures and those in another folder. Prints processor time. For
//! `valgrind --tool=callgrind --collect-atstart=no --toggle-collect='*Bench*pages*'`, or `'*Bench*mails*'`, which count the rounds
//! and twenty more to warm up.

use std::path::Path;
use std::sync::Arc;
use std::{env, fs};

use digest::Batch;
use flow::{Context, Flow, In, Paging, Protocol};
use inspect::{Engine, Inspection, PageFiles, PageRules, Progress};
use rules::web::phrase::Dialect;
use scan::{Builder, Database};
use stream::{Fuel, Limits, Object};

/// Bytes that a door feeds at a time.
const FEED_BYTES: usize = 16 << 10;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [rounds, signatures, lists, files @ ..] = &arguments[..] else {
        panic!("text ROUNDS SIGNATURES LISTS FILE...")
    };
    let rounds: u32 = rounds.parse().expect("a number of rounds");
    let engine = Arc::new(Engine { database: Arc::new(database(signatures)), limits: Limits::default() });
    let mut read = |name: &str| fs::read(name).map_err(|error| error.to_string());
    let pages = PageFiles::collect(&format!("{lists}/e2guardian.conf"), Dialect::default(), &mut read).compile();
    let bench = Bench { engine, pages: Arc::new(pages) };
    for file in files {
        let content = fs::read(file).expect("a file that can be read");
        let mail = [b"From: a@b.test\r\nTo: c@d.test\r\nSubject: words\r\n\r\n", &content[..]].concat();
        bench.pages(20, &content);
        bench.mails(20, &mail);
        let (page, mail) = (bench.pages(rounds, &content), bench.mails(rounds, &mail));
        println!("{file}: as a page {page:.1} us, as a mail {mail:.1} us");
    }
}

struct Bench {
    engine: Arc<Engine>,
    pages: Arc<PageRules>,
}

impl Bench {
    /// Microseconds that a page takes.
    #[inline(never)]
    fn pages(&self, rounds: u32, content: &[u8]) -> f64 {
        let paging = Paging { group: 1, day: 0, minute: 720, blocks: true };
        let object = Object { media_type: Some("text/html".into()), ..Object::default() };
        let flow = Flow { protocol: Protocol::Http, ..Flow::default() };
        self.rounds(rounds, content, &Context { flow, object, paging: Some(paging), ..Context::default() })
    }

    /// Microseconds that a mail takes.
    #[inline(never)]
    fn mails(&self, rounds: u32, content: &[u8]) -> f64 {
        let object = Object { media_type: Some("message/rfc822".into()), ..Object::default() };
        let flow = Flow { protocol: Protocol::Smtp, sender: "a@b.test".into(), ..Flow::default() };
        self.rounds(rounds, content, &Context { flow, object, ..Context::default() })
    }

    fn rounds(&self, rounds: u32, content: &[u8], context: &Context) -> f64 {
        let mut batch = Batch::new(16 << 20, 2 << 20);
        let began = seconds();
        (0..rounds).for_each(|_| self.inspect(&mut batch, context.clone(), content));
        (seconds() - began) * 1e6 / f64::from(rounds)
    }

    fn inspect(&self, batch: &mut Batch, context: Context, content: &[u8]) {
        let mut inspection = Inspection::new(self.engine.clone(), context).with_pages(Some(self.pages.clone()));
        for piece in content.chunks(FEED_BYTES) {
            let mut rest = piece;
            while !rest.is_empty() {
                rest = &rest[inspection.tell(In::Feed(rest))..];
                work(&mut inspection, batch);
            }
        }
        inspection.tell(In::Finish);
        while work(&mut inspection, batch) != Progress::Done {}
    }
}

fn work(inspection: &mut Inspection, batch: &mut Batch) -> Progress {
    loop {
        let progress = inspection.work_beside(batch, &mut Fuel::new(256 << 10));
        if batch.is_due() {
            batch.run();
        }
        while inspection.hear().is_some() {}
        if progress != Progress::Tired {
            return progress;
        }
    }
}

/// The signatures of a folder, and those built in.
fn database(folder: &str) -> Database {
    let mut builder = Builder::new();
    builder.add_builtin();
    for entry in fs::read_dir(Path::new(folder)).expect("a folder").flatten() {
        let bytes = fs::read(entry.path()).expect("a file that can be read");
        builder.add(&entry.file_name().to_string_lossy(), &bytes).expect("a kind of database");
    }
    builder.build()
}

/// Processor time of this thread. A system call for that would not run in callgrind.
fn seconds() -> f64 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or_default() / 1e9
}
