"""Calls every method of the gRPC API with grpcio, as a client that is generated from the schema. Run by tests/grpc-clients.sh."""

import io
import json
import os
import random
import socket
import statistics
import threading
import time
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status
from skillbox.v1 import skillbox_pb2 as pb
from skillbox.v1 import skillbox_pb2_grpc as services

ADDRESS, REST, PID = os.environ["SKILLBOX_GRPC"], os.environ["SKILLBOX_SERVER_URL"], os.environ["SKILLBOX_PID"]
ADMIN = os.environ["SKILLBOX_API_KEY"]


def rest(path, body=None, key=ADMIN):
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(REST + path, data, headers)) as answer:
        return json.load(answer)


def metadata(key):
    return [("authorization", f"Bearer {key}")]


def connect():
    options = [("grpc.max_receive_message_length", 32 << 20), ("grpc.max_send_message_length", 64 << 20), ("grpc.use_local_subchannel_pool", 1)]
    return grpc.insecure_channel(ADDRESS, options)


def failure(call):
    """The status and the code of the problem."""
    try:
        result = call()
        list(result) if hasattr(result, "__iter__") else None
    except grpc.RpcError as error:
        status = rpc_status.from_call(error)
        problem = pb.Problem()
        if status:
            assert status.code == error.code().value[0] and status.details[0].Unpack(problem)
        return error.code().name, problem.code
    raise AssertionError("the call succeeded")


def memory():
    with open(f"/proc/{PID}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:")) / 1024


channel = connect()
runs, skills = services.ExecutionServiceStub(channel), services.SkillServiceStub(channel)
own = metadata(ADMIN)
other = metadata(rest("/v1/keys", {"name": "other", "scopes": ["admin"], "tenant": "other"})["api_key"])


def archive(reply):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("SKILL.md", "---\nname: adder\nversion: 1.0.0\ndescription: Adds numbers of a file.\n---\n\nAdds.\n")
        file.writestr("scripts/main.py", f"import json, os\nn = sum(map(int, open('numbers.txt')))\njson.dump([n, {reply!r}], open(os.environ['SANDBOX_OUTPUT'], 'w'))\nopen(os.environ['SANDBOX_FILES_DIR'] + '/sum.txt', 'w').write(str(n))\n")
    return content.getvalue()


def parts(content):
    yield pb.RegisterSkillRequest(header=pb.RegisterSkillHeader(name="ignored"))
    for at in range(0, len(content), 200):
        yield pb.RegisterSkillRequest(chunk=content[at : at + 200])


# Two tenants with a skill of one name, each with its own content.
for tenant, reply in ((own, "ours"), (other, "theirs")):
    pushed = skills.RegisterSkill(parts(archive(reply)), metadata=tenant)
    assert pushed.skill.summary.name == "adder" and not pushed.existed, pushed
    request = pb.RunSkillRequest(skill="adder", files=[pb.InputFile(path="numbers.txt", content=b"1\n2\n")])
    run = runs.RunSkill(request, metadata=tenant, timeout=60)
    assert run.status == pb.EXECUTION_STATUS_SUCCESS, run
    assert json.loads(run.output) == [3, reply], run.output
    assert urllib.request.urlopen(run.files[0].url).read() == b"3", "the link needs no key"
    stranger = other if tenant is own else own
    for call in (
        lambda: runs.GetExecution(pb.GetExecutionRequest(execution_id=run.execution_id), metadata=stranger),
        lambda: runs.GetExecutionLogs(pb.GetExecutionLogsRequest(execution_id=run.execution_id), metadata=stranger),
        lambda: runs.CancelExecution(pb.CancelExecutionRequest(execution_id=run.execution_id), metadata=stranger),
    ):
        assert failure(call) == ("NOT_FOUND", "not_found")
assert skills.RegisterSkill(parts(archive("ours")), metadata=own).existed
assert failure(lambda: skills.RegisterSkill(parts(archive("changed")), metadata=own)) == ("ALREADY_EXISTS", "conflict")
assert [each.name for each in skills.ListSkills(pb.ListSkillsRequest(), metadata=own).skills] == ["adder"]
assert skills.GetSkill(pb.GetSkillRequest(name="adder"), metadata=own).latest == "1.0.0"
print("two tenants published, ran and read their own skills only")

