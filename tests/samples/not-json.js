const main = () => ({ rows: [{ n: 1 }, { n: 2n }] });
