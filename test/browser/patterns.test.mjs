// The views of the patterns, used as a person would.

import {engines, test, until} from './harness.mjs';

const ENGINES = engines();
// What others have done is seen at the next turn, which comes late where each request costs.
const look = (person, on) => on === ENGINES[1][1] && person.click('Refresh');

test('a job of 500 tasks fills while one watches', ENGINES, async ({person, tab, api, server: on}) => {
    await person.visit('#/jobs');
    await person.open('Open a job');
    await person.type('id *', 'pages');
    await person.type('total', '500');
    await person.click('Open a job');
    await person.see('0 of 500');
    for (let from = 0; from < 500; from += 100) {
        const tasks = Array.from({length: 100}, (_, i) => from + i).filter(task => task !== 250 && task !== 499);
        await api('POST /v1/jobs/pages/done', {tasks});
    }
    await api('POST /v1/jobs/pages/failed', {task: 250, reason: 'no ink'});
    await look(person, on);
    await person.see('498 of 500');
    await person.see('1 × no ink');
    await until(
        () =>
            tab.evaluate(() => {
                // its cells: done, failed, missing
                const canvas = document.querySelector('.job-cells');
                const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
                const colors = new Set();
                for (let i = 0; i < data.length; i += 4)
                    if (data[i + 3] === 255) colors.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
                return colors.size >= 3;
            }),
        'three colours',
    );
    await person.click('Redrive failures');
    await until(async () => (await api('GET /v1/jobs/pages')).failed === 0, 'the redrive');
    await api('POST /v1/jobs/pages/done', {tasks: [250, 499]});
    await look(person, on);
    await person.see('COMPLETE');
});

// By the stream of samples alone: the turns that ask again and again are held back.
test('what others do to a pattern is seen by the stream', ENGINES[0][1], async ({person, tab, api}) => {
    const TURN_MS = 3000;
    await tab.evaluateOnNewDocument(turn => {
        const after = window.setTimeout;
        window.setTimeout = (job, ms, ...rest) => (ms === turn ? 0 : after(job, ms, ...rest));
    }, TURN_MS);
    await api('PUT /v1/jobs/streamed', {total: 9999});
    await person.visit('#/jobs/streamed');
    await person.see('0 of 9,999');
    let task = 0;
    await until(async () => {
        await api('POST /v1/jobs/streamed/done', {task: task++}); // what is done before it listens is not told
        return /[1-9]\d* of 9,999/.test(await person.words('.detail'));
    }, 'a task of somebody else');
    await api('PUT /v1/documents/streamed/first', {n: 1});
    await person.visit('#/documents/streamed');
    await person.see('first', '.detail');
    let number = 0;
    await until(async () => {
        await api(`PUT /v1/documents/streamed/another-${number++}`, {n: 2});
        return (await person.words('.detail')).includes('another');
    }, 'a document of somebody else');
});

test('a job of 100,000 tasks is shown by ranges, with few requests', ENGINES, async ({person, tab, api}) => {
    await api('PUT /v1/jobs/many', {total: 100000, tolerate: 10});
    for (let from = 0; from < 3000; from += 1000)
        await api('POST /v1/jobs/many/done', {tasks: Array.from({length: 1000}, (_, i) => from + i)});
    await api('POST /v1/jobs/many/failed', {task: 99999, reason: 'no ink'});
    const asked = new Set();
    tab.on('request', one => one.url().includes('/v1/jobs/many') && asked.add(new URL(one.url()).pathname));
    await person.visit('#/jobs/many');
    await person.see('1 × no ink');
    await person.see('Each cell is 256 tasks.');
    await person.see(/at least (3,000|2,9\d\d) of 100,000/);
    const point = async (x, y) => {
        const box = await (await tab.$('.job-cells')).boundingBox();
        await tab.mouse.move(box.x + x, box.y + y);
    };
    await until(async () => {
        await point(5, 5);
        return (await person.words('.job-said')).includes('Tasks 0 to 255: 256 done');
    }, 'the first cell');
    // nothing was asked of single tasks
    const paths = [...asked].sort().join(' ');
    if (paths !== '/v1/jobs/many /v1/jobs/many/failures') throw new Error(paths);
});

test('a job whose tasks have names tells how many are done', ENGINES, async ({person, api}) => {
    await api('PUT /v1/jobs/letters', {tasks: ['a', 'b', 'c', 'd']});
    await api('POST /v1/jobs/letters/done', {task: 'c'});
    await person.visit('#/jobs/letters');
    await person.see('1 of 4');
    await person.see('The cells tell how many are done, not which.');
});

