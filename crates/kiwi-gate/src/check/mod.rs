//! What would go wrong with a tool, found without running it.

mod container;
mod needs;
mod script;
mod source;

use kiwi_chain::{Plan, Primitive, Tool};
use kiwi_model::{ErrorKind, Explain as _, Fault, ToolRef};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

use crate::kernel::Kernel;

/// One thing that is wrong with a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind of failure a call would be.
    pub kind: ErrorKind,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The file it is in.
    pub file: String,
    /// The line, where that is known.
    pub line: Option<u64>,
}

impl Finding {
    /// Something that is wrong with a file.
    pub fn new(kind: ErrorKind, message: impl Into<String>, file: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, file: file.into(), line: None }
    }

    fn of(fault: Fault, file: impl Into<String>) -> Self {
        Self { hint: fault.hint, ..Self::new(fault.kind, fault.message, file) }
    }

    /// What a fault stands for: one finding per problem where a manifest has several.
    pub fn all(fault: Fault, path: &str) -> Vec<Self> {
        Self::each(fault, path, |_| None)
    }

    fn each(fault: Fault, path: &str, line: impl Fn(&str) -> Option<u64>) -> Vec<Self> {
        let file = fault.details.get("file").and_then(Value::as_str).unwrap_or(path).to_owned();
        let problems = fault.details.get("problems").and_then(Value::as_array);
        let Some(problems) = problems.filter(|_| fault.kind == ErrorKind::InvalidManifest) else {
            return vec![Self::of(fault, file)];
        };
        let text = |problem: &Value, key: &str| problem.get(key).and_then(Value::as_str).map(str::to_owned);
        let read = |problem: &Value| Self {
            hint: text(problem, "hint"),
            line: problem
                .get("line")
                .and_then(Value::as_u64)
                .or_else(|| line(problem.get("pointer")?.as_str()?)),
            ..Self::new(fault.kind, text(problem, "message").unwrap_or(fault.message.clone()), &file)
        };
        problems.iter().map(read).collect()
    }

    fn at(self, line: Option<u64>) -> Self {
        Self { line, ..self }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl Kernel {
    /// Everything that can be found wrong with a tool: its chain, the syntax of its files, its request, its container,
    /// and what it needs of this machine. Nothing of the tool is run.
    pub async fn check(&self, tool: &Arc<Tool>) -> Vec<Finding> {
        let ask = ToolRef::exactly(tool.manifest.tool_id.clone(), &tool.manifest.version);
        let planned = self.plan(&ask).and_then(|plan| {
            let sound = plan.require().and_then(|()| plan.usable_parameters());
            sound.map(|()| plan).map_err(|error| error.fault())
        });
        match planned {
            Ok(plan) => self.check_plan(&plan).await,
            Err(fault) => Finding::each(fault, &tool.path, |pointer| source::line_of(tool, pointer)),
        }
    }

    async fn check_plan(&self, plan: &Plan) -> Vec<Finding> {
        let (Ok(merged), Some(leaf)) = (plan.merged(), plan.tools().first()) else { return Vec::new() };
        let mut findings = self.check_needs(plan, leaf);
        match merged.primitive {
            // The schema of `http_client` has judged it already.
            Primitive::HttpClient => {}
            Primitive::Subprocess if merged.config().get("container").is_some() => {
                findings.extend(self.check_container(plan, leaf).await);
            }
            Primitive::Subprocess => findings.extend(self.check_script(merged, leaf).await),
        }
        findings
    }

    fn check_needs(&self, plan: &Plan, leaf: &Tool) -> Vec<Finding> {
        let judged: [(&[&str], Result<_, Fault>); 3] = [
            (&["/requires_commands"], needs::commands(&self.host, plan)),
            (&["/requires_env"], needs::variables(&self.host, plan)),
            (&["/requires_secret", "/config/auth"], self.vault.declared(plan).map(|_| ())),
        ];
        let finding = |(keys, result): (&[&str], Result<(), Fault>)| {
            let line = keys.iter().find_map(|key| source::line_of(leaf, key));
            Some(Finding::of(result.err()?, &leaf.path).at(line))
        };
        judged.into_iter().filter_map(finding).collect()
    }

    /// The interpreter of a language, or why there is none.
    async fn interpreter_or(
        &self,
        leaf: &Tool,
        language: kiwi_model::Language,
        program: &str,
    ) -> Result<std::path::PathBuf, Finding> {
        let found = self.preparer.interpreter(leaf, language, program).await;
        found.map(|it| it.path).map_err(|fault| Finding::of(fault, &leaf.path))
    }
}

/// A failure to check is told like a failure of the tool.
fn told(error: &kiwi_exec::ExecError, leaf: &Tool) -> Finding {
    Finding::of(error.fault(), &leaf.path)
}

/// A file of a tool as a person should see it.
fn shown(leaf: &Tool, path: &str) -> String {
    let folder = Path::new(&leaf.path).parent().unwrap_or(Path::new(""));
    folder.join(path).display().to_string()
}

pub(crate) use needs::{commands, variables};
