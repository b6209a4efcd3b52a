//! Makes lists of addresses, reads them, and looks addresses up in them: `recipients FOLDER COUNT LOOK-UPS`.
//!
//! Prints one line: how long reading took, what an address takes, and look-ups in a second, of those who are listed and of
//! others; whole ones, from the mailbox of RCPT to the answer. Seconds are of this thread's processor time. The list stays, and so do the addresses that
//! were looked up (`listed`, `others`), for `bench/recipients` to ask others for.

use std::fmt::Write as _;
use std::path::Path;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use edge::recipients::answer::Answer;
use edge::recipients::directory::Directory;
use edge::recipients::table::Tables;
use edge::settings::{RecipientTable, Tls};
use proto::smtp::Path as Mailbox;

/// Prime, so that those who are looked up lie anywhere in the list.
const STRIDE: u64 = 7_919;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, count, lookups] = arguments.as_slice() else {
        return eprintln!("recipients FOLDER COUNT LOOK-UPS");
    };
    let (folder, count, lookups) = (Path::new(folder), number(count), number(lookups));
    let list = folder.join("list");
    std::fs::write(&list, lines(0..count, " OK\n")).expect("the list is written");
    let listed = (0..lookups).map(|number| number * STRIDE % count);
    std::fs::write(folder.join("listed"), lines(listed, "\n")).expect("the addresses are written");
    std::fs::write(folder.join("others"), lines(count..count + lookups, "\n")).expect("the addresses are written");

    let text = format!("name = 'all'\nfiles = ['{}']\n", list.display());
    let table: RecipientTable = toml::from_str(&text).expect("the table is right");
    let began = spent();
    let directory = Directory::load(&[table], &Tables::new(), &Tls::default(), None).expect("the list is read");
    let read = spent() - began;
    let (entries, bytes) =
        directory.lists().fold((0, 0), |(entries, bytes), list| (entries + list.len(), bytes + list.bytes()));
    let [listed, others] = ["listed", "others"].map(|name| {
        let text = std::fs::read_to_string(folder.join(name)).expect("the addresses are read");
        let mailboxes: Vec<Mailbox> = text.lines().map(|line| line.parse().expect("an address")).collect();
        let began = spent();
        let taken = mailboxes.iter().filter(|mailbox| is_valid(&directory, mailbox)).count();
        (mailboxes.len() as f64 / (spent() - began).as_secs_f64(), taken)
    });
    println!(
        "{entries} addresses: read in {:.2} s, {:.2} bytes each, {:.0} look-ups/s of those listed ({} found), {:.0} of others ({} found)",
        read.as_secs_f64(),
        bytes as f64 / entries as f64,
        listed.0,
        listed.1,
        others.0,
        others.1,
    );
}

/// The processor time of this thread.
fn spent() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// Addresses of so many users in a thousand domains.
fn lines(numbers: impl Iterator<Item = u64>, end: &str) -> String {
    numbers.fold(String::new(), |mut text, number| {
        let _ = write!(text, "user.name{number}@domain{}.example{end}", number % 1_000);
        text
    })
}

/// Lists are in memory, so that the answer is there at once.
fn is_valid(directory: &Directory, mailbox: &Mailbox) -> bool {
    let names = ["all".to_string()];
    let asking = std::pin::pin!(directory.ask(&names, mailbox, None));
    match asking.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(verdict) => verdict.answer == Answer::Valid,
        Poll::Pending => unreachable!("nothing is waited for"),
    }
}
