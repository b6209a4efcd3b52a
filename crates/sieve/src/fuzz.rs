//! Fuzz bodies.

use alloc::string::String;
use alloc::vec::Vec;

use crate::{Action, Limits, Mail, Setting, compile, run};

/// Fuzz body: a script, a line of `=====`, and a mail. The script runs within its bounds, twice with the same outcome;
/// after any error the mail is kept.
pub fn fuzz_sieve(data: &[u8]) {
    const CUT: &[u8] = b"\n=====\n";
    let at = data.windows(CUT.len()).position(|window| window == CUT).unwrap_or(data.len());
    let (script, mail) = data.split_at(at);
    let mail = mail.get(CUT.len()..).unwrap_or_default();
    let script = String::from_utf8_lossy(script);
    let program = match compile(&script, &()) {
        Ok(program) => program,
        Err(error) => {
            assert!(error.place.line <= u32::try_from(script.lines().count()).unwrap_or(u32::MAX).saturating_add(1));
            return;
        }
    };
    let addresses: [String; 0] = [];
    let limits = Limits { fuel: 100_000, ..Limits::default() };
    let setting = Setting {
        from: "ann@x.example",
        to: "bob+lists@y.example",
        addresses: &addresses,
        now: 1_790_000_000,
        zone: 60,
        spam_percent: Some(70),
        virus: 1,
        hostname: "mx.y.example",
        host: &(),
        limits,
    };
    let size = u64::try_from(mail.len()).unwrap_or(u64::MAX);
    let outcome = run(&program, &Mail::new(mail, size), &setting);
    assert_eq!(outcome, run(&program, &Mail::new(mail, size), &setting));
    assert!(outcome.actions.len() <= limits.actions_max.saturating_add(1));
    if outcome.failure.is_some() {
        assert!(matches!(outcome.actions.as_slice(), [Action::Keep { is_implicit: true, header: None, .. }]));
    }
    for action in &outcome.actions {
        if let Action::Keep { header: Some(header), .. } | Action::FileInto { header: Some(header), .. } = action {
            assert!(header.ends_with(b"\r\n"));
        }
        if let Action::Vacation(vacation) = action {
            let head: Vec<&str> = vacation.message.split("\r\n").take_while(|line| !line.is_empty()).collect();
            assert!(head.iter().take(4).all(|line| line.contains(": ")));
        }
    }
}
