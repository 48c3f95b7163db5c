// Fails as the event says.
export const handler = async ({ how }) => {
  if (how === 'throw') throw new RangeError('as ordered');
  if (how === 'reject') return Promise.reject('as ordered');
  if (how === 'exit') process.exit(3);
  if (how === 'uncaught') setImmediate(() => { throw new Error('as ordered'); });
  if (how === 'unhandled') Promise.reject(new Error('as ordered'));
  return new Promise((resolve) => setTimeout(resolve, 5000, 'too late'));
};
