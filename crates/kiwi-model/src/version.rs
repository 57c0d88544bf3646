//! Versions, requirements, and `tool@requirement` as a person types it.

pub use semver::{Prerelease, Version, VersionReq};

use crate::{ErrorKind, Fault, ToolId};

/// What a caller asks for: an id and, after `@`, a version requirement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolRef {
    /// Which tool.
    pub id: ToolId,
    /// Which versions of it will do.
    pub requirement: Option<VersionReq>,
}

impl ToolRef {
    /// Reads `tool` or `tool@requirement`. A bare version after `@` means exactly that version.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let (id, requirement) = match text.split_once('@') {
            None => (text, None),
            Some((id, requirement)) => (id, Some(requirement)),
        };
        let id = ToolId::callable(id).map_err(|error| {
            Fault::new(ErrorKind::NotFound, error.to_string())
                .with_hint("`kiwi tool list` shows the tools that are here")
        })?;
        let requirement = requirement.map(parse_requirement).transpose().map_err(|error| {
            Fault::new(
                ErrorKind::VersionConflict,
                format!("`{text}` has an unreadable version requirement: {error}"),
            )
            .with_hint("write it like `tool@1.4.0`, `tool@^1.4` or `tool@>=1,<3`")
        })?;
        Ok(Self { id, requirement })
    }
}

impl ToolRef {
    /// Exactly this version of a tool.
    pub fn exactly(id: ToolId, version: &Version) -> Self {
        Self { id, requirement: parse_requirement(&version.to_string()).ok() }
    }
}

impl From<ToolId> for ToolRef {
    fn from(id: ToolId) -> Self {
        Self { id, requirement: None }
    }
}

impl std::fmt::Display for ToolRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.requirement {
            None => write!(f, "{}", self.id),
            Some(requirement) => write!(f, "{}@{requirement}", self.id),
        }
    }
}

/// A bare full version is exact; semver alone would read `1.2.3` as `^1.2.3`.
fn parse_requirement(text: &str) -> Result<VersionReq, semver::Error> {
    match Version::parse(text) {
        Ok(_) => VersionReq::parse(&format!("={text}")),
        Err(_) => VersionReq::parse(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_version_is_exact_and_an_operator_is_kept() {
        let check = |text: &str, expect: &str| {
            assert_eq!(ToolRef::parse(text).map(|r| r.to_string()), Ok(expect.to_owned()));
        };
        check("a", "a");
        check("a@1.2.3", "a@=1.2.3");
        check("a@1.2.3-beta.1", "a@=1.2.3-beta.1");
        check("a@^1.2", "a@^1.2");
        check("a@1", "a@^1");
        let exactly = |version: &str| {
            let id = ToolId::parse("a").expect("id");
            ToolRef::exactly(id, &Version::parse(version).expect("version")).to_string()
        };
        assert_eq!((exactly("1.2.3"), exactly("1.0.0-b.1")), ("a@=1.2.3".into(), "a@=1.0.0-b.1".to_owned()));
    }

    #[test]
    fn nonsense_is_explained() {
        assert_eq!(ToolRef::parse("Nope").map_err(|f| f.kind), Err(ErrorKind::NotFound));
        assert_eq!(ToolRef::parse("a@wat").map_err(|f| f.kind), Err(ErrorKind::VersionConflict));
    }
}
