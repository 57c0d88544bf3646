//! What rules remember: counters and the like, one small file per project in the user space, out of tools' sight.

use kiwi_model::Space;
use kiwi_rules::{DenialReason, Mutation};
use kiwi_space::{SpaceError, Spaces, StateFile};
use serde_json::{Map, Value};
use std::os::unix::ffi::OsStrExt as _;

use crate::admission::{Judge, Objection};

/// The state of the rules of a project, or of no project.
pub(crate) struct RuleState {
    file: Option<StateFile>,
}

impl RuleState {
    pub fn new(spaces: &Spaces) -> Self {
        let place = || {
            let owner = kiwi_model::Digest::of(spaces.state_root().ok()?.as_os_str().as_bytes());
            Some(spaces.ai(Space::User)?.join("state").join(format!("{}.json", owner.hex())))
        };
        Self { file: place().map(StateFile::new) }
    }

    /// What is remembered. Nothing yet is an empty memory; garbage is none.
    pub fn snapshot(&self) -> Result<Map<String, Value>, Objection> {
        let Some(file) = &self.file else { return Ok(Map::new()) };
        let bytes = file.read().map_err(|error| broken(&error.to_string()))?;
        parse(bytes).map_err(|why| broken(&format!("`{}`: {why}", file.path().display())))
    }

    /// Writes down what rules want changed. Others may have changed it since it was read: each change is judged again.
    pub fn apply(&self, mutations: &[Mutation]) -> Result<(), Objection> {
        if mutations.iter().all(|mutation| matches!(mutation, Mutation::Emit { .. })) {
            return Ok(());
        }
        let Some(file) = &self.file else { return Err(broken("there is no user space to keep it in")) };
        let applied = file.update(|bytes| {
            let mut state = parse(bytes).map_err(|why| broken(&why))?;
            for mutation in mutations {
                mutation.apply_to(&mut state).map_err(|why| violated(mutation, why.0))?;
            }
            Ok(Value::Object(state).to_string().into_bytes())
        });
        applied.map_err(|Refused(objection)| *objection)
    }
}

/// Why nothing was written.
struct Refused(Box<Objection>);

impl From<SpaceError> for Refused {
    fn from(error: SpaceError) -> Self {
        broken(&error.to_string()).into()
    }
}

impl From<Objection> for Refused {
    fn from(objection: Objection) -> Self {
        Self(Box::new(objection))
    }
}

fn violated(mutation: &Mutation, detail: String) -> Objection {
    let rule = match mutation {
        Mutation::Set { rule, .. } | Mutation::Apply { rule, .. } | Mutation::Emit { rule, .. } => {
            rule.clone()
        }
    };
    let effect = serde_json::to_string(mutation).unwrap_or_default();
    Objection::denied(Judge::Rules, DenialReason::EffectInvariantViolated { rule, effect, detail })
}

fn broken(why: &str) -> Objection {
    Objection::policy(Judge::Rules, "ruleset", format!("what the rules remember cannot be used: {why}"))
        .with_hint("repair that file, or remove it to begin anew")
}

fn parse(bytes: Option<Vec<u8>>) -> Result<Map<String, Value>, String> {
    bytes.map_or_else(
        || Ok(Map::new()),
        |bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
    )
}
