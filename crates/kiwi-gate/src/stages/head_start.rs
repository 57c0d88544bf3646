//! A head start for whoever is to start a tool: it begins while the call is being recorded.

use kiwi_chain::Primitive;
use kiwi_exec::Launcher;
use std::sync::Arc;

use crate::host::Host;
use crate::prepare::Preparer;
use crate::stage::{Call, Next, Stage, StageFuture};

/// Has the launcher started where no other call will come. It is no effect: without orders it leaves.
pub(crate) struct HeadStart {
    pub host: Arc<Host>,
    pub launcher: Launcher,
    pub preparer: Arc<Preparer>,
}

impl Stage for HeadStart {
    fn run<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> StageFuture<'a> {
        let starts = call.plan().merged().is_ok_and(|merged| merged.primitive == Primitive::Subprocess);
        if call.request.is_only && starts {
            let backend = self.preparer.walls();
            self.launcher.start_ahead(call.isolation(), &backend, self.host.search_path());
        }
        next.run(call)
    }
}
