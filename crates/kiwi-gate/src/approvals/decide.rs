//! The last judge: whether a person has said yes to this very call.

use jiff::Timestamp;
use kiwi_model::{CanonicalError, ErrorKind};
use kiwi_space::{PublicKey, SpaceError};
use serde::Serialize;
use std::time::Duration;

use super::grant::Grant;
use super::request::{Approval, ApprovalState, Bound, Question};
use super::store::{self, Entry, Standing};
use super::{Approvals, fresh_id};
use crate::admission::{Judge, Objection};
use crate::request::{Cancel, OnPending};

/// The policy a denial names.
const POLICY: &str = "approval";
/// How often a waiting call looks.
const GLANCE: Duration = Duration::from_millis(150);
/// Questions that may wait at once: more is no queue that a person reads.
const MOST_PENDING: usize = 1000;
/// How long what is settled stays to be looked at.
const KEPT: jiff::SignedDuration = jiff::SignedDuration::from_hours(24 * 7);

/// What to do where nobody has answered yet.
#[derive(Clone)]
pub enum AskMode {
    /// Ask, and let the caller come back.
    Pending,
    /// Ask, and wait for the answer.
    Wait {
        /// Ends the waiting.
        cancel: Cancel,
        /// Is told what is waited for.
        told: OnPending,
    },
    /// Nobody is there to be asked.
    DenyUnlessGranted,
}

/// A yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Approved {
    /// Who said it.
    pub by: String,
    /// The request that was answered.
    pub approval: String,
    /// The grant that was used, where it was a remembered answer.
    pub grant: Option<String>,
}

/// A question that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pending {
    /// Its name: `kiwi approve ID`.
    pub id: String,
    /// Until when it can be answered.
    pub expires_at: Timestamp,
    /// Whether its file claims an answer that the user's key did not sign.
    pub unsigned: bool,
}

impl Approvals {
    /// Looks for a yes to exactly this call and uses it up; where there is none, asks, waits or denies.
    pub async fn decide(
        &self,
        bound: &Bound,
        questions: &[Question],
        mode: AskMode,
        clock: &(dyn Fn() -> Timestamp + Send + Sync),
    ) -> Result<Approved, Box<Objection>> {
        match mode {
            AskMode::DenyUnlessGranted => self.granted(bound, clock())?.ok_or_else(|| {
                let why = "a person has to decide, and nobody is asked here";
                denied(why)
                    .with_hint("make the call where somebody can answer, and `kiwi approve ID --remember` it")
                    .into()
            }),
            AskMode::Pending => match self.find(bound, clock())? {
                Some(approved) => Ok(approved),
                None => Err(self.ask(bound, questions, clock())?.objection(questions).into()),
            },
            AskMode::Wait { cancel, told } => {
                if let Some(approved) = self.find(bound, clock())? {
                    return Ok(approved);
                }
                let pending = self.ask(bound, questions, clock())?;
                told(&pending);
                self.wait(&pending, bound, &cancel, clock).await
            }
        }
    }

