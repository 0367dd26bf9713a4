def main(args):
    return {"total": sum(args["numbers"])}
