"""A model on loopback for tests/agents.sh: it answers by a script, in the formats of three APIs, and takes its answer from results of tools.

It calls a skill, then code with a mistake, then the corrected code. What it says at the end contains what the tools returned.
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CALLS = [
    ("text-summary", {"text": "One thing. Another thing. A third."}),
    ("run_code", {"code": "digest('skillbox')"}),
    ("run_code", {"code": "import hashlib\nhashlib.sha256(b'skillbox').hexdigest()"}),
]


def texts(value):
    """All strings of a JSON value, one after the other."""
    if isinstance(value, str):
        return value
    return "\n".join(map(texts, value.values() if isinstance(value, dict) else value if isinstance(value, list) else []))


def reply(results):
    """The next call of a tool, or the text at the end."""
    if len(results) < len(CALLS):
        return CALLS[len(results)], None
    # Some clients wrap JSON in JSON, which escapes quotes again.
    words = re.search(r'words\W+(\d+)', results[0])
    mistake = re.search(r"NameError", results[1])
    digest = re.search(r"\b[0-9a-f]{64}\b", results[2])
    if not (words and mistake and digest):
        return None, f"the results lack something: {results}"
    return None, f"The text has {words[1]} words, the first code had a {mistake[0]}, the digest is {digest[0]}."


def chat(request):
    names = [tool["function"]["name"] for tool in request["tools"]]
    call, text = reply([texts(message["content"]) for message in request["messages"] if message["role"] == "tool"])
    message = {"role": "assistant", "content": text}
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return names, {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}


def responses(request):
    names = [tool["name"] for tool in request["tools"]]
    outputs = [texts(item["output"]) for item in request["input"] if item.get("type") == "function_call_output"]
    call, text = reply(outputs)
    item = {"id": f"item_{len(outputs)}", "status": "completed"}
    if call:
        item.update(type="function_call", call_id=f"call_{len(outputs)}", name=call[0], arguments=json.dumps(call[1]))
    else:
        item.update(type="message", role="assistant", content=[{"type": "output_text", "text": text, "annotations": []}])
    tokens = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    usage = {**tokens, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    answer = {"id": "r", "object": "response", "created_at": 0, "model": "m", "status": "completed", "output": [item], "usage": usage}
    return names, {**answer, "parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "error": None}


def messages(request):
    names = [tool["name"] for tool in request["tools"]]
    blocks = [block for message in request["messages"] if isinstance(message["content"], list) for block in message["content"]]
    call, text = reply([texts(block["content"]) for block in blocks if block["type"] == "tool_result"])
    content = {"type": "tool_use", "id": "call_1", "name": call[0], "input": call[1]} if call else {"type": "text", "text": text}
    usage = {"input_tokens": 1, "output_tokens": 1}
    stop = "tool_use" if call else "end_turn"
    return names, {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [content], "stop_reason": stop, "usage": usage}


APIS = {"/v1/chat/completions": chat, "/v1/responses": responses, "/v1/messages": messages}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names, answer = APIS[self.path.partition("?")[0]](request)
        missing = {name for name, _ in CALLS} - set(names)
        body = json.dumps({"error": {"message": f"no tool {missing} in {names}"}} if missing else answer).encode()
        self.send_response(400 if missing else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
server.serve_forever()
