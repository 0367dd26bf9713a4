import asyncio


class App:
    def run(self):
        asyncio.run(go())


async def go():
    await main()


async def main():
    print("once")


if __name__ == "__main__":
    App().run()
