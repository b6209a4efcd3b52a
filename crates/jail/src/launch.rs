//! Start of the process that jails are copies of.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use crate::instructions;

/// Starter of the process that jails are copies of.
pub trait Launch: Send + Sync {
    /// Starts the program anew to [`run`](crate::run), with this as its standard input.
    ///
    /// # Errors
    /// When it cannot be started.
    fn launch(&self, host: OwnedFd) -> io::Result<Box<dyn Launched>>;
}

/// A process that was started.
pub trait Launched: Send {
    /// Ends it, if it has not ended by itself, and says how it has.
    fn end(&mut self) -> String;
}

/// The process as a child of this one.
pub struct Children {
    /// The user that the child becomes, if the process is allowed to change it.
    pub user: Option<u32>,
}

impl Launch for Children {
    fn launch(&self, host: OwnedFd) -> io::Result<Box<dyn Launched>> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("sluice: jail").arg("jail").env_clear().current_dir("/");
        instructions::hand_on(&mut command);
        // What is sent to the group of this one, by a terminal, say, is not meant for it.
        command.stdin(host).stdout(Stdio::null()).process_group(0);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        Ok(Box::new(command.spawn()?))
    }
}

impl Launched for Child {
    fn end(&mut self) -> String {
        let _ = self.kill();
        self.wait().map_or_else(|error| error.to_string(), |status| status.to_string())
    }
}
