"""An agent with the Anthropic SDK: the model calls published skills, and `run_code` for code that it writes."""

import os
import sys

from anthropic import Anthropic
from skillbox import Client

TURNS = 20


def answer(question: str) -> str:
    model, sandboxes = Anthropic(), Client()
    tools = sandboxes.tools("anthropic")
    messages = [{"role": "user", "content": question}]
    for _ in range(TURNS):
        reply = model.messages.create(
            model=os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-5"), max_tokens=4096, messages=messages, tools=tools
        )
        messages.append({"role": "assistant", "content": reply.content})
        if reply.stop_reason != "tool_use":
            return "".join(block.text for block in reply.content if block.type == "text")
        # A failing program and a rejected request are texts, too, so that the model can correct itself.
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": sandboxes.tool_result(call.name, call.input)}
            for call in reply.content
            if call.type == "tool_use"
        ]
        messages.append({"role": "user", "content": results})
    return f"no answer after {TURNS} turns"


print(answer(sys.argv[1]))