# Input, byte for byte; code of each language.
exact = b'{"n": 9007199254740993.10,  "s": "\\ud800"}'
code = "import os\nopen(os.environ['SANDBOX_OUTPUT'], 'w').write(os.environ['SANDBOX_INPUT'])"
assert runs.RunCode(pb.RunCodeRequest(code=code, input=exact), metadata=own).output == exact

# Events as they occur, and logs that are followed by their cursor.
slow = "import time\nfor n in range(5):\n    print(n, flush=True)\n    time.sleep(0.3)"
began, first, names = time.time(), None, []
for event in runs.RunSkillStream(pb.RunSkillStreamRequest(code=pb.RunCodeRequest(code=slow)), metadata=own):
    names.append(event.WhichOneof("event"))
    if names[-1] == "stdout" and first is None:
        first = time.time() - began
assert names[0] == "status" and names[-2:] == ["result", "end"], names
assert first < time.time() - began - 0.5, "output arrived only at the end"
queued = runs.RunCode(pb.RunCodeRequest(code=slow, mode=pb.MODE_ASYNC), metadata=own)
follow = pb.GetExecutionLogsRequest(execution_id=queued.execution_id, follow=True)
logs = runs.GetExecutionLogs(follow, metadata=own)
start = next(logs)
logs.cancel()
follow.cursor = start.cursor
rest_of_logs = b"".join(chunk.stdout for chunk in runs.GetExecutionLogs(follow, metadata=own))
assert start.stdout + rest_of_logs == b"0\n1\n2\n3\n4\n", (start, rest_of_logs)
done = runs.GetExecution(pb.GetExecutionRequest(execution_id=queued.execution_id, wait=30), metadata=own)
assert done.logs.stdout == b"0\n1\n2\n3\n4\n"
print("events and logs arrived during the run and continued after a cursor")

# A deadline ends the execution only if the request says so.
sleeping = {"cancel": pb.ON_DISCONNECT_CANCEL, "continue": pb.ON_DISCONNECT_CONTINUE}
for name, choice in sleeping.items():
    request = pb.RunCodeRequest(code=f"import time\ntime.sleep(4)  # {name}", on_disconnect=choice)
    assert failure(lambda: runs.RunCode(request, metadata=own, timeout=2))[0] == "DEADLINE_EXCEEDED"
    latest = runs.ListExecutions(pb.ListExecutionsRequest(page_size=1), metadata=own).executions[0]
    ended = runs.GetExecution(pb.GetExecutionRequest(execution_id=latest.execution_id, wait=30), metadata=own)
    expected = pb.EXECUTION_STATUS_CANCELLED if name == "cancel" else pb.EXECUTION_STATUS_SUCCESS
    assert ended.status == expected, (name, ended)
running = runs.RunCode(pb.RunCodeRequest(code="import time\ntime.sleep(60)", mode=pb.MODE_ASYNC), metadata=own)
cancelled = runs.CancelExecution(pb.CancelExecutionRequest(execution_id=running.execution_id), metadata=own)
assert cancelled.status == pb.EXECUTION_STATUS_CANCELLED, cancelled
print("deadline cancelled and left alone as asked; CancelExecution ended a run")

# Health, without a key.
health = health_pb2_grpc.HealthStub(channel)
serving = health_pb2.HealthCheckResponse.SERVING
assert health.Check(health_pb2.HealthCheckRequest(service="skillbox.v1.ExecutionService")).status == serving
watched = health.Watch(health_pb2.HealthCheckRequest())
assert next(watched).status == serving
watched.cancel()
assert failure(lambda: health.Check(health_pb2.HealthCheckRequest(service="x"))) == ("NOT_FOUND", "not_found")

