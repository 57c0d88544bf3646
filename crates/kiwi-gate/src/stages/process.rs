//! Starting a program: the symbolic call gets its interpreter, its runner and its verified files.

use kiwi_chain::{Form, ProcessCall, Tool};
use kiwi_exec::{
    Confinement, Environment, ExecError, Exit, Finished, Limits, Network, Package, PackageForm, Process,
    Progress, Stream, telling,
};
use kiwi_model::lockfile::LockMode;
use kiwi_model::{ErrorKind, Explain, Fault, Isolation, Language, Piece, Text};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::dispatch::{Dispatch, failed, refused};
use crate::agreement::tell;
use crate::confine;
use crate::permission::needs::folder;
use crate::permission::shell::Setting;
use crate::prepare::Interpreter;
use crate::redact::{Redacting, Redactor};
use crate::stage::{Call, Reply};
use crate::vault::Secrets;

impl Dispatch {
    pub(super) async fn process(
        &self,
        call: &Call<'_>,
        mut wanted: ProcessCall,
        secrets: &Secrets,
        redactor: &Redactor,
    ) -> Reply {
        let isolation = call.isolation();
        let (warnings, confinement) = match self.walled(call, &mut wanted, isolation).await {
            Ok(prepared) => prepared,
            Err(fault) => return refused(fault),
        };
        let held = match self.contain(call, &mut wanted, secrets, isolation).await {
            Ok(held) => held,
            Err(fault) => return refused(fault),
        };
        let runner = call.plan().merged().ok().and_then(|merged| merged.runner.clone());
        // A runner reads standard input for its tool.
        let unheard = if runner.is_some() { Vec::new() } else { std::mem::take(&mut wanted.too_long) };
        put_runner(&mut wanted, runner, call.plan().tools().first());
        let mut env: BTreeMap<String, Text> = self
            .host
            .base_environment(isolation == Isolation::Trusted)
            .into_iter()
            .map(|(name, value)| (name, Text::literal(value)))
            .collect();
        env.extend(std::mem::take(&mut wanted.env));
        env.extend(secrets.variables().map(|(name, secret)| (name, Text::literal(secret.expose()))));
        put_modules_first(&mut env, call.plan().tools().first());
        let cwd = match self.working_folder(&wanted) {
            Ok(cwd) => cwd,
            Err(fault) => return refused(fault),
        };
        let packages = packages(&wanted, &env, call);
        // At `trusted` none is held, and so none can have ended it.
        let limits = if held == Isolation::Trusted { Limits::default() } else { confinement.limits };
        let process = Process {
            program: wanted.program,
            args: wanted.args,
            env: env.into_iter().collect(),
            cwd,
            stdin: wanted.stdin.to_string().into_bytes(),
            timeout: self.timeout(wanted.timeout),
            output_cap: self.output_cap(wanted.output),
            isolation: held,
            confinement,
            has_secrets: !secrets.is_empty(),
            packages,
            search_path: self.host.search_path().to_owned(),
            project: self.project.clone(),
        };
        let (cancel, language) = (call.request.cancel.clone(), wanted.environment);
        let watch = Redacting::new(redactor.clone(), Arc::clone(&call.request.watch));
        let finished = self.launcher.run(process, &watch, cancel.fired()).await;
        watch.finish();
        match finished {
            Ok(finished) => {
                let hint = limits
                    .ended(finished.exit)
                    .or_else(|| explain_missing_module(language, &finished.stderr))
                    .or_else(|| explain_unheard(&unheard));
                let reply = self.signed(call, Reply { warnings, ..reply(&finished, hint) });
                self.published(call, reply).await
            }
            Err(error) => Reply { warnings, ..failed(&error) },
        }
    }

