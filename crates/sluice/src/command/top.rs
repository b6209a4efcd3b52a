//! `sluice top`: what a running gateway, or a server of block lists, does, again and again.
//!
//! It asks for the numbers that Prometheus is shown, and prints what they are and how fast they grow. On a terminal the
//! page is drawn anew in place, as much of it as fits; in a pipe each is printed below the other, without a control character. A
//! page of text needs no drawing library: two escape sequences do it, and stty(1) has the keys come one by one. `q` or Ctrl-C ends it.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::net::SocketAddr;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::cli::Top;
use crate::config::Config;
use crate::numbers::{Sample, ask};
use crate::output::Failure;

/// To the upper left corner, and everything behind it cleared.
const REDRAW: &str = "\x1b[H\x1b[J";

/// Shows pages until the count is reached or the reader is gone.
pub fn run(args: &Top) -> Result<ExitCode, Failure> {
    let address = address(args)?;
    let mut out = io::stdout().lock();
    let draws = out.is_terminal() && !args.json;
    let terminal = draws.then(Terminal::open).flatten();
    let redraw = if draws { REDRAW } else { "" };
    let every = Duration::from_secs(args.every.max(1));
    let mut before: Option<Sample> = None;
    let mut shown = 0;
    loop {
        let now = ask(address).map_err(|error| format!("{address}: {error}"))?;
        let page = if args.json { object(address, &now) } else { page(address, &now, before.as_ref()) };
        let page = terminal.as_ref().map_or(page.clone(), |terminal| terminal.fit(&page));
        if writeln!(out, "{redraw}{page}").and_then(|()| out.flush()).is_err() {
            return Ok(ExitCode::SUCCESS);
        }
        shown += 1;
        if args.count > 0 && shown >= args.count {
            return Ok(ExitCode::SUCCESS);
        }
        before = Some(now);
        match &terminal {
            Some(terminal) if terminal.wait(every) => return Ok(ExitCode::SUCCESS),
            Some(_) => {}
            None => std::thread::sleep(every),
        }
    }
}

/// A terminal whose keys come one by one, until it is dropped.
struct Terminal {
    /// How it was.
    before: String,
}

impl Terminal {
    /// None if keys do not come from a terminal, or it cannot be set.
    fn open() -> Option<Terminal> {
        let before = stty(&["-g"])?;
        stty(&["-icanon", "-echo", "-isig", "min", "0", "time", "1"])?;
        Some(Terminal { before: before.trim().into() })
    }

    /// Waits for so long; whether it was asked to end.
    fn wait(&self, every: Duration) -> bool {
        let end = Instant::now() + every;
        while Instant::now() < end {
            let mut keys = [0; 16];
            // It comes back after a tenth of a second without a key.
            match io::stdin().read(&mut keys) {
                Ok(count) if keys[..count].iter().any(|key| matches!(key, b'q' | b'Q' | 3 | 4)) => return true,
                Ok(_) => {}
                Err(_) => return true,
            }
        }
        false
    }

    /// Cuts a page to the size of the terminal.
    fn fit(&self, page: &str) -> String {
        let size = stty(&["size"]).unwrap_or_default();
        let mut size = size.split_whitespace().map(|number| number.parse().unwrap_or(0));
        fit(page, size.next().unwrap_or(0), size.next().unwrap_or(0))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        stty(&[&self.before]);
    }
}

fn stty(words: &[&str]) -> Option<String> {
    let output = Command::new("stty").args(words).stdin(Stdio::inherit()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into())
}

/// The lines of a page that so many rows and columns have room for; 0 means any. The last row is the cursor's.
fn fit(page: &str, rows: usize, columns: usize) -> String {
    let (rows, columns) =
        (if rows == 0 { usize::MAX } else { rows.max(2) - 1 }, if columns == 0 { usize::MAX } else { columns });
    let lines: Vec<&str> = page.lines().collect();
    let mut shown: Vec<String> = lines.iter().take(rows).map(|line| line.chars().take(columns).collect()).collect();
    if lines.len() > rows
        && let Some(last) = shown.last_mut()
    {
        *last = format!("... {} more lines", lines.len() - rows + 1).chars().take(columns).collect();
    }
    shown.join("\n")
}

