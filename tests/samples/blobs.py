from runtime import blobs

id = blobs.write_json({"n": [1, 2]})
[id, blobs.read_json(id), blobs.read_text(id)]
