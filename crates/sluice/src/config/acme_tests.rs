//! Tests of `[tls.acme]` and its certificates.

use crate::config::Config;

fn parse(acme: &str, names: &str) -> Result<Config, String> {
    let text = format!(
        "[tls.acme]\n{acme}\n[[tls.certificate]]\nacme={names}\n\
         [[listener]]\nprotocol='smtp'\naddress='127.0.0.1:1'\nforward='discard:'\ntls='offer'"
    );
    Config::parse(&text, "test").map_err(|error| error.to_string())
}

#[test]
fn what_an_authority_would_refuse_is_refused_before_it_is_asked() {
    let agreed = "accept_terms=true\ncontact='postmaster@example.org'";
    let names = |config: Config| config.tls.acme_names().map(<[_]>::to_vec).collect::<Vec<_>>();
    assert_eq!(names(parse(agreed, "['MX.example.org']").unwrap()), [["mx.example.org"]]);
    for (acme, wrong, why) in [
        ("", "['mx.example.org']", "accept_terms"),
        (agreed, "[]", "acme has no names"),
        (agreed, "['*.example.org']", "not a host name"),
        (agreed, "['192.0.2.1']", "not a host name"),
        (agreed, "['localhost']", "not a host name"),
        (agreed, "['../../x.y']", "not a host name"),
        ("accept_terms=true\ncontact='me'", "['mx.example.org']", "not a mail address"),
        ("accept_terms=true\ndirectory='http://a'", "['mx.example.org']", "not an https URL"),
        (agreed, "['mx.example.org']\nchain='x'", "chain and key, or acme"),
        (agreed, "['a.example']\n[[tls.certificate]]\nacme=['A.example']", "begin with a.example"),
    ] {
        let refusal = parse(acme, wrong).unwrap_err();
        assert!(refusal.contains(why), "{acme} {wrong}: {refusal}");
    }
}
