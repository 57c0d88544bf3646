//! What a person does: approve, reject, revoke.

use jiff::{SignedDuration, Timestamp};
use kiwi_model::{CanonicalError, ErrorKind, Explain as _, Fault};
use kiwi_space::SpaceError;
use serde_json::json;

use super::Approvals;
use super::grant::{Grant, Remember, matches};
use super::request::{Approval, ApprovalKind, ApprovalState, Decided, Verdict, lasting, later};
use super::store::{self, Entry, Kept, Standing};

/// What a person says to a request.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
    /// Which of the options of a question.
    pub option: Option<String>,
    /// Whether it holds for more than this once.
    pub remember: Option<Remember>,
}

/// What came of an answer.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The request.
    pub approval: Approval,
    /// What is remembered.
    pub grant: Option<Grant>,
}

/// What came of a no.
#[derive(Debug, Clone)]
pub enum Undone {
    /// The request was rejected.
    Rejected(Box<Approval>),
    /// It could not be read, and is gone.
    Removed {
        /// Its name.
        id: String,
        /// Why it could not be read.
        why: String,
    },
}

impl Approvals {
    /// Says yes. `id` may be the beginning of a name.
    pub fn approve(&self, id: &str, answer: Answer, now: Timestamp) -> Result<Answered, Fault> {
        let _turn = self.store.turn().map_err(told)?;
        let entry = locate(store::all::<Approval>(&self.store.approvals).map_err(told)?, id, REVIEWS)?;
        let mut approval = entry.item.map_err(|why| unreadable(&entry.id, &why))?;
        self.require_open(&approval, now)?;
        chosen(&approval, answer.option.as_deref())?;
        let grant = match &answer.remember {
            Some(remember) => Some(self.grant(&approval, &answer, remember, now)?),
            None => None,
        };
        let remember = grant.as_ref().map(|grant| grant.id.clone());
        self.sign(&mut approval, Verdict::Approved, answer, remember, now)?;
        if let Some(grant) = &grant {
            store::save(&self.store.grants, grant).map_err(told)?;
        }
        store::save(&self.store.approvals, &approval).map_err(told)?;
        Ok(Answered { approval, grant })
    }

    /// Says no. A file that cannot be read is removed instead: it can only have stood in the way.
    pub fn reject(&self, id: &str, answer: Answer, now: Timestamp) -> Result<Undone, Fault> {
        let _turn = self.store.turn().map_err(told)?;
        let entry = locate(store::all::<Approval>(&self.store.approvals).map_err(told)?, id, REVIEWS)?;
        let mut approval = match &entry.item {
            Ok(approval) => approval.clone(),
            Err(why) => {
                store::remove(&self.store.approvals, &entry).map_err(told)?;
                return Ok(Undone::Removed { id: entry.id.clone(), why: why.clone() });
            }
        };
        self.require_open(&approval, now)?;
        self.sign(&mut approval, Verdict::Rejected, answer, None, now)?;
        store::save(&self.store.approvals, &approval).map_err(told)?;
        Ok(Undone::Rejected(Box::new(approval)))
    }

    /// Takes a grant back, readable or not.
    pub fn revoke(&self, id: &str) -> Result<Entry<Grant>, Fault> {
        let _turn = self.store.turn().map_err(told)?;
        let entry =
            locate(store::all::<Grant>(&self.store.grants).map_err(told)?, id, "`kiwi grants` lists them")?;
        store::remove(&self.store.grants, &entry).map_err(told)?;
        Ok(entry)
    }

    /// Only what nobody has answered can be answered.
    fn require_open(&self, approval: &Approval, now: Timestamp) -> Result<(), Fault> {
        let key = self.store.verifier().map_err(told)?;
        let state = match approval.standing(key.as_ref(), now) {
            Standing::Unsigned | Standing::Is(ApprovalState::Pending) => return Ok(()),
            Standing::Is(state) => state,
        };
        let message = match &approval.decided {
            Some(decided) => {
                let (verdict, by, at) = (decided.verdict.as_str(), &decided.by, decided.at);
                let reason = decided.reason.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
                let used = if state == ApprovalState::Used { ", and was used" } else { "" };
                format!("`{}` was {verdict} by `{by}` at {at:.0}{used}{reason}", approval.id)
            }
            None => {
                format!("`{}` expired at {:.0}, and nobody had answered", approval.id, approval.expires_at)
            }
        };
        Err(Fault::new(ErrorKind::Usage, message)
            .with_hint("make the call again to ask again")
            .with_details(json!({"id": approval.id, "state": state, "decided": approval.decided})))
    }

    fn sign(
        &self,
        approval: &mut Approval,
        verdict: Verdict,
        answer: Answer,
        remember: Option<String>,
        now: Timestamp,
    ) -> Result<(), Fault> {
        approval.state = match verdict {
            Verdict::Approved => ApprovalState::Approved,
            Verdict::Rejected => ApprovalState::Rejected,
        };
        let until = later(now, approval.patience());
        let Answer { by, reason, option, .. } = answer;
        let decided =
            Decided { verdict, by, at: now, until, reason, option, remember, signature: String::new() };
        approval.decided = Some(decided);
        let text = approval.signed_text().map_err(|error| unhashable(&error))?;
        let signature = self.store.signer().map_err(told)?.sign(text.as_bytes());
        if let Some(decided) = &mut approval.decided {
            decided.signature = signature;
        }
        Ok(())
    }

