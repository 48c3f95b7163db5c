// The numbers in the rail: what is open, and in red what is wrong. Asked for seldom, and never by a hidden tab.

import {LISTED_MOST, at, listed, request, server} from './api.js';
import {mappings, scheduleNames} from './calls.js';
import {text} from './dom.js';
import {count} from './format.js';
import {live} from './live.js';
import {every, oneAtATime} from './parts.js';
import {countDeadCalls} from './retry.js';
import {tableNames} from './table.js';

const HERE_MS = 10e3;
const EACH_MOST = 20; // queues, and kinds of groups, that are looked into
const ELSEWHERE_MS = 120e3; // each request costs money on a service

// A list's length, up to LISTED_MOST, which stands for that many and more.
const lengthOf = (path, member) => async () => (await listed(path, member)).rows.length;
// The sum over the things of a list, of so many of them.
function inEach(path, member, key, within) {
    return async () => {
        const {rows} = await listed(path, member);
        let sum = 0;
        for (const row of rows.slice(0, EACH_MOST)) {
            const [inner, state, members] = within(row[key]);
            sum += (await listed(`${inner}?state=${state}`, members)).rows.length;
        }
        return sum;
    };
}
const triggers = async () => (await mappings(LISTED_MOST / 100)).found;

const tables = async () =>
    (await tableNames(LISTED_MOST)).filter(name => !name.startsWith(server.info.prefix)).length;
const many = number => (number >= LISTED_MOST ? `${count(LISTED_MOST)}+` : number ? count(number) : '');

// functions: only where the server runs them; these and `admin`: only for who may use them.
const COUNTS = {
    tables: {open: tables},
    functions: {
        functions: true,
        open: async () => (await request('GET', '/2016-08-19/account-settings')).AccountUsage.FunctionCount,
    },
    triggers: {
        functions: true,
        open: async () => (await triggers()).length,
        wrong: async () =>
            (await triggers()).filter(
                one => one.State === 'Enabled' && one.LastProcessingResult?.startsWith('PROBLEM'),
            ).length,
    },
    queues: {
        admin: true,
        open: async () => live.samples.at(-1)?.queue ?? 0,
        wrong: countDeadCalls,
    },
    schedules: {functions: true, open: async () => (await scheduleNames()).length},
    jobs: {
        open: lengthOf('/v1/jobs?state=open', 'jobs'),
        wrong: async () => {
            const [failed, expired] = await Promise.all(
                ['failed', 'expired'].map(state => listed(`/v1/jobs?state=${state}`, 'jobs')),
            );
            return failed.rows.length + expired.rows.length;
        },
    },
    groups: {open: inEach('/v1/groups', 'groups', 'name', name => [at`/v1/groups/${name}`, 'open', 'groups'])},
    periods: {open: lengthOf('/v1/periods', 'periods')},
    work: {
        open: lengthOf('/v1/work', 'queues'),
        wrong: inEach('/v1/work', 'queues', 'queue', name => [at`/v1/work/${name}`, 'dead', 'work']),
    },
    leases: {
        open: async () => {
            const {rows} = await listed('/v1/leases', 'leases');
            return rows.filter(one => one.held && !one.name.startsWith('drive:')).length;
        },
    },
    logs: {open: lengthOf('/v1/logs', 'logs')},
    counters: {open: lengthOf('/v1/counters', 'counters')},
    documents: {open: lengthOf('/v1/documents', 'collections')},
    boards: {open: lengthOf('/v1/boards', 'boards')},
};

export const counts = {};

// Counts now, for a view that shows what is wrong; once started.
export let recount = async () => {};

export function startCounts(names) {
    const {signal} = new AbortController();
    recount = oneAtATime(countAll);
    every(server.info.engine?.kind === 'remote' ? ELSEWHERE_MS : HERE_MS, recount, signal);

    async function countAll() {
        for (const name of names) {
            const asked = COUNTS[name],
                place = document.getElementById(`count-${name}`);
            const isRefused = (asked?.functions || asked?.admin) && server.info.role !== 'admin';
            if (!asked || isRefused || (asked.functions && !server.info.functions)) continue;
            try {
                const open = await asked.open(),
                    wrong = asked.wrong ? await asked.wrong() : 0;
                counts[name] = {open, wrong};
                text(
                    place,
                    wrong ? `✕ ${many(wrong)}` : many(open),
                );
                place.classList.toggle('failed', wrong > 0);
                place.title = wrong ? `${many(open) || 'none'} open, ${many(wrong)} failed, expired or dead` : '';
            } catch {
                text(place, '');
            }
        }
    }
}
