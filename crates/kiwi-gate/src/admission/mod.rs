//! Whether a call may happen: every judge is asked, the strictest answer wins, and every reason is kept.

mod objection;

pub use objection::{Judge, Objection, Why};