# Keys and sizes.
listing = pb.ListSkillsRequest()
assert failure(lambda: skills.ListSkills(listing)) == ("UNAUTHENTICATED", "unauthenticated")
assert failure(lambda: skills.ListSkills(listing, metadata=metadata("skb_guess"))) == ("UNAUTHENTICATED", "unauthenticated")
runner = metadata(rest("/v1/keys", {"name": "runner", "scopes": ["run"]})["api_key"])
assert failure(lambda: skills.RegisterSkill(parts(b""), metadata=runner)) == ("PERMISSION_DENIED", "forbidden")
oversized = pb.RunCodeRequest(code="1", files=[pb.InputFile(path="x", content=bytes(50 << 20))])
assert failure(lambda: runs.RunCode(oversized, metadata=own)) == ("RESOURCE_EXHAUSTED", "too_large")
assert failure(lambda: skills.RegisterSkill(iter([pb.RegisterSkillRequest(chunk=bytes(5 << 20))]), metadata=own)) == ("RESOURCE_EXHAUSTED", "too_large")
zeros = (pb.RegisterSkillRequest(chunk=bytes(4_000_000)) for _ in range(14))
assert failure(lambda: skills.RegisterSkill(zeros, metadata=own)) == ("RESOURCE_EXHAUSTED", "too_large")
large = runs.RunCode(pb.RunCodeRequest(code="def main(args):\n    return 'x' * (9 << 20)"), metadata=own)
assert len(large.output) > 9 << 20
print("wrong keys, missing scopes and oversized messages were rejected; 9 MiB of output arrived")


def many(count):
    """Calls at once by 8 clients, with retries as the problem asks for. Returns how many attempts were asked to wait."""
    clients = [services.ExecutionServiceStub(connect()) for _ in range(8)]
    waited = []

    def one(n):
        for _ in range(200):
            try:
                run = clients[n % 8].RunCode(pb.RunCodeRequest(code=f"def main(args):\n    return {n}"), metadata=own, timeout=300)
                return json.loads(run.output) == n
            except grpc.RpcError as error:
                problem = pb.Problem()
                rpc_status.from_call(error).details[0].Unpack(problem)
                assert problem.retryable and problem.retry_after, (error.code(), problem)
                waited.append(problem.code)
                time.sleep(problem.retry_after * random.uniform(1, 1.5))
        return False

    with ThreadPoolExecutor(count) as pool:
        assert all(pool.map(one, range(count)))
    return len(waited)


many(100)
time.sleep(3)
before = memory()
waited = many(1000)
# Pages return as their connections close and the allocator trims.
for _ in range(60):
    after = memory()
    if after < before + 12:
        break
    time.sleep(1)
assert after < before + 12, (before, after)
print(f"1,000 calls of 8 clients answered ({waited} attempts were asked to wait); memory {before:.0f} MiB before, {after:.0f} MiB after")

# The same request by both clients in turn, with what the clients themselves take; tests/it/grpc measures the servers alone.
took = {"grpc": [], "rest": []}
request = {"code": "def main(args):\n    return 1", "language": "python"}
opener = __import__("http.client").client.HTTPConnection(REST.split("//")[1])


def by_rest():
    opener.request("POST", "/v1/executions", json.dumps(request), {"Authorization": f"Bearer {ADMIN}", "Content-Type": "application/json"})
    return json.load(opener.getresponse())["output"]


def by_grpc():
    return json.loads(runs.RunCode(pb.RunCodeRequest(**request), metadata=own).output)


for n in range(120):
    for name, call in (("rest", by_rest), ("grpc", by_grpc)):
        began = time.perf_counter()
        assert call() == 1
        if n >= 20:
            took[name].append((time.perf_counter() - began) * 1000)
p50 = {name: statistics.median(values) for name, values in took.items()}
print(f"RunCode p50 in turn: REST {p50['rest']:.2f} ms, gRPC {p50['grpc']:.2f} ms")

# A client that stops in the middle of a frame costs only its connection.
idle = [socket.create_connection(ADDRESS.split(":")) for _ in range(100)]
for each in idle:
    each.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00")
assert skills.ListSkills(listing, metadata=own).skills
began = time.time()
for each in idle:
    each.settimeout(30)
    while each.recv(4096):
        pass
assert time.time() - began < 30
assert threading.active_count() < 50
print("100 silent connections were closed while others were served")
