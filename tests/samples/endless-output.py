# timeout: 1
display("shown before the deadline")
while True:
    print("x" * 1000)
