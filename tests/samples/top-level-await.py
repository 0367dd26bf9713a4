import asyncio


async def greeting():
    await asyncio.sleep(0)
    return "hello"


text = await greeting()
text.upper()
