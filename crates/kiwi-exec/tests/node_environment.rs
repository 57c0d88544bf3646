//! Prepared folders of Node packages, built for real. Needs a registry that npm can reach.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod support;

use kiwi_exec::{Environment, Environments, ExecError, Package, Process, Wanted, Wish};
use kiwi_model::{Digest, ErrorKind, Explain, Language, Pin, Text};
use std::path::Path;
use support::packages::{
    begin_and_leave, completed, differences, environments, interpreter, pinned, versions,
};
use support::{Bench, block_on, file, folder, one_file, process, wait_until};

fn wish(requires: &[&str]) -> Wish {
    support::packages::named(Language::Node, requires)
}

fn prepare(environments: &Environments, wish: &Wish) -> Result<Environment, ExecError> {
    block_on(environments.prepare(wish, &|_: &str| ()))
}

/// A tool behind the runner of `node_runtime`, as the gate starts it.
fn tool(environment: &Environment, tool: Package, verified: &str, shown: Text) -> Process {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../system/tools/runtimes/node_runtime");
    let runner = std::fs::read(runtime.join("runner.cjs")).unwrap();
    let mut process = process(environment.program.to_str().unwrap(), &["--preserve-symlinks-main"]);
    process.args.extend([Text::file(1, "runner.cjs"), Text::file(0, verified), shown]);
    process.packages = vec![tool, one_file(1, file("runner.cjs", &runner, false))];
    let modules = environment.modules.as_ref().unwrap().to_str().unwrap();
    process.env.push(("NODE_PATH".into(), Text::literal(modules)));
    process
}

#[test]
fn packages_are_found_by_require_and_by_import() {
    let bench = Bench::new();
    let environments = environments(&bench, "cache");
    let wish = wish(&["left-pad@1.3.0", "ms@2.1.3"]);
    assert_eq!(environments.ready(&wish).unwrap(), None);
    let environment = prepare(&environments, &wish).unwrap();
    assert_eq!(versions(&environment.installed), ["left-pad==1.3.0", "ms==2.1.3"]);
    assert_eq!(environments.ready(&wish).unwrap().as_ref(), Some(&environment));
    let asked = bench.output(process(environment.program.to_str().unwrap(), &["--version"]));
    assert_eq!(asked.trim(), format!("v{}", environment.interpreter));

    // A folder above the tool that happens to hold a package of the same name is not what was asked for.
    let project = bench.home.path().join("project");
    let other = project.join("node_modules/left-pad");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("index.js"), "module.exports = () => 'other';").unwrap();
    let shown = |name: &str| Text::literal(project.join(name).to_str().unwrap());

    let common = b"const pad = require('left-pad');\nexports.execute = async () => pad('x', 3) + (await import('ms')).default(1000);\n";
    let module = b"import pad from 'left-pad';\nimport ms from 'ms';\nexport const execute = () => pad('x', 3) + ms(1000);\n";
    for (name, source) in [("tool.js", &common[..]), ("tool.mjs", &module[..])] {
        let one = tool(&environment, one_file(0, file(name, source, false)), name, shown(name));
        assert_eq!(bench.output(one), "  x1s", "{name}");
        let helper = file("helper.js", b"", false);
        let files = folder(0, vec![file(name, source, false), helper]);
        let many = tool(&environment, files, name, Text::file(0, name));
        assert_eq!(bench.output(many), "  x1s", "{name} in a folder");
    }
}

