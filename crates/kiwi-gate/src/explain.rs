//! What the gate would say about a call, without the call.

use kiwi_model::{Fault, Isolation};
use kiwi_rules::{Answer, Verdict};
use kiwi_space::ProfileMode;
use serde::Serialize;
use serde_json::Value;

use crate::admission::{Judge, Judged};
use crate::kernel::{Kernel, Prepared};
use crate::outcome::ToolIdentity;
use crate::request::Request;
use crate::stage::{Call, Trail};

/// The answer of the gate, judge by judge.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// What would be called.
    pub tool: Option<ToolIdentity>,
    /// The answer: the strictest of all.
    pub answer: Answer,
    /// The profile that applies.
    pub profile: String,
    /// How the caller works.
    pub mode: ProfileMode,
    /// How tightly the tool would be held.
    pub isolation: Isolation,
    /// The version of the rules.
    pub rules_version: String,
    /// What each judge says, in the order in which they are asked.
    pub judges: Vec<JudgeAnswer>,
    /// What each rule says that says anything.
    pub verdicts: Vec<Verdict>,
}

/// The answer of one judge.
#[derive(Debug, Serialize)]
pub struct JudgeAnswer {
    /// Who.
    pub judge: &'static str,
    /// Allow, ask or deny.
    pub answer: Answer,
    /// In sentences.
    pub sentences: Vec<String>,
    /// The same for programs.
    pub reasons: Vec<Value>,
}

impl Kernel {
    /// What every judge would say about this call. Nothing is used up, changed or recorded.
    pub fn explain(&self, request: &Request) -> Result<Explanation, Fault> {
        let prepared = self.prepared(request, request.arguments.clone());
        let Prepared { planned, params } = prepared.map_err(|unprepared| unprepared.fault)?;
        let profile = self.profile(request)?;
        let trail = Trail::default();
        let call =
            Call { request, planned: &planned, params, profile: &profile, admitted: None, trail: &trail };
        let judged = self.admission.judge(&call);
        self.admission.counters.withdrawn(request.session, &judged.counted);
        let tool = planned.plan.links().first().map(|link| ToolIdentity {
            id: link.tool_id.clone(),
            version: link.version.clone(),
            integrity: link.integrity,
        });
        Ok(Explanation {
            tool,
            answer: judged.answer(),
            profile: profile.name.clone(),
            mode: profile.mode,
            isolation: call.isolation(),
            rules_version: judged.rules_version.to_string(),
            judges: Judge::ALL.into_iter().map(|judge| answer_of(judge, &judged)).collect(),
            verdicts: judged.verdicts,
        })
    }
}

fn answer_of(judge: Judge, judged: &Judged) -> JudgeAnswer {
    let own = || judged.objections.iter().filter(move |objection| objection.judge == judge);
    JudgeAnswer {
        judge: judge.as_str(),
        answer: own().map(crate::Objection::answer).max().unwrap_or(Answer::Allow),
        sentences: own().map(crate::Objection::sentence).collect(),
        reasons: own().map(crate::Objection::to_value).collect(),
    }
}
