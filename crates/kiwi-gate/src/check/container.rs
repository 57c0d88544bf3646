//! A container: its engine is here, and its image is too or can be had.

use kiwi_chain::{Invocation, Plan, Tool, invocation};
use kiwi_model::{ErrorKind, Explain as _};
use serde_json::{Map, Value};

use super::{Finding, source::line_of, told};
use crate::kernel::Kernel;
use crate::stages::image_source;

impl Kernel {
    /// Checks the engine and the image, and pulls or builds nothing.
    pub(super) async fn check_container(&self, plan: &Plan, leaf: &Tool) -> Vec<Finding> {
        // Parameters have no say in what is looked at, so any value will do for them.
        let properties = plan.parameters().and_then(|schema| schema.get("properties")?.as_object());
        let any: Map<String, Value> =
            properties.into_iter().flatten().map(|(name, _)| (name.clone(), Value::from("x"))).collect();
        let anything = |_: &str| Some(String::new());
        let container = match invocation(plan, &any, &anything) {
            Ok(Invocation::Process(process)) => process.container,
            Ok(Invocation::Http(_) | Invocation::Upstream(_)) => None,
            Err(error) => return vec![Finding::of(error.fault(), &leaf.path)],
        };
        let Some(container) = container else { return Vec::new() };
        let at = |finding: Finding, key: &str| vec![finding.at(line_of(leaf, key))];
        let source = match image_source(plan, &container) {
            Ok(source) => source,
            Err(fault) => return at(Finding::of(fault, &leaf.path), "/config"),
        };
        if let Err(error) = source.check() {
            return at(Finding::of(error.fault(), &leaf.path), "/config/build");
        }
        let containers = &self.preparer.containers;
        let engine = match containers.engine(&container.engine) {
            Ok(engine) => engine,
            Err(error) => return at(told(&error, leaf), "/config/engine"),
        };
        let image = source.name();
        match containers.has_image(&engine, &image).await {
            Ok(true) => Vec::new(),
            Ok(false) if container.build.is_some() => Vec::new(),
            Ok(false) => {
                let name = engine.kind.as_str();
                let missing = format!("image `{image}` is not here");
                let finding = Finding::new(ErrorKind::MissingRequirement, missing, &leaf.path)
                    .hint(format!("`{name} pull {image}` gets it where a registry can be reached"));
                at(finding, "/config/image")
            }
            Err(error) => at(told(&error, leaf), "/config/engine"),
        }
    }
}
