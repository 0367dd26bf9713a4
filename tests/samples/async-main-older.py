# As in Python 3.10 and before.
import asyncio

if hasattr(asyncio, "Runner"):
    del asyncio.Runner

await asyncio.sleep(0)
forgotten = asyncio.ensure_future(asyncio.sleep(1000))


async def main(args):
    await asyncio.sleep(0.01)
    return sum(args["numbers"])
