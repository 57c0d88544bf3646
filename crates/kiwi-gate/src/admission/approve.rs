//! The last judge: a person.

use jiff::Timestamp;
use kiwi_space::OnAsk;
use serde_json::Value;
use std::sync::Arc;

use super::{Admission, Judge, Judged, Objection, Why};
use crate::approvals::{Approvals, Approved, AskMode, Bound, Question};
use crate::audit::veil;
use crate::redact::Redactor;
use crate::stage::Call;
use crate::vault::Vault;

impl Admission {
    /// A person's yes to exactly this call; where there is none, it is asked for, waited for, or denied.
    pub async fn approve(
        &self,
        call: &Call<'_>,
        judged: &Judged,
        vault: &Vault,
    ) -> Result<Approved, Box<Objection>> {
        let unavailable = |why: String| Box::new(Objection::policy(Judge::Approval, "approval", why));
        let approvals = Approvals::open(&self.spaces, self.config.approvals)
            .map_err(|error| unavailable(format!("nobody can be asked: {error}")))?;
        let known = vault.known(call.plan()).map_err(|fault| unavailable(fault.message))?;
        let veiled = veil(&call.params, call.plan().parameters(), &Redactor::new(&known));
        let Some(leaf) = call.plan().links().first() else {
            return Err(unavailable("the call has no tool".to_owned()));
        };
        let bound = Bound {
            project: self.spaces.project_root().map(|folder| folder.display().to_string()),
            session: call.request.session.to_string(),
            caller: call.request.caller.as_str().to_owned(),
            tool: leaf.tool_id.clone(),
            version: leaf.version.clone(),
            integrity: leaf.integrity,
            chain_hash: call.plan().chain_hash(),
            params: call.params.clone(),
            shown: veiled.params.unwrap_or(Value::Null),
            rules_version: judged.rules_version,
        };
        let question = |objection: &Objection| match &objection.why {
            Why::Asked { by, question } => Some(Question { by: by.clone(), question: question.clone() }),
            Why::Denied(_) => None,
        };
        let questions: Vec<Question> = judged.objections.iter().filter_map(question).collect();
        let mode = match (call.profile.on_ask, &call.request.on_ask) {
            (OnAsk::Deny, _) => AskMode::DenyUnlessGranted,
            (OnAsk::Pending, None) => AskMode::Pending,
            (OnAsk::Pending, Some(told)) => {
                AskMode::Wait { cancel: call.request.cancel.clone(), told: Arc::clone(told) }
            }
        };
        approvals.decide(&bound, &questions, mode, &Timestamp::now).await
    }
}
