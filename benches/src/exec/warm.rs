//! Calls by a process that stays, as a server makes them: one kernel, asked again and again.

use anyhow::{Context, Result, anyhow, bail};
use kiwi_gate::{Caller, Host, Kernel, Request, Session};
use kiwi_model::{Status, ToolRef};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

use crate::fixture::Project;
use crate::plan::spaces;

/// A kernel, and the runtime it needs.
pub struct Warm {
    kernel: Kernel,
    runtime: Runtime,
}

impl Warm {
    /// Opens a project as `kiwi` itself would.
    pub fn open(kiwi: &Path, project: &Project) -> Result<Self> {
        let home = project.home();
        let mut environment: std::collections::BTreeMap<String, String> = std::env::vars().collect();
        environment.insert("HOME".into(), home.to_string_lossy().into_owned());
        let host = Host {
            environment,
            kiwi: kiwi.to_owned(),
            launcher: None,
            cwd: project.root(),
            scratch: std::env::temp_dir(),
            has_terminal: false,
            authorize: None,
        };
        let kernel = Kernel::new(Arc::new(spaces(project)?), host).map_err(|fault| anyhow!(fault.message))?;
        kernel.keep_spares();
        let runtime = Builder::new_current_thread().enable_all().build().context("no runtime")?;
        Ok(Self { kernel, runtime })
    }

    /// One whole call: planned, verified, recorded, run, recorded.
    pub fn call(&self, tool: &str, parameters: &[(&str, &str)]) -> Result<()> {
        let tool = ToolRef::parse(tool).map_err(|fault| anyhow!(fault.message))?;
        let object: Map<String, Value> =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
        // Each in a session of its own: one that says the same again and again is stopped.
        let request = Request::new(tool, object, Caller::cli("bench"), Session::start());
        let outcome = self.runtime.block_on(self.kernel.call(request));
        if outcome.status != Status::Success || outcome.result.is_null() {
            bail!("a warm call failed: {:?}", outcome.error);
        }
        Ok(())
    }
}
