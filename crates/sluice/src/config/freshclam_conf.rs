//! Reading `freshclam.conf`, so that a site can have `sluice update` in freshclam's place and keep its file.
//!
//! Every key of freshclam 1.4 is known. It is taken over, or means nothing here, or asks for what is not done, which is
//! told. `docs/doors/clamd.md` lists them. An unknown key is an error, as it is for freshclam.

use std::path::Path;

use crate::cli::values::number;
use crate::config::Config;
use crate::config::clamd_conf::{Heed, lines, truth};
use crate::config::update::needs_pin;

/// Where ClamAV's own databases are if the file does not say.
const OFFICIAL: &str = "database.clamav.net";

/// Values spread over several keys.
#[derive(Default)]
struct Gathered {
    mirrors: Vec<String>,
    private_mirrors: Vec<String>,
    excluded: Vec<String>,
}

/// Takes over the file at `path`, and returns what of it is not done.
///
/// # Errors
/// When it cannot be read or understood: the message names the line.
pub fn apply(config: &mut Config, path: &Path) -> Result<Vec<String>, String> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    let undone = apply_text(config, &text).map_err(|reason| format!("{name}:{reason}"))?;
    Ok(undone.into_iter().map(|reason| format!("{name}:{reason}")).collect())
}

fn apply_text(config: &mut Config, text: &str) -> Result<Vec<String>, String> {
    let mut gathered = Gathered::default();
    let mut undone = lines(text, |key, value| take(config, &mut gathered, key, value))?;
    let Gathered { mirrors, private_mirrors, excluded } = gathered;
    let mirrors = if private_mirrors.is_empty() { mirrors } else { private_mirrors };
    let mirror = mirrors.first().map_or(OFFICIAL, String::as_str);
    let scheme = if mirror.contains("://") { "" } else { "https://" };
    config.update.mirror = Some(format!("{scheme}{mirror}"));
    config.update.databases.retain(|name| !excluded.contains(name));
    if mirrors.len() > 1 {
        undone.push(format!(" Mirrors: only the first is used, {mirror}"));
    }
    Ok(undone)
}

fn take(config: &mut Config, gathered: &mut Gathered, key: &str, value: &str) -> Result<Heed, String> {
    let update = &mut config.update;
    match key {
        "Example" => return Err("this is the example: edit it first, and remove this line".into()),
        "DatabaseDirectory" => update.folder = Some(value.into()),
        "DatabaseOwner" => update.owner = Some(value.into()),
        "CVDCertsDirectory" => config.database.certificates = Some(value.into()),
        "DatabaseMirror" => gathered.mirrors.push(value.into()),
        "PrivateMirror" => gathered.private_mirrors.push(value.into()),
        "ExtraDatabase" => update.databases.push(value.into()),
        "ExcludeDatabase" => gathered.excluded.push(value.into()),
        "Bytecode" if truth(value)? => {}
        "Bytecode" => gathered.excluded.push("bytecode".into()),
        "DatabaseCustomURL" if value.starts_with("http") && needs_pin(value).is_some() => {
            return Ok(Heed::Undone("needs https, and allow and ignore lists need a digest: URL#sha256=HEX"));
        }
        "DatabaseCustomURL" if value.starts_with("http") => update.urls.push(value.into()),
        "DatabaseCustomURL" => return Ok(Heed::Undone("only http and https are supported; put files into the folder")),
        "ReceiveTimeout" => match number(value)? {
            0 => {}
            seconds => update.seconds_max = seconds,
        },
        "TestDatabases" | "ScriptedUpdates" => {
            return Ok(if truth(value)? { Heed::Unneeded } else { Heed::Undone("always on") });
        }
        "UpdateLogFile" => return Ok(Heed::Undone("the log goes to standard output")),
        "LogSyslog" if truth(value)? => return Ok(Heed::Undone("the log goes to standard output")),
        "Checks" => return Ok(Heed::Undone("the command runs once, use a timer")),
        "HTTPProxyServer" | "HTTPProxyPort" | "HTTPProxyUsername" | "HTTPProxyPassword" => {
            return Ok(Heed::Undone("set https_proxy in the environment"));
        }
        "OnUpdateExecute" | "OnErrorExecute" | "OnOutdatedExecute" => {
            return Ok(Heed::Undone("no commands are run, use the exit status"));
        }
        "LocalIPAddress" | "HTTPUserAgent" => return Ok(Heed::Undone("not configurable")),
        "LogFileMaxSize"
        | "LogTime"
        | "LogSyslog"
        | "LogFacility"
        | "LogVerbose"
        | "LogRotate"
        | "PidFile"
        | "Foreground"
        | "Debug"
        | "AllowSupplementaryGroups"
        | "DNSDatabaseInfo"
        | "MaxAttempts"
        | "CompressLocalDatabase"
        | "SafeBrowsing"
        | "NotifyClamd"
        | "ConnectTimeout" => return Ok(Heed::Unneeded),
        _ => return Err("not a key of freshclam.conf".into()),
    }
    Ok(Heed::Taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> (Config, Vec<String>) {
        let mut config = Config::default();
        let undone = apply_text(&mut config, text).unwrap();
        config.update.wanted().unwrap();
        (config, undone)
    }

    fn urls(config: &Config) -> Vec<String> {
        config.update.wanted().unwrap().into_iter().map(|wanted| wanted.url).collect()
    }

    #[test]
    fn folder_mirror_and_databases_are_taken_over() {
        let (config, undone) = taken(
            "# freshclam\nDatabaseDirectory /var/lib/clamav\nDatabaseMirror db.local.clamav.net\nExcludeDatabase main\n\
             PrivateMirror http://mirror.example/clamav\nBytecode no\nExtraDatabase more\nReceiveTimeout 0\n\
             DatabaseCustomURL https://example.org/a.ndb\nMaxAttempts 5\nNotifyClamd /etc/clamav/clamd.conf\n",
        );
        assert!(undone.is_empty(), "{undone:?}");
        assert_eq!(config.update.folder.as_deref(), Some(Path::new("/var/lib/clamav")));
        let mirror = "http://mirror.example/clamav";
        assert_eq!(
            urls(&config),
            [format!("{mirror}/daily.cvd"), format!("{mirror}/more.cvd"), "https://example.org/a.ndb".into()]
        );
        let (config, _) = taken("DatabaseDirectory /x\n");
        assert_eq!(urls(&config)[0], "https://database.clamav.net/main.cvd");
    }

    #[test]
    fn what_is_not_done_is_told_and_what_is_wrong_is_refused_with_its_line() {
        let (_, undone) = taken(
            "Checks 24\nOnErrorExecute /bin/x\nLogVerbose false\nHTTPProxyServer p\nScriptedUpdates no\nLogSyslog yes\n\
             DatabaseMirror a\nDatabaseMirror b\nDatabaseCustomURL file:///x.ndb\n",
        );
        let lines: Vec<&str> = undone.iter().map(|line| line.split(": ").next().unwrap()).collect();
        assert_eq!(lines, ["1", "2", "4", "5", "6", "9", " Mirrors"], "{undone:?}");
        let refusal = |text| apply_text(&mut Config::default(), text).unwrap_err();
        assert_eq!(refusal("\nBytecode maybe"), "2: Bytecode: \"maybe\" is neither yes nor no");
        assert_eq!(refusal("Nonsense 1"), "1: Nonsense: not a key of freshclam.conf");
        assert!(refusal("Example").starts_with("1: Example: "));
    }
}
