//! Whose turn it is where there are more threads than processors.

#![allow(unsafe_code, reason = "what has no function in rustix is called as C has it")]

/// From now on this thread interrupts nobody when it has something to do: it waits until whoever works has had a turn, if no
/// processor is free (`SCHED_BATCH`, sched(7)). Its share of the processors stays what it is.
///
/// A thread that passes on what others send has by then more to pass on at once: a gateway that interrupts its inspections for
/// each line that comes spends its time on changes from one to the other. What it starts does the same. Where the kernel
/// refuses, all stays as it was.
pub fn give_way() {
    let none = libc::sched_param { sched_priority: 0 };
    // Safety: the kernel reads what it is pointed to, and 0 is the calling thread.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const none) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gives_way_and_no_other() {
        // Safety: 0 is the calling thread.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let changed = std::thread::spawn(move || {
            give_way();
            policy()
        });
        assert_eq!(changed.join().expect("it ends"), libc::SCHED_BATCH);
        assert_eq!(policy(), libc::SCHED_OTHER);
    }
}
