// Tables and their items, as a person uses them.
import fs from 'node:fs';
import path from 'node:path';
import {engines, test, until} from './harness.mjs';
import {assert, fill, getItem, makeTable, XSS} from './tables.mjs';

const ENGINES = engines('--no-functions');
const [[, main]] = ENGINES;

test('tables: one is made, changed and dropped', ENGINES, async ({person, api}) => {
    await person.visit('#/tables');
    await person.see('No tables yet');
    await person.click('New table');
    await person.type('Name', 'Music');
    await person.type('hash key', 'Artist');
    await person.type('range key', 'Song');
    await person.click('Add an index');
    await person.type('Index name', 'by-year');
    await person.type('index hash key', 'Year');
    await person.choose('Type of index hash key', 'N');
    await person.type('Expiry', 'expires');
    await person.type('Tags', 'team=jazz');
    await person.see('quipu table create Music Artist:S Song:S --index by-year:Year:N --ttl expires');
    await person.click('Create');
    await person.see('No items');
    await person.click('Settings');
    await person.see('by-year');
    const {Table} = await api('DescribeTable', {TableName: 'Music'});
    assert(Table.GlobalSecondaryIndexes.length === 1, 'the index is there');
    const ttl = await api('DescribeTimeToLive', {TableName: 'Music'});
    assert(ttl.TimeToLiveDescription.AttributeName === 'expires', 'items expire');

    await person.choose('Records show', 'NEW_IMAGE');
    await person.click('Set the stream');
    await person.see('stream new', '.tables-summary');
    await person.type('Index name', 'by-label');
    await person.type('index hash key', 'label');
    await person.click('Add the index');
    await person.see('by-label', '.tables-part .grid');
    await person.type('One on each line: NAME=VALUE', 'team=blues\nroom=2');
    await person.click('Set the tags');
    await until(async () => {
        const {Tags} = await api('ListTagsOfResource', {ResourceArn: Table.TableArn});
        return Tags.length === 2 && Tags.some(tag => tag.Value === 'blues');
    }, 'the tags');
    await person.isAccessible();
    await person.click('Drop…');
    await person.type('Type Music', 'Musik');
    await person.click('Drop');
    await person.see('That is not “Music”.');
    await person.type('Type Music', 'Music');
    await person.click('Drop');
    await until(async () => !(await api('ListTables', {})).TableNames.includes('Music'), 'the end of the table');
});

test(
    'tables: hundreds are listed, and only those that are seen are asked about',
    main,
    async ({person, api, tab}) => {
        for (let i = 0; i < 250; i++) await makeTable(api, `many-${String(i).padStart(4, '0')}`);
        let asked = 0;
        tab.on(
            'request',
            one => (asked += one.headers()['x-amz-target'] === 'DynamoDB_20120810.DescribeTable' ? 1 : 0),
        );
        await person.visit('#/tables');
        await person.see('many-0249');
        await person.see('on demand');
        assert(asked < 120, `${asked} tables were described`);
        await person.type('Filter tables by name', '0249');
        await until(async () => !(await person.words('.tables-list')).includes('many-0248'), 'the filter');
        assert((await tab.evaluate(() => location.hash)).includes('filter=0249'), 'the filter is in the URL');
        await person.fits();
        await person.isAccessible();
        await person.visit('#/help'); // so that nothing asks about one that has just gone
        await tab.waitForNetworkIdle({idleTime: 500, concurrency: 1});
        for (let i = 0; i < 250; i++) await api('DeleteTable', {TableName: `many-${String(i).padStart(4, '0')}`});
    },
);

