import hashlib
import os
from runtime import blobs

# Simulates another process that writes the same blob.
digits = hashlib.sha256(b"same").hexdigest()
other = f"/sandbox/out/blobs/{digits}.part"
os.mkdir(other)
id = blobs.write_bytes(b"same")
os.rmdir(other)
refused = []
for wrong in [5, True, "text"]:
    try:
        blobs.write_bytes(wrong)
    except TypeError as error:
        refused.append(str(error))
[id, blobs.read_text(id), os.listdir("/sandbox/out/blobs") == [digits], refused]
