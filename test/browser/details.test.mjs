// Lists that are longer than a page, what is going on while one goes elsewhere, and a server that is away.
import {engines, server, test, until} from './harness.mjs';
import {assert, fill, makeTable} from './tables.mjs';

const ENGINES = engines('--no-functions');
const main = server('--memory', '--no-functions');
const settled = tab => tab.waitForNetworkIdle({idleTime: 500, concurrency: 1}); // the stream of samples goes on

test('a period shows its last buckets, however many there were', main, async ({person, api}) => {
    await api('PUT /v1/periods/long', {every: '1m', keep: '30d'});
    const begin = Date.now() - 200 * 60e3;
    const at = i => new Date(begin + i * 60e3).toISOString();
    for (let i = 0; i < 150; i++) await api('POST /v1/periods/long', {data: i, time: at(i)});
    while ((await api('POST /v1/periods/long/close', {})).more);
    await person.visit('#/periods/long');
    const newest = new Date(Math.floor((begin + 149 * 60e3) / 60e3) * 60e3).toISOString();
    await until(
        () => person.tab.evaluate(key => !!document.querySelector(`tr[data-key="${key}"]`), newest),
        'the newest bucket',
    );
});

test('more than a page is counted, found and opened', ENGINES, async ({person, api}) => {
    for (let i = 0; i < 130; i++) await api(`POST /v1/counters/many-${String(i).padStart(3, '0')}`, {});
    for (let i = 0; i < 120; i++) await api(`PUT /v1/documents/large/k${String(i).padStart(3, '0')}`, {n: i});
    await person.visit('#/documents/large/k119');
    await person.see('k119 · version', '.detail');
    await until(async () => (await person.words('#count-counters')).trim() === '130', 'all counters to be counted');
    await person.press('Control+k');
    await person.type('Go to', 'many-129');
    await person.see('Counter many-129');
});

test(
    'what is not there is told',
    ENGINES,
    async ({person}) => {
        await person.visit('#/documents/large/none');
        await person.see('There is no document', '.fault');
    },
    {expects: ['404']},
);

test('settings stand in the form, and only settings', ENGINES, async ({person, api, tab}) => {
    await api('PUT /v1/periods/set', {every: '1h', grace: '5m'});
    await api('PUT /v1/work/set', {lease: '45s', attempts: 7});
    await api('PUT /v1/logs/set', {partitions: 2, keep: '7d'});
    await api('PUT /v1/jobs/set', {total: 5, tolerate: 2});
    const value = async label => (await person.find(label, {kind: 'input'})).evaluate(one => one.value);
    for (const [where, opener, label, is, not] of [
        ['periods', 'Settings', 'grace', '5m', 'end'],
        ['work', 'Settings', 'lease', '45s', 'next'],
        ['logs', 'Settings', 'keep', '7d', 'consumers'],
        ['jobs', 'Change', 'tolerate', '2', 'state'],
    ]) {
        await person.visit(`#/${where}/set`);
        await person.open(opener);
        assert((await value(label)) === is, `${where}: ${label}`);
        const labels = await tab.$$eval('dialog label', all => all.map(one => one.textContent));
        assert(!labels.includes(not), `${where} asks for ${not}: ${labels}`);
        await person.click('Save');
        await until(async () => !(await tab.$('dialog[open]')), 'the dialog to go');
    }
    const queue = await api('GET /v1/work/set');
    assert(queue.lease === '45s' && queue.attempts === 7, JSON.stringify(queue));
});

test('a dialog does not stand over another view', ENGINES, async ({person, tab}) => {
    await person.visit('#/counters');
    await person.visit('#/jobs');
    await person.open('Open a job');
    await tab.evaluate(() => (location.hash = '#/counters'));
    await until(async () => !(await tab.$('dialog[open]')), 'the dialog to go');
    await person.see('Counters', 'h1');
});

test('leaving a form and its view at once is no fault', ENGINES, async ({person, tab, api}) => {
    await api('POST /v1/counters/left', {});
    await person.visit('#/counters/left');
    await person.open('Set');
    await tab.setRequestInterception(true);
    const held = [];
    tab.on('request', one => (one.url().endsWith('/v1/counters/left') ? held.push(one) : one.continue()));
    await person.press('Escape');
    await until(() => held.length, 'the counter to be asked for');
    await tab.evaluate(() => (location.hash = '#/help'));
    await person.see('Help', 'h1');
    await settled(tab);
});

test('a job: the list follows the URL; a part it has not is told', ENGINES, async ({person, tab, api}) => {
    await api('PUT /v1/jobs/shown', {total: 1});
    await person.visit('#/jobs');
    await person.choose('State', 'failed');
    await until(() => tab.evaluate(() => location.hash.includes('state=failed')), 'the state in the URL');
    await tab.goBack();
    const chosen = () => tab.$eval('select[aria-label=State]', one => one.value);
    await until(async () => (await chosen()) === 'open', 'the open ones again');
    await person.visit('#/jobs/shown/zzz');
    await person.see('A job has no part “zzz”');
    await api('POST /v1/jobs/shown/done', {task: 0});
    await person.visit('#/jobs/shown');
    await person.see(/Ended\s+\S+/, '.detail');
});

