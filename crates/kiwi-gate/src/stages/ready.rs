//! Everything the tool says it needs is there, or the call is refused before anything starts.

use kiwi_exec::ProgramSearch;
use kiwi_model::{ErrorKind, Fault};
use serde_json::json;
use std::sync::Arc;

use crate::host::Host;
use crate::stage::{Call, Next, Stage, StageFuture};

/// Checks requirements, and the parameters once more: a stage before this one may have changed them.
pub(crate) struct Ready {
    pub host: Arc<Host>,
}

impl Stage for Ready {
    fn run<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> StageFuture<'a> {
        Box::pin(async move {
            let params =
                call.plan().check_params(call.params).map_err(|error| kiwi_model::Explain::fault(&error))?;
            let call = Call { params, ..call };
            self.commands(&call)?;
            self.variables(&call)?;
            next.run(call).await
        })
    }
}

impl Ready {
    fn commands(&self, call: &Call<'_>) -> Result<(), Fault> {
        let search = ProgramSearch {
            path: self.host.search_path(),
            cwd: &self.host.cwd,
            versions: &self.host.environment,
        };
        let needed = call.plan().tools().iter().flat_map(|tool| &tool.manifest.requires_commands);
        let missing: Vec<&String> = needed.filter(|command| search.find(command).is_none()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let list = missing.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(", ");
        Err(Fault::new(ErrorKind::MissingRequirement, format!("not on the path: {list}"))
            .with_hint("install it, or put its folder on PATH")
            .with_details(json!({"commands": missing})))
    }

    fn variables(&self, call: &Call<'_>) -> Result<(), Fault> {
        let needed = call.plan().tools().iter().flat_map(|tool| &tool.manifest.requires_env);
        let missing: Vec<&String> =
            needed.filter(|name| !self.host.environment.contains_key(*name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let list = missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let example = missing.iter().map(|name| format!("{name}=…")).collect::<Vec<_>>().join(" ");
        Err(Fault::new(ErrorKind::MissingRequirement, format!("environment variables are not set: {list}"))
            .with_hint(format!("run it with `{example} kiwi run …`"))
            .with_details(json!({"variables": missing})))
    }
}
