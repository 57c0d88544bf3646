"""An agent on the Python SDK: all four tools, errors and cancellation. Prints one JSON object.

    python agent.py TARGET        TARGET: an address, or the program to start
"""
import asyncio
import json
import os
import sys
import time

TARGET = sys.argv[1]
STEPS = json.loads(sys.argv[2])


async def play(ask, stop=None):
    """`ask(tool, arguments)` gives (is_error, structured content); `stop()` is needed where giving up tells nobody."""
    said = {}
    for name, tool, arguments in STEPS["steps"]:
        is_error, content = await ask(tool, arguments)
        said[name] = {"is_error": is_error, "content": content}
    together = await asyncio.gather(*(ask("execute", arguments) for arguments in STEPS["together"]))
    said["together"] = [content for _, content in together]
    since = time.monotonic()
    task = asyncio.create_task(ask("execute", STEPS["slow"]))
    await asyncio.sleep(1.0)
    if stop:
        await stop()
    task.cancel()
    try:
        await task
        said["cancelled"] = False
    except asyncio.CancelledError:
        said["cancelled"] = True
    is_error, content = await ask("help", {"topic": "stuck"})
    said["after"] = {"is_error": is_error, "content": content}
    said["seconds"] = time.monotonic() - since
    print(json.dumps(said))


async def new():
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    target = TARGET
    if not TARGET.startswith("http"):
        target = stdio_client(StdioServerParameters(command=TARGET, args=["mcp"], env=dict(os.environ)))
    async with Client(target) as client:

        async def ask(tool, arguments):
            result = await client.call_tool(tool, arguments)
            return bool(result.is_error), result.structured_content

        await play(ask)


async def old():
    from contextlib import AsyncExitStack

    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamablehttp_client

    async with AsyncExitStack() as stack:
        if TARGET.startswith("http"):
            read, write, _ = await stack.enter_async_context(streamablehttp_client(TARGET))
        else:
            parameters = StdioServerParameters(command=TARGET, args=["mcp"], env=dict(os.environ))
            read, write = await stack.enter_async_context(stdio_client(parameters))
        session = await stack.enter_async_context(ClientSession(read, write))
        await session.initialize()

        async def ask(tool, arguments):
            result = await session.call_tool(tool, arguments)
            return bool(result.isError), result.structuredContent

        async def stop():
            from mcp.types import CancelledNotification, CancelledNotificationParams, ClientNotification

            params = CancelledNotificationParams(requestId=session._request_id - 1, reason="enough")
            note = CancelledNotification(method="notifications/cancelled", params=params)
            await session.send_notification(ClientNotification(note))

        await play(ask, stop)


try:
    from mcp import Client  # noqa: F401

    asyncio.run(new())
except ImportError:
    asyncio.run(old())
