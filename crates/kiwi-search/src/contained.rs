//! Reading what may be damaged.
//!
//! The library below trusts the bytes of an index as it trusts its own, so damage can make it panic where it should fail. Such
//! a panic is damage like any other: whoever reads makes the index again, and nobody has to be shown where it happened.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// How the names of those of the library's own threads begin where it catches what happens, and tells it as an error. A panic
/// of its `segment_updater` ends the process and must be seen: so that there is none, an index is looked at before its first
/// change.
const THREADS_OF_THE_LIBRARY: [&str; 2] = ["thrd-tantivy-index", "merge_thread_"];

thread_local! {
    /// Whether a panic of this thread is caught here.
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Does something with an index; nothing where it panicked.
pub fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(be_quiet);
    let before = IS_CONTAINED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    IS_CONTAINED.set(before);
    done
}

/// The same work for a thread of its own, whose panics are then taken as those of this thread are.
pub fn carried<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let is_contained = IS_CONTAINED.get();
    move || {
        IS_CONTAINED.set(is_contained);
        work()
    }
}

/// Panics that are caught here are not printed; all others are, as before.
fn be_quiet() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        let is_of_the_library =
            thread.name().is_some_and(|name| THREADS_OF_THE_LIBRARY.iter().any(|it| name.starts_with(it)));
        if !IS_CONTAINED.get() && !is_of_the_library {
            print(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn what_is_contained_is_caught_and_not_told() {
        let told = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&told);
        std::panic::set_hook(Box::new(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        }));
        assert_eq!(contained(|| 7), Some(7));
        assert_eq!(contained(|| -> u8 { panic!("damage") }), None);
        let elsewhere =
            || std::thread::scope(|scope| scope.spawn(carried(|| panic!("damage"))).join().is_err());
        assert_eq!(contained(elsewhere), Some(true));
        assert_eq!(told.load(Ordering::SeqCst), 0);
        assert!(elsewhere());
        assert_eq!(told.load(Ordering::SeqCst), 1, "outside it is told as before");
    }
}
