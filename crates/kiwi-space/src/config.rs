//! `config/kiwi.toml`: the user's says what is allowed, the project's may only tighten it.

use kiwi_model::Space;
use kiwi_model::lockfile::LockMode;
use schemars::JsonSchema;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::SpaceError;
use crate::root::{Opened, Root};

const FILE: &str = "config/kiwi.toml";
const MAX_BYTES: u64 = 1 << 20;
const DEFAULT_TIMEOUT: u64 = 300;
const DEFAULT_OUTPUT: u64 = 8 << 20;
/// A year: more is a mistake.
const MAX_TIMEOUT: u64 = 31_536_000;
const MAX_OUTPUT: u64 = 1 << 40;

/// How chains are validated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A parent without schemas is an error.
    #[default]
    Strict,
    /// It is a warning, for migration. Only the user's configuration can say so.
    Lenient,
}

/// Whether the key of the credential store may be in the desktop's keyring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyringUse {
    /// Where there is one.
    #[default]
    Auto,
    /// Never: it is in a file beside the store.
    Off,
}

/// A configuration file as it may be written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
#[schemars(title = "Kiwi configuration")]
pub struct ConfigFile {
    /// How chains are validated.
    pub validation: ValidationSection,
    /// What a call may use.
    pub limits: LimitsSection,
    /// Python.
    pub python: PythonSection,
    /// Lockfiles.
    pub lockfiles: LockfilesSection,
    /// Credentials.
    pub credentials: CredentialsSection,
}

/// How chains are validated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct ValidationSection {
    /// `strict` unless the user's configuration says `lenient` and the project's does not say `strict`.
    pub mode: Option<Mode>,
}

/// What a call may use. Where both files give a limit the smaller one holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct LimitsSection {
    /// Seconds a call may take where its tool says nothing; 300 when left out.
    #[serde(deserialize_with = "seconds")]
    #[schemars(range(min = 1, max = MAX_TIMEOUT))]
    pub timeout: Option<u64>,
    /// Bytes a call may print; 8388608 when left out.
    #[serde(deserialize_with = "bytes")]
    #[schemars(range(min = 1, max = MAX_OUTPUT))]
    pub output: Option<u64>,
}

/// Python.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct PythonSection {
    /// The interpreter: a name to look for, or a path. A project's is used for the project's own tools only.
    pub interpreter: Option<String>,
}

/// Lockfiles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct LockfilesSection {
    /// What a call does about its lockfile; where both files say, the stricter holds. Left out: `warn`, and `strict`
    /// where `CI=true` and there are lockfiles.
    pub mode: Option<LockMode>,
}

/// Credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct CredentialsSection {
    /// Whether the desktop's keyring keeps the key of the credential store; `auto` when left out. Only the user's
    /// configuration can say so.
    pub keyring: Option<KeyringUse>,
}

/// The keys of [`ConfigFile`]; a test holds them against the generated schema.
const KNOWN: [(&str, &[&str]); 5] = [
    ("credentials", &["keyring"]),
    ("limits", &["output", "timeout"]),
    ("lockfiles", &["mode"]),
    ("python", &["interpreter"]),
    ("validation", &["mode"]),
];

/// The configuration in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How chains are validated.
    pub mode: Mode,
    /// What a call may use.
    pub limits: Limits,
    /// What a call does about its lockfile, where somebody said so.
    pub lock_mode: Option<LockMode>,
    /// Whether the desktop's keyring is used.
    pub keyring: KeyringUse,
    user_interpreter: Option<String>,
    project_interpreter: Option<String>,
}

/// What a call may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take, where its tool says nothing.
    pub timeout: Duration,
    /// How many bytes it may print.
    pub output: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self::in_force(&ConfigFile::default(), &ConfigFile::default(), &mut Vec::new())
    }
}

impl Config {
    /// Reads the configuration files below two `.ai` folders. A file that is not there says nothing; one that cannot be
    /// read refuses.
    pub fn load(user: Option<&Path>, project: Option<&Path>) -> Result<(Self, Vec<String>), SpaceError> {
        let mut warnings = Vec::new();
        // The user may link it from where they keep such files. A project that does may be up to something.
        let user = read(user, open_anywhere, &mut warnings)?;
        let project = read(project, open_inside, &mut warnings)?;
        let config = Self::in_force(&user, &project, &mut warnings);
        Ok((config, warnings))
    }

