//! The bells of event loops: a jail that has something to tell wakes the event loop whose session waits for that, with nobody in
//! between.
//!
//! A bell is a pipe, of which jails have the end to write: none can take away what another has rung, and in one that is full
//! there is something to hear. Whoever hears his bell looks into the rings of all jails, so that a jail that rings for nothing
//! costs a look and tells nothing.
//!
//! Threads without an event loop have no bell: the warden of a jail passes on what is theirs.
//!
//! Bounds: [`BELLS_MAX`], that of the wardens among them; event loops beyond are as threads that have none.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::link::{Line, Link};
use crate::ring::{BELLS_MAX, OWN_BELL};

thread_local! {
    /// The set of bells of which one is heard in this thread, by its address, and the number of that one.
    static HERE: Cell<Option<(usize, u8)>> = const { Cell::new(None) };
}

/// The bells of all event loops; by default there is no bell.
#[derive(Default)]
pub struct Bells {
    /// The ends to hear, until their event loops have them, and those to ring.
    ends: Vec<(Mutex<Option<OwnedFd>>, OwnedFd)>,
    lines: Mutex<Vec<Weak<Line>>>,
}

/// The bell of one event loop.
pub struct Bell {
    bells: Arc<Bells>,
    number: u8,
}

impl Bells {
    /// Bells for so many event loops.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn new(count: usize) -> io::Result<Bells> {
        let bell =
            |_| pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map(|(end, rope)| (Mutex::new(Some(end)), rope));
        let ends = (1..=count.min(BELLS_MAX - 1)).map(bell).collect::<Result<_, _>>()?;
        Ok(Bells { ends, lines: Mutex::default() })
    }

    /// Gives back memory of the ways to jails that nothing is on. To be called once in a while by an event loop with little work.
    pub fn rest(&self) {
        for line in self.lines() {
            line.lock().ends.iter_mut().for_each(|ends| ends.writer.trim());
        }
    }

    /// The bell of one event loop, once, and the end of a pipe that it is heard by: what comes there means nothing, and is to be read.
    pub fn bell(self: &Arc<Bells>, index: usize) -> Option<(Bell, OwnedFd)> {
        let (end, _) = self.ends.get(index)?;
        let end = end.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        // The first is the warden's.
        let number = u8::try_from(index + 1).ok()?;
        Some((Bell { bells: self.clone(), number }, end))
    }

    /// The ends that jails have, in the order of their numbers.
    pub(crate) fn ropes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.ends.iter().map(|(_, rope)| rope.as_fd())
    }

    /// Has whoever hears a bell look here, too.
    pub(crate) fn serve(&self, line: &Arc<Line>) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|line| line.strong_count() > 0);
        lines.push(Arc::downgrade(line));
    }

    /// The number of the bell that is heard in this thread.
    pub(crate) fn here(&self) -> u8 {
        HERE.get().filter(|(set, _)| *set == self.address()).map_or(OWN_BELL, |(_, number)| number)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn lines(&self) -> Vec<Arc<Line>> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Bell {
    /// From now on inspections that are begun in this thread ring it: whoever calls this listens, here.
    pub fn begin(&self) {
        HERE.set(Some((self.bells.address(), self.number)));
    }

    /// Passes on what jails have to say. To be called after each time that something was read: what is rung from then on is heard
    /// again. It rings itself where there is so much that others are to have their turns before the rest.
    pub fn hear(&self) {
        let has_more = |line: &Arc<Line>| Link::hear_bell(line, self.number);
        if self.bells.lines().iter().map(has_more).fold(false, |any, more| any | more) {
            self.ring();
        }
    }

    fn ring(&self) {
        let rope = self.bells.ends.get(usize::from(self.number) - 1).map(|(_, rope)| rope);
        // In a pipe that is full there is something to hear.
        rope.into_iter().for_each(|rope| _ = rustix::io::write(rope, &1_u64.to_ne_bytes()));
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        HERE.set(None);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::task::{Context, Poll, Wake, Waker};

    use flow::{Inspecting, Out, Progress, wire};
    use inspect::Engine;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use scan::Database;
    use stream::Limits;

    use super::*;
    use crate::cell;
    use crate::handle::Handle;
    use crate::link::{Ends, HEARD_BYTES_MAX};
    use crate::local::Local;
    use crate::memory::Memory;
    use crate::protocol::Told;
    use crate::ring::{Reader, Shared, Whom, Writer, bell};

    const SESSIONS: usize = 4;
    const MAILS: usize = 120;

    /// A jail in a thread that nobody guards, which ends with the socket.
    fn jail(bells: &Bells) -> (Arc<Line>, UnixStream) {
        let [to_jail, from_jail] = Shared::new().unwrap().0.sides();
        let (jails_bell, own_bell) = (bell().unwrap(), bell().unwrap());
        let ropes = bells.ropes().map(|rope| rope.try_clone_to_owned().unwrap());
        let writer = Writer::new(from_jail.clone(), own_bell.try_clone().unwrap()).with_bells(ropes);
        let reader = Reader::new(to_jail.clone(), jails_bell.try_clone().unwrap());
        let (socket, host) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            let engine = Engine { database: Arc::new(Database::with_builtin()), limits: Limits::default() };
            let memory = Memory::new(1 << 30);
            let cell = cell::Cell::new(Local::new(Arc::new(engine), None), &memory, reader, writer, host.into());
            assert!(cell.run().is_ok());
        });
        let line = Arc::new(Line::new(Arc::default(), Arc::default(), Arc::default()));
        let ends = Ends { reader: Reader::new(from_jail, own_bell), writer: Writer::new(to_jail, jails_bell) };
        line.lock().ends = Some(ends);
        bells.serve(&line);
        (line, socket)
    }

    struct Rouse(AtomicBool, Arc<OwnedFd>);

    impl Wake for Rouse {
        fn wake(self: Arc<Rouse>) {
            self.0.store(true, SeqCst);
            rustix::io::write(&*self.1, &1_u64.to_ne_bytes()).unwrap();
        }
    }

    struct Session {
        mails: usize,
        rest: usize,
        inspecting: Option<Handle>,
        rouse: Arc<Rouse>,
    }

    impl Session {
        /// Goes on as far as it can; whether it has more to do later.
        fn go_on(&mut self, bells: &Bells, line: &Arc<Line>) -> bool {
            let waker = Waker::from(self.rouse.clone());
            while self.mails > 0 {
                let (number, mails) = (bells.here(), self.mails);
                let inspecting = self.inspecting.get_or_insert_with(|| {
                    let context = wire::write(&(number, flow::Context::default()), Vec::new());
                    Handle::new(line.clone(), line.open(number), context)
                });
                self.rest -= inspecting.feed(&vec![b'a'; self.rest.min(30_000)]);
                if self.rest == 0 {
                    inspecting.finish();
                }
                let progress = inspecting.poll(&mut Context::from_waker(&waker));
                match progress {
                    Poll::Pending => return true,
                    Poll::Ready(Progress::Done) => {
                        let last = std::iter::from_fn(|| inspecting.hear()).last();
                        assert!(matches!(last, Some(Out::Verdict(_))));
                        (self.inspecting, self.mails, self.rest) = (None, mails - 1, mails * 7_919 % 50_000);
                    }
                    Poll::Ready(progress) => assert!(!matches!(progress, Progress::Lost(_)), "{progress:?}"),
                }
            }
            false
        }
    }

    /// An event loop, which polls nobody who was not woken.
    fn run(bells: &Arc<Bells>, index: usize, lines: &[Arc<Line>]) {
        let (bell, end) = bells.bell(index).expect("nobody has it");
        bell.begin();
        let own = Arc::new(crate::ring::bell().unwrap());
        let session = |_| {
            let rouse = Arc::new(Rouse(AtomicBool::new(true), own.clone()));
            Session { mails: MAILS, rest: 40_000, inspecting: None, rouse }
        };
        let mut sessions: Vec<Session> = (0..SESSIONS).map(session).collect();
        let mut goes_on = [true; SESSIONS];
        while goes_on.contains(&true) {
            for (at, session) in sessions.iter_mut().enumerate() {
                if session.rouse.0.swap(false, SeqCst) {
                    goes_on[at] = session.go_on(bells, &lines[(at + index) % lines.len()]);
                }
            }
            let is_woken = sessions.iter().any(|session| session.rouse.0.load(SeqCst));
            if is_woken || !goes_on.contains(&true) {
                continue;
            }
            let mut polled = [PollFd::new(&end, PollFlags::IN), PollFd::new(&own, PollFlags::IN)];
            // The jail looks by itself after longer than this.
            let woken = poll(&mut polled, Some(&Timespec { tv_sec: 5, tv_nsec: 0 }));
            assert_ne!(woken, Ok(0), "never woken");
            let [rung, roused] = [0, 1].map(|at| !polled[at].revents().is_empty());
            if rung {
                let _ = rustix::io::read(&end, &mut [0; 64][..]);
                bell.hear();
            }
            if roused {
                let _ = rustix::io::read(&*own, &mut [0; 8][..]);
            }
        }
    }

    #[test]
    fn no_event_loop_waits_for_what_was_told() {
        let bells = Arc::new(Bells::new(3).unwrap());
        let jails = [jail(&bells), jail(&bells)];
        let lines: Vec<Arc<Line>> = jails.iter().map(|(line, _)| line.clone()).collect();
        std::thread::scope(|scope| {
            for index in 0..3 {
                let (bells, lines) = (&bells, &lines);
                scope.spawn(move || run(bells, index, lines));
            }
        });
    }

    #[test]
    fn who_waits_on_is_told_when_it_comes_to_him() {
        let bells = Arc::new(Bells::new(1).unwrap());
        let (bell, end) = bells.bell(0).expect("nobody has it");
        let [to_jail, from_jail] = Shared::new().unwrap().0.sides();
        let ropes = bells.ropes().map(|rope| rope.try_clone_to_owned().unwrap());
        let mut jail = Writer::new(from_jail.clone(), crate::ring::bell().unwrap()).with_bells(ropes);
        let ends =
            |bell: OwnedFd, other| Ends { reader: Reader::new(from_jail, bell), writer: Writer::new(to_jail, other) };
        let line = Arc::new(Line::new(Arc::default(), Arc::default(), Arc::default()));
        line.lock().ends = Some(ends(crate::ring::bell().unwrap(), crate::ring::bell().unwrap()));
        bells.serve(&line);
        let own = Arc::new(crate::ring::bell().unwrap());
        let rouses = [0, 1].map(|_| Arc::new(Rouse(AtomicBool::new(false), own.clone())));
        let mut waiting = rouses.each_ref().map(|rouse| {
            let mut inspecting = Handle::new(line.clone(), line.open(bell.number), vec![0]);
            inspecting.finish();
            assert!(inspecting.poll(&mut Context::from_waker(&Waker::from(rouse.clone()))).is_pending());
            inspecting
        });
        for (stream, inspecting) in waiting.iter_mut().enumerate() {
            let kind = Told::Took(Progress::Done).kind();
            assert!(jail.write(stream as u32, kind, &[0; 8]));
            jail.ring(Whom::of(bell.number));
            let mut polled = [PollFd::new(&end, PollFlags::IN)];
            assert_eq!(poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1), "stream {stream}");
            assert_eq!(rustix::io::read(&end, &mut [0; 64][..]), Ok(8));
            bell.hear();
            assert!(rouses[stream].0.load(SeqCst));
            assert_eq!(inspecting.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Progress::Done));
        }
    }

    /// Whether a bell has rung, and is heard then.
    fn is_rung(end: &OwnedFd) -> bool {
        rustix::io::read(end, &mut [0; 64][..]).is_ok()
    }

    #[test]
    fn a_jail_that_says_much_is_heard_in_turns() {
        let bells = Arc::new(Bells::new(1).unwrap());
        let (bell, end) = bells.bell(0).expect("nobody has it");
        let [to_jail, from_jail] = Shared::new().unwrap().0.sides();
        let ropes = bells.ropes().map(|rope| rope.try_clone_to_owned().unwrap());
        let mut jail = Writer::new(from_jail.clone(), crate::ring::bell().unwrap()).with_bells(ropes);
        let [one, other] = [0, 1].map(|_| crate::ring::bell().unwrap());
        let (reader, writer) = (Reader::new(from_jail, one), Writer::new(to_jail, other));
        let line = Arc::new(Line::new(Arc::default(), Arc::default(), Arc::default()));
        line.lock().ends = Some(Ends { reader, writer });
        bells.serve(&line);
        let rouse = Arc::new(Rouse(AtomicBool::new(false), Arc::new(crate::ring::bell().unwrap())));
        let mut waiting = Handle::new(line.clone(), line.open(bell.number), vec![0]);
        waiting.finish();
        let waker = Waker::from(rouse.clone());
        // Nobody has this stream.
        let fill = |jail: &mut Writer| while jail.write(77, Told::Took(Progress::Hungry).kind(), &[0; 8]) {};
        fill(&mut jail);
        assert!(waiting.poll(&mut Context::from_waker(&waker)).is_pending());
        assert!(rouse.0.load(SeqCst), "who waits comes again, after others");
        fill(&mut jail);
        // It writes for ever: each time as much as there is room.
        for turn in 0..10 {
            bell.hear();
            assert!(jail.free_bytes() > 0, "turn {turn}: something is heard");
            assert!(jail.free_bytes() < 2 * HEARD_BYTES_MAX, "turn {turn}: {} bytes at once", jail.free_bytes());
            assert!(is_rung(&end), "turn {turn}: there is more");
            fill(&mut jail);
        }
        (0..10)
            .take_while(|_| is_rung(&end) || jail.free_bytes() < crate::ring::FROM_JAIL_BYTES)
            .for_each(|_| bell.hear());
        assert!(!is_rung(&end), "all is heard");
        assert_eq!(jail.free_bytes(), crate::ring::FROM_JAIL_BYTES);
    }

    #[test]
    fn a_thread_has_the_bell_that_is_heard_in_it() {
        let [bells, others] = [0, 1].map(|_| Arc::new(Bells::new(2).unwrap()));
        assert_eq!(bells.here(), OWN_BELL);
        let (bell, _) = bells.bell(1).expect("nobody has it");
        assert!(bells.bell(1).is_none() && bells.bell(2).is_none());
        bell.begin();
        assert_eq!((bells.here(), others.here()), (2, OWN_BELL));
        std::thread::scope(|scope| scope.spawn(|| assert_eq!(bells.here(), OWN_BELL)).join().unwrap());
        drop(bell);
        assert_eq!(bells.here(), OWN_BELL);
    }
}
