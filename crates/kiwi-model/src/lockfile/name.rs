//! The names of lockfiles: which tool, which version, and for an alternative which chain.

use super::SHORT_HASH;
use crate::{ToolId, Version};

/// The name of a lockfile: `tool@version.lock.json`, or with the chain hash for an alternative chain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockName {
    /// Which tool.
    pub tool_id: ToolId,
    /// Which version.
    pub version: Version,
    /// The chain hash of an alternative.
    pub alternative: Option<String>,
}

/// How the names of all lockfiles end.
pub const SUFFIX: &str = ".lock.json";

impl LockName {
    /// The file name.
    pub fn file_name(&self) -> String {
        let alternative = self.alternative.as_ref().map(|hash| format!(".{hash}")).unwrap_or_default();
        format!("{}@{}{alternative}{SUFFIX}", self.tool_id, self.version)
    }

    /// Reads a file name. Whatever is a version as a whole is a version: `1.0.0-beta.1` has no hash. Only where a
    /// prerelease or build could swallow the hash of an alternative does the content decide; see [`LockName::settle`].
    pub fn parse(file_name: &str) -> Option<Self> {
        let (tool, rest) = file_name.strip_suffix(SUFFIX)?.split_once('@')?;
        let tool_id = ToolId::callable(tool).ok()?;
        if let Ok(version) = Version::parse(rest) {
            return Some(Self { tool_id, version, alternative: None });
        }
        let (version, hash) = rest.rsplit_once('.')?;
        let alternative = is_short_hash(hash).then(|| hash.to_owned())?;
        Some(Self { tool_id, version: Version::parse(version).ok()?, alternative: Some(alternative) })
    }

    /// The name as the content says it: `1.0.0-beta.3f9c0a1b2c4d` is an alternative if that is the hash of its chain.
    #[must_use]
    pub fn settle(self, chain_hash: &str) -> Self {
        if self.alternative.is_some() || (self.version.pre.is_empty() && self.version.build.is_empty()) {
            return self;
        }
        let text = self.version.to_string();
        let shorter = text.strip_suffix(chain_hash).and_then(|text| text.strip_suffix('.'));
        match shorter.and_then(|text| Version::parse(text).ok()) {
            Some(version) => Self { version, alternative: Some(chain_hash.to_owned()), ..self },
            None => self,
        }
    }
}

/// Whether this is the short form of a chain hash.
pub fn is_short_hash(text: &str) -> bool {
    text.len() == SHORT_HASH && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(tool: &str, version: &str, alternative: Option<&str>) -> LockName {
        LockName {
            tool_id: ToolId::parse(tool).expect("id"),
            version: Version::parse(version).expect("version"),
            alternative: alternative.map(str::to_owned),
        }
    }

    #[test]
    fn names_round_trip() {
        for name in [
            name("a", "1.0.0", None),
            name("mcp.discover", "1.0.0-beta.1", None),
            name("a.b_c", "1.0.0+build.5", None),
            name("a", "1.0.0-rc.1+build.5", None),
            name("a", "1.0.0", Some("3f9c0a1b2c4d")),
        ] {
            assert_eq!(LockName::parse(&name.file_name()), Some(name));
        }
        for bad in [
            "a@1.0.0.json",
            "a.lock.json",
            "A@1.0.0.lock.json",
            "a@1.0.lock.json",
            "a@1.0.0.xyz.lock.json",
            "a@1.0.0.3F9C0A1B2C4D.lock.json",
            ".index.json",
        ] {
            assert_eq!(LockName::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_alternative_of_a_prerelease_is_told_by_its_content() {
        let written = name("a", "1.0.0-beta", Some("3f9c0a1b2c4d"));
        let read = LockName::parse(&written.file_name()).expect("name");
        assert_eq!(read.alternative, None);
        assert_eq!(read.clone().settle("3f9c0a1b2c4d"), written);
        assert_eq!(read.clone().settle("000000000000"), read);
    }
}
