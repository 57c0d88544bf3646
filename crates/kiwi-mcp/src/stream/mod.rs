//! Messages over two byte streams, one a line: of servers that are processes, and of clients that started this one.

mod incoming;
mod outgoing;

pub use incoming::{Incoming, Read};
pub use outgoing::Outgoing;

/// Longer messages are not read.
pub const LONGEST: usize = 16 << 20;
