//! From a document to a manifest.

use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::advice;
use super::fields::ManifestFile;
use super::{Executor, Isolation, Manifest, ManifestError, Problem};
use crate::slip::meant;
use crate::yaml::{Document, Place};
use crate::{ToolId, Version, VersionReq};

/// Something worth saying that does not stop a tool.
pub type Warning = String;

/// Where a document came from and what its place already says about the tool.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file, as a person should see it.
    pub file: String,
    /// The id its file or folder name gives.
    pub id: ToolId,
    /// For a script file without a manifest: its file name. Then version and type may be left out.
    pub script: Option<String>,
}

/// Runtime and language of the accepted aliases.
const ALIASES: [(&str, &str); 4] = [
    ("python", "python_runtime"),
    ("bash", "bash_runtime"),
    ("node", "node_runtime"),
    ("docker", "docker_runtime"),
];

impl Manifest {
    /// Unifies the two spellings: what is returned is what gets hashed.
    pub fn hoist(document: &Document, file: &str) -> Result<Value, ManifestError> {
        let Value::Object(top) = &document.value else {
            return Err(ManifestError::one(
                file,
                "a manifest must be a map of keys",
                None,
                document.place(""),
            ));
        };
        let mut top = top.clone();
        match top.remove("manifest") {
            None => {}
            Some(Value::Object(inner)) => {
                for (key, value) in inner {
                    let place = document.place(&pointer("/manifest", &key));
                    if key == "manifest" {
                        return Err(ManifestError::one(
                            file,
                            "`manifest` cannot hold another `manifest`",
                            None,
                            place,
                        ));
                    }
                    match top.get(&key) {
                        Some(other) if *other != value => {
                            let message =
                                format!("`{key}` is given twice, here and at the top, with different values");
                            return Err(ManifestError::one(
                                file,
                                message,
                                Some("keep one of the two".into()),
                                place,
                            ));
                        }
                        _ => {
                            top.insert(key, value);
                        }
                    }
                }
            }
            Some(_) => {
                return Err(ManifestError::one(
                    file,
                    "`manifest` must be a map of keys",
                    None,
                    document.place("/manifest"),
                ));
            }
        }
        Ok(Value::Object(top))
    }

    /// Reads a manifest out of a document. All problems are reported, with their places.
    pub fn read(document: &Document, source: &Source) -> Result<(Value, Self, Vec<Warning>), ManifestError> {
        let hashed = Self::hoist(document, &source.file)?;
        let mut reader = Reader { document, source, problems: Vec::new(), warnings: Vec::new() };
        let fields = reader.fields(&hashed)?;
        let manifest = reader.manifest(fields, &hashed);
        match manifest {
            Some(manifest) if reader.problems.is_empty() => Ok((hashed, manifest, reader.warnings)),
            _ => Err(ManifestError { file: source.file.clone(), problems: reader.problems }),
        }
    }
}

struct Reader<'a> {
    document: &'a Document,
    source: &'a Source,
    problems: Vec<Problem>,
    warnings: Vec<Warning>,
}

