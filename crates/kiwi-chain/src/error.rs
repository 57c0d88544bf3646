//! Everything that can stop a plan, as facts.

use kiwi_model::{Digest, ErrorKind, Explain, Fault, Integrity, ManifestError, Space, ToolId, Version};
use serde_json::{Value, json};

use crate::validate::Report;

/// Why there is no plan.
#[derive(Debug, Clone, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are named by what they hold")]
pub enum ChainError {
    #[error("there is no tool `{id}`{}", wanted_by.as_ref().map(|by| format!(", which `{by}` needs as its executor")).unwrap_or_default())]
    NotFound { id: ToolId, wanted_by: Option<String>, nearest: Vec<ToolId> },
    #[error("`{child}` from the {child_space} space needs `{executor}`, which only the {found_in} space has")]
    SpaceViolation { child: String, child_space: Space, executor: ToolId, found_in: Space },
    #[error("{}", conflict_sentence(id, requirements, available))]
    VersionConflict { id: ToolId, requirements: Vec<Requirement>, available: Vec<(Version, Space)> },
    #[error("the chain runs in a circle: {}", names(path))]
    Cycle { path: Vec<ToolId> },
    #[error("the chain is longer than {limit} links: {}", names(path))]
    TooDeep { path: Vec<ToolId>, limit: usize },
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    IntegrityMismatch(Vec<Mismatch>),
    #[error("{}", .0.issues.join("; "))]
    Invalid(Report),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("{file}: {}", misfit(primitive, complaint))]
    Config { file: String, primitive: ToolId, pointer: String, complaint: String, hint: Option<String> },
    #[error("{}", .problems.join("; "))]
    InvalidParams { problems: Vec<String>, schema: Value },
    #[error("the environment variable `{name}` is needed by `{tool}` and not set")]
    MissingEnvironment { name: String, tool: String },
    #[error(transparent)]
    Catalog(#[from] Fault),
}

/// One requirement on a version, and who makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// As a person would write it.
    pub requirement: String,
    /// Whose it is.
    pub from: String,
}

/// A link whose bytes are not what was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// `id@version`.
    pub tool: String,
    /// What the bytes give.
    pub computed: Integrity,
    /// What was recorded.
    pub expected: Integrity,
    /// What differs, one entry per file.
    pub changes: Vec<FileChange>,
    /// The record itself is gone.
    pub record_missing: bool,
}

/// How one file differs from its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// Other bytes.
    Content {
        /// Which file.
        path: String,
        /// The digest of what is there.
        computed: Digest,
        /// The digest that was recorded.
        expected: Digest,
    },
    /// Other executable bit.
    Mode(String),
    /// Not recorded.
    Added(String),
    /// Recorded and gone.
    Removed(String),
    /// A signature that is none of these files.
    Signature(String),
}

impl FileChange {
    /// Which file.
    pub fn path(&self) -> &str {
        match self {
            Self::Content { path, .. }
            | Self::Mode(path)
            | Self::Added(path)
            | Self::Removed(path)
            | Self::Signature(path) => path,
        }
    }
}

impl std::fmt::Display for FileChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Content { path, .. } => write!(f, "`{path}` changed"),
            Self::Mode(path) => write!(f, "`{path}` has another executable bit"),
            Self::Added(path) => write!(f, "`{path}` was added"),
            Self::Removed(path) => write!(f, "`{path}` is missing"),
            Self::Signature(path) => write!(f, "`{path}` is no signature of it"),
        }
    }
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "integrity mismatch for {}", self.tool)?;
        if self.computed != self.expected {
            write!(f, ": computed {}, expected {}", self.computed.short(), self.expected.short())?;
        }
        if self.record_missing {
            write!(f, ": its install record is gone")?;
        }
        for (i, change) in self.changes.iter().enumerate() {
            write!(f, "{}{change}", if i == 0 { ": " } else { ", " })?;
        }
        Ok(())
    }
}

fn misfit(primitive: &ToolId, complaint: &str) -> String {
    format!("the merged configuration does not suit `{primitive}`: {complaint}")
}

fn names(path: &[ToolId]) -> String {
    path.iter().map(ToolId::as_str).collect::<Vec<_>>().join(" → ")
}

fn conflict_sentence(id: &ToolId, requirements: &[Requirement], available: &[(Version, Space)]) -> String {
    let asked: Vec<String> =
        requirements.iter().map(|r| format!("`{}` ({})", r.requirement, r.from)).collect();
    let here: Vec<String> = available.iter().map(|(version, space)| format!("{version} ({space})")).collect();
    let here =
        if here.is_empty() { "there is none".to_owned() } else { format!("there is {}", here.join(", ")) };
    match asked.as_slice() {
        [one] => format!("no version of `{id}` satisfies {one}: {here}"),
        several => format!("no version of `{id}` satisfies both {}: {here}", several.join(" and ")),
    }
}

