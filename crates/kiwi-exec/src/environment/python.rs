//! Virtual environments, built with uv, or with the interpreter's own venv and pip.

use kiwi_model::Text;
use std::path::{Path, PathBuf};

use super::Wanted;
use super::build::{Builder, arguments, path_text, remove};
use crate::error::ExecError;

/// The first pip that can install into an environment which has no pip of its own.
const PIP: (u64, u64) = (22, 3);

/// The interpreter of an environment.
pub fn program_of(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}

impl Builder<'_> {
    pub async fn build_python(&self) -> Result<(), ExecError> {
        if let Ok(uv) = self.find("uv") {
            match self.with_uv(&uv).await {
                Err(ExecError::EnvironmentFailed { .. }) => (self.progress)("uv failed; trying pip"),
                other => return other,
            }
        }
        self.with_pip().await
    }

    async fn with_uv(&self, uv: &Path) -> Result<(), ExecError> {
        self.clear()?;
        let mut venv = arguments(&["venv", "--no-project", "--quiet", "--python"]);
        venv.extend([path_text(&self.wish.interpreter)?, path_text(self.folder)?]);
        self.python_step("uv", uv, venv).await?;
        if self.wish.packages.is_empty() {
            return Ok(());
        }
        let mut install = arguments(&["pip", "install", "--no-progress", "--python"]);
        install.push(path_text(&program_of(self.folder))?);
        install.extend(self.python_packages());
        self.python_step("uv", uv, install).await?;
        self.compile().await
    }

    /// Tools write no compiled files, so these have to be there. Those a package brings along are replaced: they need not
    /// say what its sources say. A source that cannot be compiled harms nobody before it is imported.
    async fn compile(&self) -> Result<(), ExecError> {
        let python = program_of(self.folder);
        let mut compile = arguments(&["-I", "-m", "compileall", "-q", "-f"]);
        compile.push(path_text(&self.folder.join("lib"))?);
        self.unheard().run(&self.environments.cache, &python, compile).await.map(drop)
    }

    /// The same without telling anybody what is written.
    const fn unheard(&self) -> Self {
        Self { progress: &|_: &str| (), ..*self }
    }

    /// The environment gets no pip of its own: it would be one package more than was asked for.
    async fn with_pip(&self) -> Result<(), ExecError> {
        self.clear()?;
        // -I: neither the working folder nor PYTHON* variables may slip in modules.
        let mut venv = arguments(&["-I", "-m", "venv", "--without-pip"]);
        venv.push(path_text(self.folder)?);
        self.python_step("venv", &self.wish.interpreter, venv).await?;
        if self.wish.packages.is_empty() {
            return Ok(());
        }
        if self.has_pip().await? {
            return self.install_with(&self.wish.interpreter).await;
        }
        // Such as Debian's without `python3-pip`. The pip that Python carries along serves once, from beside.
        let beside = self.folder.join(".installer");
        let mut venv = arguments(&["-I", "-m", "venv"]);
        venv.push(path_text(&beside)?);
        self.python_step("venv", &self.wish.interpreter, venv).await?;
        let pip = program_of(&beside);
        let newer = format!("pip>={}.{}", PIP.0, PIP.1);
        self.python_step("pip", &pip, arguments(&["-I", "-m", "pip", "install", "--quiet", &newer])).await?;
        self.install_with(&pip).await?;
        remove(&beside)
    }

    /// Installs with the pip of one interpreter into the environment.
    async fn install_with(&self, interpreter: &Path) -> Result<(), ExecError> {
        let mut install = arguments(&["-I", "-m", "pip", "--python"]);
        install.push(path_text(&program_of(self.folder))?);
        install.extend(arguments(&["install", "--no-input", "--disable-pip-version-check"]));
        install.extend(arguments(&["--progress-bar=off", "--compile"]));
        install.extend(self.python_packages());
        self.python_step("pip", interpreter, install).await
    }

    /// Whether the interpreter itself has a pip that is new enough.
    async fn has_pip(&self) -> Result<bool, ExecError> {
        let asked = arguments(&["-I", "-c", "import pip; print(pip.__version__)"]);
        let finished = self.unheard().run(&self.environments.cache, &self.wish.interpreter, asked).await?;
        let told = String::from_utf8_lossy(&finished.stdout);
        Ok(finished.exit.is_success() && major_and_minor(&told).is_some_and(|version| version >= PIP))
    }

    async fn python_step(&self, installer: &str, program: &Path, args: Vec<Text>) -> Result<(), ExecError> {
        self.step(installer, &self.environments.cache, program, args).await
    }

    fn python_packages(&self) -> Vec<Text> {
        let mut all = Vec::new();
        if !self.wish.allow_source_builds {
            all.extend(arguments(&["--only-binary", ":all:"]));
        }
        let names: Vec<String> = match &self.wish.packages {
            Wanted::Named(_) => self.wish.packages.texts(),
            Wanted::Pinned(pins) => {
                all.push(Text::literal("--no-deps"));
                pins.iter().map(|pin| format!("{}=={}", pin.name, pin.version)).collect()
            }
        };
        all.push(Text::literal("--"));
        all.extend(names.into_iter().map(Text::literal));
        all
    }
}

fn major_and_minor(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.trim().split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_pip_are_compared_as_numbers() {
        assert!(["22.3", "23.2.1\n", "100.0"].iter().all(|text| major_and_minor(text) >= Some(PIP)));
        assert!(["22.2.9", "9.9", "", "x", "22"].iter().all(|text| major_and_minor(text) < Some(PIP)));
    }
}
