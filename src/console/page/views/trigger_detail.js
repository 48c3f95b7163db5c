// One trigger: where it is, how it goes, and what can be done about it.

import {at, request} from '../api.js';
import {queueOf} from '../calls.js';
import {h, renew, replace, text} from '../dom.js';
import {count, duration, plural, short} from '../format.js';
import {print} from '../json.js';
import {letterFacts, letterList, pretty, readQueue} from '../letters.js';
import {operate, operationDialog} from '../operation.js';
import {
    changeButton,
    confirmTyped,
    dialog,
    facts,
    faultPlace,
    field,
    grid,
    input,
    json,
    select,
    shell,
    state,
    teach,
    time,
} from '../parts.js';
import {enable, move} from '../positions.js';
import {go, href} from '../route.js';
import {changeDialog} from './trigger_form.js';
import {boto3} from '../sdk.js';

// ---- of a table ----

export function mappingDetail({refresh}) {
    const faults = faultPlace(),
        title = h('h2.grow'),
        about = h('div'),
        filters = h('div'),
        dead = h('div'),
        hint = h('div');
    let row = null,
        query = {},
        letters = null,
        hinted = null;
    const act = async job => {
        await faults.run(job);
        await refresh();
    };
    const pause = changeButton('Pause', () => act(() => enable(row.key, row.mapping.State === 'Disabled')));
    const shards = grid({
        label: 'Shards',
        key: one => one.shard,
        empty: h('p.dim', 'It has read no shard yet.'),
        columns: [
            {title: 'Shard', cell: one => one.shard},
            {title: 'Position', cell: one => (one.ended ? 'all is done' : one.point)},
            {title: 'Lag', right: true, cell: one => (one.lag ? duration(one.lag) : one.lag === 0 ? '0 s' : '')},
            {title: 'Batches', right: true, cell: one => count(one.moves)},
            {title: 'Read by', cell: one => one.owner ?? 'nobody'},
        ],
    });
    const element = h(
        'section.function',
        h(
            'div.bar',
            title,
            pause,
            changeButton('Settings …', async () => {
                if (await changeDialog(row.mapping)) await refresh();
            }),
            changeButton('Move position …', moveDialog),
            changeButton('Delete …', remove, {class: 'danger'}),
        ),
        faults.element,
        about,
        h('h3', 'Position'),
        shards.element,
        filters,
        dead,
        hint,
    );

    async function moveDialog() {
        const to = select(
                [
                    ['start', 'the oldest change that the stream has'],
                    ['end', 'the next change: what waits is skipped'],
                    ['time', 'the changes since a time'],
                    ['number', 'the changes behind a sequence number'],
                ],
                'start',
            ),
            shard = select([['', 'all'], ...(row.positions ?? []).map(one => one.shard)], ''),
            place = input({placeholder: '2026-11-15T03:42:06Z or 100000000000000000001'});
        const done = await dialog({
            title: 'Move the position',
            body: () => [
                h(
                    'p',
                    'The batches under way end, and the trigger goes on from there. Changes behind the new position ' +
                        'are handled again.',
                ),
                field('Go on with', to),
                field('Shard', shard),
                field('Time or sequence number', place, 'the number of the last change that is not to be handled'),
                teach({CLI: shell('quipu', 'trigger', 'move', row.source, row.target, '--to', 'start')}),
            ],
            actions: [
                [
                    'Move',
                    async () => {
                        const isPlace = to.value === 'time' || to.value === 'number';
                        if (isPlace && !place.value.trim()) throw new Error('Say the time or the sequence number.');
                        await move(row.key, isPlace ? place.value.trim() : to.value, shard.value);
                        return true;
                    },
                    'primary',
                ],
            ],
        });
        if (done) await refresh();
    }
    async function remove() {
        const done = await confirmTyped({
            title: 'Delete the trigger?',
            name: row.target,
            sentence: `The changes of ${row.source} will not call ${row.target} any more, and its position is lost.`,
            words: 'Delete',
            job: () => request('DELETE', at`/2015-03-31/event-source-mappings/${row.key}`),
        });
        if (!done) return;
        go(['triggers']);
        await refresh();
    }
    // What it gave up, in the queue that its settings name.
    function showDead(queue) {
        if (letters?.queue === queue) return;
        letters = {queue};
        if (!queue) {
            replace(dead, h('h3', 'Given up'), h('p.dim', 'No queue is told of what was given up (Settings).'));
            return;
        }
        const one = h('div');
        const list = letterList({
            load: next => readQueue(queue, next, row.key + '/'),
            letterHref: letter => href(['triggers', row.key], {letter: letter.id}),
            empty: h('p.dim', 'Nothing was given up.'),
        });
        replace(
            dead,
            h('h3', 'Given up, in the queue ', h('a', {href: href(['queues', queue])}, queue)),
            list.element,
            one,
        );
        let shown = null;
        letters.show = id => {
            const letter = id ? list.find(queue, id) : null;
            if ((letter?.id ?? null) === shown) return;
            shown = letter?.id ?? null;
            replace(one, letter ? letterFacts(letter, sent) : null);
        };
        async function sent(outcome) {
            go(['triggers', row.key], {}, {quietly: true});
            await list.refresh();
            letters.show(null);
            replace(one, outcome);
        }
        list.refresh().then(() => letters?.show?.(query.letter));
    }
    return {
        element,
        update(now, to) {
            row = now;
            query = to;
            const one = row.mapping;
            text(title, `${row.source} → ${row.target}`);
            text(pause, one.State === 'Disabled' ? 'Resume' : 'Pause');
            renew(
                about,
                facts([
                    ['State', state(...row.state)],
                    ['Last result', one.LastProcessingResult],
                    ['Lag', row.lag === null ? null : row.lag ? duration(row.lag) : '0 s'],
                    ['Batches a second', short(row.rate)],
                    ['Table', h('a', {href: row.sourceHref}, row.source)],
                    ['Function', h('a', {href: row.targetHref}, row.target)],
                    ['Records in a call', count(one.BatchSize)],
                    [
                        'Waits for a full batch',
                        one.MaximumBatchingWindowInSeconds ? `${one.MaximumBatchingWindowInSeconds} s` : null,
                    ],
                    ['Batches of a shard at a time', count(one.ParallelizationFactor)],
                    ['Further attempts', one.MaximumRetryAttempts < 0 ? 'no bound' : count(one.MaximumRetryAttempts)],
                    [
                        'Gives up what is older',
                        one.MaximumRecordAgeInSeconds < 0 ? null : `${one.MaximumRecordAgeInSeconds} s`,
                    ],
                    ['Window with a state', one.TumblingWindowInSeconds ? `${one.TumblingWindowInSeconds} s` : null],
                    ['A failed batch', one.BisectBatchOnFunctionError ? 'is halved' : null],
                    ['Reports', one.FunctionResponseTypes?.length ? 'which records failed' : null],
                    ['Changed', time(one.LastModified)],
                ]),
            );
            shards.update(row.positions ?? []);
            const patterns = one.FilterCriteria?.Filters ?? [];
            renew(
                filters,
                patterns.length
                    ? [
                          h('h3', plural(patterns.length, 'filter')),
                          patterns.map(filter => json(pretty(filter.Pattern))),
                      ]
                    : null,
            );
            showDead(queueOf(one.DestinationConfig?.OnFailure?.Destination));
            letters?.show?.(query.letter);
            if (hinted === row.key) return;
            hinted = row.key;
            replace(
                hint,
                teach({
                    CLI: shell('quipu', 'trigger', 'show', row.source, row.target),
                    curl: `curl -s ${location.origin}` + at`/2015-03-31/event-source-mappings/${row.key}`,
                    boto3: `${boto3('lambda')}.get_event_source_mapping(UUID='${row.key}')`,
                }),
            );
        },
    };
}

