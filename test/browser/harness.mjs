// Tests of the console in a real browser, Debian's chromium.
//
//     import {test, server} from './harness.mjs';
//     const main = server('--memory');
//     test('a table is made', main, async ({person, api}) => {
//         await person.visit('#/tables');
//         await person.click('Create table');
//         await person.type('Name', 'orders');
//         ...
//     });
//
// Each test has a tab of its own, with nothing kept from before. It fails when the page throws, writes an error to the
// console or asks anybody else than its server. A person's steps wait for what they need, up to PATIENCE_MS.

import {spawn} from 'node:child_process';
import fs from 'node:fs';
import {createRequire} from 'node:module';
import os from 'node:os';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const BINARY = process.env.QUIPU_TEST_BINARY ?? path.join(ROOT, 'build/quipu');
const PATIENCE_MS = 60e3; // a slow machine is no fault
const TEST_MS = 240e3;
const AGAIN_MOST = 3;
const CLICK_LOST_MS = 5000;
const SLOWER = Number(process.env.SLOWER ?? 1); // SLOWER=20 test/browser/run.mjs: the page as on a slow machine
export const fromNpm = createRequire(path.join(ROOT, 'build/npm/package.json'));
export const SHOTS = process.env.SHOTS_FOLDER; // where pictures for the documents go; unset: nowhere

const sleep = ms => new Promise(done => setTimeout(done, ms));

// ---- servers ----

// A server with these flags, started when the first test asks for it. `folder`: a scratch folder of its own.
export function server(...flags) {
    const self = {url: null, folder: null, child: null};
    self.start = async () => {
        if (self.child) return self;
        self.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'quipu-browser-'));
        self.flags = typeof flags[0] === 'function' ? await flags[0](self) : flags;
        return begin('0');
    };
    async function begin(port) {
        self.child = spawn(BINARY, ['serve', '--port', port, ...self.flags], {
            stdio: ['ignore', 'pipe', 'pipe'],
            cwd: self.folder,
            env: {...process.env, AWS_ACCESS_KEY_ID: 'k', AWS_SECRET_ACCESS_KEY: 's', AWS_REGION: 'us-east-1'},
        });
        let said = '';
        const hear = bytes => (said += bytes);
        self.child.stdout.on('data', hear);
        self.child.stderr.on('data', hear);
        const began = Date.now();
        let url;
        while (!(url = /ready on (http\S+)/.exec(said)?.[1])) {
            if (self.child.exitCode !== null || Date.now() - began > PATIENCE_MS)
                throw new Error(`the server did not start: ${said}`);
            await sleep(20);
        }
        self.url = url;
        return self;
    }
    // Ends it as a crash does, and starts it again at the same place.
    self.kill = async () => {
        const ended = new Promise(done => self.child.on('exit', done));
        self.child.kill('SIGKILL');
        await ended;
    };
    self.revive = () => begin(new URL(self.url).port);
    self.stop = async () => {
        if (!self.child) return;
        const {child} = self; // the one to end: the server may be started again before the 15 s are over
        const ended = new Promise(done => child.on('exit', done));
        const kill = setTimeout(() => child.kill('SIGKILL'), 15e3);
        child.kill('SIGTERM');
        await ended;
        clearTimeout(kill);
        fs.rmSync(self.folder, {recursive: true, force: true});
        self.child = self.url = null;
    };
    servers.push(self);
    return self;
}
const servers = [];

// The engines that a view is tried on, as a test takes them: the server's own, and that of another server.
export function engines(...flags) {
    const elsewhere = server('--memory', '--no-functions');
    const remote = server(async () => ['--on', (await elsewhere.start()).url, ...flags]);
    return [
        ['embedded', server('--memory', ...flags)],
        ['--on', remote],
    ];
}

