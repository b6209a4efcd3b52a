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
    /// Print the queue, a line for each mail and recipient: number, sender, recipient, age, attempts, next attempt,
    /// and the last error.
    List(QueueSelect),
    /// Print all facts about mails, a JSON object each.
    Show(QueueSelect),
    /// Print why mails wait: the last reply, the next attempt, and the rest of their host.
    Why(QueueSelect),
    /// Retry mails now, even if their host rests.
    Retry(QueueSelect),
    /// Retry all queued mails now.
    Flush(QueueSelect),
    /// Hold mails until they are released.
    Hold(QueueSelect),
    /// Release held mails.
    Release(QueueSelect),
    /// Delete mails, without a notification.
    Delete(QueueSelect),
    /// Bounce mails now: their senders are notified.
    Bounce(QueueSelect),
    /// Print or change the list of recipients that get no more mail of accounts.
    Suppress(QueueSuppress),
}

/// `sluice queue suppress`
#[derive(Debug, Args)]
pub struct QueueSuppress {
    /// Subcommand.
    #[command(subcommand)]
    pub command: SuppressCommand,
}

/// Subcommands about suppressed recipients.
#[derive(Debug, Subcommand)]
pub enum SuppressCommand {
    /// Print the suppressed recipients, since when, and why. Exit status: 1 if there is none.
    List {
        /// Where the store is.
        #[command(flatten)]
        place: StorePlace,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Suppress recipients: accounts cannot send to them.
    Add {
        /// Where the store is.
        #[command(flatten)]
        place: StorePlace,
        /// Their addresses.
        #[arg(required = true, value_name = "ADDRESS")]
        addresses: Vec<String>,
        /// Why, for the list.
        #[arg(long, value_name = "TEXT", default_value = "")]
        reason: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Delete recipients from the list. Exit status: 1 if none was on it.
    Delete {
        /// Where the store is.
        #[command(flatten)]
        place: StorePlace,
        /// Their addresses.
        #[arg(required = true, value_name = "ADDRESS")]
        addresses: Vec<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
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
    /// All queued mails: for hold, delete and bounce without another condition.
    #[arg(long)]
    pub all: bool,
    /// Mails of this sender or account; <> is the null sender.
    #[arg(long, value_name = "ADDRESS")]
    pub sender: Option<String>,
    /// Mails for this recipient.
    #[arg(long, value_name = "ADDRESS")]
    pub recipient: Option<String>,
    /// Mails for recipients in this domain.
    #[arg(long, value_name = "DOMAIN")]
    pub domain: Option<String>,
    /// Mails that have waited at least this long: 90s, 15m, 4h, 2d.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub age: Option<i64>,
    /// Mails whose last error contains this text.
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
