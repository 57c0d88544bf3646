use camino::Utf8PathBuf;
use kiwi_model::{Explain, Fault};
use kiwi_space::Outcome;
use std::process::ExitCode;

use super::trust;
use crate::context::Context;
use crate::printer::{self, DIM, mark, paint};

/// Make a project: `.ai/` with a first tool and a first rule. Nothing that exists is changed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where; the current folder by default.
    dir: Option<Utf8PathBuf>,
}

impl Args {
    /// Makes the project.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let folder = self.dir.map_or_else(|| context.cwd.clone(), |dir| context.cwd.join(dir.as_std_path()));
        let made = kiwi_space::scaffold(&folder).map_err(|error| error.fault())?;
        for entry in &made {
            let state = match entry.outcome {
                Outcome::Made | Outcome::Extended => mark(true),
                Outcome::Kept => paint(DIM, "· kept"),
            };
            printer::note(format!("  {state} {}", entry.path.display()));
        }
        // What somebody has just made here is theirs. What was cloned is looked at first.
        if made.iter().any(|entry| entry.path.ends_with("config/kiwi.toml") && entry.outcome == Outcome::Made)
            && let (Ok(trust), Ok(folder)) = (context.kernel.spaces().trust(), folder.canonicalize())
        {
            trust::add(&trust, &folder)?;
        }
        printer::note("\nTry: kiwi run hello name=you");
        Ok(ExitCode::SUCCESS)
    }
}
