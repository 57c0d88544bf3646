//! The exact version of an interpreter, asked once per file.

use kiwi_model::{Isolation, Language, Text};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Environments, build::path_text, identity, make_private};
use crate::confinement::Confinement;
use crate::error::ExecError;
use crate::process::{Process, Unwatched};

const TIMEOUT: Duration = Duration::from_secs(30);
const OUTPUT_CAP: u64 = 64 << 10;

impl Environments {
    /// The exact version of an interpreter, such as `3.11.7`. Only the first call for a file starts it.
    pub async fn version_of(&self, language: Language, interpreter: &Path) -> Result<String, ExecError> {
        let folder = self.cache.join("interpreters");
        let known = folder.join(identity::of_interpreter(language, interpreter)?);
        if let Some(version) = fs::read_to_string(&known).ok().and_then(|text| version_in(language, &text)) {
            return Ok(version);
        }
        make_private(&folder)?;
        let told = self.ask_version(interpreter).await?;
        let version = version_in(language, &told).ok_or_else(|| ExecError::NotExecutable {
            program: interpreter.display().to_string(),
            why: "asked for its version, it gives none".into(),
        })?;
        // Whoever reads meanwhile finds the whole text or none; what cannot be kept is asked again.
        let unfinished = beside(&known);
        let _ = fs::write(&unfinished, told).and_then(|()| fs::rename(&unfinished, &known));
        Ok(version)
    }

    async fn ask_version(&self, interpreter: &Path) -> Result<String, ExecError> {
        let process = Process {
            program: path_text(interpreter)?,
            args: vec![Text::literal("--version")],
            env: vec![("PATH".into(), Text::literal(&self.search_path))],
            cwd: self.cache.clone(),
            stdin: Vec::new(),
            timeout: TIMEOUT,
            output_cap: OUTPUT_CAP,
            isolation: Isolation::Standard,
            confinement: Confinement::default(),
            has_secrets: false,
            packages: Vec::new(),
            search_path: String::new(),
            project: self.cache.clone(),
        };
        let finished = self.launcher.run(process, &Unwatched, std::future::pending()).await?;
        Ok(String::from_utf8_lossy(&finished.stdout).into_owned())
    }
}

/// `Python 3.11.7` and `v20.20.2`, without what stands before the number.
fn version_in(language: Language, told: &str) -> Option<String> {
    let version = match language {
        Language::Python => told.strip_prefix("Python ")?,
        Language::Node => told.strip_prefix('v')?,
    };
    let version = version.split_whitespace().next()?;
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
}

/// A path that nobody else writes to.
fn beside(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    path.with_extension(format!("{}-{count}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_found_in_what_interpreters_say() {
        for (language, told, version) in [
            (Language::Python, "Python 3.11.7\n", Some("3.11.7")),
            (Language::Python, "Python 3.14.0rc1 (abc)\n[PyPy]\n", Some("3.14.0rc1")),
            (Language::Python, "v20.1.0\n", None),
            (Language::Node, "v20.20.2\n", Some("20.20.2")),
            (Language::Node, "vim", None),
            (Language::Node, "", None),
        ] {
            assert_eq!(version_in(language, told).as_deref(), version, "{told:?}");
        }
    }
}
