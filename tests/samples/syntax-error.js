const one = 1;
const two = = 2;
