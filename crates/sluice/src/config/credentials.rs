//! Credentials that systemd hands to a service alone (`LoadCredential=`, systemd.exec(5)), as commands outside of the service
//! meet them: files that are not there, or closed.

use std::fs::File;
use std::path::Path;

/// The folder in which each unit has a folder of its credentials.
const FOLDER: &str = "/run/credentials";

/// Whether a file is a credential of a service that this process is no part of. The service itself finds all of its own.
pub fn is_elsewhere(path: &Path) -> bool {
    is_of_another(path, std::env::var_os("CREDENTIALS_DIRECTORY").as_deref().map(Path::new))
        && File::open(path).is_err()
}

fn is_of_another(path: &Path, own: Option<&Path>) -> bool {
    path.starts_with(FOLDER) && own.is_none_or(|own| !path.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_itself_misses_none_of_its_own() {
        let own = Path::new("/run/credentials/sluice.service");
        let path = own.join("key.pem");
        assert!(is_of_another(&path, None) && is_of_another(&path, Some(Path::new("/run/credentials/other.service"))));
        assert!(!is_of_another(&path, Some(own)) && !is_of_another(Path::new("/etc/sluice/key.pem"), None));
    }
}
