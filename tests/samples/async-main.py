import asyncio


async def main(args):
    await asyncio.sleep(0.001)
    return max(args["numbers"])
