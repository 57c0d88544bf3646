use kiwi_mcp::{Choice, Noted, Page, Server};
use kiwi_model::{ErrorKind, Explain as _, Fault};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;

use super::{question, rooms};
use crate::context::Context;
use crate::printer::{self, BAD, BOLD, DIM, GOOD, WARN, paint};

/// Look at what MCP servers offer that nobody has agreed to, and decide.
///
/// A tool whose definition is new or has changed since you agreed to it is in quarantine: agents do not see it and cannot
/// call it. On a terminal you are asked about each; otherwise the exit code is 3 while something waits.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server; all of them by default.
    server: Option<String>,
    /// Agree to these tools as they are now.
    #[arg(long, value_name = "TOOL", num_args = 1.., requires = "server")]
    approve: Vec<String>,
    /// Agree to everything that waits.
    #[arg(long, requires = "server", conflicts_with_all = ["approve", "forget"])]
    approve_all: bool,
    /// Say no to these tools as they are now.
    #[arg(long, value_name = "TOOL", num_args = 1.., requires = "server")]
    reject: Vec<String>,
    /// Forget what was agreed about the server: what it offers next is what you agree to.
    #[arg(long, requires = "server", conflicts_with_all = ["approve", "reject"])]
    forget: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Shows, and decides where that was asked for.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let registry = rooms::registry(context);
        let servers: Vec<Arc<Server>> = match &self.server {
            Some(name) => vec![registry.server(name).map_err(|error| error.fault())?],
            None => registry.servers().map_err(|error| error.fault())?.values().cloned().collect(),
        };
        if self.forget {
            return self.forget(context, &servers);
        }
        let mut pages = Vec::new();
        for server in servers {
            let page = rooms::offered(context, &server)?;
            pages.push((server, page));
        }
        let decides = self.approve_all || !self.approve.is_empty() || !self.reject.is_empty();
        if decides {
            return self.decide(context, pages);
        }
        if !self.json {
            for (server, page) in &pages {
                show(server, page.as_deref());
            }
            if Context::is_interactive() {
                return ask(context, pages);
            }
        }
        Ok(self.tell(&pages))
    }

    fn forget(&self, context: &Context, servers: &[Arc<Server>]) -> Result<ExitCode, Fault> {
        let book = rooms::book(context);
        for server in servers {
            let was_known = book.forget(server).map_err(|error| error.fault())?;
            if self.json {
                printer::json(&json!({"status": "success", "server": server.name, "forgotten": was_known}));
            } else if was_known {
                printer::note(format!("forgot `{}`: what it offers next is agreed to", server.name));
            } else {
                printer::note(format!("nothing was known about `{}`", server.name));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn decide(
        &self,
        context: &Context,
        pages: Vec<(Arc<Server>, Option<Arc<Page>>)>,
    ) -> Result<ExitCode, Fault> {
        let book = rooms::book(context);
        let mut decided = Vec::new();
        for (server, page) in pages {
            let Some(mut page) = page else { return Err(unknown(&server)) };
            // What is said yes to is shown as well: whoever reads the record sees what it was.
            if !self.json {
                show(&server, Some(&page));
            }
            if let Some(name) = self.approve.iter().find(|name| self.reject.contains(name)) {
                return Err(Fault::new(
                    ErrorKind::Usage,
                    format!("`{name}` is approved and rejected at once"),
                )
                .with_hint("leave one of them out"));
            }
            let choice = if self.approve_all { Choice::All } else { Choice::Named(self.approve.clone()) };
            if self.approve_all || !self.approve.is_empty() {
                page = book
                    .approve(&server, &page, &choice, jiff::Timestamp::now())
                    .map_err(|error| error.fault())?;
            }
            if !self.reject.is_empty() {
                page = book.reject(&server, &page, &self.reject).map_err(|error| error.fault())?;
            }
            decided.push((server, Some(page)));
        }
        if self.json {
            printer::json(&printer::with_status(object(&decided), None));
        } else {
            for (server, page) in &decided {
                let page = page.as_ref();
                let (agreed, waiting) =
                    page.map_or((0, 0), |page| (page.agreed().count(), page.waiting().count()));
                printer::note(format!("`{}`: {agreed} agreed to, {waiting} in quarantine", server.name));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn tell(&self, pages: &[(Arc<Server>, Option<Arc<Page>>)]) -> ExitCode {
        let fault = waiting(pages);
        if self.json {
            printer::json(&printer::with_status(object(pages), fault.as_ref()));
        } else if let Some(fault) = &fault {
            printer::fault(fault);
        } else {
            printer::note("nothing waits");
        }
        fault.map_or(ExitCode::SUCCESS, |fault| ExitCode::from(fault.kind.exit_code()))
    }
}

/// That something waits, as a fault.
fn waiting(pages: &[(Arc<Server>, Option<Arc<Page>>)]) -> Option<Fault> {
    let known = pages.iter().filter_map(|(server, page)| Some((server, page.as_ref()?.waiting().count())));
    let waiting: Vec<_> = known.filter(|(_, count)| *count > 0).collect();
    let (first, _) = waiting.first()?;
    let count: usize = waiting.iter().map(|(_, count)| count).sum();
    let tools = if count == 1 { "1 tool waits".to_owned() } else { format!("{count} tools wait") };
    Some(
        Fault::new(ErrorKind::IntegrityMismatch, format!("{tools} for you in quarantine"))
            .with_hint(format!("`kiwi mcp review {} --approve TOOL`, or --reject TOOL", first.name))
            .with_details(json!({"waiting": count})),
    )
}

/// Asks about each tool that waits.
fn ask(context: &Context, pages: Vec<(Arc<Server>, Option<Arc<Page>>)>) -> Result<ExitCode, Fault> {
    let book = rooms::book(context);
    let mut has_decided = false;
    let mut now = Vec::new();
    'all: for (server, page) in pages {
        let Some(mut page) = page else { continue };
        let names: Vec<String> = page.waiting().map(|noted| noted.name().to_owned()).collect();
        for name in names {
            let id = format!("{}.{name}", server.name);
            match question::ask(&format!("{id}: [y]es, [n]o, [s]kip, [q]uit?"))?.as_str() {
                "y" | "yes" => {
                    let choice = Choice::Named(vec![name]);
                    page = book
                        .approve(&server, &page, &choice, jiff::Timestamp::now())
                        .map_err(|error| error.fault())?;
                    has_decided = true;
                }
                "n" | "no" => {
                    page = book.reject(&server, &page, &[name]).map_err(|error| error.fault())?;
                    has_decided = true;
                }
                "q" | "quit" => {
                    now.push((server, Some(page)));
                    break 'all;
                }
                _ => {}
            }
        }
        now.push((server, Some(page)));
    }
    match waiting(&now) {
        Some(fault) if !has_decided => {
            printer::fault(&fault);
            Ok(ExitCode::from(fault.kind.exit_code()))
        }
        Some(fault) => {
            printer::note(fault.message);
            Ok(ExitCode::SUCCESS)
        }
        None => {
            printer::note("nothing waits");
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn show(server: &Server, page: Option<&Page>) {
    let Some(page) = page else {
        let line = format!(
            "{}  nothing is known about it: it was never asked, or not as it is reached now",
            server.name
        );
        printer::note(paint(DIM, line));
        return;
    };
    for noted in page.tools.iter().filter(|noted| !noted.is_agreed()) {
        let id = format!("{}.{}", server.name, noted.name().escape_debug());
        let style = if noted.is_waiting() { WARN } else { DIM };
        printer::line(format!("{}  {}", paint(BOLD, id), paint(style, noted.sentence())));
        for finding in &noted.findings {
            printer::line(format!("  {} {finding}", paint(BAD, "!")));
        }
        for difference in noted.differences().iter().filter(|_| noted.is_waiting()) {
            for line in difference.unified().lines().skip(2) {
                printer::line(match line.chars().next() {
                    Some('+') => paint(GOOD, format!("  {line}")),
                    Some('-') => paint(BAD, format!("  {line}")),
                    Some('@') => paint(DIM, format!("  {}", difference.field)),
                    _ => format!("  {line}"),
                });
            }
        }
    }
}

fn unknown(server: &Server) -> Fault {
    Fault::new(ErrorKind::NotFound, format!("nothing is known about what `{}` offers", server.name))
        .with_hint(format!("`kiwi mcp refresh {}` asks it", server.name))
}

fn object(pages: &[(Arc<Server>, Option<Arc<Page>>)]) -> Value {
    let tool = |noted: &Noted| {
        json!({
            "name": noted.name(),
            "standing": if noted.is_agreed() { "agreed" } else { "quarantined" },
            "why": noted.why().map(kiwi_mcp::Why::word),
            "waiting": noted.is_waiting(),
            "sentence": noted.sentence(),
            "findings": noted.findings,
            "differences": if noted.is_agreed() { Vec::new() } else { noted.differences() },
            "digest": noted.definition.digest(),
        })
    };
    let servers: Vec<Value> = pages
        .iter()
        .map(|(server, page)| {
            json!({
                "name": server.name,
                "space": server.space,
                "listed_at": page.as_ref().map(|page| page.listing.at),
                "waiting": page.as_ref().map(|page| page.waiting().count()),
                "tools": page.as_ref().map(|page| page.tools.iter().map(tool).collect::<Vec<_>>()),
            })
        })
        .collect();
    json!({"servers": servers})
}