#[test]
fn pins_give_the_same_tree_again() {
    let bench = Bench::new();
    let wish = wish(&["debug@2.6.9", "ms@2.1.3", "lp@npm:left-pad@1.3.0"]);
    let first = prepare(&environments(&bench, "first"), &wish).unwrap();
    assert_eq!(
        versions(&first.installed),
        ["debug==2.6.9", "debug/node_modules/ms==2.0.0", "lp==npm:left-pad@1.3.0", "ms==2.1.3"]
    );
    let second = environments(&bench, "second");
    let again = prepare(&second, &pinned(&wish, &first.installed)).unwrap();
    assert_eq!((&again.installed, &again.interpreter), (&first.installed, &first.interpreter));
    let program = again.program.to_str().unwrap();
    let mut nested = process(program, &["-p", "require('debug').humanize(1000) + require('ms')(2000)"]);
    nested.env.push(("NODE_PATH".into(), Text::literal(again.modules.unwrap().to_str().unwrap())));
    assert_eq!(bench.output(nested), "1s2s\n");

    // What is not pinned is not installed, whatever depends on it.
    let alone = prepare(&second, &pinned(&wish, &first.installed[..1])).unwrap();
    assert_eq!(alone.installed, first.installed[..1]);

    // Other files under the same version are refused.
    let third = environments(&bench, "third");
    let mut pins = first.installed.clone();
    let ms = pins.pop().unwrap();
    pins.push(Pin { integrity: Some(Digest::of(b"other")), ..ms.clone() });
    let wrong = pinned(&wish, &pins);
    assert_eq!(
        differences(prepare(&third, &wrong)),
        [(
            "ms".to_owned(),
            Some(format!("2.1.3 {}", Digest::of(b"other"))),
            Some(format!("2.1.3 {}", ms.integrity.unwrap()))
        )]
    );
    assert_eq!((third.ready(&wrong).unwrap(), completed(&third, Language::Node)), (None, 0));
}

#[test]
fn scripts_of_packages_run_only_when_allowed() {
    let bench = Bench::new();
    let environments = environments(&bench, "cache");
    let wish = wish(&["@lavamoat/preinstall-always-fail@3.0.0"]);
    let environment = prepare(&environments, &wish).unwrap();
    assert_eq!(versions(&environment.installed), ["@lavamoat/preinstall-always-fail==3.0.0"]);
    let allowed = Wish { allow_source_builds: true, ..wish };
    let error = prepare(&environments, &allowed).unwrap_err();
    assert!(matches!(error, ExecError::EnvironmentFailed { .. }), "{error}");
    assert_eq!(environments.ready(&allowed).unwrap(), None);
    assert_eq!(environments.kept().len(), 1, "what came of the failed build is gone");
}

#[test]
fn only_packages_of_the_registry_are_installed() {
    let bench = Bench::new();
    let environments = environments(&bench, "cache");
    for bad in
        ["--global", "./x", "file:../x", "x@link:/x", "git+https://h/x", "user/repo", "https://h/x.tgz"]
    {
        let error = prepare(&environments, &wish(&[bad])).unwrap_err();
        assert!(matches!(error, ExecError::BadRequirement { .. }), "{bad}: {error}");
        assert_eq!(error.kind(), ErrorKind::InvalidManifest);
    }
    let range = Pin { name: "ms".into(), version: "^2".into(), integrity: None };
    assert!(prepare(&environments, &pinned(&wish(&[]), &[range])).is_err());
    let missing = prepare(&environments, &wish(&["@kiwi-no-such-scope/package@0.0.1"])).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::MissingRequirement);
    assert!(missing.to_string().starts_with("npm could not install"), "{missing}");
}

#[test]
fn without_npm_nothing_is_tried() {
    let bench = Bench::new();
    let environments = Environments { search_path: String::new(), ..environments(&bench, "cache") };
    let alone = bench.home.path().join("node");
    std::os::unix::fs::symlink(interpreter(Language::Node), &alone).unwrap();
    let error = prepare(&environments, &Wish { interpreter: alone, ..wish(&["ms@2.1.3"]) }).unwrap_err();
    assert_eq!(
        (error.kind(), &*error.to_string()),
        (ErrorKind::MissingRequirement, "program `npm` was not found")
    );
    assert!(error.hint().unwrap().contains("npm"));
}

#[test]
fn an_interrupted_build_is_not_used_and_leaves_nothing() {
    let bench = Bench::new();
    let environments = environments(&bench, "cache");
    let wish = Wish { packages: Wanted::Named(vec!["ms@2.1.3".into()]), ..wish(&[]) };
    begin_and_leave(&environments, &wish);
    wait_until("npm is gone, and what it had built", || {
        !is_worked_in(&environments.cache) && environments.kept().is_empty()
    });
    assert_eq!(environments.ready(&wish).unwrap(), None);
    assert_eq!(versions(&prepare(&environments, &wish).unwrap().installed), ["ms==2.1.3"]);
}

/// Whether any process has its working folder there.
fn is_worked_in(folder: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok())
        .any(|cwd| cwd.starts_with(folder))
}
