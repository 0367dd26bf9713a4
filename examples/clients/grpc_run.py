"""Runs a skill with a file and code over gRPC, and reads the problem of a call that fails."""

import json
import os

import grpc
from grpc_status import rpc_status
from skillbox.v1 import skillbox_pb2 as messages
from skillbox.v1 import skillbox_pb2_grpc as services

channel = grpc.insecure_channel(
    os.environ.get("SKILLBOX_GRPC", "127.0.0.1:9090"),
    options=[("grpc.max_receive_message_length", 32 << 20)],
)
executions = services.ExecutionServiceStub(channel)
key = [("authorization", f"Bearer {os.environ['SKILLBOX_API_KEY']}")]

request = messages.RunCodeRequest(
    code="def main(args):\n    return sum(map(int, open(args['file'])))",
    input=json.dumps({"file": "numbers.txt"}).encode(),
    files=[messages.InputFile(path="numbers.txt", content=b"20\n22\n")],
)
execution = executions.RunCode(request, metadata=key, timeout=60)
status = messages.ExecutionStatus.Name(execution.status)
print(status, json.loads(execution.output))

stream = messages.RunSkillStreamRequest(code=messages.RunCodeRequest(code="print('hello')"))
for event in executions.RunSkillStream(stream, metadata=key):
    if event.WhichOneof("event") == "stdout":
        print("stdout", event.stdout.decode().strip())

try:
    executions.RunSkill(messages.RunSkillRequest(skill="no-such-skill"), metadata=key)
except grpc.RpcError as error:
    problem = messages.Problem()
    rpc_status.from_call(error).details[0].Unpack(problem)
    print(error.code().name, problem.code)