    /// Everything that has to be there before the start: packages, and what the sandbox opens.
    async fn walled(
        &self,
        call: &Call<'_>,
        wanted: &mut ProcessCall,
        isolation: Isolation,
    ) -> Result<(Vec<String>, Confinement), Fault> {
        let (warnings, own) = self.prepare(call, wanted).await?;
        let kiwi_chain::Limits { cpu, memory, pids, files } = wanted.limits;
        let mut confinement =
            Confinement { limits: Limits { cpu, memory, pids, files }, ..Confinement::default() };
        if isolation >= Isolation::Sandboxed {
            let cwd = folder(wanted.cwd.as_ref(), &self.project);
            let setting = Setting { search_path: self.host.search_path(), cwd: &cwd, project: &self.project };
            let opened = confine::open(&wanted.needs, &setting, &call.context())?;
            confinement.read = opened.read.into_iter().chain(own).collect();
            confinement.write = opened.write;
            confinement.entries = opened.entries;
            confinement.hidden = opened.hidden;
            confinement.links = opened.links;
            confinement.network = Network { hosts: wanted.needs.hosts.clone() };
            confinement.backend = self.preparer.walls();
        }
        Ok((warnings, confinement))
    }

    /// Language packages live in an environment of their own, which takes the place of the plain interpreter. What was
    /// agreed about them holds; where it cannot and need not, the warnings say so. Folders it must read come beside them.
    async fn prepare(
        &self,
        call: &Call<'_>,
        wanted: &mut ProcessCall,
    ) -> Result<(Vec<String>, Vec<PathBuf>), Fault> {
        let (Some(leaf), Some(language), Some(program)) =
            (call.plan().tools().first(), wanted.environment, wanted.program.as_literal())
        else {
            return Ok((Vec::new(), Vec::new()));
        };
        let progress = |line: &str| call.request.watch.output(Stream::Stderr, format!("{line}\n").as_bytes());
        let prepared = async {
            let interpreter = self.preparer.interpreter(leaf, language, &program).await?;
            let environment = self.environment(call, &interpreter, &progress).await?;
            Ok::<_, Fault>((interpreter, environment))
        };
        let (interpreter, (environment, warnings)) = tokio::select! {
            prepared = prepared => prepared?,
            () = call.request.cancel.fired() => return Err(ExecError::Cancelled.fault()),
        };
        let program = environment.as_ref().map_or(&interpreter.path, |environment| &environment.program);
        wanted.program = Text::literal(program.to_string_lossy());
        let modules = environment.and_then(|environment| environment.modules);
        if let Some(modules) = &modules {
            add_node_path(&mut wanted.env, modules);
        }
        Ok((warnings, modules.into_iter().collect()))
    }

