"""The same tools with `fastmcp`. Usage: fastmcp_session.py URL KEY"""

import asyncio
import sys

from fastmcp import Client
from fastmcp.client.auth import BearerAuth

URL, KEY = sys.argv[1:]


async def main():
    async with Client(URL, auth=BearerAuth(KEY)) as client:
        names = [tool.name for tool in await client.list_tools()]
        assert "text-summary" in names, names
        ran = await client.call_tool("run_code", {"code": "print(6 * 7)"})
        assert ran.content[0].text == "42\n", ran
        read = await client.read_resource("skill://text-summary/SKILL.md")
        assert "text-summary" in read[0].text
        print(f"fastmcp: tools {names}, run_code {ran.content[0].text!r}, skill of {len(read[0].text)} characters")


asyncio.run(main())
