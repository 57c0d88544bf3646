//! Cargo subcommands in pinned versions, built once into `target/xtask/tools/`.

use anyhow::{Result, bail};
use std::path::PathBuf;

use crate::shell::{Shell, cache};

/// A cargo subcommand and the version that is known to work.
pub struct Tool {
    /// The crate, which is also the program.
    pub name: &'static str,
    /// The exact version.
    pub version: &'static str,
}

/// Licences, bans and sources of dependencies.
pub const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };
/// Coverage-guided fuzzing.
pub const FUZZ: Tool = Tool { name: "cargo-fuzz", version: "0.13.2" };
/// The guide.
pub const MDBOOK: Tool = Tool { name: "mdbook", version: "0.5.4" };

impl Tool {
    /// The folder that holds the program, which is built if it is not there.
    pub fn folder(&self) -> Result<PathBuf> {
        let root = cache()?.join("tools").join(format!("{}-{}", self.name, self.version));
        let folder = root.join("bin");
        let program = folder.join(self.name);
        if !program.is_file() {
            println!("   building {} {} (once; kept under target/xtask)", self.name, self.version);
            // Without optimisation: it builds in a third of the time and its own running time does not matter.
            Shell::cargo()?
                .args([
                    "install",
                    "--quiet",
                    "--locked",
                    "--debug",
                    self.name,
                    "--version",
                    self.version,
                    "--root",
                ])
                .args([&root])
                .args(["--target-dir"])
                .args([cache()?.join("tools-build")])
                .env("CARGO_PROFILE_DEV_DEBUG", "0")
                .run()?;
        }
        if !program.is_file() {
            bail!(
                "`{}` {} was installed, but its program is not in {}",
                self.name,
                self.version,
                folder.display()
            );
        }
        println!("   {} {}", self.name, self.version);
        Ok(folder)
    }
}
