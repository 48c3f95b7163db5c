// The frame: rail, top line, and the view that the URL names.
//
// A view is a module views/NAME.js with open(page): it fills page.el and may answer {update(route)}, which is called
// when the URL changes within the view. page: {el, route, signal (ends with the view), title(words), onSample(take),
// every(ms, job)}.

import {ApiError, request, server, signIn} from './api.js';
import {h, replace, text} from './dom.js';
import {live, onSample, onState, startLive} from './live.js';
import {openPalette} from './palette.js';
import {dialog, errorLine, every, field, input, whyNoChange} from './parts.js';
import {askToLeave, href, parseRoute} from './route.js';
import {startCounts} from './counts.js';

const SECTIONS = [
    ['overview', 'Overview'],
    ['tables', 'Tables'],
    ['functions', 'Functions'],
    ['triggers', 'Triggers'],
    ['schedules', 'Schedules'],
    ['queues', 'Queues'],
    ['jobs', 'Jobs'],
    ['groups', 'Groups'],
    ['periods', 'Periods'],
    ['work', 'Work'],
    ['leases', 'Leases'],
    ['logs', 'Logs'],
    ['counters', 'Counters'],
    ['documents', 'Documents'],
    ['boards', 'Boards'],
    ['help', 'Help'],
];

const AGAIN_MS = 2000; // a view that did not come

const byId = id => document.getElementById(id);
const main = byId('main');
let current = null; // {name, view, ending}
let here = location.hash; // of what is shown

// The URL has changed. Where something is not saved one stays, and is asked first.
async function arrive() {
    const target = location.hash,
        asked = askToLeave(parseRoute());
    if (asked) {
        history.replaceState(null, '', here);
        if (await asked) location.hash = target;
        return;
    }
    await show();
}

async function show() {
    const route = parseRoute();
    here = location.hash;
    const name = route.path[0] ?? 'overview';
    crumbs(route);
    for (const link of byId('rail').querySelectorAll('a')) {
        if (link.dataset.name === name) link.setAttribute('aria-current', 'page');
        else link.removeAttribute('aria-current');
    }
    if (current?.name === name && current.view?.update) {
        current.view.update(route);
        return;
    }
    current?.ending.abort();
    const ending = new AbortController();
    const mine = (current = {name, view: null, ending});
    const el = h('div.view');
    replace(main, el);
    const page = {
        el,
        route,
        signal: ending.signal,
        title: words => {
            document.title = `${words} · Quipu`;
        },
        onSample: take => onSample(take, ending.signal),
        every: (ms, job) => every(ms, job, ending.signal),
    };
    page.title(SECTIONS.find(([path]) => path === name)?.[1] ?? name);
    try {
        if (!SECTIONS.some(([path]) => path === name)) throw new Error(`There is no view “${name}”.`);
        const module = await viewOf(name);
        if (ending.signal.aborted) return;
        const view = await module.open(page);
        if (current === mine) {
            mine.view = view ?? {};
            const later = parseRoute();
            if (href(later.path, later.query) !== href(route.path, route.query)) show(); // it went on meanwhile
        }
    } catch (error) {
        if (ending.signal.aborted) return;
        replace(el, errorLine(error));
        if (error.type === 'NoAnswer') setTimeout(() => current === mine && again(mine), AGAIN_MS);
    }
}

function again(lost) {
    lost.name = null; // so that it is begun anew
    show();
}

// One that could not be fetched is asked for by another name the next time: browsers remember the failure.
let tries = 0;
async function viewOf(name) {
    try {
        return await import(`./views/${name}.js${tries ? `?again=${tries}` : ''}`);
    } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        tries++;
        throw new ApiError(0, 'NoAnswer', 'The server does not answer. The view comes when it does.');
    }
}

