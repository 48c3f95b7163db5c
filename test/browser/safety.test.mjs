// What a page must never do: change data that nobody asked it to change, or lose a part of it.
import {engines, server, test, until} from './harness.mjs';
import {assert, fill, getItem, makeTable} from './tables.mjs';

const ENGINES = engines('--no-functions');
const main = server('--memory', '--no-functions');
const runs = words => `#/tables/Orders/items?q=${encodeURIComponent(words)}`;
const DELETE = `DELETE FROM "Orders" WHERE id='victim'`;

async function makeOrders(api) {
    await makeTable(api, 'Orders').catch(error => {
        if (!error.message.includes('ResourceInUse')) throw error; // another test has made it
    });
    await api('PutItem', {TableName: 'Orders', Item: {id: {S: 'victim'}, n: {N: '1'}}});
}
// Nothing is sent that executes a statement, however the list is moved and measured.
async function sendsNone(tab, person, how) {
    let sent = 0;
    const look = one => (sent += one.headers()['x-amz-target'] === 'DynamoDB_20120810.ExecuteStatement' ? 1 : 0);
    tab.on('request', look);
    await how();
    await person.see('This statement changes data');
    for (const height of [500, 900, 700]) {
        await tab.setViewport({width: 1280, height});
        await tab.evaluate(() => document.querySelector('.rows')?.dispatchEvent(new Event('scroll')));
        await tab.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
    }
    await person.click('Refresh', {within: '.view'});
    await tab.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
    await tab.waitForNetworkIdle({idleTime: 300, concurrency: 1}); // the stream of samples goes on
    tab.off('request', look);
    assert(!sent, `${sent} statements were sent`);
}

test('a link never runs a statement that changes data', ENGINES, async ({person, tab, api}) => {
    await makeOrders(api);
    const isThere = () => getItem(api, 'Orders', {id: {S: 'victim'}});
    await sendsNone(tab, person, () => person.visit(runs(DELETE)));
    assert(await isThere(), 'it is there after a fresh load');
    await person.visit('#/help');
    await sendsNone(tab, person, () => tab.evaluate(hash => (location.hash = hash), runs(DELETE)));
    assert(await isThere(), 'it is there after a link from another view');
    // The list of an open table has an end that would be fetched next: not with the statement.
    await fill(api, 'Orders', 400, i => ({id: {S: `item ${i}`}}));
    await person.visit('#/tables/Orders/items');
    await person.see('so far');
    await sendsNone(tab, person, () => tab.evaluate(hash => (location.hash = hash), runs(DELETE)));
    await tab.evaluate(() => document.querySelector('.rows').scrollTo(0, 1e6));
    assert(await isThere(), 'it is there after a link from its own table');
    await person.click('Run');
    await person.see('Done.');
    assert(!(await isThere()), 'it is deleted by hand');
});

test('a page of somebody else never runs a statement', main, async ({person, tab, api, server: on}) => {
    await makeOrders(api);
    const target = `${on.url}/${runs(DELETE)}`;
    await tab.setRequestInterception(true);
    tab.on('request', one =>
        one.url().endsWith('/foreign') // what it answers stands for a page of somebody else
            ? one.respond({contentType: 'text/html', body: `<script>location.href=${JSON.stringify(target)}</script>`})
            : one.continue(),
    );
    await sendsNone(tab, person, () => tab.goto(`${on.url}/foreign`));
    assert(await getItem(api, 'Orders', {id: {S: 'victim'}}), 'it is there');
});

test('going back never runs a statement', ENGINES, async ({person, tab, api}) => {
    await makeOrders(api);
    await person.visit('#/tables/Orders/items');
    await person.see('item');
    await tab.evaluate(hash => (location.hash = hash), runs(DELETE));
    await person.see('This statement changes data');
    await person.type('Condition or PartiQL', `id = 'x`);
    await person.press('Enter');
    await person.see('A quote is not closed');
    await sendsNone(tab, person, () => tab.goBack());
    assert(await getItem(api, 'Orders', {id: {S: 'victim'}}), 'it is there');
});

