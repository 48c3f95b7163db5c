// Schedules: what runs when, the next due times, and changing it.

import {at, request} from '../api.js';
import {destinationOf, destinationWords, functionOf, functions, lacksFunctions, paceMs} from '../calls.js';
import {h, replace, text} from '../dom.js';
import {ago, utc, when} from '../format.js';
import {carry, pretty} from '../letters.js';
import {
    actionButton,
    changeButton,
    check,
    confirmTyped,
    dialog,
    empty,
    facts,
    faultPlace,
    field,
    grid,
    input,
    json,
    oneAtATime,
    select,
    shell,
    since,
    split,
    state,
    teach,
    time,
} from '../parts.js';
import {go, href} from '../route.js';
import {boto3} from '../sdk.js';

const TIMES = 10;
const MISSED = [
    ['LATEST', 'the last of them, once'],
    ['ALL', 'each of them'],
    ['SKIP', 'none'],
];

const NOTHING = empty(
    'No schedules yet',
    'A schedule calls a function at certain times, once for each, also across restarts.',
    [
        "quipu schedule add tidy 'rate(1 hour)' cleanup",
        "quipu schedule add report 'cron(0 9 ? * MON-FRI *)' report --zone Europe/Berlin",
        'quipu schedule next report',
    ],
);

const groupOf = route => route.query.group ?? 'default';
const keyOf = one => `${one.GroupName}/${one.Name}`;
const pathOf = (name, group) => at`/schedules/${name}?groupName=${group}`;
const hrefOf = one => href(['schedules', one.Name], one.GroupName === 'default' ? {} : {group: one.GroupName});
const stateOf = one =>
    one.State !== 'ENABLED'
        ? state('waiting', 'paused')
        : one.NextDueTime === undefined
          ? state('ok', 'at its end')
          : state('ok', 'on');

export function open(page) {
    if (lacksFunctions(page, 'Schedules')) return {update() {}};
    const faults = faultPlace();
    let route = page.route,
        rows = [],
        pages = 1,
        detail = null;
    const list = grid({
        label: 'Schedules',
        key: keyOf,
        href: hrefOf,
        selected: route.path[1] ? `${groupOf(route)}/${route.path[1]}` : null,
        empty: NOTHING,
        columns: [
            {title: 'Name', cell: one => one.Name, sort: one => one.Name},
            {title: 'State', cell: stateOf},
            {title: 'Next', cell: one => since(one.NextDueTime), sort: one => Number(one.NextDueTime ?? Infinity)},
            {title: 'When', cell: one => one.ScheduleExpression, sort: one => one.ScheduleExpression},
            {title: 'Zone', cell: one => one.ScheduleExpressionTimezone ?? 'UTC'},
            {title: 'Calls', cell: one => functionOf(one.Target?.Arn), sort: one => functionOf(one.Target?.Arn)},
            {title: 'Group', cell: one => one.GroupName, sort: one => one.GroupName},
        ],
    });
    const more = actionButton('More schedules', () => {
        pages++;
        return refresh();
    });
    more.hidden = true;
    const place = h('div.function'),
        hint = h(
            'div.triggers-hint',
            teach({CLI: 'quipu schedule ls', curl: `curl -s ${location.origin}/schedules`}),
        ),
        panes = split([list.element, more], place);
    replace(
        page.el,
        h('h1', 'Schedules'),
        h('div.bar', changeButton('Add a schedule …', add)),
        faults.element,
        panes,
        hint,
    );

    async function add() {
        const made = await scheduleDialog(null);
        if (!made) return;
        // at once: later one may have gone elsewhere
        go(['schedules', made.name], made.group === 'default' ? {} : {group: made.group});
        await refresh();
    }
    const readRows = oneAtATime(() =>
        faults.run(async () => {
            const found = [];
            let token = null,
                asked = 0;
            do {
                const query = token ? '&NextToken=' + encodeURIComponent(token) : '';
                const answer = await request('GET', `/schedules?MaxResults=100${query}`);
                found.push(...answer.Schedules);
                token = answer.NextToken ?? null;
            } while (token && ++asked < pages);
            more.hidden = !token;
            rows = found;
            list.update(rows);
        }),
    );
    async function refresh() {
        await readRows();
        await detail?.refresh();
    }
    function show() {
        const name = route.path[1] ?? null,
            key = name && `${groupOf(route)}/${name}`;
        panes.classList.toggle('triggers-alone', !name);
        hint.hidden = !!name;
        list.select(key);
        if (detail?.key === key) return;
        detail = null;
        replace(place);
        if (!name) return;
        page.title(name);
        detail = {key, ...scheduleDetail(name, groupOf(route), refresh)};
        replace(place, detail.element);
        detail.refresh();
    }
    show();
    page.every(paceMs(), refresh);
    return {
        update(to) {
            route = to;
            show();
        },
    };
}

