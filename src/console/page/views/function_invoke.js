// Calls a function with an event, and shows its answer and its log. Events are kept in this browser.

import {at, open, request, server} from '../api.js';
import {h, replace} from '../dom.js';
import {duration, when} from '../format.js';
import {parse, print} from '../json.js';
import {carried, pretty} from '../letters.js';
import {
    button,
    changeButton,
    dialog,
    facts,
    faultPlace,
    field,
    input,
    json,
    select,
    shell,
    state,
    teach,
} from '../parts.js';
import {go, href} from '../route.js';
import {boto3} from '../sdk.js';

const arn = rest => `arn:aws:${rest.replace('REGION', `${server.info.region}:000000000000`)}`;
const TEMPLATES = {
    empty: ['Empty', () => ({})],
    change: [
        'A table change',
        () => ({
            Records: [
                {
                    eventID: '1',
                    eventName: 'INSERT',
                    eventVersion: '1.1',
                    eventSource: 'aws:dynamodb',
                    awsRegion: server.info.region,
                    dynamodb: {
                        ApproximateCreationDateTime: Math.floor(Date.now() / 1000),
                        Keys: {id: {S: '1'}},
                        NewImage: {id: {S: '1'}, total: {N: '12'}},
                        SequenceNumber: '100000000000000000001',
                        SizeBytes: 15,
                        StreamViewType: 'NEW_AND_OLD_IMAGES',
                    },
                    eventSourceARN: arn('dynamodb:REGION:table/orders/stream/2026-01-01T00:00:00.000'),
                },
            ],
        }),
    ],
    schedule: [
        'A schedule',
        () => ({
            version: '0',
            id: crypto.randomUUID?.() ?? '1',
            'detail-type': 'Scheduled Event',
            source: 'aws.scheduler',
            account: '000000000000',
            time: new Date().toISOString().slice(0, 19) + 'Z',
            region: server.info.region,
            resources: [arn('scheduler:REGION:schedule/default/example')],
            detail: '{}',
        }),
    ],
    http: [
        'An HTTP request',
        () => ({
            version: '2.0',
            routeKey: '$default',
            rawPath: '/any/path',
            rawQueryString: 'a=1',
            headers: {host: location.host, 'content-type': 'application/json'},
            queryStringParameters: {a: '1'},
            requestContext: {
                http: {
                    method: 'POST',
                    path: '/any/path',
                    protocol: 'HTTP/1.1',
                    sourceIp: '127.0.0.1',
                    userAgent: 'curl',
                },
                requestId: '1',
                routeKey: '$default',
                stage: '$default',
                timeEpoch: Date.now(),
            },
            body: '{"hello":"world"}',
            isBase64Encoded: false,
        }),
    ],
};

// ---- saved events ----

const keyOf = name => `events/${name}`;
function saved(name) {
    try {
        return JSON.parse(localStorage.getItem(keyOf(name))) ?? {};
    } catch {
        return {};
    }
}
const keep = (name, events) => localStorage.setItem(keyOf(name), JSON.stringify(events));

// ---- the view ----

