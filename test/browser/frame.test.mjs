// The frame: what is there before any view, who may see it, and what holds for every view.

import fs from 'node:fs';
import path from 'node:path';
import {apiOf, engines, server, test, until} from './harness.mjs';

const ENGINES = engines();
const [[, main]] = ENGINES;
const XSS = `"><img src=x onerror="window.hurt=1"><script>window.hurt=1</script>`;
const NAME = encodeURIComponent(XSS);

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

// One of everything that has a name, with hostile names and values; once for a server.
const furnished = new Set();
async function furnish(api, {url}) {
    if (furnished.has(url)) return;
    furnished.add(url);
    await makeOrders(api);
    await api('PutItem', {
        TableName: 'orders',
        Item: {id: {S: XSS}, n: {N: '12345678901234567890123456789012345678'}, [XSS]: {M: {[XSS]: {S: XSS}}}},
    });
    await api(`POST /v1/counters/${NAME}`, {});
    await api('PUT /v1/counters/large', '{"value":9007199254740991}');
    await api(`PUT /v1/jobs/${NAME}`, {tasks: [XSS, 'b']});
    await api(`POST /v1/jobs/${NAME}/done`, {task: XSS, result: XSS});
    await api('PUT /v1/jobs/j', {total: 3});
    await api('POST /v1/jobs/j/failed', {task: 1, reason: XSS});
    await api(`PUT /v1/groups/${NAME}`, {complete: {kinds: [XSS, 'paid']}});
    await api(`POST /v1/groups/${NAME}/${NAME}`, {id: XSS, kind: 'paid', data: XSS});
    await api(`PUT /v1/periods/${NAME}`, {every: '1h'});
    await api(`POST /v1/periods/${NAME}`, {id: XSS, data: XSS});
    await api(`POST /v1/work/${NAME}/${NAME}`, {data: XSS});
    await api(`POST /v1/leases/${NAME}`, {owner: XSS, for: '1h', data: XSS});
    await api(`PUT /v1/logs/${NAME}`, {partitions: 1});
    await api(`POST /v1/logs/${NAME}`, {key: XSS, data: XSS});
    await api(`POST /v1/logs/${NAME}/consumers/${NAME}/read`, {owner: XSS});
    await api(`PUT /v1/documents/${NAME}/${NAME}`, {[XSS]: XSS});
    await api(`POST /v1/boards/${NAME}`, {text: XSS});
}

const VIEWS = [
    'overview',
    'tables',
    'tables/orders',
    `tables/orders/items?item=${NAME}`,
    'tables/orders/changes',
    'tables/orders/history',
    'tables/orders/backups',
    'tables/orders/settings',
    'functions',
    'triggers',
    'schedules',
    'queues',
    'jobs',
    'jobs/j',
    `jobs/${NAME}`,
    `jobs/${NAME}/results`,
    'jobs/j/failures',
    'groups',
    `groups/${NAME}`,
    `groups/${NAME}/${NAME}`,
    'periods',
    `periods/${NAME}`,
    'work',
    `work/${NAME}`,
    `work/${NAME}/${NAME}`,
    'leases',
    `leases/${NAME}`,
    'logs',
    `logs/${NAME}`,
    `logs/${NAME}/0?group=${NAME}`,
    'counters',
    'counters/large',
    `counters/${NAME}`,
    'documents',
    `documents/${NAME}`,
    `documents/${NAME}/${NAME}`,
    'boards',
    `boards/${NAME}`,
    'help',
];

const MOVED_MOST = 0.03; // as much as the columns of a list that fits itself to what is in it

