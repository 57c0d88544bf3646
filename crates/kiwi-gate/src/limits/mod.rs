//! How often, how long, and whether it gets anywhere: the judges that count.
//!
//! None of them knows the clock: the time is handed in, so that every answer can be repeated.

mod budget;
mod loops;
mod meter;
mod rate;
mod sessions;

pub(crate) use budget::{SessionBudget, Share};
pub(crate) use loops::{Ending, LoopBrake, LoopVerdict};
pub(crate) use rate::{RateLimits, Reservation};
