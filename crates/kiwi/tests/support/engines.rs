//! Kiwi with the container engines of a test run. `cargo xtask test` starts those and says where they are.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{TestEnvironment, processes};

pub const ENGINES: [&str; 2] = ["docker", "podman"];

/// An environment whose Kiwi finds the engines of this test run.
pub struct World {
    pub env: TestEnvironment,
    engines: PathBuf,
}

impl World {
    #[track_caller]
    pub fn new() -> Self {
        let Some(engines) = std::env::var_os("KIWI_TEST_CONTAINERS") else {
            panic!(
                "this suite needs container engines, which `cargo xtask test` sets up; alone it runs by \
                 `cargo xtask engines cargo test -p kiwi --test container`"
            )
        };
        Self { env: TestEnvironment::new(), engines: engines.into() }
    }

    /// A tool that runs a shell script in the test image.
    pub fn tool(&self, engine: &str, script: &str, more: &str) -> String {
        let id = format!("in_{engine}");
        let text = format!(
            "tool_id: {id}\nversion: \"1.0.0\"\ntool_type: docker\nexecutor:\n  image: kiwi-test:1\n  engine: {engine}\n  \
             command: [/bin/sh, -c, {script:?}]\n{more}\nparameters:\n  type: object\n  properties: {{name: {{type: string}}}}\n",
        );
        self.env.write(&format!("tools/{id}.yaml"), text);
        id
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.env.command(words);
        self.point(&mut command);
        command
    }

    pub fn point(&self, command: &mut Command) {
        command.envs(self.variables());
    }

    /// Where the clients of the engines find them.
    pub fn variables(&self) -> [(&'static str, String); 3] {
        let file = |name: &str| self.engines.join(name).display().to_string();
        [
            ("DOCKER_HOST", format!("unix://{}", file("docker.sock"))),
            ("CONTAINERS_CONF", file("containers.conf")),
            ("CONTAINERS_STORAGE_CONF", file("storage.conf")),
        ]
    }

    pub fn run(&self, words: &[&str]) -> (i32, String, String) {
        let output = self.command(words).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
    }

    #[track_caller]
    pub fn json(&self, words: &[&str]) -> (i32, serde_json::Value) {
        let (code, out, err) = self.run(&[words, &["--json"]].concat());
        (code, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{code}: {out}{err}")))
    }

    pub fn spawn(&self, words: &[&str]) -> Child {
        self.command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    pub fn engine(&self, engine: &str, words: &[&str]) -> String {
        let mut command = Command::new(engine);
        self.point(&mut command);
        let output = command.args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Containers whose command line holds a marker: tests run beside each other.
    pub fn containers(&self, engine: &str, marker: &str) -> Vec<String> {
        let format = "{{.Names}} {{.Command}}";
        let words = ["ps", "--all", "--no-trunc", "--filter", "label=kiwi.owner", "--format", format];
        let listed = self.engine(engine, &words);
        listed.lines().filter(|line| line.contains(marker)).map(str::to_owned).collect()
    }

    #[track_caller]
    pub fn await_container(&self, engine: &str, marker: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(line) = self.containers(engine, marker).first() {
                return line.split_whitespace().next().unwrap().to_owned();
            }
            assert!(Instant::now() < deadline, "{engine}: no container came up");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    #[track_caller]
    pub fn nothing_left(&self, engine: &str, marker: &str) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !(self.containers(engine, marker).is_empty() && processes(marker).is_empty()) {
            assert!(
                Instant::now() < deadline,
                "{engine}: left {:?} {:?}",
                self.containers(engine, marker),
                processes(marker)
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
