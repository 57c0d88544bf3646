use camino::Utf8PathBuf;
use kiwi_gate::{Asker, Found, FoundItem, Search, Session, Source};
use kiwi_model::{ErrorKind, Fault, Space};
use kiwi_search::{Filter, Kind, Mode, summary};
use kiwi_space::Transport;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::ExitCode;

use crate::context::Context;
use crate::indexing::Indexing;
use crate::printer::{self, BOLD, DIM, paint};

/// Find tools, directives and knowledge by what they do.
///
/// Names come first, then what is meant, in whatever words. Without a query: what was used lately.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What is needed, or a name.
    #[arg(value_name = "QUERY", conflicts_with = "batch")]
    query: Vec<String>,
    /// Only this kind.
    #[arg(long = "type", value_name = "TYPE")]
    item_type: Option<ItemType>,
    /// Only there: in a space, or at the registry.
    #[arg(long, value_name = "TIER")]
    tier: Option<Tier>,
    /// Only in this category, or one below it: `data/etl`.
    #[arg(long, value_name = "PATH")]
    category: Option<String>,
    /// Only with this tag; may be given again.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only tools of this type: python, bash, api, runtime, ….
    #[arg(long, value_name = "TYPE")]
    tool_type: Option<String>,
    /// How many to show.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Which legs are asked.
    #[arg(long, value_name = "MODE", default_value = "hybrid")]
    mode: ModeArg,
    /// Only what this profile may call. It narrows your own, never widens it.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Also show what speaks for each hit, in numbers.
    #[arg(long)]
    explain: bool,
    /// Answer every line of this file (`-` for standard input), one JSON object a line.
    #[arg(long, value_name = "FILE")]
    batch: Option<Utf8PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ItemType {
    Tool,
    #[value(hide = true)]
    Script,
    Directive,
    Knowledge,
    Mcp,
    #[value(hide = true)]
    All,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Tier {
    Project,
    User,
    System,
    Registry,
    All,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ModeArg {
    Hybrid,
    Text,
    Vector,
}

impl Args {
    /// Finds.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let asker =
            Asker { transport: Transport::Cli, narrower: self.profile.clone(), session: Session::start() };
        let indexing = Indexing::default();
        let find = |text: &str| context.kernel.search(&self.search(text), &asker, &indexing);
        if let Some(file) = &self.batch {
            return self.answer_each(file, &find);
        }
        let found = find(&self.query.join(" "))?;
        found.warnings.iter().for_each(printer::warning);
        if self.json {
            printer::json(&self.answer(&found));
        } else if found.hits.is_empty() {
            printer::note("nothing is found; try other words");
        } else {
            self.show(&found);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn search(&self, text: &str) -> Search {
        let source = match self.tier {
            None | Some(Tier::All) => None,
            Some(Tier::Project) => Some(Source::Space(Space::Project)),
            Some(Tier::User) => Some(Source::Space(Space::User)),
            Some(Tier::System) => Some(Source::Space(Space::System)),
            Some(Tier::Registry) => Some(Source::Registry),
        };
        let kinds = match self.item_type {
            None | Some(ItemType::All) => Vec::new(),
            Some(ItemType::Tool | ItemType::Script) => vec![Kind::Tool, Kind::Mcp],
            Some(ItemType::Directive) => vec![Kind::Directive],
            Some(ItemType::Knowledge) => vec![Kind::Knowledge],
            Some(ItemType::Mcp) => vec![Kind::Mcp],
        };
        Search {
            text: text.to_owned(),
            filter: Filter {
                kinds,
                category: self.category.clone(),
                tags: self.tags.clone(),
                tool_type: self.tool_type.clone(),
            },
            source,
            limit: self.limit,
            mode: match self.mode {
                ModeArg::Hybrid => Mode::Hybrid,
                ModeArg::Text => Mode::Text,
                ModeArg::Vector => Mode::Vector,
            },
        }
    }

    /// Answers every line of a file as it is read.
    fn answer_each(
        &self,
        file: &Utf8PathBuf,
        find: &dyn Fn(&str) -> Result<Found, Fault>,
    ) -> Result<ExitCode, Fault> {
        let unreadable = |error: std::io::Error| {
            Fault::new(ErrorKind::Usage, format!("`{file}` cannot be read: {error}"))
                .with_hint("--batch takes a file with a query on each line, or `-`")
        };
        let source: Box<dyn Read> = if file.as_str() == "-" {
            Box::new(std::io::stdin())
        } else {
            Box::new(std::fs::File::open(file).map_err(unreadable)?)
        };
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        for line in BufReader::new(source).lines() {
            let found = find(&line.map_err(unreadable)?)?;
            if !printer::written(writeln!(out, "{}", self.answer(&found))) {
                break;
            }
        }
        printer::written(out.flush());
        Ok(ExitCode::SUCCESS)
    }

    fn answer(&self, found: &Found) -> Value {
        let hit = |found: &FoundItem| {
            let item = &found.hit.item;
            let mut hit = json!({
                "item_id": item.id, "item_type": item.kind.as_str(), "version": item.version,
                "score": rounded(found.hit.score), "source": found.source.as_str(),
                "summary": summary(&item.description), "why": found.hit.why,
            });
            if let (true, Value::Object(hit)) = (self.explain, &mut hit) {
                hit.insert("explain".into(), explained(found));
            }
            hit
        };
        let hits: Vec<Value> = found.hits.iter().map(hit).collect();
        json!({"status": "success", "hits": hits, "took_us": u64::try_from(found.took.as_micros()).unwrap_or(u64::MAX)})
    }

    fn show(&self, found: &Found) {
        for found in &found.hits {
            let item = &found.hit.item;
            let kind = paint(DIM, format!("{} {}", found.source.as_str(), item.kind.as_str()));
            printer::line(format!("{} {kind}", paint(BOLD, &item.id)));
            if !item.description.is_empty() {
                printer::line(format!("  {}", summary(&item.description)));
            }
            printer::line(format!("  {}", paint(DIM, &found.hit.why)));
            if self.explain {
                printer::line(format!("  {}", paint(DIM, explained(found))));
            }
        }
    }
}

fn rounded(score: f32) -> f64 {
    (f64::from(score) * 10_000.0).round() / 10_000.0
}

/// What speaks for a hit.
fn explained(found: &FoundItem) -> Value {
    let it = &found.hit.weighed;
    json!({
        "text": rounded(it.text), "likeness": rounded(it.likeness), "name": rounded(it.name),
        "words": rounded(it.late), "usage": rounded(it.usage), "total": rounded(it.total),
    })
}
