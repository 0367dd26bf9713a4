// Compiled, never run: what the types allow, and what they refuse.
import { Client, SkillboxError } from 'skillbox';
import type {
  ClientErrorCode,
  Envelope,
  ErrorCode,
  ExecutionEvent,
  OpenAiTool,
  RunRequest,
  ToolFormat,
} from 'skillbox';

declare const bytes: Uint8Array;
const client = new Client({ url: 'http://127.0.0.1:8080', key: 'skb_x', tenant: 'acme', timeoutMs: 1000, fetch });

export async function allowed(): Promise<void> {
  const result = await client.run<{ total: number }>({
    skill: 'x',
    input: { n: [1, null] },
    files: { a: bytes, b: 'aGk=' },
    timeout: 3,
  });
  const total: number = result.output.total;
  const stdout: string = result.logs.stdout;
  const traceback: string | null | undefined = result.error?.traceback;
  const unknown: unknown = (await client.runCode('1', { language: 'node', args: { n: 1 } })).output;
  const signal = new AbortController().signal;
  await client.wait(result.execution_id, { signal, omit: ['logs'] });
  for (const one of await client.list({ status: ['failed'], since: new Date() })) one.finished_at?.length;
  for await (const { path, bytes } of client.files(result)) path.length + bytes.length;
  const saved: string[] = await client.downloadFiles(result.execution_id, 'out', { maxFiles: 1 });
  const blob = await client.uploadBlob(bytes, { mediaType: 'text/csv', ttl: 60 });
  await client.run({ code: '1', blobs: [blob.blob_id], mount_skills: ['x@1.0.0'] }, { idempotencyKey: 'order-1' });
  const tools: OpenAiTool[] = await client.tools('openai');
  const schema: 'object' | undefined = (await client.tools('anthropic'))[0]?.input_schema.type;
  await client.callTool(tools[0]?.function.name ?? '', '{"n": 1}', { request: { timeout: 5 } });
  const kept: RunRequest | null = (await client.request('1')).request;
  if (kept) await client.run(kept);
  void [total, stdout, traceback, unknown, saved, schema];
}

export async function events(): Promise<void> {
  for await (const event of client.stream({ skill: 'x' })) {
    const known: ExecutionEvent = event;
    if (event.event === 'stdout') event.data.text.length;
    if (event.event === 'status') event.data.queue_position?.toFixed();
    if (event.event === 'result') (event.data satisfies Envelope).exit_code;
    // @ts-expect-error: a log line has no text
    if (event.event === 'log') event.data.text;
    void known;
  }
}

export function errors(error: unknown): ErrorCode | ClientErrorCode | undefined {
  if (!(error instanceof SkillboxError)) return undefined;
  const parts: [number, string | undefined, boolean, number | undefined] = [
    error.status,
    error.requestId,
    error.retryable,
    error.retryAfter,
  ];
  void parts;
  // @ts-expect-error: no such code
  if (error.code === 'no_such_code') return undefined;
  return error.code;
}

export async function refused(format: ToolFormat): Promise<void> {
  // @ts-expect-error: the key is missing
  new Client({ url: 'http://127.0.0.1:8080' });
  // @ts-expect-error: members have the names of the API
  await client.run({ skill: 'x', mountSkills: [] });
  // @ts-expect-error: no such language
  await client.runCode('1', { language: 'ruby' });
  // @ts-expect-error: seconds are a number
  await client.run({ skill: 'x', timeout: '3' });
  // @ts-expect-error: a version must be named for a deletion
  await client.deleteSkill('x');
  // @ts-expect-error: the output has the type that the caller named, or none
  (await client.run({ skill: 'x' })).output.total;
  // @ts-expect-error: a tool of any format has no common member
  (await client.tools(format))[0]?.function;
  // @ts-expect-error: the key cannot be read
  client.key;
}
