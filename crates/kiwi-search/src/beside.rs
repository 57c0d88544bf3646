//! Two things at once.

use crate::contained::carried;

/// Does one thing here and the other on a thread of its own; a panic of either is one of both.
pub(crate) fn beside<A, B: Send>(one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    std::thread::scope(|scope| {
        let other = scope.spawn(carried(other));
        let one = one();
        (one, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
