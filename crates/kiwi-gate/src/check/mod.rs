//! What would go wrong with a tool, found without running it.

mod api;
mod container;
mod needs;
mod script;
mod source;

use kiwi_chain::{Plan, Primitive, Tool};
use kiwi_model::{ErrorKind, Explain as _, Fault};
use std::path::Path;

use crate::kernel::Kernel;

/// One thing that is wrong with a tool, or worth a look.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Whether a call could still succeed.
    pub is_warning: bool,
}

impl Finding {
    fn new(kind: ErrorKind, message: impl Into<String>, file: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, file: file.into(), line: None, is_warning: false }
    }

    fn of(fault: Fault, file: impl Into<String>) -> Self {
        Self { hint: fault.hint, ..Self::new(fault.kind, fault.message, file) }
    }

    fn at(self, line: Option<u64>) -> Self {
        Self { line, ..self }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl Kernel {
    /// Everything that can be found wrong with a sound chain: the syntax of its files, its request, its container, and
    /// what it needs of this machine. Nothing of the tool is run.
    pub async fn check(&self, plan: &Plan) -> Vec<Finding> {
        let (Ok(merged), Some(leaf)) = (plan.merged(), plan.tools().first()) else { return Vec::new() };
        let mut findings = self.check_needs(plan, leaf);
        match merged.primitive {
            Primitive::HttpClient => findings.extend(self.check_request(merged, leaf)),
            Primitive::Subprocess if merged.config().get("container").is_some() => {
                findings.extend(self.check_container(plan, leaf).await);
            }
            Primitive::Subprocess => findings.extend(self.check_script(merged, leaf).await),
        }
        findings
    }

    fn check_needs(&self, plan: &Plan, leaf: &Tool) -> Vec<Finding> {
        let faults = [
            needs::commands(&self.host, plan).err().map(|fault| ("/requires_commands", fault)),
            needs::variables(&self.host, plan).err().map(|fault| ("/requires_env", fault)),
            self.vault().declared(plan).err().map(|fault| ("/requires_secret", fault)),
        ];
        let finding = |(key, fault)| Finding::of(fault, &leaf.path).at(source::line_of(leaf, key));
        faults.into_iter().flatten().map(finding).collect()
    }

    /// The interpreter of a language, or why there is none.
    fn interpreter_or(
        &self,
        leaf: &Tool,
        language: kiwi_model::Language,
        program: &str,
    ) -> Result<std::path::PathBuf, Finding> {
        let found = self.preparer.interpreter(leaf, language, program);
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