    async fn environment(
        &self,
        call: &Call<'_>,
        interpreter: &Interpreter<'_>,
        progress: Progress<'_>,
    ) -> Result<(Option<Environment>, Vec<String>), Fault> {
        let mut warnings = Vec::new();
        if let Some(agreement) = &call.planned.lock {
            match self.preparer.agreed(interpreter, agreement, progress).await {
                Ok(environment) => return Ok((environment, warnings)),
                Err(objection) if call.planned.mode == LockMode::Strict => return Err(objection),
                Err(objection) => warnings.push(tell(&objection)),
            }
        }
        Ok((self.preparer.free(interpreter, progress).await?, warnings))
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

/// Shared modules come first on the search path: what a shell sources by its name alone is looked for there.
fn put_modules_first(env: &mut BTreeMap<String, Text>, leaf: Option<&Arc<Tool>>) {
    let has_modules = leaf.is_some_and(|leaf| !leaf.manifest.lib_imports.is_empty());
    if let Some(path) = env.get_mut("PATH").filter(|_| has_modules) {
        path.0.splice(0..0, [Piece::Folder { link: 0 }, Piece::Literal("/lib:".into())]);
    }
}

/// Node finds the packages through `NODE_PATH`; what the tool itself put there stays in front.
fn add_node_path(env: &mut BTreeMap<String, Text>, modules: &Path) {
    let modules = modules.to_string_lossy();
    match env.get_mut("NODE_PATH") {
        Some(own) => own.0.push(Piece::Literal(format!(":{modules}"))),
        None => {
            env.insert("NODE_PATH".into(), Text::literal(modules));
        }
    }
}

/// A runtime's runner goes in front of the entrypoint and is told, behind it, the path that the file should believe in.
fn put_runner(wanted: &mut ProcessCall, runner: Option<(usize, String)>, leaf: Option<&Arc<Tool>>) {
    let (Some((link, path)), Some(at), Some(leaf)) = (runner, wanted.entrypoint_at, leaf) else { return };
    let Some(entrypoint) = wanted.args.get(at).cloned() else { return };
    let shown = match form(leaf) {
        PackageForm::OneFile => Text::literal(leaf.path.clone()),
        PackageForm::Folder => entrypoint.clone(),
    };
    wanted.args.splice(at..=at, [Text::file(link, path), entrypoint, shown]);
}

/// One file runs from sealed memory; as soon as there are more, they must lie beside each other.
pub(crate) fn form(tool: &Tool) -> PackageForm {
    match tool.form {
        Form::OneFile if tool.files.len() == 1 => PackageForm::OneFile,
        Form::OneFile | Form::Folder | Form::Upstream => PackageForm::Folder,
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
        let tool = call.plan().tools().get(link)?;
        Some(Package { link, files: tool.files.clone(), form: form(tool) })
    };
    mentioned.into_iter().filter_map(package).collect()
}

/// Where parameters are that have no variable: a script that knows only variables fails without them.
fn explain_unheard(names: &[String]) -> Option<String> {
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", name.escape_debug())).collect();
    (!names.is_empty()).then(|| {
        format!("standard input alone has {}: a value over 4 KiB gets no variable", names.join(", "))
    })
}

/// What came of it; the hint is for a failure.
/// How a script gets what it imported in vain. The name of a module need not be that of its package.
fn explain_missing_module(language: Option<Language>, stderr: &[u8]) -> Option<String> {
    let stderr = String::from_utf8_lossy(stderr);
    let name = match language? {
        Language::Python => {
            let module = quoted(&stderr, "ModuleNotFoundError: No module named '")?;
            module.split('.').next()?
        }
        Language::Node => {
            let module = quoted(&stderr, "Error: Cannot find module '")
                .or_else(|| quoted(&stderr, "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '"))
                .filter(|module| !module.starts_with(['.', '/']))?;
            let parts = if module.starts_with('@') { 2 } else { 1 };
            module.match_indices('/').nth(parts - 1).map_or(module, |(end, _)| module.split_at(end).0)
        }
    };
    let name = name.escape_debug();
    Some(format!(
        "name the package that has `{name}` in the tool's `requires`, or your own module in `lib_imports`"
    ))
}

/// What stands in quotes behind the beginning of the last line that begins so.
fn quoted<'a>(text: &'a str, beginning: &str) -> Option<&'a str> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix(beginning))?;
    line.split('\'').next().filter(|name| !name.is_empty())
}

fn reply(finished: &Finished, hint: Option<String>) -> Reply {
    let stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
    let failure = (!finished.exit.is_success()).then(|| {
        let last = last_words(&stderr).map(|words| format!(": {words}")).unwrap_or_default();
        let details = match finished.exit {
            Exit::Code(code) => json!({"exit_code": code}),
            Exit::Signal(signal) => json!({"signal": signal}),
        };
        let fault = Fault::new(ErrorKind::ToolFailed, format!("the tool ended with {}{last}", finished.exit))
            .with_details(details);
        hint.into_iter().fold(fault, Fault::with_hint)
    });
    Reply { result: result_of(&finished.stdout), stderr, failure, ..Reply::default() }
}

/// The last line a tool wrote that says something: neither where to read on nor a frame of a stack trace.
fn last_words(stderr: &str) -> Option<&str> {
    stderr.lines().rev().filter_map(telling).find(|line| !line.starts_with("at "))
}

/// What a tool printed: a JSON value if it is exactly one, else text.
pub(super) fn result_of(stdout: &[u8]) -> Value {
    if stdout.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(stdout)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(stdout).into_owned()))
}
