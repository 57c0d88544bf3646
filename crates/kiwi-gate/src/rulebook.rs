//! The rules in force: those of the system, the user and the project together, read again when a file changes.

use kiwi_model::{ErrorKind, Explain, Fault, Space};
use kiwi_rules::{DenialReason, RuleFile, RuleRegistry};
use kiwi_space::{Config, RuleFolder, RuleText, Spaces};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The spaces on disk that hold rules.
const ON_DISK: [Space; 2] = [Space::User, Space::Project];

/// Reads rules, and knows when to read them again.
pub(crate) struct Rulebook {
    spaces: Arc<Spaces>,
    config: Arc<Config>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// What was read last, where it could be read.
    read: Option<(Vec<RuleFolder>, Arc<RuleRegistry>)>,
    /// Every rule file there ever was. One that goes takes its rejections along, so it may not go unnoticed.
    seen: BTreeSet<String>,
}

/// Why there are no rules to judge by.
pub(crate) struct Unusable {
    /// The denial that every call gets.
    pub reason: DenialReason,
    /// The same for whoever asked about the rules.
    pub fault: Fault,
}

impl Rulebook {
    pub fn new(spaces: Arc<Spaces>, config: Arc<Config>) -> Self {
        Self { spaces, config, known: Mutex::default() }
    }

    /// The rules as they are now, or what is wrong with them.
    pub fn read(&self) -> Result<Arc<RuleRegistry>, Box<Unusable>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((folders, registry)) = &known.read
            && ON_DISK.iter().zip(folders).all(|(space, folder)| self.spaces.has_rules(*space, folder))
        {
            return Ok(Arc::clone(registry));
        }
        known.read = None;
        let (folders, registry) = self.load(&mut known.seen)?;
        let registry = Arc::new(registry);
        known.read = Some((folders, Arc::clone(&registry)));
        Ok(registry)
    }

    fn load(&self, seen: &mut BTreeSet<String>) -> Result<(Vec<RuleFolder>, RuleRegistry), Box<Unusable>> {
        let mut texts: Vec<RuleText> = Vec::new();
        if self.config.rules.default {
            texts.extend(self.spaces.rules(Space::System).map_err(|error| unusable(&error.fault()))?.texts);
        }
        let mut folders = Vec::new();
        for space in ON_DISK {
            let folder = self.spaces.rules(space).map_err(|error| unusable(&error.fault()))?;
            let required = match space {
                Space::Project => self.config.rules.project_required,
                _ => self.config.rules.user_required,
            };
            if required && folder.texts.is_empty() {
                return Err(none(space).into());
            }
            folders.push(folder);
        }
        texts.extend(folders.iter().flat_map(|folder| folder.texts.iter().cloned()));
        let names: BTreeSet<String> = texts.iter().map(|text| text.name.clone()).collect();
        if let Some(gone) = seen.difference(&names).next() {
            return Err(vanished(gone).into());
        }
        seen.extend(names);
        let registry = registry(&texts)
            .map_err(|error| Box::new(Unusable { reason: error.denial(), fault: error.fault() }))?;
        Ok((folders, registry))
    }
}

/// The registry of these texts.
pub(crate) fn registry(texts: &[RuleText]) -> Result<RuleRegistry, kiwi_rules::LoadError> {
    let files: Vec<RuleFile<'_>> =
        texts.iter().map(|text| RuleFile { name: &text.name, bytes: &text.bytes }).collect();
    RuleRegistry::load(&files)
}

fn unusable(fault: &Fault) -> Unusable {
    let reason = DenialReason::Policy { policy_id: "ruleset".into(), policy_reason: fault.message.clone() };
    Unusable { reason, fault: fault.clone() }
}

fn none(space: Space) -> Unusable {
    let message = format!("the {} space has no rules, and its configuration demands some", space.as_str());
    unusable(
        &Fault::new(ErrorKind::NotFound, message)
            .with_hint("write one below `.ai/rules/`, or set `rules.required = false` beside it"),
    )
}

fn vanished(name: &str) -> Unusable {
    let message = format!("the rule file `{name}` was in force and is gone");
    unusable(
        &Fault::new(ErrorKind::NotFound, message)
            .with_hint("put it back, or start Kiwi again if it is meant to be gone"),
    )
}