test(
    'items: a nested one is made and edited, and a conflict is shown',
    ENGINES,
    async ({person, api}) => {
        await makeTable(api, 'nested');
        await person.visit('#/tables/nested');
        await person.click('New item');
        await person.type('Value of id', XSS);
        await person.click('Add an attribute');
        await person.type('Name of new', 'total');
        await person.choose('Type of new', 'N');
        await person.type('Value of new', '12345678901234567890123456789012345678');
        await person.click('Add an attribute');
        await person.find('Value of total');
        await person.type('Name of new', 'tags');
        await person.choose('Type of new', 'SS');
        await person.click('Add a member');
        await person.type('Value of new[0]', 'a "quoted" one');
        await person.click('Create');
        const Key = {id: {S: XSS}};
        const made = await until(() => getItem(api, 'nested', Key), 'the item');
        assert(made.total.N === '12345678901234567890123456789012345678', 'all digits are kept');
        assert(made.tags.SS[0] === 'a "quoted" one', 'a set is a set');
        await person.see(XSS, '.items-panel h2');

        // Edited while somebody else changes it: both sides are seen, and merged.
        await person.see('Save as new');
        await api('UpdateItem', {
            TableName: 'nested',
            Key,
            UpdateExpression: 'SET #t = :n, theirs = :n',
            ExpressionAttributeNames: {'#t': 'total'},
            ExpressionAttributeValues: {':n': {N: '7'}},
        });
        await person.click('JSON', {kind: 'button', within: '.items-panel'});
        const area = await person.find('JSON', {kind: 'textarea'});
        const words = JSON.parse(await area.evaluate(one => one.value.replace(/\d{38}/, '1')));
        assert(words.id === XSS, 'the JSON has the item');
        await person.click('DynamoDB JSON', {kind: 'button', within: '.items-panel'});
        await person.type(
            'DynamoDB JSON',
            JSON.stringify({...made, note: {M: {deep: {L: [{BOOL: true}, {NULL: true}]}}}}),
        );
        await person.click('Save');
        await person.see('Changed meanwhile');
        await person.see('there now');
        await person.isAccessible();
        await person.click('Merge: my changes upon theirs');
        const merged = await until(async () => {
            const item = await getItem(api, 'nested', Key);
            return item.note ? item : null;
        }, 'the merged item');
        assert(merged.total.N === '7' && merged.theirs.N === '7', 'their change stayed');
        assert(merged.note.M.deep.L[1].NULL === true, 'my change is there');
        await person.fits();
    },
    {expects: ['400']},
);

test(
    'items: queries by key, filters and PartiQL',
    ENGINES,
    async ({person, api}) => {
        await makeTable(api, 'songs', {range: true});
        await fill(api, 'songs', 300, i => ({
            id: {S: `artist ${i % 3}`},
            place: {N: String(i)},
            year: {N: String(1950 + (i % 70))},
            tags: {SS: [i % 2 ? 'odd' : 'even', XSS]},
        }));
        await person.visit('#/tables/songs');
        await person.see('200 items so far · scan');
        await person.type(
            'Condition or PartiQL',
            'id = "artist 1" and place between 10 and 40 and contains(tags, "odd")',
        );
        await person.press('Enter');
        await person.see('5 items');
        await person.see('query by key');
        await person.see("quipu query songs 'artist 1' 10..40 --filter 'contains(tags, \"odd\")'");
        await person.choose('Order', 'desc');
        await until(async () => /37[\s\S]*13/.test(await person.words('.rows')), 'the order');
        await person.type('Condition or PartiQL', 'year in (1950, 1951) or not attribute_exists(tags)');
        await person.click('Run');
        await person.see(/10 items · 300 read · scan/);
        await person.type('Condition or PartiQL', 'year > 1990 1991');
        await person.click('Run');
        await person.see('ValidationException');
        await person.see(/near: "1990 1991"/, '.fault'); // as it was typed
        await person.type('Condition or PartiQL', `year > 'x`);
        await person.click('Run');
        await person.see('A quote is not closed');
        assert(!(await person.words('.items-status')).trim(), 'nothing is said of the query before');
        assert(!(await person.words('.items-lesson')).trim(), 'nor its command');
        await person.type(
            'Condition or PartiQL',
            `SELECT id, place FROM "songs" WHERE id = 'artist 2' AND place < 9`,
        );
        await person.click('Run');
        await person.see('3 items · PartiQL');
        // What changes something is not run by a link.
        await person.visit(
            `#/tables/songs/items?q=${encodeURIComponent(`DELETE FROM "songs" WHERE id='artist 0' AND place=0`)}`,
        );
        await person.see('This statement changes data');
        assert(await getItem(api, 'songs', {id: {S: 'artist 0'}, place: {N: '0'}}), 'nothing was deleted yet');
        await person.click('Run');
        await person.see('Done.');
        assert(!(await getItem(api, 'songs', {id: {S: 'artist 0'}, place: {N: '0'}})), 'it was deleted by hand');
        // Completion by keyboard.
        await person.type('Condition or PartiQL', 'begi');
        await person.see('begins_with', '.complete');
        await person.press('Tab');
        const line = await person.find('Condition or PartiQL');
        assert((await line.evaluate(one => one.value)) === 'begins_with', 'the word was completed');
    },
    {expects: ['400']},
);

