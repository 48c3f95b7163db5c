// The pictures of the documents: SHOTS_FOLDER=doc/pictures node test/browser/run.mjs test/browser/pictures.test.mjs
// Each is a view with something in it that is worth to be seen. Without SHOTS_FOLDER the scenes are played in short.

import {SHOTS, server, test, until} from './harness.mjs';

const main = server('--memory');
const TRAFFIC_SECONDS = SHOTS ? 75 : 2;

const PEOPLE = ['Ann', 'Bob', 'Chloé', 'Dmitri', 'Eve', 'Farid', 'Grace', 'Hiro'];

async function orders(api, count) {
    await api('CreateTable', {
        TableName: 'orders',
        KeySchema: [
            {AttributeName: 'customer', KeyType: 'HASH'},
            {AttributeName: 'order', KeyType: 'RANGE'},
        ],
        AttributeDefinitions: [
            {AttributeName: 'customer', AttributeType: 'S'},
            {AttributeName: 'order', AttributeType: 'N'},
        ],
        BillingMode: 'PAY_PER_REQUEST',
        StreamSpecification: {StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES'},
    });
    for (let i = 0; i < count; i++)
        await api('PutItem', {
            TableName: 'orders',
            Item: {
                customer: {S: PEOPLE[i % PEOPLE.length]},
                order: {N: String(1000 + i)},
                total: {N: ((i * 37) % 900) + '.50'},
                state: {S: ['paid', 'packed', 'sent'][i % 3]},
                lines: {L: [{M: {article: {S: `A-${i % 11}`}, pieces: {N: String(1 + (i % 4))}}}]},
            },
        });
}

test('pictures: a job that is half done', main, async ({person, api}) => {
    await api('PUT /v1/jobs/scan-archive', {total: 2000, tolerate: 10});
    const tasks = Array.from({length: 1310}, (_, i) => i).filter(i => i % 97 !== 5 && i % 13 !== 12);
    for (let i = 0; i < tasks.length; i += 100)
        await api('POST /v1/jobs/scan-archive/done', {tasks: tasks.slice(i, i + 100)});
    for (const task of [5, 102, 199, 296])
        await api('POST /v1/jobs/scan-archive/failed', {task, reason: 'page is blank'});
    await person.visit('#/jobs/scan-archive');
    await person.see('4 × page is blank');
    await person.picture('console-job');
});

test('pictures: items, and one of them', main, async ({person, api}) => {
    await orders(api, 60);
    await person.visit('#/tables/orders/items');
    await person.see('Chloé');
    await person.picture('console-items');
});

test('pictures: a log with its groups', main, async ({person, api}) => {
    await api('PUT /v1/logs/payments', {partitions: 4});
    const append = async count => {
        for (let i = 0; i < count; i++)
            await api('POST /v1/logs/payments', {key: PEOPLE[i % 8] + i, data: {amount: i}});
    };
    await append(40);
    await api('POST /v1/logs/payments/split', {partition: '1'});
    await append(40);
    await api('POST /v1/logs/payments/merge', {partitions: ['2', '3']});
    await append(20);
    for (const group of ['billing', 'mail'])
        for (let i = 0; i < (group === 'mail' ? 2 : 1); i++) {
            const read = await api(`POST /v1/logs/payments/consumers/${group}/read`, {owner: `${group}-1`});
            const {partition, fence, events} = read;
            await api(`POST /v1/logs/payments/consumers/${group}/ack`, {
                partition,
                fence,
                sequence: events.at(-1).sequence,
            });
        }
    await person.visit('#/logs/payments');
    await person.see('billing', '.detail');
    await person.picture('console-log');
});

test('pictures: the overview under load', main, async ({person, tab, api}) => {
    await person.visit();
    await person.see('● live');
    const until_ms = Date.now() + TRAFFIC_SECONDS * 1000;
    let i = 0;
    const worker = async () => {
        while (Date.now() < until_ms) {
            const customer = {S: PEOPLE[i++ % 8]};
            await api('PutItem', {
                TableName: 'orders',
                Item: {customer, order: {N: String(i % 500)}, total: {N: '1'}},
            });
            for (let k = 0; k < 1 + (i % 3); k++)
                await api('GetItem', {TableName: 'orders', Key: {customer, order: {N: String(i % 500)}}});
            await new Promise(done => setTimeout(done, 20 + 15 * Math.sin(Date.now() / 4000)));
        }
    };
    await Promise.all([worker(), worker(), worker(), worker()]);
    await person.picture('console-overview');
    await tab.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'dark'}]);
    await tab.reload();
    await person.see('● live');
    await until(
        () => tab.evaluate(() => /\d/.test(document.querySelector('.plot .now')?.textContent ?? '')),
        'a plot',
    );
    await person.picture('console-overview-dark');
});