// Calls from outside, to prepare and to look: api('PutItem', {...}) or api('POST /v1/counters/c', {...}).
export function apiOf(url) {
    return async (what, input, headers = {}) => {
        const [method, route] = what.includes(' ') ? what.split(' ') : ['POST', '/'];
        const all = {...headers};
        if (route === '/') {
            all['X-Amz-Target'] = `DynamoDB_20120810.${what}`;
            all['Content-Type'] = 'application/x-amz-json-1.0';
            all.Authorization =
                'AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/dynamodb/aws4_request, ' +
                'SignedHeaders=host, Signature=0';
        }
        const body = input === undefined ? undefined : typeof input === 'string' ? input : JSON.stringify(input);
        const response = await fetch(url + route, {method, headers: all, body});
        const said = await response.text();
        if (!response.ok) throw new Error(`${what}: ${response.status} ${said}`);
        try {
            return JSON.parse(said);
        } catch {
            return said;
        }
    };
}

// Waits until `look` answers something true, and answers that.
export async function until(look, what = 'a condition') {
    const began = Date.now();
    for (;;) {
        const found = await look();
        if (found) return found;
        if (Date.now() - began > PATIENCE_MS) throw new Error(`waited in vain for ${what}`);
        await sleep(50);
    }
}

// ---- a person before the page ----

// Runs in the page: the first seen element of a kind whose accessible name is that, or fits a /pattern/.
function findInPage(kind, name, within) {
    const kinds = {
        button: 'button,[role=button],[role=menuitem],[role=tab],summary',
        link: 'a[href]',
        input: 'input,textarea,select,[contenteditable]',
        any: 'button,a[href],[role=button],[role=menuitem],[role=option],[role=tab],summary,input,textarea,select',
    };
    const squeeze = words => (words ?? '').replace(/\s+/g, ' ').trim();
    const nameOf = element => {
        const by = element.getAttribute('aria-labelledby');
        if (by)
            return squeeze(
                by
                    .split(' ')
                    .map(id => document.getElementById(id)?.textContent)
                    .join(' '),
            );
        if (element.getAttribute('aria-label')) return squeeze(element.getAttribute('aria-label'));
        if (element.labels?.length) return squeeze(element.labels[0].textContent);
        return squeeze(element.textContent) || squeeze(element.title) || squeeze(element.placeholder);
    };
    const pattern = name.startsWith('/') ? new RegExp(name.slice(1, -1)) : null;
    const dialogs = document.querySelectorAll('dialog[open]');
    const root = within ? document.querySelector(within) : (dialogs[dialogs.length - 1] ?? document);
    if (!root) return null;
    for (const element of root.querySelectorAll(kinds[kind] ?? kind)) {
        // Neither one that is disabled nor one that still works at what it was clicked for.
        const isSeen = element.checkVisibility({visibilityProperty: true});
        if (!isSeen || element.disabled || element.ariaBusy === 'true') continue;
        const own = nameOf(element);
        if (pattern ? pattern.test(own) : own === name) return element;
    }
    return null;
}

