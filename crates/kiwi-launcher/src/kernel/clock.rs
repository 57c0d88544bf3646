//! Time that only goes forward.
#![expect(
    unsafe_code,
    reason = "asks the kernel itself: what programs are given to ask it with costs more to find"
)]

use core::time::Duration;

use super::raw::{call, number};

/// A moment, as the time since the machine was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    pub fn now() -> Self {
        const MONOTONIC: usize = 1;
        let mut time = [0_u64; 2];
        // SAFETY: the kernel writes two words of eight bytes, which is what there is room for.
        let asked = unsafe {
            call(number::CLOCK_GETTIME, [MONOTONIC, time.as_mut_ptr().expose_provenance(), 0, 0, 0, 0])
        };
        let [seconds, nanoseconds] = time;
        debug_assert!(asked.is_ok(), "every kernel has this clock");
        Self(Duration::new(seconds, u32::try_from(nanoseconds).unwrap_or(0)))
    }

    /// So much later; `None` where that is beyond all time.
    pub fn after(self, time: Duration) -> Option<Self> {
        self.0.checked_add(time).map(Self)
    }

    /// How long it is until this moment, if it is still to come.
    pub fn left(self) -> Option<Duration> {
        self.0.checked_sub(Self::now().0)
    }

    pub fn is_over(self) -> bool {
        self.left().is_none_or(|left| left.is_zero())
    }
}

/// Does nothing for so long.
pub fn pause(time: Duration) {
    let wanted = [time.as_secs(), u64::from(time.subsec_nanos())];
    // SAFETY: the kernel reads two words of eight bytes, and writes nothing where it is given no place for it.
    let _ = unsafe { call(number::NANOSLEEP, [wanted.as_ptr().expose_provenance(), 0, 0, 0, 0, 0]) };
}
