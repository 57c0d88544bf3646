//! A client that asks whatever a described API allows, and what it does not: what the registry says of itself is held against it.

use anyhow::Result;
use std::path::PathBuf;

use crate::mcp::environment;
use crate::shell::{Shell, cache, root};

/// The variable by which suites are told where the program is.
pub const VARIABLE: &str = "KIWI_TEST_SCHEMATHESIS";

/// Runs a command that is told where it is.
pub fn run(program: &str, words: &[&str]) -> Result<()> {
    Shell::new(program)?.args(words).env(VARIABLE, installed()?).run()
}

/// The program.
pub fn installed() -> Result<PathBuf> {
    let python =
        environment(&cache()?.join("schemathesis"), &root()?.join("xtask/schemathesis/package.txt"))?;
    let program = python.with_file_name("schemathesis");
    println!("   schemathesis {}", program.display());
    Ok(program)
}
