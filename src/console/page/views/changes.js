// The changes of a table as they happen, each with what it changed; and event patterns, tried out on them.

import {dynamo, request, server} from '../api.js';
import {differences, diffView} from '../diff.js';
import {h, replace, text} from '../dom.js';
import {followChanges, needsStream} from '../follow.js';
import {count, plural} from '../format.js';
import {
    actionButton,
    button,
    changeButton,
    empty,
    faultPlace,
    field,
    input,
    json,
    select,
    shell,
    state,
    teach,
    time,
} from '../parts.js';
import {parse, print} from '../json.js';
import {go, href} from '../route.js';
import {keysOf, streamWords, viewOf} from '../table.js';
import {itemToPlain, keyWords} from '../value.js';
import {whenActive} from './table_new.js';

const HELD = 1000; // records in memory
const SHOWN = 200; // records in the page
const TRIED = 100; // records that a pattern is tried out on
const TRIED_LENGTH = 300e3; // of their texts: the server takes 1 MB
const KINDS = {INSERT: ['ok', 'insert'], MODIFY: ['running', 'modify'], REMOVE: ['failed', 'remove']};

function whenSeen(signal) {
    if (!document.hidden || signal.aborted) return Promise.resolve();
    return new Promise(done => {
        const look = () => document.hidden || done();
        document.addEventListener('visibilitychange', look, {signal});
        signal.addEventListener('abort', done);
    });
}

