//! The real programs that suites need. Missing ones are installed where that is possible, and named where it is not.

use anyhow::{Result, bail};

use crate::shell::{Shell, find};

/// A program that tests start.
struct Component {
    program: &'static str,
    /// The Debian package that has it.
    package: &'static str,
    why: &'static str,
}

const FOR_TESTS: [Component; 15] = [
    Component { program: "bash", package: "bash", why: "tools of `bash_runtime`" },
    Component {
        program: "python3",
        package: "python3",
        why: "tools of `python_runtime`, and the reference for canonical JSON",
    },
    Component { program: "node", package: "nodejs", why: "tools of `node_runtime`" },
    Component { program: "npm", package: "npm", why: "packages of `node_runtime`'s tools" },
    Component { program: "git", package: "git", why: "projects that are repositories" },
    Component { program: "openssl", package: "openssl", why: "an independent SHA-256" },
    Component { program: "bwrap", package: "bubblewrap", why: "one of the two backends of sandboxes" },
    Component { program: "docker", package: "docker.io", why: "tools of `docker_runtime`" },
    Component { program: "dockerd", package: "docker.io", why: "the service behind `docker`" },
    Component { program: "podman", package: "podman", why: "tools of `docker_runtime`" },
    Component { program: "runc", package: "runc", why: "what both engines start containers with" },
    Component { program: "busybox", package: "busybox-static", why: "what is in the test image" },
    Component { program: "dbus-daemon", package: "dbus", why: "a desktop's bus, for its keyring" },
    Component { program: "dbus-send", package: "dbus", why: "locks that keyring, and looks into it" },
    Component {
        program: "gnome-keyring-daemon",
        package: "gnome-keyring",
        why: "a desktop's keyring, for the key of the credential store",
    },
];

const FOR_FUZZING: [Component; 1] =
    [Component { program: "g++", package: "g++", why: "the fuzzing engine is C++" }];

/// What `cargo xtask test` needs.
pub fn for_tests() -> Result<()> {
    require(&FOR_TESTS)
}

/// What `cargo xtask soak` needs on top.
pub fn for_fuzzing() -> Result<()> {
    require(&FOR_FUZZING)
}

fn require(components: &[Component]) -> Result<()> {
    let missing: Vec<&Component> =
        components.iter().filter(|component| find(component.program).is_none()).collect();
    if !missing.is_empty() {
        install(&missing)?;
    }
    for component in components {
        match find(component.program) {
            Some(_) => println!("   {:<8} {}", component.program, version(component.program)),
            None => bail!(
                "`{}` is needed ({}) and cannot be had: install the package `{}`",
                component.program,
                component.why,
                component.package
            ),
        }
    }
    Ok(())
}

fn install(missing: &[&Component]) -> Result<()> {
    let packages: Vec<&str> = missing.iter().map(|component| component.package).collect();
    if find("apt-get").is_none() || !is_root()? {
        let needs: Vec<String> = missing.iter().map(|c| format!("`{}` ({})", c.program, c.why)).collect();
        bail!("missing: {}. Install {} and start again", needs.join(", "), packages.join(", "));
    }
    println!("   installing {}", packages.join(", "));
    let quiet =
        |args: &[&str]| Shell::new("apt-get")?.args(args).env("DEBIAN_FRONTEND", "noninteractive").read();
    quiet(&["update"])?;
    quiet(&[["install", "-y", "--no-install-recommends"].as_slice(), &packages].concat())?;
    Ok(())
}

fn is_root() -> Result<bool> {
    Ok(Shell::new("id")?.args(["-u"]).read()?.trim() == "0")
}

fn version(program: &str) -> String {
    let argument = match program {
        "openssl" => "version",
        "busybox" => "--help",
        _ => "--version",
    };
    let said = Shell::new(program).and_then(|shell| shell.args([argument]).read()).unwrap_or_default();
    said.lines().next().unwrap_or("no version told").to_owned()
}
