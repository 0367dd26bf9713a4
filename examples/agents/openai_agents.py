"""An agent with the OpenAI Agents SDK: the server's tools come by the Model Context Protocol."""

import asyncio
import os
import sys

from agents import Agent, Runner
from agents.mcp import MCPServerStreamableHttp


async def answer(question: str) -> str:
    server = MCPServerStreamableHttp(
        params={
            "url": os.environ["SKILLBOX_SERVER_URL"] + "/mcp",
            "headers": {"Authorization": "Bearer " + os.environ["SKILLBOX_API_KEY"]},
        },
        # The limit of one call: a program may run for minutes.
        client_session_timeout_seconds=660,
    )
    async with server:
        agent = Agent("assistant", model=os.environ.get("OPENAI_MODEL", "gpt-5"), mcp_servers=[server])
        return (await Runner.run(agent, question, max_turns=20)).final_output


print(asyncio.run(answer(sys.argv[1])))
