"""A server of the revision 2026-07-28: no session, every request says who asks. Only the standard library."""
import json
import sys
import threading
import time

LOCK = threading.Lock()
SEEN = []
SUBSCRIPTIONS = []
TOOLS = ["ask", "seen", "endless", "change", "state"]


def send(message):
    with LOCK:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def complete(**result):
    return {"resultType": "complete", **result}


def text(words):
    return complete(content=[{"type": "text", "text": words}])


def call(params):
    name, arguments = params["name"], params.get("arguments") or {}
    if name == "ask":
        answers = params.get("inputResponses")
        if answers is None:
            return {"resultType": "input_required", "requestState": "kept-7", "inputRequests": {
                "b": {"method": "elicitation/create", "params": {"message": "second?"}},
                "a": {"method": "elicitation/create", "params": {"message": "first?"}}}}
        return text(json.dumps({"answers": answers, "state": params.get("requestState"), "arguments": arguments}))
    if name == "state":
        rounds = int(params.get("requestState", "0"))
        return text(f"after {rounds}") if rounds == 3 else {"resultType": "input_required", "requestState": str(rounds + 1)}
    if name == "endless":
        return {"resultType": "input_required", "requestState": "x"}
    if name == "change":
        TOOLS.append("new")
        for subscription in SUBSCRIPTIONS:
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                  "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": subscription}}})
        return text("changed")
    return text(json.dumps(SEEN))


def answer(message):
    key, method, params = message["id"], message["method"], message.get("params") or {}
    meta = params.get("_meta") or {}
    SEEN.append({"method": method, "meta": meta})
    if meta.get("io.modelcontextprotocol/protocolVersion") != "2026-07-28":
        send({"jsonrpc": "2.0", "id": key, "error": {"code": -32600, "message": "who asks?"}})
        return
    if method == "server/discover":
        result = complete(supportedVersions=["2026-07-28"], ttlMs=0, cacheScope="private",
                          _meta={"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "2"}}, capabilities={"tools": {"listChanged": True}})
    elif method == "tools/list":
        result = complete(ttlMs=0, cacheScope="private",
                          tools=[{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS])
    elif method == "tools/call":
        result = call(params)
    elif method == "subscriptions/listen":
        SUBSCRIPTIONS.append(key)
        send({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
              "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": key}, "notifications": params["notifications"]}})
        return
    else:
        send({"jsonrpc": "2.0", "id": key, "error": {"code": -32601, "message": "no such method"}})
        return
    send({"jsonrpc": "2.0", "id": key, "result": result})


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        threading.Thread(target=answer, args=(message,), daemon=True).start()
