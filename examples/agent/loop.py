#!/usr/bin/env python3
"""An agent: a model answers a question with the skills of a Skillbox server and with code that it writes itself."""
import json
import os
import sys
import urllib.error
import urllib.request


def call(service, path, body=None):
    """Calls SKILLBOX_SERVER_URL with SKILLBOX_API_KEY, or OPENAI_BASE_URL with OPENAI_API_KEY."""
    url = os.environ["SKILLBOX_SERVER_URL" if service == "SKILLBOX" else "OPENAI_BASE_URL"] + path
    headers = {"Authorization": "Bearer " + os.environ[service + "_API_KEY"], "Content-Type": "application/json"}
    request = urllib.request.Request(url, body and json.dumps(body).encode(), headers)
    try:
        return json.load(urllib.request.urlopen(request, timeout=660))
    except urllib.error.HTTPError:
        raise
    except urllib.error.URLError as error:
        sys.exit(f"no connection to {url}: {error.reason}")


TEXT = {"type": "string"}
CODE = {"type": "function", "function": {
    "name": "run_code",
    "description": "Runs code without network access. The value of the last expression and what it prints are returned.",
    "parameters": {"type": "object", "required": ["code"], "properties": {
        "code": TEXT, "language": {"enum": ["python", "node", "bash"]}, "requirements": {"type": "array", "items": TEXT}}}}}


def run(tool, arguments):
    """Runs one tool call. A rejected request is an answer, too: it tells the model what to correct."""
    skill = {"skill": tool["name"].replace("_", ".")}
    if tool is CODE["function"]:
        body = arguments
    elif "script" in tool["parameters"].get("required", []):  # a toolbox: the arguments are members of the request
        body = skill | arguments
    else:
        body = skill | {"input": arguments}
    try:
        result = call("SKILLBOX", "/v1/executions", body)
    except urllib.error.HTTPError as error:
        return error.read().decode()
    return json.dumps({key: result[key] for key in ("status", "output_preview", "logs_preview", "error")})


def run_call(by_name, asked):
    print(asked["name"], asked["arguments"], file=sys.stderr)
    try:
        tool, arguments = by_name[asked["name"]], json.loads(asked["arguments"])
    except (KeyError, ValueError) as error:
        return f"invalid tool call: {error!r}"
    return run(tool, arguments)


def answer(question, turns=20):
    tools = [CODE, *call("SKILLBOX", "/v1/tools?format=openai&limit=100")["items"]]
    by_name = {tool["function"]["name"]: tool["function"] for tool in tools}
    messages = [{"role": "user", "content": question}]
    for _ in range(turns):
        request = {"model": os.environ.get("OPENAI_MODEL", "gpt-5"), "messages": messages, "tools": tools}
        message = call("OPENAI", "/chat/completions", request)["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for asked in message["tool_calls"]:
            result = run_call(by_name, asked["function"])
            messages.append({"role": "tool", "tool_call_id": asked["id"], "content": result})
    return f"no answer after {turns} turns"


def main():
    settings = ["SKILLBOX_SERVER_URL", "SKILLBOX_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_KEY"]
    missing = [name for name in settings if not os.environ.get(name)]
    if missing or len(sys.argv) < 2:
        sys.exit(f"set {', '.join(missing)}" if missing else "usage: loop.py QUESTION")
    try:
        print(answer(" ".join(sys.argv[1:])))
    except urllib.error.HTTPError as error:
        sys.exit(f"{error.url}: {error}: {error.read().decode()}")


if __name__ == "__main__":
    main()
