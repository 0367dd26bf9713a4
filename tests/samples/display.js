const chart = {
  [Symbol.for('Jupyter.display')]: () => ({ 'text/plain': 'a chart', 'text/html': '<div></div>', 'image/png': Buffer.from('PNG') }),
};
display(chart, new Map([['a', [1, 2]]]));
