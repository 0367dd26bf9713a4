"""Publishes the folder of a skill, runs code on a blob and prints its output, with a generated client."""

import io
import os
import sys
import zipfile
from pathlib import Path

from skillbox_client import AuthenticatedClient
from skillbox_client.api.blobs import create_blob
from skillbox_client.api.executions import create_execution
from skillbox_client.api.skills import publish_skill
from skillbox_client.models import BlobInfo, CreateExecution, Envelope, Skill, SkillForm
from skillbox_client.types import File

client = AuthenticatedClient(
    base_url=os.environ["SKILLBOX_SERVER_URL"], token=os.environ["SKILLBOX_API_KEY"]
)

# A skill is a zip archive of its folder.
folder = Path(sys.argv[1])
archive = io.BytesIO()
with zipfile.ZipFile(archive, "w") as content:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content.write(path, path.relative_to(folder))
archive.seek(0)

form = SkillForm(file=File(payload=archive, file_name=f"{folder.name}.zip", mime_type="application/zip"))
skill = publish_skill.sync(client=client, body=form)
assert isinstance(skill, Skill), skill

blob = create_blob.sync(client=client, body=File(payload=io.BytesIO(b"one line\nand another\n")))
assert isinstance(blob, BlobInfo), blob

code = "import glob\nprint(len(open(glob.glob('/blobs/*')[0]).readlines()))"
request = CreateExecution(code=code, blobs=[blob.blob_id])
execution = create_execution.sync(client=client, body=request)
assert isinstance(execution, Envelope), execution
print(skill.name, skill.version, blob.size, execution.status.value, execution.logs.stdout.strip())