export async function openInvoke({el, name, route, signal}) {
    const faults = faultPlace();
    const area = h('textarea.code', {rows: 14, spellcheck: 'false', 'aria-label': 'Event'});
    const kinds = select(
        [
            ['RequestResponse', 'and wait for the answer'],
            ['Event', 'in the background'],
        ],
        'RequestResponse',
    );
    const place = h('div', {'aria-live': 'polite'});
    const events = h('select', {
        onchange: () => go(['functions', name, 'invoke'], {event: events.value}, {quietly: true}),
    });
    const qualifier = select(await qualifiers(name, signal), '$LATEST');
    const remove = button('Forget', () => {
        const all = saved(name);
        delete all[events.value.slice(6)];
        keep(name, all);
        go(['functions', name, 'invoke'], {}, {quietly: true});
    });
    const send = changeButton('Invoke', invoke, {class: 'primary'});
    const hint = h('div');
    let begun = null; // the event that it began with: what was typed since stays
    replace(
        el,
        h(
            'div.bar.function-event',
            field('Begin with', events),
            button('Save as …', saveAs),
            remove,
            field('Version', qualifier),
            field('Call it', kinds),
        ),
        area,
        h('div.bar', send, h('span.dim', 'Ctrl Enter')),
        faults.element,
        place,
        hint,
    );
    area.addEventListener('keydown', event => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send.click(); // as the button: one at a time
    });
    area.addEventListener('input', explain);

    function show(later) {
        const wanted = later.query.event ?? 'empty';
        replace(
            events,
            Object.entries(TEMPLATES).map(([key, [words]]) => h('option', {value: key}, words)),
            Object.keys(saved(name)).map(label => h('option', {value: 'saved/' + label}, label)),
        );
        events.value = wanted;
        if (!events.value) events.value = 'empty';
        remove.hidden = !events.value.startsWith('saved/');
        const brought = carried(name);
        if (brought === null && events.value === begun) return;
        begun = events.value;
        if (brought !== null) area.value = brought;
        else if (events.value.startsWith('saved/')) area.value = saved(name)[events.value.slice(6)] ?? '{}';
        else area.value = print(TEMPLATES[events.value][1]());
        explain();
    }
    function explain() {
        const event = compact(area.value);
        replace(
            hint,
            teach({
                CLI: shell('quipu', 'function', 'invoke', name, event),
                curl:
                    `curl -s ${location.origin}` +
                    at`/2015-03-31/functions/${name}/invocations` +
                    ` -d ${shell(event)}`,
                boto3: `${boto3('lambda')}.invoke(FunctionName='${name}', Payload=${JSON.stringify(event)})`,
            }),
        );
    }
    async function saveAs() {
        const label = input({value: events.value.startsWith('saved/') ? events.value.slice(6) : '', required: true});
        const kept = await dialog({
            title: 'Save the event',
            body: () => [h('p', 'It is kept in this browser.'), field('Name', label)],
            actions: [
                [
                    'Save',
                    async () => {
                        const words = label.value.trim();
                        if (!words) throw new Error('The event needs a name.');
                        keep(name, {...saved(name), [words]: area.value});
                        return words;
                    },
                    'primary',
                ],
            ],
        });
        if (!kept) return;
        go(['functions', name, 'invoke'], {event: 'saved/' + kept}, {quietly: true});
        show({query: {event: 'saved/' + kept}});
    }
    async function invoke() {
        await faults.run(async () => {
            replace(place, h('p', state('running', 'running')));
            const began = performance.now();
            let response;
            try {
                response = await open(
                    'POST',
                    at`/2015-03-31/functions/${name}/invocations` +
                        `?Qualifier=${encodeURIComponent(qualifier.value)}`,
                    {
                        body: area.value,
                        headers: {
                            'Content-Type': 'application/json',
                            'X-Amz-Invocation-Type': kinds.value,
                            'X-Amz-Log-Type': 'Tail',
                        },
                        signal,
                    },
                );
            } catch (error) {
                replace(place);
                throw error;
            }
            const answer = await response.text();
            replace(place, outcome(response, answer, performance.now() - began));
        });
    }
    function outcome(response, answer, ms) {
        const fault = response.headers.get('X-Amz-Function-Error');
        const tail = response.headers.get('X-Amz-Log-Result');
        const id = response.headers.get('x-amzn-RequestId');
        const isLater = response.status === 202;
        return h(
            'section.function-answer',
            h(
                'p',
                fault
                    ? state('failed', `failed: ${fault}`)
                    : isLater
                      ? state('waiting', 'accepted')
                      : state('ok', 'answered'),
            ),
            facts([
                ['Took', isLater ? null : duration(ms)],
                ['Version', response.headers.get('X-Amz-Executed-Version')],
                ['At', when(Date.now())],
                ['Request', h('a', {href: href(['functions', name, 'logs'], {call: id})}, id)],
            ]),
            isLater
                ? h('p', 'The call waits among the ', h('a', {href: href(['queues'])}, 'asynchronous calls'), '.')
                : [h('h3', 'Answer'), json(pretty(answer))],
            tail ? [h('h3', 'Log'), json(decode(tail))] : null,
        );
    }
    show(route);
    return {update: show};
}

async function qualifiers(name, signal) {
    const [versions, aliases] = await Promise.all([
        request('GET', at`/2015-03-31/functions/${name}/versions`, {signal}),
        request('GET', at`/2015-03-31/functions/${name}/aliases`, {signal}),
    ]);
    return [...versions.Versions.map(one => one.Version), ...aliases.Aliases.map(one => one.Name)];
}

const decode = base64 => new TextDecoder().decode(Uint8Array.from(atob(base64), letter => letter.charCodeAt(0)));

function compact(words) {
    try {
        return print(parse(words), 0);
    } catch {
        return words;
    }
}
