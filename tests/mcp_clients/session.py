"""A client's life with the Python SDK `mcp`: prints each step, and fails where an answer is wrong.

Usage: session.py URL KEY OTHER_KEY   (a key of another tenant)
"""

import asyncio
import base64
import sys

from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

URL, KEY, OTHER_KEY = sys.argv[1:]
SLEEPS = "from runtime import log\nlog.info('begun')\nimport time\ntime.sleep(100)"


def connected(key, mode):
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {key}"})
    return Client(streamable_http_client(URL, http_client=http), mode=mode)


def said(mode, text):
    print(f"mcp {mode}: {text}", flush=True)


async def session(mode):
    async with connected(KEY, mode) as client, connected(OTHER_KEY, mode) as other:
        said(mode, f"connected, protocol {client.protocol_version}, server {client.server_info.name}")
        names = [tool.name for tool in (await client.list_tools()).tools]
        said(mode, f"tools {names}")
        assert "text-summary" in names and "run_code" in names
        others = [tool.name for tool in (await other.list_tools()).tools]
        said(mode, f"tools of the other tenant {others}")
        assert "text-summary" not in others

        ran = await client.call_tool("text-summary", {"text": "One. Two. Three.", "sentences": 1})
        said(mode, f"text-summary {' '.join(ran.content[0].text.split())[:60]} …")
        assert not ran.is_error

        code = "rows = open('cities.csv').read() * 4000\nopen('/sandbox/out/files/large.csv', 'w').write(rows)\nprint(len(rows))"
        files = {"cities.csv": base64.b64encode(b"Oslo,709000\n").decode()}
        ran = await client.call_tool("run_code", {"code": code, "files": files})
        assert ran.content[0].text == "48000\n", ran
        [link] = [block for block in ran.content if block.type == "resource_link"]
        said(mode, f"run_code with a file: a link to {link.name}, {link.size} bytes")
        read = await client.read_resource(link.uri)
        said(mode, f"read {len(read.contents[0].text)} bytes of {link.uri}")
        assert read.contents[0].text == "Oslo,709000\n" * 4000
        try:
            await other.read_resource(link.uri)
            raise AssertionError("another tenant read the file")
        except Exception as error:
            if isinstance(error, AssertionError):
                raise
            said(mode, f"the other tenant reads the same: {error}")

        begun = asyncio.Event()

        async def progress(done, total, message):
            said(mode, f"progress {done}: {message}")
            if message == "begun":
                begun.set()

        call = asyncio.create_task(client.call_tool("run_code", {"code": SLEEPS}, progress_callback=progress))
        await asyncio.wait_for(begun.wait(), 60)
        call.cancel()
        await asyncio.wait([call])
        said(mode, "cancelled a long run")
        both = await asyncio.gather(
            client.call_tool("run_code", {"code": "print('first')"}),
            other.call_tool("run_code", {"code": "print('second')"}),
        )
        said(mode, f"two tenants at once: {[ran.content[0].text for ran in both]}")
        failed = await client.call_tool("run_code", {"code": "1 / 0"})
        assert failed.is_error and "ZeroDivisionError" in failed.content[0].text
        said(mode, f"a failed run: {failed.content[0].text.splitlines()[0]}")


for mode in ("legacy", "auto"):
    asyncio.run(session(mode))
