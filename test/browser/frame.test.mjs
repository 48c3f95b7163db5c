// The frame: what is there before any view, who may see it, and what holds for every view.

import fs from 'node:fs';
import path from 'node:path';
import {apiOf, engines, server, test, until} from './harness.mjs';

const ENGINES = engines();
const [[, main]] = ENGINES;
const XSS = `"><img src=x onerror="window.hurt=1"><script>window.hurt=1</script>`;

async function makeOrders(api) {
    const made = api('CreateTable', {
        TableName: 'orders',
        KeySchema: [{AttributeName: 'id', KeyType: 'HASH'}],
        AttributeDefinitions: [{AttributeName: 'id', AttributeType: 'S'}],
        BillingMode: 'PAY_PER_REQUEST',
        StreamSpecification: {StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES'},
    });
    await made.catch(error => {
        if (!error.message.includes('ResourceInUse')) throw error; // another test has made it
    });
}

// One of everything that has a name, with hostile names and values where the server takes them; once for a server.
const furnished = new Set();
async function furnish(api, {url}) {
    if (furnished.has(url)) return;
    furnished.add(url);
    await makeOrders(api);
    await api('PutItem', {
        TableName: 'orders',
        Item: {id: {S: XSS}, n: {N: '12345678901234567890123456789012345678'}, [XSS]: {M: {[XSS]: {S: XSS}}}},
    });
    const name = encodeURIComponent(XSS);
    const hostile = async (what, body) =>
        api(what, body).catch(error => {
            if (!/ 400 /.test(error.message)) throw error;
        });
    await hostile(`POST /v1/counters/${name}`, {});
    await api('PUT /v1/counters/large', '{"value":9007199254740991}');
    await hostile(`PUT /v1/jobs/${name}`, {total: 3});
    await api('PUT /v1/jobs/j', {total: 3});
    await api('POST /v1/jobs/j/failed', {task: 1, reason: XSS});
    await hostile(`PUT /v1/groups/${name}`, {complete: {kinds: [XSS]}});
    await api('PUT /v1/groups/g', {complete: {kinds: [XSS, 'paid']}});
    await api('POST /v1/groups/g/k', {id: XSS, kind: 'paid', data: XSS});
    await api('PUT /v1/periods/p', {every: '1h'});
    await api('POST /v1/periods/p', {data: XSS});
    await api(`POST /v1/work/w/u`, {data: XSS});
    await hostile(`POST /v1/leases/${name}`, {owner: XSS, for: '1h'});
    await api(`POST /v1/leases/l`, {owner: XSS, for: '1h', data: XSS});
    await api('PUT /v1/logs/log', {partitions: 1});
    await api('POST /v1/logs/log', {key: XSS, data: XSS});
    await api('PUT /v1/documents/c/d', {[XSS]: XSS});
    await api('POST /v1/boards/b', {text: XSS});
}

const VIEWS = [
    'overview',
    'tables',
    'tables/orders',
    'tables/orders/items',
    'functions',
    'triggers',
    'schedules',
    'queues',
    'jobs',
    'jobs/j',
    'jobs/j/failures',
    'groups',
    'groups/g',
    'groups/g/k',
    'periods',
    'periods/p',
    'work',
    'work/w',
    'work/w/u',
    'leases',
    'leases/l',
    'logs',
    'logs/log',
    'logs/log/0',
    'counters',
    'counters/large',
    'documents',
    'documents/c',
    'documents/c/d',
    'boards',
    'boards/b',
    'help',
];

// A test for each section: on a slow machine all of them take longer than a test may.
for (const section of new Set(VIEWS.map(view => view.split('/')[0])))
    test(
        `${section}: hostile texts are shown as text, it fits a phone in the dark, and satisfies axe-core`,
        ENGINES,
        async ({person, tab, api, server: on}) => {
            await furnish(api, on);
            const wrong = [];
            for (const view of VIEWS.filter(one => one.split('/')[0] === section)) {
                const tried = async look => {
                    try {
                        await look();
                    } catch (error) {
                        wrong.push(`${view}: ${error.message}`);
                    }
                };
                await tab.setViewport({width: 1280, height: 800});
                await tab.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'light'}]);
                await person.visit(`#/${view}`);
                // What it shows must be there; the live stream stays open.
                await tab.waitForNetworkIdle({idleTime: 300, concurrency: 1, timeout: 20000}).catch(() => {});
                const seen = await tab.evaluate(() => ({
                    hurt: Boolean(window.hurt) || document.querySelector('img[src=x]') !== null,
                    fault: document.querySelector('.fault')?.textContent,
                }));
                if (seen.hurt) wrong.push(`${view}: a text became a part of the page`);
                if (seen.fault) wrong.push(`${view}: ${seen.fault}`);
                await tried(() => person.isAccessible());
                await tried(() => person.fits(390, 'dark'));
                await tried(() => person.isAccessible());
            }
            if (wrong.length) throw new Error(wrong.join('\n'));
        },
    );