// A test for a few of a section: on a slow machine all of them take longer than a test may.
const AT_ONCE = 3;
const parts = [];
for (const view of VIEWS) {
    const section = view.split('/')[0],
        last = parts.at(-1);
    if (last?.section === section && last.views.length < AT_ONCE) last.views.push(view);
    else parts.push({section, views: [view]});
}
for (const [i, {section, views}] of parts.entries())
    test(
        `${section} (${i}): hostile texts stay texts, nothing jumps, it fits a phone in the dark, axe-core is content`,
        ENGINES,
        async ({person, tab, api, server: on}) => {
            await furnish(api, on);
            await tab.evaluateOnNewDocument(() => {
                window.moved = 0; // in parts of the window, by how far it moved
                const add = list => {
                    for (const one of list.getEntries()) window.moved += one.value;
                };
                new PerformanceObserver(add).observe({type: 'layout-shift', buffered: true});
            });
            const wrong = [];
            for (const view of views) {
                const tried = async look => {
                    try {
                        await look();
                    } catch (error) {
                        wrong.push(`${view}: ${error.message}`);
                    }
                };
                await tab.setViewport({width: 1280, height: 800});
                await tab.emulateMediaFeatures([{name: 'prefers-color-scheme', value: 'light'}]);
                await tab.goto('about:blank'); // so that it is loaded anew
                await person.visit(`#/${view}`);
                // What it shows must be there; the live stream stays open.
                await tab.waitForNetworkIdle({idleTime: 300, concurrency: 1, timeout: 20000}).catch(() => {});
                const seen = await tab.evaluate(() => ({
                    hurt: Boolean(window.hurt) || document.querySelector('img[src=x]') !== null,
                    fault: document.querySelector('.fault')?.textContent,
                    moved: window.moved,
                }));
                if (seen.moved > MOVED_MOST) wrong.push(`${view}: it jumps: ${seen.moved.toFixed(3)}`);
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

test('the help has the words of the command line', main, async ({person, tab}) => {
    await person.visit('#/help');
    await person.type('Find in the help', 'table create');
    await until(async () => (await tab.$$('.view details')).length === 1, 'one command');
    await person.click(/^quipu table create/);
    await person.see('Usage: quipu table create');
    await person.type('Find in the help', '/v1/leases');
    await person.click(/^quipu lease take/);
    await person.see('POST /v1/leases/{name}');
    await person.see('Usage: quipu lease take');
    await person.isAccessible();
    if (!(await tab.evaluate(() => location.hash)).includes('find=')) throw new Error('it is not in the URL');
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
        '[default]\naws_access_key_id = ann\naws_secret_access_key = secret\n' +
            '[reader]\naws_access_key_id = bob\naws_secret_access_key = second\nrole = read\n',
    );
    return ['--data', 'guarded', '--credentials', path.join(self.folder, 'keys')];
});
const signIn = async (person, key, secret) => {
    await person.type('Access key', key);
    await person.type('Secret key', secret);
    await person.click('Sign in');
};
test(
    'with credentials one signs in',
    locked,
    async ({person}) => {
        await person.visit();
        await person.see('Sign in');
        await signIn(person, 'ann', 'wrong');
        await person.see(/signature|Signature/);
        await signIn(person, 'ann', 'secret');
        await person.see('● live');
        await person.see('guarded', '#engine'); // who has signed in is told where the data is
        await person.visit('#/counters');
        await person.see('A counter hands out numbers');
        await person.visit('#/tables');
        await person.see('Tables');
        await person.click('Sign out');
        await person.see('Sign in');
    },
    {expects: ['403', '400', '401']},
);

test('any name is signed as it is sent', locked, async ({person, tab}) => {
    const NAME = `a b+c*(d)!'~&=é/%20`;
    await person.visit();
    await signIn(person, 'ann', 'secret');
    await person.see('● live');
    await tab.evaluate(async name => {
        const {at, request} = await import('/console/api.js');
        await request('POST', at`/v1/boards/${name}`, {body: {text: 'any name'}});
    }, NAME);
    await person.visit(`#/boards?prefix=${encodeURIComponent(NAME)}`);
    await person.click(NAME, {kind: 'link'});
    await person.see('any name', '.detail');
    if (await tab.$('.fault')) throw new Error(await person.words('.fault'));
});

test('who may only read is offered no change', locked, async ({person, tab}) => {
    await person.visit();
    await signIn(person, 'bob', 'second');
    await person.see('read only', '#engine');
    await person.visit('#/counters');
    await person.see('A counter hands out numbers');
    const [is, why] = await tab.evaluate(() => {
        const button = [...document.querySelectorAll('button')].find(one => one.textContent === 'Add to a counter');
        return [button.disabled, button.title];
    });
    if (!is || why !== 'This key may only read.') throw new Error(`the button: ${is}, “${why}”`);
});

test(
    'keys that the server does not take any more are asked for again',
    locked,
    async ({person, tab}) => {
        await person.visit();
        await tab.evaluate(() => sessionStorage.setItem('keys', JSON.stringify({id: 'ann', secret: 'of before'})));
        await person.visit('#/counters');
        await tab.reload();
        await person.see(/signature/);
        await signIn(person, 'ann', 'secret');
        await person.see('A counter hands out numbers');
    },
    {expects: ['403']},
);

test('a browser that cannot sign says why', locked, async ({person, tab}) => {
    await tab.evaluateOnNewDocument(() => Object.defineProperty(Crypto.prototype, 'subtle', {get: () => undefined}));
    await person.visit();
    await signIn(person, 'ann', 'secret');
    await person.see('A browser signs only on pages that come by HTTPS or from localhost');
});

const stopped = server('--memory');
test('a server that stands still is not called live', stopped, async ({person}) => {
    await person.visit();
    await person.see('● live');
    stopped.child.kill('SIGSTOP');
    try {
        await person.see('✕ no answer', '#health');
    } finally {
        stopped.child.kill('SIGCONT');
    }
    await person.see('● live', '#health');
});

test('a tab that nobody sees asks for nothing', main, async ({person, tab, api}) => {
    const show = hidden =>
        tab.evaluate(is => {
            Object.defineProperty(document, 'hidden', {configurable: true, get: () => is});
            document.dispatchEvent(new Event('visibilitychange'));
        }, hidden);
    await api('PUT /v1/jobs/unseen', {total: 3});
    await person.visit('#/jobs/unseen');
    await person.see('● live');
    await show(true);
    await person.see('○ waiting', '#health');
    await tab.waitForNetworkIdle({idleTime: 2000}); // what was under way ends
    let asked = 0;
    tab.on('request', () => asked++);
    await tab.evaluate(() => new Promise(done => setTimeout(done, 7000))); // more than two turns of the view
    if (asked) throw new Error(`${asked} requests were sent`);
    await show(false);
    await person.see('● live');
});

test('on a phone the rail is a menu', ENGINES, async ({person, tab}) => {
    await tab.setViewport({width: 390, height: 800});
    await person.visit('#/help');
    const isSeen = () => tab.evaluate(() => document.getElementById('rail').checkVisibility());
    if (await isSeen()) throw new Error('the rail is in the way');
    await person.click('Menu');
    await until(isSeen, 'the menu');
    await person.isAccessible();
    await person.click(/^Boards/, {kind: 'link', within: '#rail'});
    await person.see('Post a message', '.view');
    await until(async () => !(await isSeen()), 'the menu to close');
});

// A day that the server has seen, as it tells it, and a tab that stays open.
test('plots of a day are drawn of samples that stay few', main, async ({person, tab}) => {
    const now = Date.now();
    const sample = (t, step) => ({t, ...(step ? {step} : {}), ops: {PutItem: 5}, p50: 90, p99: 400, memory: 2e7});
    const tens = Array.from({length: 8600}, (_, i) => sample(now - 1200e3 - (8600 - i) * 10e3, 10e3));
    const seconds = Array.from({length: 1200}, (_, i) => sample(now - (1200 - i) * 1000));
    const asked = [];
    await tab.setRequestInterception(true);
    tab.on('request', one => {
        const query = new URL(one.url()).searchParams;
        if (!one.url().includes('/console/events')) return one.continue();
        asked.push(query.get('last') ?? 'since');
        const history = query.get('last') === '86400000' ? [...tens, ...seconds] : seconds.slice(-300);
        return one.respond({
            contentType: 'text/event-stream',
            body: `data: ${JSON.stringify({history: query.has('last') ? history : []})}\n\n`,
        });
    });
    await person.visit('#/overview');
    await until(() => asked.includes('300000'), 'five minutes to be asked for');
    await person.choose('Time shown', '1440');
    await until(() => asked.includes('86400000'), 'a day to be asked for');
    const held = await until(async () => {
        const {length, least} = await tab.evaluate(async () => {
            const {live} = await import('/console/live.js');
            return {length: live.samples.length, least: live.samples[0]?.t};
        });
        return least < now - 80e6 ? length : 0;
    }, 'the day');
    if (held > 8600 + 60 + 620) throw new Error(`${held} samples are held`);
    await until(
        () =>
            tab.evaluate(() => {
                const canvas = document.querySelector('.plot canvas');
                const data = canvas.getContext('2d').getImageData(0, 0, canvas.width / 2, canvas.height - 4).data;
                return data.some((value, i) => i % 4 === 3 && value > 0);
            }),
        'a line in the older half',
    );
});

test('samples are put together as rates', main, async ({person, tab}) => {
    await person.visit('#/help');
    const all = await tab.evaluate(async () => {
        const {together} = await import('/console/live.js');
        const one = (t, puts, p99, calls) => ({
            t,
            ops: puts ? {PutItem: puts} : {},
            p99,
            errors: puts,
            queue: t,
            functions: calls ? {bill: {calls, errors: 0, running: calls}} : {},
        });
        return together([one(1000, 4, 100, 2), one(2000, 0, undefined, 0), one(3000, 2, 700, 0)]);
    });
    const wanted = {t: 3000, step: 10000, queue: 3000, p99: 700, errors: 2};
    for (const [name, value] of Object.entries(wanted))
        if (all[name] !== value) throw new Error(`${name} is ${all[name]}`);
    if (all.ops.PutItem !== 2) throw new Error(`${all.ops.PutItem} puts`);
    if (all.functions.bill.calls !== 0.67 || all.functions.bill.running !== 2)
        throw new Error(JSON.stringify(all.functions));
});

test('what a button could not do is told beside it', main, async ({person, tab}) => {
    await person.visit('#/help');
    await tab.evaluate(async () => {
        const {h} = await import('/console/dom.js');
        const {actionButton} = await import('/console/parts.js');
        let tries = 0;
        const job = async () => {
            if (!tries++) throw new Error('The paper is out.');
        };
        document.getElementById('main').prepend(h('div.bar', actionButton('Print', job)));
    });
    await person.click('Print');
    await person.see('The paper is out.', '.bar + .fault');
    await person.click('Print');
    await until(() => tab.evaluate(() => !document.querySelector('.fault')), 'the fault to go');
});

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
