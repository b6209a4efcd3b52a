//! Reading `clamd.conf`, so that a site can put Sluice in clamd's place and keep its file.
//!
//! Every key of clamd 1.4 and of `clamonacc` is known. It is taken over, or means nothing here (Sluice does it anyway, or
//! has no such thing to set), or asks for what Sluice does not do: of those the log warns. `docs/doors/clamd.md` lists them.
//! An unknown key is an error, as it is for clamd.
//!
//! The file and not a table in the configuration, because then nothing has to be written: clamd's own file, and the
//! tools that write it, stay as they are.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

use edge::settings::Address;
use edge::settings::{Said, Who};

use crate::cli::values::{number, size};
use crate::config::Config;

/// Treatment of a key.
pub enum Heed {
    /// It is taken over.
    Taken,
    /// The option has no meaning here.
    Unneeded,
    /// It asks for what is not done, for this reason.
    Undone(&'static str),
}

/// Values spread over several keys.
#[derive(Default)]
struct Gathered {
    port: Option<u16>,
    hosts: Vec<String>,
    follow_folders: bool,
    follow_files: bool,
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
    // What clamd may read it may scan.
    config.clamd.paths = vec!["/".into()];
    let mut gathered = Gathered::default();
    let mut undone = lines(text, |key, value| take(config, &mut gathered, key, value))?;
    let addresses = gathered.addresses().map_err(|reason| format!(" TCPAddr: {reason}"))?;
    config.clamd.addresses.extend(addresses.into_iter().map(Address::Tcp));
    // One kind alone would bring the other with it.
    config.clamd.follow_symlinks = gathered.follow_folders && gathered.follow_files;
    if gathered.follow_folders != gathered.follow_files {
        undone.push(" Follow...Symlinks: links are followed only if both are yes".into());
    }
    Ok(undone)
}

/// Hands each key to `take` with its value, and returns what is not done.
///
/// # Errors
/// What `take` does not take, behind its line.
pub fn lines(text: &str, mut take: impl FnMut(&str, &str) -> Result<Heed, String>) -> Result<Vec<String>, String> {
    let mut undone = Vec::new();
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let value = value.trim().trim_matches('"');
        let place = format!("{}: {key}", index + 1);
        match take(key, value).map_err(|reason| format!("{place}: {reason}"))? {
            Heed::Taken | Heed::Unneeded => {}
            Heed::Undone(reason) => undone.push(format!("{place}: {reason}")),
        }
    }
    Ok(undone)
}

impl Gathered {
    fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let Some(port) = self.port else { return Ok(Vec::new()) };
        let everywhere = ["0.0.0.0".to_string()];
        let hosts = if self.hosts.is_empty() { &everywhere[..] } else { &self.hosts };
        let mut all = Vec::new();
        for host in hosts {
            let found = (host.as_str(), port).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
            all.extend(found);
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }
}

fn take(config: &mut Config, gathered: &mut Gathered, key: &str, value: &str) -> Result<Heed, String> {
    let clamd = &mut config.clamd;
    match key {
        "Example" => return Err("this is the example: edit it first, and remove this line".into()),
        "TCPSocket" => gathered.port = Some(number(value)?),
        "TCPAddr" => gathered.hosts.push(value.into()),
        "LocalSocket" => clamd.addresses.push(format!("unix:{value}").parse()?),
        "LocalSocketGroup" => clamd.socket_group = Some(value.into()),
        "LocalSocketMode" => clamd.socket_mode = value.parse()?,
        "DatabaseDirectory" => config.database.paths.push(value.into()),
        "FailIfCvdOlderThan" => config.database.unready_days = number(value)?,
        "User" => config.user = Some(value.into()),
        "DetectPUA" => config.database.detect_pua = truth(value)?,
        "IncludePUA" => config.database.include_pua.push(value.into()),
        "ExcludePUA" => config.database.exclude_pua.push(value.into()),
        "CVDCertsDirectory" => config.database.certificates = Some(value.into()),
        "StreamMaxLength" => clamd.stream_bytes_max = size(value)?,
        "CommandReadTimeout" => clamd.command_seconds_max = seconds(value)?,
        "ReadTimeout" => clamd.read_seconds_max = seconds(value)?,
        "MaxDirectoryRecursion" => clamd.directory_depth_max = number(value)?,
        "ExcludePath" => clamd.exclude.push(value.parse()?),
        "CrossFilesystems" => clamd.cross_filesystems = truth(value)?,
        "FollowDirectorySymlinks" => gathered.follow_folders = truth(value)?,
        "FollowFileSymlinks" => gathered.follow_files = truth(value)?,
        "AllowAllMatchScan" => clamd.all_matches = truth(value)?,
        "EnableReloadCommand" => clamd.reload = if truth(value)? { Who::All } else { Who::Nobody },
        "EnableShutdownCommand" => clamd.shutdown = truth(value)?,
        "EnableStatsCommand" => clamd.stats = truth(value)?,
        "EnableVersionCommand" => clamd.version = truth(value)?,
        "AlertExceedsMax" => clamd.on_limit = if truth(value)? { Said::Found } else { Said::Ok },
        "AlertEncrypted" | "AlertEncryptedArchive" | "AlertEncryptedDoc" | "ArchiveBlockEncrypted" => {
            if truth(value)? {
                clamd.on_encrypted = Said::Found;
            }
        }
        "MaxRecursion" => match number(value)? {
            // clamd takes its default then.
            0 => {}
            depth => config.limits.depth_max = depth,
        },
        "MaxScanTime" => match number::<u64>(value)? {
            0 => (config.limits.cpu_ms_max, clamd.scan_seconds_max) = (u64::MAX, 0),
            ms => (config.limits.cpu_ms_max, clamd.scan_seconds_max) = (ms, ms.div_ceil(1_000)),
        },
        "MaxFiles" => config.limits.objects_max = objects(number(value)?),
        _ => return pass_over(key, value),
    }
    Ok(Heed::Taken)
}

