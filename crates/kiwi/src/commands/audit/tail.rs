use kiwi_gate::AuditLine;
use kiwi_model::Fault;
use std::process::ExitCode;
use std::time::Duration;

use super::{data, row, warn};
use crate::context::Context;
use crate::printer;

/// How often to look for more.
const PAUSE: Duration = Duration::from_millis(200);

/// Show the last records.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many.
    #[arg(short = 'n', long = "lines", value_name = "N", default_value_t = 20)]
    count: usize,
    /// Wait for more, until interrupted; with `--json` each record is then an object of its own.
    #[arg(long, short)]
    follow: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Shows.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let audit = context.kernel.audit()?;
        let (lines, mut end) = audit.tail(self.count)?;
        warn(&audit);
        if self.json && !self.follow {
            printer::json_list("records", lines.iter().map(data));
            return Ok(ExitCode::SUCCESS);
        }
        self.show(&lines);
        if !self.follow {
            return Ok(ExitCode::SUCCESS);
        }
        loop {
            std::thread::sleep(PAUSE);
            let (lines, next) = audit.since(end)?;
            end = next;
            self.show(&lines);
        }
    }

    fn show(&self, lines: &[AuditLine]) {
        if self.json {
            for line in lines {
                printer::line(data(line));
            }
        } else {
            printer::table(&lines.iter().map(row).collect::<Vec<_>>());
        }
    }
}
