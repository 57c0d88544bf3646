use std::process::ExitCode;

use crate::printer;

/// Print the JSON Schema of a file that Kiwi reads, generated from the types that read it.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which file.
    what: What,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    /// `tool.yaml`
    Manifest,
    /// `lockfiles/…/tool@version.lock.json`
    Lockfile,
    /// `config/kiwi.toml`
    Config,
}

impl Args {
    /// Prints the schema.
    pub fn run(self) -> ExitCode {
        printer::json(&match self.what {
            What::Manifest => kiwi_model::manifest::manifest_schema(),
            What::Lockfile => kiwi_model::lockfile::lockfile_schema(),
            What::Config => kiwi_space::config_schema(),
        });
        ExitCode::SUCCESS
    }
}
