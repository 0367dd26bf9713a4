// Publishes the zip archive of a skill, runs code on a blob and prints its output, with generated types.
import { readFileSync } from "node:fs";
import createClient from "openapi-fetch";
import type { paths } from "./skillbox";

const client = createClient<paths>({
  baseUrl: process.env.SKILLBOX_SERVER_URL,
  headers: { Authorization: `Bearer ${process.env.SKILLBOX_API_KEY}` },
});

async function main(archive: string) {
  // Bodies that are not JSON have the type string in the document: the serializer sends the bytes instead.
  const zip = readFileSync(archive);
  const skill = await client.POST("/v1/skills", {
    body: "" as never,
    bodySerializer: () => zip,
    headers: { "Content-Type": "application/zip" },
  });
  if (!skill.data) throw new Error(skill.error.detail);

  const blob = await client.POST("/v1/blobs", {
    body: "one line\nand another\n",
    bodySerializer: (text) => text,
    headers: { "Content-Type": "application/octet-stream" },
  });
  if (!blob.data) throw new Error(blob.error.detail);

  const code = "import glob\nprint(len(open(glob.glob('/blobs/*')[0]).readlines()))";
  const execution = await client.POST("/v1/executions", { body: { code, blobs: [blob.data.blob_id] } });
  // A string only for a request with "Accept: text/event-stream".
  if (!execution.data || typeof execution.data === "string") throw new Error(execution.error?.detail);
  const { name, version } = skill.data;
  console.log(name, version, blob.data.size, execution.data.status, execution.data.logs.stdout.trim());
}

main(process.argv[2]);
