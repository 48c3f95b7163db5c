// What tests of tables share.

export const assert = (is, words) => {
    if (!is) throw new Error(words);
};
export const XSS = '<img src=x onerror="document.title=1"><script>throw 1</script>';

export async function makeTable(api, name, {range = false, stream = false} = {}) {
    const keys = range ? ['id', 'place'] : ['id'];
    await api('CreateTable', {
        TableName: name,
        AttributeDefinitions: keys.map((AttributeName, i) => ({AttributeName, AttributeType: i ? 'N' : 'S'})),
        KeySchema: keys.map((AttributeName, i) => ({AttributeName, KeyType: i ? 'RANGE' : 'HASH'})),
        BillingMode: 'PAY_PER_REQUEST',
        ...(stream ? {StreamSpecification: {StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES'}} : {}),
    });
}
export async function fill(api, name, number, item) {
    for (let i = 0; i < number; i += 25) {
        const puts = Array.from({length: Math.min(25, number - i)}, (_, j) => ({PutRequest: {Item: item(i + j)}}));
        await api('BatchWriteItem', {RequestItems: {[name]: puts}});
    }
}
export const getItem = async (api, TableName, Key) =>
    (await api('GetItem', {TableName, Key, ConsistentRead: true})).Item;
