//! What rules remember: counters and the like, one small file per project in the user space, out of tools' sight.

use kiwi_model::Space;
use kiwi_rules::{DenialReason, Mutation};
use kiwi_space::{PrivateFolder, Spaces};
use serde_json::{Map, Value};
use std::os::unix::ffi::OsStrExt as _;

use crate::admission::{Judge, Objection};

/// The state of the rules of a project, or of no project.
pub(crate) struct RuleState {
    place: Option<(PrivateFolder, String)>,
}

impl RuleState {
    pub fn new(spaces: &Spaces) -> Self {
        let place = || {
            let owner = kiwi_model::Digest::of(spaces.state_root().ok()?.as_os_str().as_bytes());
            let folder = PrivateFolder::new(spaces.ai(Space::User)?.join("state"));
            Some((folder, format!("{}.json", owner.hex())))
        };
        Self { place: place() }
    }

    /// What is remembered. Nothing yet is an empty memory; garbage is none.
    pub fn snapshot(&self) -> Result<Map<String, Value>, Box<Objection>> {
        let Some((folder, name)) = &self.place else { return Ok(Map::new()) };
        match folder.read(name) {
            Ok(None) => Ok(Map::new()),
            Ok(Some(bytes)) => serde_json::from_slice(&bytes)
                .map_err(|error| broken(&format!("`{}`: {error}", folder.file(name).display())).into()),
            Err(error) => Err(broken(&error.to_string()).into()),
        }
    }

    /// Writes down what rules want changed. Others may have changed it since it was read: each change is judged again.
    pub fn apply(&self, mutations: &[Mutation]) -> Result<(), Box<Objection>> {
        if mutations.iter().all(|mutation| matches!(mutation, Mutation::Emit { .. })) {
            return Ok(());
        }
        let Some((folder, name)) = &self.place else {
            return Err(broken("there is no user space to keep it in").into());
        };
        let turn = folder.make().and_then(|()| folder.turn());
        let _turn = turn.map_err(|error| broken(&error.to_string()))?;
        let mut state = self.snapshot()?;
        for mutation in mutations {
            mutation.apply_to(&mut state).map_err(|why| violated(mutation, why.0))?;
        }
        let text = Value::Object(state).to_string();
        folder.write(name, text.as_bytes()).map_err(|error| broken(&error.to_string()).into())
    }
}

fn violated(mutation: &Mutation, detail: String) -> Objection {
    let rule = match mutation {
        Mutation::Set { rule, .. } | Mutation::Apply { rule, .. } | Mutation::Emit { rule, .. } => {
            rule.clone()
        }
    };
    let effect = serde_json::to_string(mutation).unwrap_or_default();
    let reason = DenialReason::EffectInvariantViolated { rule, effect, detail };
    Objection::denied(Judge::Rules, reason)
}

fn broken(why: &str) -> Objection {
    let why = format!("what the rules remember cannot be used: {why}");
    Objection::policy(Judge::Rules, "ruleset", why).with_hint("repair that file, or remove it to begin anew")
}
