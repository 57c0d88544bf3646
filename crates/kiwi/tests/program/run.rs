//! Calls through the real program: what is printed, what is recorded, what is left behind.

use crate::support::server::Server;
use crate::support::{TestEnvironment, write};
use serde_json::{Value, json};

const DATA_PROCESSOR: &str = "tool_id: data_processor\nversion: \"2.1.0\"\ntool_type: script\nexecutor: python_runtime\nmanifest:\n  language: python\n  entrypoint: process_data.py\nconfig:\n  timeout: 1800\n  env:\n    PYTHONPATH: \"/app/lib\"\n";

#[test]
fn a_python_folder_a_bash_file_and_a_node_file_run_through_their_chains() {
    let env = TestEnvironment::new();
    env.write("tools/data/data_processor/tool.yaml", DATA_PROCESSOR);
    env.write("tools/data/data_processor/process_data.py", "import os, helper\ndef execute(input):\n    return {'input': input, 'helper': helper.VALUE, 'path': os.environ['PYTHONPATH']}\n");
    env.write("tools/data/data_processor/helper.py", "VALUE = 42\n");
    let (code, out) = env.json(&["run", "data_processor", "input=data.csv"]);
    assert_eq!(code, 0, "{out:#}");
    assert_eq!(out["status"], "success");
    assert_eq!(out["result"], json!({"input": "data.csv", "helper": 42, "path": "/app/lib"}));
    let ids: Vec<_> = out["chain"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| {
            (l["tool_id"].as_str().unwrap(), l["version"].as_str().unwrap(), l["space"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        ids,
        [
            ("data_processor", "2.1.0", "project"),
            ("python_runtime", "1.4.0", "system"),
            ("subprocess", "1.0.0", "system")
        ]
    );
    assert!(out["tool"]["integrity"].as_str().unwrap().starts_with("sha256:"));
    assert!(out["timing_us"]["execute"].as_u64().unwrap() > 0);

    env.write("tools/hi.sh", "echo \"hi $KIWI_PARAM_NAME from $(pwd)\"; echo aside >&2; cat\n");
    let ran = env.run(&["run", "hi", "name=Ada"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout, format!("hi Ada from {}\n{{\"name\":\"Ada\"}}\n", env.project().display()));
    assert!(ran.stderr.contains("aside"));

    env.write("tools/js.js", "exports.execute = async ({n}) => ({double: n * 2});\n");
    let (_, out) = env.json(&["run", "js", "--params", r#"{"n": 21}"#]);
    assert_eq!(out["result"], json!({"double": 42}), "{out:#}");
}

#[test]
fn document_000_runs_as_written_with_its_packages() {
    let env = TestEnvironment::new();
    env.write(
        "tools/data_processor/tool.yaml",
        DATA_PROCESSOR.replace(
            "  entrypoint: process_data.py\n",
            "  entrypoint: process_data.py\n  requires:\n    - six==1.16.0\n",
        ),
    );
    env.write(
        "tools/data_processor/process_data.py",
        "import six\ndef execute(input):\n    return {'six': six.__version__, 'input': input}\n",
    );
    let (code, out) = env.json(&["run", "data_processor", "input=data.csv"]);
    assert_eq!((code, &out["result"]), (0, &json!({"six": "1.16.0", "input": "data.csv"})), "{out:#}");
    // The environment is there now: nothing is installed again.
    let (_, again) = env.json(&["run", "data_processor", "input=b"]);
    assert!(again["timing_us"]["execute"].as_u64() < out["timing_us"]["execute"].as_u64());
}

#[test]
fn a_node_tool_gets_the_packages_it_requires() {
    let env = TestEnvironment::new();
    let manifest = |name: &str, file: &str, config: &str| {
        env.write(
            &format!("tools/{name}/tool.yaml"),
            format!("tool_id: {name}\nversion: \"1.0.0\"\ntool_type: script\nexecutor: node_runtime\nmanifest:\n  entrypoint: {file}\n  requires: [left-pad@1.3.0]\n{config}"),
        );
    };
    manifest("padded", "padded.mjs", "");
    env.write(
        "tools/padded/padded.mjs",
        "import pad from 'left-pad';\nexport const execute = ({s}) => pad(s, 3);\n",
    );
    let (code, out) = env.json(&["run", "padded", "s=x"]);
    assert_eq!((code, &out["result"]), (0, &json!("  x")), "{out:#}");

    // A file that does not say so in its name is a module all the same.
    let one_file = "// kiwi: requires: [left-pad@1.3.0]\nimport pad from 'left-pad';\n";
    env.write("tools/unsaid.js", format!("{one_file}export const execute = ({{s}}) => pad(s, 3);\n"));
    env.write("tools/given.mjs", format!("{one_file}export default ({{s}}) => pad(s, 3);\n"));
    for id in ["unsaid", "given"] {
        let (code, out) = env.json(&["run", id, "s=x"]);
        assert_eq!((code, &out["result"]), (0, &json!("  x")), "{out:#}");
    }

    // What a tool itself puts into NODE_PATH stays in front.
    manifest("own", "own.js", "config: {env: {NODE_PATH: /own/modules}}\n");
    env.write(
        "tools/own/own.js",
        "exports.execute = () => [require('left-pad')('y', 2), process.env.NODE_PATH];\n",
    );
    let (code, out) = env.json(&["run", "own"]);
    assert_eq!((code, &out["result"][0]), (0, &json!(" y")), "{out:#}");
    assert!(out["result"][1].as_str().unwrap().starts_with("/own/modules:/"), "{out:#}");
}

/// What was a tool may become a folder of tools, as the hint about its name says, and no folder around it tells.
#[test]
fn a_tool_that_moved_into_a_folder_of_its_own_is_found_at_once() {
    let env = TestEnvironment::new();
    let manifest = "tool_id: moved\nversion: \"1.0.0\"\ntool_type: script\nexecutor: bash_runtime\nmanifest: {entrypoint: main.sh}\n";
    let folder = env.write("tools/place/tool.yaml", manifest).parent().unwrap().to_owned();
    env.write("tools/place/main.sh", "echo here\n");
    let ran = env.run(&["run", "place"]);
    assert!(ran.stderr.contains("hint: rename the file or folder, or the tool"), "{}", ran.stderr);
    std::fs::create_dir(folder.join("moved")).unwrap();
    for name in ["tool.yaml", "main.sh"] {
        std::fs::rename(folder.join(name), folder.join("moved").join(name)).unwrap();
    }
    let ran = env.run(&["run", "moved"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "here\n"), "{}", ran.stderr);
}

#[test]
fn a_python_function_is_called_with_what_it_can_take() {
    let env = TestEnvironment::new();
    for (number, (head, params, expected)) in [
        ("name='world', times=1", json!({}), json!(["world", 1])),
        ("name='world', times=1", json!({"times": 2}), json!(["world", 2])),
        ("name='world', times=1", json!({"name": "Ada"}), json!(["Ada", 1])),
        ("params", json!({}), json!([{}])),
        ("params", json!({"a": 1}), json!([{"a": 1}])),
        ("params=None", json!({}), json!([null])),
        ("params=None", json!({"a": 1}), json!([{"a": 1}])),
        ("params, times=1", json!({"a": 1, "times": 3}), json!([{"a": 1, "times": 3}, 3])),
        ("**rest", json!({"a": 1}), json!([{"a": 1}])),
        ("", json!({"a": 1}), json!([])),
    ]
    .into_iter()
    .enumerate()
    {
        let names = head.replace("**", "").replace("='world'", "").replace("=1", "").replace("=None", "");
        env.write(
            &format!("tools/called_{number}.py"),
            format!("def execute({head}):\n    return [{names}]\n"),
        );
        let (_, out) = env.json(&["run", &format!("called_{number}"), "--params", &params.to_string()]);
        assert_eq!(out["result"], expected, "def execute({head}) with {params}: {out:#}");
    }
}

#[test]
fn a_key_in_the_wrong_place_is_told_with_the_right_one() {
    let env = TestEnvironment::new();
    env.write(
        "tools/hasty.sh",
        "# kiwi: version: \"1.0.0\"\n# kiwi: timeout: 1\n# kiwi: colour: red\necho done\n",
    );
    let ran = env.run(&["run", "hasty"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{}", ran.stderr);
    let told = "unknown keys are kept but mean nothing: colour, timeout (it belongs in `config`)";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
}

#[test]
fn the_system_helper_runs_through_kiwi_runtime() {
    let (code, out) = TestEnvironment::bare().json(&["run", "kiwi.info"]);
    assert_eq!((code, &out["result"]["name"]), (0, &json!("kiwi")), "{out:#}");
}

#[test]
fn parameters_come_from_everywhere() {
    let env = TestEnvironment::new();
    env.write("tools/echo/tool.yaml", "tool_id: echo\nversion: \"1.0.0\"\ntool_type: bash\nexecutor: {entrypoint: echo.sh}\nparameters: [{name: n, type: integer}, {name: s, default: d}]\n");
    env.write("tools/echo/echo.sh", "cat\n");
    let file = env.write("params.json", r#"{"n": 3}"#);
    assert_eq!(env.run(&["run", "echo", "n=3"]).stdout, "{\"n\":3,\"s\":\"d\"}\n");
    assert_eq!(
        env.run(&["run", "echo", "--params", &format!("@{}", file.display())]).stdout,
        "{\"n\":3,\"s\":\"d\"}\n"
    );
    assert_eq!(
        env.run_with_input(&["run", "echo", "--params", "-"], r#"{"n": 4}"#).stdout,
        "{\"n\":4,\"s\":\"d\"}\n"
    );
    assert_eq!(
        env.run(&["run", "echo", "n=5", "--params", r#"{"n": 4, "s": "x"}"#]).stdout,
        "{\"n\":5,\"s\":\"x\"}\n"
    );
    let (code, twice) = env.json(&["run", "echo", "n=5", "s=x", "n=6"]);
    assert_eq!(
        (code, &twice["error"]["kind"], &twice["error"]["message"]),
        (2, &json!("invalid_params"), &json!("`n` is given twice"))
    );
    for text in [r#"{"n": 1, "n": 2}"#, r#"{"n": 1, "s": {"a": 1, "a": 2}}"#] {
        let (code, twice) = env.json(&["run", "echo", "--params", text]);
        assert_eq!((code, &twice["error"]["kind"]), (2, &json!("invalid_params")), "{twice:#}");
        assert!(twice["error"]["message"].as_str().unwrap().contains("is given twice"), "{twice:#}");
    }
    env.write(
        "tools/twice.sh",
        "# kiwi: version: 1.0.0\n# kiwi: parameters: [{name: n}, {name: m}, {name: n, type: integer}]\ncat\n",
    );
    let (code, twice) = env.json(&["run", "twice", "n=1"]);
    assert_eq!((code, &twice["error"]["kind"]), (2, &json!("invalid_manifest")), "{twice:#}");
    assert!(
        twice["error"]["message"].as_str().unwrap().contains("the parameter `n` is given twice"),
        "{twice:#}"
    );
}

#[test]
fn a_tool_that_misses_the_variable_of_a_long_value_is_told_where_the_value_is() {
    let env = TestEnvironment::new();
    env.write("tools/long.sh", "echo \"${#KIWI_PARAM_TEXT}\"\n");
    env.write("tools/reads.py", "def main(text):\n    raise SystemExit(len(text) // 4096)\n");
    let hint = |tool: &str, text: &str| {
        let params = json!({"text": text, "other": "short"}).to_string();
        env.json(&["run", tool, "--params", &params]).1["error"]["hint"].clone()
    };
    assert_eq!(env.run(&["run", "long", &format!("text={}", "a".repeat(4096))]).stdout, "4096\n");
    let long = "a".repeat(4097);
    assert_eq!(
        hint("long", &long),
        json!("standard input alone has `text`: a value over 4 KiB gets no variable")
    );
    env.write("tools/reads_it.sh", "wc -c; exit 1\n");
    assert_eq!(hint("reads_it", "short"), Value::Null);
    // Its runner has read it for it.
    assert_eq!(hint("reads", &long), Value::Null);
}

#[test]
fn a_failing_tool_keeps_its_output() {
    let env = TestEnvironment::new();
    env.write("tools/bad.sh", "echo '{\"partial\": true}'; echo went wrong >&2; exit 7\n");
    let (code, out) = env.json(&["run", "bad"]);
    assert_eq!(code, 1);
    assert_eq!(
        (&out["status"], &out["error"]["kind"], &out["error"]["details"]["exit_code"]),
        (&json!("error"), &json!("tool_failed"), &json!(7))
    );
    assert_eq!((&out["result"], &out["stderr"]), (&json!({"partial": true}), &json!("went wrong\n")));
    env.write("tools/thrown.js", "exports.execute = () => { throw new Error('no such city'); };\n");
    let message = env.json(&["run", "thrown"]).1["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "the tool ended with exit code 1: Error: no such city");
    let ran = env.run(&["run", "bad"]);
    assert!(ran.stderr.contains("error: the tool ended with exit code 7: went wrong"), "{}", ran.stderr);
}

#[test]
fn what_a_service_says_reaches_the_person_who_asked() {
    let env = TestEnvironment::new();
    let server = Server::start(|asked| match asked.line.split(' ').nth(1) {
        Some("/text") => ("200 OK", "not { json".into()),
        Some("/long") => ("500 Internal Server Error", "x".repeat(5000)),
        _ => ("422 Unprocessable Entity", json!({"why": "no such city"}).to_string()),
    });
    let api = |id: &str| {
        let text = format!(
            "tool_id: {id}\nversion: \"1.0.0\"\ntool_type: api\nconfig: {{url: \"{}\"}}\n",
            server.url(&format!("/{id}"))
        );
        env.write(&format!("tools/{id}.yaml"), text);
        env.run(&["run", id])
    };
    assert_eq!(api("text").stdout, "not { json\n", "the prompt comes on a line of its own");
    let ran = api("city");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("\"why\": \"no such city\"") && ran.stderr.contains("status 422"),
        "{}",
        ran.stderr
    );
    let ran = api("long");
    assert!((2000..3000).contains(&ran.stderr.matches('x').count()), "{}", ran.stderr);
    assert_eq!(env.json(&["run", "long"]).1["error"]["details"]["body"].as_str().unwrap().len(), 5000);
}

#[test]
fn a_module_need_not_say_so_in_its_name() {
    let env = TestEnvironment::new();
    env.write(
        "tools/unsaid.js",
        "import os from 'node:os';\nexport const execute = ({ n }) => Number(n) + os.EOL.length;\n",
    );
    env.write(
        "tools/waits.js",
        "const one = await Promise.resolve(1);\nexport const execute = ({ n }) => Number(n) + one;\n",
    );
    for id in ["unsaid", "waits"] {
        let ran = env.run(&["run", id, "n=41"]);
        assert_eq!((ran.code, ran.stdout.trim()), (0, "42"), "{id}: {}", ran.stderr);
    }
    // What fails in the same way although it is none, fails once.
    std::fs::write(env.project().join("late.mjs"), "await 1;\n").unwrap();
    let late = env.project().join("late.mjs");
    env.write("tools/asks.js", format!("console.error('asked');\nrequire({late:?});\n"));
    let ran = env.run(&["run", "asks"]);
    assert_eq!((ran.code, ran.stderr.matches("asked").count()), (1, 1), "{}", ran.stderr);
}

#[test]
fn shared_modules_are_on_the_path_of_every_language() {
    let env = TestEnvironment::new();
    env.write("tools/lib/units.py", "DOZEN = 12\n");
    env.write("tools/lib/units.sh", "DOZEN=12\n");
    env.write("tools/lib/units.js", "exports.DOZEN = 12;\n");
    env.write("tools/py/tool.yaml", "tool_id: py\nversion: \"1.0.0\"\ntool_type: script\nexecutor: python_runtime\nentrypoint: main.py\nlib_imports: [units]\n");
    env.write("tools/py/main.py", "import units\ndef execute():\n    return units.DOZEN\n");
    env.write("tools/sh.sh", "# kiwi: lib_imports: [units]\nsource units.sh\necho \"$DOZEN\"\n");
    let named = "// kiwi: lib_imports: [units]\n";
    env.write("tools/js.js", format!("{named}exports.execute = () => require('units').DOZEN;\n"));
    let module = "import units from 'units';\nexport const execute = () => units.DOZEN;\n";
    env.write("tools/mjs.mjs", format!("{named}{module}"));
    env.write(
        "tools/one.py",
        "# kiwi: lib_imports: [units]\nimport units\ndef execute():\n    return units.DOZEN\n",
    );
    for id in ["py", "one", "sh", "js", "mjs"] {
        for level in ["standard", "restricted"] {
            let ran = env.run(&["run", id, "--isolation", level]);
            assert_eq!((ran.code, ran.stdout.trim()), (0, "12"), "{id} at {level}: {}", ran.stderr);
        }
    }
}

#[test]
fn what_a_script_imports_in_vain_is_to_be_required() {
    let env = TestEnvironment::new();
    env.write("tools/py.py", "import nobody_has.this\n");
    env.write("tools/cjs.js", "require('@nobody/has/this');\n");
    env.write("tools/esm.mjs", "import 'nobody-has';\n");
    for (id, name) in [("py", "nobody_has"), ("cjs", "@nobody/has"), ("esm", "nobody-has")] {
        let (code, out) = env.json(&["run", id]);
        let hint = out["error"]["hint"].as_str().unwrap_or_default();
        assert_eq!(code, 1, "{id}");
        assert!(hint.contains(&format!("`{name}` in the tool's `requires`")), "{id}: {out:#}");
    }
    env.write("tools/own.mjs", "import './beside.mjs';\n");
    let own = env.run(&["run", "own"]).stderr;
    assert!(own.contains("a tool with more of them is a folder with a tool.yaml"), "{own}");
    assert!(!own.contains("`requires`") && !own.contains("base64"), "{own}");
    env.write("tools/thrown.mjs", "export function execute() {\n  throw new Error('thrown');\n}\n");
    let thrown = env.run(&["run", "thrown"]).stderr;
    assert!(thrown.contains("tools/thrown.mjs:2:9") && !thrown.contains("base64"), "{thrown}");
}

#[test]
fn shared_modules_of_node_hide_neither_node_nor_what_packages_use() {
    let env = TestEnvironment::new();
    for (name, text) in [
        ("util.mjs", "export default 'shared';\n"),
        ("inner.js", "exports.from = 'shared';\n"),
        ("uses.js", "exports.from = require('outer').from;\n"),
        ("shapes/index.mjs", "export default 'folder';\n"),
    ] {
        env.write(&format!("tools/lib/{name}"), text);
    }
    let packages = env.project().join("of_mine/node_modules");
    for (name, text) in [
        ("outer/index.js", "exports.from = require('inner').from;\n"),
        ("inner/index.js", "exports.from = 'package';\n"),
    ] {
        write(&packages.join(name), text);
    }
    let head = format!(
        "// kiwi: lib_imports: [util.mjs, inner, uses, shapes]\n// kiwi: config: {{env: {{NODE_PATH: {:?}}}}}\n",
        packages.display()
    );
    let call = "typeof util.inspect, inner.from, outer.from, uses.from";
    let asked = "import util from 'util';\nimport inner from 'inner';\nimport outer from 'outer';\nimport uses from 'uses';\nimport shapes from 'shapes';\n";
    env.write("tools/asks.mjs", format!("{head}{asked}export const execute = () => [{call}, shapes];\n"));
    let (_, out) = env.json(&["run", "asks"]);
    assert_eq!(out["result"], json!(["function", "shared", "package", "package", "folder"]), "{out:#}");
    let asked = "const [util, inner, outer, uses] = ['util', 'inner', 'outer', 'uses'].map(require);\n";
    env.write("tools/requires.js", format!("{head}{asked}exports.execute = () => [{call}];\n"));
    let (_, out) = env.json(&["run", "requires"]);
    assert_eq!(out["result"], json!(["function", "shared", "package", "package"]), "{out:#}");
}

#[test]
fn a_function_is_called_however_it_is_exported() {
    let env = TestEnvironment::new();
    for (id, text, printed) in [
        ("alone.js", "module.exports = async ({n}) => `${n}!`;", "1!"),
        ("default.mjs", "export default function ({n}) { return `${n}!`; }", "1!"),
        ("inside.mjs", "export default { main: ({n}) => `${n}!` };", "1!"),
        ("both.js", "module.exports = () => 'no'; module.exports.execute = ({n}) => `${n}!`;", "1!"),
        ("class.js", "module.exports = class Helper {}; console.log('ran');", "ran"),
        ("none.js", "exports.helper = 1; console.log('ran');", "ran"),
    ] {
        env.write(&format!("tools/{id}"), text);
        let id = id.split('.').next().unwrap();
        let ran = env.run(&["run", id, "n=1"]);
        assert_eq!((ran.code, ran.stdout.trim()), (0, printed), "{id}: {}", ran.stderr);
    }
}

#[test]
fn the_environment_is_built_from_nothing() {
    let env = TestEnvironment::new();
    env.write("tools/env.sh", "env | cut -d= -f1 | sort | tr '\\n' ' '\n");
    let mut command = env.command(&["run", "env"]);
    let out = command.env("SECRET_TOKEN", "x").env("LANG", "C.UTF-8").output().unwrap();
    let names: Vec<String> =
        String::from_utf8_lossy(&out.stdout).split_whitespace().map(str::to_owned).collect();
    assert!(names.contains(&"LANG".to_owned()) && names.contains(&"HOME".to_owned()), "{names:?}");
    assert!(!names.contains(&"SECRET_TOKEN".to_owned()) && !names.contains(&"USER".to_owned()), "{names:?}");

    env.write("tools/all/tool.yaml", "tool_id: all\nversion: \"1.0.0\"\ntool_type: bash\nexecutor: {entrypoint: a.sh}\nisolation: trusted\n");
    env.write("tools/all/a.sh", "echo \"${SECRET_TOKEN:-none}\"\n");
    let out = env.command(&["run", "all"]).env("SECRET_TOKEN", "x").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "x\n");
    let out =
        env.command(&["run", "all", "--isolation", "standard"]).env("SECRET_TOKEN", "x").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "none\n");
}

#[test]
fn every_call_is_recorded_before_and_after_and_the_lines_are_linked() {
    let env = TestEnvironment::new();
    // The tool itself sees its enter record.
    env.write("tools/look.sh", "cat .ai/logs/audit/*/*.jsonl | wc -l\n");
    let (_, out) = env.json(&["run", "look"]);
    assert_eq!(out["result"], json!(1));
    let lines = env.audit();
    assert_eq!(lines.iter().map(|l| l["event"].as_str().unwrap()).collect::<Vec<_>>(), ["enter", "exit"]);
    for line in &lines {
        assert_eq!(
            (&line["tool"], &line["caller"], &line["session"]),
            (&json!("look"), &json!("cli:tester"), &out["session"])
        );
        assert_eq!(
            (&line["integrity"], &line["chain_hash"]),
            (&out["tool"]["integrity"], &out["chain_hash"])
        );
        assert_eq!(line["chain"].as_array().unwrap().len(), 3);
    }
    assert_eq!((&lines[0]["prev"], &lines[1]["prev"]), (&json!(null), &lines[0]["hash"]));
    assert_eq!(lines[1]["result"]["ok"], true);
    env.run(&["run", "missing"]);
    let last = env.audit().pop().unwrap();
    assert_eq!((&last["event"], &last["result"]["kind"]), (&json!("request"), &json!("not_found")));
}

#[test]
fn a_call_that_cannot_be_recorded_does_not_happen() {
    let env = TestEnvironment::new();
    env.write("tools/touch.sh", "touch ran\n");
    env.write("logs", "a file where the folder should be");
    let (code, out) = env.json(&["run", "touch"]);
    assert_eq!(
        (code, &out["status"], &out["error"]["kind"], &out["error"]["details"]["reason"]["policy_id"]),
        (3, &json!("refused"), &json!("denied"), &json!("audit"))
    );
    assert!(!env.project().join("ran").exists());
    let told = env.run(&["run", "touch"]).stderr;
    assert_eq!(told.matches("cannot be recorded").count(), 1, "{told}");
}

#[test]
fn a_dry_run_shows_and_does_nothing() {
    let env = TestEnvironment::new();
    env.write("tools/touch.sh", "touch ran\n");
    let (code, out) = env.json(&["run", "touch", "a=b", "--dry-run"]);
    assert_eq!(code, 0, "{out:#}");
    assert_eq!(out["result"]["would"]["args"], json!(["-eu", "-o", "pipefail", "<tool:0>/touch.sh"]));
    assert!(!env.project().join("ran").exists());
    assert!(env.audit().is_empty());
}

#[test]
fn a_user_adds_a_runtime_with_yaml_only_and_it_is_validated_like_the_others() {
    let env = TestEnvironment::new();
    env.write_user("tools/awk_runtime.yaml", "tool_id: awk_runtime\nversion: \"1.0.0\"\ntool_type: runtime\nexecutor: subprocess\nentrypoint_is_file: true\nconfig: {command: awk, base_args: [\"-f\"]}\nvalidation:\n  child_schemas:\n    - match: {tool_type: script}\n      schema: {properties: {manifest: {properties: {entrypoint: {pattern: \"\\\\.awk$\"}}, required: [entrypoint]}}}\n");
    env.write("tools/upper/tool.yaml", "tool_id: upper\nversion: \"1.0.0\"\ntool_type: script\nexecutor: awk_runtime\nentrypoint: upper.awk\n");
    env.write("tools/upper/upper.awk", "BEGIN { print toupper(ENVIRON[\"KIWI_PARAM_TEXT\"]) }\n");
    assert_eq!(env.run(&["run", "upper", "text=abc"]).stdout, "ABC\n");
    env.write("tools/wrong/tool.yaml", "tool_id: wrong\nversion: \"1.0.0\"\ntool_type: script\nexecutor: awk_runtime\nentrypoint: wrong.rb\n");
    env.write("tools/wrong/wrong.rb", "");
    let (code, out) = env.json(&["run", "wrong"]);
    assert_eq!((code, &out["error"]["kind"]), (3, &json!("chain_invalid")));
}

#[test]
fn ctrl_c_ends_the_tool_and_everything_it_started() {
    let env = TestEnvironment::new();
    let marker = format!("7777.{}", std::process::id());
    env.write("tools/slow.sh", format!("sleep {marker} & setsid sleep {marker} & echo started; wait\n"));
    let mut child = env.command(&["run", "slow"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!(line, "started\n");
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(crate::support::processes(&format!("sleep {marker}")), Vec::<String>::new());
    assert_eq!(env.audit().last().unwrap()["event"], "exit");
}

#[test]
fn ctrl_c_is_heard_as_soon_as_a_call_is_recorded() {
    let env = TestEnvironment::new();
    env.write("tools/slow.sh", "sleep 60\n");
    let journal = env.project().join(".ai/logs/audit.journal");
    let length = || std::fs::metadata(&journal).map_or(0, |metadata| metadata.len());
    for round in 0..20 {
        let before = length();
        let null = std::process::Stdio::null;
        let mut child = env.command(&["run", "slow"]).stdout(null()).stderr(null()).spawn().unwrap();
        while length() == before {
            assert!(child.try_wait().unwrap().is_none(), "round {round}");
        }
        rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "round {round}");
    }
    assert_eq!(env.json(&["audit", "unfinished"]).1["unfinished"], json!([]));
}

#[test]
fn kill_nine_of_kiwi_leaves_nothing_running() {
    let env = TestEnvironment::new();
    let marker = format!("8888.{}", std::process::id());
    env.write("tools/slow.sh", format!("sleep {marker} & setsid sleep {marker} & echo started; wait\n"));
    let mut child = env.command(&["run", "slow"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !crate::support::processes(&format!("sleep {marker}")).is_empty() {
        assert!(
            std::time::Instant::now() < deadline,
            "still running: {:?}",
            crate::support::processes(&format!("sleep {marker}"))
        );
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn an_api_tool_talks_to_a_real_server() {
    use std::io::{Read, Write};
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for _ in 0..2 {
            let (mut stream, _) = server.accept().unwrap();
            let mut buffer = [0; 4096];
            let n = stream.read(&mut buffer).unwrap();
            asked.push(String::from_utf8_lossy(&buffer[..n]).into_owned());
            let (status, body) = if asked.len() == 1 {
                ("200 OK", r#"{"data": {"temp": 21}}"#)
            } else {
                ("404 Not Found", r#"{"why": "no such city"}"#)
            };
            write!(stream, "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()).unwrap();
        }
        asked
    });
    let env = TestEnvironment::new();
    env.write("tools/weather.yaml", format!("tool_id: weather\nversion: \"1.0.0\"\ntool_type: api\nparameters: {{type: object, properties: {{city: {{type: string}}}}, required: [city]}}\nconfig: {{url: \"http://127.0.0.1:{port}/v1/{{city}}\", query: {{units: metric}}, response: /data/temp}}\n"));
    let (code, out) = env.json(&["run", "weather", "city=a/b c"]);
    assert_eq!((code, &out["result"]), (0, &json!(21)), "{out:#}");
    let (code, out) = env.json(&["run", "weather", "city=x"]);
    assert_eq!(
        (code, &out["error"]["kind"], &out["error"]["details"]["status"]),
        (1, &json!("tool_failed"), &json!(404)),
        "{out:#}"
    );
    assert!(thread.join().unwrap()[0].starts_with("GET /v1/a%2Fb%20c?units=metric HTTP/1.1"));
    let (code, out) = env.json(&["run", "weather", "city=x"]);
    assert_eq!((code, &out["error"]["kind"]), (1, &json!("upstream_unavailable")), "{out:#}");
}