/// Where the numbers are: named, or in the configuration.
fn address(args: &Top) -> Result<SocketAddr, Failure> {
    if let Some(address) = args.metrics {
        return Ok(address);
    }
    let config = Config::read(&args.config)?;
    let none = || {
        format!(
            "{}: no address in [metrics], nor metrics in [dnsbl], so there is nothing to ask",
            args.config.display()
        )
        .into()
    };
    config.metrics.address.or(config.dnsbl.metrics).ok_or_else(none)
}

/// The numbers of one moment in one line, by the names that Prometheus knows.
fn object(address: SocketAddr, now: &Sample) -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let metrics: serde_json::Map<_, _> =
        now.numbers.iter().map(|(name, value)| (format!("sluice_{name}"), (*value).into())).collect();
    let seconds = since.as_millis() as f64 / 1_000.0;
    serde_json::json!({ "address": address.to_string(), "time": seconds, "metrics": metrics }).to_string()
}

/// One page. Rates are those since the page before; on the first they are missing.
fn page(address: SocketAddr, now: &Sample, before: Option<&Sample>) -> String {
    if now.numbers.contains_key("dnsbl_queries_udp_total") {
        return dnsbl_page(address, now, before);
    }
    let mut text = format!("sluice at {address}\n\n");
    let rate = |name: &str| {
        before.map(|before| {
            let seconds = now.at.duration_since(before.at).as_secs_f64().max(0.001);
            now.growth(before, name) / seconds
        })
    };
    let per_second = |name: &str| rate(name).map_or_else(|| "-".into(), |rate| format!("{rate:.1}"));
    let level = |name: &str| now.level(name);
    let mut line = |name: &str, value: String, more: String| {
        let _ = writeln!(text, "{name:<22}{value:>14}  {more}");
    };
    line(
        "sessions",
        format!("{}", level("sessions_open")),
        format!("{}/s, refused {}/s", per_second("sessions_total"), per_second("sessions_refused_total")),
    );
    line("messages", format!("{}", level("messages_total")), format!("{}/s", per_second("messages_total")));
    for what in ["passed", "tagged", "blanked", "quarantined", "rejected", "deferred", "streamed"] {
        let name = format!("messages_{what}_total");
        line(&format!("  {what}"), format!("{}", level(&name)), format!("{}/s", per_second(&name)));
    }
    let content = rate("content_bytes_total").map_or_else(|| "-".into(), |rate| format!("{}/s", bytes(rate)));
    line("content", bytes(level("content_bytes_total")), content);
    line("clamd scans", format!("{}", level("clamd_scans_total")), format!("{}/s", per_second("clamd_scans_total")));
    let each = |name: &str| {
        let growth = |what: &str| {
            let name = format!("{name}_seconds_{what}");
            before.map_or(level(&name), |before| now.growth(before, &name))
        };
        let count = growth("count");
        if count > 0.0 { format!("{:.2} ms", growth("sum") / count * 1_000.0) } else { "-".into() }
    };
    line("inspection, a message", each("inspect"), String::new());
    line("from end to reply", each("after_end"), String::new());
    line(
        "memory",
        bytes(level("resident_bytes")),
        format!(
            "free: {} heads, {} scans",
            bytes(level("head_pool_free_bytes")),
            bytes(level("inspection_pool_free_bytes"))
        ),
    );
    line("signatures", format!("{}", level("signatures")), signatures(now));
    if now.numbers.contains_key("store_size_bytes") {
        let logins = (per_second("store_logins_total"), per_second("store_login_failures_total"));
        line(
            "store sessions",
            format!("{}", level("sessions_in_store")),
            format!("logins {}/s, failures {}/s", logins.0, logins.1),
        );
        let lost = (level("store_undelivered_total"), level("store_over_quota_total"));
        line(
            "  delivered",
            format!("{}", level("store_delivered_total")),
            format!("{}/s, not {}, over quota {}", per_second("store_delivered_total"), lost.0, lost.1),
        );
        line("  a delivery", each("store_delivery"), format!("{} flushes/s", per_second("store_commits_total")));
        let room = (bytes(level("store_size_bytes")), bytes(level("store_live_bytes")));
        line("  free", bytes(level("store_free_bytes")), format!("of {}, messages {}", room.0, room.1));
        let waits = (level("store_queue_messages"), level("store_index_behind_accounts"));
        line("  messages", format!("{}", level("store_messages")), format!("queue {}, indexes {}", waits.0, waits.1));
    }
    text + &processes(now)
}

