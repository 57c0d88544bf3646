"""Times the same step in the Python peer `ryeos-mcp`: a dry run of a three-link chain.

Run by `cargo xtask bench kernel` with the interpreter of the peer's own virtual environment:

    python ryeos.py --scratch DIR [--calls N] [--warmup N]

Sets the peer up in a scratch HOME (a signing key, one signed Python tool), asks its MCP server over stdio for
`execute` with `dry_run` (resolve, verify, validate; nothing is started), and prints one JSON object with the times
in microseconds: `stdio` holds request and response, `in_process` the peer's own handler without any transport.
"""

import argparse
import asyncio
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

TOOL = '''"""Say hello."""

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/function"
__category__ = "demo"
__tool_description__ = "Say hello"

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": [],
}


def execute(params: dict, project_path: str) -> dict:
    return {"success": True, "hello": params.get("name", "world")}
'''
ITEM = "tool:demo/hello"


class Server:
    """The peer's MCP server, spoken to in lines of JSON-RPC."""

    def __init__(self, environment):
        program = Path(sys.executable).parent / "ryeos-mcp"
        self.process = subprocess.Popen(
            [str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self.last = 0
        self.request(
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "kiwi-bench", "version": "1"},
            },
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit("the peer ended while a request was open")
            message = json.loads(line)
            if message.get("id") == self.last:
                if "error" in message:
                    raise SystemExit(f"the peer refused {method}: {message['error']}")
                return message["result"]

    def call(self, tool, **arguments):
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        return json.loads(result["content"][0]["text"])

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()


def must(answer, what):
    """A benchmark of calls that fail would be worth nothing."""
    if answer.get("status") not in ("success", "validation_passed", "signed"):
        raise SystemExit(f"the peer failed to {what}: {json.dumps(answer)[:2000]}")
    return answer


def figures(samples):
    samples = sorted(samples)
    return {
        "calls": len(samples),
        "p50_us": statistics.median(samples),
        "p95_us": samples[int(len(samples) * 0.95)],
        "min_us": samples[0],
    }


def microseconds(since):
    return (time.perf_counter_ns() - since) / 1000


def over_stdio(environment, project, calls, warmup):
    server = Server(environment)
    try:
        keys = {"item_id": "tool:rye/core/keys/keys", "project_path": project}
        must(server.call("execute", parameters={"action": "generate"}, **keys), "make a signing key")
        must(server.call("execute", parameters={"action": "trust", "space": "project"}, **keys), "trust the key")
        must(server.call("sign", item_id=ITEM, project_path=project), "sign the tool")
        ask = {"item_id": ITEM, "project_path": project, "parameters": {"name": "kiwi"}}
        chain = must(server.call("execute", dry_run=True, **ask), "dry-run the tool")
        samples = []
        for turn in range(warmup + calls):
            since = time.perf_counter_ns()
            answer = server.call("execute", dry_run=True, **ask)
            elapsed = microseconds(since)
            must(answer, "dry-run the tool")
            if turn >= warmup:
                samples.append(elapsed)
        return figures(samples), chain
    finally:
        server.stop()


def in_process(project, calls, warmup):
    from rye.actions.execute import ExecuteTool
    from rye.utils.path_utils import get_user_space

    execute = ExecuteTool(str(get_user_space()))
    ask = {"item_id": ITEM, "project_path": project, "parameters": {"name": "kiwi"}, "dry_run": True}

    async def measure():
        samples = []
        for turn in range(warmup + calls):
            since = time.perf_counter_ns()
            answer = await execute.handle(**ask)
            elapsed = microseconds(since)
            must(answer, "dry-run the tool in process")
            if turn >= warmup:
                samples.append(elapsed)
        return samples

    return figures(asyncio.run(measure()))


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scratch", required=True, type=Path)
    arguments.add_argument("--calls", type=int, default=200)
    arguments.add_argument("--warmup", type=int, default=20)
    options = arguments.parse_args()

    scratch = options.scratch.resolve()
    home, project = scratch / "home", scratch / "project"
    tool = project / ".ai" / "tools" / "demo" / "hello.py"
    tool.parent.mkdir(parents=True, exist_ok=True)
    home.mkdir(parents=True, exist_ok=True)
    tool.write_text(TOOL)

    binaries = str(Path(sys.executable).parent)
    os.environ["HOME"] = str(home)
    os.environ["PATH"] = binaries + os.pathsep + os.environ.get("PATH", "/usr/bin:/bin")
    os.environ["RYE_PYTHON"] = sys.executable
    os.environ["RYE_KERNEL_PYTHON"] = sys.executable

    stdio, answer = over_stdio(dict(os.environ), str(project), options.calls, options.warmup)
    print(
        json.dumps(
            {
                "peer": "ryeos-mcp",
                "version": importlib.metadata.version("ryeos-mcp"),
                "engine": importlib.metadata.version("ryeos-engine"),
                "python": sys.version.split()[0],
                "stdio": stdio,
                "in_process": in_process(str(project), options.calls, options.warmup),
                "answer": answer,
            }
        )
    )


if __name__ == "__main__":
    main()
