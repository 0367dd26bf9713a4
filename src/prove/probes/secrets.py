# What a program that declares a secret is told, and what becomes of it: S-30, O-21. Nothing of these lines is in its environment by another name.
NAME, OTHER = "PROVE_DECLARED", "PROVE_" + "OTHER"
token = os.environ.get(NAME, "")


def texts():
    """Everything that this program can read besides its own environment."""
    for folder in ("/sandbox", "/workspace", "/tmp", "/skills", "/blobs", "/root"):
        for place, _, files in os.walk(folder):
            for path in (os.path.join(place, file) for file in files):
                if stat.S_ISREG(os.lstat(path).st_mode) and attempt(read, path) == "ok":
                    yield path, read(path)
    for process in filter(str.isdigit, os.listdir("/proc")):
        for file in ("cmdline", "environ"):
            path = f"/proc/{process}/{file}"
            own = (str(os.getpid()), "environ") == (process, file)
            if not own and attempt(read, path) == "ok":
                yield path, read(path)


verdicts["declared"] = len(token) >= 32
verdicts["other"] = OTHER in os.environ
verdicts["elsewhere"] = sorted({path for path, text in texts() if token.encode() in text or OTHER.encode() in text})
verdicts["said"] = [token, "x" + token + "y", {token: 1}]
print("plainly", token, json.dumps(token), flush=True)
for char in token:
    sys.stderr.write(char)
    sys.stderr.flush()
conclude()
