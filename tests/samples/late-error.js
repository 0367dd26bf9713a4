const timer = setTimeout(() => {
  throw new RangeError('later');
}, 1);