// ---- one schedule ----

function scheduleDetail(name, group, refreshAll) {
    const faults = faultPlace(),
        about = h('div'),
        times = h('ol.schedules-times'),
        event = h('div');
    let one = null,
        shown = '';
    const pause = changeButton('Pause', async () => {
        const State = one.State === 'ENABLED' ? 'DISABLED' : 'ENABLED';
        await faults.run(() => request('PUT', at`/schedules/${name}`, {body: {...bodyOf(one), State}}));
        await refreshAll();
    });
    const edit = changeButton('Change …', async () => {
        if (await scheduleDialog(one)) await refreshAll();
    });
    const remove = changeButton(
        'Delete …',
        async () => {
            const done = await confirmTyped({
                title: `Delete the schedule ${name}?`,
                name,
                sentence: 'It will not call its function any more.',
                words: 'Delete',
                job: () => request('DELETE', pathOf(name, group)),
            });
            if (!done) return;
            go(['schedules']);
            await refreshAll();
        },
        {class: 'danger'},
    );
    const element = h(
        'section.function',
        h('div.bar', h('h2.grow', name), pause, edit, remove),
        faults.element,
        about,
        h('h3', 'Next times'),
        times,
        event,
        teach({
            CLI: shell('quipu', 'schedule', 'next', name, String(TIMES)),
            curl: `curl -s '${location.origin}${at`/schedules/${name}`}?next=${TIMES}'`,
            boto3: `${boto3('scheduler')}.get_schedule(Name='${name}', GroupName='${group}')`,
        }),
    );
    const refresh = oneAtATime(() =>
        faults.run(async () => {
            one = await request('GET', `${pathOf(name, group)}&next=${TIMES}`);
            text(pause, one.State === 'ENABLED' ? 'Pause' : 'Resume');
            const now = JSON.stringify(one);
            for (const due of times.querySelectorAll('.dim')) text(due, ago(due.dataset.at));
            if (now === shown) return;
            shown = now;
            draw();
        }),
    );
    function draw() {
        const target = functionOf(one.Target.Arn),
            window = one.FlexibleTimeWindow;
        replace(
            about,
            facts([
                ['State', stateOf(one)],
                ['When', h('code', one.ScheduleExpression)],
                ['Zone', one.ScheduleExpressionTimezone ?? 'UTC'],
                ['Calls', h('a', {href: href(['functions', target.split(':')[0]])}, target)],
                ['Group', one.GroupName],
                ['Missed runs', MISSED.find(([key]) => key === one.MissedRuns)?.[1]],
                ['Spread over', window?.Mode === 'FLEXIBLE' ? `${window.MaximumWindowInMinutes} min` : null],
                ['Not before', time(one.StartDate)],
                ['Not after', time(one.EndDate)],
                ['After its last run', one.ActionAfterCompletion === 'DELETE' ? 'it is deleted' : null],
                ['What cannot be delivered goes to', destinationWords(one.Target.DeadLetterConfig?.Arn)],
                ['About', one.Description],
                ['Changed', time(one.LastModificationDate)],
            ]),
        );
        const due = one.NextDueTimes ?? [];
        replace(
            times,
            due.length
                ? due.map(moment => dueLine(moment, one.ScheduleExpressionTimezone))
                : h('li.dim', one.State === 'ENABLED' ? 'It is at its end.' : 'It is paused.'),
        );
        const words = one.Target.Input;
        replace(
            event,
            words
                ? [
                      h('h3', 'Event'),
                      json(pretty(words)),
                      h(
                          'p',
                          h(
                              'a',
                              {
                                  href: href(['functions', target.split(':')[0], 'invoke']),
                                  onclick: () => carry(target.split(':')[0], words),
                              },
                              'Invoke with this event now',
                          ),
                      ),
                  ]
                : null,
        );
    }
    return {element, refresh};
}

// In the viewer's zone, and by the clock of the schedule's where that is another.
function dueLine(moment, zone) {
    const date = new Date(Number(moment) * 1000);
    const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
    let there = '';
    if (zone && zone !== here)
        try {
            const clock = new Intl.DateTimeFormat(undefined, {
                dateStyle: 'medium',
                timeStyle: 'short',
                timeZone: zone,
            });
            there = `${clock.format(date)} ${zone}`;
        } catch {
            there = ''; // a zone that the browser does not know
        }
    return h(
        'li',
        h('time', {datetime: utc(date), title: utc(date)}, when(date)),
        there ? ` · ${there}` : '',
        ' ',
        h('span.dim', {dataset: {at: date.toISOString()}}, ago(date)),
    );
}

// ---- making and changing ----

