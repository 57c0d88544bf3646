//! From an id along the executors to a primitive.

use kiwi_model::manifest::ChildConstraint;
use kiwi_model::{Prerelease, Space, ToolId, ToolRef, Version, VersionReq};
use std::sync::Arc;

use crate::catalog::{Candidate, Catalog, Tool};
use crate::error::{ChainError, Requirement};
use crate::lock::Pins;

/// The most links a chain may have, the primitive included.
pub const MAX_LINKS: usize = 10;
/// How many tools one resolution may look at before it gives up on finding versions that fit together.
const MAX_TRIES: usize = 500;

/// Follows executors from `ask` to a primitive, choosing versions that satisfy everybody: the pinned ones where they are
/// there and fit, else the best. Leaf first.
pub fn resolve(catalog: &dyn Catalog, ask: &ToolRef, pins: &Pins) -> Result<Vec<Arc<Tool>>, ChainError> {
    let want = Want::asked(ask);
    let mut search = Search { pins, ..Search::new(catalog, true) };
    match search.extend(&want) {
        // Bounds that a parent puts on its child are a matter of validation where nobody else asks for a version of
        // that child: the chain is what it is, and the report says what is wrong with it.
        Err(Stuck::ChildBounds { alone: true, .. }) => {
            let mut search = Search { pins, ..Search::new(catalog, false) };
            search.extend(&want).map_err(Stuck::into_error)?;
            Ok(search.chain)
        }
        result => result.map_err(Stuck::into_error).map(|()| search.chain),
    }
}

/// The tool that `ask` means by itself, whether or not anything can run it.
pub fn find(catalog: &dyn Catalog, ask: &ToolRef) -> Result<Arc<Tool>, ChainError> {
    let want = Want::asked(ask);
    let search = Search::new(catalog, false);
    match search.candidates(&want)?.first() {
        Some(candidate) => search.load(candidate),
        None => Err(search.conflict(&want)),
    }
}

/// Every version that `ask` allows, prereleases included: nearest space first, there the highest first.
pub fn versions(catalog: &dyn Catalog, ask: &ToolRef) -> Result<Vec<Candidate>, ChainError> {
    let mut all = everywhere(catalog, &ask.id, Space::Project)?;
    all.retain(|candidate| ask.requirement.as_ref().is_none_or(|asked| allows(asked, &candidate.version)));
    Ok(all)
}

/// Every version of a tool from a space downward: nearest space first, there the highest first. What is wrong in a space
/// counts only where no nearer one has the tool, as when it is resolved freely.
fn everywhere(catalog: &dyn Catalog, id: &ToolId, from: Space) -> Result<Vec<Candidate>, ChainError> {
    let mut all = Vec::new();
    for space in from.downward() {
        let mut here = match catalog.candidates(id, space) {
            Err(_) if !all.is_empty() => continue,
            candidates => candidates?,
        };
        here.sort_by(|a, b| b.version.cmp(&a.version));
        all.append(&mut here);
    }
    Ok(all)
}

/// Whether a version satisfies a requirement, where a prerelease counts as its release.
pub(crate) fn allows(requirement: &VersionReq, version: &Version) -> bool {
    let released = Version { pre: Prerelease::EMPTY, ..version.clone() };
    requirement.matches(version) || requirement.matches(&released)
}

/// The candidates of `id` that a requirement lets through, best first.
///
/// A prerelease counts only when it was asked for or when there is no release.
pub fn satisfying(candidates: Vec<Candidate>, requirement: Option<&VersionReq>) -> Vec<Candidate> {
    let has_release = candidates.iter().any(|candidate| candidate.version.pre.is_empty());
    let mut chosen: Vec<Candidate> = candidates
        .into_iter()
        .filter(|candidate| match requirement {
            None => !has_release || candidate.version.pre.is_empty(),
            Some(requirement) if has_release => requirement.matches(&candidate.version),
            Some(requirement) => allows(requirement, &candidate.version),
        })
        .collect();
    chosen.sort_by(|a, b| b.version.cmp(&a.version));
    chosen
}

struct Want<'a> {
    id: &'a ToolId,
    requirements: Vec<(VersionReq, String)>,
    from: Option<Arc<Tool>>,
}

impl<'a> Want<'a> {
    fn asked(ask: &'a ToolRef) -> Self {
        let requirements =
            ask.requirement.iter().map(|requirement| (requirement.clone(), "asked for".to_owned())).collect();
        Self { id: &ask.id, requirements, from: None }
    }
}

struct Search<'a> {
    catalog: &'a dyn Catalog,
    pins: &'a Pins,
    chain: Vec<Arc<Tool>>,
    tries: usize,
    judge_children: bool,
}

/// Why a branch of the search ends.
enum Stuck {
    Error(ChainError),
    /// A parent does not accept the version of its child; `alone` when nobody else asks for a version of that child.
    ChildBounds {
        alone: bool,
        error: ChainError,
    },
}

