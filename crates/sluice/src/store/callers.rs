//! Doors and commands that hand mail to a store: their names on the [control socket](super::control), and the sessions that they get.

use std::io;

use edge::net::stream::Stream;
use edge::upstream::within::Caller;
use mailbox::Site;
use mailbox::lmtp::{self, Peer};

/// The line on the control socket that begins a session of a caller.
pub fn line(caller: &Caller) -> String {
    match caller {
        Caller::Lmtp => "deliver lmtp\n".into(),
        Caller::Smtp => "deliver smtp\n".into(),
        Caller::Insider => "deliver insider\n".into(),
        // A line end would be the end of the line: no account has one in its name.
        Caller::Account(name) => format!("deliver account {}\n", name.replace(char::is_control, "?")),
    }
}

/// The caller that a line names behind `deliver`.
pub fn named(name: &str) -> Option<Caller> {
    match name {
        "lmtp" => Some(Caller::Lmtp),
        "smtp" => Some(Caller::Smtp),
        "insider" => Some(Caller::Insider),
        name => name.strip_prefix("account ").map(|name| Caller::Account(name.into())),
    }
}

/// Takes mail of a caller until it goes.
///
/// # Errors
/// When the connection breaks.
pub async fn serve(stream: Stream, caller: &Caller, site: &Site) -> io::Result<()> {
    match caller {
        Caller::Lmtp => lmtp::serve(stream, None, Peer::Lmtp, site).await,
        Caller::Smtp => lmtp::serve(stream, None, Peer::Smtp, site).await,
        Caller::Insider => lmtp::serve(stream, None, Peer::Insider, site).await,
        Caller::Account(name) => lmtp::serve_account(stream, name, site).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_its_caller_and_no_name_adds_another_line() {
        for caller in Caller::DOORS.into_iter().chain([Caller::Account("ann x@here.test".into())]) {
            let line = line(&caller);
            assert_eq!(line.trim_end().strip_prefix("deliver ").and_then(named), Some(caller));
        }
        assert_eq!(line(&Caller::Account("a\r\nMAIL".into())), "deliver account a??MAIL\n");
        assert_eq!(named("account"), None);
    }
}
