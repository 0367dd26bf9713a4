async def main(args):
    raise LookupError("nothing found")
