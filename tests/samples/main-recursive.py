def main(args, depth=3):
    return {"main": len(args["numbers"])} if depth == 0 else main(args, depth - 1)


def unused():
    return main({})
