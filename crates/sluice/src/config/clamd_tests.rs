//! Tests of `[clamd]`.

use crate::config::Config;

fn refusal(table: &str) -> String {
    Config::parse(&format!("[clamd]\n{table}"), "sluice.toml").unwrap_err().to_string()
}

#[test]
fn what_is_wrong_is_refused_where_it_stands() {
    assert!(refusal("addresses = [\"unix:run\"]").contains("sluice.toml:2:13: \"unix:run\": the path of a socket"));
    assert!(refusal("addresses = [\"localhost\"]").contains("is not an address"));
    assert!(refusal("socket_mode = \"999\"").contains("2:15: \"999\" are not octal permissions"));
    assert!(refusal("exclude = [\"(\"]").contains("sluice.toml:2:11:"));
    assert!(refusal("on_limit = \"tag\"").contains("2:12:"));
    assert!(refusal("reload = \"everybody\"").contains("true, false or \"local\""));
    assert!(refusal("clients = [\"10.0.0.0/99\"]").contains("is not a network"));
    assert!(refusal("read_seconds_max = 0").contains("a limit of 0 would refuse everything"));
    assert!(refusal("[database]\ninclude_pua = [\"A\"]\nexclude_pua = [\"B\"]").contains("exclude each other"));
    assert!(refusal("addresses = [\"[::1]:1\", \"[::1]:1\"]").contains("used twice"));
}

#[test]
fn who_may_is_told_by_where_they_come_from() {
    let remote = Some("192.0.2.1".parse().expect("an address"));
    for (text, allowed) in [("true", [true; 3]), ("\"local\"", [true, true, false]), ("false", [false; 3])] {
        let config = Config::parse(&format!("[clamd]\nreload = {text}"), "sluice.toml").expect("a configuration");
        for (address, allowed) in
            [None, Some("::ffff:127.0.0.1".parse().expect("an address")), remote].iter().zip(allowed)
        {
            assert_eq!(config.clamd.reload.holds(*address), allowed, "{text} {address:?}");
        }
    }
}
