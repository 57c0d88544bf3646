use camino::Utf8PathBuf;
use kiwi_model::{ErrorKind, Explain, Fault};
use kiwi_space::Trust;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::context::Context;
use crate::printer::{self, DIM, mark, paint};

/// Say which projects agents may work in, and whose signatures count. A project's own configuration never decides that.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Trust a project as it is; a later change to its `config/` asks again.
    Add {
        /// The project's folder; the nearest one above by default.
        dir: Option<Utf8PathBuf>,
    },
    /// Trust a project no more.
    Remove {
        /// The project's folder; the nearest one above by default.
        dir: Option<Utf8PathBuf>,
    },
    /// List the projects that are trusted.
    List {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Keys whose signatures count.
    Key {
        #[command(subcommand)]
        command: super::trust_key::Command,
    },
}

impl Args {
    /// Whether standard output must hold one JSON object.
    pub fn json(&self) -> bool {
        match &self.command {
            Command::List { json } => *json,
            Command::Key { command } => command.json(),
            Command::Add { .. } | Command::Remove { .. } => false,
        }
    }

    /// Does it.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let trust = context.kernel.spaces().trust().map_err(|error| error.fault())?;
        match self.command {
            Command::Add { dir } => {
                let project = project(context, dir)?;
                add(&trust, &project)?;
            }
            Command::Remove { dir } => {
                let project = project(context, dir)?;
                if !trust.remove(&project).map_err(|error| error.fault())? {
                    printer::note(format!("`{}` was not trusted", project.display()));
                }
            }
            Command::List { json } => list(&trust, json)?,
            Command::Key { command } => command.run(context)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Trusts a project and says so.
pub fn add(trust: &Trust, project: &Path) -> Result<(), Fault> {
    let at = jiff::Timestamp::try_from(Context::now()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let trusted = trust.add(project, at).map_err(|error| error.fault())?;
    printer::note(format!("{} agents may work in {}", mark(true), trusted.project.display()));
    Ok(())
}

fn list(trust: &Trust, json: bool) -> Result<(), Fault> {
    let all = trust.list().map_err(|error| error.fault())?;
    if json {
        printer::json(&json!({"status": "success", "projects": all}));
    } else {
        let row = |it: &kiwi_space::Trusted| {
            vec![it.project.display().to_string(), paint(DIM, format!("since {:.0}", it.at))]
        };
        printer::table(&all.iter().map(row).collect::<Vec<_>>());
    }
    Ok(())
}

fn project(context: &Context, dir: Option<Utf8PathBuf>) -> Result<PathBuf, Fault> {
    let nothing = |folder: &Path| {
        Fault::new(ErrorKind::NotFound, format!("`{}` has no `.ai` folder", folder.display()))
            .with_hint("`kiwi init` makes a project")
    };
    let Some(dir) = dir else {
        let nearest = context.kernel.spaces().project_root();
        return nearest.map(PathBuf::from).ok_or_else(|| nothing(&context.cwd));
    };
    let folder = context.cwd.join(dir);
    match folder.canonicalize() {
        Ok(folder) if folder.join(".ai").is_dir() => Ok(folder),
        _ => Err(nothing(&folder)),
    }
}
