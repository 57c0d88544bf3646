use clap::CommandFactory;
use std::process::ExitCode;

use crate::printer;

/// Print the completion script of a shell.
///
/// For example: `kiwi completions bash > ~/.local/share/bash-completion/completions/kiwi`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which shell.
    shell: clap_complete::Shell,
}

impl Args {
    /// Prints the script.
    pub fn run(self) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut <crate::cli::Cli>::command(), "kiwi", &mut script);
        printer::line(String::from_utf8_lossy(&script).trim_end());
        ExitCode::SUCCESS
    }
}