class Person {
    constructor(tab, url) {
        Object.assign(this, {tab, url});
    }
    async visit(hash = '') {
        await this.tab.goto(this.url + '/' + hash, {waitUntil: 'load', timeout: PATIENCE_MS});
        await this.tab.waitForSelector('#main *', {timeout: PATIENCE_MS});
    }
    // The element with that name; name: a text, or a /pattern/ as a text or RegExp.
    async find(name, {kind = 'any', within = null} = {}) {
        const words = name instanceof RegExp ? `/${name.source}/` : name;
        const handle = await until(
            async () => {
                try {
                    const found = await this.tab.evaluateHandle(findInPage, kind, words, within);
                    return found.asElement();
                } catch {
                    return null; // the page is changing just now
                }
            },
            `${kind} “${words}”; there is: ${await this.words()}`,
        );
        return handle;
    }
    // Again where the page has changed under the hand.
    async act(find, how) {
        return until(async () => {
            try {
                const element = await find();
                await how(element);
                return true;
            } catch (error) {
                if (/detached|not clickable|context|Node is/.test(error.message)) return false;
                throw error;
            }
        }, 'an element that stays');
    }
    async click(name, options) {
        await this.act(
            () => this.find(name, options),
            element => element.click(),
        );
    }
    // Clicks what opens a dialog; once more where the page was rebuilt under the hand and the click was lost. What it
    // clicks is found only when the dialog before it has gone, so that one is never taken for the one asked for.
    async open(name, options) {
        await this.find(name, options);
        const count = () => this.tab.$$eval('dialog[open]', all => all.length);
        const before = await count();
        await until(async () => {
            await this.click(name, options);
            const began = Date.now();
            while (Date.now() - began < CLICK_LOST_MS) {
                if ((await count()) > before) return true;
                await sleep(50);
            }
            return false;
        }, `the dialog of “${name}”`);
    }
    async type(label, words, options = {}) {
        await this.act(
            () => this.find(label, {kind: 'input', ...options}),
            async element => {
                await element.evaluate(one => {
                    one.focus();
                    one.select?.();
                });
                await this.tab.keyboard.press('Backspace');
                await this.tab.keyboard.sendCharacter(words);
            },
        );
    }
    async choose(label, value, options = {}) {
        await this.act(
            () => this.find(label, {kind: 'select', ...options}),
            element => element.select(value),
        );
    }
    async press(...keys) {
        for (const key of keys) {
            const parts = key.split('+');
            for (const held of parts.slice(0, -1)) await this.tab.keyboard.down(held);
            await this.tab.keyboard.press(parts.at(-1));
            for (const held of parts.slice(0, -1)) await this.tab.keyboard.up(held);
        }
    }
    async words(selector = 'body') {
        return this.tab
            .evaluate(s => {
                const dialog = [...document.querySelectorAll('dialog[open]')].map(one => one.innerText).join(' ');
                return (
                    dialog +
                    ' ' +
                    (document.querySelector(s)?.innerText ?? document.querySelector(s)?.textContent ?? '')
                ).slice(0, 20000);
            }, selector)
            .catch(() => '');
    }
    // Waits until the text is seen.
    async see(what, selector = 'body') {
        let last = '';
        try {
            await until(async () => {
                last = await this.words(selector);
                return what instanceof RegExp ? what.test(last) : last.includes(what);
            }, what);
        } catch {
            throw new Error(`did not see ${what} in: ${last.slice(0, 1500)}`);
        }
    }
    async seeNot(what, selector = 'body') {
        await until(async () => {
            const words = await this.words(selector);
            return !(what instanceof RegExp ? what.test(words) : words.includes(what));
        }, `${what} to go away`);
    }
    // No serious finding of axe-core on what is shown now.
    async isAccessible() {
        // a button that works is pale for so long; one that has opened a dialog works until that is left
        const isBusy = () => {
            const dialogs = document.querySelectorAll('dialog[open]');
            return (dialogs[dialogs.length - 1] ?? document).querySelector('[aria-busy]') !== null;
        };
        await until(async () => !(await this.tab.evaluate(isBusy)), 'all that is under way');
        // by evaluate, which the page's policy does not concern
        await this.tab.evaluate(fs.readFileSync(fromNpm.resolve('axe-core/axe.min.js'), 'utf8'));
        const found = await this.tab.evaluate(async () => {
            const {violations} = await window.axe.run(document, {resultTypes: ['violations']});
            return violations
                .filter(one => ['serious', 'critical'].includes(one.impact))
                .map(
                    one =>
                        `${one.id}: ${one.nodes
                            .slice(0, 3)
                            .map(node => node.html.slice(0, 200))
                            .join(' | ')}`,
                );
        });
        if (found.length) throw new Error(`axe-core: ${found.join('\n')}`);
    }
    // Nothing is wider than the page.
    async fits(width = 390, scheme = 'dark') {
        await this.tab.setViewport({width, height: 800});
        await this.tab.emulateMediaFeatures([{name: 'prefers-color-scheme', value: scheme}]);
        await this.tab.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
        const over = await this.tab.evaluate(() => {
            const main = document.getElementById('main');
            return Math.max(document.documentElement.scrollWidth - innerWidth, main.scrollWidth - main.clientWidth);
        });
        if (over > 0) throw new Error(`at ${width} px the page is ${over} px too wide`);
    }
    async picture(name) {
        if (SHOTS) await this.tab.screenshot({path: path.join(SHOTS, `${name}.png`)});
    }
}