test('what was opened below the screen is brought to where it is seen', main, async ({person, tab, api}) => {
    await makeTable(api, 'narrow');
    await fill(api, 'narrow', 60, i => ({id: {S: `item ${i}`}}));
    await tab.setViewport({width: 390, height: 844});
    const isSeen = selector =>
        tab.evaluate(one => document.querySelector(one)?.getBoundingClientRect().bottom < innerHeight, selector);
    await person.visit('#/tables/narrow');
    await person.see('60 items');
    await person.click('item 1', {kind: 'link'});
    await until(() => isSeen('.items-panel h2'), 'the item to be seen');
    for (let i = 0; i < 45; i++) await api(`PUT /v1/jobs/narrow-${i}`, {total: 1});
    await person.visit('#/jobs');
    await person.click('narrow-7', {kind: 'link'});
    await until(() => isSeen('.chosen h2'), 'the job to be seen');
});

test(
    'a view that did not come is there when the server is back',
    main,
    async ({person, tab}) => {
        await person.visit('#/help');
        await tab.setOfflineMode(true);
        await tab.evaluate(() => (location.hash = '#/leases'));
        await person.see('The server does not answer.', '#main');
        await tab.setOfflineMode(false);
        await person.see('A lease lets one at a time', '#main');
    },
    {expects: ['ERR_INTERNET_DISCONNECTED', 'Failed to fetch']},
);

const mortal = server('--data', 'data', '--no-functions');
test(
    'a server that was killed is told of, and what it has when it is back',
    mortal,
    async ({person, tab, api}) => {
        await makeTable(api, 'mortal');
        await api('PUT /v1/jobs/mortal', {total: 3});
        await person.visit('#/jobs/mortal');
        await person.see('0 of 3');
        await mortal.kill();
        await person.see('✕ no answer', '#health');
        await person.see('The server does not answer.', '.detail');
        await mortal.revive();
        await api('POST /v1/jobs/mortal/done', {task: 1});
        await person.see('● live', '#health');
        await person.see('1 of 3');
        await until(async () => !(await tab.$('.fault')), 'the faults to go');
        await person.visit('#/tables/mortal/changes');
        await person.see('Waiting for a change');
        await mortal.kill();
        await person.see('The server does not answer.', '.tables-part');
        await mortal.revive();
        let number = 0;
        await until(async () => {
            await api('PutItem', {TableName: 'mortal', Item: {id: {S: `a ${number++}`}}});
            return (await tab.$$('.changes-list li')).length > 0;
        }, 'a change');
        await person.see('without those while the server was away');
    },
    {expects: ['ERR_', 'Failed to fetch']},
);

test('what waits, by whom and for what', ENGINES, async ({person, api}) => {
    await api('PUT /v1/groups/wait', {complete: {kinds: ['paid', 'packed']}, fold: {total: {sum: 'amount'}}});
    await api('POST /v1/groups/wait/o-1', {id: 'e1', kind: 'paid', data: {amount: 42}});
    await person.visit('#/groups/wait');
    await until(async () => /o-1\s+1\s+1\s+packed/.test(await person.words('.detail')), 'what it waits for');
    await person.click('o-1');
    await person.see(/total\s+42/, '.group-sides');
    await api('POST /v1/groups/wait/o-1/complete', {});
    await person.visit('#/groups/wait/o-1?which=complete');
    await person.see('It was completed without these');
    await person.see('packed', '.group-sides');
    await api('PUT /v1/work/states', {attempts: 1});
    for (const id of ['a', 'b', 'c']) await api(`POST /v1/work/states/${id}`, {data: 1});
    const unit = await api('POST /v1/work/states/claim', {owner: 'w'});
    await api(`POST /v1/work/states/${unit.id}/fail`, {fence: unit.fence, reason: 'no ink'});
    await person.visit('#/work/states');
    await person.see(/2 ready[\s\S]*1 dead/, '.work-counts');
    await person.visit('#/overview');
    await person.see('1 dead unit of work');
    await person.open('Retry all that failed');
    await person.see('There are 1 dead unit of work');
    await person.click('Retry');
    await until(async () => !(await api('GET /v1/work/states?state=dead')).work.length, 'no dead work');
});

