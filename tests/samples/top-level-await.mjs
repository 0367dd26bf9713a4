const { readFile } = await import('node:fs/promises');
JSON.parse(await readFile('/sandbox/input.json', 'utf8')).numbers
