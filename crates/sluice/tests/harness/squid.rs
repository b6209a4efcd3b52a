//! Squid, from Debian, with a service of ICAP behind it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::{free_port, wait_for};

/// A proxy that asks about all that it passes on.
pub struct Squid {
    pub address: SocketAddr,
    process: Child,
    _folder: TempDir,
}

impl Squid {
    /// Starts it with a service of ICAP; none where it is not installed.
    pub fn start(icap: SocketAddr) -> Option<Squid> {
        Squid::with(&format!(
            "icap_enable on\nicap_preview_enable on\nicap_persistent_connections on\n\
             icap_send_client_ip on\nicap_service_failure_limit -1\n\
             icap_service ask respmod_precache icap://{icap}/respmod bypass=off\nadaptation_access ask allow all\n\
             icap_service ask_up reqmod_precache icap://{icap}/reqmod bypass=off\nadaptation_access ask_up allow all\n"
        ))
    }

    /// Starts it as a proxy that asks nobody; none where it is not installed.
    pub fn plain() -> Option<Squid> {
        Squid::with("")
    }

    fn with(more: &str) -> Option<Squid> {
        let program = ["/usr/sbin/squid", "/usr/local/sbin/squid"].into_iter().find(|path| fs::metadata(path).is_ok());
        let Some(program) = program else {
            println!("skipped: squid is not installed");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let port = free_port();
        let settings = format!(
            "http_port 127.0.0.1:{port}\npid_filename {at}/pid\ncache_log {at}/cache.log\naccess_log none\ncache deny all\n\
             cache_store_log none\ncoredump_dir {at}\nshutdown_lifetime 0 seconds\nvisible_hostname squid.test\n\
             http_access allow all\n{more}"
        );
        let file = folder.path().join("squid.conf");
        fs::write(&file, settings).unwrap();
        // Started as root, it goes on as another user, who has to write there.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(folder.path(), open).unwrap();
        let mut command = Command::new(program);
        command.arg("-N").arg("-f").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        wait_for(|| TcpStream::connect(address).ok(), "squid");
        Some(Squid { address, process, _folder: folder })
    }
}

impl Drop for Squid {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
