//! A call whose command runs in a container: the helper of the binary gets the words for the engine.

use kiwi_chain::{ContainerCall, Plan, ProcessCall, Volume};
use kiwi_exec::{ContainerError, Engine, ExecError, ImageSource, Package, Stream};
use kiwi_model::{ErrorKind, Explain, Fault, Isolation, Piece, Text};
use serde_json::json;
use std::path::Path;

use super::dispatch::Dispatch;
use super::process::form;
use crate::permission::needs::in_project;
use crate::stage::Call;
use crate::vault::Secrets;

/// How many processes a container may have that says nothing about it.
const PROCESSES: u64 = 256;

impl Dispatch {
    /// Makes a container ready and the helper's arguments complete, where the chain wants a container. Gives the level
    /// the process itself runs at: the container is what holds the tool, and the helper is Kiwi's own.
    pub(super) async fn contain(
        &self,
        call: &Call<'_>,
        wanted: &mut ProcessCall,
        secrets: &Secrets,
        isolation: Isolation,
    ) -> Result<Isolation, Fault> {
        let Some(container) = wanted.container.take() else { return Ok(isolation) };
        refuse_open(&container, isolation)?;
        let containers = &self.preparer.containers;
        let engine = containers.engine(&container.engine).map_err(|error| error.fault())?;
        refuse_unheld(&container, &engine)?;
        let mounts = mounts(&container, &self.project)?;
        let source = image_source(call.plan(), &container)?;
        let progress = |line: &str| call.request.watch.output(Stream::Stderr, format!("{line}\n").as_bytes());
        let image = tokio::select! {
            prepared = containers.prepare(&engine, &source, &progress) => prepared.map_err(|error| error.fault())?,
            () = call.request.cancel.fired() => return Err(ExecError::Cancelled.fault()),
        };
        containers.used(&image, jiff::Timestamp::now().into());

        let mut names: Vec<String> = wanted.env.keys().cloned().collect();
        names.extend(secrets.variables().map(|(name, _)| name));
        let session = call.request.session.to_string();
        wanted.args.extend(words(&container, &engine, &session, &names));
        wanted.args.extend(mounts);
        if !secrets.is_empty() {
            let limits = engine.limits_without_cores().into_iter();
            wanted.args.extend(limits.flat_map(|limit| ["--ulimit".to_owned(), limit]).map(Text::literal));
        }
        wanted.args.push(Text::literal(image));
        wanted.args.extend(container.command);
        for (name, value) in &containers.env {
            wanted.env.entry(name.clone()).or_insert_with(|| Text::literal(value));
        }
        Ok(Isolation::Trusted)
    }
}

/// With a network any host can be reached, which the two upper levels promise not to be so.
fn refuse_open(container: &ContainerCall, level: Isolation) -> Result<(), Fault> {
    if level < Isolation::Sandboxed || container.network == "none" {
        return Ok(());
    }
    let why = "a container with a network reaches every host; only `network: none` is held".to_owned();
    let fault = ExecError::SandboxUnavailable { level, why }.fault();
    Err(fault.with_hint(
        "set `network: none` in the tool's `config`; a container with a network runs at `standard`",
    ))
}

/// A limit that is asked for and not enforced is no limit.
fn refuse_unheld(container: &ContainerCall, engine: &Engine) -> Result<(), Fault> {
    let asked = [
        ("`memory`", container.memory.is_some()),
        ("`cpu`", container.cpu.is_some()),
        ("`pids`", container.pids.is_some()),
    ];
    let limits: Vec<&str> =
        asked.into_iter().filter(|(_, is_asked)| *is_asked).map(|(name, _)| name).collect();
    if limits.is_empty() || engine.holds_limits() {
        return Ok(());
    }
    let (engine, limits) = (engine.kind.as_str(), limits.join(", "));
    Err(ContainerError::LimitsNotHeld { engine, limits }.fault())
}

/// Where the image comes from. A name and a build together: it is built.
pub(crate) fn image_source(plan: &Plan, container: &ContainerCall) -> Result<ImageSource, Fault> {
    let invalid = |message: &str| Fault::new(ErrorKind::InvalidManifest, message);
    if let Some(build) = &container.build {
        let leaf = plan.tools().first().ok_or_else(|| invalid("the chain is empty"))?;
        return Ok(ImageSource::Built {
            package: Package { link: 0, files: leaf.files.clone(), form: form(leaf) },
            context: build.context.clone(),
            dockerfile: build.dockerfile.clone(),
        });
    }
    let image = container.image.clone().ok_or_else(|| invalid("the tool names no `image` and no `build`"))?;
    if image.starts_with('-') {
        return Err(invalid(&format!("`{image}` cannot be an image: it would be read as an option")));
    }
    Ok(ImageSource::Named { image, may_pull: container.may_pull })
}

