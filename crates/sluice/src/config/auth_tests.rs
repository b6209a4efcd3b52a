//! Tests of the key `auth` of a listener.

use edge::settings::Auth;

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
        let text =
            format!("{head}\n[[listener]]\naddress='192.0.2.1:1'\nprotocol='smtp'\ntransparent='redirect'\n{settings}");
        Config::parse(&text, "test").unwrap().listeners[0].auth()
    };
    assert_eq!(intercepted("tls='implicit'"), Auth::Tls);
    assert_eq!(intercepted("tls='offer'"), Auth::Off);
    assert_eq!(intercepted("tls='offer'\nforward_tls='require'\nforward_verify='name:a.b'"), Auth::Tls);
}
