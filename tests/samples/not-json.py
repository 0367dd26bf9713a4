import datetime


def main(args):
    return {"rows": [{"n": 1}, {"n": 2, "when": datetime.datetime(2026, 1, 2)}]}
