use camino::Utf8PathBuf;
use kiwi_gate::ExportFormat;
use kiwi_model::{ErrorKind, Fault};
use std::process::ExitCode;

use super::warn;
use crate::context::Context;
use crate::printer;

/// Write the log in a form that others read.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which form.
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Only what was recorded since: a time such as 2026-01-31T12:00:00Z, or a span before now such as 2h or 7d.
    #[arg(long, value_name = "T")]
    since: Option<String>,
    /// Only what was recorded until then.
    #[arg(long, value_name = "T")]
    until: Option<String>,
    /// Write to a file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<Utf8PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    /// The records as they are.
    Jsonl,
    /// A table.
    Csv,
    /// A trace for OpenTelemetry: a span for each call.
    Otel,
    /// An in-toto statement for each call.
    InToto,
}

impl Args {
    /// Writes.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let audit = context.kernel.audit()?;
        let lines = audit.between(self.since.as_deref(), self.until.as_deref())?;
        warn(&audit);
        let format = match self.format {
            Format::Jsonl => ExportFormat::Jsonl,
            Format::Csv => ExportFormat::Csv,
            Format::Otel => ExportFormat::Otel,
            Format::InToto => ExportFormat::InToto,
        };
        let text = format.write(&lines);
        match self.output {
            None => printer::stream(true, text.as_bytes()),
            Some(file) => {
                let path = context.cwd.join(file.as_std_path());
                std::fs::write(&path, text).map_err(|error| {
                    Fault::new(ErrorKind::Usage, format!("`{file}` cannot be written: {error}"))
                        .with_hint("name a file in a folder that is there and can be written")
                })?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
