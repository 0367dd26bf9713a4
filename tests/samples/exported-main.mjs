export async function main({ numbers }) {
  return Math.max(...numbers);
}