impl Reader<'_> {
    /// The typed keys. A wrong type is reported where it stands.
    fn fields(&mut self, hashed: &Value) -> Result<ManifestFile, ManifestError> {
        if let Some(unknown) = hashed.as_object().and_then(advice::unknown_keys) {
            self.warn(&unknown);
        }
        // Only an error asks where it stands, and keeping track of that takes longer than reading.
        ManifestFile::deserialize(hashed).or_else(|_| self.traced(hashed))
    }

    /// The same, keeping track of the way to what is wrong.
    fn traced(&self, hashed: &Value) -> Result<ManifestFile, ManifestError> {
        serde_path_to_error::deserialize::<_, ManifestFile>(hashed).map_err(|error| {
            let path: String = error
                .path()
                .iter()
                .filter_map(|segment| match segment {
                    serde_path_to_error::Segment::Seq { index } => Some(format!("/{index}")),
                    serde_path_to_error::Segment::Map { key } => Some(pointer("", key)),
                    _ => None,
                })
                .collect();
            let name = path.trim_start_matches('/').replace('/', ".");
            let inner = error.into_inner().to_string();
            let hint = advice::of_type(hashed, &path, &inner);
            let message = if name.is_empty() { inner } else { format!("`{name}`: {inner}") };
            ManifestError::one(self.source.file.clone(), message, hint, self.place(&path))
        })
    }

    fn place(&self, path: &str) -> Place {
        let key = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        let hoisted = self.document.value.get("manifest").is_some_and(|inner| inner.get(key).is_some())
            && self.document.value.get(key).is_none();
        self.document.place(&if hoisted { format!("/manifest{path}") } else { path.to_owned() })
    }

    fn warn(&mut self, what: &str) {
        self.warnings.push(format!("{}: {what}", self.source.file));
    }

    fn problem(&mut self, path: &str, message: impl Into<String>, hint: Option<&str>) {
        let place = self.place(path);
        self.problems.push(Problem { message: message.into(), hint: hint.map(str::to_owned), place });
    }

    fn manifest(&mut self, mut fields: ManifestFile, hashed: &Value) -> Option<Manifest> {
        let tool_id = self.id(fields.tool_id.as_deref());
        let version = self.version(fields.version.as_deref());
        let (tool_type, alias) = self.tool_type(fields.tool_type.as_deref())?;
        let form = self.executor_form(&fields);
        let script = self.source.script.clone();
        let entrypoint = fields.entrypoint.clone().or(form.entrypoint).or(script);
        let language = fields.language.clone().or_else(|| language_of(alias, entrypoint.as_deref()));
        let executor = self.executor(form.executor, &tool_type, alias, language.as_deref());
        self.check_entrypoint(entrypoint.as_deref());
        let mut config = form.config;
        config.extend(fields.config.take().unwrap_or_default());
        self.check_config(&config);
        let isolation = self.isolation(fields.isolation, config.get("isolation"));
        for (child, bounds) in fields.child_constraints.iter().flatten() {
            for bound in [&bounds.min_version, &bounds.max_version].into_iter().flatten() {
                // No child keeps to it: the chain of each is judged, and invalid.
                if Version::parse(bound).is_err() {
                    self.warn(&format!("`child_constraints.{child}`: `{bound}` is not a semantic version"));
                }
            }
        }
        let mut requires_commands = fields.requires_commands.take().unwrap_or_default();
        requires_commands.extend(form.commands);
        let mut requires_env = fields.requires_env.take().unwrap_or_default();
        requires_env.extend(form.environment);
        let requires = fields.requires.take().or(form.requires).unwrap_or_default();
        for slip in fields.parameters.iter().flat_map(advice::parameters) {
            self.warn(&slip);
        }
        for (index, name) in fields.parameters.iter().flat_map(super::ParameterSpec::repeated) {
            self.problem(
                &format!("/parameters/{index}"),
                format!("the parameter `{name}` is given twice"),
                Some("give each parameter once"),
            );
        }
        let parameters = fields.parameters.take().map(super::ParameterSpec::into_schema);

        let mut normalised = hashed.as_object().cloned().unwrap_or_default();
        let mut fill = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                normalised.insert(key.to_owned(), value);
            }
        };
        fill("tool_type", Some(tool_type.clone().into()));
        fill("executor", Some(executor.as_ref().map_or(Value::Null, |executor| executor.id.as_str().into())));
        fill("entrypoint", entrypoint.clone().map(Value::from));
        fill("language", language.map(Value::from));
        fill("requires", Some(requires.clone().into()));
        fill("config", Some(Value::Object(config.clone())));
        fill("parameters", parameters.clone());

        let manifest = Manifest {
            tool_id: tool_id?,
            version: version?,
            tool_type,
            executor,
            category: fields.category,
            title: fields.title,
            description: fields.description,
            mutates_state: fields.mutates_state.unwrap_or(false),
            exclusive: fields.exclusive.unwrap_or(false),
            entrypoint,
            requires,
            allow_source_builds: fields.allow_source_builds.unwrap_or(false),
            requires_commands,
            requires_env,
            requires_secret: fields.requires_secret.take().unwrap_or_default(),
            required_scope: fields.required_scope.take(),
            lib_imports: fields.lib_imports.unwrap_or_default(),
            parameters,
            inputs: fields.inputs,
            outputs: fields.outputs,
            config,
            config_schema: fields.config_schema,
            child_schemas: fields.validation.and_then(|validation| validation.child_schemas),
            child_constraints: fields.child_constraints.unwrap_or_default(),
            permissions: fields.permissions.unwrap_or_default(),
            isolation,
            entrypoint_is_file: fields.entrypoint_is_file.unwrap_or(false),
            runner: fields.runner,
            tags: fields.tags.unwrap_or_default(),
            normalised: Value::Object(normalised),
        };
        Some(manifest)
    }

    /// How tightly it wants to be held, as it says at the top or in `config`. Of the two the tighter counts.
    fn isolation(&mut self, given: Option<Isolation>, configured: Option<&Value>) -> Option<Isolation> {
        let Some(configured) = configured else { return given };
        let Ok(level) = Isolation::deserialize(configured) else {
            let hint = "write `trusted`, `standard`, `sandboxed` or `restricted`";
            self.problem("/config/isolation", format!("{configured} is no level of isolation"), Some(hint));
            return given;
        };
        given.max(Some(level))
    }

    fn id(&mut self, given: Option<&str>) -> Option<ToolId> {
        match given {
            None if self.source.script.is_some() => Some(self.source.id.clone()),
            None => {
                self.problem(
                    "",
                    "`tool_id` is missing",
                    Some("add `tool_id:` with the name of the file or folder"),
                );
                None
            }
            Some(text) if text == self.source.id.as_str() => Some(self.source.id.clone()),
            Some(text) => match ToolId::parse(text) {
                Ok(id) => {
                    let message = format!("`tool_id` is `{id}` but the file says `{}`", self.source.id);
                    self.problem("/tool_id", message, Some("rename the file or folder, or the tool"));
                    None
                }
                Err(error) => {
                    self.problem("/tool_id", error.to_string(), None);
                    None
                }
            },
        }
    }

    fn version(&mut self, given: Option<&str>) -> Option<Version> {
        match given {
            None if self.source.script.is_some() => {
                self.warnings.push(format!("{} gives no version; 0.0.0 is assumed", self.source.file));
                Some(Version::new(0, 0, 0))
            }
            None => {
                self.problem("", "`version` is missing", Some("add `version: \"1.0.0\"`"));
                None
            }
            Some(text) => Version::parse(text)
                .map_err(|error| {
                    self.problem(
                        "/version",
                        format!("`{text}` is not a semantic version: {error}"),
                        Some("write three numbers, such as \"1.0.0\""),
                    );
                })
                .ok(),
        }
    }

    /// The type with its alias resolved, and the runtime the alias implies.
    fn tool_type(&mut self, given: Option<&str>) -> Option<(String, Option<&'static str>)> {
        let written = match given {
            Some(written) if !written.is_empty() => written,
            None if self.source.script.is_some() => "script",
            _ => {
                self.problem(
                    "",
                    "`tool_type` is missing",
                    Some("add `tool_type: script` (or runtime, api, …)"),
                );
                return None;
            }
        };
        match ALIASES.iter().find(|(alias, _)| *alias == written) {
            Some((_, runtime)) => Some(("script".into(), Some(runtime))),
            None => Some((written.to_owned(), None)),
        }
    }

    fn executor(
        &mut self,
        written: Written,
        tool_type: &str,
        alias: Option<&str>,
        language: Option<&str>,
    ) -> Option<Executor> {
        if tool_type == "primitive" {
            if matches!(written, Written::Named(_)) {
                self.problem("/executor", "a primitive has no executor", None);
            }
            return None;
        }
        let implied = alias.or(match tool_type {
            "api" => Some("api_runtime"),
            "mcp" => Some("mcp_stdio_runtime"),
            "script" => ALIASES.iter().find(|(name, _)| Some(*name) == language).map(|(_, runtime)| *runtime),
            _ => None,
        });
        match (written, implied) {
            (Written::Named(executor), _) => Some(executor),
            (Written::Broken, _) => None,
            (Written::Null, _) => {
                self.problem(
                    "/executor",
                    "only a primitive may have no executor",
                    Some("name the runtime that runs this tool"),
                );
                None
            }
            (Written::Absent, Some(runtime)) => {
                ToolId::parse(runtime).ok().map(|id| Executor { id, requirement: None })
            }
            (Written::Absent, None) => {
                let types = ALIASES.map(|(alias, _)| alias).into_iter().chain(["api", "mcp"]);
                let hint = match meant(tool_type, types) {
                    Some(known) => format!("did you mean `tool_type: {known}`?"),
                    None => "name the runtime that runs this tool, such as `executor: python_runtime`".into(),
                };
                self.problem("", "`executor` is missing", Some(&hint));
                None
            }
        }
    }

    /// Reads every form of `executor`: an id, `{id, version}`, or document 004's map.
    fn executor_form(&mut self, fields: &ManifestFile) -> ExecutorForm {
        let mut form = ExecutorForm::default();
        match &fields.executor {
            None => {
                // An explicit `executor: null` reads as None too; tell them apart by the document.
                let inner = self.document.value.get("manifest").and_then(|inner| inner.get("executor"));
                if self.document.value.get("executor").or(inner).is_some() {
                    form.executor = Written::Null;
                }
            }
            Some(Value::String(id)) => form.executor = self.named(id, None, "/executor"),
            Some(Value::Object(map)) => self.executor_map(map, &mut form),
            Some(_) => {
                self.problem("/executor", "`executor` must be an id or a map", None);
                form.executor = Written::Broken;
            }
        }
        form
    }

    fn executor_map(&mut self, map: &Map<String, Value>, form: &mut ExecutorForm) {
        for (key, value) in map {
            let path = pointer("/executor", key);
            match (key.as_str(), value) {
                ("id", Value::String(id)) => {
                    let version = map.get("version");
                    let version = match version {
                        None => None,
                        Some(Value::String(text)) => Some(text.as_str()),
                        Some(_) => {
                            self.problem(
                                "/executor/version",
                                "`executor.version` must be a string",
                                Some("put the value in quotes"),
                            );
                            None
                        }
                    };
                    form.executor = self.named(id, version, "/executor/id");
                }
                ("version", _) if map.contains_key("id") => {}
                ("entrypoint", Value::String(entrypoint)) => form.entrypoint = Some(entrypoint.clone()),
                ("requires", Value::Object(requires)) => {
                    form.commands = self.strings(requires.get("commands"), "/executor/requires/commands");
                    form.environment =
                        self.strings(requires.get("environment"), "/executor/requires/environment");
                }
                ("requires", list) => form.requires = Some(self.strings(Some(list), &path)),
                ("id" | "entrypoint", _) => {
                    self.problem(&path, format!("`executor.{key}` must be a string"), None);
                }
                ("endpoint", endpoint) => {
                    form.config.insert("url".into(), endpoint.clone());
                }
                (_, value) => {
                    if let Some(known) = meant(key, ["endpoint", "entrypoint", "id", "requires", "version"]) {
                        self.warn(&format!("`executor.{key}` means nothing; did you mean `{known}`?"));
                    }
                    form.config.insert(key.clone(), value.clone());
                }
            }
        }
    }

    fn named(&mut self, id: &str, version: Option<&str>, path: &str) -> Written {
        let id = match ToolId::parse(id) {
            Ok(id) => id,
            Err(error) => {
                self.problem(path, error.to_string(), None);
                return Written::Broken;
            }
        };
        match version.map(VersionReq::parse).transpose() {
            Ok(requirement) => Written::Named(Executor { id, requirement }),
            Err(error) => {
                self.problem(
                    "/executor/version",
                    format!("unreadable version requirement: {error}"),
                    Some("write it like \"^1.4\""),
                );
                Written::Broken
            }
        }
    }

    fn strings(&mut self, value: Option<&Value>, path: &str) -> Vec<String> {
        let Some(value) = value else { return Vec::new() };
        Vec::<String>::deserialize(value).unwrap_or_else(|_| {
            self.problem(path, "expected a list of strings", None);
            Vec::new()
        })
    }

    fn check_entrypoint(&mut self, entrypoint: Option<&str>) {
        let Some(entrypoint) = entrypoint else { return };
        let escapes = entrypoint.is_empty()
            || entrypoint.starts_with('/')
            || entrypoint.contains('\0')
            || entrypoint.split('/').any(|part| part == "..");
        if escapes {
            self.problem(
                "/entrypoint",
                format!("`{}` leaves the tool's folder", entrypoint.escape_debug()),
                Some("name a file of the package"),
            );
        }
    }

    fn check_config(&mut self, config: &Map<String, Value>) {
        // A parameter may give it; then the parameter's schema bounds it.
        let is_parameter = |timeout: &Value| {
            let name = timeout.as_str().and_then(|text| text.strip_prefix('{')?.strip_suffix('}'));
            name.is_some_and(|name| !name.is_empty() && !name.contains(['{', '}']))
        };
        match config.get("timeout") {
            None => {}
            Some(timeout) if is_parameter(timeout) => {}
            Some(timeout) if timeout.as_f64().is_some_and(is_timeout) => {}
            Some(timeout) => {
                self.problem(
                    "/config/timeout",
                    format!(
                        "`config.timeout` must be a positive number of seconds, up to a year, not {timeout}"
                    ),
                    None,
                );
            }
        }
    }
}