/// Signatures in force, their age, and the outcome of the last reloads.
fn signatures(now: &Sample) -> String {
    let mut text = format!("generation {}", now.level("database_generation"));
    let built = now.level("database_built_seconds");
    if now.numbers.get("signature_files").is_some_and(|files| *files == 0.0) {
        text += ", TEST SIGNATURES ONLY";
    } else if built > 0.0 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        text += &format!(", {:.0} days old", ((since - built) / 86_400.0).max(0.0));
    }
    let failures = now.level("reload_failures_total");
    if failures > 0.0 {
        text += &format!(", {failures} reloads failed");
    }
    text
}

/// The processes: what each has of memory, and those that inspect how many objects, and how often they were started anew.
fn processes(now: &Sample) -> String {
    let mut text = String::new();
    for (name, resident) in &now.numbers {
        let Some(labels) = name.strip_prefix("process_resident_bytes") else { continue };
        let label = |key: &str| labels.split_once(&format!("{key}=\"")).and_then(|(_, rest)| rest.split('"').next());
        let (Some(process), Some(pid)) = (label("process"), label("pid")) else { continue };
        if text.is_empty() {
            text = format!("\n{:<22}{:>14}{:>14}{:>14}{:>14}\n", "process", "pid", "memory", "inspections", "restarts");
        }
        let of = |what: &str| now.numbers.get(&format!("process_{what}{{process=\"{process}\"}}"));
        let count =
            |what: &str, less: f64| of(what).map_or_else(|| "-".into(), |count| format!("{}", (count - less).max(0.0)));
        let _ = writeln!(
            text,
            "{:<22}{:>14}{:>14}{:>14}{:>14}",
            format!("sluice: {}", process.replace('_', " ")),
            if pid.is_empty() { "-" } else { pid },
            bytes(*resident),
            count("inspections_total", 0.0),
            count("starts_total", 1.0),
        );
    }
    text
}

/// The page of `sluice dnsbl serve`.
fn dnsbl_page(address: SocketAddr, now: &Sample, before: Option<&Sample>) -> String {
    let mut text = format!("sluice dnsbl at {address}\n\n");
    let seconds = before.map(|before| now.at.duration_since(before.at).as_secs_f64().max(0.001));
    for (what, name) in [
        ("queries by UDP", "queries_udp_total"),
        ("queries by TCP", "queries_tcp_total"),
        ("  listed", "positive_total"),
        ("  not listed", "negative_total"),
        ("  refused, failed", "errors_total"),
        ("  not answered", "silent_total"),
        ("  limited", "limited_total"),
        ("zone transfers", "transfers_total"),
        ("reloads", "reloads_total"),
        ("reloads failed", "reload_failures_total"),
    ] {
        let name = format!("dnsbl_{name}");
        let rate = before.zip(seconds).map(|(before, seconds)| now.growth(before, &name) / seconds);
        let rate = rate.map_or_else(|| "-".into(), |rate| format!("{rate:.1}"));
        let _ = writeln!(text, "{what:<22}{:>14}  {rate}/s", now.level(&name));
    }
    let zones = now.numbers.iter().filter_map(|(name, value)| {
        let zone = name.strip_prefix("dnsbl_listings{zone=\"")?.strip_suffix("\"}")?;
        Some((zone, value))
    });
    for (zone, listings) in zones {
        let _ = writeln!(text, "{zone:<22}{listings:>14}  listings");
    }
    let memory = bytes(now.level("dnsbl_data_bytes"));
    let _ = writeln!(text, "{:<22}{memory:>14}", "data in memory");
    text
}

