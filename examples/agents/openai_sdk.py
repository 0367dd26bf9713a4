"""An agent with the OpenAI SDK: the model calls published skills, and `run_code` for code that it writes."""

import os
import sys

from openai import OpenAI
from skillbox import Client

TURNS = 20


def answer(question: str) -> str:
    model, sandboxes = OpenAI(), Client()
    tools = sandboxes.tools("openai")
    messages = [{"role": "user", "content": question}]
    for _ in range(TURNS):
        reply = model.chat.completions.create(
            model=os.environ.get("OPENAI_MODEL", "gpt-5"), messages=messages, tools=tools
        ).choices[0].message
        messages.append(reply)
        if not reply.tool_calls:
            return reply.content
        for call in reply.tool_calls:
            # A failing program and a rejected request are texts, too, so that the model can correct itself.
            result = sandboxes.tool_result(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    return f"no answer after {TURNS} turns"


print(answer(sys.argv[1]))
