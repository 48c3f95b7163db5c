// The changes of a table as they happen, and the history of its items.
import {engines, server, test, until} from './harness.mjs';
import {assert, getItem, makeTable, XSS} from './tables.mjs';

const ENGINES = engines('--functions', 'functions');
const [[, main], [, remote]] = ENGINES;
const onDisk = server('--data', 'data', '--no-functions');
const diskElsewhere = server('--data', 'data', '--no-functions');
const onDiskElsewhere = server(async () => ['--on', (await diskElsewhere.start()).url, '--no-functions']);
const KEEPING = [
    ['embedded', onDisk],
    ['--on', onDiskElsewhere],
];
const alternator = server('--imitate', 'alternator');
const onAlternator = server(async () => ['--on', (await alternator.start()).url, '--no-functions']);

const put = (api, name, id, n) =>
    api('PutItem', {TableName: name, Item: {id: {S: id}, n: {N: String(n)}, m: {M: {a: {S: XSS}}}}});

test(
    'changes: a change arrives with its diff, and a pattern is tried out on it',
    main,
    async ({person, api, tab}) => {
        await makeTable(api, 'live');
        await person.visit('#/tables/live/changes');
        await person.see('Waiting for a change');
        // The page may begin to listen a moment after it says that it waits: write until one arrives.
        let number = 0;
        await until(async () => {
            await put(api, 'live', 'a', ++number);
            return (await tab.$$('.changes-list li')).length > 0;
        }, 'a first change');
        await put(api, 'live', XSS, 101);
        await put(api, 'live', XSS, 102);
        await person.see('n: 101 → 102', '.changes-list');
        const line = await until(() => tab.$('.changes-list li summary'), 'a line');
        await line.click();
        await person.see('before', '.changes-list');
        await person.see('+ 102', '.changes-list');
        await api('DeleteItem', {TableName: 'live', Key: {id: {S: XSS}}});
        // What comes while one reads waits behind a button.
        await person.click(/^1 new$/);
        await person.see('remove', '.changes-list');
        await person.choose('Kind of change', 'REMOVE');
        await until(async () => (await tab.$$('.changes-list li')).length === 1, 'the filter by kind');
        await person.choose('Kind of change', '');
        await person.type('Filter records', '102');
        await person.see(/2 fit/);
        // The digits of its time and number are not what a record contains.
        await person.type('Filter records', String(Date.now()).slice(0, 4));
        await person.see(/ 0 fit/);
        await person.type('Filter records', '');
        await person.click('Try out an event pattern');
        const pattern = {eventName: ['MODIFY'], dynamodb: {NewImage: {id: {S: [{prefix: '<img'}]}, n: {N: ['102']}}}};
        await person.type('Pattern, as a trigger’s filter has it', JSON.stringify(pattern));
        await person.click('Test on the last 100');
        await person.see(/1 of the last \d+ changes here match/);
        await person.type('Pattern, as a trigger’s filter has it', '{"eventName": [{"odd": 1}]}');
        await person.click('Test on the last 100');
        await person.see('Unrecognized match type odd');
        await person.isAccessible();
        await person.click('Pause');
        await person.see('paused');
        await person.fits();
    },
    {expects: ['400 (Bad Request)']},
);

