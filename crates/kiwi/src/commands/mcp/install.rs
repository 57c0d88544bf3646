use kiwi_mcp::{Client, Installation, Places, Program, Scope};
use kiwi_model::{ErrorKind, Explain as _, Fault};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

use super::{question, rooms};
use crate::commands::trust;
use crate::context::Context;
use crate::printer::{self, BAD, GOOD, mark, paint};

/// Write Kiwi into a client's own settings, so that its agents get governed tools.
///
/// The change is shown first. The file as it was is kept beside it, and --undo gives it back.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Args {
    /// claude-code, codex, cursor, gemini, goose, opencode or vscode.
    #[arg(value_parser = client)]
    client: Client,
    /// Whose settings: user or project.
    #[arg(long, value_name = "SCOPE", default_value = "user", value_parser = scope)]
    scope: Scope,
    /// Show the change, and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Take Kiwi out again.
    #[arg(long)]
    undo: bool,
    /// Write without asking.
    #[arg(long)]
    yes: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Installs, or takes back.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let plan = self.plan(context)?;
        let diff = plan.diff();
        let is_written = !plan.is_done() && !self.dry_run && self.may_write(&plan, &diff)?;
        let done = if is_written || (plan.is_done() && !self.dry_run) {
            Some(plan.write().map_err(|error| error.fault())?)
        } else {
            None
        };
        if self.json {
            printer::json(&json!({
                "status": "success",
                "client": self.client.as_str(),
                "scope": self.scope.as_str(),
                "file": plan.file(),
                "changed": !plan.is_done(),
                "written": is_written,
                "backup": done.and_then(|done| done.backup),
                "diff": diff,
            }));
            return Ok(ExitCode::SUCCESS);
        }
        let file = context.shown(plan.file());
        if self.dry_run {
            for line in diff.lines() {
                printer::line(painted(line));
            }
        }
        printer::note(match (plan.is_done(), is_written, self.undo) {
            (true, _, false) => format!("{file} has Kiwi already"),
            (true, _, true) => format!("{file} has nothing of Kiwi"),
            (false, true, false) => format!("{} {} starts Kiwi now: {file}", mark(true), self.client),
            (false, true, true) if plan.removes_file() => format!("{} removed {file}", mark(true)),
            (false, true, true) => format!("{} {file} is without Kiwi again", mark(true)),
            (false, false, _) => "nothing was written".to_owned(),
        });
        if let Some(backup) = done.and_then(|done| done.backup) {
            printer::note(format!("as it was: {}", context.shown(&backup)));
        }
        if !self.undo && !self.dry_run {
            offer_trust(context)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn plan(&self, context: &Context) -> Result<Installation, Fault> {
        let (places, spaces) = (places(context), context.kernel.spaces());
        let plan = if self.undo {
            Installation::undo(self.client, self.scope, &places, spaces)
        } else {
            let project = spaces.project_root().filter(|_| self.scope == Scope::Project);
            let program = Program { path: &context.kiwi, project };
            Installation::of(self.client, self.scope, &places, program, spaces)
        };
        plan.map_err(|error| error.fault())
    }

    fn may_write(&self, plan: &Installation, diff: &str) -> Result<bool, Fault> {
        if !self.json {
            for line in diff.lines() {
                printer::note(painted(line));
            }
        }
        if self.yes {
            return Ok(true);
        }
        if self.json || !Context::is_interactive() {
            return Err(Fault::new(
                ErrorKind::Usage,
                format!("`{}` is not written without being asked to", plan.file().display()),
            )
            .with_hint("--yes writes it, --dry-run shows the change"));
        }
        question::confirm(&format!("Write {}?", plan.file().display()))
    }
}

/// Where clients look for their settings.
pub fn places(context: &Context) -> Places {
    let folder = |name: &str| {
        let value = context.environment.get(name).filter(|value| !value.is_empty());
        value.map(|value| context.cwd.join(value))
    };
    let home = folder("HOME");
    Places {
        config: folder("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config"))),
        codex: folder("CODEX_HOME"),
        project: context.kernel.spaces().project_root().map(PathBuf::from),
        home,
    }
}

/// Agents run nothing of a project that nobody trusts: whoever lets a client in is asked.
fn offer_trust(context: &Context) -> Result<(), Fault> {
    let Some(project) = context.kernel.spaces().project_root() else { return Ok(()) };
    if rooms::is_trusted(context.kernel.spaces())? {
        return Ok(());
    }
    let shown = project.display();
    if !Context::is_interactive() {
        printer::note(format!("agents run nothing of {shown} until you trust it: `kiwi trust add`"));
        return Ok(());
    }
    if question::confirm(&format!("May agents use what is in {shown}?"))? {
        let trust = context.kernel.spaces().trust().map_err(|error| error.fault())?;
        trust::add(&trust, project)?;
    }
    Ok(())
}

fn painted(line: &str) -> String {
    match line.chars().next() {
        Some('+') => paint(GOOD, line),
        Some('-') => paint(BAD, line),
        _ => line.to_owned(),
    }
}

fn client(name: &str) -> Result<Client, String> {
    Client::parse(name).filter(|client| Client::INSTALLABLE.contains(client)).ok_or_else(|| {
        let names: Vec<&str> = Client::INSTALLABLE.iter().map(|client| client.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

fn scope(name: &str) -> Result<Scope, String> {
    [Scope::User, Scope::Project]
        .into_iter()
        .find(|scope| scope.as_str() == name)
        .ok_or_else(|| "expected `user` or `project`".to_owned())
}
