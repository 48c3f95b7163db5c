// Called with {"job", "task", "item", "attempt"}. What it returns is the result of the page.
export const handler = async ({ task, item, attempt }) => {
  if (attempt === 1 && task % 50 === 7) throw new Error("no ink");
  if (attempt === 1 && task % 250 === 11) process.kill(process.pid, "SIGKILL");
  return { words: item.text.split(" ").length };
};
