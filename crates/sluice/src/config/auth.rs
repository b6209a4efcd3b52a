//! The key `auth` of a listener: whether clients may log in to the next hop.

use std::net::IpAddr;

use serde::Deserialize;

use super::{Forward, Listener, Protocol, Scheme, Verify};

/// Whether clients may log in to the next hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// No.
    Off,
    /// In TLS, to a hop that has proved in TLS who it is, or is on this machine.
    Tls,
    /// However the streams are.
    Any,
}

impl Listener {
    /// Whether clients may log in. A client that is intercepted may where its password is as safe as without us.
    pub fn auth(&self) -> Auth {
        let usual = if self.transparent.is_some() && self.proves_its_hop() { Auth::Tls } else { Auth::Off };
        self.auth.unwrap_or(usual)
    }

    pub(super) fn check_auth(&self) -> Result<(), String> {
        if self.auth.is_none_or(|auth| auth == Auth::Off) {
            return Ok(());
        }
        if self.protocol != Protocol::Smtp {
            return Err("auth is for protocol = \"smtp\"".into());
        }
        if !matches!(
            self.forward,
            Forward::Original | Forward::SmtpSocket(_) | Forward::Server { scheme: Scheme::Smtp | Scheme::Smtps, .. }
        ) {
            return Err(format!("auth: nobody can log in to {}", self.forward));
        }
        if self.auth == Some(Auth::Tls) && !self.proves_its_hop() {
            return Err(
                "auth = \"tls\" needs forward_tls = \"require\" or smtps://, and a proof; or auth = \"any\"".into()
            );
        }
        Ok(())
    }

    /// Whether what the hop is told reaches it and nobody else.
    fn proves_its_hop(&self) -> bool {
        let is_here = match &self.forward {
            Forward::SmtpSocket(_) => true,
            forward => forward.host().and_then(|host| host.parse().ok()).is_some_and(|ip: IpAddr| ip.is_loopback()),
        };
        is_here || self.forwards_in_tls() && self.verify() != Verify::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn parse(settings: &str) -> Result<Auth, String> {
        let text = format!("[[listener]]\naddress='127.0.0.1:1'\n{settings}");
        let config = Config::parse(&text, "test").map_err(|error| error.to_string())?;
        Ok(config.listeners[0].auth())
    }

    #[test]
    fn passwords_go_to_a_hop_that_has_proved_who_it_is_unless_they_may_go_anywhere() {
        let smtp = |settings: &str| parse(&format!("protocol='smtp'\n{settings}"));
        assert_eq!(smtp("forward='smtp://a'"), Ok(Auth::Off));
        for safe in [
            "forward='smtps://a'",
            "forward='smtp://a'\nforward_tls='require'",
            "forward='smtp://127.0.0.1:587'",
            "forward='smtp:/run/submission'",
        ] {
            assert_eq!(smtp(&format!("{safe}\nauth='tls'")), Ok(Auth::Tls), "{safe}");
        }
        for open in ["forward='smtp://a'", "forward='smtps://a'\nforward_verify='nothing'"] {
            assert!(smtp(&format!("{open}\nauth='tls'")).unwrap_err().contains("and a proof"), "{open}");
            assert_eq!(smtp(&format!("{open}\nauth='any'")), Ok(Auth::Any), "{open}");
        }
        assert!(smtp("forward='discard:'\nauth='any'").is_err());
        assert!(parse("protocol='lmtp'\nforward='lmtp://a'\nauth='any'").is_err());
    }

    #[test]
    fn who_is_intercepted_may_log_in_where_that_is_no_less_safe() {
        let intercepted = |settings: &str| {
            let head = "[[tls.certificate]]\nchain='a'\nkey='b'";
            let text = format!(
                "{head}\n[[listener]]\naddress='192.0.2.1:1'\nprotocol='smtp'\ntransparent='redirect'\n{settings}"
            );
            Config::parse(&text, "test").unwrap().listeners[0].auth()
        };
        assert_eq!(intercepted("tls='implicit'"), Auth::Tls);
        assert_eq!(intercepted("tls='offer'"), Auth::Off);
        assert_eq!(intercepted("tls='offer'\nforward_tls='require'\nforward_verify='name:a.b'"), Auth::Tls);
    }
}
