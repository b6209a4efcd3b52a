//! Intrusion rules in long contents: windows that move on, the texts that select rules, kinds of flows, and what tests may cost.

use std::net::IpAddr;

use rules::ids::{App, Buffer, Desk, Direction, Flow, Limits, Loader, RuleSet, Site, Transaction, Transport, Tuple};

use crate::ids::set;

const WAY: Direction = Direction::ToServer;

/// A set whose windows have so many bytes.
fn windowed(rules: &str, window_bytes: usize) -> RuleSet {
    let mut loader = Loader::new(Limits { window_bytes, ..Limits::default() });
    loader.file("test.rules", rules.as_bytes());
    loader.finish()
}

fn flow(port: u16, app: Option<App>, site: &mut Site) -> Flow {
    let [client, server] = [[203, 0, 113, 1], [10, 0, 0, 2]].map(IpAddr::from);
    Flow::new(Tuple { client: (client, 1025), server: (server, port), transport: Transport::Tcp }, app, site)
}

fn sids(set: &RuleSet, flow: &mut Flow) -> Vec<u32> {
    let mut sids: Vec<u32> = flow.alerts().iter().map(|alert| set.rules()[alert.rule].sid).collect();
    sids.sort_unstable();
    sids
}

/// The rules that match a mail with one file, which is in the stream, too; both come in pieces.
fn mail(set: &RuleSet, file: &[u8], piece_bytes: usize) -> Vec<u32> {
    let (mut site, mut transaction) = (Site::default(), Transaction::new());
    let mut flow = flow(25, Some(App::Smtp), &mut site);
    let mut desk = Desk { rules: set, site: &mut site, now_ms: 0 };
    transaction.fill(set, WAY, Buffer::SmtpHelo, b"name.test");
    for piece in file.chunks(piece_bytes) {
        flow.payload(WAY, piece, &mut desk);
        flow.feed(&mut transaction, WAY, Buffer::FileData, piece, &mut desk);
    }
    flow.end(&mut transaction, WAY, &mut desk);
    flow.turn(WAY, &mut desk);
    sids(set, &mut flow)
}

/// Filling with texts at places.
fn text(bytes: usize, texts: &[(usize, &str)]) -> Vec<u8> {
    let mut all = vec![b'.'; bytes];
    texts.iter().for_each(|(at, text)| all[*at..*at + text.len()].copy_from_slice(text.as_bytes()));
    all
}

#[test]
fn texts_are_found_together_within_half_a_window_wherever_it_lies() {
    let set = windowed(
        r#"alert smtp any any -> any any (file.data; content:"first"; content:"second"; distance:0; sid:1;)
        alert tcp any any -> any any (content:"first"; content:"second"; sid:2;)
        alert smtp any any -> any any (file.data; content:"FIRST"; nocase; content:!"second"; sid:3;)"#,
        1024,
    );
    for at in [0, 500, 508, 509, 1020, 2047, 3000, 4800] {
        let near = text(6000, &[(at, "first"), (at + 400, "second")]);
        let far = text(6000, &[(at, "first"), (at + 1030, "second")]);
        for piece_bytes in [1, 100, 512, 700, 6000] {
            let found = mail(&set, &near, piece_bytes);
            assert!(found.starts_with(&[1, 2]), "{at} {piece_bytes} {found:?}");
            assert_eq!(mail(&set, &far, piece_bytes), [3], "{at} {piece_bytes}");
        }
    }
}

#[test]
fn a_section_that_has_matched_waits_for_the_others() {
    let set = windowed(
        r#"alert smtp any any -> any any (file.data; content:"early"; pkt_data; content:"much later"; sid:1;)
        alert smtp any any -> any any (file.data; content:"much later"; smtp.helo; content:"name"; sid:2;)
        alert smtp any any -> any any (file.data; content:"early"; pkt_data; content:"nowhere"; sid:3;)"#,
        1024,
    );
    let file = text(9000, &[(100, "early"), (8000, "much later")]);
    for piece_bytes in [64, 1024] {
        assert_eq!(mail(&set, &file, piece_bytes), [1, 2], "{piece_bytes}");
    }
}

