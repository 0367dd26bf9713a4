"""Checked by mypy --strict, not run: what a program sees of the types. Each `type: ignore` is an error that must be found."""

from pathlib import Path
from typing import Optional

from skillbox import ERROR_CODES, AsyncClient, Client, Envelope, Error, LogLine, PrintedEvent, Skill


def blocking(client: Client) -> Optional[str]:
    result: Envelope = client.run("text-summary", {"text": "x"}, timeout=3, files={"a": b"1", "b": Path("c")}, mode="async")
    client.run_code("1", language="bash", requirements=["six"], idempotency_key="k")
    client.run(skill="text-summary", input=1)
    client.run("text-summary", language="ruby")  # type: ignore[arg-type]
    client.run("text-summary", tiemout=3)  # type: ignore[call-arg]
    client.run_code(1)  # type: ignore[arg-type]
    client.list_executions(status="done")  # type: ignore[arg-type]
    result.status = "failed"  # type: ignore[misc]
    result.stdout  # type: ignore[attr-defined]
    for event in client.stream(code="1"):
        if isinstance(event.data, PrintedEvent):
            print(event.data.text)
        elif isinstance(event.data, LogLine):
            print(event.data.message)
    try:
        skill: Skill = client.register_skill(Path("folder"))
        return skill.latest
    except Error as error:
        assert error.code in ERROR_CODES
        return error.request_id
    finally:
        paths: list[Path] = client.download_files(result, "folder")
        print(paths)


async def asynchronous(client: AsyncClient) -> int:
    result: Envelope = await client.run("text-summary", {"text": "x"}, timeout=3)
    result = await client.run_code("1", language="node")
    await client.run_code("1", tiemout=3)  # type: ignore[call-arg]
    await client.get_execution(1)  # type: ignore[arg-type]
    not_awaited: Envelope = client.wait("x")  # type: ignore[assignment]
    async for event in client.stream("text-summary"):
        print(event.name, not_awaited)
    skill = await client.get_skill("x")
    return skill.files + len(result.files)
