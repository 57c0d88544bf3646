"""A small MCP server over standard streams, whose tools stand in a file. It needs nothing but Python."""
import json, os, sys

FILE = sys.argv[1]


def tools():
    with open(FILE) as file:
        return json.load(file)


def mark(word):
    with open(FILE + ".log", "a") as log:
        log.write(word + "\n")


def call(params):
    name, arguments = params["name"], params.get("arguments", {})
    mark("call " + name)
    if name == "fail":
        return {"content": [{"type": "text", "text": "no luck\nat all"}], "isError": True}
    if name == "token":
        return {"content": [{"type": "text", "text": os.environ.get("TOKEN", "none")}]}
    return {"content": [{"type": "text", "text": f"{name}: {json.dumps(arguments, sort_keys=True)}"}]}


def answer(message):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}, "resources": {}}
        return {
            "protocolVersion": params["protocolVersion"] if params["protocolVersion"] <= "2025-11-25" else "2025-11-25",
            "capabilities": capabilities,
            "serverInfo": {"name": "test", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": tools()}
    if method == "tools/call":
        return call(params)
    if method == "resources/read":
        mark("read " + params["uri"])
        return {"contents": [{"uri": params["uri"], "text": "what it says"}]}
    if method == "ping":
        return {}
    return None


mark("start")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = answer(message)
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": "method not found"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