/// A size for people.
fn bytes(count: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut count = count;
    let mut unit = 0;
    while count >= 1024.0 && unit + 1 < units.len() {
        count /= 1024.0;
        unit += 1;
    }
    format!("{count:.1} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: Instant, text: &str) -> Sample {
        Sample { at, numbers: crate::numbers::numbers(text) }
    }

    #[test]
    fn rates_are_those_since_the_page_before() {
        let at = Instant::now();
        let before = sample(
            at,
            "# HELP sluice_messages_total x\nsluice_messages_total 10\nsluice_inspect_seconds_count 10\nsluice_inspect_seconds_sum 0\nother 3\n",
        );
        let now = sample(
            at + Duration::from_secs(2),
            "sluice_messages_total 30\nsluice_inspect_seconds_count 30\nsluice_inspect_seconds_sum 0.04\n",
        );
        assert_eq!(before.numbers.len(), 3);
        let page = page("127.0.0.1:1".parse().unwrap(), &now, Some(&before));
        assert!(page.contains("10.0/s") && page.contains("2.00 ms"), "{page}");
    }

    #[test]
    fn a_gateway_that_began_anew_has_no_negative_rates() {
        let at = Instant::now();
        let (before, now) = (sample(at, "sluice_messages_total 10\n"), sample(at, "sluice_messages_total 1\n"));
        assert!(!page("127.0.0.1:1".parse().unwrap(), &now, Some(&before)).contains("--"));
        assert_eq!(now.growth(&before, "messages_total"), 0.0);
    }

    #[test]
    fn processes_have_a_line_each() {
        let now = sample(
            Instant::now(),
            "sluice_process_resident_bytes{process=\"edge\",pid=\"12\"} 1048576\n\
             sluice_process_resident_bytes{process=\"jail_1\",pid=\"13\"} 2097152\n\
             sluice_process_inspections_total{process=\"jail_1\"} 7\nsluice_process_starts_total{process=\"jail_1\"} 3\n",
        );
        let text = processes(&now);
        let lines: Vec<Vec<&str>> = text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["sluice:", "edge", "12", "1.0", "MiB", "-", "-"]);
        assert_eq!(lines[1], ["sluice:", "jail", "1", "13", "2.0", "MiB", "7", "2"]);
        assert!(processes(&sample(Instant::now(), "sluice_messages_total 1\n")).is_empty());
    }

    #[test]
    fn a_server_of_block_lists_has_a_page_of_its_own() {
        let at = Instant::now();
        let text = |queries: u32| {
            format!("sluice_dnsbl_queries_udp_total {queries}\nsluice_dnsbl_listings{{zone=\"bl.example\"}} 1234\n")
        };
        let (before, now) = (sample(at, &text(100)), sample(at + Duration::from_secs(2), &text(300)));
        let page = page("127.0.0.1:1".parse().unwrap(), &now, Some(&before));
        assert!(page.contains("100.0/s") && page.contains("bl.example") && page.contains("1234"), "{page}");
        assert!(!page.contains("sessions"), "{page}");
    }

    #[test]
    fn a_page_fits_a_small_terminal() {
        let page = "a\nbcdef\nc\nd\n";
        assert_eq!(fit(page, 0, 0), "a\nbcdef\nc\nd");
        assert_eq!(fit(page, 5, 3), "a\nbcd\nc\nd");
        assert_eq!(fit(page, 4, 80), "a\nbcdef\n... 2 more lines");
        assert_eq!(fit(page, 1, 80), "... 4 more lines");
        let text = ["sessions_open", "head_pool_free_bytes", "inspection_pool_free_bytes", "resident_bytes"]
            .map(|name| format!("sluice_{name} 1048575999\n"))
            .concat();
        let page = super::page("127.0.0.1:65535".parse().unwrap(), &sample(Instant::now(), &text), None);
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    }

    #[test]
    fn without_signatures_that_is_said() {
        let said = |text: &str| signatures(&sample(Instant::now(), text));
        assert!(said("sluice_signature_files 0\n").contains("TEST SIGNATURES ONLY"));
        assert!(said("sluice_signature_files 3\nsluice_reload_failures_total 2\n").ends_with(", 2 reloads failed"));
        assert_eq!(said("sluice_database_generation 4\n"), "generation 4");
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!((bytes(1023.0), bytes(1536.0)), ("1023.0 B".into(), "1.5 KiB".into()));
    }
}