impl Stuck {
    fn into_error(self) -> ChainError {
        match self {
            Self::Error(error) | Self::ChildBounds { error, .. } => error,
        }
    }
}

impl<'a> Search<'a> {
    fn new(catalog: &'a dyn Catalog, judge_children: bool) -> Self {
        Self { catalog, pins: Pins::none(), chain: Vec::new(), tries: 0, judge_children }
    }
}

impl Search<'_> {
    /// Puts a tool that satisfies `want`, and everything it rests on, behind the chain.
    fn extend(&mut self, want: &Want<'_>) -> Result<(), Stuck> {
        self.guard(want).map_err(Stuck::Error)?;
        let candidates = self.candidates(want).map_err(Stuck::Error)?;
        let mut first_failure = None;
        for candidate in candidates {
            self.tries += 1;
            if self.tries > MAX_TRIES {
                break;
            }
            match self.attempt(want, &candidate) {
                Ok(()) => return Ok(()),
                Err(
                    clash @ (Stuck::ChildBounds { .. } | Stuck::Error(ChainError::VersionConflict { .. })),
                ) => {
                    first_failure.get_or_insert(clash);
                }
                // Anything but a clash of versions is the answer: trying an older version would hide it.
                Err(stuck) => return Err(stuck),
            }
        }
        Err(first_failure.unwrap_or_else(|| Stuck::Error(self.conflict(want))))
    }

    fn attempt(&mut self, want: &Want<'_>, candidate: &Candidate) -> Result<(), Stuck> {
        let tool = self.load(candidate).map_err(Stuck::Error)?;
        if self.judge_children {
            self.child_bounds(&tool)?;
        }
        let depth = self.chain.len();
        self.chain.push(Arc::clone(&tool));
        let Some(executor) = &tool.manifest.executor else { return Ok(()) };
        let from = format!("executor of `{}`", tool.name());
        let next = Want {
            id: &executor.id,
            requirements: executor
                .requirement
                .iter()
                .map(|requirement| (requirement.clone(), from.clone()))
                .collect(),
            from: Some(Arc::clone(&tool)),
        };
        self.extend(&next).map_err(|stuck| {
            self.chain.truncate(depth);
            match stuck {
                // The child asked about is this tool: now it is known what else is asked of it.
                Stuck::ChildBounds {
                    error: ChainError::VersionConflict { id, mut requirements, available },
                    ..
                } if id == tool.manifest.tool_id => {
                    let others = want.requirements.iter().map(|(requirement, from)| Requirement {
                        requirement: requirement.to_string(),
                        from: from.clone(),
                    });
                    requirements.splice(0..0, others);
                    let alone = want.requirements.is_empty();
                    Stuck::ChildBounds {
                        alone,
                        error: ChainError::VersionConflict { id, requirements, available },
                    }
                }
                other => other,
            }
        })
    }

    fn load(&self, candidate: &Candidate) -> Result<Arc<Tool>, ChainError> {
        match &candidate.loaded {
            Some(tool) => Ok(Arc::clone(tool)),
            None => Ok(self.catalog.load(candidate)?),
        }
    }

    fn guard(&self, want: &Want<'_>) -> Result<(), ChainError> {
        let path = |from: usize| {
            let links = self.chain.iter().skip(from).map(|tool| tool.manifest.tool_id.clone());
            links.chain(std::iter::once(want.id.clone())).collect()
        };
        if let Some(start) = self.chain.iter().position(|tool| tool.manifest.tool_id == *want.id) {
            return Err(ChainError::Cycle { path: path(start) });
        }
        if self.chain.len() >= MAX_LINKS {
            return Err(ChainError::TooDeep { path: path(0), limit: MAX_LINKS });
        }
        Ok(())
    }

    /// Candidates from the nearest space, from the child's own downward, that has one; best version first.
    fn candidates(&self, want: &Want<'_>) -> Result<Vec<Candidate>, ChainError> {
        let child_space = want.from.as_ref().map_or(Space::Project, |tool| tool.space);
        if let Some(chosen) = self.choose(want, child_space)? {
            return Ok(chosen);
        }
        for found_in in child_space.upward() {
            if let (Some(child), false) = (&want.from, self.catalog.candidates(want.id, found_in)?.is_empty())
            {
                let (child, executor) = (child.name(), want.id.clone());
                return Err(ChainError::SpaceViolation { child, child_space, executor, found_in });
            }
        }
        // Asking for all ids looks everywhere, so it may have found what an index had missed.
        let ids = self.catalog.ids();
        if ids.contains(want.id)
            && let Some(chosen) = self.choose(want, child_space)?
        {
            return Ok(chosen);
        }
        let wanted_by = want.from.as_ref().map(|tool| tool.name());
        Err(ChainError::NotFound { id: want.id.clone(), wanted_by, nearest: nearest(want.id, ids) })
    }

    /// `None` where there is no version at all; an error where there is none that fits.
    fn choose(&self, want: &Want<'_>, from: Space) -> Result<Option<Vec<Candidate>>, ChainError> {
        let requirement = combine(&want.requirements);
        let mut found_any = false;
        let mut chosen = self.agreed(want, requirement.as_ref(), from)?;
        for space in from.downward() {
            let here = self.catalog.candidates(want.id, space)?;
            found_any |= !here.is_empty();
            let fitting = satisfying(here, requirement.as_ref());
            if !fitting.is_empty() {
                chosen.extend(fitting);
                break;
            }
        }
        match (chosen.is_empty(), found_any) {
            (false, _) => Ok(Some(chosen)),
            (true, true) => Err(self.conflict(want)),
            (true, false) => Ok(None),
        }
    }

    /// The pinned version, from whichever space has it; the one it was agreed from first.
    fn agreed(
        &self,
        want: &Want<'_>,
        requirement: Option<&VersionReq>,
        from: Space,
    ) -> Result<Vec<Candidate>, ChainError> {
        if !self.pins.concern(want.id) {
            return Ok(Vec::new());
        }
        let mut agreed = everywhere(self.catalog, want.id, from)?;
        agreed.retain(|candidate| self.pins.hold(candidate, requirement));
        agreed.sort_by_key(|candidate| !self.pins.place(candidate));
        Ok(agreed)
    }

    /// Whether `parent` accepts the version of the link it is about to run.
    fn child_bounds(&self, parent: &Tool) -> Result<(), Stuck> {
        let Some(child) = self.chain.last() else { return Ok(()) };
        let Some(bounds) = parent.manifest.child_constraints.get(child.manifest.tool_id.as_str()) else {
            return Ok(());
        };
        // A bound that cannot be read chooses nothing: validation says so.
        if !is_readable(bounds) || bounds_violation(bounds, &child.manifest.version).is_none() {
            return Ok(());
        }
        let requirement = Requirement {
            requirement: bounds_text(bounds),
            from: format!("child_constraints of `{}`", parent.name()),
        };
        let error = ChainError::VersionConflict {
            id: child.manifest.tool_id.clone(),
            requirements: vec![requirement],
            available: self.available(&child.manifest.tool_id, Space::Project),
        };
        Err(Stuck::ChildBounds { alone: true, error })
    }

    fn conflict(&self, want: &Want<'_>) -> ChainError {
        ChainError::VersionConflict {
            id: want.id.clone(),
            requirements: want
                .requirements
                .iter()
                .map(|(requirement, from)| Requirement {
                    requirement: requirement.to_string(),
                    from: from.clone(),
                })
                .collect(),
            available: self.available(want.id, want.from.as_ref().map_or(Space::Project, |tool| tool.space)),
        }
    }

    fn available(&self, id: &ToolId, from: Space) -> Vec<(Version, Space)> {
        let mut all: Vec<(Version, Space)> = from
            .downward()
            .filter_map(|space| self.catalog.candidates(id, space).ok())
            .flatten()
            .map(|candidate| (candidate.version, candidate.space))
            .collect();
        all.sort_by(|a, b| b.cmp(a));
        all
    }
}

