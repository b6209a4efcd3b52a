//! The progress bar of a compilation: on a terminal, and nowhere else.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of a compilation, as a bar on the terminal.
pub struct Bar(ProgressBar);

impl Bar {
    /// One that is seen on a terminal only, once there is something to be seen.
    pub fn new() -> Bar {
        let style =
            ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {msg}").expect("the template is right");
        Bar(ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr()).with_style(style))
    }

    /// So many bytes of so many have been read.
    pub fn set(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
        self.0.set_message(if done < total { "reading signatures" } else { "compiling signatures" });
    }

    /// It is over.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}