function crumbs(route) {
    const parts = route.path.length ? route.path : ['overview'];
    const first = SECTIONS.find(([path]) => path === parts[0])?.[1] ?? parts[0];
    replace(
        byId('crumbs'),
        parts.map((part, i) => [
            i ? ' / ' : '',
            h(
                'a',
                {href: href(parts.slice(0, i + 1)), 'aria-current': i === parts.length - 1 ? 'page' : null},
                i ? part : first,
            ),
        ]),
    );
}

function rail() {
    replace(
        byId('rail'),
        h(
            'ul',
            SECTIONS.map(([name, words]) =>
                h(
                    'li',
                    h(
                        'a',
                        {href: href([name]), dataset: {name}},
                        h('span', words),
                        h('span.count', {id: `count-${name}`}),
                    ),
                ),
            ),
        ),
    );
    const menu = byId('menu');
    const toggle = open => {
        document.body.classList.toggle('menu-open', open);
        menu.setAttribute('aria-expanded', String(open));
    };
    menu.addEventListener('click', () => toggle(!document.body.classList.contains('menu-open')));
    byId('rail').addEventListener('click', event => {
        if (event.target.closest('a')) toggle(false);
    });
}

function health(state) {
    const words = {live: '● live', waiting: '○ waiting', lost: '✕ no answer'};
    byId('health').className = state;
    text(byId('health'), words[state]);
}

// Whether the server takes the keys; keys that it refuses are forgotten. Who has signed in is told more.
async function checkKeys() {
    try {
        await request('GET', '/v1/counters?limit=1');
    } catch (error) {
        if (error.type !== 'NoAnswer') signIn(null);
        throw error;
    }
    server.info = await request('GET', '/console/info');
}

// With --credentials: the keys of a user of the server; they stay in this tab and sign what it sends.
async function askForKeys(problem) {
    const id = input({name: 'id', required: true}),
        secret = input({name: 'secret', type: 'password', required: true}),
        token = input({name: 'token'});
    const keys = await dialog({
        title: 'Sign in',
        body: () => [
            h('p', problem ?? 'This server checks signatures. The keys stay in this tab; requests are signed here.'),
            field('Access key', id),
            field('Secret key', secret),
            field('Session token', token, 'if there is one'),
        ],
        actions: [
            [
                'Sign in',
                async () => {
                    signIn({
                        id: id.value.trim(),
                        secret: secret.value.trim(),
                        token: token.value.trim() || undefined,
                    });
                    await checkKeys();
                    return true;
                },
                'primary',
            ],
        ],
    });
    return keys ?? askForKeys('Without keys nothing can be shown.');
}

async function start() {
    byId('skip').addEventListener('click', () => main.focus());
    byId('find').addEventListener('click', () => openPalette(SECTIONS));
    document.addEventListener('keydown', event => {
        if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
            event.preventDefault();
            openPalette(SECTIONS);
        }
    });
    rail();
    onState(health);
    health(live.state);
    for (;;)
        try {
            server.info = await request('GET', '/console/info');
            break;
        } catch (error) {
            replace(main, errorLine(error));
            if (error.type !== 'NoAnswer') return;
            await new Promise(done => setTimeout(done, AGAIN_MS));
        }
    if (server.info.signIn) {
        replace(main, h('p.view.dim', 'Sign in to see what is there.'));
        const problem = server.keys ? await checkKeys().catch(error => error) : undefined;
        if (!server.keys) await askForKeys(problem?.message);
        byId('top').append(
            h(
                'button',
                {
                    type: 'button',
                    onclick: () => {
                        signIn(null);
                        location.reload();
                    },
                },
                'Sign out',
            ),
        );
    }
    const {engine, version} = server.info;
    text(byId('engine'), [engine?.where || engine?.kind, whyNoChange() ? 'read only' : ''].filter(Boolean).join(' · '));
    byId('engine').title = `Quipu ${version ?? ''}, ${engine?.kind ?? ''}`;
    addEventListener('hashchange', arrive);
    startLive();
    startCounts(SECTIONS.map(([name]) => name));
    await show();
}

start();
