// What the console costs: bytes of the first view, the first paint with 1,000 tables, what the picture of a large job
// asks for, rows held while a large table is scrolled, and the server's share of a core with 20 consoles open.
//
// node bench/console.mjs [--tables 1000] [--items 1000000] [--tasks 1000000] [--consoles 20] [--seconds 10]
// Needs what `script/test browser` installs: chromium, and build/npm.

import fs from 'node:fs';
import {execFileSync} from 'node:child_process';
import {apiOf, launch, server, until} from '../test/browser/harness.mjs';

const given = Object.fromEntries(
    process.argv
        .slice(2)
        .flatMap((word, i, all) => (word.startsWith('--') ? [[word.slice(2), Number(all[i + 1])]] : [])),
);
const {tables = 1000, items = 1000000, tasks = 1000000, consoles = 20, seconds = 10} = given;
const CLOCK_HZ = Number(execFileSync('getconf', ['CLK_TCK'], {encoding: 'utf8'}));
const median = numbers => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const sleep = ms => new Promise(done => setTimeout(done, ms));

// Seconds of the processor that a process has used.
function used(pid) {
    const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return (Number(fields[11]) + Number(fields[12])) / CLOCK_HZ;
}

const table = name => ({
    TableName: name,
    KeySchema: [{AttributeName: 'id', KeyType: 'HASH'}],
    AttributeDefinitions: [{AttributeName: 'id', AttributeType: 'S'}],
    BillingMode: 'PAY_PER_REQUEST',
});

async function firstView(browser, url) {
    const paints = [],
        bytes = [];
    for (let round = 0; round < 5; round++) {
        const context = await browser.createBrowserContext(); // nothing is in its cache
        const tab = await context.newPage();
        const session = await tab.createCDPSession();
        let sum = 0;
        await session.send('Network.enable');
        session.on('Network.loadingFinished', event => (sum += event.encodedDataLength));
        await tab.goto(`${url}/#/tables`, {waitUntil: 'load'});
        await tab.waitForSelector('#main table tbody tr');
        paints.push(
            await tab.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN),
        );
        bytes.push(sum);
        await context.close();
    }
    return {paint: median(paints), bytes: median(bytes)};
}

// A job that is half done: how soon its picture is there, and what the view asks for until then and in a turn.
async function pictured(browser, url, api) {
    await api('PUT /v1/jobs/large', {total: tasks, tolerate: 10});
    for (let from = 0; from < tasks / 2; from += 1000)
        await api('POST /v1/jobs/large/done', {tasks: Array.from({length: 1000}, (_, i) => from + i)});
    await api('POST /v1/jobs/large/failed', {task: tasks - 1});
    const {cost} = await api('GET /v1/jobs/large?progress=true&ranges=10000&cost=true');
    const tab = await browser.newPage();
    const asked = [];
    tab.on('request', one => one.url().includes('/v1/jobs/large') && asked.push(one.url()));
    const began = Date.now();
    await tab.goto(`${url}/#/jobs/large`, {waitUntil: 'load'});
    await tab.waitForSelector('.job-cells[aria-label]');
    const spent = Date.now() - began,
        first = asked.length;
    await sleep(seconds * 1000);
    const each = ((asked.length - first) / seconds).toFixed(1);
    await tab.close();
    return {spent, first, each, units: cost.readUnits};
}

async function scrolled(browser, url, api) {
    await api('CreateTable', table('large'));
    let next = 0;
    const writer = async () => {
        while (next < items) {
            const from = next;
            next += 25;
            const puts = Array.from({length: Math.min(25, items - from)}, (_, i) => ({
                PutRequest: {Item: {id: {S: `item-${from + i}`}, n: {N: String(from + i)}, text: {S: 'some words'}}},
            }));
            await api('BatchWriteItem', {RequestItems: {large: puts}});
        }
    };
    await Promise.all(Array.from({length: 16}, writer));
    const tab = await browser.newPage();
    await tab.goto(`${url}/#/tables/large/items`, {waitUntil: 'load'});
    await tab.waitForSelector('[role=row], tbody tr');
    const selector = '.rows';
    await tab.waitForSelector(selector);
    let most = 0,
        held = 0,
        reached = 0,
        steps = 0;
    const began = Date.now();
    while (Date.now() - began < 60e3) {
        const seen = await tab.evaluate(async where => {
            const list = [...document.querySelectorAll(where)].at(-1);
            const before = list.scrollTop;
            list.scrollTop += list.clientHeight * 20;
            await new Promise(done => setTimeout(done, 50));
            return {
                rows: document.querySelectorAll('[role=row], tbody tr').length,
                moved: list.scrollTop > before,
                held: Number(list.dataset.held),
                known: Number(list.dataset.known),
            };
        }, selector);
        most = Math.max(most, seen.rows);
        held = Math.max(held, seen.held);
        reached = seen.known;
        steps += seen.moved;
    }
    const heap = await tab.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
    await tab.close();
    return {most, held, reached, heap, steps};
}

async function watched(url, pid) {
    const ends = new AbortController();
    const open = Array.from({length: consoles}, async () => {
        const reply = await fetch(`${url}/console/events?since=0`, {signal: ends.signal});
        for await (const piece of reply.body) void piece;
    });
    for (const one of open) one.catch(() => {});
    await sleep(2000);
    const before = used(pid);
    await sleep(seconds * 1000);
    const share = (used(pid) - before) / seconds;
    ends.abort();
    await sleep(2000);
    const alone = used(pid);
    await sleep(seconds * 1000);
    return {share, alone: (used(pid) - alone) / seconds};
}

const main = await server('--memory', '--no-functions').start();
const api = apiOf(main.url);
const browser = await launch();
try {
    for (let i = 0; i < tables; i += 50)
        await Promise.all(
            Array.from({length: Math.min(50, tables - i)}, (_, k) => api('CreateTable', table(`t-${i + k}`))),
        );
    await until(
        async () => (await api('DescribeTable', {TableName: `t-${tables - 1}`})).Table.TableStatus === 'ACTIVE',
    );
    const first = await firstView(browser, main.url);
    const cost = await watched(main.url, main.child.pid);
    const job = tasks > 0 ? await pictured(browser, main.url, api) : null;
    const list = items > 0 ? await scrolled(browser, main.url, api) : null;
    console.log('| the console | |\n|---|---|');
    console.log(
        `| first view over the wire, nothing cached, ${tables} tables | ${(first.bytes / 1000).toFixed(1)} KB |`,
    );
    console.log(`| first paint | ${first.paint.toFixed(0)} ms |`);
    console.log(`| the server with ${consoles} consoles open | ${(cost.share * 100).toFixed(2)} % of a core |`);
    console.log(`| the same without | ${(cost.alone * 100).toFixed(2)} % |`);
    if (job) {
        console.log(`| the picture of a job of ${tasks} tasks is there after | ${job.spent} ms |`);
        console.log(`| requests until then, and each second | ${job.first}, ${job.each} |`);
        console.log(`| read units of one look | ${job.units} |`);
    }
    if (list) {
        console.log(`| rows in the page while ${items} items are scrolled for a minute, at most | ${list.most} |`);
        console.log(`| rows that it scrolled by | ${list.reached} |`);
        console.log(`| rows in its memory, at most | ${list.held} |`);
        console.log(`| memory of its script | ${(list.heap / 1e6).toFixed(0)} MB |`);
    }
} finally {
    await browser.close();
    await main.stop();
}