test(
    'items: many are deleted and put back',
    ENGINES,
    async ({person, api, tab}) => {
        await makeTable(api, 'gone');
        await fill(api, 'gone', 30, i => ({id: {S: `item ${i}`}, n: {N: String(i)}, m: {M: {a: {S: 'x'}}}}));
        await person.visit('#/tables/gone');
        await person.see('30 items');
        await person.click('Mark all rows that are loaded');
        await person.see('30 marked');
        await person.click('Delete');
        await person.see('30 items deleted');
        assert((await api('Scan', {TableName: 'gone'})).Count === 0, 'all are gone');
        await api('PutItem', {TableName: 'gone', Item: {id: {S: 'item 3'}, now: {S: 'other'}}});
        await person.click('Undo');
        await person.see('29 items put back, 1 not: something else is there now');
        const back = await getItem(api, 'gone', {id: {S: 'item 4'}});
        assert(back.m.M.a.S === 'x', 'it is what it was');
        assert((await getItem(api, 'gone', {id: {S: 'item 3'}})).now.S === 'other', 'what others wrote stays');
        // Sorted are the rows that are there; a column can be taken away.
        await person.click('n', {kind: 'button', within: '.rows'});
        await person.see('that are loaded, sorted');
        const first = await tab.$eval('.rows tbody tr:nth-child(2)', one => one.innerText);
        assert(first.includes('item 3') || first.includes('item 0'), `sorted: ${first}`);
        await person.click('Columns');
        await person.click('m', {kind: 'input'});
        await until(
            async () => !(await tab.$$eval('.rows thead th', all => all.map(one => one.innerText))).includes('m'),
            'fewer columns',
        );
    },
    {expects: ['400']},
);

test('items: a list of thousands holds and draws few', main, async ({person, api, tab}) => {
    await makeTable(api, 'long');
    await fill(api, 'long', 5000, i => ({id: {S: `item ${i}`}, n: {N: String(i)}}));
    await person.visit('#/tables/long');
    await person.see('200 items so far');
    const numbers = () => tab.$eval('.rows', one => ({...one.dataset, top: one.scrollTop, all: one.scrollHeight}));
    const keys = await tab.$eval('.rows tbody tr:nth-child(2)', one => one.innerText);
    let most = 0,
        drawn = 0;
    await until(async () => {
        const now = await numbers();
        most = Math.max(most, Number(now.held));
        drawn = Math.max(drawn, Number(now.drawn));
        await tab.$eval('.rows', one => (one.scrollTop = one.scrollHeight));
        return now.known === '5000';
    }, 'the end of the list');
    assert(most <= 3200, `${most} rows were held`);
    assert(drawn < 100, `${drawn} rows were drawn`);
    await tab.$eval('.rows', one => (one.scrollTop = 0));
    await until(
        async () => (await tab.$eval('.rows tbody tr:nth-child(2)', one => one.innerText)) === keys,
        'the first page again',
    );
});

test(
    'items: import and export',
    ENGINES,
    async ({person, api, tab, server: on, context}) => {
        await makeTable(api, 'moved');
        const file = path.join(on.folder, 'in.jsonl');
        const lines = [
            '{"DumpBegin":{"Version":1}}',
            ...Array.from({length: 60}, (_, i) => JSON.stringify({id: `plain ${i}`, n: i, tags: {$set: ['a', 'b']}})),
            '{"Item":{"id":{"S":"typed"},"big":{"N":"12345678901234567890123456789012345678"},"b":{"B":"aGk="}}}',
            '{"id":"plain 0","n":99}',
        ];
        fs.writeFileSync(file, lines.join('\n') + '\n');
        await person.visit('#/tables/moved');
        await person.click('Import');
        await (await person.find('File', {kind: 'input'})).uploadFile(file);
        await person.click('Import');
        await person.see('62 items written. Done.');
        await person.click('Cancel');
        await person.see('61 items');
        assert((await getItem(api, 'moved', {id: {S: 'plain 0'}})).n.N === '99', 'the last one wins');
        assert((await getItem(api, 'moved', {id: {S: 'plain 7'}})).tags.SS.length === 2, 'sets are sets');

        const csv = path.join(on.folder, 'in.csv');
        fs.writeFileSync(csv, 'id,n,words\nplain 1,5,old\n"csv ""1""",7,"two\nlines, and 1"\n');
        await person.click('Import');
        await (await person.find('File', {kind: 'input'})).uploadFile(csv);
        await person.click('Only items that are not there yet');
        await person.click('Import');
        await person.see('1 item written, 1 were there already. Done.');
        await person.click('Cancel');
        const row = await getItem(api, 'moved', {id: {S: 'csv "1"'}});
        assert(row.n.N === '7' && row.words.S === 'two\nlines, and 1', JSON.stringify(row));

        const session = await tab.createCDPSession();
        await session.send('Browser.setDownloadBehavior', {
            behavior: 'allow',
            downloadPath: on.folder,
            browserContextId: context.id,
        });
        const read = async (words, name) => {
            await person.click('Export');
            await person.click(words);
            const place = path.join(on.folder, name);
            await until(() => fs.existsSync(place) && fs.statSync(place).size, name);
            return fs.readFileSync(place, 'utf8').trimEnd().split('\n');
        };
        const typed = await read('DynamoDB JSON lines', 'moved.dynamodb.jsonl');
        assert(typed.length === 62, `${typed.length} lines`);
        assert(
            typed.some(line => line.includes('12345678901234567890123456789012345678')),
            'all digits',
        );
        const plain = await read('JSON lines', 'moved.jsonl');
        assert(
            plain.some(line => line.includes('"n":7,"tags":{"$set":["a","b"]}')),
            plain[3],
        );
        const cells = await read('CSV of the columns shown', 'moved.csv');
        assert(cells[0].startsWith('id,') && cells.some(line => line.startsWith('"csv ""1"""')), cells[0]);
    },
    {expects: ['400']},
);