test(
    'a merge keeps what both have changed, deep in an item',
    ENGINES,
    async ({person, api}) => {
        await makeTable(api, 'deep');
        const Key = {id: {S: 'one'}};
        const item = {
            ...Key,
            m: {M: {a: {N: '1'}, kept: {S: 'k'}, in: {M: {x: {N: '1'}, y: {N: '1'}}}}},
            tags: {SS: ['red', 'old']},
            l: {L: [{N: '1'}, {N: '2'}]},
        };
        await api('PutItem', {TableName: 'deep', Item: item});
        await person.visit('#/tables/deep/items?item=one');
        await person.see('Save as new');
        await api('UpdateItem', {
            TableName: 'deep',
            Key,
            UpdateExpression: 'SET m.b = :n, m.#i.y = :n, l[1] = :n ADD tags :blue',
            ExpressionAttributeNames: {'#i': 'in'},
            ExpressionAttributeValues: {':n': {N: '7'}, ':blue': {SS: ['blue']}},
        });
        await person.click('DynamoDB JSON', {kind: 'button', within: '.items-panel'});
        const mine = structuredClone(item);
        mine.m.M.a = mine.m.M.in.M.x = mine.l.L[0] = {N: '5'};
        mine.tags.SS = ['red', 'green'];
        await person.type('DynamoDB JSON', JSON.stringify(mine));
        await person.click('Save');
        await person.see('Changed meanwhile');
        await person.click('Merge: my changes upon theirs');
        const now = await until(async () => {
            const there = await getItem(api, 'deep', Key);
            return there.m.M.a.N === '5' ? there : null;
        }, 'the merged item');
        assert(now.m.M.b?.N === '7' && now.m.M.kept.S === 'k', `theirs stays in a map: ${JSON.stringify(now)}`);
        assert(now.m.M.in.M.x.N === '5' && now.m.M.in.M.y.N === '7', 'and in a map of it');
        assert(now.tags.SS.sort().join() === 'blue,green,red', `a set has both: ${now.tags.SS}`);
        assert(now.l.L[0].N === '5' && now.l.L[1].N === '7', 'a list of the same length has both');
    },
    {expects: ['400']},
);

test(
    'a merge of one value that both have changed is looked at before it is saved',
    main,
    async ({person, api}) => {
        await makeTable(api, 'clash');
        const Key = {id: {S: 'one'}};
        await api('PutItem', {TableName: 'clash', Item: {...Key, m: {M: {a: {N: '1'}, b: {N: '1'}}}}});
        await person.visit('#/tables/clash/items?item=one');
        await person.see('Save as new');
        const theirs = {M: {a: {N: '2'}, b: {N: '2'}}};
        await api('PutItem', {TableName: 'clash', Item: {...Key, m: theirs}});
        await person.click('DynamoDB JSON', {kind: 'button', within: '.items-panel'});
        await person.type('DynamoDB JSON', JSON.stringify({...Key, m: {M: {a: {N: '3'}, b: {N: '1'}}}}));
        await person.click('Save');
        await person.click('Merge: my changes upon theirs');
        await person.see('Both have changed m.a: yours stands here, theirs was 2.');
        assert((await getItem(api, 'clash', Key)).m.M.a.N === '2', 'nothing is saved yet');
        await person.click('Save');
        await until(async () => {
            const {m} = await getItem(api, 'clash', Key);
            return m.M.a.N === '3' && m.M.b.N === '2';
        }, 'both to be saved');
    },
    {expects: ['400']},
);

// A browser of before 2024: JSON.parse tells no source of a number, and JSON.rawJSON is not there.
test('numbers stay exact in a browser without raw JSON', main, async ({person, tab, api}) => {
    await tab.evaluateOnNewDocument(() => {
        delete JSON.rawJSON;
        delete JSON.isRawJSON;
        const before = JSON.parse;
        JSON.parse = (words, revive) =>
            before(words, revive && (function (key, value) { return revive.call(this, key, value); }));
    });
    const BIG = '12345678901234567890';
    const mark = '\ue000';
    const body = `{"big":${BIG},"n":1,"words":"${BIG} ${mark}1","${mark}k":[0.12345678901234567891]}`;
    await api('PUT /v1/documents/exact/d', body);
    await makeTable(api, 'exact');
    await api('PutItem', {TableName: 'exact', Item: {id: {S: 'one'}, n: {N: BIG + BIG.slice(0, 18)}}});
    await person.visit('#/documents/exact/d');
    await person.see(BIG);
    await person.open('Edit');
    await person.click('Save');
    const version = async () => (await api('GET /v1/documents/exact')).documents[0].version;
    await until(async () => (await version()) !== 1, 'the document to be saved');
    const said = await fetch(`${person.url}/v1/documents/exact/d`).then(reply => reply.text());
    for (const part of [`"big":${BIG},`, `"words":"${BIG} ${mark}1"`, `"${mark}k"`, "[0.12345678901234567891]"])
        assert(said.includes(part), `${part} is in ${said}`);
    await person.visit('#/tables/exact/items?item=one');
    await person.click('JSON', {kind: 'button', within: '.items-panel'});
    const area = await person.find('JSON', {kind: 'textarea'});
    const words = await area.evaluate(one => one.value);
    assert(words.includes(`"n": ${BIG}${BIG.slice(0, 18)}`), words);
});