// The parts on which every view rests, called in the page itself.
test('what is shown anew stays under the hand', main, async ({person, tab}) => {
    await person.visit('#/help');
    const wrong = await tab.evaluate(async () => {
        const {h, renew} = await import('/console/dom.js');
        const place = document.body.appendChild(h('div'));
        const save = h('button', {type: 'button', onclick: () => {}}, 'Save');
        const draw = (words, target, isLong) =>
            renew(
                place,
                h('p', h('a', {href: target, title: words}, words), isLong ? h('b', 'more') : null),
                isLong ? h('hr') : null,
                save,
                h('button', {type: 'button', onclick: () => {}}, words),
            );
        draw('one', '#/one', false);
        const [link, other] = [place.querySelector('a'), place.lastChild];
        link.focus();
        draw('two', '#/two', true);
        const is = {
            'the link': place.querySelector('a') === link && document.activeElement === link,
            'its words': link.textContent === 'two' && link.title === 'two' && link.getAttribute('href') === '#/two',
            'the button that was given again': place.children[2] === save,
            'a handler of before': place.lastChild !== other && place.lastChild.textContent === 'two',
        };
        save.focus();
        draw('three', '#/three', true);
        is['the focus on a button'] = document.activeElement === save;
        draw('four', '#/four', false);
        is['what is gone'] = place.children.length === 3 && !place.querySelector('b') && place.children[1] === save;
        place.remove();
        return Object.keys(is).filter(name => !is[name]);
    });
    if (wrong.length) throw new Error(`not as it should be: ${wrong.join(', ')}`);
});

test('answers never come in another order than their questions', main, async ({person, tab}) => {
    await person.visit('#/help');
    const [runs, most, answers] = await tab.evaluate(async () => {
        const {oneAtATime} = await import('/console/parts.js');
        let runs = 0,
            now = 0,
            most = 0;
        const waiting = [];
        const ask = oneAtATime(async () => {
            const mine = ++runs;
            most = Math.max(most, ++now);
            await new Promise(done => waiting.push(done));
            now--;
            if (mine === 1) throw new Error('the first fails');
            return mine;
        });
        const first = ask().catch(() => 'failed');
        while (!waiting.length) await null;
        const later = [ask(), ask()]; // both are answered by one run, which begins after the first
        waiting.shift()();
        while (!waiting.length) await new Promise(done => setTimeout(done));
        waiting.shift()();
        return [runs, most, await Promise.all([first, ...later])];
    });
    if (runs !== 2 || most !== 1 || answers.join() !== 'failed,2,2')
        throw new Error(`${runs} runs, ${most} at once, answers ${answers}`);
});

test('a dialog that is left while it works tells what came of it', main, async ({person, tab}) => {
    await person.visit('#/help');
    await tab.evaluate(async () => {
        const {dialog} = await import('/console/parts.js');
        dialog({
            title: 'Slow',
            actions: [['Go', () => new Promise(done => (window.end = done))]],
        }).then(answer => (window.answer = answer ?? 'none'));
    });
    await person.click('Go');
    await until(() => tab.evaluate(() => Boolean(window.end)), 'the job to begin');
    await person.press('Escape');
    await until(() => tab.evaluate(() => !document.querySelector('dialog')), 'the dialog to go');
    await tab.evaluate(() => window.end('made'));
    const answer = await until(() => tab.evaluate(() => window.answer), 'the answer');
    if (answer !== 'made') throw new Error(`the answer is ${answer}`);
});

