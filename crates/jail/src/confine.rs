//! Rights that a jail gives up before it reads the first foreign byte.
//!
//! Each layer by itself as far as the kernel has it, and all of them without any privilege: a user namespace with no network
//! and nobody else in it, Landlock without a path and without a port, limits (no new files, no new processes), and a list of the
//! system calls that computing takes. What is not on the list fails; nothing can be opened, connected, started or signalled.

use std::fmt;

use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd};
use landlock::{Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, UnshareFlags, set_no_new_privs};
use rustix::thread::{clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities};

use crate::calls::{self, Calls};

/// Layers in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confined {
    /// Namespaces of its own, for users, the network, messages and names.
    pub namespaces: bool,
    /// Landlock: no path, and where the kernel is new enough no port and no signal.
    pub landlock: Landlocked,
    /// The list of system calls.
    pub seccomp: bool,
}

/// How far the kernel knows Landlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landlocked {
    /// All of it.
    Fully,
    /// In force as far as an older kernel knows it.
    Partly,
    /// Not at all.
    Not,
}

impl Confined {
    /// Whether nothing is missing that matters: paths and system calls.
    pub fn is_enough(&self) -> bool {
        self.seccomp
    }

    /// Missing layers, by name; empty if all are in force.
    pub fn missing(&self) -> String {
        let landlock = match self.landlock {
            Landlocked::Fully => None,
            Landlocked::Partly => Some("what a newer kernel has of landlock"),
            Landlocked::Not => Some("landlock"),
        };
        let all = [(!self.seccomp).then_some("seccomp"), landlock, (!self.namespaces).then_some("namespaces")];
        all.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// As a number, to be told over a wire; see [`Confined::of`].
    pub fn code(self) -> u8 {
        u8::from(self.namespaces) | (self.landlock as u8) << 1 | u8::from(self.seccomp) << 3
    }

    /// Decodes a number.
    pub fn of(code: u8) -> Confined {
        let landlock = match code >> 1 & 3 {
            0 => Landlocked::Fully,
            1 => Landlocked::Partly,
            _ => Landlocked::Not,
        };
        Confined { namespaces: code & 1 != 0, landlock, seccomp: code & 8 != 0 }
    }
}

impl fmt::Display for Confined {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let landlock = match self.landlock {
            Landlocked::Fully => "landlock",
            Landlocked::Partly => "landlock (older kernel)",
            Landlocked::Not => "no landlock",
        };
        let seccomp = if self.seccomp { "seccomp" } else { "no seccomp" };
        let namespaces = if self.namespaces { "namespaces" } else { "no namespaces" };
        write!(formatter, "{seccomp}, {landlock}, {namespaces}")
    }
}

/// Gives up everything. What the kernel does not have is left out, and said.
///
/// # Errors
/// When the kernel has it and refuses.
pub fn confine() -> Result<Confined, String> {
    withdraw()?;
    give_up(Calls::Jail)
}

/// Gives up everything but open descriptors of an interface, of signals and of output. Signals end the process as before.
///
/// # Errors
/// When the kernel has it and refuses.
pub fn confine_tap() -> Result<Confined, String> {
    harden()?;
    give_up(Calls::Tap)
}

fn give_up(calls: Calls) -> Result<Confined, String> {
    let namespaces = unshare();
    // A user namespace comes with every capability over itself.
    drop_capabilities().map_err(|error| failed("capabilities", error))?;
    let landlock = landlock(None).map_err(|error| failed("landlock", error))?;
    // Two are waited for at a time; a third has no number any more.
    for (resource, most) in [(Resource::Nofile, 2), (Resource::Nproc, 0)] {
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
    let seccomp = calls::confine(calls).map_err(|error| failed("seccomp", error))?;
    Ok(Confined { namespaces, landlock, seccomp })
}

/// Gives up what the template of jails does not need either, before it reads rules that others have written: every path but what
/// the kernel tells of processes, of which its copies open one file; nobody looks into its memory, and it gains no rights.
///
/// # Errors
/// When the kernel refuses.
pub fn withdraw() -> Result<(), String> {
    harden()?;
    ignore_signals();
    landlock(Some("/proc")).map_err(|error| failed("landlock", error))?;
    drop_capabilities().map_err(|error| failed("capabilities", error))
}

/// Leaves no image of the memory, and no way to new rights.
fn harden() -> Result<(), String> {
    // A service manager may have forbidden the call, having set the limit itself.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| failed("dumpable", error))?;
    set_no_new_privs(true).map_err(|error| failed("no_new_privs", error))
}

/// Gives up every capability, and whatever could bring one back. The bounding set stays where nothing may change it: no new
/// rights come of it, since no program gets any (`no_new_privs`).
fn drop_capabilities() -> rustix::io::Result<()> {
    let _ = clear_ambient_capability_set();
    for bit in 0..u64::BITS {
        let _ = remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit));
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

fn failed(what: &str, error: impl fmt::Display) -> String {
    format!("cannot confine the inspection: {what}: {error}")
}

/// Ignores signals to all processes of a service: this one ends with its host.
fn ignore_signals() {
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        // SAFETY: no handler of ours is set, and none takes its place.
        #[allow(unsafe_code, reason = "there is no other way to ignore a signal")]
        unsafe {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// A user of its own in namespaces of its own, where that is allowed to everybody.
fn unshare() -> bool {
    let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    // SAFETY: the descriptors and the memory of this process stay its own: neither FILES nor VM are among the flags.
    #[allow(unsafe_code, reason = "rustix marks every unshare unsafe because of the flags that are not used here")]
    let unshared = unsafe { rustix::thread::unshare_unsafe(flags) };
    unshared.is_ok()
}

/// No path is left but files below this one, to read.
fn landlock(left: Option<&str>) -> Result<Landlocked, landlock::RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let ruleset = ruleset.handle_access(AccessFs::from_all(ABI::V6))?.handle_access(AccessNet::from_all(ABI::V6))?;
    let mut ruleset = ruleset.scope(Scope::Signal | Scope::AbstractUnixSocket)?.create()?;
    if let Some(Ok(folder)) = left.map(PathFd::new) {
        ruleset = ruleset.add_rule(PathBeneath::new(folder, AccessFs::ReadFile))?;
    }
    let status = ruleset.restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => Landlocked::Fully,
        RulesetStatus::PartiallyEnforced => Landlocked::Partly,
        RulesetStatus::NotEnforced => Landlocked::Not,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{File, read};

    use super::*;

    #[test]
    fn a_template_opens_what_is_told_of_processes_and_nothing_else() {
        // It holds for the one thread.
        let tried = std::thread::spawn(|| {
            let landlocked = landlock(Some("/proc")).unwrap();
            (
                landlocked,
                File::open("/proc/self/statm").is_ok(),
                read("/etc/passwd").is_ok(),
                read("/proc/1/mem").is_ok(),
            )
        });
        let (landlocked, statm, others, memory) = tried.join().unwrap();
        if landlocked == Landlocked::Not {
            return println!("not looked at: this kernel has no Landlock");
        }
        assert_eq!((statm, others, memory), (true, false, false));
    }
}
