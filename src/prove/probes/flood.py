# Prints half a gigabyte on each of both streams, the first bytes of which can be told: R-07, O-17.
line = b"".join(b"%07d\n" % number for number in range(8192))
for descriptor in (1, 2):
    if os.fork() == 0:
        for _ in range(given()["blocks"]):
            written = 0
            while written < len(line):
                written += os.write(descriptor, line[written:])
        os._exit(0)
for _ in range(2):
    os.wait()
conclude()
