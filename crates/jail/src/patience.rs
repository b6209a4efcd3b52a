//! Order of threads where there are more than processors.

#![allow(unsafe_code, reason = "what has no function in rustix is called as C has it")]

use std::cell::Cell;
use std::sync::LazyLock;

/// From so many inspections in a jail on, who waits for one of them is patient; and below so many he is not any more.
const MANY: usize = 4;
const FEW: usize = 2;

thread_local! {
    /// A thread that a patient one has started is patient as well.
    static IS_PATIENT: Cell<bool> = Cell::new(*IS_OURS && policy(0) == libc::SCHED_BATCH);
}

/// Nobody has chosen another policy for the process, which no thread of it had changed when this was first asked.
static IS_OURS: LazyLock<bool> = LazyLock::new(|| policy(std::process::id()) == libc::SCHED_OTHER);

/// Has this thread give way where many inspections are under way, so many in the jail that it has to do with.
///
/// A thread that gives way interrupts nobody when it has something to do: if no processor is free it waits until whoever works
/// has had a turn (`SCHED_BATCH`, sched(7)), and has more to pass on at once by then. A gateway that interrupts its inspections
/// for each line that comes spends its time on changes from one to the other. Its share of the processors stays what it is.
/// Where few are under way nobody gains, and other programs would keep each of them waiting. A policy that somebody chooses for
/// the thread, at whatever time, stays.
pub(crate) fn give_way(inspections: usize) {
    let was = IS_PATIENT.get();
    let is = inspections >= if was { FEW } else { MANY };
    if is == was || !*IS_OURS {
        return;
    }
    IS_PATIENT.set(is);
    let of = |is_patient| if is_patient { libc::SCHED_BATCH } else { libc::SCHED_OTHER };
    if policy(0) == of(was) {
        let none = libc::sched_param { sched_priority: 0 };
        // Safety: the kernel reads what it is pointed to, and 0 is the calling thread. Where it refuses, all stays as it was.
        let _ = unsafe { libc::sched_setscheduler(0, of(is), &raw const none) };
    }
}

/// The policy of a thread; 0 is the calling one, and the number of the process the one that it began with.
fn policy(thread: u32) -> libc::c_int {
    // Safety: it takes a number and gives another.
    unsafe { libc::sched_getscheduler(thread.cast_signed()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gives_way_while_many_are_under_way() {
        let before = policy(0);
        let patient = if before == libc::SCHED_OTHER { libc::SCHED_BATCH } else { before };
        for (inspections, expected) in
            [(0, before), (MANY - 1, before), (MANY, patient), (FEW, patient), (FEW - 1, before)]
        {
            give_way(inspections);
            assert_eq!(policy(0), expected, "{inspections}");
        }
    }

    #[test]
    fn another_policy_stays() {
        let none = libc::sched_param { sched_priority: 0 };
        // Safety: the kernel reads what it is pointed to, and 0 is the calling thread.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) };
        for inspections in [MANY, 0] {
            give_way(inspections);
            assert_eq!(policy(0), libc::SCHED_IDLE);
        }
    }

    #[test]
    fn a_thread_that_a_patient_one_starts_gives_way_no_longer_than_that() {
        let before = policy(0);
        give_way(MANY);
        let started = std::thread::spawn(|| {
            give_way(MANY);
            give_way(0);
            policy(0)
        });
        assert_eq!(started.join().unwrap(), before);
        give_way(0);
    }

    #[test]
    fn a_policy_that_is_chosen_while_many_are_under_way_stays() {
        give_way(MANY);
        let none = libc::sched_param { sched_priority: 0 };
        // Safety: the kernel reads what it is pointed to, and 0 is the calling thread.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) };
        for inspections in [0, MANY] {
            give_way(inspections);
            assert_eq!(policy(0), libc::SCHED_IDLE);
        }
    }

    #[test]
    fn the_service_may_give_way() {
        let unit = include_str!("../../../packaging/systemd/sluice.service");
        let calls = unit.lines().filter_map(|line| line.strip_prefix("SystemCallFilter="));
        let may = calls.fold(false, |may, calls| match calls.strip_prefix('~') {
            Some(refused) => may && !refused.split(' ').any(|set| set == "@resources"),
            None => may || calls.split(' ').any(|call| call == "sched_setscheduler"),
        });
        assert!(may, "@resources has the call, and the service manager refuses it");
    }
}
