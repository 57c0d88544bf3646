//! `cargo xtask docs`: the guide as pages.

use anyhow::{Result, bail};

use crate::shell::{Shell, root};
use crate::tools;

/// Builds `docs/` into `docs/book/`.
pub fn run() -> Result<()> {
    if !root()?.join("docs/book.toml").is_file() {
        bail!("docs/book.toml is missing: there is no guide to build");
    }
    let folder = tools::MDBOOK.folder()?;
    Shell::new(folder.join("mdbook"))?.args(["build", "docs"]).run()?;
    println!("docs/book/index.html");
    Ok(())
}
