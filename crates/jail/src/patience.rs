//! Whose turn it is where there are more threads than processors.

#![allow(unsafe_code, reason = "what has no function in rustix is called as C has it")]

use std::cell::Cell;

/// From so many inspections in a jail on, who waits for one of them is patient; and below so many he is not any more.
const MANY: usize = 4;
const FEW: usize = 2;

thread_local! {
    static IS_PATIENT: Cell<bool> = const { Cell::new(false) };
    /// Nobody has chosen another policy for this thread.
    // Safety: 0 is the calling thread.
    static IS_OURS: bool = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_OTHER;
}

/// Has this thread give way where many inspections are under way, so many in the jail that it has to do with.
///
/// A thread that gives way interrupts nobody when it has something to do: if no processor is free it waits until whoever works
/// has had a turn (`SCHED_BATCH`, sched(7)), and has more to pass on at once by then. A gateway that interrupts its inspections
/// for each line that comes spends its time on changes from one to the other. Its share of the processors stays what it is.
/// Where few are under way nobody gains, and other programs would keep each of them waiting.
pub(crate) fn give_way(inspections: usize) {
    let was = IS_PATIENT.get();
    let is = inspections >= if was { FEW } else { MANY };
    if is != was && IS_OURS.with(|ours| *ours) {
        IS_PATIENT.set(is);
        let (policy, none) =
            (if is { libc::SCHED_BATCH } else { libc::SCHED_OTHER }, libc::sched_param { sched_priority: 0 });
        // Safety: the kernel reads what it is pointed to, and 0 is the calling thread. Where it refuses, all stays as it was.
        let _ = unsafe { libc::sched_setscheduler(0, policy, &raw const none) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gives_way_while_many_are_under_way() {
        // Safety: 0 is the calling thread.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let before = policy();
        let patient = if before == libc::SCHED_OTHER { libc::SCHED_BATCH } else { before };
        for (inspections, expected) in
            [(0, before), (MANY - 1, before), (MANY, patient), (FEW, patient), (FEW - 1, before)]
        {
            give_way(inspections);
            assert_eq!(policy(), expected, "{inspections}");
        }
    }

    #[test]
    fn another_policy_stays() {
        let none = libc::sched_param { sched_priority: 0 };
        // Safety: the kernel reads what it is pointed to, and 0 is the calling thread.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) };
        for inspections in [MANY, 0] {
            give_way(inspections);
            // Safety: as above.
            assert_eq!(unsafe { libc::sched_getscheduler(0) }, libc::SCHED_IDLE);
        }
    }
}
