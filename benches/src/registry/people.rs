//! Somebody with a home and projects, who types commands.

use anyhow::{Context, Result, bail};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

use super::asked::{ADMIN, Served};
use crate::Setup;

pub struct Person {
    folder: TempDir,
    kiwi: PathBuf,
    url: String,
    project: RefCell<PathBuf>,
}

impl Person {
    pub fn new(setup: &Setup, scratch: &Path, served: &Served) -> Result<Self> {
        let folder = tempfile::tempdir_in(scratch)?;
        let project = folder.path().join("first");
        std::fs::create_dir_all(project.join(".ai/tools"))?;
        let person = Self {
            folder,
            kiwi: setup.kiwi.clone(),
            url: served.url.clone(),
            project: RefCell::new(project),
        };
        Ok(person)
    }

    /// From here on in another project.
    pub fn move_on(&self) -> Result<()> {
        let project = self.folder.path().join("second");
        std::fs::create_dir_all(project.join(".ai/tools"))?;
        *self.project.borrow_mut() = project;
        Ok(())
    }

    pub fn kiwi(&self, words: &[&str]) -> Result<()> {
        let output = Command::new(&self.kiwi)
            .args(words)
            .current_dir(&*self.project.borrow())
            .env("HOME", self.folder.path())
            .env("KIWI_REGISTRY", &self.url)
            .env("KIWI_TOKEN", ADMIN)
            .output()
            .context("`kiwi` does not start")?;
        if output.status.success() {
            return Ok(());
        }
        bail!("kiwi {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr))
    }

    /// Three tools, each of which runs on the next, and each with a file of some weight.
    pub fn write_chain(&self, weight: usize) -> Result<()> {
        let runtime = |id: &str, executor: &str| {
            format!(
                "tool_id: {id}\nversion: \"1.0.0\"\ntool_type: runtime\nexecutor: {executor}\ndescription: A link\nconfig: {{command: bash, args: [\"{{entrypoint}}\"]}}\nvalidation: {{child_schemas: [{{match: {{}}, schema: {{type: object}}}}]}}\n"
            )
        };
        let top = "tool_id: bench_top\nversion: \"1.0.0\"\ntool_type: script\nexecutor: bench_middle\ndescription: The top\nentrypoint: run.sh\n";
        let links = [
            ("bench_ground", runtime("bench_ground", "subprocess"), 1),
            ("bench_middle", runtime("bench_middle", "bench_ground"), 2),
            ("bench_top", top.to_owned(), 3),
        ];
        for (id, manifest, seed) in links {
            let folder = self.project.borrow().join(".ai/tools").join(id);
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join("tool.yaml"), manifest)?;
            std::fs::write(folder.join("run.sh"), "echo done\n")?;
            let bytes: Vec<u8> =
                (0..weight).map(|at| u8::try_from((at * 31 + at / 251 * seed) % 256).unwrap_or(0)).collect();
            std::fs::write(folder.join("weight.bin"), bytes)?;
        }
        Ok(())
    }

    /// A small tool in one version after the other.
    pub fn write_small(&self, version: usize) -> Result<()> {
        let text = format!(
            "# kiwi: version: \"1.0.{version}\"\n# kiwi: description: A small tool\necho {version}\n"
        );
        Ok(std::fs::write(self.project.borrow().join(".ai/tools/bench_small.sh"), text)?)
    }
}
