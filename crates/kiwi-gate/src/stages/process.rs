//! Starting a program: the symbolic call gets its interpreter, its runner and its verified files.

use kiwi_chain::{Form, ProcessCall, Tool};
use kiwi_exec::{
    ExecError, Exit, Finished, Package, PackageForm, Process, ProgramSearch, PythonWish, Stream,
};
use kiwi_model::{ErrorKind, Explain, Fault, Isolation, Piece, Text};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::dispatch::{Dispatch, failed, refused};
use crate::stage::{Call, Reply};

impl Dispatch {
    pub(super) async fn process(&self, call: &Call<'_>, mut wanted: ProcessCall) -> Reply {
        let isolation = call.plan.isolation().max(call.request.isolation.unwrap_or(Isolation::Trusted));
        if let Err(fault) = self.prepare_environment(call, &mut wanted).await {
            return refused(fault);
        }
        let runner = call.plan.merged().ok().and_then(|merged| merged.runner.clone());
        put_runner(&mut wanted, runner, call.plan.tools().first());
        let mut env: BTreeMap<String, Text> = self
            .host
            .base_environment(isolation == Isolation::Trusted)
            .into_iter()
            .map(|(name, value)| (name, Text::literal(value)))
            .collect();
        env.extend(std::mem::take(&mut wanted.env));
        let cwd = match self.working_folder(&wanted) {
            Ok(cwd) => cwd,
            Err(fault) => return refused(fault),
        };
        let packages = packages(&wanted, &env, call);
        let process = Process {
            program: wanted.program,
            args: wanted.args,
            env: env.into_iter().collect(),
            cwd,
            stdin: wanted.stdin.to_string().into_bytes(),
            timeout: self.timeout(wanted.timeout),
            output_cap: self.output_cap(wanted.output),
            isolation,
            packages,
            search_path: self.host.search_path().to_owned(),
            project: self.project.clone(),
        };
        let cancel = call.request.cancel.clone();
        match self.launcher.run(process, call.request.watch.as_ref(), cancel.fired()).await {
            Ok(finished) => reply(&finished),
            Err(error) => failed(&error),
        }
    }

    /// Language packages live in an environment of their own; its interpreter takes the place of the plain one.
    async fn prepare_environment(&self, call: &Call<'_>, wanted: &mut ProcessCall) -> Result<(), Fault> {
        let (Some(leaf), Some(name)) = (call.plan.tools().first(), wanted.program.as_literal()) else {
            return Ok(());
        };
        if !wanted.wants_environment {
            return Ok(());
        }
        let name = self.config.python_interpreter(leaf.space).map_or(name, str::to_owned);
        let search = ProgramSearch {
            path: self.host.search_path(),
            cwd: &self.project,
            versions: &self.host.environment,
        };
        let interpreter = search.find(&name).ok_or_else(|| search.explain_missing(&name).fault())?;
        wanted.program = Text::literal(interpreter.to_string_lossy());
        if leaf.manifest.requires.is_empty() {
            return Ok(());
        }
        let wish = PythonWish {
            interpreter,
            requires: leaf.manifest.requires.clone(),
            allow_source_builds: leaf.manifest.allow_source_builds,
            builder_env: self.host.builder_environment(),
        };
        let progress = |line: &str| call.request.watch.output(Stream::Stderr, format!("{line}\n").as_bytes());
        let environment = tokio::select! {
            environment = self.environments.prepare(&wish, &progress) => environment.map_err(|error| error.fault())?,
            () = call.request.cancel.fired() => return Err(ExecError::Cancelled.fault()),
        };
        wanted.program = Text::literal(environment.python.to_string_lossy());
        Ok(())
    }

    fn working_folder(&self, wanted: &ProcessCall) -> Result<PathBuf, Fault> {
        let Some(cwd) = &wanted.cwd else { return Ok(self.project.clone()) };
        let text = cwd.resolve(|piece| match piece {
            Piece::Project => Ok(self.project.to_string_lossy().into_owned()),
            _ => Err(Fault::new(
                ErrorKind::InvalidManifest,
                "`config.cwd` may name the project folder, not the tool's",
            )),
        })?;
        Ok(self.project.join(text))
    }
}

/// A runtime's runner goes in front of the entrypoint and is told, behind it, the path that the file should believe in.
fn put_runner(
    wanted: &mut ProcessCall,
    runner: Option<(usize, String)>,
    leaf: Option<&std::sync::Arc<Tool>>,
) {
    let (Some((link, path)), Some(at), Some(leaf)) = (runner, wanted.entrypoint_at, leaf) else { return };
    let Some(entrypoint) = wanted.args.get(at).cloned() else { return };
    let shown = match form(leaf) {
        PackageForm::OneFile => Text::literal(leaf.path.clone()),
        PackageForm::Folder => entrypoint.clone(),
    };
    wanted.args.splice(at..=at, [Text::file(link, path), entrypoint, shown]);
}

/// One file runs from sealed memory; as soon as there are more, they must lie beside each other.
fn form(tool: &Tool) -> PackageForm {
    match tool.form {
        Form::OneFile if tool.files.len() == 1 => PackageForm::OneFile,
        Form::OneFile | Form::Folder => PackageForm::Folder,
    }
}

/// The files of every link that the call mentions.
fn packages(wanted: &ProcessCall, env: &BTreeMap<String, Text>, call: &Call<'_>) -> Vec<Package> {
    let texts = wanted.args.iter().chain([&wanted.program]).chain(env.values());
    let mentioned: BTreeSet<usize> = texts
        .flat_map(|text| &text.0)
        .filter_map(|piece| match piece {
            Piece::File { link, .. } | Piece::Folder { link } => Some(*link),
            Piece::Literal(_) | Piece::Project | Piece::Kiwi => None,
        })
        .collect();
    let package = |link: usize| {
        let tool = call.plan.tools().get(link)?;
        Some(Package { link, files: tool.files.clone(), form: form(tool) })
    };
    mentioned.into_iter().filter_map(package).collect()
}

fn reply(finished: &Finished) -> Reply {
    let stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
    let failure = (!finished.exit.is_success()).then(|| {
        let last = last_words(&stderr).map(|words| format!(": {words}")).unwrap_or_default();
        let details = match finished.exit {
            Exit::Code(code) => json!({"exit_code": code}),
            Exit::Signal(signal) => json!({"signal": signal}),
        };
        Fault::new(ErrorKind::ToolFailed, format!("the tool ended with {}{last}", finished.exit))
            .with_details(details)
    });
    Reply { result: result_of(&finished.stdout), stderr, failure, ..Reply::default() }
}

/// The last line a tool wrote that says something: neither empty nor a frame of a stack trace.
fn last_words(stderr: &str) -> Option<&str> {
    stderr.lines().rev().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("at "))
}

/// What a tool printed: a JSON value if it is exactly one, else text.
pub(super) fn result_of(stdout: &[u8]) -> Value {
    if stdout.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(stdout)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(stdout).into_owned()))
}
