//! What a chain says about the container its command runs in.

use kiwi_model::Text;
use serde_json::{Map, Value, json};

use crate::error::ChainError;

/// The key under which a runtime lists what belongs to a container, with what holds where a tool says nothing.
pub(crate) const KEY: &str = "container";

/// One container to run. Paths that depend on the machine are still symbolic.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContainerCall {
    /// The image, where it is not built.
    pub image: Option<String>,
    /// What the image is built from.
    pub build: Option<ImageBuild>,
    /// What runs in it; empty for what the image itself starts.
    pub command: Vec<Text>,
    /// Folders and files of the host that it sees.
    pub volumes: Vec<Volume>,
    /// How many processors it may use.
    pub cpu: Option<f64>,
    /// How much memory it may use, as container engines spell it.
    pub memory: Option<String>,
    /// How many processes it may have.
    pub pids: Option<u64>,
    /// Its network: `none` or `bridge`.
    pub network: String,
    /// Whom it runs as.
    pub user: Option<String>,
    /// Where in it the command starts.
    pub workdir: Option<String>,
    /// Whether its root file system cannot be written.
    pub read_only: bool,
    /// `auto`, `docker` or `podman`.
    pub engine: String,
    /// Whether a missing image may be pulled.
    pub may_pull: bool,
}

/// An image that comes with the tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageBuild {
    /// The folder of the package that is sent to the builder; empty for the whole package.
    pub context: String,
    /// The build file inside it, if not `Dockerfile`.
    pub dockerfile: Option<String>,
}

/// A part of the host that a container sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Volume {
    /// Where it is on the host.
    pub host: Text,
    /// Where the container sees it.
    pub container: Text,
    /// Whether the container may change it.
    pub is_writable: bool,
}

/// Keys that a runtime lists under `container` belong there, also where a tool writes them at the top.
pub(crate) fn claim(below: &mut Map<String, Value>, own: &mut Map<String, Value>) {
    let Some(Value::Object(container)) = below.get_mut(KEY) else { return };
    let claimed: Vec<String> = own.keys().filter(|key| container.contains_key(*key)).cloned().collect();
    for key in claimed {
        if let Some(value) = own.remove(&key) {
            container.insert(key, value);
        }
    }
}

impl ContainerCall {
    /// Reads a container's section, its texts rendered by `text`. What a tool may write there its runtime's schema has
    /// judged.
    pub(crate) fn read(
        section: &Map<String, Value>,
        text: impl Fn(&Value) -> Result<Text, ChainError>,
    ) -> Result<Self, ChainError> {
        let word = |key: &str| section.get(key).filter(|value| !value.is_null()).map(plain);
        let list = |key: &str| section.get(key).and_then(Value::as_array).into_iter().flatten();
        let volume = |volume: &Value| -> Result<Volume, ChainError> {
            Ok(Volume {
                host: text(volume.get("host").unwrap_or(&Value::Null))?,
                container: text(volume.get("container").unwrap_or(&Value::Null))?,
                is_writable: volume.get("mode").and_then(Value::as_str) == Some("rw"),
            })
        };
        let build = section.get("build").and_then(Value::as_object).map(|build| ImageBuild {
            context: build.get("context").map(plain).unwrap_or_default(),
            dockerfile: build.get("dockerfile").map(plain),
        });
        Ok(Self {
            image: word("image"),
            build,
            command: list("command").chain(list("args")).map(&text).collect::<Result<_, _>>()?,
            volumes: list("volumes").map(volume).collect::<Result<_, _>>()?,
            cpu: section.get("cpu").and_then(Value::as_f64),
            memory: word("memory"),
            pids: section.get("pids").and_then(Value::as_u64),
            network: word("network").unwrap_or_else(|| "none".into()),
            user: word("user"),
            workdir: word("workdir"),
            read_only: section.get("read_only") != Some(&Value::Bool(false)),
            engine: word("engine").unwrap_or_else(|| "auto".into()),
            may_pull: word("pull").as_deref() != Some("never"),
        })
    }

    /// The same on every machine for equal plans.
    pub(crate) fn describe(&self) -> Value {
        let volumes: Vec<Value> = self
            .volumes
            .iter()
            .map(|it| {
                let mode = if it.is_writable { "rw" } else { "ro" };
                json!({"host": it.host.to_string(), "container": it.container.to_string(), "mode": mode})
            })
            .collect();
        let build = self.build.as_ref().map(|it| json!({"context": it.context, "dockerfile": it.dockerfile}));
        json!({
            "image": self.image, "build": build, "volumes": volumes, "network": self.network,
            "command": self.command.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "cpu": self.cpu, "memory": self.memory, "pids": self.pids, "user": self.user, "workdir": self.workdir,
            "read_only": self.read_only, "engine": self.engine,
        })
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_tool_speaks_of_its_container_and_of_its_process() {
        let mut below = map(&json!({"command": "{kiwi}", "container": {"command": [], "network": "none"}}));
        let mut own = map(&json!({"command": ["ls"], "timeout": 5, "network": "bridge"}));
        claim(&mut below, &mut own);
        assert_eq!(own, map(&json!({"timeout": 5})));
        assert_eq!(below["command"], "{kiwi}");
        assert_eq!(below["container"], json!({"command": ["ls"], "network": "bridge"}));

        let mut without = map(&json!({"command": "bash"}));
        let mut own = map(&json!({"command": "ls"}));
        claim(&mut without, &mut own);
        assert_eq!(own, map(&json!({"command": "ls"})), "without a container nothing is claimed");
    }

    #[test]
    fn what_a_tool_leaves_out_is_the_careful_choice() {
        let section =
            map(&json!({"image": "a:1", "memory": 1024, "volumes": [{"host": "/a", "container": "/b"}]}));
        let text = |value: &Value| Ok(Text::literal(plain(value)));
        let call = ContainerCall::read(&section, text).unwrap();
        assert_eq!((call.network.as_str(), call.read_only, call.engine.as_str()), ("none", true, "auto"));
        assert_eq!(call.memory.as_deref(), Some("1024"));
        assert!(!call.volumes[0].is_writable);
    }
}
