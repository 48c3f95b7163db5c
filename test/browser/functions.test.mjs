// Functions, triggers, schedules and queues, used as a person would.

import fs from 'node:fs';
import path from 'node:path';
import {server, test, until} from './harness.mjs';

const main = server('--memory');
const elsewhere = server('--memory', '--no-functions');
const remote = server(async () => {
    await elsewhere.start();
    return ['--on', elsewhere.url];
});
const ENGINES = [
    ['embedded', main],
    ['--on', remote],
];

const HOSTILE = '<img src=x onerror="alert(1)">\' \u202eabc';
const DIGITS = '12345678901234567890123456789012345678';

// A function of a folder: what Python writes down, it writes exactly.
async function makeFunction(api, on, name, code) {
    const folder = path.join(on.folder, name);
    fs.mkdirSync(folder, {recursive: true});
    fs.writeFileSync(path.join(folder, 'main.py'), code);
    await api('POST /2015-03-31/functions', {
        FunctionName: name,
        Runtime: 'python3',
        Handler: 'main.handler',
        Timeout: 60,
        Description: HOSTILE,
        Code: {Directory: folder},
    });
    return folder;
}
const makeTable = (api, name) =>
    api('CreateTable', {
        TableName: name,
        AttributeDefinitions: [{AttributeName: 'id', AttributeType: 'S'}],
        KeySchema: [{AttributeName: 'id', KeyType: 'HASH'}],
        BillingMode: 'PAY_PER_REQUEST',
    });
const images = tab => tab.evaluate(() => document.querySelectorAll('main img').length);
const logOf = (api, name) => api(`GET /v1/functions/${name}/logs?max=100000`);
const equal = (found, wanted) => {
    if (JSON.stringify(found) !== JSON.stringify(wanted))
        throw new Error(`${JSON.stringify(found)} should be ${JSON.stringify(wanted)}`);
};

const ECHO = `
import json
def handler(event, context):
    print("heard " + json.dumps(event, ensure_ascii=False))
    return event
`;

