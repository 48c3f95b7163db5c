// A function's log as it is written, call by call.

import {CallLog, follow} from '../calllog.js';
import {h, renew, replace} from '../dom.js';
import {duration} from '../format.js';
import {parse, print} from '../json.js';
import {facts, faultPlace, grid, input, json, shell, since, state, teach, time} from '../parts.js';
import {go, href} from '../route.js';

const SHOWN = 200; // calls in the list

const kindOf = call => (call.status === undefined ? 'running' : call.status === 'success' ? 'ok' : 'failed');
// What a call printed, without the lines of the system.
const own = call =>
    call.lines.filter(line => !/^(START|END|REPORT) RequestId|^\{"time":"[^"]*","type":"platform\./.test(line));

// A line without its time and id; of a JSON log its level and message.
function wordsOf(line) {
    if (line.startsWith('{'))
        try {
            const {level, message} = parse(line);
            if (message !== undefined)
                line = `${level ?? ''} ${typeof message === 'string' ? message : print(message, 0)}`;
        } catch {
            /* it only looks like it */
        }
    return line.replace(/^\S+Z\t\S+\t/, '').slice(0, 200);
}

export function openLogs({el, name, route, configuration, signal}) {
    if (!configuration.Runtime && !configuration.Quipu?.Url)
        return replace(el, h('p.dim', 'This function is carried out by the server itself and prints nothing.')) && {};
    const faults = faultPlace();
    const log = new CallLog();
    let query = route.query;
    const filter = input({
        type: 'search',
        'aria-label': 'Calls that contain',
        placeholder: 'calls that contain …',
        value: query.filter ?? '',
        oninput: () => go(['functions', name, 'logs'], {...query, filter: filter.value}, {quietly: true}),
    });
    const list = grid({
        label: 'Calls',
        key: row => row.id,
        href: row => href(['functions', name, 'logs'], {filter: row.filter, call: row.id}),
        selected: query.call ?? null,
        empty: h('p.dim', 'Nothing was printed yet, or nothing that fits.'),
        columns: [
            {title: 'When', cell: row => since(row.t)},
            {title: 'End', cell: row => state(row.kind, row.status)},
            {
                title: 'Duration',
                right: true,
                cell: row => (row.ms === undefined ? '' : duration(row.ms)),
                sort: row => row.ms ?? -1,
            },
            {title: 'Memory', right: true, cell: row => (row.memoryMb === undefined ? '' : `${row.memoryMb} MB`)},
            {title: 'First line', cell: row => row.first},
        ],
    });
    const lines = h('div.function-lines');
    replace(
        el,
        h('div.bar', filter),
        faults.element,
        list.element,
        lines,
        teach({
            CLI: shell('quipu', 'function', 'logs', name, '--follow'),
            curl: `curl -sN '${location.origin}/v1/functions/${encodeURIComponent(name)}/logs?follow=1'`,
            AWS: shell('aws', '--endpoint-url', location.origin, 'logs', 'tail', `/aws/lambda/${name}`, '--follow'),
        }),
    );
    const rowOf = call => ({
        id: call.id,
        t: call.t,
        kind: kindOf(call),
        status: call.status ?? 'running',
        ms: call.ms,
        memoryMb: call.memoryMb,
        first: wordsOf(own(call)[0] ?? ''),
        filter: query.filter,
    });
    let scheduled = false;
    function later() {
        if (scheduled) return;
        scheduled = true;
        requestAnimationFrame(() => {
            scheduled = false;
            draw();
        });
    }
    function draw() {
        const wanted = (query.filter ?? '').toLowerCase();
        const calls = [...log.calls.values()].reverse();
        const fitting = wanted
            ? calls.filter(call => call.lines.some(line => line.toLowerCase().includes(wanted)) || call.id === wanted)
            : calls;
        list.update(fitting.slice(0, SHOWN).map(rowOf));
        const call = query.call ? log.calls.get(query.call) : null;
        if (call) showCall(call);
        else if (query.call) renew(lines, h('p.dim', 'The log does not have this call (any more).'));
        else if (log.others.length) renew(lines, h('h3', 'Outside of calls'), json(log.others.join('\n')));
        else replace(lines);
    }
    let shown = '';
    function showCall(call) {
        const now = `${call.id} ${call.lines.length} ${call.cut} ${call.ms}`;
        if (now === shown && lines.firstChild) return;
        shown = now;
        renew(
            lines,
            h('h3', 'Call ', h('code', call.id)),
            facts([
                ['When', time(call.t)],
                ['End', state(kindOf(call), call.status ?? 'running')],
                ['Duration', call.ms === undefined ? null : duration(call.ms)],
                ['Start of the process', call.initMs === undefined ? null : duration(call.initMs)],
                ['Memory', call.memoryMb === undefined ? null : `${call.memoryMb} MB`],
                ['Version', call.version],
            ]),
            call.cut ? h('p.dim', `${call.cut} lines are left out.`) : null,
            json(call.lines.join('\n')),
        );
    }
    follow({name, group: configuration.LoggingConfig?.LogGroup}, log, later, error => faults.show(error), signal);
    return {
        update(to) {
            query = to.query;
            shown = '';
            if (filter.value !== (query.filter ?? '')) filter.value = query.filter ?? '';
            list.select(query.call ?? null);
            draw();
        },
    };
}