/// Keys that set nothing here.
fn pass_over(key: &str, value: &str) -> Result<Heed, String> {
    let (unneeded, wanted) = match UNMAPPED.iter().find(|(keys, ..)| keys.split_ascii_whitespace().any(|k| k == key)) {
        Some((_, unneeded, wanted)) => (*unneeded, *wanted),
        None if key.starts_with("OnAccess") => return Ok(Heed::Unneeded),
        None => return Err("not a key of clamd.conf".into()),
    };
    let asks = match unneeded {
        When::Always => false,
        When::No => truth(value)?,
        When::Yes => !truth(value)?,
        When::Never => true,
    };
    Ok(if asks { Heed::Undone(wanted) } else { Heed::Unneeded })
}

/// With which value a key asks for nothing that is not done.
#[derive(Clone, Copy)]
enum When {
    Always,
    Yes,
    No,
    Never,
}

/// Keys, when they can be passed over in silence, and what is to be said otherwise.
const UNMAPPED: [(&str, When, &str); 13] = [
    (
        // Sizes and times do not bound what is inspected, nor is a thread bound to a client; sockets that were left
        // behind are always removed, and signatures always loaded beside those in force.
        "MaxThreads MaxQueue MaxConnectionQueueLength IdleTimeout SendBufTimeout SelfCheck ConcurrentDatabaseReload \
         FixStaleSocket ExitOnOOM Foreground Debug MaxScanSize MaxFileSize MaxEmbeddedPE MaxHTMLNormalize \
         MaxHTMLNoTags MaxScriptNormalize MaxZipTypeRcg MaxPartitions MaxIconsPE MaxRecHWP3 PCREMatchLimit \
         PCRERecMatchLimit PCREMaxFileSize DisableCache CacheSize ForceToDisk LeaveTemporaryFiles TemporaryDirectory \
         StreamMinPort StreamMaxPort LogTime LogVerbose LogClean LogFileUnlock LogFileMaxSize LogRotate LogFacility \
         ExtendedDetectionInfo HeuristicScanPrecedence BytecodeSecurity BytecodeTimeout BytecodeMode BytecodeUnsigned \
         StructuredMinCreditCardCount StructuredCCOnly StructuredMinSSNCount StructuredSSNFormatNormal \
         StructuredSSNFormatStripped PreludeAnalyzerName PhishingScanURLs PhishingSignatures",
        When::Always,
        "",
    ),
    (
        "ScanPE ScanELF ScanMail ScanHTML ScanOLE2 ScanPDF ScanSWF ScanXMLDOCS ScanHWP3 ScanOneNote ScanArchive ScanImage \
         ScanImageFuzzyHash",
        When::Yes,
        "all formats are always scanned",
    ),
    ("HeuristicAlerts AlgorithmicDetection", When::Yes, "see on_limit, on_ambiguous and on_malformed in [clamd]"),
    ("Bytecode", When::Always, ""),
    ("ScanPartialMessages", When::No, "partial messages are not reassembled"),
    ("StructuredDataDetection", When::No, "credit card and social security numbers are not searched"),
    (
        "AlertBrokenExecutables AlertBrokenMedia AlertOLE2Macros OLE2BlockMacros AlertPhishingSSLMismatch \
         AlertPhishingCloak AlertPartitionIntersection PhishingAlwaysBlockSSLMismatch PhishingAlwaysBlockCloak \
         PartitionIntersection",
        When::No,
        "no such alert",
    ),
    ("OfficialDatabaseOnly", When::No, "all files in the folder are loaded"),
    ("DisableCertCheck", When::Always, ""),
    ("LogFile LogSyslog PreludeEnable", When::No, "the log goes to standard error"),
    ("GenerateMetadataJson", When::No, "use `sluice explain --json`"),
    ("VirusEvent", When::Never, "no commands are run"),
    ("PidFile", When::Never, "left to the service manager"),
];

