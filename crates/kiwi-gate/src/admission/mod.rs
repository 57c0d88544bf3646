//! Whether a call may happen: every judge is asked, the strictest answer wins, and every reason is kept.

mod approve;
mod caller;
mod counted;
mod denied;
mod judged;
mod objection;

use kiwi_model::Digest;
use kiwi_model::record::PermissionNote;
use kiwi_rules::{
    AdmissionRequest, AdmissionResult, Answer, Decision, DenialReason, Mode, Permission, RuleRegistry,
    evaluate_admission,
};
use kiwi_space::{Config, ProfileMode, Spaces};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use crate::host::Host;
use crate::permission::PermissionContext;
use crate::rule_state::RuleState;
use crate::rulebook::Rulebook;
use crate::stage::Call;

use caller::Ask;
pub(crate) use caller::untrusted;
pub(crate) use counted::{Counted, Counters};
pub use denied::{OnDeny, ToolAdmissionDenied};
pub(crate) use denied::{complete_denial, denied_by};
pub(crate) use judged::{AdmissionNote, Admitted, Judged};
pub use objection::{Judge, Objection, Why};

/// The judges.
pub(crate) struct Admission {
    pub spaces: Arc<Spaces>,
    pub host: Arc<Host>,
    pub config: Arc<Config>,
    pub rulebook: Rulebook,
    pub state: RuleState,
    pub counters: Counters,
    /// The digest over the project's configuration, as it was when it was read.
    began_with: Result<Option<Digest>, String>,
    /// What callers may touch, by profile and by whether an agent has it.
    contexts: Mutex<BTreeMap<(String, bool), Arc<PermissionContext>>>,
    /// What people are asked about, by the patterns that say so.
    asks: Mutex<HashMap<Vec<String>, Arc<[Ask]>>>,
}

impl Admission {
    /// Judges by a configuration, of which the project's part had this digest.
    pub fn new(
        spaces: Arc<Spaces>,
        host: Arc<Host>,
        config: &Arc<Config>,
        began_with: Result<Option<Digest>, String>,
    ) -> Self {
        Self {
            rulebook: Rulebook::new(Arc::clone(&spaces), Arc::clone(config)),
            state: RuleState::new(&spaces),
            counters: Counters::new(config, &spaces),
            began_with,
            contexts: Mutex::default(),
            asks: Mutex::default(),
            config: Arc::clone(config),
            spaces,
            host,
        }
    }

    /// Asks every judge but the last: what a person says is asked for only where somebody wants that.
    pub fn judge(&self, call: &Call<'_>) -> Judged {
        let (context, permitted) = self.permitted(call);
        let answer = permitted.iter().map(Objection::answer).max().unwrap_or(Answer::Allow);
        let permission = Permission { allowed: answer != Answer::Deny, answer };
        let (ruled, inputs, mut objections) = self.rules(call, permission);
        objections.extend(permitted);
        let (counted, too_much) = self.counters.count(call);
        objections.extend(too_much);
        let mutations = match ruled.decision {
            Decision::Admit { effect_mutations } | Decision::Ask { effect_mutations, .. } => effect_mutations,
            Decision::Deny { .. } => Vec::new(),
        };
        Judged {
            objections,
            mutations,
            verdicts: ruled.verdicts,
            rules_version: ruled.rule_version,
            permission: PermissionNote {
                profile: call.profile.name.clone(),
                allowed: permission.allowed,
                answer: answer.to_string(),
            },
            inputs,
            context,
            counted,
        }
    }

    /// What the rules say, and what they said it about.
    fn rules(&self, call: &Call<'_>, permission: Permission) -> (AdmissionResult, Value, Vec<Objection>) {
        let (registry, mend) = match self.rulebook.read() {
            Ok(registry) => (registry, None),
            Err(unusable) => (Arc::new(RuleRegistry::refusing(unusable.reason)), unusable.fault.hint),
        };
        let plan = call.plan();
        let leaf = plan.tools().first();
        let tool = leaf.map(|leaf| leaf.manifest.tool_id.as_str()).unwrap_or_default();
        let mut objections = Vec::new();
        let read = registry.reads_of_state(tool);
        let state = if read.is_empty() {
            Map::new()
        } else {
            self.state.snapshot().unwrap_or_else(|objection| {
                objections.push(*objection);
                Map::new()
            })
        };
        let request = AdmissionRequest {
            caller: call.request.caller.as_str(),
            tool,
            mode: match call.profile.mode {
                ProfileMode::Normal => Mode::Normal,
                ProfileMode::Readonly => Mode::Readonly,
                ProfileMode::Admin => Mode::Admin,
            },
            args: &call.params,
            tool_type: leaf.map(|leaf| leaf.manifest.tool_type.as_str()).unwrap_or_default(),
            space: leaf.map(|leaf| leaf.space.as_str()).unwrap_or_default(),
            mutates: plan.mutates(),
            state: &state,
            interactive: call.request.is_interactive,
            permission,
            rule_version: call.request.rules_version.as_deref(),
        };
        let result = evaluate_admission(&request, &registry);
        match &result.decision {
            Decision::Admit { .. } => {}
            Decision::Ask { asked, .. } => {
                let ask = |asked: &kiwi_rules::Asked| {
                    Objection::asked(Judge::Rules, asked.rule.clone(), asked.reason.clone())
                };
                objections.extend(asked.iter().map(ask));
            }
            Decision::Deny { reason, further } => {
                let deny = |reason: &DenialReason| {
                    let hint = mend.clone().unwrap_or_else(|| next_step(reason).to_owned());
                    Objection::denied(Judge::Rules, reason.clone()).with_hint(hint)
                };
                objections.extend(std::iter::once(reason).chain(further).map(deny));
            }
        }
        // Beside the parameters: those stand in the record themselves.
        let inputs = json!({
            "mode": request.mode,
            "tool_type": request.tool_type,
            "space": request.space,
            "mutates": request.mutates,
            "state": concerned(&state, &read),
            "interactive": request.interactive,
            "permission": request.permission,
        });
        (result, inputs, objections)
    }
}

/// The part of the state that rules looked at.
fn concerned(state: &Map<String, Value>, read: &BTreeSet<&str>) -> Map<String, Value> {
    let is_read = |name: &str| {
        read.iter().any(|path| {
            path.strip_prefix("state").is_some_and(|rest| {
                rest.trim_start_matches('.')
                    .split('.')
                    .next()
                    .is_some_and(|first| first.is_empty() || first == name)
            })
        })
    };
    state
        .iter()
        .filter(|(name, _)| is_read(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn next_step(reason: &DenialReason) -> &'static str {
    match reason {
        DenialReason::NoRuleMatched { .. } => "no rule admits it; `kiwi gate explain` shows what was asked",
        DenialReason::RuleVersionMismatch { .. } => {
            "the rules have changed; `kiwi rules hash` prints the version in force"
        }
        DenialReason::Policy { .. } | DenialReason::AmbiguousRuleset { .. } => {
            "`kiwi rules check` says what is wrong with the rules"
        }
        _ => "`kiwi rules explain` shows the rule",
    }
}
