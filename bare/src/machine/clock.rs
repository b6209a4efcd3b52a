//! Time: the processor's counter, measured against the timer chip, and the calendar of the clock chip.

use core::arch::x86_64::_rdtsc;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use super::port;

/// Ticks of the counter in a millisecond.
static TICKS: AtomicU64 = AtomicU64::new(1_000_000);
/// The counter when it was measured.
static START: AtomicU64 = AtomicU64::new(0);
/// Seconds since 1970 at that time.
static BEGUN: AtomicI64 = AtomicI64::new(0);

/// Ticks of the timer chip in a second.
const TIMER_HERTZ: u64 = 1_193_182;
/// How long is measured, in its ticks: 10 ms.
const MEASURED: u16 = 11_932;

/// Measures the counter, and reads the calendar.
pub fn start() {
    let ticks = measure();
    TICKS.store(ticks.saturating_mul(TIMER_HERTZ) / u64::from(MEASURED) / 1_000, Relaxed);
    START.store(counter(), Relaxed);
    BEGUN.store(calendar(), Relaxed);
}

fn counter() -> u64 {
    // SAFETY: has no effect.
    unsafe { _rdtsc() }
}

/// Ticks of the counter while channel 2 of the timer counts down.
fn measure() -> u64 {
    let [low, high] = MEASURED.to_le_bytes();
    // SAFETY: the timer's second channel, which drives the speaker: its gate is opened, the speaker stays off.
    unsafe {
        port::write(0x61, (port::read::<u8>(0x61) & !2) | 1);
        port::write(0x43, 0xb0u8);
        port::write(0x42, low);
        port::write(0x42, high);
    }
    let from = counter();
    // SAFETY: no effect: its output is bit 5.
    while unsafe { port::read::<u8>(0x61) } & 0x20 == 0 {
        core::hint::spin_loop();
    }
    counter().saturating_sub(from).max(1)
}

/// Milliseconds since the start.
pub fn milliseconds() -> u64 {
    counter().saturating_sub(START.load(Relaxed)) / TICKS.load(Relaxed).max(1)
}

/// Seconds since 1970.
pub fn seconds() -> i64 {
    BEGUN.load(Relaxed).saturating_add_unsigned(milliseconds() / 1_000)
}

/// The calendar, in UTC, as virtual machines keep it.
fn calendar() -> i64 {
    loop {
        let (first, second) = (registers(), registers());
        // While it is counted on, what is read may be of both.
        if first == second {
            let [second, minute, hour, day, month, year] = first.map(i64::from);
            return days(year.saturating_add(2000), month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
        }
    }
}

fn registers() -> [u8; 6] {
    let is_binary = register(0x0b) & 4 != 0;
    [0, 2, 4, 7, 8, 9].map(|index| {
        let value = register(index);
        if is_binary { value } else { (value >> 4).saturating_mul(10).saturating_add(value & 15) }
    })
}

fn register(index: u8) -> u8 {
    // SAFETY: the clock chip's register is chosen, and read.
    unsafe {
        port::write(0x70, index);
        port::read(0x71)
    }
}

/// Days since 1970 (Howard Hinnant's `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}
