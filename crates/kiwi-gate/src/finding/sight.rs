//! Whether a caller is shown an item.

use kiwi_chain::Catalog as _;
use kiwi_model::{Fault, Space, ToolId};
use kiwi_search::{Item, Kind, Prospect};
use kiwi_space::{Profile, Sighted};

use super::Here;
use crate::admission::{Admission, Why, denied_by};
use crate::catalogue::Catalogue;
use crate::permission::{Need, PermissionContext};

/// What one caller sees.
pub(super) struct Sight<'a> {
    catalogue: &'a Catalogue,
    profile: &'a Profile,
    context: PermissionContext,
    /// Where is looked: with one space alone it does not matter what is nearer.
    here: Here,
}

impl<'a> Sight<'a> {
    pub fn new(
        catalogue: &'a Catalogue,
        admission: &Admission,
        profile: &'a Profile,
        here: Here,
    ) -> Result<Self, Fault> {
        let context = admission.new_context(profile).map_err(|objection| {
            let why = match objection.why {
                Why::Denied(reason) => reason.to_string(),
                Why::Asked { question, .. } => question,
            };
            denied_by("permission", why).with_hint("mend the profile in `config/kiwi.toml`")
        })?;
        Ok(Self { catalogue, profile, context, here })
    }

    /// Whether an item is shown: it is allowed, it still is what was indexed, and it is what its name means.
    pub fn shows(&self, space: Space, it: &Prospect<'_>) -> bool {
        self.allows(space, it.item) && self.stands(space, it)
    }

    /// Whether what a registry offers is shown: it would be allowed once it is here, and nothing here has its name.
    pub fn offers(&self, item: &Item) -> bool {
        let Ok(id) = ToolId::parse(&item.id) else { return false };
        let is_free =
            |space| self.catalogue.candidates(&id, space).is_ok_and(|candidates| candidates.is_empty());
        let is_allowed =
            self.context.is_everything() || self.context.judge(&[Need::tool(&item.id)]).is_empty();
        is_allowed && super::ORDER.into_iter().all(is_free)
    }

    /// Whether the caller could use it.
    fn allows(&self, space: Space, item: &Item) -> bool {
        if !matches!(item.kind, Kind::Tool | Kind::Mcp) {
            return true;
        }
        let mut needs = vec![Need::tool(&item.id)];
        match (item.kind, item.id.split_once('.')) {
            (Kind::Mcp, Some((server, action))) => needs.push(Need::action(server, action)),
            _ if !self.profile.spaces.contains(&space) => return false,
            _ => {}
        }
        self.context.is_everything() || self.context.judge(&needs).is_empty()
    }

    /// Whether it is there as it was indexed.
    fn stands(&self, space: Space, it: &Prospect<'_>) -> bool {
        let Prospect { key, item, .. } = *it;
        if matches!(item.kind, Kind::Directive | Kind::Knowledge) {
            let there = self.catalogue.spaces.at_key(space, key);
            return there.is_ok_and(|there| matches!(there, Sighted::Text(text) if text.id == item.id));
        }
        let Ok(id) = ToolId::callable(&item.id) else { return false };
        let order = super::ORDER.into_iter().filter(|it| self.here.has(*it));
        for nearer in order {
            // What was sound when it was indexed and was not touched since is sound, and need not be read.
            let may_be_still = nearer == space && item.is_alone && !self.catalogue.may_want_signature(space);
            if may_be_still && self.catalogue.spaces.is_still(space, &id, key, it.stamp) {
                return true;
            }
            match self.catalogue.candidates(&id, nearer) {
                Ok(candidates) if candidates.is_empty() => {}
                Ok(candidates) if nearer == space => {
                    let version = item.version.as_deref().unwrap_or_default();
                    let best = candidates.iter().max_by(|a, b| a.version.cmp(&b.version));
                    let best = best.filter(|best| best.version.to_string() == version);
                    return best.is_some_and(|best| {
                        self.catalogue.load(best).is_ok_and(|tool| kiwi_chain::verify(&tool).is_ok())
                    });
                }
                // Something nearer has its name, or something of its name cannot be told apart.
                Ok(_) | Err(_) => return false,
            }
        }
        false
    }
}
