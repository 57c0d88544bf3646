//! Everything the tool says it needs is there, or the call is refused before anything starts.

use std::sync::Arc;

use crate::check::{commands, variables};
use crate::host::Host;
use crate::stage::{Call, Next, Stage, StageFuture};
use crate::vault::Vault;

/// Checks requirements, and the parameters once more: a stage before this one may have changed them.
pub(crate) struct Ready {
    pub host: Arc<Host>,
    pub vault: Arc<Vault>,
}

impl Stage for Ready {
    fn run<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> StageFuture<'a> {
        Box::pin(async move {
            let params =
                call.plan().check_params(call.params).map_err(|error| kiwi_model::Explain::fault(&error))?;
            let call = Call { params, ..call };
            commands(&self.host, call.plan())?;
            variables(&self.host, call.plan())?;
            self.vault.declared(call.plan())?;
            next.run(call).await
        })
    }
}
