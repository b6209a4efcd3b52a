//! nginx, from Debian, with files of its own.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::tls::Certificate;
use super::{free_port, wait_for};

/// A web server.
pub struct Nginx {
    pub address: SocketAddr,
    process: Child,
    folder: TempDir,
}

impl Nginx {
    /// Starts it with these files; none where it is not installed.
    pub fn start(files: &[(&str, &[u8])]) -> Option<Nginx> {
        Nginx::launch(files, "", "")
    }

    /// The same with TLS and HTTP/2.
    pub fn start_http_2(files: &[(&str, &[u8])], certificate: &Certificate) -> Option<Nginx> {
        let pair = [("own.crt", certificate.chain.as_bytes()), ("own.key", certificate.key.as_bytes())];
        let settings = "ssl_certificate own.crt; ssl_certificate_key own.key;";
        Nginx::launch(&[files, &pair[..]].concat(), "ssl http2", settings)
    }

    /// A line for each request: version, connection, path.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("access.log")).unwrap()
    }

    fn launch(files: &[(&str, &[u8])], listening: &str, more: &str) -> Option<Nginx> {
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
             http {{\n  log_format own '$server_protocol $connection $uri';\n  access_log {at}/access.log own;\n  client_body_temp_path {at};\n  proxy_temp_path {at};\n  fastcgi_temp_path {at};\n\
             uwsgi_temp_path {at};\n  scgi_temp_path {at};\n  gzip on;\n  gzip_types *;\n  client_max_body_size 0;\n\
             server {{ listen 127.0.0.1:{port} {listening}; root {at}; {more}\n    location /up {{ return 200 \"taken\"; }}\n  }}\n}}\n"
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, settings).unwrap();
        let mut command = Command::new(program);
        command.arg("-p").arg(folder.path()).arg("-e").arg(folder.path().join("error.log")).arg("-c").arg(&file);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        wait_for(|| TcpStream::connect(address).ok(), "nginx");
        Some(Nginx { address, process, folder })
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its worker goes with it.
        _ = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status();
        _ = self.process.wait();
    }
}
