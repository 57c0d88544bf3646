//! How often somebody may ask: a bucket that fills by itself for each token, and for each address without one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::error::RegistryError;

/// Buckets that are remembered; full ones are forgotten first.
const MOST: usize = 50_000;

/// Whose bucket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Who {
    Token(String),
    Address(IpAddr),
}

struct Bucket {
    left: f64,
    at: Instant,
}

/// The buckets.
pub(super) struct Rate {
    per_second: f64,
    burst: f64,
    buckets: Mutex<HashMap<Who, Bucket>>,
}

impl Rate {
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self {
            per_second: f64::from(per_second.max(1)),
            burst: f64::from(burst.max(1)),
            buckets: Mutex::default(),
        }
    }

    /// Takes one, or says how long to wait.
    pub fn take(&self, who: Who) -> Result<(), RegistryError> {
        self.take_at(who, Instant::now())
    }

    fn take_at(&self, who: Who, now: Instant) -> Result<(), RegistryError> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MOST && !buckets.contains_key(&who) {
            buckets.retain(|_, bucket| self.filled(bucket, now) < self.burst);
            if buckets.len() >= MOST {
                // Everybody is busy: nobody's old bucket may be forgotten, or it would be full again.
                return Err(RegistryError::TooMany { retry_after: 1 });
            }
        }
        let bucket = buckets.entry(who).or_insert(Bucket { left: self.burst, at: now });
        bucket.left = self.filled(bucket, now);
        bucket.at = now;
        if bucket.left < 1.0 {
            return Err(RegistryError::TooMany { retry_after: 1 });
        }
        bucket.left -= 1.0;
        Ok(())
    }

    fn filled(&self, bucket: &Bucket, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + passed * self.per_second).min(self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_bucket_empties_and_fills_and_is_nobody_elses() {
        let rate = Rate::new(10, 3);
        let (start, who) = (Instant::now(), || Who::Token("a".into()));
        for _ in 0..3 {
            assert_eq!(rate.take_at(who(), start), Ok(()));
        }
        assert!(rate.take_at(who(), start).is_err());
        assert_eq!(rate.take_at(Who::Token("b".into()), start), Ok(()));
        assert_eq!(rate.take_at(who(), start + Duration::from_millis(101)), Ok(()));
        assert!(rate.take_at(who(), start + Duration::from_millis(102)).is_err());
        let later = start + Duration::from_mins(1);
        for _ in 0..3 {
            assert_eq!(rate.take_at(who(), later), Ok(()));
        }
        assert!(rate.take_at(who(), later).is_err());
    }
}
