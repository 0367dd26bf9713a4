// Runs code with a file over gRPC, and prints its events.
import grpc from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'

const schema = loadSync(process.argv[2], { keepCase: true, enums: String, longs: Number, oneofs: true })
const { ExecutionService } = grpc.loadPackageDefinition(schema).skillbox.v1
const address = process.env.SKILLBOX_GRPC ?? '127.0.0.1:9090'
const client = new ExecutionService(address, grpc.credentials.createInsecure())
const metadata = new grpc.Metadata()
metadata.set('authorization', `Bearer ${process.env.SKILLBOX_API_KEY}`)

const code = {
  code: 'const fs = require("fs"); console.log(fs.readFileSync("numbers.txt", "utf8").trim().split("\\n").length)',
  language: 'node',
  files: [{ path: 'numbers.txt', content: Buffer.from('20\n22\n') }],
}
const events = client.RunSkillStream({ code }, metadata, { deadline: Date.now() + 60_000 })
for await (const event of events) {
  if (event.event === 'stdout') console.log('stdout', event.stdout.toString().trim())
  if (event.event === 'end') console.log(event.end.status)
}

client.RunSkill({ skill: 'no-such-skill' }, metadata, (error) => {
  console.log(grpc.status[error.code])
  client.close()
})