#[derive(Default)]
struct ExecutorForm {
    executor: Written,
    entrypoint: Option<String>,
    requires: Option<Vec<String>>,
    commands: Vec<String>,
    environment: Vec<String>,
    config: Map<String, Value>,
}

/// What was written as `executor`.
#[derive(Default)]
enum Written {
    #[default]
    Absent,
    Null,
    Named(Executor),
    Broken,
}

/// Whether somebody can be waited for so many seconds: some, and up to a year.
pub fn is_timeout(seconds: f64) -> bool {
    seconds > 0.0 && seconds <= 31_536_000.0
}

fn language_of(alias: Option<&str>, entrypoint: Option<&str>) -> Option<String> {
    let by_alias = ALIASES
        .iter()
        .find(|(_, runtime)| Some(*runtime) == alias)
        .map(|(name, _)| *name)
        .filter(|name| *name != "docker");
    let by_extension = || match entrypoint?.rsplit_once('.')?.1 {
        "py" => Some("python"),
        "sh" => Some("bash"),
        "js" | "mjs" | "ts" => Some("node"),
        _ => None,
    };
    by_alias.or_else(by_extension).map(str::to_owned)
}

fn pointer(parent: &str, key: &str) -> String {
    format!("{parent}/{}", key.replace('~', "~0").replace('/', "~1"))
}