test('history: an old version is compared and restored', ENGINES, async ({person, api, tab}) => {
    await makeTable(api, 'past');
    await person.visit('#/tables/past/history');
    await person.see('No history');
    await person.type('Keep versions for', '30d');
    await person.click('Keep every change');
    await person.see('each version for 30d');
    const id = `a/b c ${XSS}`;
    for (let n = 1; n <= 3; n++) await put(api, 'past', id, n);
    await until(async () => {
        const {versions} = await api(`GET /v1/history/past/${encodeURIComponent(id)}`);
        return versions.length === 3;
    }, 'three versions');
    // From the changes of the table to those of the item.
    await person.click('Refresh', {within: '.history-place'});
    await person.see('3 changes');
    // Words, or the server's own event patterns.
    const search = async words => {
        await person.type('Filter changes', words);
        await person.press('Enter');
    };
    await search('"n":2');
    await person.see('1 of 3 changes');
    await search('{"event": ["MODIFY"]}');
    await person.see('2 of 3 changes');
    await search('{"event": ["MODIFY"], "item": {"n": [{"numeric": [">", 2]}]}}');
    await person.see('1 of 3 changes');
    assert((await tab.evaluate(() => location.hash)).includes('filter='), 'the filter is in the URL');
    await search('');
    await person.seeNot('of 3 changes');
    await person.click(id, {kind: 'link'});
    await person.see('3 versions');
    // By keyboard: the handles to the first and the last version.
    await (await person.find('To: version', {kind: '[role=slider]'})).focus();
    await person.press('End');
    await person.see('+ 3', '.history-diff');
    await (await person.find('From: version', {kind: '[role=slider]'})).focus();
    await person.press('Home');
    await person.see('− 1', '.history-diff');
    assert((await tab.evaluate(() => location.hash)).includes('from='), 'the comparison is in the URL');
    await person.isAccessible();
    await person.click('Restore “from”');
    const Key = {id: {S: id}};
    await until(async () => (await getItem(api, 'past', Key)).n.N === '1', 'the restored item');
    await person.see('restored; 4 versions');
    // As of a time, and forgotten with its name typed.
    await person.fits();
    await tab.setViewport({width: 1280, height: 800});
    await person.click('Forget…');
    await person.type('Type past', 'past');
    await person.click('Forget');
    await person.see('No history');
});

test('changes: those of another server come by the stream', remote, async ({person, api, tab}) => {
    await makeTable(api, 'far');
    await person.visit('#/tables/far/changes');
    await person.see('No stream');
    await person.click('Turn the stream on');
    await person.see('Waiting for a change');
    let number = 0;
    await until(async () => {
        await put(api, 'far', 'a', ++number);
        return (await tab.$$('.changes-list li')).length > 1;
    }, 'changes');
    await person.see(/n: \d+ → \d+/, '.changes-list');
});

test('backups: one is made, restored and deleted; and a moment is restored', KEEPING, async ({person, api}) => {
    await makeTable(api, 'kept');
    await put(api, 'kept', 'a', 1);
    await person.visit('#/tables/kept/backups');
    await person.see('None of this table.');
    await person.type('Name of the backup', 'before');
    await person.click('Make a backup');
    await person.see('1 backup');
    await put(api, 'kept', 'a', 2);
    await person.click('Restore…');
    await person.type('Name of the new table', 'kept-again');
    await person.click('Restore');
    await until(async () => {
        const {Table} = await api('DescribeTable', {TableName: 'kept-again'}).catch(() => ({}));
        return Table?.TableStatus === 'ACTIVE';
    }, 'the restored table');
    assert((await getItem(api, 'kept-again', {id: {S: 'a'}})).n.N === '1', 'it is what the backup has');
    await person.see('kept-again', '.tables-detail h1');
    await person.visit('#/tables/kept/backups');
    await person.click('Keep every moment');
    await person.see('can be made a new table');
    await person.isAccessible();
    await person.click('Restore a moment…');
    await person.type('Name of the new table', 'kept-now');
    await person.click('as it is now');
    await person.click('Restore');
    await until(async () => {
        const {Table} = await api('DescribeTable', {TableName: 'kept-now'}).catch(() => ({}));
        return Table?.TableStatus === 'ACTIVE';
    }, 'the moment');
    await person.see('kept-now', '.tables-detail h1');
    assert((await getItem(api, 'kept-now', {id: {S: 'a'}})).n.N === '2', 'it is what the table has');
    await person.visit('#/tables/kept/backups');
    await person.click('Delete…');
    await person.type('Type before', 'before');
    await person.click('Delete');
    await person.see('None of this table.');
    await person.fits();
});

test(
    'backups: a database that makes none is told in a sentence',
    onAlternator,
    async ({person, api}) => {
        await makeTable(api, 'kept');
        await person.visit('#/tables/kept/backups');
        await person.see('The database that holds this table makes no backups.');
        await person.seeNot('UnknownOperationException');
        await person.isAccessible();
    },
    {expects: ['400']},
);
