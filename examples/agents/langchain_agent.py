"""An agent with LangChain: published skills and `run_code` become tools of its loop."""

import os
import sys

from langchain.agents import create_agent
from langchain_core.tools import BaseTool, StructuredTool
from langchain_openai import ChatOpenAI
from skillbox import Client

sandboxes = Client()


def tool(definition: dict) -> BaseTool:
    name = definition["name"]
    return StructuredTool.from_function(
        # A failing program and a rejected request are texts, too, so that the model can correct itself.
        func=lambda **arguments: sandboxes.tool_result(name, arguments),
        name=name,
        description=definition["description"],
        args_schema=definition["parameters"],
    )


def answer(question: str) -> str:
    tools = [tool(definition["function"]) for definition in sandboxes.tools("openai")]
    agent = create_agent(ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-5")), tools)
    state = agent.invoke({"messages": [{"role": "user", "content": question}]}, {"recursion_limit": 41})
    return state["messages"][-1].content


print(answer(sys.argv[1]))
