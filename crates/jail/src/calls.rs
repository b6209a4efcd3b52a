//! The system calls that are left to a jail and to the template that makes jails (seccomp(2)). Any other fails with EPERM.
//!
//! A filter is inherited, so that of a template has every call of a jail, and those by which a jail gives up the rest.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, Error, SeccompAction, SeccompFilter};
use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

/// Role of the calling process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// Computing takes memory, time, the bells, and an end.
    Jail,
    /// A template reads signatures and rules, copies itself, and ends copies.
    Template,
    /// A tap reads packets of an open interface besides, and asks how many were dropped.
    Tap,
}

const OF_JAIL: &[i64] = &[
    libc::SYS_read,
    // How much memory it has, of the one file that is open: `/proc/self/statm`.
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_futex,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_mprotect,
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_sched_yield,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getcpu,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// System calls of a tap besides.
const OF_TAP: &[i64] = &[libc::SYS_recvmmsg, libc::SYS_getsockopt];

/// System calls of a template besides: those for messages of its host, for files it is handed, for its copies, and for
/// the rights that a copy gives up.
const OF_TEMPLATE: &[i64] = &[
    libc::SYS_recvmsg,
    libc::SYS_recvfrom,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_newfstatat,
    libc::SYS_lseek,
    // Landlock leaves files below `/proc`.
    libc::SYS_openat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_dup2,
    libc::SYS_dup3,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_getppid,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_prlimit64,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
    libc::SYS_capget,
    libc::SYS_capset,
    libc::SYS_seccomp,
];

/// Settings that a template makes for itself and its copies.
const SETTINGS: &[i32] = &[
    libc::PR_SET_PDEATHSIG,
    libc::PR_SET_DUMPABLE,
    libc::PR_SET_NAME,
    libc::PR_SET_SECCOMP,
    libc::PR_CAPBSET_DROP,
    libc::PR_SET_NO_NEW_PRIVS,
    libc::PR_CAP_AMBIENT,
];

/// The namespaces that a copy leaves.
const NAMESPACES: i32 = libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// Flags that make a thread of a copy, or put it into namespaces.
const NOT_A_FORK: i32 =
    libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_THREAD | libc::CLONE_NEWNS | libc::CLONE_NEWPID | NAMESPACES;

/// Leaves nothing but these calls; whether the kernel can.
///
/// # Errors
/// When it can, and refuses.
pub fn confine(calls: Calls) -> Result<bool, Error> {
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let arch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules(calls)?, refused, SeccompAction::Allow, arch)?;
    let program: BpfProgram = filter.try_into()?;
    apply(&program)
}

/// Installs a filter for this thread and those that it starts; whether the kernel can.
pub(crate) fn apply(program: &BpfProgram) -> Result<bool, Error> {
    match seccompiler::apply_filter(program) {
        Ok(()) => Ok(true),
        // The kernel was built without it.
        Err(Error::Prctl(error) | Error::Seccomp(error))
            if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn rules(calls: Calls) -> Result<BTreeMap<i64, Vec<SeccompRule>>, Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = OF_JAIL.iter().map(|&call| (call, Vec::new())).collect();
    // No memory is made executable: what is computed is no program.
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![without(2, libc::PROT_EXEC)?]);
    }
    if calls == Calls::Tap {
        rules.extend(OF_TAP.iter().map(|&call| (call, Vec::new())));
    }
    if calls == Calls::Template {
        rules.extend(OF_TEMPLATE.iter().map(|&call| (call, Vec::new())));
        rules.insert(libc::SYS_clone, vec![without(0, NOT_A_FORK)?]);
        rules.insert(libc::SYS_unshare, vec![without(0, !NAMESPACES)?]);
        rules.insert(libc::SYS_kill, vec![with(1, libc::SIGKILL)?]);
        let settings = SETTINGS.iter().map(|&setting| with(0, setting)).collect::<Result<_, _>>()?;
        rules.insert(libc::SYS_prctl, settings);
    }
    Ok(rules)
}

/// A call with none of these bits in an argument.
fn without(argument: u8, bits: i32) -> Result<SeccompRule, Error> {
    rule(argument, SeccompCmpOp::MaskedEq(u64::from(bits.cast_unsigned())), 0)
}

/// A call with an argument of this value.
fn with(argument: u8, value: i32) -> Result<SeccompRule, Error> {
    rule(argument, SeccompCmpOp::Eq, value)
}

/// A call with such an argument.
pub(crate) fn rule(argument: u8, compares: SeccompCmpOp, value: i32) -> Result<SeccompRule, Error> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compares, value.cast_unsigned().into())?;
    Ok(SeccompRule::new(vec![condition])?)
}