#[test]
fn a_rule_on_a_stream_matches_again_where_its_text_comes_again() {
    let set = windowed(r#"alert tcp any any -> any any (content:"again"; sid:1;)"#, 1024);
    let once = text(6000, &[(100, "again")]);
    let thrice = text(6000, &[(100, "again"), (2900, "again"), (2920, "again"), (5500, "again")]);
    for piece_bytes in [10, 6000] {
        assert_eq!(mail(&set, &once, piece_bytes), [1]);
        assert_eq!(mail(&set, &thrice, piece_bytes), [1, 1, 1]);
    }
}

#[test]
fn mail_has_the_rules_of_its_ports_and_protocols_alone() {
    let set = set(
        r#"alert smtp any any -> any any (content:"needle"; sid:1;)
        alert tcp any any -> any any (content:"needle"; sid:2;)
        alert tcp any any -> any 25 (content:"needle"; sid:3;)
        alert tcp any any -> any 80 (content:"needle"; sid:4;)
        alert http any any -> any any (content:"needle"; sid:5;)
        alert udp any any -> any any (content:"needle"; sid:6;)
        alert ip any any -> any any (content:"needle"; sid:7;)"#,
        &[],
    );
    for (port, app, wanted) in [
        (25, Some(App::Smtp), &[1, 2, 3, 7][..]),
        (0, Some(App::Smtp), &[1, 2, 3, 4, 7]),
        (2525, Some(App::Smtp), &[1, 2, 7]),
        (80, Some(App::Smtp), &[1, 2, 4, 7]),
        (80, Some(App::Http), &[2, 4, 5, 7]),
        (25, Some(App::Http), &[2, 3, 5, 7]),
        (25, None, &[2, 3, 7]),
    ] {
        let mut site = Site::default();
        let mut flow = flow(port, app, &mut site);
        let mut desk = Desk { rules: &set, site: &mut site, now_ms: 0 };
        flow.payload(WAY, b"a needle in hay", &mut desk);
        flow.turn(WAY, &mut desk);
        assert_eq!(sids(&set, &mut flow), wanted, "{port} {app:?}");
    }
}

#[test]
fn a_protocol_that_is_known_late_has_its_rules_on_what_came_before() {
    let set = set(
        r#"alert smtp any any -> any any (content:"needle"; sid:1;)
        alert tls any any -> any any (content:"needle"; sid:2;)
        alert tcp any any -> any any (content:"needle"; sid:3;)"#,
        &[],
    );
    for (apps, wanted) in
        [(&[App::Smtp][..], &[1, 3][..]), (&[App::Smtp, App::Tls], &[2, 3]), (&[App::Tls, App::Smtp], &[1, 3])]
    {
        let mut site = Site::default();
        let mut flow = flow(25, None, &mut site);
        let mut desk = Desk { rules: &set, site: &mut site, now_ms: 0 };
        let (before, mut rest) = b"a needle in hay".split_at(6);
        flow.payload(WAY, before, &mut desk);
        for &app in apps {
            flow.set_app(app);
            flow.payload(WAY, &rest[..1], &mut desk);
            rest = &rest[1..];
        }
        flow.payload(WAY, rest, &mut desk);
        flow.turn(WAY, &mut desk);
        assert_eq!(sids(&set, &mut flow), wanted, "{apps:?}");
    }
}

#[test]
fn a_test_that_depends_on_no_place_is_tried_once() {
    let mut loader = Loader::new(Limits { work_max: 1, work_a_byte: 40, ..Limits::default() });
    let rules = r#"alert tcp any any -> any any (content:"HELP"; nocase; isdataat:3,relative; pcre:"/^HELP\s[^\n]{500}/m"; sid:1;)
        alert tcp any any -> any any (content:"HELP"; nocase; content:"me"; distance:1; content:"nowhere"; sid:2;)
        alert tcp any any -> any any (content:"help"; content:"you"; distance:1; within:3; content:"end"; distance:0; sid:3;)"#;
    loader.file("test.rules", rules.as_bytes());
    let set = loader.finish();
    let file = [&b"Do help me.\n".repeat(4000)[..], b"help you to the end"].concat();
    let mut site = Site::default();
    let mut flow = flow(25, Some(App::Smtp), &mut site);
    let mut desk = Desk { rules: &set, site: &mut site, now_ms: 0 };
    flow.payload(WAY, &file, &mut desk);
    flow.turn(WAY, &mut desk);
    assert!(!flow.is_spent());
    assert_eq!(sids(&set, &mut flow), [3]);
}

#[test]
fn a_short_text_that_a_rule_names_gives_way_to_a_long_one() {
    let selector = |options: &str| {
        let set = set(&format!("alert tcp any any -> any 25 ({options} sid:1;)"), &[]);
        set.words(&set.rules()[0]).selector.map(|(_, text)| text)
    };
    let long = r#"content:"Content-Disposition"; content:"filename=";"#;
    assert_eq!(
        selector(&format!(r#"content:".zip"; nocase; fast_pattern; {long}"#)).as_deref(),
        Some("Content-Disposition")
    );
    assert_eq!(selector(&format!(r#"content:"evil.zip"; fast_pattern; {long}"#)).as_deref(), Some("evil.zip"));
    assert_eq!(selector(r#"content:".zip"; fast_pattern; content:"filename=";"#).as_deref(), Some(".zip"));
    // Texts of one buffer are compared: those of another may stand in each flow.
    assert_eq!(selector(&format!(r#"{long} file.data; content:"{{|5C|rt"; fast_pattern;"#)).as_deref(), Some("{\\rt"));
}
