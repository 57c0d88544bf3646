//! What a caller may touch: layers that must all agree, and what no agent may touch whatever they say.

use kiwi_model::Permissions;
use std::path::Path;

use super::kind::Kind;
use super::layer::Layer;
use super::need::Need;
use super::protect::Protected;
use crate::admission::{Judge, Objection};

/// What a caller may touch. Layers are asked each time, so that a narrower parent always holds.
#[derive(Debug, Clone, Default)]
pub struct PermissionContext {
    layers: Vec<Layer>,
    protected: Option<Protected>,
}

impl PermissionContext {
    /// Everything: what a person at the terminal may do.
    pub fn everything() -> Self {
        Self::default()
    }

    /// The same, narrowed by one more layer.
    #[must_use]
    pub fn and(mut self, layer: Layer) -> Self {
        self.layers.push(layer);
        self
    }

    /// The same for an agent: some things stay out of its reach whatever the layers say.
    #[must_use]
    pub fn protecting(mut self, protected: Protected) -> Self {
        self.protected = Some(protected);
        self
    }

    /// Whether nothing is refused.
    pub fn is_everything(&self) -> bool {
        self.layers.is_empty() && self.protected.is_none()
    }

    /// The names of the layers, the first one first.
    pub fn layers(&self) -> impl Iterator<Item = &str> {
        self.layers.iter().map(Layer::name)
    }

    /// Whether something below a folder may be allowed. Where not, there is nothing to look for.
    pub(crate) fn may_reach_into(&self, kind: Kind, folder: &Path) -> bool {
        self.layers.iter().all(|layer| layer.may_reach_into(kind, folder))
    }

    /// Everything that is to be said against these needs; nothing where they are allowed.
    pub fn judge(&self, needs: &[Need]) -> Vec<Objection> {
        let mut objections: Vec<Objection> = Vec::new();
        for need in needs {
            let protected = self.protected.iter().filter_map(|protected| protected.refuses(need));
            let layers = self.layers.iter().filter_map(|layer| layer.refuses(need));
            for objection in protected.chain(layers) {
                if !objections.contains(&objection) {
                    objections.push(objection);
                }
            }
        }
        objections
    }

    /// Why a child may not declare these permissions: it would have more than its parent. What the parent refuses by
    /// `deny` may be declared, since that refusal is asked each time.
    pub fn escalation(&self, child: &Permissions, root: &Path) -> Option<Objection> {
        let (layer, (kind, pattern, witness)) =
            self.layers.iter().find_map(|layer| Some((layer, layer.exceeded_by(child, root)?)))?;
        let (name, kind) = (layer.name(), kind.as_str());
        let reason = format!(
            "permission escalation denied: `{pattern}` of `{kind}` goes beyond {name}, which does not allow {witness}"
        );
        let objection = Objection::policy(Judge::Permission, "permission", reason)
            .with_hint(format!("declare what {name} allows, or less"))
            .with("permission", kind)
            .with("pattern", pattern)
            .with("layer", name);
        Some(objection)
    }
}
