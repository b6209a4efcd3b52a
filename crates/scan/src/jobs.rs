//! Work in pieces that a host may run at once: this crate has no threads.

/// A piece of work.
pub type Job<'j> = Box<dyn FnOnce() + Send + 'j>;

/// Jobs by how long they will take.
pub(crate) fn longest_first(mut jobs: Vec<(usize, Job<'_>)>) -> Vec<Job<'_>> {
    jobs.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
    jobs.into_iter().map(|(_, job)| job).collect()
}

/// Runs jobs one after the other.
pub(crate) fn in_turn(jobs: Vec<Job<'_>>) {
    jobs.into_iter().for_each(|job| job());
}
