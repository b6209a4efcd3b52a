//! `sluice ids sniff`: rules tried on the packets of an interface.
//!
//! One process with one thread. It opens the interface and reads the files as it was started; then it becomes another user, gives
//! up all else, compiles the rules, and reads packets. The time of a packet is when it was read. Bounds: flows by number and
//! memory ([`Observer`]), packets that wait by the kernel ([`Tap`]), whose drops are counted.

use std::io::{self, BufWriter, StdoutLock, Write as _};
use std::os::fd::AsFd as _;
use std::process::ExitCode;

use jail::{Passed, Tap};
use jiff::Timestamp;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rules::ids::Register;
use rules::ids::capture::{Link, Meter, Observer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::CapabilitySet;

use super::settings_of;
use crate::cli::IdsSniff;
use crate::eve::captures::{self, Statistics};
use crate::output::Failure;
use crate::process::privileges::{self, Account};

/// Microseconds between two looks at flows that are silent, and between two records of counts.
const EXPIRY_MICROS: u64 = 1_000_000;
const STATISTICS_MICROS: u64 = 60_000_000;

pub fn run(args: &IdsSniff) -> Result<ExitCode, Failure> {
    let settings = settings_of(&args.rules, &args.names, args.config.as_deref())?;
    let changes = settings.changes()?;
    changes.problems().iter().for_each(|problem| eprintln!("sluice: {problem}"));
    let files = settings.collect(&changes)?;
    let account = Account::named(&args.user, None)?;
    let tap = Tap::open(&args.interface, args.promiscuous).map_err(|error| format!("{}: {error}", args.interface))?;
    let signals = signals()?;
    if privileges::is_root() {
        account.assume(CapabilitySet::empty())?;
    }
    let confined = jail::confine_tap()?;
    let rules = files.compile();
    let set = rules.set();
    super::warn(set);
    eprintln!("sluice: {}: {} rules, {confined}", args.interface, set.census().active);
    let meter = Meter { balance: jail::balance, bytes_max: (args.memory as usize) << 20 };
    let mut sniffer = Sniffer {
        tap,
        observer: Observer::new(set, Some(meter)),
        register: Register::of(set),
        out: BufWriter::new(io::stdout().lock()),
        has_records: args.records,
        statistics: Statistics::default(),
        began: now(),
    };
    sniffer.read_until(&signals)?;
    sniffer.end()?;
    Ok(ExitCode::SUCCESS)
}

/// The signals that end the process, to be waited for.
fn signals() -> Result<SignalFd, Failure> {
    let ending: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect();
    ending.thread_block()?;
    Ok(SignalFd::with_flags(&ending, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?)
}

struct Sniffer<'r> {
    tap: Tap,
    observer: Observer<'r>,
    register: Register,
    out: BufWriter<StdoutLock<'static>>,
    has_records: bool,
    statistics: Statistics,
    began: u64,
}

impl Sniffer<'_> {
    /// Reads packets until a signal comes.
    fn read_until(&mut self, signals: &SignalFd) -> Result<(), Failure> {
        let (mut expired, mut counted) = (self.began, self.began);
        while !self.wait(signals)? {
            let micros = now();
            let observer = &mut self.observer;
            let followed = &mut self.statistics.followed;
            self.tap.read(|packet| *followed += u64::from(observer.packet(micros, Link::RAW, packet)))?;
            if micros.saturating_sub(expired) >= EXPIRY_MICROS {
                expired = micros;
                self.observer.expire(micros);
                self.count()?;
            }
            self.tell()?;
            if self.has_records && micros.saturating_sub(counted) >= STATISTICS_MICROS {
                counted = micros;
                self.tell_statistics()?;
            }
        }
        Ok(())
    }

    /// Waits for a packet, at most until flows may expire; whether a signal has come.
    fn wait(&self, signals: &SignalFd) -> Result<bool, Failure> {
        let descriptors = [self.tap.as_fd(), signals.as_fd()];
        let mut waited = descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
        let most = Timespec { tv_sec: 1, tv_nsec: 0 };
        match poll(&mut waited, Some(&most)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(!waited[1].revents().is_empty()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends all flows, and says what was seen.
    fn end(&mut self) -> Result<(), Failure> {
        self.observer.finish();
        self.tell()?;
        self.count()?;
        if self.has_records {
            self.tell_statistics()?;
        }
        let Statistics { passed, followed, flows, forced, alerts } = self.statistics;
        eprintln!(
            "sluice: {} packets, {} of them dropped; {followed} followed in {flows} flows, {forced} ended early; {alerts} alerts",
            passed.packets, passed.dropped
        );
        super::tell_unread(self.observer.unread());
        Ok(())
    }

    fn count(&mut self) -> Result<(), Failure> {
        let Passed { packets, dropped } = self.tap.passed()?;
        let statistics = &mut self.statistics;
        statistics.passed.packets += packets;
        statistics.passed.dropped += dropped;
        (statistics.flows, statistics.forced) = self.observer.flows();
        Ok(())
    }

    /// Writes alerts and records down.
    fn tell(&mut self) -> io::Result<()> {
        for seen in self.observer.alerts() {
            self.statistics.alerts += 1;
            if let Some(entry) = self.register.get(seen.rule) {
                writeln!(self.out, "{}", captures::alert(entry, &seen))?;
            }
        }
        let records = self.observer.records();
        for record in records.iter().filter(|_| self.has_records) {
            writeln!(self.out, "{}", captures::message(record))?;
        }
        self.out.flush()
    }

    fn tell_statistics(&mut self) -> io::Result<()> {
        let line = captures::statistics(&self.statistics, now(), self.began);
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }
}

/// The time, in microseconds since 1970.
fn now() -> u64 {
    u64::try_from(Timestamp::now().as_microsecond()).unwrap_or_default()
}
