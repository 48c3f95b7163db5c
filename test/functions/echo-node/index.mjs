// Answers what it was given.
export const handler = async (event, context) => {
  console.log('echo');
  return { event, id: context.awsRequestId, language: 'node' };
};
