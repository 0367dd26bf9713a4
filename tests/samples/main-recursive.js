// Nobody else calls it.
function main(args, depth = 3) {
  return depth === 0 ? { 'main()': args.numbers.length } : main(args, depth - 1);
}
function unused() {
  return main({});
}
