//! What the caller's profile says about a call.

use kiwi_space::TrustState;

use super::{Admission, Judge, Objection};
use crate::stage::Call;

impl Admission {
    /// Everything that speaks against the call from the caller's side.
    pub(super) fn permitted(&self, call: &Call<'_>) -> Vec<Objection> {
        let mut objections: Vec<Objection> = self.trusted(call).err().into_iter().collect();
        let Some(leaf) = call.plan().tools().first() else { return objections };
        let (id, profile) = (&leaf.manifest.tool_id, call.profile);
        if !profile.spaces.contains(&leaf.space) {
            let reason = format!(
                "profile `{}` may not call tools of the {} space, and `{id}` is one",
                profile.name,
                leaf.space.as_str()
            );
            objections.push(denied(reason).with_hint(format!(
                "add \"{}\" to `profiles.{}.spaces` in the user's configuration",
                leaf.space.as_str(),
                profile.name
            )));
        }
        objections
    }

    /// Agents run nothing in a project that its user has not trusted as it is.
    fn trusted(&self, call: &Call<'_>) -> Result<(), Objection> {
        if !call.profile.is_agent || self.host.trusts_everything() {
            return Ok(());
        }
        let Some(project) = self.spaces.project_root() else { return Ok(()) };
        let read = || self.spaces.project_config().map_err(|error| error.to_string());
        let config = match self.project.get_or_init(read) {
            Ok(config) => *config,
            Err(why) => return Err(untrusted(format!("the project's configuration cannot be read: {why}"))),
        };
        let state = self.spaces.trust().and_then(|trust| trust.state(project, config));
        match state {
            Ok(TrustState::Trusted) => Ok(()),
            Ok(TrustState::Unknown) => {
                Err(untrusted(format!("the project `{}` is not trusted", project.display())))
            }
            Ok(TrustState::Changed) => Err(untrusted(format!(
                "the configuration of the project `{}` has changed since it was trusted",
                project.display()
            ))),
            Err(error) => Err(untrusted(format!("whether the project is trusted cannot be read: {error}"))),
        }
    }
}

fn denied(reason: String) -> Objection {
    Objection::policy(Judge::Permission, "permission", reason)
}

fn untrusted(reason: String) -> Objection {
    Objection::policy(Judge::Permission, "trust", reason)
        .with_hint("look at its `.ai/config/`, then `kiwi trust add` in the project's folder")
}
