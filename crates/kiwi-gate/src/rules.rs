//! Looking at rules: those in force, and those that might be.

use kiwi_model::Fault;
use kiwi_rules::{LoadError, RuleRegistry};
use kiwi_space::RuleText;
use std::sync::Arc;

use crate::kernel::Kernel;
use crate::rulebook::registry;

/// What can be done about rules beside being judged by them.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    kernel: &'a Kernel,
}

impl Kernel {
    /// The rules.
    pub fn rules(&self) -> Rules<'_> {
        Rules { kernel: self }
    }
}

impl Rules<'_> {
    /// The rules in force, or what is wrong with them.
    pub fn active(&self) -> Result<Arc<RuleRegistry>, Fault> {
        self.kernel.admission.rulebook.read().map_err(|unusable| unusable.fault)
    }

    /// The rules of some files, as if they were all there are.
    pub fn of(&self, texts: &[RuleText]) -> Result<RuleRegistry, LoadError> {
        registry(texts)
    }
}
