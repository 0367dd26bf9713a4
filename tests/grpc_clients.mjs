// Calls the gRPC API with @grpc/grpc-js: stream, cancel, deadline, upload by stream. Run by tests/grpc-clients.sh.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import grpc from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'

const schema = loadSync(process.argv[2], { keepCase: true, enums: String, longs: Number, oneofs: true })
const { ExecutionService, SkillService } = grpc.loadPackageDefinition(schema).skillbox.v1
const open = (Service) => new Service(process.env.SKILLBOX_GRPC, grpc.credentials.createInsecure(), { 'grpc.max_receive_message_length': 32 << 20 })
const [runs, skills] = [open(ExecutionService), open(SkillService)]
const metadata = new grpc.Metadata()
metadata.set('authorization', `Bearer ${process.env.SKILLBOX_API_KEY}`)

const call = (client, name, message, options = {}) =>
  new Promise((resolve, reject) => {
    client[name](message, metadata, options, (error, answer) => (error ? reject(error) : resolve(answer)))
  })
const failure = async (client, name, message, options) => {
  const error = await call(client, name, message, options).then(() => assert.fail('the call succeeded'), (error) => error)
  return grpc.status[error.code]
}

const run = await call(runs, 'RunCode', { code: 'console.error("e"); console.log(require("fs").readFileSync(0, "utf8"))', language: 'node', input: Buffer.from('[1]') })
assert.equal(run.status, 'EXECUTION_STATUS_SUCCESS')
assert.deepEqual([run.logs.stdout.toString(), run.logs.stderr.toString()], ['[1]\n', 'e\n'])

// A stream that the client leaves ends the execution if the request says so.
const code = { code: 'import time\nprint(1, flush=True)\ntime.sleep(60)', on_disconnect: 'ON_DISCONNECT_CANCEL' }
const events = runs.RunSkillStream({ code }, metadata)
let id
for await (const event of events) {
  if (event.event === 'status') id = event.status.execution_id
  if (event.event === 'stdout') break
}
events.cancel()
const ended = await call(runs, 'GetExecution', { execution_id: id, wait: 30 })
assert.equal(ended.status, 'EXECUTION_STATUS_CANCELLED')

const deadline = Date.now() + 1500
assert.equal(await failure(runs, 'RunCode', { code: 'import time\ntime.sleep(5)' }, { deadline }), 'DEADLINE_EXCEEDED')
assert.equal(await failure(runs, 'RunSkill', { skill: 'no-such-skill' }), 'NOT_FOUND')
assert.equal(await failure(runs, 'RunSkill', { skill: 'A' }), 'INVALID_ARGUMENT')

const pushed = await new Promise((resolve, reject) => {
  const upload = skills.RegisterSkill(metadata, (error, answer) => (error ? reject(error) : resolve(answer)))
  upload.write({ chunk: readFileSync(process.argv[1]) })
  upload.end()
}).then(() => assert.fail('a program is no archive'), (error) => grpc.status[error.code])
assert.equal(pushed, 'INVALID_ARGUMENT')

const results = await Promise.all(Array.from({ length: 100 }, (_, n) => call(skills, 'ListSkills', { page_size: n + 1 })))
assert.ok(results.every((page) => page.skills.length >= 1))
for (const client of [runs, skills]) client.close()
console.log('@grpc/grpc-js ran code, left a stream, passed a deadline and was refused')