for (const [engine, on] of ENGINES)
    test(`a function is invoked, and shows its answer and its log (${engine})`, on, async ({person, tab, api}) => {
        await makeFunction(api, on, 'echo', ECHO);
        await person.visit('#/functions');
        await person.click('echo');
        await person.see(HOSTILE); // its description
        await person.click('Invoke', {within: '.tabs'});
        await person.choose('Begin with', 'change');
        await person.see('SequenceNumber', 'body');
        await person.type('Event', `{"n": ${DIGITS}, "text": ${JSON.stringify(HOSTILE)}}`);
        await person.press('Control+Enter');
        await person.see('● answered');
        await person.see(`"n": ${DIGITS}`);
        await person.see(/heard \{"n": 12345678901234567890123456789012345678/);
        await person.open('Save as …');
        await person.type('Name', HOSTILE);
        await person.click('Save');
        await person.see(HOSTILE, '.function-event');
        equal(await images(tab), 0);
        await person.isAccessible();
        await person.picture('console-function');
        await person.click('Logs', {within: '.tabs'});
        await person.see('● success');
        await person.click(/ago|now/, {within: '.function-body'});
        await person.see(/REPORT RequestId/, '.function-lines');
        // what comes while one reads waits behind a button, so that nothing moves
        await api('POST /2015-03-31/functions/echo/invocations', {again: 1});
        await person.click('1 new');
        await until(async () => (await tab.$$('.function-body tbody tr')).length === 2, 'a second call in the list');
        await person.fits();
    });

const FLAKY = `
import os
def handler(event, context):
    if not os.path.exists(os.path.join(os.path.dirname(__file__), "mended")):
        raise ValueError("no ${HOSTILE.replaceAll('"', '\\"')} yet")
    print("mended at last")
`;

for (const [engine, on] of ENGINES)
    test(`a dead letter is redriven from its queue (${engine})`, on, async ({person, tab, api}) => {
        const folder = await makeFunction(api, on, 'flaky', FLAKY);
        const queue = `lost ${HOSTILE}`;
        await api('PUT /2019-09-25/functions/flaky/event-invoke-config', {
            MaximumRetryAttempts: 0,
            DestinationConfig: {OnFailure: {Destination: `arn:aws:sqs:us-east-1:000000000000:${queue}`}},
        });
        await person.visit('#/functions/flaky/invoke');
        await person.choose('Call it', 'Event');
        await person.type('Event', `{"order": ${DIGITS}}`);
        await person.click('Invoke', {kind: 'button', within: '.function-body'});
        await person.see('○ accepted');
        const letters = async () => {
            const {TableNames: names} = await api('ListTables', {});
            return names.includes('quipu-queues') ? (await api('Scan', {TableName: 'quipu-queues'})).Items : [];
        };
        await until(async () => (await letters()).length === 1, 'the call to be given up');
        await person.visit('#/queues');
        await person.click(queue);
        await person.see('RetriesExhausted');
        await person.see(`ValueError: no ${HOSTILE} yet`);
        await person.click(/ago|now/, {within: '.letters'});
        await person.see(`"order": ${DIGITS}`);
        equal(await images(tab), 0);
        await person.isAccessible();
        fs.writeFileSync(path.join(folder, 'mended'), '');
        await person.click('Redrive');
        await person.see('1 message sent again.');
        await until(async () => /mended at last/.test(await logOf(api, 'flaky')), 'the call to be made again');
        await person.see('The queue is empty.');
        await person.fits();
    });

const HOLD = `
import os, time
def handler(event, context):
    while not os.path.exists(os.path.join(os.path.dirname(__file__), "go")):
        time.sleep(0.05)
`;

for (const [engine, on] of ENGINES)
    test(`a job shows which of its tasks run (${engine})`, on, async ({person, tab, api}) => {
        const folder = await makeFunction(api, on, 'hold', HOLD);
        await api('PUT /v1/jobs/held', {total: 6, each: 'hold', concurrency: 2});
        const running = async () => (await api('GET /console/running?job=held')).tasks;
        await until(async () => (await running()).length === 2, 'two running tasks');
        const [first] = await running();
        await person.visit('#/jobs/held');
        await person.see(/Running\s+2/, '.detail');
        await until(
            () => tab.$eval('.job-cells', one => one.getAttribute('aria-label')?.includes('2 running')),
            'the picture',
        );
        await tab.focus('.job-cells');
        await person.press('Home', ...Array.from({length: Number(first)}, () => 'ArrowRight'), 'Enter');
        await person.see(`${first} running`, '.job-listed');
        await person.isAccessible();
        fs.writeFileSync(path.join(folder, 'go'), '');
        await until(async () => (await api('GET /v1/jobs/held')).state === 'COMPLETE', 'the end of the job');
        equal(await running(), []);
    });

const toQueue = name => ({Destination: `arn:aws:sqs:us-east-1:000000000000:${name}`});
const messages = async (api, queue) =>
    (await api('Scan', {TableName: 'quipu-queues'}).catch(() => ({Items: []}))).Items.filter(
        one => one.queue.S === queue,
    ).length;

for (const [engine, on] of ENGINES)
    test(`all that failed is tried again from the overview (${engine})`, on, async ({person, api}) => {
        const folder = await makeFunction(api, on, 'weak', FLAKY);
        await makeFunction(api, on, 'fine', ECHO);
        for (const [name, DestinationConfig] of [
            ['weak', {OnFailure: toQueue('weak-calls')}],
            ['fine', {OnSuccess: toQueue('fine-calls')}],
        ]) {
            const config = {MaximumRetryAttempts: 0, DestinationConfig};
            await api(`PUT /2019-09-25/functions/${name}/event-invoke-config`, config);
            await api(`POST /2015-03-31/functions/${name}/invocations`, {}, {'X-Amz-Invocation-Type': 'Event'});
        }
        const areThere = async () => (await messages(api, 'weak-calls')) && (await messages(api, 'fine-calls'));
        await until(areThere, 'both messages');
        await api('PUT /v1/jobs/weak', {total: 1});
        await api('POST /v1/jobs/weak/failed', {task: 0, reason: 'no ink'});
        await person.visit('#/overview');
        await person.see('1 dead call'); // the message of a success is none
        await person.see('1 failed or expired job');
        fs.writeFileSync(path.join(folder, 'mended'), '');
        await person.open('Retry all that failed');
        await person.see('1 failed or expired job, 1 dead call');
        await person.click('Retry');
        await person.see('1 job, 1 call tried again.');
        await until(async () => /mended at last/.test(await logOf(api, 'weak')), 'the call to be made again');
        equal((await api('GET /v1/jobs/weak')).state, 'OPEN');
        await api('DELETE /v1/jobs/weak');
        await person.see('nothing failed');
    });

for (const [engine, on] of ENGINES)
    test(`what a trigger gave up is redriven from it, and its settings change (${engine})`, on, async tools => {
        const {person, tab, api} = tools;
        const folder = await makeFunction(api, on, 'frail', FLAKY);
        await makeTable(api, 'frail');
        await api('UpdateTable', {
            TableName: 'frail',
            StreamSpecification: {StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES'},
        });
        const {UUID: id} = await api('POST /2015-03-31/event-source-mappings', {
            EventSourceArn: 'frail',
            FunctionName: 'frail',
            StartingPosition: 'TRIM_HORIZON',
            BatchSize: 1,
            MaximumRetryAttempts: 0,
            FilterCriteria: {Filters: [{Pattern: '{"dynamodb":{"Keys":{"id":{"S":[{"prefix":"<img"}]}}}}'}]},
            DestinationConfig: {OnFailure: toQueue('frail')},
        });
        for (const n of [1, 2, 3]) await api('PutItem', {TableName: 'frail', Item: {id: {S: HOSTILE + n}}});
        const left = () => messages(api, 'frail');
        await until(async () => (await left()) === 3, 'three batches to be given up');
        await person.visit(`#/triggers/${id}`);
        await person.see('Given up, in the queue frail');
        await person.see(`ValueError: no ${HOSTILE} yet`, '.letters');
        equal(await images(tab), 0);
        await person.isAccessible();
        fs.writeFileSync(path.join(folder, 'mended'), '');
        // One that is marked, then all.
        await (await until(() => tab.$('.letters tbody input'), 'a message')).click();
        await person.click('Redrive marked');
        await person.see('1 message sent again.');
        await until(async () => (await left()) === 2, 'two messages to be left');
        await person.click('Redrive all');
        await person.see('2 messages sent again.');
        await until(async () => (await left()) === 0, 'the queue to be empty');
        const calls = async () => (await logOf(api, 'frail')).split('mended at last').length - 1;
        await until(async () => (await calls()) === 3, 'the three calls to be made again');
        await person.open('Settings …');
        await person.type('Records in a call', '7');
        await person.click('Save');
        const setting = async () => (await api(`GET /2015-03-31/event-source-mappings/${id}`)).BatchSize;
        await until(async () => (await setting()) === 7, 'the setting');
        await person.see(/Records in a call\s+7/, '.detail');
        await person.fits();
        await api(`DELETE /2015-03-31/event-source-mappings/${id}`);
    });

test('messages are dropped with the name typed, and only then', main, async ({person, tab, api}) => {
    await makeFunction(api, main, 'never', 'def handler(event, context):\n    raise ValueError("never")\n');
    await api('PUT /2019-09-25/functions/never/event-invoke-config', {
        MaximumRetryAttempts: 0,
        DestinationConfig: {OnFailure: {Destination: 'arn:aws:sqs:us-east-1:000000000000:given-up'}},
    });
    for (let i = 0; i < 2; i++)
        await api('POST /2015-03-31/functions/never/invocations', {i}, {'X-Amz-Invocation-Type': 'Event'});
    await person.visit('#/functions/never/failed');
    await until(async () => {
        await tab.reload();
        await tab.waitForSelector('.letters', {timeout: 60e3});
        await person.see(/given-up|No message of a queue/);
        return (await tab.$$eval('.letters tbody tr', rows => rows.length)) === 2;
    }, 'two failed calls');
    await person.visit('#/queues/given-up');
    await person.click('All rows');
    await person.click('Drop marked …');
    await person.type('Type given-up', 'given up');
    await person.click('Drop');
    await person.see('That is not “given-up”.');
    await person.type('Type given-up', 'given-up');
    await person.click('Drop');
    await person.see('The queue is empty.');
    const {Count: left} = await api('Query', {
        TableName: 'quipu-queues',
        KeyConditionExpression: '#queue = :queue',
        ExpressionAttributeNames: {'#queue': 'queue'},
        ExpressionAttributeValues: {':queue': {S: 'given-up'}},
    });
    equal(left, 0);
});

for (const [engine, on] of ENGINES)
    test(`a trigger is added, paused, resumed and moved back (${engine})`, on, async ({person, tab, api}) => {
        await makeFunction(api, on, 'count', ECHO);
        await makeTable(api, 'orders');
        const heard = async id =>
            (await logOf(api, 'count')).split(`heard {"Records": `).join(' ').split(`"${id}"`).length > 1;
        await person.visit('#/triggers');
        await person.click('Add a trigger …');
        await person.type('Table', 'orders');
        await person.choose('Function', 'count');
        await person.type('Filters', '{"eventName":["INSERT"]}');
        await person.click('Add');
        await person.see('orders → count');
        const mapping = async () => (await api('GET /2015-03-31/event-source-mappings/')).EventSourceMappings[0];
        await until(async () => (await mapping()).State === 'Enabled', 'the trigger to be on');
        await api('PutItem', {TableName: 'orders', Item: {id: {S: 'first'}, n: {N: DIGITS}}});
        await until(() => heard('first'), 'the first call');
        await person.see('INSERT', '.triggers-map');
        await person.isAccessible();
        await person.picture('console-triggers');
        await person.click('Pause');
        await until(async () => (await mapping()).State === 'Disabled', 'the pause');
        await person.see('○ paused');
        await api('PutItem', {TableName: 'orders', Item: {id: {S: 'second'}}});
        await person.click('Resume');
        await until(() => heard('second'), 'what came meanwhile');
        const calls = async () => (await logOf(api, 'count')).split('"first"').length;
        const before = await calls();
        await person.click('Move position …');
        await person.click('Move');
        await until(async () => (await calls()) > before, 'the first one again');
        await until(async () => (await mapping()).State === 'Enabled', 'the trigger to be on again');
        await person.seeNot('Move the position');
        await person.fits();
        await person.click('Delete …');
        await person.type('Type count', 'count');
        await person.click('Delete');
        await until(
            async () => !(await api('GET /2015-03-31/event-source-mappings/')).EventSourceMappings.length,
            'the trigger to go',
        );
        await tab.evaluate(() => (location.hash = '#/triggers'));
    });

test('triggers of logs and of work stand beside those of tables', main, async ({person, api}) => {
    await makeFunction(api, main, 'send', ECHO);
    await api('PUT /v1/work/mails', {each: 'send', concurrency: 2});
    await person.visit('#/triggers');
    await person.click('work mails');
    await person.click('Pause');
    await until(async () => (await api('GET /v1/work/mails')).paused, 'the pause');
    await person.see('○ paused');
    await person.click('Resume');
    await until(async () => !(await api('GET /v1/work/mails')).paused, 'the resumption');
});

for (const [engine, on] of ENGINES)
    test(`a schedule tells its next ten times (${engine})`, on, async ({person, tab, api}) => {
        await makeFunction(api, on, 'report', ECHO);
        await person.visit('#/schedules');
        await person.open('Add a schedule …');
        await person.type('Name', 'nightly');
        await person.type('When', 'cron(0 3 * * ? *)');
        await person.type('Zone', 'Asia/Tokyo');
        await person.choose('Function', 'report');
        await person.type('About', HOSTILE);
        await person.type('Event', `{"n": ${DIGITS}}`);
        await person.click('Add');
        await person.see('Asia/Tokyo', '.schedules-times');
        await person.see(`"n": ${DIGITS}`);
        const {NextDueTimes: due} = await api('GET /schedules/nightly?next=10');
        const shown = await tab.$$eval('.schedules-times time', times =>
            times.map(one => Date.parse(one.dateTime) / 1000),
        );
        equal(shown, due);
        equal(shown.length, 10);
        equal(await images(tab), 0);
        await person.isAccessible();
        await person.click('Pause');
        await person.see('It is paused.');
        await person.click('Resume');
        await person.see('Asia/Tokyo', '.schedules-times');
        await person.click('Change …');
        await person.type('When', 'at(2099-12-31T23:59:00)');
        await person.click('Save');
        await until(async () => (await tab.$$('.schedules-times time')).length === 1, 'a single time');
        await person.fits();
        await person.click('Delete …');
        await person.type('Type nightly', 'nightly');
        await person.click('Delete');
        await until(async () => !(await api('GET /schedules')).Schedules.length, 'the schedule to go');
    });

test(
    'an expression that is none is refused where it was typed',
    main,
    async ({person, api}) => {
        await makeFunction(api, main, 'late', ECHO);
        await person.visit('#/schedules');
        await person.open('Add a schedule …');
        await person.type('Name', 'bad');
        await person.type('When', 'cron(0 25 * * ? *)');
        await person.choose('Function', 'late');
        await person.click('Add');
        await person.see('Invalid Schedule Expression cron(0 25 * * ? *). The hours should be 0 to 23.', 'dialog');
    },
    {expects: ['400 (Bad Request)']},
);

test('settings, versions, aliases and a URL of a function', main, async ({person, tab, api}) => {
    await makeFunction(api, main, 'shop', ECHO);
    await person.visit('#/functions/shop/settings');
    await person.click('Add a variable');
    await person.type('Variable', 'GREETING');
    await person.type('Value', HOSTILE);
    await person.type('Memory, MB', '256');
    await person.type('Further attempts', '1');
    await person.click('Save');
    await person.see('Saved.');
    const {Configuration: now} = await api('GET /2015-03-31/functions/shop');
    equal([now.Environment.Variables.GREETING, now.MemorySize], [HOSTILE, 256]);
    equal((await api('GET /2019-09-25/functions/shop/event-invoke-config')).MaximumRetryAttempts, 1);
    await person.isAccessible();
    await person.click('Versions and URLs');
    await person.open('Publish …');
    await person.type('About', HOSTILE);
    await person.click('Publish');
    await until(
        async () => (await api('GET /2015-03-31/functions/shop/versions')).Versions.length === 2,
        'a version',
    );
    await person.see(HOSTILE, '.function-body');
    await person.open('Add an alias …');
    await person.type('Name', 'live');
    await person.click('Save');
    await until(async () => (await api('GET /2015-03-31/functions/shop/aliases')).Aliases.length === 1, 'an alias');
    await person.open('Add a URL …');
    await person.click('Add');
    await person.see('/_url/shop/');
    equal(await images(tab), 0);
    await person.isAccessible();
    await person.fits();
    await person.click('Delete …', {within: '.function > .bar'});
    await person.type('Type shop', 'shop');
    await person.click('Delete');
    await person.seeNot('shop', '.view');
});

const without = server('--memory', '--no-functions');
test('a server without functions says so', without, async ({person}) => {
    for (const section of ['functions', 'triggers', 'schedules']) {
        await person.visit(`#/${section}`);
        await person.see('This server runs no functions');
    }
    await person.visit('#/queues');
    await person.see('No asynchronous call waits');
});

const readOnly = server('--memory', '--read-only-console');
test('a console that may only read offers no change', readOnly, async ({person, tab, api}) => {
    await makeFunction(api, readOnly, 'echo', ECHO);
    await api('POST /schedules/tidy', {
        ScheduleExpression: 'rate(1 hour)',
        FlexibleTimeWindow: {Mode: 'OFF'},
        Target: {Arn: 'arn:aws:lambda:us-east-1:000000000000:function:echo'},
    });
    for (const [hash, seen, words] of [
        ['#/functions/echo/invoke', 'Begin with', ['Invoke', 'Delete …']],
        ['#/functions/echo/settings', 'Environment', ['Save']],
        ['#/functions/echo/versions', '$LATEST', ['Publish …', 'Add an alias …', 'Add a URL …']],
        ['#/triggers', 'No triggers yet', ['Add a trigger …']],
        ['#/schedules/tidy', 'Next times', ['Pause', 'Change …', 'Delete …']],
    ]) {
        await person.visit(hash);
        await person.see(seen);
        const dead = await tab.$$eval('button:disabled', all => all.map(one => one.textContent));
        for (const word of words) if (!dead.includes(word)) throw new Error(`${hash}: ${word} can be pressed`);
    }
    await person.visit('#/functions/echo/logs');
    await api('POST /2015-03-31/functions/echo/invocations', {seen: 'by who may only read'});
    await person.see('by who may only read');
});

test('a function is added and invoked with the keyboard alone', main, async ({person, tab}) => {
    const folder = path.join(main.folder, 'keys');
    fs.mkdirSync(folder, {recursive: true});
    fs.writeFileSync(path.join(folder, 'main.py'), ECHO);
    const reach = async words => {
        const at = () =>
            tab.evaluate(() => (document.activeElement.labels?.[0] ?? document.activeElement).textContent);
        for (let i = 0; i < 200 && (await at()) !== words; i++) await person.press('Tab');
        equal(await at(), words);
    };
    await person.visit('#/functions');
    await person.find('Add a function …');
    await reach('Add a function …');
    await person.press('Enter');
    await reach('Name');
    await tab.keyboard.type('keys');
    await reach('Folder');
    await tab.keyboard.type(folder);
    await reach('Runtime');
    await tab.keyboard.type('python3');
    await person.isAccessible();
    await reach('About');
    await person.press('Enter');
    await person.see('main.handler', '.function-body');
    await person.find('Invoke', {within: '.tabs'});
    await reach('Invoke');
    await person.press('Enter');
    await reach('Begin with');
    await tab.keyboard.type('An HTTP');
    await until(() => tab.$eval('.function-body textarea', area => area.value.includes('rawPath')), 'the example');
    await person.find('Invoke', {kind: 'button', within: '.function-body'});
    await reach('Invoke');
    await person.press('Enter');
    await person.see('● answered');
    await person.see('"rawPath": "/any/path"');
});