// ---- running ----

const tests = [];

// on: a server, or several as engines() tells them. expects: texts of console errors that the test itself brings about
// (a refused request is one in chromium).
export function test(name, on, run, {expects = []} = {}) {
    if (!Array.isArray(on)) tests.push({name, on, run, expects});
    else for (const [engine, each] of on) tests.push({name: `${name} (${engine})`, on: each, run, expects});
}

async function one(browser, {name, on, run, expects}) {
    const faults = [];
    await on.start();
    const context = await browser.createBrowserContext();
    const tab = await context.newPage();
    tab.setDefaultTimeout(PATIENCE_MS);
    await tab.setViewport({width: 1280, height: 800});
    if (SLOWER > 1) await tab.emulateCPUThrottling(SLOWER);
    tab.on('pageerror', error => faults.push(`the page threw: ${error.message ?? error}`));
    tab.on('console', message => {
        const words = message.text();
        if (message.type() === 'error' && !expects.some(known => words.includes(known)))
            faults.push(`the console says: ${words} (${message.location()?.url ?? ''})`);
    });
    tab.on('request', request => {
        if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(on.url + '/'))
            faults.push(`it asked elsewhere: ${request.url()}`);
    });
    let timer;
    try {
        const person = new Person(tab, on.url);
        const late = new Promise((resolve, reject) => {
            timer = setTimeout(() => reject(new Error('it did not end in time')), TEST_MS);
        });
        await Promise.race([run({person, tab, api: apiOf(on.url), server: on, context}), late]);
    } catch (error) {
        faults.push(error.stack ?? String(error));
        if (process.env.FAULT_SHOTS) await tab.screenshot({path: path.join(process.env.FAULT_SHOTS, `${name}.png`)});
    }
    clearTimeout(timer);
    await context.close().catch(() => {});
    return faults;
}

// Debian's chromium, without a window.
export function launch() {
    const puppeteer = fromNpm('puppeteer-core');
    return (puppeteer.default ?? puppeteer).launch({
        executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
        // As root, in containers with a small /dev/shm, without a graphics card.
        args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--disable-background-networking'],
        protocolTimeout: TEST_MS,
        timeout: PATIENCE_MS * 2,
    });
}

async function told(browser, each) {
    const began = Date.now();
    const faults = await one(browser, each).catch(error => [String(error.stack ?? error)]);
    const seconds = ((Date.now() - began) / 1000).toFixed(1);
    console.log(`${faults.length ? 'not ok' : 'ok'} ${each.name} (${seconds} s)`);
    for (const fault of new Set(faults)) console.log(`    ${fault.replaceAll('\n', '\n    ')}`);
    return faults.length === 0;
}

async function stopAll() {
    for (const each of servers) await each.stop();
}

// Runs what the files have registered; `wanted`: only tests whose name contains it. Up to AGAIN_MOST that fail are run
// once more, with servers of their own; one that passes then is told as unstable (see test/README.md).
export async function runAll(wanted) {
    const browser = await launch();
    const failed = [];
    let passed = 0;
    try {
        for (const each of tests.filter(one => !wanted || one.name.includes(wanted)))
            if (await told(browser, each)) passed++;
            else failed.push(each);
        for (const each of failed.length <= AGAIN_MOST ? [...failed] : []) {
            await stopAll();
            console.log(`-- once more, alone: ${each.name}`);
            if (!(await told(browser, each))) continue;
            console.log(`UNSTABLE ${each.name}`);
            failed.splice(failed.indexOf(each), 1);
            passed++;
        }
    } finally {
        await browser.close();
        await stopAll();
    }
    for (const each of failed) console.log(`FAILED ${each.name}`);
    console.log(`${passed} passed, ${failed.length} failed`);
    return failed.length === 0;
}
