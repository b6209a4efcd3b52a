//! The processes of the service: who starts them, as whom they run, what they may do and what they hand on.

pub mod beside;
pub mod confine;
pub mod held;
pub mod privileges;
pub mod supervise;
