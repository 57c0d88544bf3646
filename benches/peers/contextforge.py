"""Starts mcp-contextforge-gateway with one MCP server behind it, says where it serves, and ends with standard input.

    python contextforge.py SCRATCH URL PORT
"""

import json
import os
import secrets
import subprocess
import sys
import time
import urllib.request

SCRATCH, URL, PORT = sys.argv[1], sys.argv[2], sys.argv[3]
BASE = f"http://127.0.0.1:{PORT}"
KEY, OTHER = secrets.token_urlsafe(48), secrets.token_urlsafe(48)
ENVIRONMENT = dict(
    os.environ,
    HOME=SCRATCH,
    JWT_SECRET_KEY=KEY,
    AUTH_ENCRYPTION_SECRET=OTHER,
    PLATFORM_ADMIN_PASSWORD="Only-for-measuring-1!",
    BASIC_AUTH_PASSWORD="Only-for-measuring-1!",
    SSRF_ALLOW_LOCALHOST="true",
    SSRF_ALLOW_PRIVATE_NETWORKS="true",
    RATE_LIMITING_ENABLED="false",
    LOG_LEVEL="ERROR",
    DATABASE_URL=f"sqlite:///{SCRATCH}/gateway.db",
    CACHE_TYPE="memory",
)
BIN = os.path.dirname(sys.executable)


def ask(method, path, body=None):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(BASE + path, data=data, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def patiently(work, seconds=90):
    end = time.monotonic() + seconds
    while True:
        try:
            return work()
        except Exception:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


gateway = subprocess.Popen(
    [f"{BIN}/mcpgateway", "--host", "127.0.0.1", "--port", PORT, "--log-level", "error"],
    env=ENVIRONMENT,
    cwd=SCRATCH,
    stdout=subprocess.DEVNULL,
    stderr=open(f"{SCRATCH}/gateway.log", "wb"),
    start_new_session=True,
)
try:
    TOKEN = subprocess.check_output(
        [sys.executable, "-m", "mcpgateway.utils.create_jwt_token", "--username", "admin@example.com", "--exp", "10080", "--secret", KEY],
        env=ENVIRONMENT,
        cwd=SCRATCH,
        stderr=subprocess.DEVNULL,
        text=True,
    ).strip().splitlines()[-1]
    patiently(lambda: ask("GET", "/health"))
    patiently(lambda: ask("POST", "/gateways", {"name": "up", "url": URL, "transport": "STREAMABLEHTTP"}), 30)
    tools = patiently(lambda: ask("GET", "/tools") or 1 / 0, 30)
    tools = tools.get("data", tools) if isinstance(tools, dict) else tools
    echo = next(tool for tool in tools if tool["name"].endswith("echo"))
    server = ask("POST", "/servers", {"server": {"name": "bench", "associated_tools": [echo["id"]]}})
    said = {"address": f"127.0.0.1:{PORT}", "path": f"/servers/{server['id']}/mcp", "token": f"Bearer {TOKEN}", "tool": echo["name"], "pid": gateway.pid}
    print(json.dumps(said), flush=True)
    sys.stdin.read()
finally:
    os.killpg(gateway.pid, 9)
