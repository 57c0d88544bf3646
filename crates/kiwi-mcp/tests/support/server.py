"""A server of the older revisions that does what it is told to, good or bad. Only the standard library."""
import json
import os
import subprocess
import sys
import threading
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "ok"
MARK = sys.argv[2] if len(sys.argv) > 2 else "none"
LOCK = threading.Lock()
ANSWERS = {}
TOOLS = ["echo", "wait", "die", "hang", "garbage", "giant", "flood", "complain", "progress", "ask", "change", "env",
         "children", "asked", "many", "twice", "cancelled", "refuse"]
CANCELLED = []
QUESTIONS = {"count": 0}


def send(message):
    with LOCK:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def write(text):
    with LOCK:
        sys.stdout.write(text)
        sys.stdout.flush()


def notify(method, params):
    send({"jsonrpc": "2.0", "method": method, "params": params})


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def ask(method, params):
    QUESTIONS["count"] += 1
    key = f"q{QUESTIONS['count']}"
    done = threading.Event()
    ANSWERS[key] = [done, None]
    send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
    done.wait(20)
    return ANSWERS.pop(key)[1]


def call(name, arguments, meta):
    if name == "echo":
        return text(arguments.get("text", ""), structuredContent={"echo": arguments, "x-unknown": [1]}, **{"x-extra": 7})
    if name == "wait":
        time.sleep(arguments["seconds"])
        return text("waited")
    if name == "die":
        sys.stderr.write("about to die\n")
        sys.stderr.flush()
        os._exit(arguments.get("code", 9))
    if name == "hang":
        time.sleep(3600)
    if name == "garbage":
        write("this is no message\n{\"half\": \n[1, 2\n\n\xff\x00\n{}\n[]\nnull\n{\"jsonrpc\": \"2.0\", \"id\": 99999, \"result\": {}}\n")
        return text("after garbage")
    if name == "giant":
        return text("x" * arguments["size"])
    if name == "flood":
        for number in range(arguments["count"]):
            notify("notifications/message", {"level": "info", "data": number})
            notify("notifications/tools/list_changed", {})
            notify("notifications/nobody/knows", {"x": "y" * 100})
        return text("flooded")
    if name == "complain":
        for number in range(arguments["count"]):
            sys.stderr.write(f"complaint {number} " + "z" * 80 + "\n")
        sys.stderr.flush()
        return text("complained")
    if name == "progress":
        for number in range(3):
            notify("notifications/progress", {"progressToken": meta["progressToken"], "progress": number, "total": 3})
        notify("notifications/progress", {"progressToken": "nobody", "progress": 1})
        notify("notifications/message", {"level": "info", "data": "half way"})
        return text("progressed")
    if name == "ask":
        params = {"message": "your name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
        return text(json.dumps(ask(arguments.get("method", "elicitation/create"), params)))
    if name == "many":
        for number in range(arguments["count"]):
            send({"jsonrpc": "2.0", "id": f"m{number}", "method": "elicitation/create", "params": {"message": "?"}})
        return text("asked a lot")
    if name == "change":
        TOOLS.append("new")
        notify("notifications/tools/list_changed", {})
        return text("changed")
    if name == "env":
        return text(json.dumps({"env": dict(os.environ), "cwd": os.getcwd(), "pid": os.getpid(), "args": sys.argv[1:]}))
    if name == "children":
        subprocess.Popen(["sleep", arguments["mark"]], start_new_session=True)
        return text("started")
    if name == "cancelled":
        return text(json.dumps(CANCELLED))
    if name == "refuse":
        raise ValueError("not today")
    return text(f"no tool {name}", isError=True)


def answer(message):
    key, method, params = message["id"], message["method"], message.get("params") or {}
    try:
        if method == "initialize":
            result = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "chaos", "version": "1", "x": 1},
                      "capabilities": {"tools": {"listChanged": True}, "logging": {}}, "instructions": "be careful"}
        elif method == "tools/list":
            start = int(params.get("cursor", 0))
            page = [{"name": name, "description": "does " + name, "inputSchema": {"type": "object", "$comment": name},
                     "annotations": {"readOnlyHint": name == "echo", "x-own": True}} for name in TOOLS[start:start + 5]]
            result = {"tools": page}
            if MODE == "endless":
                result["nextCursor"] = "0"
            elif start + 5 < len(TOOLS):
                result["nextCursor"] = str(start + 5)
        elif method == "tools/call":
            if params["name"] == "twice":
                send({"jsonrpc": "2.0", "id": key, "result": text("first")})
                send({"jsonrpc": "2.0", "id": key, "result": text("second")})
                return
            result = call(params["name"], params.get("arguments") or {}, params.get("_meta") or {})
        elif method == "ping":
            result = {}
        else:
            send({"jsonrpc": "2.0", "id": key, "error": {"code": -32601, "message": "no such method"}})
            return
    except Exception as error:
        send({"jsonrpc": "2.0", "id": key, "error": {"code": -32000, "message": str(error), "data": {"why": "x"}}})
        return
    send({"jsonrpc": "2.0", "id": key, "result": result})


def main():
    if MODE == "exit":
        sys.stderr.write("no configuration\n")
        sys.exit(3)
    if MODE == "hang":
        time.sleep(3600)
    if MODE == "deaf":
        subprocess.Popen(["sleep", MARK], start_new_session=True)
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)
    if MODE == "slow":
        time.sleep(5)
    if MODE == "noisy":
        write("starting up...\nnot json {\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            waiting = ANSWERS.get(message["id"])
            if waiting:
                waiting[1] = message.get("result", message.get("error"))
                waiting[0].set()
        elif message["method"] == "notifications/cancelled":
            CANCELLED.append(message["params"].get("requestId"))
        elif "id" in message:
            if MODE == "mute" and message["method"] == "server/discover":
                continue
            threading.Thread(target=answer, args=(message,), daemon=True).start()


main()
