//! Whether the TLS of a listener goes together with the certificates that there are.

use edge::settings::{Forward, Listener, ListenerTls, Verify};

use super::Config;

impl Config {
    pub(super) fn check_tls(&self, listener: &Listener) -> Result<(), String> {
        if listener.place.tls != ListenerTls::Off && self.tls.certificates.is_empty() {
            return Err("tls needs a [[tls.certificate]]".into());
        }
        if listener.place.tls != ListenerTls::Off && listener.place.address.tcp().is_none() {
            return Err("there is no TLS on a UNIX socket".into());
        }
        if listener.hop.forward_verify.as_ref().is_some_and(|verify| *verify != Verify::Nothing)
            && !listener.forwards_in_tls()
        {
            return Err("forward_verify needs forward_tls = \"require\"".into());
        }
        if listener.forwards_in_tls() && !matches!(listener.hop.forward, Forward::Server { .. } | Forward::Original) {
            return Err(format!("{} has no TLS", listener.hop.forward));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(settings: &str, head: &str) -> Result<Config, String> {
        let text = format!("{head}\n[[listener]]\nprotocol='smtp'\naddress='127.0.0.1:1'\n{settings}");
        Config::parse(&text, "test").map_err(|error| error.to_string())
    }

    #[test]
    fn tls_on_a_listener_needs_a_certificate() {
        let refusal = parse("forward='discard:'\ntls='offer'", "").unwrap_err();
        assert!(refusal.contains("needs a [[tls.certificate]]"), "{refusal}");
        let head = "[[tls.certificate]]\nchain='a'\nkey='b'";
        assert!(parse("forward='discard:'\ntls='offer'", head).is_ok());
    }

    #[test]
    fn a_proof_is_asked_for_by_default_where_tls_is_certain() {
        let verify = |settings: &str| parse(settings, "").unwrap().listeners[0].verify();
        assert_eq!(verify("forward='smtp://a'"), Verify::Nothing);
        assert_eq!(verify("forward='smtps://a'"), Verify::Name(None));
        assert_eq!(verify("forward='smtp://a'\nforward_tls='require'"), Verify::Name(None));
        let refusal = parse("forward='smtp://a'\nforward_verify='name'", "").unwrap_err();
        assert!(refusal.contains("needs forward_tls"), "{refusal}");
    }
}