test('items: CSV brings back what it took', ENGINES, async ({person, api, tab, server: on, context}) => {
    const texts = ['5', '-1.50', 'true', 'null', '', '[1]', '{"a":1}', '"quoted"', 'a,b', 'two\nlines', ' x ', XSS];
    const wanted = texts.map((words, i) => ({
        id: {S: String(i)},
        words: {S: words},
        n: {N: '12345678901234567890123456789012345678'},
        b: {B: 'aGk='},
        s: {NS: ['1', '2']},
        m: {M: {a: {L: [{S: '1'}, {BOOL: true}, {NULL: true}]}}},
    }));
    await makeTable(api, 'there');
    await makeTable(api, 'back');
    for (const Item of wanted) await api('PutItem', {TableName: 'there', Item});
    await person.visit('#/tables/there');
    await person.see(`${wanted.length} items`);
    const session = await tab.createCDPSession();
    await session.send('Browser.setDownloadBehavior', {
        behavior: 'allow',
        downloadPath: on.folder,
        browserContextId: context.id,
    });
    await person.click('Export');
    await person.click('CSV of the columns shown');
    const file = path.join(on.folder, 'there.csv');
    await until(() => fs.existsSync(file) && fs.statSync(file).size, 'the file');
    await person.visit('#/tables/back');
    await person.click('Import');
    await (await person.find('File', {kind: 'input'})).uploadFile(file);
    await person.click('Import');
    await person.see(`${wanted.length} items written. Done.`);
    for (const item of wanted) {
        const is = await getItem(api, 'back', {id: item.id});
        for (const name of Object.keys(item))
            assert(JSON.stringify(is[name]) === JSON.stringify(item[name]), `${name}: ${JSON.stringify(is[name])}`);
    }
});

test('items: an index is picked, and what it cost is told', ENGINES, async ({person, api, tab}) => {
    await api('CreateTable', {
        TableName: 'albums',
        AttributeDefinitions: ['id', 'label'].map(AttributeName => ({AttributeName, AttributeType: 'S'})),
        KeySchema: [{AttributeName: 'id', KeyType: 'HASH'}],
        GlobalSecondaryIndexes: [
            {
                IndexName: 'by-label',
                KeySchema: [{AttributeName: 'label', KeyType: 'HASH'}],
                Projection: {ProjectionType: 'KEYS_ONLY'},
            },
        ],
        BillingMode: 'PAY_PER_REQUEST',
    });
    const album = i => ({id: {S: `album ${i}`}, label: {S: i % 2 ? 'blue' : 'red'}, n: {N: String(i)}});
    await fill(api, 'albums', 40, album);
    await person.visit('#/tables/albums');
    await person.choose('Table or index', 'by-label');
    await until(() => tab.evaluate(() => location.hash.includes('index=by-label')), 'the index in the URL');
    await person.type('Condition or PartiQL', '"blue"');
    await person.press('Enter');
    await person.see(/20 items · query by key · [\d.]+ read units? · \$0\.0\d+ on AWS/);
    await person.see('quipu query albums blue --index by-label');
});

