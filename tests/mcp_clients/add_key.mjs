// Adds an API key to each request, for programs that cannot send one. Usage: add_key.mjs PORT SERVER_URL KEY
import http from "node:http";

const [port, server, key] = process.argv.slice(2);
const target = new URL(server);
http
  .createServer((request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${key}` };
    const options = { host: target.hostname, port: target.port, path: request.url, method: request.method, headers };
    const passed = http.request(options, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    passed.on("error", () => response.destroy());
    response.on("close", () => passed.destroy());
    request.pipe(passed);
  })
  .listen(Number(port), "127.0.0.1");
