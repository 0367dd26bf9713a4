import threading


def work():
    raise ValueError("in the thread")


thread = threading.Thread(target=work, name="worker")
thread.start()
thread.join()
"the main thread goes on"
