//! `sluice queue`.

use clap::{Args, Subcommand};

use super::StorePlace;

/// `sluice queue`
#[derive(Debug, Args)]
pub struct Queue {
    /// Subcommand.
    #[command(subcommand)]
    pub command: QueueCommand,
}

/// Subcommands about queued mail.
#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// Print what waits, a line for each mail and recipient: number, sender, recipient, since when, how often it was tried, when next, and
    /// why it was not taken.
    List(QueueSelect),
    /// Print all that is known of mails: an object for each.
    Show(QueueSelect),
    /// Print why mails wait: what was said, when they are tried next, and until when their host is left alone.
    Why(QueueSelect),
    /// Have mails tried now, whatever their hosts did before.
    Retry(QueueSelect),
    /// The same for all that wait.
    Flush(QueueSelect),
    /// Have mails wait until they are released.
    Hold(QueueSelect),
    /// Have mails tried that were held.
    Release(QueueSelect),
    /// Take mails out; nobody is told.
    Delete(QueueSelect),
    /// Give mails up now; their senders are told.
    Bounce(QueueSelect),
}

/// Selection of mails: all conditions have to hold.
#[derive(Debug, Args)]
pub struct QueueSelect {
    /// Where the store is.
    #[command(flatten)]
    pub place: StorePlace,
    /// Their numbers.
    #[arg(value_name = "NUMBER")]
    pub mails: Vec<u32>,
    /// All that wait: for hold, delete and bounce, where nothing else is named.
    #[arg(long)]
    pub all: bool,
    /// Mails of this sender or account; <> is the null sender.
    #[arg(long, value_name = "ADDRESS")]
    pub sender: Option<String>,
    /// For this recipient.
    #[arg(long, value_name = "ADDRESS")]
    pub recipient: Option<String>,
    /// For recipients in this domain.
    #[arg(long, value_name = "DOMAIN")]
    pub domain: Option<String>,
    /// That wait for so long at least: 90s, 15m, 4h, 2d.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub age: Option<i64>,
    /// That were not taken for a reason which has this in it.
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub reason: Option<String>,
    /// That are held.
    #[arg(long)]
    pub held: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// A time in seconds: a number with s, m, h or d.
///
/// # Errors
/// When it is not one.
pub fn seconds(text: &str) -> Result<i64, String> {
    let (digits, unit) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3_600),
        Some((at, 'd')) => (&text[..at], 86_400),
        _ => (text, 1),
    };
    let number = digits.parse::<u32>().ok().map(i64::from);
    number.and_then(|number| number.checked_mul(unit)).ok_or_else(|| "a number with s, m, h or d".into())
}
