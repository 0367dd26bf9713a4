// An agent with the Vercel AI SDK: published skills and code become tools of its loop.
import { openai } from '@ai-sdk/openai';
import { generateText, jsonSchema, stepCountIs, tool } from 'ai';
import { Client } from 'skillbox';

const sandboxes = new Client({ url: process.env.SKILLBOX_SERVER_URL, key: process.env.SKILLBOX_API_KEY });

// A failing program is a result, so that the model can correct itself.
const shown = ({ status, output_preview, logs_preview, error }) => ({ status, output_preview, logs_preview, error });

const runCode = tool({
  description: 'Runs code in a new sandbox without a network. Returns what it prints and the value of its last expression.',
  inputSchema: jsonSchema({
    type: 'object',
    required: ['code'],
    properties: { code: { type: 'string' }, language: { enum: ['python', 'node', 'bash'] } },
  }),
  execute: async ({ code, language }) => shown(await sandboxes.runCode(code, { language })),
});

const skills = (await sandboxes.tools('anthropic')).map(({ name, description, input_schema }) => {
  const execute = async (input) => shown(await sandboxes.callTool(name, input));
  return [name, tool({ description, inputSchema: jsonSchema(input_schema), execute })];
});

const { text } = await generateText({
  model: openai(process.env.OPENAI_MODEL ?? 'gpt-5'),
  tools: { run_code: runCode, ...Object.fromEntries(skills) },
  stopWhen: stepCountIs(20),
  prompt: process.argv[2],
});
console.log(text);
