import path, { basename } from 'node:path';
const { EOL } = require('node:os');

const squares = [1, 2, 3].map((n) => n * n);
console.log(path.join('a', basename('/b/c')), EOL === '\n');
({ squares, total: squares.reduce((a, b) => a + b) });
