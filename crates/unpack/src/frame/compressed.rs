//! The stage of every format that is one compressed stream: gzip, zlib, bzip2, xz.
//!
//! It opens one object for the content, all concatenated members together, as the formats' own tools do. Bytes behind
//! the last member, or behind the place where decoding broke off, are emitted as an object of their own, so that nothing
//! can be hidden there. A reader that stops after the first member sees a prefix of what is emitted here.
//!
//! ```text
//! Reading ──────over──────▶ Rest ──▶ End
//!    └──fatal fault──▶ Broken ──┘
//! ```

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use stream::{Event, Fuel, Kind, Object, ReadAt, Stage, Step, Window};

use crate::frame::codec::{DECODER_TURNS_MAX, Decoder, STALL, Told};
use crate::frame::stall::Patience;

/// A stage around one [`Decoder`].
pub(crate) struct Compressed<D> {
    decoder: D,
    /// Bytes of input taken so far.
    at: u64,
    /// Whether an object is open.
    open: bool,
    state: State,
    patience: Patience,
}

enum State {
    /// The decoder is at work.
    Reading,
    /// The decoder returned this event after content that had to be emitted first.
    Owing(Told),
    /// The compressed stream is over; this many bytes of the surplus have been emitted.
    Rest { surplus_told: usize },
    /// Nothing more can be decoded; the object is still open.
    Broken,
}

impl<D: Decoder> Compressed<D> {
    pub fn new(decoder: D) -> Compressed<D> {
        Compressed { decoder, at: 0, open: false, state: State::Reading, patience: Patience::of(DECODER_TURNS_MAX) }
    }

    /// Takes a turn, and burns its fuel: at least one unit.
    fn paid_turn(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel, last: bool) -> Option<Step> {
        let room = output.room();
        let step = self.turn(input, output, fuel, last);
        let taken = step.as_ref().map_or(0, |step| step.taken);
        fuel.burn(taken.saturating_add(room).saturating_sub(output.room()).max(1));
        step
    }

    /// One turn of the machine; `None` when only the state changed. `last` says that no more input follows.
    fn turn(&mut self, input: &[u8], output: &mut Window, fuel: &Fuel, last: bool) -> Option<Step> {
        match std::mem::replace(&mut self.state, State::Reading) {
            State::Reading => self.read(input, output, fuel, last),
            State::Owing(told) => self.tell(0, told),
            State::Rest { surplus_told } => self.rest(surplus_told, input, output, fuel, last),
            State::Broken => {
                self.state = State::Rest { surplus_told: 0 };
                std::mem::take(&mut self.open).then_some(Step::tell(0, Event::Close))
            }
        }
    }

    fn read(&mut self, input: &[u8], output: &mut Window, fuel: &Fuel, last: bool) -> Option<Step> {
        let offered = &input[..fuel.allows(input.len())];
        let room = fuel.allows(output.room());
        let progress = self.decoder.decode(offered, &mut output.spare()[..room]);
        self.moved(progress.taken);
        output.wrote(progress.wrote);
        if !self.patience.bears(progress.taken > 0 || progress.wrote > 0) {
            self.state = State::Owing(Told::Fault(STALL));
            return None;
        }
        if progress.wrote > 0 {
            if progress.told != Told::Nothing {
                self.state = State::Owing(progress.told);
            }
            return Some(Step::tell(progress.taken, Event::Wrote));
        }
        if progress.told == Told::Nothing && progress.taken == 0 && last {
            let missing = self.decoder.missing();
            self.state = State::Owing(missing.map_or(Told::Over, Told::Fault));
            return None;
        }
        self.tell(progress.taken, progress.told)
    }

    fn tell(&mut self, taken: usize, told: Told) -> Option<Step> {
        let event = match told {
            Told::Nothing if taken == 0 => return None,
            Told::Nothing => Event::Idle,
            Told::Begin(name) => {
                self.open = true;
                Event::Open(Object { kind: Kind::Stream, name, ..Object::default() })
            }
            Told::Fault(fault) => {
                if fault.fatal {
                    self.state = State::Broken;
                }
                fault.event(self.at.saturating_sub(self.decoder.surplus().len() as u64))
            }
            Told::Over => {
                self.state = State::Rest { surplus_told: 0 };
                if !std::mem::take(&mut self.open) {
                    return (taken > 0).then_some(Step::idle(taken));
                }
                Event::Close
            }
        };
        Some(Step::tell(taken, event))
    }

    /// Emits the rest after the compressed stream, raw: the surplus that the decoder took, then the input.
    fn rest(
        &mut self,
        surplus_told: usize,
        input: &[u8],
        output: &mut Window,
        fuel: &Fuel,
        last: bool,
    ) -> Option<Step> {
        self.state = State::Rest { surplus_told };
        let surplus = self.decoder.surplus();
        let owed = &surplus[surplus_told.min(surplus.len())..];
        if owed.is_empty() && input.is_empty() {
            return last.then(|| self.close_or_end());
        }
        if !self.open {
            self.open = true;
            return Some(Step::tell(
                0,
                Event::Open(Object {
                    kind: Kind::Rest,
                    raw_offset: Some(self.at.saturating_sub(surplus.len() as u64)),
                    ..Object::default()
                }),
            ));
        }
        if !owed.is_empty() {
            let count = output.push(owed);
            self.state = State::Rest { surplus_told: surplus_told.saturating_add(count) };
            return Some(Step::tell(0, Event::Wrote));
        }
        let count = fuel.allows(input.len()).max(1);
        self.moved(count);
        Some(Step::tell(count, Event::Verbatim))
    }

    const fn moved(&mut self, count: usize) {
        self.at = self.at.saturating_add(count as u64);
    }

    fn close_or_end(&mut self) -> Step {
        let event = if std::mem::take(&mut self.open) { Event::Close } else { Event::End };
        Step::tell(0, event)
    }
}

impl<D: Decoder> Stage for Compressed<D> {
    fn step(&mut self, input: &[u8], output: &mut Window, fuel: &mut Fuel) -> Step {
        while !fuel.is_empty() && !input.is_empty() {
            if let Some(step) = self.paid_turn(input, output, fuel, false) {
                return step;
            }
        }
        Step::idle(0)
    }

    fn finish(&mut self, _: &dyn ReadAt, output: &mut Window, fuel: &mut Fuel) -> Event {
        while !fuel.is_empty() {
            match self.paid_turn(b"", output, fuel, true) {
                Some(step) if step.event != Event::Idle => return step.event,
                _ => {}
            }
        }
        Event::Idle
    }
}