export async function changes({el, route, table, signal, reopen}) {
    const {name} = table;
    if (needsStream() && !viewOf(table.description)) return withoutStream({el, table, reopen});
    const keys = keysOf(table.description);
    let query = route.query,
        records = [], // newest first
        waiting = [], // what came while one reads or has paused
        skipped = 0,
        wasAway = false, // the server, since the first change here
        isPaused = false;

    // ---- what is shown of them ----

    const filter = input({
        type: 'search',
        placeholder: 'Only records that contain…',
        'aria-label': 'Filter records',
        oninput: () => go(['tables', name, 'changes'], {...query, filter: filter.value}, {quietly: true}),
    });
    const kind = select([['', 'all kinds'], ...Object.keys(KINDS).map(one => [one, KINDS[one][1]])], '', {
        'aria-label': 'Kind of change',
        onchange: () => go(['tables', name, 'changes'], {...query, kind: kind.value}, {quietly: true}),
    });
    const pause = button('Pause', () => {
        isPaused = !isPaused;
        text(pause, isPaused ? 'Go on' : 'Pause');
        if (!isPaused) admit();
        say();
    });
    const clear = button('Clear', () => {
        records = [];
        waiting = [];
        wasAway = false;
        draw();
    });
    const news = h('button.news', {type: 'button', hidden: true, onclick: () => admit()});
    const status = h('span.dim', {role: 'status'});
    const faults = faultPlace();
    const list = h('ul.changes-list');
    const scroller = h(
        'div.scroll.changes-scroll',
        {tabindex: '0', role: 'region', 'aria-label': `Changes of ${name}`},
        list,
    );
    const nothing = empty('Waiting for a change', 'Every write to the table appears here as it happens.', [
        shell('quipu', 'put', name, ...keys.map(key => `${key.name}${key.type === 'N' ? ':=1' : '=a'}`)),
        shell('quipu', 'tail', name),
    ]);

    // What one sees of a record, not the digits of its time and number.
    const wordsOf = ({kind, keys, old, new: now}) => print({kind, keys, old, new: now}, 0).toLowerCase();
    const fits = record =>
        (!query.kind || record.kind === query.kind) &&
        (!query.filter || wordsOf(record).includes(query.filter.toLowerCase()));
    const elements = new WeakMap(); // record → its line
    function draw() {
        const shown = records.filter(fits).slice(0, SHOWN);
        nothing.hidden = records.length > 0;
        scroller.hidden = !records.length;
        // Lines that are there stay what they are: one that is open stays open.
        shown.forEach((record, i) => {
            if (!elements.has(record)) elements.set(record, line(record));
            const element = elements.get(record);
            if (list.children[i] !== element) list.insertBefore(element, list.children[i] ?? null);
        });
        while (list.children.length > shown.length) list.lastChild.remove();
        say();
    }
    function say() {
        news.hidden = !waiting.length;
        text(news, `${count(waiting.length)} new`);
        const shown = records.filter(fits).length;
        text(
            status,
            [
                plural(records.length, 'change'),
                shown < records.length ? `${count(shown)} fit` : '',
                shown > SHOWN ? `the last ${SHOWN} are shown` : '',
                skipped ? `${count(skipped)} came too fast to be shown` : '',
                wasAway ? 'without those while the server was away' : '',
                isPaused ? 'paused' : '',
            ]
                .filter(Boolean)
                .join(' · '),
        );
    }
    function line(record) {
        const key = keyWords(record.keys, keys);
        const body = h('div.changes-body');
        const before = record.old ? itemToPlain(record.old) : {},
            after = record.new ? itemToPlain(record.new) : {};
        const hasImages = !!(record.old || record.new);
        const changed = record.kind === 'MODIFY' && record.old && record.new ? differences(before, after) : [];
        const words = changed.slice(0, 3).map(one => `${one.path}: ${brief(one.old)} → ${brief(one.new)}`);
        const details = h(
            'details',
            {
                ontoggle: () => {
                    if (!details.open || body.hasChildNodes()) return;
                    replace(
                        body,
                        hasImages ? diffView(before, after) : h('p.dim', 'This stream shows keys only.'),
                        h(
                            'p',
                            h(
                                'a',
                                {href: href(['tables', name, 'items'], {item: key[0], range: key[1]})},
                                'The item now',
                            ),
                            ' · ',
                            h(
                                'a',
                                {href: href(['tables', name, 'history'], {key: key[0], range: key[1]})},
                                'Its history',
                            ),
                        ),
                    );
                },
            },
            h(
                'summary',
                time(record.t),
                ' ',
                state(...(KINDS[record.kind] ?? ['waiting', record.kind])),
                ' ',
                h('b', key.join(' · ')),
                ' ',
                h('span.dim', words.join(', '), changed.length > 3 ? `, ${changed.length - 3} more` : ''),
                h('span.changes-match'),
            ),
            body,
        );
        return h('li', details);
    }
    const brief = value => (value === undefined ? '·' : print(value, 0).slice(0, 40));

    // ---- how they come ----

    const isRead = () =>
        isPaused || scroller.scrollTop > 0 || list.matches(':hover') || list.contains(document.activeElement);
    function take(record) {
        if (record.skipped) {
            skipped += record.skipped;
            say();
            return;
        }
        waiting.unshift(record);
        waiting.length = Math.min(waiting.length, HELD);
        if (isRead()) say();
        else admit();
    }
    let frame = 0;
    function admit() {
        frame ||= requestAnimationFrame(() => {
            frame = 0;
            records = [...waiting, ...records].slice(0, HELD);
            waiting = [];
            if (!isPaused) scroller.scrollTop = 0;
            draw();
        });
    }
    async function follow() {
        const arn = table.description.LatestStreamArn;
        while (!signal.aborted) {
            await whenSeen(signal);
            const hidden = new AbortController(); // a tab that nobody sees costs nothing
            const hide = () => document.hidden && hidden.abort();
            document.addEventListener('visibilitychange', hide, {signal: AbortSignal.any([signal, hidden.signal])});
            const ended = AbortSignal.any([signal, hidden.signal]);
            await faults.run(() => followChanges({name, arn, take, signal: ended}));
            if (hidden.signal.aborted) continue;
            hidden.abort();
            wasAway = true;
            say();
            await new Promise(resolve => setTimeout(resolve, 2000)); // the server is gone, or began anew
        }
    }

    // ---- event patterns ----

    const pattern = h('textarea.code', {
        rows: 3,
        value: '{"eventName": ["INSERT", "MODIFY"]}',
        spellcheck: 'false',
    });
    const verdict = h('p', {role: 'status'});
    const sample = h('div');
    const patternFaults = faultPlace();
    // A record as a function gets it.
    const eventOf = record => ({
        eventName: record.kind,
        eventSource: 'aws:dynamodb',
        eventVersion: '1.1',
        awsRegion: server.info.region,
        dynamodb: {
            ApproximateCreationDateTime: Math.floor(record.t / 1000),
            Keys: record.keys,
            ...(record.new ? {NewImage: record.new} : {}),
            ...(record.old ? {OldImage: record.old} : {}),
            SequenceNumber: String(record.seq),
            StreamViewType: viewOf(table.description) ?? 'NEW_AND_OLD_IMAGES',
        },
    });
    async function tryOut() {
        let room = TRIED_LENGTH;
        const events = records.slice(0, TRIED).map(eventOf);
        const tried = records.slice(0, events.filter(event => (room -= print(event, 0).length) > 0).length);
        const {matches} = await request('POST', '/console/match', {
            body: {pattern: parse(pattern.value), events: events.slice(0, tried.length)},
        });
        for (const [i, record] of tried.entries()) {
            const mark = elements.get(record)?.querySelector('.changes-match');
            if (mark) replace(mark, matches[i] ? state('ok', 'matches') : '');
        }
        const fitting = matches.filter(Boolean).length;
        text(verdict, `${count(fitting)} of the last ${plural(tried.length, 'change')} here match.`);
        replace(
            sample,
            tried.length ? [h('p.dim', 'The last one, as a function gets it:'), json(eventOf(tried[0]))] : null,
        );
    }
    const tester = h(
        'details.changes-tester',
        h('summary', 'Try out an event pattern'),
        field('Pattern, as a trigger’s filter has it', pattern, 'numbers of DynamoDB are texts there'),
        patternFaults.element,
        h(
            'div.bar',
            actionButton(`Test on the last ${TRIED}`, () => patternFaults.run(tryOut)),
            verdict,
        ),
        sample,
    );

    replace(
        el,
        h('div.bar', pause, clear, kind, filter, status),
        faults.element,
        nothing,
        h('div.grid', news, scroller),
        tester,
        teach({
            CLI: shell('quipu', 'tail', name),
            boto3:
                `s = boto3.client('dynamodbstreams', endpoint_url='${location.origin}'); ` +
                `s.get_shard_iterator(StreamArn='${table.description.LatestStreamArn}', ...)`,
        }),
    );
    function update(next) {
        query = next.query;
        if (document.activeElement !== filter) filter.value = query.filter ?? '';
        kind.value = query.kind ?? '';
        draw();
    }
    update({query});
    follow();
    return {update};
}

function withoutStream({el, table, reopen}) {
    const {name} = table;
    const faults = faultPlace();
    replace(
        el,
        empty(
            'No stream',
            `The stream of this table is ${streamWords(table.description)}: its changes are not told.`,
            [`quipu table set ${name} --stream new-and-old`],
        ),
        h(
            'div',
            changeButton(
                'Turn the stream on',
                () =>
                    faults.run(async () => {
                        await dynamo('UpdateTable', {
                            TableName: name,
                            StreamSpecification: {StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES'},
                        });
                        await whenActive(name, table.signal);
                        reopen();
                    }),
                {class: 'primary'},
            ),
        ),
        faults.element,
    );
    return {update() {}};
}
