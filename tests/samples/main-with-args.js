async function main(args) {
  await new Promise((done) => setTimeout(done, 1));
  return { total: args.numbers.reduce((a, b) => a + b, 0) };
}