/// One requirement that means all of them.
fn combine(requirements: &[(VersionReq, String)]) -> Option<VersionReq> {
    let comparators: Vec<_> =
        requirements.iter().flat_map(|(requirement, _)| requirement.comparators.clone()).collect();
    (!requirements.is_empty()).then_some(VersionReq { comparators })
}

/// Which bound a version breaks. An unreadable bound breaks too.
pub(crate) fn bounds_violation(bounds: &ChildConstraint, version: &Version) -> Option<String> {
    let parse = |text: &str| Version::parse(text).map_err(|_| format!("`{text}` is not a semantic version"));
    for (bound, low) in [(&bounds.min_version, true), (&bounds.max_version, false)] {
        let Some(bound) = bound else { continue };
        match parse(bound) {
            Err(unreadable) => return Some(unreadable),
            Ok(min) if low && *version < min => return Some(format!("{version} is below the minimum {min}")),
            Ok(max) if !low && *version > max => {
                return Some(format!("{version} is above the maximum {max}"));
            }
            Ok(_) => {}
        }
    }
    None
}

fn is_readable(bounds: &ChildConstraint) -> bool {
    [&bounds.min_version, &bounds.max_version]
        .into_iter()
        .flatten()
        .all(|bound| Version::parse(bound).is_ok())
}

fn bounds_text(bounds: &ChildConstraint) -> String {
    let low = bounds.min_version.as_ref().map(|min| format!(">={min}"));
    let high = bounds.max_version.as_ref().map(|max| format!("<={max}"));
    low.into_iter().chain(high).collect::<Vec<_>>().join(", ")
}

/// Up to three ids that look like the one asked for.
fn nearest(id: &ToolId, ids: Vec<ToolId>) -> Vec<ToolId> {
    let mut scored: Vec<(f64, ToolId)> = ids
        .into_iter()
        .map(|other| (strsim::jaro_winkler(id.as_str(), other.as_str()), other))
        .filter(|(score, _)| *score > 0.85)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(3).map(|(_, id)| id).collect()
}
