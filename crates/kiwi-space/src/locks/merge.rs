//! What a lockfile says that this Kiwi does not know outlives a rewrite.

use kiwi_model::lockfile::Lockfile;
use std::collections::{BTreeMap, HashMap};

/// Takes over from `old` every key that only somebody else knows and that `new` has not.
pub(super) fn keep_unknown(new: &mut Lockfile, old: Lockfile) {
    fill(&mut new.rest, old.rest);
    fill(&mut new.root.rest, old.root.rest);
    if let (Some(new), Some(old)) = (&mut new.environment, old.environment) {
        let mut rest: BTreeMap<_, _> = old.rest;
        rest.append(&mut new.rest);
        new.rest = rest;
    }
    let mut links: HashMap<_, _> =
        old.resolved_chain.into_iter().map(|link| (link.tool_id, link.rest)).collect();
    for link in &mut new.resolved_chain {
        fill(&mut link.rest, links.remove(&link.tool_id).unwrap_or_default());
    }
}

type Rest = serde_json::Map<String, serde_json::Value>;

fn fill(new: &mut Rest, old: Rest) {
    for (key, value) in old {
        new.entry(key).or_insert(value);
    }
}