test('items: copied as data, as a command and as code', ENGINES, async ({person, api, tab}) => {
    await makeTable(api, 'copied');
    await api('PutItem', {TableName: 'copied', Item: {id: {S: "it's"}, n: {N: '12345678901234567890'}}});
    await tab.evaluateOnNewDocument(() => {
        navigator.clipboard.writeText = async words => (window.copied = words);
    });
    await person.visit("#/tables/copied/items?item=it's");
    await person.see('Save as new');
    for (const [words, wanted] of [
        ['JSON', `{\n  "id": "it's",\n  "n": 12345678901234567890\n}`],
        ['DynamoDB JSON', `"n": {\n    "N": "12345678901234567890"\n  }`],
        ['CLI', `quipu put copied '{"id":"it'\\''s","n":12345678901234567890}'`],
        ['boto3', `.put_item(TableName="copied", Item={"id": {"S": "it's"}, "n": {"N": "12345678901234567890"}})`],
        ['JavaScript', 'new PutItemCommand({"TableName":"copied"'],
    ]) {
        await person.click('Copy as', {within: '.items-panel'});
        await person.click(words, {kind: '[role=menuitem]', within: '.items-panel'});
        const copied = await until(() => tab.evaluate(() => window.copied), words);
        assert(copied.includes(wanted), `${words}: ${copied}`);
        await tab.evaluate(() => (window.copied = null));
    }
});

test('items: a file becomes a binary', ENGINES, async ({person, api, server: on}) => {
    await makeTable(api, 'files');
    const file = path.join(on.folder, 'some.bin');
    fs.writeFileSync(file, Buffer.from([0, 255, 7]));
    await person.visit('#/tables/files');
    await person.click('New item');
    await person.type('Value of id', 'one');
    await person.click('Add an attribute');
    await person.type('Name of new', 'data');
    await person.choose('Type of new', 'B');
    await person.type('Value of new', 'no base64');
    await person.click('Create');
    await person.see('data: binary is written in base64, and this is not.');
    await (await person.tab.waitForSelector('.items-panel input[type=file]')).uploadFile(file);
    await person.see('3 bytes');
    await person.click('Create');
    const made = await until(() => getItem(api, 'files', {id: {S: 'one'}}), 'the item');
    assert(made.data.B === 'AP8H', JSON.stringify(made));
});

test('items: numbers are sorted by all their digits', main, async ({person, api, tab}) => {
    const BIG = '1234567890123456789012345678901234567';
    const sorted = [`-${BIG}8`, '-0.25', '0', '0.5', '9007199254740992', '9007199254740993', `${BIG}7`, `${BIG}8`];
    await makeTable(api, 'digits');
    for (const n of sorted.toSorted())
        await api('PutItem', {TableName: 'digits', Item: {id: {S: `of ${n}`}, n: {N: n}}});
    await person.visit('#/tables/digits');
    await person.see('8 items');
    await person.click('n', {kind: 'button', within: '.rows'});
    await person.see('that are loaded, sorted');
    const shown = () => tab.$$eval('.rows tbody th a', all => all.map(one => one.textContent.slice(3)).join());
    assert((await shown()) === sorted.join(), await shown());
    await person.click('n', {kind: 'button', within: '.rows'});
    await until(async () => (await shown()) === sorted.toReversed().join(), 'the other order');
    // The URL has it, and a link brings it.
    await tab.reload();
    await until(async () => (await shown()) === sorted.toReversed().join(), 'the same order');
});

test('items: what others write is counted, and moves nothing', main, async ({person, api, tab}) => {
    await makeTable(api, 'moving');
    await fill(api, 'moving', 3, i => ({id: {S: `item ${i}`}}));
    await person.visit('#/tables/moving');
    await person.see('3 items');
    let number = 0;
    await until(async () => {
        await api('PutItem', {TableName: 'moving', Item: {id: {S: `more ${number++}`}}});
        return /\d+ writes? since/.test(await person.words('.tables-part'));
    }, 'the writes of others');
    assert((await tab.$$('.rows tbody a')).length === 3, 'the list stays');
    await person.click('Refresh', {within: '.tables-part'});
    await person.see(`${3 + number} items`);
});

test('items: by keyboard alone, dark, at 390 px', main, async ({person, api, tab}) => {
    await makeTable(api, 'keys-only');
    await fill(api, 'keys-only', 50, i => ({id: {S: `item ${i}`}, n: {N: String(i)}}));
    await person.visit('#/tables/keys-only');
    await person.see('50 items');
    await tab.waitForSelector('.rows tbody a');
    await tab.focus('.rows tbody a');
    await person.press('ArrowDown', 'ArrowDown', 'Enter');
    await person.see('Save as new');
    await person.isAccessible();
    await person.fits();
    await person.isAccessible();
});