// What UpdateSchedule takes, of what GetSchedule tells.
function bodyOf(one) {
    const {Arn, Name, CreationDate, LastModificationDate, NextDueTime, NextDueTimes, ...rest} = one;
    return rest;
}

const local = seconds => {
    if (seconds === undefined) return '';
    const date = new Date(Number(seconds) * 1000);
    return new Date(date.getTime() - date.getTimezoneOffset() * 60e3).toISOString().slice(0, 19);
};
const secondsOf = words => (words ? Math.floor(new Date(words).getTime() / 1000) : undefined);

async function scheduleDialog(one) {
    const {found} = await functions(4);
    const names = found.map(each => each.FunctionName);
    const target = functionOf(one?.Target?.Arn);
    if (target && !names.includes(target)) names.unshift(target);
    const zones = h(
        'datalist',
        {id: 'schedule-zones'},
        (Intl.supportedValuesOf?.('timeZone') ?? []).map(value => h('option', {value})),
    );
    const form = {
        name: input({value: one?.Name ?? '', disabled: !!one, required: true}),
        expression: input({value: one?.ScheduleExpression ?? '', placeholder: 'rate(1 hour)', required: true}),
        zone: input({value: one?.ScheduleExpressionTimezone ?? 'UTC', list: 'schedule-zones'}),
        target: select(names, target || names[0]),
        event: h('textarea.code', {rows: 4, spellcheck: 'false', value: one?.Target?.Input ?? ''}),
        missed: select(MISSED, one?.MissedRuns ?? 'LATEST'),
        from: input({type: 'datetime-local', step: 1, value: local(one?.StartDate)}),
        until: input({type: 'datetime-local', step: 1, value: local(one?.EndDate)}),
        spread: input({
            type: 'number',
            min: 1,
            max: 1440,
            value: one?.FlexibleTimeWindow?.MaximumWindowInMinutes ?? '',
        }),
        onFailure: input({value: destinationWords(one?.Target?.DeadLetterConfig?.Arn)}),
        once: check('Delete it after its last run', one?.ActionAfterCompletion === 'DELETE'),
        group: input({value: one?.GroupName ?? 'default', disabled: !!one}),
        about: input({value: one?.Description ?? ''}),
    };
    function body() {
        const spread = form.spread.value;
        const {RetryPolicy, RoleArn} = one?.Target ?? {};
        return {
            ...(one ? bodyOf(one) : {}),
            GroupName: form.group.value.trim() || 'default',
            ScheduleExpression: form.expression.value.trim(),
            ScheduleExpressionTimezone: form.zone.value.trim() || 'UTC',
            Description: form.about.value || undefined,
            StartDate: secondsOf(form.from.value),
            EndDate: secondsOf(form.until.value),
            ActionAfterCompletion: form.once.box.checked ? 'DELETE' : 'NONE',
            MissedRuns: form.missed.value,
            FlexibleTimeWindow: spread ? {Mode: 'FLEXIBLE', MaximumWindowInMinutes: Number(spread)} : {Mode: 'OFF'},
            Target: {
                Arn: form.target.value,
                Input: form.event.value.trim() || undefined,
                RetryPolicy,
                RoleArn,
                DeadLetterConfig: form.onFailure.value.trim()
                    ? {Arn: destinationOf(form.onFailure.value.trim())}
                    : undefined,
            },
        };
    }
    return dialog({
        title: one ? `Change the schedule ${one.Name}` : 'Add a schedule',
        wide: true,
        body: () => [
            zones,
            h(
                'div.function-fields',
                field('Name', form.name),
                field(
                    'When',
                    form.expression,
                    'rate(5 minutes), cron(0 9 ? * MON-FRI *), at(2026-12-24T18:00:00), or a line of a crontab',
                ),
                field('Zone', form.zone, 'whose clock the expression means'),
                field('Function', form.target),
                field('Missed runs', form.missed, 'while no server ran'),
                field('Not before', form.from, 'by your clock'),
                field('Not after', form.until, 'by your clock'),
                field('Spread over, minutes', form.spread, '1 to 1440; empty: at the time itself'),
                field('What cannot be delivered goes to', form.onFailure, 'a queue’s name'),
                field('Group', form.group),
                field('About', form.about),
            ),
            field('Event', form.event, 'JSON; empty: the service’s own; <aws.scheduler.scheduled-time> is replaced'),
            h('p', form.once),
        ],
        actions: [
            [
                one ? 'Save' : 'Add',
                async () => {
                    const name = form.name.value.trim();
                    if (!name || !form.target.value) throw new Error('A schedule needs a name and a function.');
                    await request(one ? 'PUT' : 'POST', at`/schedules/${name}`, {body: body()});
                    return {name, group: form.group.value.trim() || 'default'};
                },
                'primary',
            ],
        ],
    });
}