test('a group tells what it waits for, and is completed by hand', ENGINES, async ({person, api, server: on}) => {
    await api('PUT /v1/groups/order', {complete: {kinds: ['paid', 'packed', 'sent']}});
    await api('POST /v1/groups/order/o-1', {id: 'e1', kind: 'paid'});
    await person.visit('#/groups');
    await person.click('order');
    await person.click('o-1');
    await person.see(/Is missing[\s\S]*packed[\s\S]*sent/);
    await api('POST /v1/groups/order/o-1', {id: 'e2', kind: 'packed'});
    await look(person, on);
    await person.see('Has come (2)');
    await person.click('Complete now');
    await person.see('COMPLETE');
});

test('dead work is retried from its list', ENGINES, async ({person, api}) => {
    await api('PUT /v1/work/mails', {attempts: 1});
    for (const id of ['m1', 'm2']) {
        await api(`POST /v1/work/mails/${id}`, {data: {to: id}});
        const unit = await api('POST /v1/work/mails/claim', {owner: 'w'});
        await api(`POST /v1/work/mails/${unit.id}/fail`, {fence: unit.fence, reason: 'no such address'});
    }
    await person.visit('#/work/mails?units=dead');
    await person.see('no such address');
    await person.click('Retry all dead');
    await until(async () => (await api('GET /v1/work/mails?state=dead')).work.length === 0, 'no dead work');
    await person.seeNot('no such address', '.detail table');
});

test('a lease shows its line, and is released', ENGINES, async ({person, api, server: on}) => {
    await api('POST /v1/leases/cron', {owner: 'ann', for: '1h'});
    const waiting = api('POST /v1/leases/cron?wait=60s', {owner: 'bob', for: '1h'});
    await person.visit('#/leases/cron');
    await person.see('ann', '.detail');
    await person.see('bob', '.detail');
    await person.click('Release');
    await waiting;
    await until(async () => (await api('GET /v1/leases/cron')).owner === 'bob', 'the next in line');
    await look(person, on);
    await person.see(/bob/, '.detail table');
});

test('a log is split, and a group is set back', ENGINES, async ({person, api}) => {
    await api('PUT /v1/logs/events', {partitions: 1});
    for (let i = 0; i < 3; i++) await api('POST /v1/logs/events', {key: `k${i}`, data: {i}});
    const read = await api('POST /v1/logs/events/consumers/bill/read', {owner: 'me'});
    await api('POST /v1/logs/events/consumers/bill/ack', {partition: read.partition, fence: read.fence, sequence: 3});
    await person.visit('#/logs/events');
    await person.see('bill', '.detail');
    await person.click('Split 0');
    await until(async () => (await api('GET /v1/logs/events')).open.length === 2, 'two partitions');
    await person.see('2 · 3', '.log-tree');
    await person.open('Replay');
    await person.type('time', 'start');
    await person.click('Replay');
    await until(async () => (await api('GET /v1/logs/events/consumers/bill/lag')).lag === 3, 'a lag of three');
    await person.see('○ 3', '.detail');
});

test(
    'a document that somebody else has changed is not written over unseen',
    ENGINES,
    async ({person, tab, api}) => {
        await api('PUT /v1/documents/users/u1', {name: 'Ann'});
        await person.visit('#/documents/users/u1');
        await person.open('Edit');
        await api('PUT /v1/documents/users/u1', {name: 'Bob'});
        await tab.evaluate(() => {
            document.querySelector('dialog textarea').value = '{"name":"Eve","big":12345678901234567890}';
        });
        await person.click('Save');
        await person.see('Somebody has changed it meanwhile');
        await person.see('Bob', 'dialog');
        await person.click('Save mine over it');
        await person.click('Save');
        await person.see('12345678901234567890');
    },
    {expects: ['412', '409']},
);

test('a period, a board and a counter are made where there was none', ENGINES, async ({person, api}) => {
    await person.visit('#/boards');
    await person.see('A board keeps messages');
    await person.open('Post a message');
    await person.type('name *', 'wall');
    await person.type('text *', 'hello there');
    await person.click('Post a message');
    await person.see('hello there');
    await person.visit('#/periods');
    await person.open('Make a period');
    await person.type('name *', 'digest');
    await person.type('every', '1h');
    await person.click('Make a period');
    await person.see('Present bucket');
    await api('POST /v1/periods/digest', {data: {page: '/'}});
    await person.visit('#/counters');
    await person.open('Add to a counter');
    await person.type('name *', 'orders');
    await person.click('Add to a counter');
    await person.see('1', '.counter-value');
    await person.click('Remove');
    await person.type('/Type orders/', 'orders');
    await person.click('Remove');
    await person.seeNot('The last number');
});
