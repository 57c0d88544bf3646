//! What a chain says it needs of the machine.

use kiwi_chain::Plan;
use kiwi_exec::ProgramSearch;
use kiwi_model::{ErrorKind, Fault};
use serde_json::json;

use crate::host::Host;

/// Every command it requires is on the path.
pub(crate) fn commands(host: &Host, plan: &Plan) -> Result<(), Fault> {
    let search = ProgramSearch { path: host.search_path(), cwd: &host.cwd, versions: &host.environment };
    let needed = plan.tools().iter().flat_map(|tool| &tool.manifest.requires_commands);
    let missing: Vec<&String> = needed.filter(|command| search.find(command).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(", ");
    Err(Fault::new(ErrorKind::MissingRequirement, format!("not on the path: {list}"))
        .with_hint("install it, or put its folder on PATH")
        .with_details(json!({"commands": missing})))
}

/// Every variable it requires is set.
pub(crate) fn variables(host: &Host, plan: &Plan) -> Result<(), Fault> {
    let needed = plan.tools().iter().flat_map(|tool| &tool.manifest.requires_env);
    let missing: Vec<&String> = needed.filter(|name| !host.environment.contains_key(*name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let example = missing.iter().map(|name| format!("{name}=…")).collect::<Vec<_>>().join(" ");
    Err(Fault::new(ErrorKind::MissingRequirement, format!("environment variables are not set: {list}"))
        .with_hint(format!("run it with `{example} kiwi run …`"))
        .with_details(json!({"variables": missing})))
}
