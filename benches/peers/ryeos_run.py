"""Runs tools in the Python peer `ryeos-mcp`, one whenever it is asked.

Run by `cargo xtask bench exec` with the interpreter of the peer's own virtual environment:

    python ryeos_run.py SCRATCH

Sets the peer up in a scratch HOME (a signing key, a signed Python tool with three packages, a signed Bash tool) and
then answers each line on standard input with the microseconds of one call: `stdio python`, `stdio bash` ask its MCP
server and hold request and response, `rehearse bash` the same with `dry_run`, `handler python`, `handler bash` its own handler without any transport.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from ryeos import Server, microseconds, must

PYTHON = '''"""Say hello in the words of three packages."""

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/function"
__category__ = "demo"
__tool_description__ = "Say hello in the words of three packages"

CONFIG_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": []}

import certifi
import idna
import packaging.version


def execute(params: dict, project_path: str) -> dict:
    known = packaging.version.Version("1.2.3").major
    return {"hello": idna.encode(params["name"]).decode(), "known": known, "trusts": bool(certifi.where())}
'''
BASH = """version: "1.0.0"
tool_type: bash
executor_id: rye/core/runtimes/bash/bash
category: demo
description: Say hello

config:
  command: /bin/bash
  args: ["-c", "echo hello"]
"""
CALLS = {
    "python": ("tool:demo/words", {"name": "kiwi"}, "known"),
    "bash": ("tool:demo/hello", {}, "hello\\n"),
}


def main():
    scratch = Path(sys.argv[1]).resolve()
    home, project = scratch / "home", scratch / "project"
    tools = project / ".ai" / "tools" / "demo"
    tools.mkdir(parents=True, exist_ok=True)
    home.mkdir(parents=True, exist_ok=True)
    (tools / "words.py").write_text(PYTHON)
    (tools / "hello.yaml").write_text(BASH)
    os.environ["HOME"] = str(home)
    os.environ["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ.get("PATH", "/usr/bin:/bin")
    os.environ["RYE_PYTHON"] = os.environ["RYE_KERNEL_PYTHON"] = sys.executable

    from rye.actions.execute import ExecuteTool
    from rye.utils.path_utils import get_user_space

    server = Server(dict(os.environ))
    try:
        keys = {"item_id": "tool:rye/core/keys/keys", "project_path": str(project)}
        must(server.call("execute", parameters={"action": "generate"}, **keys), "make a signing key")
        must(server.call("execute", parameters={"action": "trust", "space": "project"}, **keys), "trust the key")
        for item, _, _ in CALLS.values():
            must(server.call("sign", item_id=item, project_path=str(project)), f"sign {item}")
        handler = ExecuteTool(str(get_user_space()))
        with asyncio.Runner() as runner:
            for line in sys.stdin:
                way, tool = line.split()
                item, parameters, expected = CALLS[tool]
                ask = {"item_id": item, "project_path": str(project), "parameters": parameters}
                since = time.perf_counter_ns()
                if way == "rehearse":
                    answer, expected = server.call("execute", dry_run=True, **ask), ""
                elif way == "stdio":
                    answer = server.call("execute", **ask)
                else:
                    answer = runner.run(handler.handle(**ask))
                elapsed = microseconds(since)
                said = json.dumps(must(answer, f"run {item}"))
                if expected not in said:
                    raise SystemExit(f"the peer ran {item} and said {said[:2000]}")
                print(elapsed, flush=True)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
