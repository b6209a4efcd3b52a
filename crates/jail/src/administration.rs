//! System calls by which a machine is administered, programs are started, and other processes are looked into. A service with
//! many threads makes none of them; all others stay, since libraries make more than could be listed.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, Error, SeccompAction, SeccompCmpOp, SeccompFilter, SeccompRule};

use crate::calls::{apply, rule};

/// Refused with EPERM.
const REFUSED: &[i64] = &[
    // Programs, and other processes.
    libc::SYS_execve,
    libc::SYS_execveat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
    // Namespaces, mounts and files by number.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    // Parts of the kernel with many faults and no use here.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_personality,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    // The machine.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vhangup,
];

/// Gives these calls up, for this thread and those that it starts; whether the kernel can.
///
/// # Errors
/// When it can, and refuses.
pub fn give_up_administration() -> Result<bool, Error> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|&call| (call, Vec::new())).collect();
    let no_thread = SeccompCmpOp::MaskedEq(u64::from(libc::CLONE_THREAD.cast_unsigned()));
    refused.insert(libc::SYS_clone, vec![rule(0, no_thread, 0)?]);
    // Its flags lie in memory, where no filter looks; without it the C library makes threads by clone(2).
    let hidden = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok(forbid(refused, libc::EPERM)? && forbid(hidden, libc::ENOSYS)?)
}

fn forbid(calls: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<bool, Error> {
    let refused = SeccompAction::Errno(errno.cast_unsigned());
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, refused, std::env::consts::ARCH.try_into()?)?;
    let program: BpfProgram = filter.try_into()?;
    apply(&program)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::process::Command;

    use rustix::thread::set_no_new_privs;

    use super::*;

    #[test]
    fn threads_start_and_programs_do_not() {
        // A filter holds for the one thread, and for those that it starts.
        let tried = std::thread::spawn(|| {
            set_no_new_privs(true).unwrap();
            let can = give_up_administration().unwrap();
            let program = Command::new("/bin/true").status().map_err(|error| error.kind());
            let thread = std::thread::spawn(|| std::fs::read("/proc/self/statm").is_ok()).join().unwrap();
            (can, program.err(), thread)
        });
        let (can, program, thread) = tried.join().unwrap();
        assert!(thread, "what a service does stays");
        if !can {
            return println!("not looked at: this kernel has no seccomp");
        }
        assert_eq!(program, Some(io::ErrorKind::PermissionDenied));
    }
}
