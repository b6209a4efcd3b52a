//! A wall clock that tests move: a library that is preloaded adds seconds to it (`clock.c`). Times between two events pass as ever.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// The clock of the programs that are started by its [words](Clock::words).
pub struct Clock {
    folder: TempDir,
}

impl Clock {
    /// A clock that is right.
    pub fn start() -> Clock {
        let clock = Clock { folder: tempfile::tempdir().unwrap() };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/harness/clock.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(clock.path("clock.so")).arg(source).arg("-ldl");
        assert!(compiler.status().unwrap().success());
        fs::write(clock.path("ahead"), 0i64.to_le_bytes()).unwrap();
        clock
    }

    /// The words in front of a program that has it.
    pub fn words(&self) -> [String; 3] {
        let library = self.path("clock.so");
        [
            "env".into(),
            format!("LD_PRELOAD={}", library.display()),
            format!("CLOCK_FILE={}", self.path("ahead").display()),
        ]
    }

    /// Sets it so many seconds ahead.
    pub fn set(&self, ahead: i64) {
        use std::os::unix::fs::FileExt as _;
        let file = fs::File::options().write(true).open(self.path("ahead")).unwrap();
        file.write_all_at(&ahead.to_le_bytes(), 0).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