// ---- of a log or a queue of work ----

// Which operation has its settings, and what names it there.
function settingsOf(drive) {
    if (drive.kind === 'log') return ['logPush', {log: drive.name, name: drive.part}];
    if (drive.kind === 'work') return ['workPut', {queue: drive.name}];
    return null;
}

export function driveDetail({refresh}) {
    const faults = faultPlace(),
        title = h('h2.grow'),
        about = h('div'),
        hint = h('div');
    let row = null;
    const put = values => async () => {
        const [operation, names] = settingsOf(row.drive);
        await faults.run(() => operate(operation, {...names, ...values()}));
        await refresh();
    };
    const pause = changeButton(
        'Pause',
        put(() => ({paused: !row.drive.paused})),
    );
    const settings = changeButton('Settings …', async () => {
        const [operation, names] = settingsOf(row.drive);
        if (
            await operationDialog(operation, names, {
                title: `Settings of ${row.key}`,
                words: 'Save',
                preset: row.drive,
            })
        )
            await refresh();
    });
    const replay = changeButton('Move position …', async () => {
        if (await operationDialog('logReplay', {log: row.drive.name, name: row.drive.part}, {words: 'Move'}))
            await refresh();
    });
    const remove = changeButton(
        'Delete …',
        async () => {
            const done = await confirmTyped({
                title: `Delete the trigger ${row.key}?`,
                name: row.drive.name,
                sentence: 'Nothing is called any more. What waits stays where it is.',
                words: 'Delete',
                job: async () => {
                    const [operation, names] = settingsOf(row.drive);
                    await operate(operation, {...names, [row.drive.kind === 'log' ? 'function' : 'each']: []});
                },
            });
            if (!done) return;
            go(['triggers']);
            await refresh();
        },
        {class: 'danger'},
    );
    const element = h(
        'section.function',
        h('div.bar', title, pause, settings, replay, remove),
        faults.element,
        about,
        hint,
    );
    let shown = '';
    return {
        element,
        update(now) {
            row = now;
            const one = row.drive,
                is = settingsOf(one);
            text(title, row.key);
            text(pause, one.paused ? 'Resume' : 'Pause');
            for (const each of [pause, settings, remove]) each.hidden = !is;
            replay.hidden = one.kind !== 'log';
            if (shown === JSON.stringify(one)) return;
            shown = JSON.stringify(one);
            const {id, kind, name, part, version, changed, paused, ...rest} = one;
            replace(
                about,
                facts([
                    ['State', state(...row.state)],
                    [kind, row.sourceHref ? h('a', {href: row.sourceHref}, name) : name],
                    ['Consumer', part],
                    ...Object.entries(rest).map(([key, value]) => [
                        key,
                        row.targetHref && (key === 'each' || key === 'function')
                            ? h('a', {href: row.targetHref}, row.target)
                            : typeof value === 'object'
                              ? print(value, 0)
                              : String(value),
                    ]),
                    ['Changed', time(changed)],
                ]),
            );
            replace(
                hint,
                teach({
                    CLI: is ? shell('quipu', 'trigger', 'show', row.key) : 'quipu drive ls',
                    curl: `curl -s ${location.origin}/v1/drives`,
                }),
            );
        },
    };
}