    /// The interpreter for a tool of a space. A project cannot choose it for the user's tools, or for the system's.
    pub fn python_interpreter(&self, space: Space) -> Option<&str> {
        let project = self.project_interpreter.as_deref().filter(|_| space == Space::Project);
        project.or(self.user_interpreter.as_deref())
    }

    fn in_force(user: &ConfigFile, project: &ConfigFile, warnings: &mut Vec<String>) -> Self {
        let allowed = user.validation.mode.unwrap_or_default();
        let mode = match project.validation.mode {
            Some(Mode::Lenient) if allowed == Mode::Strict => {
                warnings.push("the project asks for `validation.mode = \"lenient\"`; the user's configuration must allow it".to_owned());
                Mode::Strict
            }
            Some(mode) => mode,
            None => allowed,
        };
        if project.credentials.keyring.is_some() {
            warnings
                .push("the project sets `credentials.keyring`; only the user's configuration can".to_owned());
        }
        let mut limit = |name: &str, user: Option<u64>, project: Option<u64>, default: u64| {
            let allowed = user.unwrap_or(default);
            if project.is_some_and(|project| project > allowed) {
                warnings.push(format!("the project asks for a higher `limits.{name}` than {allowed}; the user's configuration must allow it"));
            }
            project.map_or(allowed, |project| project.min(allowed))
        };
        let timeout = limit("timeout", user.limits.timeout, project.limits.timeout, DEFAULT_TIMEOUT);
        let output = limit("output", user.limits.output, project.limits.output, DEFAULT_OUTPUT);
        Self {
            mode,
            limits: Limits { timeout: Duration::from_secs(timeout), output },
            keyring: user.credentials.keyring.unwrap_or_default(),
            lock_mode: user.lockfiles.mode.max(project.lockfiles.mode),
            user_interpreter: user.python.interpreter.clone(),
            project_interpreter: project.python.interpreter.clone(),
        }
    }
}

/// The JSON Schema of a configuration file, generated from the types.
pub fn config_schema() -> Value {
    schemars::schema_for!(ConfigFile).to_value()
}

type Open = fn(&Root, &Path) -> Result<Option<std::fs::File>, SpaceError>;

