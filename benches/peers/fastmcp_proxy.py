"""Serves fastmcp's proxy in front of an MCP server over HTTP until standard input ends.

    python fastmcp_proxy.py URL PORT
"""

import json
import os
import sys
import threading

from fastmcp.server import create_proxy

URL, PORT = sys.argv[1], int(sys.argv[2])


def leave_with_parent():
    sys.stdin.read()
    os._exit(0)


threading.Thread(target=leave_with_parent, daemon=True).start()
print(json.dumps({"address": f"127.0.0.1:{PORT}", "path": "/mcp"}), flush=True)
create_proxy(URL).run(transport="http", host="127.0.0.1", port=PORT, log_level="error", show_banner=False)