    fn grant(
        &self,
        approval: &Approval,
        answer: &Answer,
        remember: &Remember,
        now: Timestamp,
    ) -> Result<Grant, Fault> {
        let usage = |message: String| Fault::new(ErrorKind::Usage, message);
        let (Some(tool), Some(integrity)) = (approval.tool.clone(), approval.integrity) else {
            return Err(usage(format!(
                "`{}` is a question, and answers to questions are not remembered",
                approval.id
            )));
        };
        if remember.uses == 0 || remember.expires.is_zero() {
            return Err(usage("a grant needs at least one use and some time".to_owned()));
        }
        for (name, pattern) in &remember.matching {
            // What a person sees of it may be redacted, and then no wildcard can be held against it.
            let shown = approval.params.get(name).cloned().unwrap_or_default();
            if !matches(pattern, &shown) {
                return Err(usage(format!(
                    "`{name}` is `{shown}` in this very call, which `{pattern}` does not match"
                ))
                .with_hint(
                    "the wildcard must match the call that is approved; `--any NAME` lets a parameter vary",
                ));
            }
        }
        let predicate = remember.predicate(&approval.param_hashes).map_err(usage)?;
        let mut grant = Grant {
            id: self.unused_id(),
            created_at: now,
            expires_at: later(now, SignedDuration::try_from(remember.expires).unwrap_or(SignedDuration::MAX)),
            project: approval.project.clone(),
            caller: lasting(&approval.caller).to_owned(),
            tool,
            integrity,
            predicate,
            params: approval.params.clone(),
            uses: remember.uses,
            used: 0,
            by: answer.by.clone(),
            reason: answer.reason.clone(),
            approval: approval.id.clone(),
            signature: String::new(),
        };
        let text = grant.signed_text().map_err(|error| unhashable(&error))?;
        grant.signature = self.store.signer().map_err(told)?.sign(text.as_bytes());
        Ok(grant)
    }
}

const REVIEWS: &str = "`kiwi reviews --all` lists them";

/// The entry that a name, or the beginning of one, means.
fn locate<T: Kept>(entries: Vec<Entry<T>>, id: &str, hint: &str) -> Result<Entry<T>, Fault> {
    let wanted = id.to_ascii_lowercase();
    let is_meant = |entry: &Entry<T>| entry.id == id || entry.id.starts_with(&wanted);
    let mut found: Vec<Entry<T>> = if let Some(exact) = entries.iter().position(|entry| entry.id == id) {
        entries.into_iter().skip(exact).take(1).collect()
    } else {
        entries.into_iter().filter(|entry| !id.is_empty() && is_meant(entry)).collect()
    };
    match (found.pop(), found.is_empty()) {
        (Some(entry), true) => Ok(entry),
        (None, _) => {
            Err(Fault::new(ErrorKind::NotFound, format!("nothing is called `{id}`"))
                .with_hint(hint.to_owned()))
        }
        (Some(last), false) => {
            let names: Vec<String> = found.iter().chain([&last]).map(|entry| entry.id.clone()).collect();
            let told = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            Err(Fault::new(ErrorKind::Ambiguous, format!("`{id}` may be {told}"))
                .with_hint("type more of it")
                .with_details(json!({"ids": names})))
        }
    }
}

/// Whether what was chosen can be chosen.
fn chosen(approval: &Approval, option: Option<&str>) -> Result<(), Fault> {
    let usage = |message: String| {
        let known: Vec<String> = approval.options.iter().map(|it| format!("`{it}`")).collect();
        let fault = Fault::new(ErrorKind::Usage, message);
        if known.is_empty() {
            fault
        } else {
            fault.with_hint(format!("--option is one of {}", known.join(", ")))
        }
    };
    match option {
        Some(option) if approval.options.iter().any(|known| known == option) => Ok(()),
        Some(option) => Err(usage(format!("`{option}` is not an option of `{}`", approval.id))),
        None if approval.kind == ApprovalKind::Escalation && !approval.options.is_empty() => {
            Err(usage(format!("`{}` asks for one of its options", approval.id)))
        }
        None => Ok(()),
    }
}

fn unreadable(id: &str, why: &str) -> Fault {
    Fault::new(ErrorKind::InvalidManifest, format!("`{id}` cannot be read: {why}"))
        .with_hint(format!("`kiwi reject {id}` removes it; make the call again to ask again"))
}

#[expect(clippy::needless_pass_by_value, reason = "made to be handed to `map_err`")]
fn told(error: SpaceError) -> Fault {
    error.fault()
}

fn unhashable(error: &CanonicalError) -> Fault {
    Fault::new(ErrorKind::Internal, format!("what was asked cannot be signed: {error}"))
}