test('what destroys asks first', ENGINES, async ({person, api, tab}) => {
    await api('POST /v1/work/asks/u1', {data: 1});
    await api('POST /v1/boards/asks', {text: 'stay'});
    await person.visit('#/work/asks/u1');
    await person.open('Delete');
    await person.click('Delete it');
    await person.see('That is not “u1”.');
    await person.type('Type u1', 'u1');
    await person.click('Delete it');
    await until(async () => !(await api('GET /v1/work/asks')).work.length, 'the unit to go');
    await person.see('No units');
    await person.visit('#/boards/asks');
    await person.open('/^Delete /');
    await person.click('Cancel');
    await until(async () => !(await tab.$('dialog[open]')), 'the question to go');
    assert((await api('GET /v1/boards/asks')).messages.length === 1, 'the message is there');
    await person.open('/^Delete /');
    await person.click('Delete it');
    await person.see('No messages');
});

test('a hidden tab follows no changes', main, async ({person, tab, api}) => {
    await makeTable(api, 'unseen');
    let open = 0;
    const isStream = one => one.url().includes('/console/changes');
    tab.on('request', one => (open += isStream(one) ? 1 : 0));
    tab.on('requestfailed', one => (open -= isStream(one) ? 1 : 0));
    const show = hidden =>
        tab.evaluate(is => {
            Object.defineProperty(document, 'hidden', {configurable: true, get: () => is});
            document.dispatchEvent(new Event('visibilitychange'));
        }, hidden);
    await person.visit('#/tables/unseen/changes');
    await until(() => open === 1, 'the stream');
    await show(true);
    await until(() => open === 0, 'the stream to end');
    await show(false);
    await until(() => open === 1, 'the stream again');
    // It has been asked for; the server may hear of it a moment later: write until a change arrives.
    let number = 0;
    await until(async () => {
        await api('PutItem', {TableName: 'unseen', Item: {id: {S: 'seen again'}, n: {N: String(++number)}}});
        return (await tab.$$('.changes-list li')).length > 0;
    }, 'a change');
    await person.see('seen again');
});

test('the first view is small', main, async ({person, tab}) => {
    const session = await tab.createCDPSession();
    await session.send('Network.enable');
    let bytes = 0;
    const files = new Set();
    session.on('Network.responseReceived', ({requestId, response}) => {
        if (!/json|event-stream/.test(response.mimeType)) files.add(requestId);
    });
    session.on('Network.loadingFinished', one => (bytes += files.has(one.requestId) ? one.encodedDataLength : 0));
    await person.visit('');
    await person.see('Operations a second');
    await settled(tab);
    assert(bytes > 10e3 && bytes < 150e3, `${bytes} bytes`);
});

test('a job tells of the tasks of a cell, by click and by keys', ENGINES, async ({person, tab, api, server: on}) => {
    const isHere = on === ENGINES[0][1];
    await api('PUT /v1/jobs/cells', {total: 6, tolerate: 3});
    await api('POST /v1/jobs/cells/done', {tasks: [0, 1]});
    await api('POST /v1/jobs/cells/failed', {task: 3, reason: 'no ink'});
    await person.visit('#/jobs/cells');
    await person.see('1 × no ink');
    await tab.focus('.job-cells');
    await person.press('Home', 'ArrowRight', 'ArrowRight', 'ArrowRight', 'Enter');
    await person.see('3 failed: no ink', '.job-listed');
    await person.press('Home', 'Enter');
    await person.see('0 done', '.job-listed');
    await person.press('Home', 'ArrowRight', 'ArrowRight', 'Enter');
    await person.see('2 missing', '.job-listed');
    await api('POST /v1/jobs/cells/done', {task: 2});
    if (!isHere) await person.click('Refresh');
    await person.see('2 done', '.job-listed'); // what is listed fills, too
    await tab.reload();
    await person.see('2 done', '.job-listed');
    await api('PUT /v1/jobs/ranges', {total: 20000});
    await api('POST /v1/jobs/ranges/done', {tasks: [256]});
    await person.visit('#/jobs/ranges');
    await person.see('Each cell is');
    await tab.focus('.job-cells');
    await person.press('Home', 'ArrowRight', 'Enter');
    await person.see('256 done', '.job-listed');
    await person.see('257 missing', '.job-listed');
});

test('bars of a period and of a log are links', ENGINES, async ({person, tab, api}) => {
    await api('PUT /v1/periods/bars', {every: '1h'});
    await api('POST /v1/periods/bars', {data: 'hello'});
    await api('PUT /v1/logs/bars', {partitions: 2});
    await person.visit('#/periods/bars');
    await tab.waitForSelector('.period-line a');
    await person.see(/OPEN\s+1/, '.detail'); // an open one is as high as it has events
    await tab.evaluate(() => document.querySelector('.period-line a').focus());
    await person.press('Enter');
    await person.see('hello', '.detail');
    await person.isAccessible();
    await person.visit('#/logs/bars');
    await tab.waitForSelector('.log-tree a');
    await tab.evaluate(() => document.querySelector('.log-tree a').focus());
    await person.press('Enter');
    await person.see('Partition 0', '.detail');
    await person.isAccessible();
});