impl Explain for ChainError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::SpaceViolation { .. } => ErrorKind::SpaceViolation,
            Self::VersionConflict { .. } => ErrorKind::VersionConflict,
            Self::Cycle { .. } => ErrorKind::Cycle,
            Self::TooDeep { .. } => ErrorKind::TooDeep,
            Self::IntegrityMismatch(_) => ErrorKind::IntegrityMismatch,
            Self::Invalid(_) => ErrorKind::ChainInvalid,
            Self::Manifest(error) => error.kind(),
            Self::Config { .. } => ErrorKind::InvalidManifest,
            Self::InvalidParams { .. } => ErrorKind::InvalidParams,
            Self::MissingEnvironment { .. } => ErrorKind::MissingRequirement,
            Self::Catalog(fault) => fault.kind,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NotFound { nearest, .. } if nearest.is_empty() => {
                Some("`kiwi tool list` shows the tools that are here".into())
            }
            Self::NotFound { nearest, .. } => {
                let names: Vec<String> = nearest.iter().map(|id| format!("`{id}`")).collect();
                Some(format!("did you mean {}?", names.join(" or ")))
            }
            Self::SpaceViolation { child_space, executor, .. } => {
                Some(format!("put `{executor}` into the {child_space} space, or move the tool up"))
            }
            Self::VersionConflict { .. } => {
                Some("loosen one of the requirements, or install a version that satisfies them".into())
            }
            Self::Cycle { .. } => Some(
                "one of these must name another executor; every chain ends in `subprocess` or `http_client`"
                    .into(),
            ),
            Self::TooDeep { .. } => Some("take runtimes out of the middle of the chain".into()),
            Self::IntegrityMismatch(list) => Some(
                if list.iter().flat_map(|it| &it.changes).any(|it| matches!(it, FileChange::Signature(_))) {
                    "see who changed it; then sign it again with `kiwi tool sign`, or take the signature away"
                } else {
                    "install it again, or restore the files that changed"
                }
                .into(),
            ),
            Self::Invalid(_) => Some(
                "`kiwi chain` shows the whole chain; mend the child, or the parent's `child_schemas`".into(),
            ),
            Self::Manifest(error) => error.hint(),
            Self::Config { hint, .. } => hint.clone(),
            Self::InvalidParams { schema, .. } => signature_hint(schema),
            Self::MissingEnvironment { name, .. } => Some(format!("run it with `{name}=… kiwi run …`")),
            Self::Catalog(fault) => fault.hint.clone(),
        }
    }

    fn details(&self) -> Value {
        match self {
            Self::NotFound { id, nearest, .. } => json!({"tool": id, "nearest": nearest}),
            Self::SpaceViolation { child, child_space, executor, found_in } => {
                json!({"tool": child, "space": child_space, "executor": executor, "found_in": found_in})
            }
            Self::VersionConflict { id, requirements, available } => json!({
                "tool": id,
                "requirements": requirements.iter().map(|r| json!({"requirement": r.requirement, "from": r.from})).collect::<Vec<_>>(),
                "available": available.iter().map(|(version, space)| json!({"version": version, "space": space})).collect::<Vec<_>>(),
            }),
            Self::Cycle { path } | Self::TooDeep { path, .. } => json!({"chain": path}),
            Self::IntegrityMismatch(list) => json!({"mismatches": list.iter().map(|m| json!({
                "tool": m.tool, "computed": m.computed, "expected": m.expected,
                "changes": m.changes.iter().map(ToString::to_string).collect::<Vec<_>>(),
            })).collect::<Vec<_>>()}),
            Self::Invalid(report) => {
                json!({"issues": report.issues, "warnings": report.warnings, "validated_pairs": report.validated_pairs})
            }
            Self::Manifest(error) => error.details(),
            Self::Config { file, primitive, pointer, complaint, hint } => json!({
                "file": file,
                "problems": [{"message": misfit(primitive, complaint), "hint": hint, "pointer": format!("/config{pointer}")}],
            }),
            Self::InvalidParams { problems, .. } => json!({"problems": problems}),
            Self::MissingEnvironment { name, tool } => json!({"variable": name, "tool": tool}),
            Self::Catalog(fault) => fault.details.clone(),
        }
    }
}

/// `takes input (string), count (integer, optional)`: what a call may give.
fn signature_hint(schema: &Value) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if properties.is_empty() {
        return Some("it takes no parameters".into());
    }
    let list: Vec<String> = properties
        .iter()
        .map(|(name, property)| {
            let kind = property.get("type").and_then(Value::as_str).unwrap_or("any");
            let optional = if required.contains(&name.as_str()) { "" } else { ", optional" };
            format!("`{name}` ({kind}{optional})")
        })
        .collect();
    Some(format!("it takes {}", list.join(", ")))
}