/// The helper's words up to the mounts: client, call, and everything that holds the container.
fn words(container: &ContainerCall, engine: &Engine, session: &str, names: &[String]) -> Vec<Text> {
    let mut words: Vec<String> = vec![engine.program.to_string_lossy().into_owned(), session.to_owned()];
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    add("--network", container.network.clone());
    add("--cap-drop", "ALL".into());
    add("--security-opt", "no-new-privileges".into());
    if let Some(memory) = &container.memory {
        add("--memory", memory.clone());
        // Without swap of its own: else the limit only slows it down.
        add("--memory-swap", memory.clone());
    }
    container.cpu.iter().for_each(|cpu| add("--cpus", cpu.to_string()));
    // Nobody needs more by accident.
    let pids = container.pids.or_else(|| engine.holds_limits().then_some(PROCESSES));
    if let Some(pids) = pids {
        add("--pids-limit", pids.to_string());
    }
    container.user.iter().for_each(|user| add("--user", user.clone()));
    container.workdir.iter().for_each(|folder| add("--workdir", folder.clone()));
    // By name only: a value may be a secret, and arguments can be read by everybody.
    for name in names {
        add("--env", name.clone());
    }
    if container.read_only {
        add("--tmpfs", "/tmp:mode=1777".into());
        words.push("--read-only".into());
    }
    words.into_iter().map(Text::literal).collect()
}

fn mounts(container: &ContainerCall, project: &Path) -> Result<Vec<Text>, Fault> {
    let mut words = Vec::new();
    for volume in &container.volumes {
        words.extend([Text::literal("--mount"), mount(volume, project)?]);
    }
    Ok(words)
}

fn mount(volume: &Volume, project: &Path) -> Result<Text, Fault> {
    let host = host_path(&volume.host, project)?;
    let mut pieces = vec![Piece::Literal("type=bind,source=".into())];
    pieces.extend(host.0.iter().cloned());
    pieces.push(Piece::Literal(",target=".into()));
    pieces.extend(volume.container.0.iter().cloned());
    // A value with a comma would become another option of the mount.
    let parts = host.0.iter().chain(&volume.container.0);
    let is_odd = |piece: &Piece| {
        let text = match piece {
            Piece::Literal(text) => text.as_str().into(),
            Piece::Project => project.to_string_lossy(),
            Piece::File { .. } | Piece::Folder { .. } | Piece::Kiwi => return false,
        };
        text.contains([',', '"', '\n'])
    };
    if parts.into_iter().any(is_odd) {
        let message = format!("`{}` cannot be a volume: commas and quotes are not possible", volume.host);
        return Err(Fault::new(ErrorKind::InvalidParams, message));
    }
    if !volume.is_writable {
        pieces.push(Piece::Literal(",readonly".into()));
    }
    Ok(Text(pieces))
}

/// Where a volume lies, as an engine wants to have it: from the root on, and there.
fn host_path(host: &Text, project: &Path) -> Result<Text, Fault> {
    // A file of the tool's own is put in place when the tool starts.
    let Ok(path) = in_project(host, project, str::to_owned) else { return Ok(host.clone()) };
    let path = project.join(path);
    if path.try_exists().is_ok_and(|is_there| !is_there) {
        let path = path.display();
        return Err(Fault::new(
            ErrorKind::MissingRequirement,
            format!("`{path}`, which `volumes` names, is not here"),
        )
        .with_hint(format!("`mkdir -p {path}` makes a folder of it"))
        .with_details(json!({"volume": path.to_string()})));
    }
    Ok(Text::literal(path.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_with_a_network_is_told_to_do_without() {
        let with = |network: &str| ContainerCall { network: network.into(), ..ContainerCall::default() };
        for level in [Isolation::Sandboxed, Isolation::Restricted] {
            let fault = refuse_open(&with("bridge"), level).unwrap_err();
            assert_eq!(fault.kind, ErrorKind::SandboxUnavailable);
            let hint = fault.hint.unwrap();
            assert!(hint.contains("`network: none`") && !hint.contains("bubblewrap"), "{hint}");
            assert!(refuse_open(&with("none"), level).is_ok());
        }
        assert!(refuse_open(&with("bridge"), Isolation::Standard).is_ok());
    }
}
