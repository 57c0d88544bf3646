//! The effect: a rendered plan handed to its primitive.

use kiwi_chain::{Invocation, invocation};
use kiwi_exec::{ExecError, HttpClient, Launcher};
use kiwi_mcp::Upstreams;
use kiwi_model::{ErrorKind, Explain, Fault};
use kiwi_space::{Config, Spaces};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::host::Host;
use crate::planner::Planner;
use crate::prepare::Preparer;
use crate::redact::Redactor;
use crate::stage::{Call, Next, Reply, Stage, StageFuture};
use crate::vault::Vault;

/// The last stage.
pub(crate) struct Dispatch {
    pub planner: Arc<Planner>,
    pub host: Arc<Host>,
    pub launcher: Launcher,
    pub http: Arc<HttpClient>,
    pub vault: Arc<Vault>,
    pub preparer: Arc<Preparer>,
    pub config: Arc<Config>,
    pub upstreams: Arc<Upstreams>,
    pub spaces: Arc<Spaces>,
    /// What `{project_dir}` stands for, and where tools work.
    pub project: PathBuf,
}

impl Dispatch {
    /// The time a call has: what its manifest says, else what the configuration says.
    pub(super) fn timeout(&self, own: Option<f64>) -> Duration {
        own.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .unwrap_or(self.config.limits.timeout)
    }

    /// The bytes a call may give back, likewise.
    pub(super) fn output_cap(&self, own: Option<u64>) -> u64 {
        own.unwrap_or(self.config.limits.output)
    }
}

impl Stage for Dispatch {
    fn run<'a>(&'a self, call: Call<'a>, _next: Next<'a>) -> StageFuture<'a> {
        Box::pin(async move {
            if call.admitted.is_none() {
                return Err(Fault::new(ErrorKind::Internal, "the call was not admitted"));
            }
            let environment = |name: &str| self.host.environment.get(name).cloned();
            let rendered =
                invocation(call.plan(), &call.params, &environment).map_err(|error| error.fault())?;
            let secrets = self.vault.open(call.plan()).await?;
            let redactor = Redactor::new(&secrets);
            let begun = Instant::now();
            // Each for itself: the largest of them must not make the others' futures so.
            let reply = match rendered {
                Invocation::Process(process) => {
                    Box::pin(self.process(&call, process, &secrets, &redactor)).await
                }
                Invocation::Http(request) => Box::pin(self.request(&call, request, &secrets)).await,
                Invocation::Upstream(wanted) => Box::pin(self.upstream(&call, wanted)).await,
            };
            Ok(redactor.reply(Reply { took: begun.elapsed(), ..reply }))
        })
    }
}

/// An effect that failed keeps what it had printed.
pub(super) fn failed(error: &ExecError) -> Reply {
    let (stdout, stderr) = match error {
        ExecError::Timeout { stdout, stderr, .. } => (stdout.as_slice(), stderr.as_slice()),
        _ => (&[][..], &[][..]),
    };
    Reply {
        result: super::process::result_of(stdout),
        stderr: String::from_utf8_lossy(stderr).into_owned(),
        failure: Some(error.fault()),
        ..Reply::default()
    }
}

/// A refusal that belongs to the effect.
pub(super) fn refused(fault: Fault) -> Reply {
    Reply { failure: Some(fault), ..Reply::default() }
}