fn open_inside(root: &Root, _path: &Path) -> Result<Option<std::fs::File>, SpaceError> {
    match root.open_file(FILE) {
        Ok(Opened { file, .. }) => Ok(Some(file)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

fn open_anywhere(_root: &Root, path: &Path) -> Result<Option<std::fs::File>, SpaceError> {
    let target = match path.canonicalize() {
        Ok(target) => target,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && path.symlink_metadata().is_err() => {
            return Ok(None);
        }
        Err(error) => return Err(SpaceError::unreadable(path, error)),
    };
    let (Some(folder), Some(name)) = (target.parent(), target.file_name().and_then(|name| name.to_str()))
    else {
        return Ok(None);
    };
    let root =
        Root::open(folder)?.ok_or_else(|| SpaceError::unreadable(path, std::io::ErrorKind::NotFound))?;
    root.open_file(name).map(|opened| Some(opened.file))
}

fn read(ai: Option<&Path>, open: Open, warnings: &mut Vec<String>) -> Result<ConfigFile, SpaceError> {
    let Some(ai) = ai else { return Ok(ConfigFile::default()) };
    let Some(root) = Root::open(ai)? else { return Ok(ConfigFile::default()) };
    let path = ai.join(FILE);
    let Some(file) = open(&root, &path)? else { return Ok(ConfigFile::default()) };
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| SpaceError::unreadable(&path, error))?;
    parse(&bytes, &path, warnings)
}

fn parse(bytes: &[u8], path: &Path, warnings: &mut Vec<String>) -> Result<ConfigFile, SpaceError> {
    let fail = |offset: usize, message: String| {
        let (line, column) = place(bytes, offset);
        SpaceError::Config { file: PathBuf::from(path), line, column, message }
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(fail(0, format!("the file has more than {MAX_BYTES} bytes")));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| fail(error.valid_up_to(), "the file is not UTF-8 text".to_owned()))?;
    let explain = |error: &toml::de::Error| {
        let message = error.message().trim().replace("unknown variant", "unknown value").replace('\n', ", ");
        fail(error.span().map_or(0, |span| span.start), message)
    };
    let table: toml::Table = toml::from_str(text).map_err(|error| explain(&error))?;
    let file: ConfigFile = toml::from_str(text).map_err(|error| explain(&error))?;
    for (section, value) in &table {
        let unknown: Vec<String> = match KNOWN.iter().find(|(known, _)| known == section) {
            None => vec![section.clone()],
            Some((_, keys)) => {
                let given = value.as_table().into_iter().flatten().map(|(key, _)| key);
                given
                    .filter(|key| !keys.contains(&key.as_str()))
                    .map(|key| format!("{section}.{key}"))
                    .collect()
            }
        };
        warnings.extend(unknown.into_iter().map(|key| {
            format!("{}: `{}` is not known and means nothing", path.display(), key.escape_debug())
        }));
    }
    Ok(file)
}

/// Line and column of a byte, both from 1, columns in characters.
fn place(bytes: &[u8], offset: usize) -> (usize, usize) {
    let before = bytes.get(..offset).unwrap_or(bytes);
    let line = before.split(|byte| *byte == b'\n').count();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    (line, String::from_utf8_lossy(before.get(start..).unwrap_or_default()).chars().count() + 1)
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_any(WholeNumber { what: "seconds", max: MAX_TIMEOUT }).map(Some)
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_any(WholeNumber { what: "bytes", max: MAX_OUTPUT }).map(Some)
}

struct WholeNumber {
    what: &'static str,
    max: u64,
}

impl Visitor<'_> for WholeNumber {
    type Value = u64;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a whole number of {} from 1 to {}", self.what, self.max)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<u64, E> {
        if (1..=self.max).contains(&number) {
            Ok(number)
        } else {
            Err(E::invalid_value(de::Unexpected::Unsigned(number), &self))
        }
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<u64, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (ConfigFile, Vec<String>) {
        let mut warnings = Vec::new();
        let file = parse(text.as_bytes(), Path::new("kiwi.toml"), &mut warnings)
            .unwrap_or_else(|error| panic!("{error}"));
        (file, warnings)
    }

    #[track_caller]
    fn check(user: &str, project: &str, mode: Mode, timeout: u64, output: u64, warned: usize) {
        let mut warnings = Vec::new();
        let config = Config::in_force(&file(user).0, &file(project).0, &mut warnings);
        assert_eq!(
            (config.mode, config.limits.timeout.as_secs(), config.limits.output),
            (mode, timeout, output),
            "{user} | {project}"
        );
        assert_eq!(warnings.len(), warned, "{warnings:?}");
    }

    #[test]
    fn a_project_tightens_and_never_widens() {
        let (lenient, strict) = ("[validation]\nmode = \"lenient\"", "[validation]\nmode = \"strict\"");
        check("", "", Mode::Strict, 300, 8 << 20, 0);
        check(lenient, "", Mode::Lenient, 300, 8 << 20, 0);
        check(lenient, lenient, Mode::Lenient, 300, 8 << 20, 0);
        check(lenient, strict, Mode::Strict, 300, 8 << 20, 0);
        check("", lenient, Mode::Strict, 300, 8 << 20, 1);
        check(strict, lenient, Mode::Strict, 300, 8 << 20, 1);
        let limits = |timeout: u64, output: u64| format!("[limits]\ntimeout = {timeout}\noutput = {output}");
        check(&limits(600, 1 << 30), "", Mode::Strict, 600, 1 << 30, 0);
        check(&limits(600, 100), &limits(60, 50), Mode::Strict, 60, 50, 0);
        check(&limits(600, 100), &limits(900, 200), Mode::Strict, 600, 100, 2);
        check("", &limits(10, 1 << 30), Mode::Strict, 10, 8 << 20, 1);
    }

    #[test]
    fn the_stricter_lock_mode_holds() {
        let mode = |mode: &str| file(&format!("[lockfiles]\nmode = \"{mode}\"")).0;
        let in_force = |user: &ConfigFile, project: &ConfigFile| {
            Config::in_force(user, project, &mut Vec::new()).lock_mode
        };
        let silent = ConfigFile::default();
        assert_eq!(in_force(&silent, &silent), None);
        assert_eq!(in_force(&silent, &mode("off")), Some(LockMode::Off));
        assert_eq!(in_force(&mode("strict"), &mode("off")), Some(LockMode::Strict));
        assert_eq!(in_force(&mode("off"), &mode("warn")), Some(LockMode::Warn));
    }

    #[test]
    fn a_project_has_no_say_about_the_keyring() {
        let keyring = |value: &str| file(&format!("[credentials]\nkeyring = \"{value}\"")).0;
        let silent = ConfigFile::default();
        for (user, project, expected, warned) in [
            (&silent, &silent, KeyringUse::Auto, 0),
            (&keyring("off"), &silent, KeyringUse::Off, 0),
            (&silent, &keyring("off"), KeyringUse::Auto, 1),
            (&keyring("off"), &keyring("auto"), KeyringUse::Off, 1),
        ] {
            let mut warnings = Vec::new();
            assert_eq!(Config::in_force(user, project, &mut warnings).keyring, expected);
            assert_eq!(warnings.len(), warned, "{warnings:?}");
        }
    }

    #[test]
    fn a_project_chooses_the_interpreter_for_its_own_tools_only() {
        let python = |name: &str| file(&format!("[python]\ninterpreter = \"{name}\"")).0;
        let config = Config::in_force(&ConfigFile::default(), &python("evil"), &mut Vec::new());
        assert_eq!(config.python_interpreter(Space::Project), Some("evil"));
        assert_eq!(
            (config.python_interpreter(Space::User), config.python_interpreter(Space::System)),
            (None, None)
        );
        let config = Config::in_force(&python("mine"), &python("theirs"), &mut Vec::new());
        assert_eq!(
            (config.python_interpreter(Space::Project), config.python_interpreter(Space::User)),
            (Some("theirs"), Some("mine"))
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, expect) in [
            (
                "[limits]\ntimeout = 0\n",
                "kiwi.toml:2:11: invalid value: integer `0`, expected a whole number of seconds from 1 to 31536000",
            ),
            ("[limits]\ntimeout = -1\n", "kiwi.toml:2:11: invalid value"),
            ("[limits]\n  timeout = \"x\"\n", "kiwi.toml:2:13: invalid type"),
            (
                "[validation]\nmode = \"lax\"\n",
                "kiwi.toml:2:8: unknown value `lax`, expected `strict` or `lenient`",
            ),
            ("validation = 1\n", "kiwi.toml:1:14: invalid type: integer `1`, expected a table"),
            ("[validation\n", "kiwi.toml:1:12: "),
            ("a = 1\na = 2\n", "kiwi.toml:2:1: "),
        ] {
            let error =
                parse(text.as_bytes(), Path::new("kiwi.toml"), &mut Vec::new()).expect_err(text).to_string();
            assert!(error.starts_with(expect), "{error}\ndoes not start with\n{expect}");
        }
        assert!(parse(b"a = \"\xff\"", Path::new("x"), &mut Vec::new()).is_err());
    }

    #[test]
    fn unknown_keys_are_warned_about() {
        let (_, warnings) = file("[limits]\ntimeout = 5\nmemory = 1\n[colours]\nx = 1\n");
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings.iter().any(|warning| warning.contains("`limits.memory`")));
        assert!(warnings.iter().any(|warning| warning.contains("`colours`")));
    }

    #[test]
    fn the_known_keys_are_the_keys_of_the_schema() {
        let schema = config_schema();
        let resolve = |value: &Value| match value["$ref"].as_str() {
            Some(reference) => {
                schema.pointer(reference.trim_start_matches('#')).cloned().expect("definition")
            }
            None => value.clone(),
        };
        let sections = schema["properties"].as_object().expect("properties");
        let mut found: Vec<(String, Vec<String>)> = sections
            .iter()
            .map(|(name, section)| {
                let mut keys: Vec<String> =
                    resolve(section)["properties"].as_object().expect("keys").keys().cloned().collect();
                keys.sort();
                (name.clone(), keys)
            })
            .collect();
        found.sort();
        let known: Vec<(String, Vec<String>)> = KNOWN
            .iter()
            .map(|(name, keys)| ((*name).to_owned(), keys.iter().map(|key| (*key).to_owned()).collect()))
            .collect();
        assert_eq!(found, known);
    }
}
