//! Hashing a large file, against `openssl dgst -sha256`: two processes that read the same bytes.

use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::cold::{find, once};
use crate::fixture::Project;
use crate::plan;
use crate::stats::{Samples, interleave};

const BYTES: usize = 100_000_000;
const TURNS: usize = 21;
const MANIFEST: &str =
    "tool_id: large\nversion: \"1.0.0\"\ntool_type: script\nexecutor: bash_runtime\nentrypoint: run.sh\n";

/// `kiwi verify` of a tool with one large file, and `openssl` on that file; both must see the same digest.
pub fn against_openssl(kiwi: &Path, project: &Project) -> Result<(Samples, Samples)> {
    let package = project.root().join(".ai/tools/demo/large");
    let file = package.join("data.bin");
    std::fs::create_dir_all(&package)?;
    std::fs::write(package.join("tool.yaml"), MANIFEST)?;
    std::fs::write(package.join("run.sh"), "echo large\n")?;
    write(&file)?;

    let openssl = find("openssl")?;
    let digest = || {
        let mut command = Command::new(&openssl);
        command.args(["dgst", "-sha256", "-r"]).arg(&file);
        command
    };
    let said = digest().output().context("cannot start openssl")?.stdout;
    let theirs = String::from_utf8(said)?.split_whitespace().next().unwrap_or_default().to_owned();
    let ours = plan::digest_of_large(project, "large", "data.bin")?;
    if ours != theirs || theirs.len() != 64 {
        bail!("kiwi says {ours}, openssl says {theirs}");
    }
    interleave(
        TURNS,
        || once(project.command(kiwi).args(["verify", "large"]), false),
        || once(&mut digest(), true),
    )
}

/// Bytes that do not repeat.
fn write(file: &Path) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..BYTES / 8 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.write_all(&state.to_le_bytes())?;
    }
    Ok(out.flush()?)
}