    /// A yes to exactly this call, used up by finding it. A no is an objection.
    pub fn find(&self, bound: &Bound, now: Timestamp) -> Result<Option<Approved>, Box<Objection>> {
        if let Some(granted) = self.granted(bound, now)? {
            return Ok(Some(granted));
        }
        if !self.store.approvals.exists().map_err(broken)? {
            return Ok(None);
        }
        let _turn = self.store.turn().map_err(broken)?;
        let key = self.store.verifier().map_err(broken)?;
        // The newest answer counts; asking again makes no second request while one stands.
        let mut about = self.about(bound)?;
        about.sort_by_key(|approval| std::cmp::Reverse(approval.created_at));
        for mut approval in about {
            let standing = approval.standing(key.as_ref(), now);
            let Some(decided) = approval.decided.clone() else { continue };
            match standing {
                // Where it was remembered, the grant is what counts the calls.
                Standing::Is(ApprovalState::Approved) if decided.remember.is_none() => {
                    approval.state = ApprovalState::Used;
                    store::save(&self.store.approvals, &approval).map_err(broken)?;
                    return Ok(Some(Approved { by: decided.by, approval: approval.id, grant: None }));
                }
                Standing::Is(ApprovalState::Rejected) => {
                    let reason = decided.reason.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
                    let why = format!("`{}` rejected `{}`{reason}", decided.by, bound.tool);
                    return Err(denied(why)
                        .with_hint(format!("the answer holds until {:.0}; do something else", decided.until))
                        .with("id", approval.id)
                        .into());
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Asks a person. The same question asked again while it waits is the same question.
    pub fn ask(
        &self,
        bound: &Bound,
        questions: &[Question],
        now: Timestamp,
    ) -> Result<Pending, Box<Objection>> {
        let _turn = self.store.turn().map_err(broken)?;
        let key = self.store.verifier().map_err(broken)?;
        let mut waiting = 0;
        for (approval, standing) in self.tidied(key.as_ref(), now)? {
            if !matches!(standing, Standing::Unsigned | Standing::Is(ApprovalState::Pending)) {
                continue;
            }
            waiting += 1;
            if approval.is_about(bound).map_err(unhashable)? {
                let unsigned = standing == Standing::Unsigned;
                return Ok(Pending { id: approval.id, expires_at: approval.expires_at, unsigned });
            }
        }
        if waiting >= MOST_PENDING {
            return Err(denied(format!("{waiting} questions wait for a person already"))
                .with_hint("`kiwi reviews` shows them")
                .into());
        }
        let id = self.unused_id();
        let approval = Approval::of_call(id, bound, questions, now, self.timeout).map_err(unhashable)?;
        store::save(&self.store.approvals, &approval).map_err(broken)?;
        Ok(Pending { id: approval.id, expires_at: approval.expires_at, unsigned: false })
    }

    /// Waits for the answer to a question.
    pub async fn wait(
        &self,
        pending: &Pending,
        bound: &Bound,
        cancel: &Cancel,
        clock: &(dyn Fn() -> Timestamp + Send + Sync),
    ) -> Result<Approved, Box<Objection>> {
        loop {
            // An answer that came in time is found before it is noticed that time is up.
            if let Some(approved) = self.find(bound, clock())? {
                return Ok(approved);
            }
            if clock() >= pending.expires_at {
                return Err(denied(format!("nobody answered `{}` in time: timed out", pending.id))
                    .with_hint("make the call again to ask again")
                    .with("id", pending.id.as_str())
                    .into());
            }
            self.require_waiting(&pending.id)?;
            tokio::select! {
                () = cancel.fired() => {
                    let why = format!("the call was cancelled while `{}` waited for an answer", pending.id);
                    return Err(denied(why).with("id", pending.id.as_str()).into());
                }
                () = tokio::time::sleep(GLANCE) => {}
            }
        }
    }

    /// A remembered yes, counted.
    fn granted(&self, bound: &Bound, now: Timestamp) -> Result<Option<Approved>, Box<Objection>> {
        if !self.store.grants.exists().map_err(broken)? {
            return Ok(None);
        }
        let _turn = self.store.turn().map_err(broken)?;
        let key = self.store.verifier().map_err(broken)?;
        for entry in store::all::<Grant>(&self.store.grants).map_err(broken)? {
            let mut grant = readable(entry, |id| format!("`kiwi grants revoke {id}` removes it"))?;
            if !(grant.covers(bound) && grant.is_live(now) && grant.is_signed(key.as_ref())) {
                continue;
            }
            grant.used += 1;
            store::save(&self.store.grants, &grant).map_err(broken)?;
            self.settle(&grant)?;
            return Ok(Some(Approved { by: grant.by, approval: grant.approval, grant: Some(grant.id) }));
        }
        Ok(None)
    }

    /// The request that a grant answered has been made use of.
    fn settle(&self, grant: &Grant) -> Result<(), Box<Objection>> {
        for mut approval in self.readable()? {
            if approval.id == grant.approval && approval.state == ApprovalState::Approved {
                approval.state = ApprovalState::Used;
                store::save(&self.store.approvals, &approval).map_err(broken)?;
            }
        }
        Ok(())
    }

    fn about(&self, bound: &Bound) -> Result<Vec<Approval>, Box<Objection>> {
        let mut about = Vec::new();
        for approval in self.readable()? {
            if approval.is_about(bound).map_err(unhashable)? {
                about.push(approval);
            }
        }
        Ok(about)
    }

    /// Every request. One that cannot be read could be the very answer that is looked for, so it denies.
    fn readable(&self) -> Result<Vec<Approval>, Box<Objection>> {
        let entries = store::all::<Approval>(&self.store.approvals).map_err(broken)?;
        entries
            .into_iter()
            .map(|entry| readable(entry, |id| format!("`kiwi reject {id}` removes it")))
            .collect()
    }

    /// Every request with where it stands; what time has settled is written down, and removed some time later.
    fn tidied(
        &self,
        key: Option<&PublicKey>,
        now: Timestamp,
    ) -> Result<Vec<(Approval, Standing)>, Box<Objection>> {
        let mut all = Vec::new();
        for entry in store::all::<Approval>(&self.store.approvals).map_err(broken)? {
            let mut approval = readable(entry.clone(), |id| format!("`kiwi reject {id}` removes it"))?;
            let standing = approval.standing(key, now);
            let last = approval.decided.as_ref().map_or(approval.expires_at, |decided| decided.until);
            let is_settled = matches!(standing, Standing::Is(state) if state != ApprovalState::Pending);
            if is_settled && now.duration_since(last) > KEPT {
                store::remove(&self.store.approvals, &entry).map_err(broken)?;
                continue;
            }
            if standing == Standing::Is(ApprovalState::Expired) && approval.state != ApprovalState::Expired {
                approval.state = ApprovalState::Expired;
                store::save(&self.store.approvals, &approval).map_err(broken)?;
            }
            all.push((approval, standing));
        }
        Ok(all)
    }

    /// Somebody else may have removed the question, or made use of the answer.
    fn require_waiting(&self, id: &str) -> Result<(), Box<Objection>> {
        let mut all = self.readable()?.into_iter();
        let why = match all.find(|approval| approval.id == id).map(|approval| approval.state) {
            Some(ApprovalState::Used) => "was answered, and the same call elsewhere used the answer",
            Some(_) => return Ok(()),
            None => "is gone",
        };
        Err(denied(format!("the question `{id}` {why}")).with_hint("make the call again to ask again").into())
    }

    /// A name that no request and no grant has.
    pub(super) fn unused_id(&self) -> String {
        let is_taken = |id: &String| {
            let name = format!("{id}.json");
            [&self.store.approvals, &self.store.grants]
                .iter()
                .any(|it| it.file(&name).symlink_metadata().is_ok())
        };
        std::iter::repeat_with(fresh_id).find(|id| !is_taken(id)).unwrap_or_default()
    }
}

impl Pending {
    /// As the call that waits is answered.
    fn objection(&self, questions: &[Question]) -> Objection {
        let first = questions.first();
        let by = first.map_or("the gate", |it| it.by.as_str());
        let question = first.map_or("may this call happen?", |it| it.question.as_str());
        let mut hint = format!("`kiwi approve {0}` or `kiwi reject {0}`, then make the call again", self.id);
        if self.unsigned {
            hint = format!("its file claims an answer that your approval key did not sign; {hint}");
        }
        Objection::asked(Judge::Approval, by, question)
            .with_hint(hint)
            .with("id", self.id.as_str())
            .with("expires_at", format!("{:.0}", self.expires_at))
            .with("questions", serde_json::to_value(questions).unwrap_or_default())
            .with("unsigned", self.unsigned)
            .of_kind(ErrorKind::ApprovalRequired)
    }
}

fn denied(why: impl Into<String>) -> Objection {
    Objection::policy(Judge::Approval, POLICY, why)
}

#[expect(clippy::needless_pass_by_value, reason = "made to be handed to `map_err`")]
fn broken(error: SpaceError) -> Objection {
    denied(format!("what was approved cannot be told: {error}"))
        .with_hint("make `approvals`, `grants` and `keys` in your `.ai` readable and writable for you alone")
}

#[expect(clippy::needless_pass_by_value, reason = "made to be handed to `map_err`")]
fn unhashable(error: CanonicalError) -> Objection {
    denied(format!("the parameters cannot be bound to an answer: {error}"))
}

fn readable<T>(entry: Entry<T>, hint: impl Fn(&str) -> String) -> Result<T, Box<Objection>> {
    entry.item.map_err(|why| {
        denied(format!("what was approved cannot be told: `{}` is unreadable: {why}", entry.id))
            .with_hint(hint(&entry.id))
            .with("file", entry.id.as_str())
            .into()
    })
}
