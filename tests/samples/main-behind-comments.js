// What the agent wants to do.
const factor = 2;

/* Called with the arguments,
   although a comment stands before it. */
// And a second one.
async function main(args) {
  return args.numbers.length * factor;
}
