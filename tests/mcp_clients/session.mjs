// The TypeScript SDK over HTTP and over stdio. Usage: session.mjs URL KEY BINARY
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import assert from "node:assert/strict";

const [url, key, binary] = process.argv.slice(2);
const http = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${key}` } },
});
const env = { ...process.env, SKILLBOX_SERVER_URL: new URL(url).origin, SKILLBOX_API_KEY: key };
const stdio = new StdioClientTransport({ command: binary, args: ["mcp"], env });

for (const [name, transport] of [["http", http], ["stdio", stdio]]) {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert(tools.some((tool) => tool.name === "text-summary"));
  const notes = [];
  const code = "from runtime import log\nlog.info('half')\nprint('done')";
  const ran = await client.callTool({ name: "run_code", arguments: { code } }, undefined, {
    onprogress: (note) => notes.push(note.message),
  });
  assert.equal(ran.content[0].text, "done\n");
  assert(notes.includes("half"), `progress: ${notes}`);
  const stop = new AbortController();
  const long = client.callTool(
    { name: "run_code", arguments: { code: "from runtime import log\nlog.info('begun')\nimport time\ntime.sleep(100)" } },
    undefined,
    { signal: stop.signal, onprogress: (note) => note.message === "begun" && stop.abort("enough") },
  );
  await assert.rejects(long);
  const templates = await client.listResourceTemplates();
  console.log(`sdk over ${name}: ${tools.length} tools, progress ${notes}, cancelled a run, ${templates.resourceTemplates.length} templates`);
  await client.close();
}
