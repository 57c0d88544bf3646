//! How often, how long, and whether it gets anywhere.

use jiff::Timestamp;
use kiwi_model::{Fault, Space};
use kiwi_space::{Config, Spaces};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::{Judge, Objection};
use crate::limits::{Ending, LoopBrake, LoopVerdict, RateLimits, Reservation, SessionBudget, Share};
use crate::request::Session;
use crate::stage::{Call, Reply};

/// What tools of upstream servers say they are.
const UPSTREAM_TYPE: &str = "mcp";

/// The judges that count.
pub(crate) struct Counters {
    config: Arc<Config>,
    /// Where minutes are counted.
    folder: Option<PathBuf>,
    /// Read when a call first needs them: most commands make none.
    rates: OnceLock<Result<RateLimits, Fault>>,
    loops: LoopBrake,
    budget: SessionBudget,
}

/// What a call has taken of what is counted. Dropped before it was kept, everything is given back.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    reservation: Option<Reservation>,
    share: Option<Share>,
    /// Which call of its session the brake knows it as.
    turn: u64,
    /// What its result is to carry.
    pub notice: Option<Value>,
}

impl Counters {
    pub fn new(config: &Arc<Config>, spaces: &Spaces) -> Self {
        Self {
            config: Arc::clone(config),
            folder: spaces.ai(Space::User).map(|user| user.join("limits")),
            rates: OnceLock::new(),
            loops: LoopBrake::new(config.loops.clone()),
            budget: SessionBudget::new(config.budget),
        }
    }

    /// Counts a call that may be about to happen.
    pub fn count(&self, call: &Call<'_>) -> (Counted, Vec<Objection>) {
        let mut counted = Counted::default();
        let mut objections = Vec::new();
        let Some(leaf) = call.plan().tools().first() else { return (counted, objections) };
        let (tool, session, now) = (&leaf.manifest.tool_id, call.request.session, Timestamp::now());
        let is_upstream = leaf.manifest.tool_type == UPSTREAM_TYPE;
        let rates = self.rates.get_or_init(|| RateLimits::new(&self.config.rates, self.folder.clone()));
        let reserved = match rates {
            Ok(rates) => rates.reserve(session, &call.request.caller, tool, is_upstream, now),
            Err(fault) => {
                Err(Box::new(Objection::policy(Judge::RateLimit, "rate_limit", fault.message.clone())))
            }
        };
        match reserved {
            Ok(reservation) => counted.reservation = Some(reservation),
            Err(objection) => objections.push(*objection),
        }
        let judged = self.loops.judge(session, tool.as_str(), &call.params, call.plan().mutates());
        counted.turn = judged.turn;
        match judged.verdict {
            LoopVerdict::Clear => {}
            LoopVerdict::Notice(notice) => counted.notice = serde_json::to_value(notice).ok(),
            LoopVerdict::Denied(objection) => objections.push(objection),
        }
        match self.budget.reserve(session, now) {
            Ok(share) => counted.share = Some(share),
            Err(objection) => objections.push(*objection),
        }
        (counted, objections)
    }

    /// The call waits for a person, or was only asked about.
    pub fn withdrawn(&self, session: Session, counted: &Counted) {
        self.loops.withdrawn(session, counted.turn);
    }

    /// This is how the call ended.
    pub fn ended(&self, session: Session, counted: &Counted, result: &Result<Reply, Fault>) {
        let ending = match result {
            Ok(Reply { failure: Some(fault), .. }) | Err(fault) => Ending::failed(fault),
            Ok(reply) => Ending::gave(kiwi_model::Digest::of(reply.result.to_string().as_bytes())),
        };
        self.loops.ended(session, counted.turn, ending);
    }
}

impl Counted {
    /// The call is about to happen: it stays counted.
    pub fn keep(&mut self) {
        if let Some(reservation) = self.reservation.take() {
            reservation.keep();
        }
        if let Some(share) = self.share.take() {
            share.keep();
        }
    }
}
