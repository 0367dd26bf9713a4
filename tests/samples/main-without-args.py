def main():
    return ["no", "arguments"]
