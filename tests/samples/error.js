function inner() {
  return undefined.length;
}

function outer() {
  return inner();
}

console.log('before');
outer();
