//! Questions of an agent's own, answered in the same way.

use jiff::Timestamp;
use kiwi_model::{ErrorKind, Explain as _, Fault};
use serde_json::Value;
use std::collections::BTreeMap;

use super::Approvals;
use super::request::{Approval, ApprovalKind, ApprovalState, Question, later};
use super::store::{self, Standing};

/// A question of an agent.
#[derive(Debug, Clone)]
pub struct Escalation {
    /// The project it is about.
    pub project: Option<String>,
    /// The session that asks.
    pub session: String,
    /// Who asks.
    pub caller: String,
    /// What.
    pub question: String,
    /// What can be answered, beside yes and no.
    pub options: Vec<String>,
}

/// Questions that one caller may have open at once.
const MOST_OPEN: usize = 20;

impl Approvals {
    /// Asks a person, or gives the answer to the same question of the same caller.
    pub fn escalate(&self, asked: &Escalation, now: Timestamp) -> Result<(Approval, ApprovalState), Fault> {
        let told = |error: kiwi_space::SpaceError| error.fault();
        let _turn = self.store.turn().map_err(told)?;
        let key = self.store.verifier().map_err(told)?;
        let mut open = 0;
        for entry in store::all::<Approval>(&self.store.approvals).map_err(told)? {
            // One that cannot be read could at worst be an answer that this agent waits for: it asks again.
            let Ok(approval) = entry.item else { continue };
            if approval.kind != ApprovalKind::Escalation || approval.caller != asked.caller {
                continue;
            }
            let state = match approval.standing(key.as_ref(), now) {
                Standing::Unsigned => ApprovalState::Pending,
                Standing::Is(state) => state,
            };
            let is_same = approval.project == asked.project
                && approval.options == asked.options
                && approval.questions.iter().any(|it| it.question == asked.question);
            match state {
                ApprovalState::Expired | ApprovalState::Used => {}
                _ if is_same => return Ok((approval, state)),
                ApprovalState::Pending => open += 1,
                ApprovalState::Approved | ApprovalState::Rejected => {}
            }
        }
        if open >= MOST_OPEN {
            return Err(Fault::new(ErrorKind::RateLimited, format!("{open} of your questions wait already"))
                .with_hint("wait for an answer before asking more"));
        }
        let approval = Approval {
            id: self.unused_id(),
            kind: ApprovalKind::Escalation,
            created_at: now,
            expires_at: later(now, self.timeout),
            project: asked.project.clone(),
            session: asked.session.clone(),
            caller: asked.caller.clone(),
            tool: None,
            version: None,
            integrity: None,
            chain_hash: None,
            params_hash: None,
            param_hashes: BTreeMap::new(),
            params: Value::Null,
            rules_version: None,
            questions: vec![Question { by: asked.caller.clone(), question: asked.question.clone() }],
            options: asked.options.clone(),
            state: ApprovalState::Pending,
            decided: None,
        };
        store::save(&self.store.approvals, &approval).map_err(told)?;
        Ok((approval, ApprovalState::Pending))
    }
}
