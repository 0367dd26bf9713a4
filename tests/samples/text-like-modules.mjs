import { EOL } from 'node:os'; import assert from "node:assert";
import path, {
  basename as base, // and no more
} from 'node:path';
const script = `
import fs from 'fs';
export default 5;
export const main = () => import('x');
${await import('node:path').then((path) => path.basename('/a/b'))} ${'import.meta'}
`;
// import fs from 'fs';
/*
export { a };
*/
const words = ["import('x')", 'export default 1', /import\(|import ('x')/.source, 'main()', `main(${base('/c/main()')})`];
class Loader { import(what) { return ['imported', what]; } main() { return 'no call'; } }
assert.equal(path.join('a', 'b'), 'a/b');
export { words };
({ script, words, EOL, own: new Loader().import('x'), name: Loader.prototype.import.name, url: typeof import.meta.url })