/// Whether a value says yes.
pub fn truth(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "yes" | "true" | "1" => Ok(true),
        "no" | "false" | "0" => Ok(false),
        // A log file's name, where there may be one.
        path if path.starts_with('/') => Ok(true),
        _ => Err(format!("{value:?} is neither yes nor no")),
    }
}

fn seconds(value: &str) -> Result<u64, String> {
    match number(value)? {
        0 => Err("the timeout must not be 0".into()),
        seconds => Ok(seconds),
    }
}

/// Objects in one file, of which 0 means any: as many as memory can be answered for.
pub fn objects(count: u32) -> u32 {
    if count == 0 { 1 << 20 } else { count }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str) -> (Config, Vec<String>) {
        let mut config = Config::default();
        let undone = apply_text(&mut config, text).unwrap();
        config.clamd.check().unwrap();
        (config, undone)
    }

    #[test]
    fn addresses_limits_and_databases_are_taken_over() {
        let (config, undone) = taken(
            "# clamd\nLocalSocket /run/clamd.ctl\nLocalSocketMode 666\nTCPSocket 3310\nTCPAddr 127.0.0.1\nTCPAddr ::1\n\
             DatabaseDirectory /var/lib/clamav\nStreamMaxLength 25M\nReadTimeout 180\nMaxRecursion 16\n\
             AlertExceedsMax no\nFollowFileSymlinks yes\nFollowDirectorySymlinks true\n",
        );
        let addresses: Vec<String> = config.clamd.addresses.iter().map(Address::to_string).collect();
        assert_eq!(addresses, ["unix:/run/clamd.ctl", "127.0.0.1:3310", "[::1]:3310"]);
        assert_eq!(config.clamd.socket_mode.0, 0o666);
        assert_eq!(config.clamd.stream_bytes_max, 25 << 20);
        assert_eq!((config.clamd.read_seconds_max, config.limits.depth_max), (180, 16));
        assert_eq!(config.clamd.on_limit, Said::Ok);
        assert!(config.clamd.follow_symlinks);
        assert_eq!(config.database.paths, [Path::new("/var/lib/clamav")]);
        assert!(undone.is_empty(), "{undone:?}");
        let (config, undone) =
            taken("MaxFiles 0\nMaxRecursion 0\nDetectPUA yes\nExcludePUA NetTool\nExcludePUA PWTool\n");
        assert_eq!((config.limits.objects_max, config.limits.depth_max), (1 << 20, Config::default().limits.depth_max));
        assert!(config.database.detect_pua && undone.is_empty(), "{undone:?}");
        assert_eq!(config.database.exclude_pua, ["NetTool", "PWTool"]);
    }

    #[test]
    fn what_is_not_done_is_told_and_what_means_nothing_is_not() {
        let (_, undone) = taken(
            "MaxThreads 12\nScanPDF true\nVirusEvent /bin/x\nScanMail no\nScanPartialMessages yes\nOnAccessPrevention yes\n\
             LogFile /var/log/clamav.log\nLogSyslog false\nFollowFileSymlinks yes\n",
        );
        let lines: Vec<&str> = undone.iter().map(|line| line.split(": ").next().unwrap()).collect();
        assert_eq!(lines, ["3", "4", "5", "7", " Follow...Symlinks"], "{undone:?}");
    }

    #[test]
    fn what_is_wrong_is_refused_with_its_line() {
        let refusal = |text| apply_text(&mut Config::default(), text).unwrap_err();
        assert_eq!(refusal("\nTCPSocket x\n"), "2: TCPSocket: \"x\" is not a valid number");
        assert_eq!(refusal("Nonsense 1"), "1: Nonsense: not a key of clamd.conf");
        assert!(refusal("Example").starts_with("1: Example: this is the example"));
        assert_eq!(refusal("ReadTimeout 0"), "1: ReadTimeout: the timeout must not be 0");
        assert!(refusal("StreamMaxLength 99999999999G").contains("too much"));
    }

    #[test]
    fn the_file_that_debian_writes_is_understood() {
        let Ok(text) = std::fs::read_to_string("/etc/clamav/clamd.conf") else {
            return eprintln!("skipped: there is no /etc/clamav/clamd.conf");
        };
        let (config, _) = taken(&text);
        assert!(!config.clamd.addresses.is_empty());
    }
}
