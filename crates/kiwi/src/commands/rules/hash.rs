use camino::Utf8PathBuf;
use kiwi_model::Fault;
use std::process::ExitCode;

use crate::context::Context;
use crate::printer;

/// Print the version hash of rules, and nothing else.
///
/// It depends on what the rules mean, not on files, their order, or layout.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Rule files, or folders of them.
    files: Vec<Utf8PathBuf>,
}

impl Args {
    /// Prints it.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        printer::line(super::registry(context, &self.files)?.version_hash());
        Ok(ExitCode::SUCCESS)
    }
}
