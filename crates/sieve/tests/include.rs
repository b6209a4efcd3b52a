//! Scripts that include others (RFC 6609).

use sieve::{Limits, Location, Mail, Scripts, Setting, compile, run};

struct Library;

impl Scripts for Library {
    fn script(&self, location: Location, name: &str) -> Option<String> {
        let text = match (location, name) {
            (Location::Personal, "set") => {
                "require [\"include\", \"variables\"]; global \"g\"; set \"g\" \"of set\"; set \"l\" \"x\"; return; stop;"
            }
            (Location::Global, "file") => {
                "require [\"fileinto\", \"variables\", \"include\"]; fileinto \"${global.g}${l}\";"
            }
            (Location::Personal, "self") => "require \"include\"; include \"self\";",
            (Location::Personal, "broken") => "keep;\n  nothing;",
            _ => return None,
        };
        Some(text.into())
    }
}

fn told(script: &str) -> String {
    let script = format!("require [\"include\", \"variables\"];\n{script}");
    let program = match compile(&script, &Library) {
        Ok(program) => program,
        Err(error) => return error.to_string(),
    };
    let setting = Setting {
        from: "",
        to: "",
        addresses: &[],
        now: 0,
        zone: 0,
        spam_percent: None,
        virus: 0,
        hostname: "",
        host: &(),
        limits: Limits::default(),
    };
    let outcome = run(&program, &Mail::new(b"\r\n", 2), &setting);
    outcome.actions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[test]
fn scripts_share_what_is_global() {
    assert_eq!(told("set \"l\" \"mine\"; include \"set\"; include :global \"file\";"), "fileinto \"of set\"");
    assert_eq!(told("include :optional \"none\";"), "keep (implicit)");
}

#[test]
fn errors_name_the_script() {
    assert_eq!(told("include \"self\";"), "script self, line 1, column 20: script \"self\" includes itself");
    assert_eq!(told("include \"broken\";"), "script broken, line 2, column 3: there is no command nothing");
    assert_eq!(told("include \"none\";"), "line 2, column 9: there is no script \"none\"");
}
