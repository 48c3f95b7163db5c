// Called once, with the results of all pages in their order.
export const handler = async ({ detail }) => {
  const words = detail.results.reduce((sum, { result }) => sum + result.words, 0);
  console.log(`the book has ${detail.results.length} pages and ${words} words`);
};
