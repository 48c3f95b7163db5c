// A function now: calls, errors, durations and concurrency, its processes, and what starts it.

import {at, request} from '../api.js';
import {CallLog, follow} from '../calllog.js';
import {codeOf, functionOf, kindOf, mappings, paceMs, tableOf} from '../calls.js';
import {h, renew, replace, text} from '../dom.js';
import {bytes, count, duration, plural, short} from '../format.js';
import {live, showsPast} from '../live.js';
import {every, facts, faultPlace, grid, select, shell, state, teach, time} from '../parts.js';
import {plot, plotGroup} from '../plot.js';
import {go, href} from '../route.js';
import {boto3} from '../sdk.js';

const RANGES = [
    ['5', 'last 5 minutes'],
    ['15', 'last 15 minutes'],
    ['60', 'last hour'],
    ['360', 'last 6 hours'],
    ['1440', 'last 24 hours'],
];
const STARTS_SELDOM = 5; // what starts it changes seldom
const PROCESS_STATES = {Busy: 'running', Idle: 'ok', Starting: 'waiting', Retiring: 'waiting'};

export function openNow({el, name, route, configuration, signal, onSample}) {
    const faults = faultPlace();
    const group = plotGroup();
    const log = new CallLog();
    let minutes = route.query.minutes ?? '5';
    const of = sample => sample.functions?.[name] ?? {};
    const sampled = [
        ['Calls a second', 'calls', '--accent'],
        ['Errors a second', 'errors', '--failed'],
        ['Running now', 'running', '--running'],
    ].map(([title, member, color]) =>
        plot({title, group, series: [{name: title, color}], words: short, value: sample => of(sample)[member] ?? 0}),
    );
    const durations = plot({
        title: 'Duration',
        group,
        dots: true,
        series: [
            {name: 'answered', color: '--accent'},
            {name: 'failed', color: '--failed'},
        ],
        words: duration,
        value: (call, i) => ((call.status === 'success') === (i === 0) ? call.ms : null),
    });
    const range = select(RANGES, minutes, {
        'aria-label': 'Time shown',
        onchange: () => go(['functions', name, 'now'], {minutes: range.value}, {quietly: true}),
    });
    const waiting = h('span.dim');
    const processes = grid({
        label: 'Processes',
        key: one => one.Process,
        empty: h('p.dim', 'No process runs now. The next call begins one.'),
        columns: [
            {title: 'Process', cell: one => count(one.Process)},
            {title: 'State', cell: one => state(PROCESS_STATES[one.State] ?? 'waiting', one.State)},
            {title: 'Version', cell: one => one.Version},
            {title: 'Age', right: true, cell: one => duration(one.AgeSeconds * 1000)},
            {title: 'Idle', right: true, cell: one => (one.State === 'Idle' ? duration(one.IdleSeconds * 1000) : '')},
            {
                title: 'Memory',
                right: true,
                cell: one => h('span', {title: `${one.MemoryBytes} bytes`}, bytes(one.MemoryBytes)),
            },
            {title: 'Calls', right: true, cell: one => count(one.Invocations)},
            {title: 'Running', right: true, cell: one => count(one.Running)},
            {title: 'Start took', right: true, cell: one => duration(one.InitSeconds * 1000)},
        ],
    });
    const starts = h('ul.plain');
    const own = configuration.Quipu ?? {};
    replace(
        el,
        facts([
            ['Runs', kindOf(configuration)],
            ['Code', codeOf(configuration)],
            ['Handler', configuration.Handler],
            ['Memory', configuration.Runtime ? `${configuration.MemorySize} MB` : null],
            ['Time-out', `${configuration.Timeout} s`],
            ['Calls of a process at a time', own.Concurrency ? count(own.Concurrency) : null],
            ['Changed', time(configuration.LastModified)],
            ['About', configuration.Description],
        ]),
        h('div.bar', range),
        h(
            'div.plots',
            [...sampled, durations].map(one => one.element),
        ),
        faults.element,
        configuration.Runtime ? [h('h3', 'Processes ', waiting), processes.element] : null,
        h('h3', 'What starts it'),
        starts,
        teach({
            CLI: shell('quipu', 'function', 'show', name),
            curl: `curl -s ${location.origin}` + at`/2015-03-31/functions/${name}`,
            boto3: `${boto3('lambda')}.get_function(FunctionName='${name}')`,
        }),
    );

    function draw() {
        showsPast(Number(minutes) * 60e3);
        const to = live.samples.at(-1)?.t ?? Date.now();
        const from = to - Number(minutes) * 60e3;
        for (const one of sampled) one.update(live.samples, from, to);
        const calls = [...log.calls.values()].filter(call => call.ms !== undefined);
        durations.update(calls, from, to);
    }
    async function ask() {
        await faults.run(async () => {
            if (configuration.Runtime) {
                const answer = await request('GET', at`/v1/functions/${name}/processes`, {signal});
                processes.update(answer.Processes);
                text(waiting, answer.Waiting ? `${plural(answer.Waiting, 'call')} wait for one` : '');
            }
        });
    }
    const askStarts = () => faults.run(async () => renew(starts, await whatStarts(name, own, signal)));
    onSample(draw);
    draw();
    every(paceMs(), ask, signal);
    every(paceMs() * STARTS_SELDOM, askStarts, signal);
    if (configuration.Runtime)
        follow({name, group: configuration.LoggingConfig?.LogGroup}, log, draw, error => faults.show(error), signal);
    return {
        update(later) {
            minutes = later.query.minutes ?? '5';
            range.value = minutes;
            draw();
        },
    };
}

const scheduleHref = one =>
    href(['schedules', one.Name], {group: one.GroupName === 'default' ? null : one.GroupName});

async function whatStarts(name, own, signal) {
    const options = {signal};
    const {found} = await mappings(1, '&FunctionName=' + encodeURIComponent(name));
    const [{drives}, {apis}, {Schedules: schedules}] = await Promise.all(
        ['/v1/drives', '/v1/routes', '/schedules?MaxResults=100'].map(path => request('GET', path, options)),
    );
    const isIt = target => functionOf(target).split(':')[0] === name;
    const targets = one => [one.each, one.function].flat().filter(target => typeof target === 'string');
    const lines = [
        ...found.map(one =>
            h(
                'li',
                'changes of the table ',
                h('a', {href: href(['tables', tableOf(one.EventSourceArn)])}, tableOf(one.EventSourceArn)),
                ', by a ',
                h('a', {href: href(['triggers', one.UUID])}, 'trigger'),
                one.State === 'Enabled' ? '' : ` (${one.State.toLowerCase()})`,
            ),
        ),
        ...(drives ?? [])
            .filter(one => targets(one).some(isIt))
            .map(one => h('li', h('a', {href: href(['triggers', one.id])}, one.id))),
        ...(schedules ?? [])
            .filter(one => isIt(one.Target?.Arn))
            .map(one => h('li', 'the schedule ', h('a', {href: scheduleHref(one)}, one.Name))),
        ...(apis ?? []).flatMap(api =>
            Object.entries(api.routes ?? {})
                .filter(([, route]) => isIt(route.function))
                .map(([route]) => h('li', 'the route ', h('code', route), ' of the API ', api.api)),
        ),
        own.UrlPath ? h('li', 'requests to ', h('a', {href: own.UrlPath}, location.origin + own.UrlPath)) : null,
    ].filter(Boolean);
    return lines.length ? lines : h('li.dim', 'Nothing but whoever calls it.');
}