test('the overview is live', ENGINES, async ({person, tab, api}) => {
    await person.visit();
    await person.see('● live');
    await until(async () => {
        await api('ListTables', {});
        return tab.evaluate(() => /[1-9]/.test(document.querySelector('.plot .now')?.textContent ?? ''));
    }, 'an operation in the plot');
});

test('the palette goes anywhere by keyboard alone', ENGINES, async ({person, tab, api}) => {
    await makeOrders(api);
    await person.visit();
    await person.press('Control+k');
    await person.see('to choose');
    await until(async () => (await person.words('dialog.palette')).includes('orders'), 'the names');
    await tab.keyboard.type('orders');
    await person.press('Enter');
    await until(() => tab.evaluate(() => location.hash === '#/tables/orders'), 'the table');
    await tab.goBack();
    await until(() => tab.evaluate(() => location.hash !== '#/tables/orders'), 'the view before');
});

test('a counter is used by keyboard alone', ENGINES, async ({person, tab, api}) => {
    await api('PUT /v1/counters/keys', {value: 41});
    await person.visit('#/counters/keys');
    await person.see('41', '.detail');
    for (let i = 0; i < 200; i++) {
        // Tab until the button has the focus
        await person.press('Tab');
        if (await tab.evaluate(() => document.activeElement?.textContent === 'Next')) break;
    }
    await person.press('Enter');
    await person.see('42', '.detail');
});

test(
    'a page that asks as a page of elsewhere gets nothing',
    main,
    async ({tab}) => {
        const status = await tab.evaluate(async url => {
            try {
                return (await fetch(url + '/console/info', {mode: 'cors'})).status;
            } catch {
                return 'refused';
            }
        }, main.url);
        if (status !== 'refused') throw new Error(`a foreign page was answered ${status}`);
    },
    {expects: ['CORS', 'Failed to load', 'ERR_FAILED', 'blocked']},
);

const locked = server(async self => {
    fs.writeFileSync(
        path.join(self.folder, 'keys'),
        '[default]\naws_access_key_id = ann\naws_secret_access_key = secret\n',
    );
    return ['--memory', '--credentials', path.join(self.folder, 'keys')];
});
test(
    'with credentials one signs in',
    locked,
    async ({person}) => {
        await person.visit();
        await person.see('Sign in');
        await person.type('Access key', 'ann');
        await person.type('Secret key', 'wrong');
        await person.click('Sign in');
        await person.see(/signature|Signature/);
        await person.type('Secret key', 'secret');
        await person.click('Sign in');
        await person.see('● live');
        await person.visit('#/counters');
        await person.see('A counter hands out numbers');
        await person.visit('#/tables');
        await person.see('Tables');
        await person.click('Sign out');
        await person.see('Sign in');
    },
    {expects: ['403', '400', '401']},
);

const watched = server('--memory', '--read-only-console');
test(
    'a console that may only read changes nothing',
    watched,
    async ({person, tab, api}) => {
        await api('PUT /v1/counters/c', {value: 1});
        await person.visit('#/counters/c');
        await person.see('read only');
        await person.see('1', '.detail');
        const state = await tab.evaluate(() =>
            [...document.querySelectorAll('.detail button')]
                .filter(one => one.textContent === 'Next')
                .map(one => one.disabled),
        );
        if (state[0] !== true) throw new Error('the button works');
        const status = await tab.evaluate(
            async () =>
                (await fetch('/v1/counters/c', {method: 'POST', headers: {'X-Quipu-Console': '1'}, body: '{}'}))
                    .status,
        );
        if (status !== 403) throw new Error(`a write was answered ${status}`);
        const {value} = await apiOf(watched.url)('GET /v1/counters/c');
        if (value !== 1) throw new Error(`it was changed to ${value}`);
    },
    {expects: ['403']},
);
