//! What a session may use in all.
//!
//! Not the tracker of `kiwi-rules`: its axes are what one rule may use while it is judged, and a closed list that records
//! spell out. A session's calls and seconds are a policy.

use jiff::Timestamp;
use kiwi_model::limit::BudgetConfig;
use std::sync::Arc;

use super::sessions::Sessions;
use crate::admission::{Judge, Objection};
use crate::request::Session;

/// The policy a denial names.
const POLICY: &str = "budget";
/// Sessions whose use is remembered.
const MOST_SESSIONS: usize = 4096;

/// The budget of every session.
#[derive(Debug, Clone)]
pub struct SessionBudget {
    config: BudgetConfig,
    used: Arc<Sessions<Used>>,
}

#[derive(Debug, Default)]
struct Used {
    calls: u64,
    begun: Option<Timestamp>,
    /// The longest it was seen to have lasted: a clock that is set back gives no time back.
    seconds: u64,
}

/// One call out of a budget. Dropped, it is given back.
#[derive(Debug)]
#[must_use = "dropped, it is given back at once"]
pub struct Share {
    used: Arc<Sessions<Used>>,
    session: Session,
    is_kept: bool,
}

impl SessionBudget {
    /// Budgets as configured.
    pub fn new(config: BudgetConfig) -> Self {
        Self { config, used: Arc::new(Sessions::new(MOST_SESSIONS)) }
    }

    /// Takes one call out of a session's budget.
    pub fn reserve(&self, session: Session, now: Timestamp) -> Result<Share, Box<Objection>> {
        let BudgetConfig { calls, seconds } = self.config;
        if calls.is_some() || seconds.is_some() {
            self.used.with(session, |used| {
                let begun = *used.begun.get_or_insert(now);
                let lasted = u64::try_from(now.duration_since(begun).as_secs()).unwrap_or(0);
                used.seconds = used.seconds.max(lasted);
                if let Some(limit) = seconds.filter(|limit| used.seconds >= *limit) {
                    return Err(Box::new(spent("seconds", limit, used.seconds)));
                }
                if let Some(limit) = calls.filter(|limit| used.calls >= *limit) {
                    return Err(Box::new(spent("calls", limit, used.calls)));
                }
                used.calls += 1;
                Ok(())
            })?;
        }
        Ok(Share { used: Arc::clone(&self.used), session, is_kept: calls.is_none() })
    }
}

impl Share {
    /// The call happened: it stays used.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if !self.is_kept {
            self.used.with(self.session, |used| used.calls = used.calls.saturating_sub(1));
        }
    }
}

fn spent(axis: &str, limit: u64, used: u64) -> Objection {
    let why = format!("the session has used {used} of its {limit} {axis}");
    Objection::policy(Judge::Budget, POLICY, why)
        .with_hint("begin a new session, or raise the limit in the user's `kiwi.toml`")
        .with("axis", axis)
        .with("limit", limit)
        .with("used", used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    fn now(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn calls_are_counted_when_they_happen() {
        let budget = SessionBudget::new(BudgetConfig { calls: Some(2), seconds: None });
        let session = Session::start();
        for _ in 0..5 {
            drop(budget.reserve(session, now(0)).unwrap());
        }
        budget.reserve(session, now(0)).unwrap().keep();
        budget.reserve(session, now(0)).unwrap().keep();
        let error = budget.reserve(session, now(0)).unwrap_err();
        let details = error.fault().details;
        assert_eq!(
            (&details["axis"], &details["limit"], &details["used"]),
            (&"calls".into(), &2.into(), &2.into())
        );
        assert_eq!(details["reason"]["policy_id"], "budget");
        assert!(budget.reserve(Session::start(), now(0)).is_ok());
        // Without a number there is no limit.
        let free = SessionBudget::new(BudgetConfig::default());
        assert!((0..1000).all(|second| free.reserve(session, now(second)).map(Share::keep).is_ok()));
    }

    #[test]
    fn seconds_run_from_the_first_call_and_never_backwards() {
        let budget = SessionBudget::new(BudgetConfig { calls: None, seconds: Some(60) });
        let session = Session::start();
        budget.reserve(session, now(0)).unwrap().keep();
        budget.reserve(session, now(59)).unwrap().keep();
        budget.reserve(session, now(0) - SignedDuration::from_hours(9)).unwrap().keep();
        assert!(budget.reserve(session, now(60)).is_err());
        assert!(budget.reserve(session, now(5)).is_err(), "a clock that was set back");
    }
}
