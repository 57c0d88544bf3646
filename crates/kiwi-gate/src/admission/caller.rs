//! What the caller's profile says about a call.

use kiwi_chain::Form;
use kiwi_space::Profile;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use super::{Admission, Judge, Objection};
use crate::permission::glob::Glob;
use crate::permission::{Kind, Layer, PermissionContext, Protected, needs_of};
use crate::stage::Call;
use crate::trust;

impl Admission {
    /// Everything that speaks against the call from the caller's side.
    pub(super) fn permitted(&self, call: &Call<'_>) -> (Arc<PermissionContext>, Vec<Objection>) {
        let mut objections: Vec<Objection> = self.distrusted(call).into_iter().collect();
        let Some(leaf) = call.plan().tools().first() else {
            return (Arc::default(), objections);
        };
        let (id, profile) = (&leaf.manifest.tool_id, call.profile);
        // Which upstream servers a caller may ask is said by `mcp_actions`, whoever names them.
        if leaf.form != Form::Upstream && !profile.spaces.contains(&leaf.space) {
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
        let unreadable = call.request.permissions.iter().filter_map(|list| list.as_ref().err());
        objections.extend(unreadable.map(|why| {
            denied(why.clone())
                .with_hint(format!("it lists any of: {}", Kind::ALL.map(Kind::as_str).join(", ") + ", deny"))
        }));
        let context = self.context(call).unwrap_or_else(|objection| {
            objections.push(*objection);
            Arc::default()
        });
        if !context.is_everything() {
            match needs_of(call.plan(), &call.params, &self.host, self.root()) {
                Ok(needs) => objections.extend(context.judge(&needs)),
                Err(objection) => objections.push(*objection),
            }
        }
        objections.extend(self.asks(profile).iter().filter_map(|ask| ask.about(id.as_str(), &profile.name)));
        (context, objections)
    }

    /// What a profile wants a person to decide, which is read once.
    fn asks(&self, profile: &Profile) -> Arc<[Ask]> {
        let mut asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = asks.get(&profile.ask) {
            return Arc::clone(known);
        }
        let read: Arc<[Ask]> = profile.ask.iter().map(|pattern| Ask::read(pattern)).collect();
        asks.insert(profile.ask.clone(), Arc::clone(&read));
        read
    }

    /// What the caller may touch. What only depends on its profile is worked out once; but what `deny` refuses is looked
    /// for behind links as they are now.
    fn context(&self, call: &Call<'_>) -> Result<Arc<PermissionContext>, Box<Objection>> {
        let is_lasting = call.request.permissions.is_empty()
            && call.profile.layers.iter().all(|layer| layer.permissions.deny.is_empty());
        if !is_lasting {
            return self.new_context(call.profile).map(Arc::new);
        }
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (call.profile.name.clone(), call.profile.is_agent);
        if let Some(context) = contexts.get(&key) {
            return Ok(Arc::clone(context));
        }
        let context = Arc::new(self.new_context(call.profile)?);
        contexts.insert(key, Arc::clone(&context));
        Ok(context)
    }

    /// What a profile allows, as things are now.
    pub(crate) fn new_context(&self, profile: &Profile) -> Result<PermissionContext, Box<Objection>> {
        let mut context = PermissionContext::everything();
        for layer in &profile.layers {
            context = context.and(Layer::new(&layer.source, &layer.permissions, self.root())?);
        }
        if profile.is_agent {
            let protected = Protected::new(self.spaces.project_root(), self.spaces.user_root());
            context = context.protecting(protected);
        }
        Ok(context)
    }

    /// What relative paths start from.
    fn root(&self) -> &Path {
        self.spaces.project_root().unwrap_or(&self.host.cwd)
    }

    /// Agents run nothing in a project that its user has not trusted as it is, nor by a configuration that is no longer
    /// its own: profiles, limits and all else were read when Kiwi began.
    fn distrusted(&self, call: &Call<'_>) -> Option<Objection> {
        if !call.profile.is_agent {
            return None;
        }
        let project = self.spaces.project_root()?;
        let now = self.spaces.project_config().map_err(|error| error.to_string());
        let is_other = now != self.began_with;
        trust::problem(&self.spaces, &self.host, || now)
            .map(untrusted)
            .or_else(|| is_other.then(|| outdated(project)))
    }
}

/// Tools about which a profile wants a person to decide.
pub(crate) struct Ask {
    pattern: String,
    read: Result<Glob, String>,
}

impl Ask {
    fn read(pattern: &str) -> Self {
        Self { pattern: pattern.to_owned(), read: Glob::name(pattern) }
    }

    /// What it says about a tool. A pattern that cannot be read might have been meant for it.
    fn about(&self, id: &str, profile: &str) -> Option<Objection> {
        match &self.read {
            Ok(glob) if !glob.matches(id) => None,
            Ok(_) => Some(Objection::asked(
                Judge::Permission,
                format!("profile {profile}"),
                format!("may `{id}` be called?"),
            )),
            Err(why) => {
                let pattern = &self.pattern;
                Some(denied(format!("`ask` of profile `{profile}` has the pattern `{pattern}`: {why}")))
            }
        }
    }
}

fn denied(reason: String) -> Objection {
    Objection::policy(Judge::Permission, "permission", reason)
}

pub(crate) fn untrusted(reason: String) -> Objection {
    let hint = "look at its `.ai/config/`, then `kiwi trust add` in the project's folder";
    Objection::policy(Judge::Permission, "trust", reason).with_hint(hint)
}

fn outdated(project: &Path) -> Objection {
    let project = project.display();
    let reason = format!("the configuration of the project `{project}` has changed since this Kiwi began");
    let hint =
        "start it again, so that it reads the new one; an MCP client does so when it reconnects its servers";
    Objection::policy(Judge::Permission, "trust", reason).with_hint(hint)
}
