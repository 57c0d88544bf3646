use camino::Utf8PathBuf;
use kiwi_mcp::{Client, Imported, Origin, Scope, Server, import};
use kiwi_model::{ErrorKind, Explain as _, Fault};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::{install, list, rooms};
use crate::context::Context;
use crate::printer::{self, BOLD, DIM, WARN, mark, paint};

/// Take over the MCP servers that another client knows.
///
/// Without a file, the project's and the user's files of the client are read; without either, the project's files of
/// every client.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file; whose it is is told by what it holds.
    file: Option<Utf8PathBuf>,
    /// Whose file it is: claude-code, claude-desktop, codex, cursor, gemini, goose, opencode or vscode.
    #[arg(long, value_name = "CLIENT", value_parser = client)]
    from: Option<Client>,
    /// Name them in the user's file, for every project.
    #[arg(long)]
    user: bool,
    /// Show what would be taken over, and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Imports.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let space = rooms::space(context, self.user);
        let registry = rooms::registry(context);
        let mut known: BTreeSet<_> = registry.of(space).map_err(|error| error.fault())?.into_keys().collect();
        let mut all = Vec::new();
        for (file, client) in self.files(context)? {
            let text = std::fs::read_to_string(&file).map_err(|error| {
                Fault::new(ErrorKind::Usage, format!("`{}` cannot be read: {error}", file.display()))
            })?;
            let origin = Origin { file: &file, client, project: context.kernel.spaces().project_root() };
            let imported = import(&text, origin, space, &known).map_err(|error| error.fault())?;
            known.extend(imported.taken.iter().map(|taken| taken.server.name.clone()));
            all.push((file, imported));
        }
        let taken = all.iter().flat_map(|(_, imported)| &imported.taken);
        let servers: Vec<Server> = taken.map(|taken| taken.server.clone()).collect();
        if !self.dry_run && !servers.is_empty() {
            rooms::change(context, space, || {
                registry.add(space, &servers)?;
                let book = rooms::book(context);
                servers.iter().try_for_each(|server| book.forget(server).map(|_| ()))
            })?;
        }
        if self.json {
            let (taken, skipped) = objects(context, &all);
            printer::json(&json!({
                "status": "success",
                "file": registry.file(space),
                "written": !self.dry_run && !servers.is_empty(),
                "imported": taken,
                "skipped": skipped,
            }));
            return Ok(ExitCode::SUCCESS);
        }
        for (file, imported) in &all {
            show(context, file, imported);
        }
        let into = registry.file(space).map(|file| context.shown(&file)).unwrap_or_default();
        printer::note(match (servers.len(), self.dry_run) {
            (0, _) => "nothing to take over".to_owned(),
            (count, true) => format!("{count} would be written to {into}"),
            (count, false) => format!("{count} written to {into}"),
        });
        Ok(ExitCode::SUCCESS)
    }

    fn files(&self, context: &Context) -> Result<Vec<(PathBuf, Option<Client>)>, Fault> {
        if let Some(file) = &self.file {
            return Ok(vec![(context.cwd.join(file), self.from)]);
        }
        let places = install::places(context);
        let (clients, scopes): (&[Client], &[Scope]) = match &self.from {
            Some(client) => (std::slice::from_ref(client), &[Scope::Project, Scope::User]),
            None => (&Client::ALL, &[Scope::Project]),
        };
        let mut found = Vec::new();
        for client in clients {
            for scope in scopes {
                let file = client.file(*scope, &places).filter(|file| file.exists());
                found.extend(file.map(|file| (file, Some(*client))));
            }
        }
        if found.is_empty() {
            let whose =
                self.from.map_or("any client in this project".to_owned(), |client| client.to_string());
            return Err(Fault::new(ErrorKind::NotFound, format!("there is no file of {whose}"))
                .with_hint("name the file: `kiwi mcp import FILE`"));
        }
        Ok(found)
    }
}

fn objects(context: &Context, all: &[(PathBuf, Imported)]) -> (Vec<Value>, Vec<Value>) {
    let (mut taken, mut skipped) = (Vec::new(), Vec::new());
    for (file, imported) in all {
        taken.extend(imported.taken.iter().map(|taken| {
            let server = list::object(context, &taken.server, false);
            json!({"from": file, "original": taken.original, "notes": taken.notes, "server": server})
        }));
        let passed = imported.skipped.iter();
        skipped.extend(passed.map(|it| json!({"from": file, "original": it.original, "why": it.why})));
    }
    (taken, skipped)
}

fn show(context: &Context, file: &Path, imported: &Imported) {
    printer::note(paint(DIM, context.shown(file)));
    for taken in &imported.taken {
        let server = &taken.server;
        printer::line(format!("{} {}  {}", mark(true), paint(BOLD, &server.name), list::reach(server)));
        for note in &taken.notes {
            printer::note(format!("    {} {note}", paint(WARN, "note:")));
        }
    }
    for skipped in &imported.skipped {
        printer::note(format!("{} {}: {}", mark(false), skipped.original.escape_debug(), skipped.why));
    }
}

fn client(name: &str) -> Result<Client, String> {
    Client::parse(name).ok_or_else(|| {
        let names: Vec<&str> = Client::ALL.iter().map(|client| client.as_str()).collect();
        format!("expected one of {}", names.join(", "))
    })
}
