async function main() {
  console.log('once');
  return 1;
}
(async () => {
  await new Promise((done) => setTimeout(done, 20));
  await main();
})();
