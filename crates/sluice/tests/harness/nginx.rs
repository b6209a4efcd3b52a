//! nginx, from Debian, with files of its own.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::{free_port, wait_for};

/// A web server.
pub struct Nginx {
    pub address: SocketAddr,
    process: Child,
    _folder: TempDir,
}

impl Nginx {
    /// Starts it with these files; none where it is not installed.
    pub fn start(files: &[(&str, &[u8])]) -> Option<Nginx> {
        let program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"].into_iter().find(|path| fs::metadata(path).is_ok());
        let Some(program) = program else {
            println!("skipped: nginx is not installed");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(folder.path(), open).unwrap();
        files.iter().for_each(|(name, content)| fs::write(folder.path().join(name), content).unwrap());
        let at = folder.path().display();
        let port = free_port();
        let settings = format!(
            "daemon off;\nworker_processes 1;\npid {at}/pid;\nerror_log {at}/error.log;\nevents {{ worker_connections 64; }}\n\
             http {{\n  access_log off;\n  client_body_temp_path {at};\n  proxy_temp_path {at};\n  fastcgi_temp_path {at};\n\
             uwsgi_temp_path {at};\n  scgi_temp_path {at};\n  gzip on;\n  gzip_types *;\n  client_max_body_size 0;\n\
             server {{ listen 127.0.0.1:{port}; root {at};\n    location /up {{ return 200 \"taken\"; }}\n  }}\n}}\n"
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, settings).unwrap();
        let mut command = Command::new(program);
        command.arg("-p").arg(folder.path()).arg("-e").arg(folder.path().join("error.log")).arg("-c").arg(&file);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        wait_for(|| TcpStream::connect(address).ok(), "nginx");
        Some(Nginx { address, process, _folder: folder })
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its worker goes with it.
        _ = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status();
        _ = self.process.wait();
    }
}
