module.exports = { main: (args) => args.numbers.length };
