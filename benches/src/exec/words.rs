//! A Python tool with three packages, and the same script for whoever runs it without Kiwi.

use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::fixture::Project;

/// The tool.
pub const TOOL: &str = "words";
/// Its packages: small, without native code, and in the environment of the peer `ryeos-mcp` too.
pub const PACKAGES: [&str; 3] = ["certifi==2026.10.18", "idna==3.20", "packaging==26.3"];
const SCRIPT: &str = r#"import certifi
import idna
import packaging.version


def execute(params):
    known = packaging.version.Version("1.2.3").major
    return {"hello": idna.encode(params["name"]).decode(), "known": known, "trusts": bool(certifi.where())}
"#;
const SAID: &str = r#"{"hello": "kiwi", "known": 1, "trusts": true}"#;
/// What Kiwi itself calls the script with.
const RUNNER: &str = include_str!("../../../system/tools/runtimes/python_runtime/runner.py");

/// The tool in a project, its environment, and the script beside the runner.
pub struct Words {
    /// The interpreter of the environment that Kiwi made.
    pub python: PathBuf,
    /// A folder with the runner and the script.
    pub folder: PathBuf,
}

impl Words {
    /// Writes the tool into a project and has Kiwi make its environment.
    pub fn prepare(kiwi: &Path, project: &Project, folder: PathBuf) -> Result<Self> {
        let requires = PACKAGES.map(|package| format!("{package:?}")).join(", ");
        let manifest = format!(
            "tool_id: {TOOL}\nversion: \"1.0.0\"\ntool_type: script\nexecutor: python_runtime\ncategory: demo\n\
             manifest: {{entrypoint: main.py, requires: [{requires}]}}\n\
             parameters: {{type: object, properties: {{name: {{type: string}}}}, required: [name]}}\n"
        );
        let package = project.root().join(".ai/tools/demo").join(TOOL);
        fs::create_dir_all(&package)?;
        fs::write(package.join("tool.yaml"), manifest)?;
        fs::create_dir_all(&folder)?;
        for place in [&package, &folder] {
            fs::write(place.join("main.py"), SCRIPT)?;
        }
        fs::write(folder.join("runner.py"), RUNNER)?;
        fs::write(folder.join("params.json"), r#"{"name":"kiwi"}"#)?;
        run(project.command(kiwi).args(["run", TOOL, "name=kiwi"]))?;
        let made = project.home().join(".ai/cache/python");
        let mut made =
            fs::read_dir(&made).with_context(|| format!("cannot read {}", made.display()))?.flatten();
        let python =
            made.find_map(|entry| Some(entry.path().join("bin/python")).filter(|path| path.exists()));
        Ok(Self { python: python.context("kiwi made no environment")?, folder })
    }

    /// What any interpreter is given: the runner, the script, and the name it should believe it has.
    pub fn arguments(&self) -> [PathBuf; 4] {
        let script = self.folder.join("main.py");
        ["-u".into(), self.folder.join("runner.py"), script.clone(), script]
    }

    /// Runs the script by the interpreter of its environment, without Kiwi.
    pub fn itself(&self) -> Result<()> {
        self.without(Command::new(&self.python).args(self.arguments()))
    }

    /// Runs the script without Kiwi, with the parameters on standard input.
    pub fn without(&self, command: &mut Command) -> Result<()> {
        run(command.current_dir(&self.folder).stdin(File::open(self.folder.join("params.json"))?))
    }
}

/// Runs it through Kiwi, from start to end.
pub fn through(kiwi: &Path, project: &Project) -> Result<()> {
    run(project.command(kiwi).args(["run", TOOL, "name=kiwi"]).stdin(Stdio::null()))
}

/// Everybody must come to the same.
fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() || String::from_utf8_lossy(&output.stdout).trim() != SAID {
        bail!("{command:?} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
