// A function's settings, as one form: what was changed is sent, on the condition that nobody else has changed it.

import {at, request} from '../api.js';
import {destinationOf, destinationWords} from '../calls.js';
import {h, replace} from '../dom.js';
import {button, changeButton, faultPlace, field, input, select, shell, teach} from '../parts.js';

const number = (value, min, max) => input({type: 'number', min, max, value: value ?? ''});

export async function openSettings({el, name, signal}) {
    const path = at`/2015-03-31/functions/${name}`;
    const [whole, concurrency, invoke, recursion] = await Promise.all([
        request('GET', path, {signal}),
        request('GET', at`/2019-09-30/functions/${name}/concurrency`, {signal}),
        request('GET', at`/2019-09-25/functions/${name}/event-invoke-config/list`, {signal}),
        request('GET', at`/2024-08-31/functions/${name}/recursion-config`, {signal}),
    ]);
    const before = whole.Configuration;
    const isProcess = !!before.Runtime;
    const async =
        invoke.FunctionEventInvokeConfigs.find(one => /:function:[^:]+(:\$LATEST)?$/.test(one.FunctionArn)) ?? {};
    const faults = faultPlace(),
        said = h('span', {role: 'status'});

    const form = {
        Description: input({value: before.Description ?? ''}),
        Runtime: input({value: before.Runtime ?? ''}),
        Handler: input({value: before.Handler ?? ''}),
        Timeout: number(before.Timeout, 1, 900),
        MemorySize: number(before.MemorySize, 128, 10240),
        storage: number(before.EphemeralStorage?.Size, 512, 10240),
        format: select(['Text', 'JSON'], before.LoggingConfig?.LogFormat ?? 'Text'),
        perProcess: number(before.Quipu?.Concurrency ?? 1, 1, 1600),
        reserved: number(concurrency.ReservedConcurrentExecutions, 0, 100000),
        retries: number(async.MaximumRetryAttempts, 0, 2),
        age: number(async.MaximumEventAgeInSeconds, 60, 21600),
        onSuccess: input({value: destinationWords(async.DestinationConfig?.OnSuccess?.Destination)}),
        onFailure: input({value: destinationWords(async.DestinationConfig?.OnFailure?.Destination)}),
        loop: select(
            [
                ['Terminate', 'is cut'],
                ['Allow', 'goes on'],
            ],
            recursion.RecursiveLoop,
        ),
    };
    const variables = environment(before.Environment?.Variables ?? {});
    const fields = (title, ...rows) => h('fieldset', h('legend', title), h('div.function-fields', rows));
    replace(
        el,
        isProcess
            ? fields(
                  'How it runs',
                  field('Runtime', form.Runtime),
                  field('Handler', form.Handler),
                  field('Time-out, seconds', form.Timeout, '1 to 900'),
                  field('Memory, MB', form.MemorySize, '128 to 10240'),
                  field('/tmp, MB', form.storage, '512 to 10240'),
                  field('Log format', form.format),
              )
            : fields('How it runs', field('Time-out, seconds', form.Timeout, '1 to 900')),
        isProcess
            ? fields(
                  'How much at a time',
                  field('Processes at a time', form.reserved, 'empty: as many as the server has; 0: switched off'),
                  field('Calls of one process at a time', form.perProcess, '1 to 1600'),
              )
            : null,
        isProcess ? h('fieldset', h('legend', 'Environment'), variables.element) : null,
        fields(
            'Asynchronous calls',
            field('Further attempts', form.retries, '0 to 2; empty: 2'),
            field('Given up after, seconds', form.age, '60 to 21600; empty: 6 hours'),
            field('On success to', form.onSuccess, 'a queue’s name, an ARN or a URL'),
            field('On failure to', form.onFailure, 'a queue’s name, an ARN or a URL'),
        ),
        fields('Other', field('About', form.Description), field('A loop of its own writes', form.loop)),
        h('div.bar', changeButton('Save', save, {class: 'primary'}), said),
        faults.element,
        teach({
            CLI: shell(
                'quipu',
                'function',
                'add',
                name,
                '--timeout',
                '30s',
                '--memory',
                '512',
                '--env',
                'NAME=VALUE',
            ),
            AWS: shell(
                'aws',
                '--endpoint-url',
                location.origin,
                'lambda',
                'get-function-configuration',
                '--function-name',
                name,
            ),
        }),
    );

    // The members of UpdateFunctionConfiguration that differ.
    function configuration() {
        const changes = {};
        if (form.Description.value !== (before.Description ?? '')) changes.Description = form.Description.value;
        if (Number(form.Timeout.value) !== before.Timeout) changes.Timeout = Number(form.Timeout.value);
        if (!isProcess) return changes;
        for (const member of ['Runtime', 'Handler'])
            if (form[member].value.trim() !== (before[member] ?? '')) changes[member] = form[member].value.trim();
        if (Number(form.MemorySize.value) !== before.MemorySize) changes.MemorySize = Number(form.MemorySize.value);
        if (Number(form.storage.value) !== before.EphemeralStorage?.Size)
            changes.EphemeralStorage = {Size: Number(form.storage.value)};
        if (form.format.value !== before.LoggingConfig?.LogFormat)
            changes.LoggingConfig = {LogFormat: form.format.value};
        if (Number(form.perProcess.value) !== (before.Quipu?.Concurrency ?? 1))
            changes.Quipu = {Concurrency: Number(form.perProcess.value)};
        if (JSON.stringify(variables.value()) !== JSON.stringify(before.Environment?.Variables ?? {}))
            changes.Environment = {Variables: variables.value()};
        return changes;
    }
    async function saveConcurrency() {
        const was = concurrency.ReservedConcurrentExecutions ?? '';
        if (!isProcess || String(was) === form.reserved.value) return;
        const place = at`/2017-10-31/functions/${name}/concurrency`;
        if (form.reserved.value === '') await request('DELETE', place);
        else await request('PUT', place, {body: {ReservedConcurrentExecutions: Number(form.reserved.value)}});
    }
    async function saveAsync() {
        const values = [form.retries, form.age, form.onSuccess, form.onFailure].map(one => one.value.trim());
        const was = [
            async.MaximumRetryAttempts ?? '',
            async.MaximumEventAgeInSeconds ?? '',
            destinationWords(async.DestinationConfig?.OnSuccess?.Destination),
            destinationWords(async.DestinationConfig?.OnFailure?.Destination),
        ].map(String);
        if (values.join('\n') === was.join('\n')) return;
        const [retries, age, onSuccess, onFailure] = values;
        const place = at`/2019-09-25/functions/${name}/event-invoke-config`;
        if (values.every(value => value === '')) {
            await request('DELETE', place);
            return;
        }
        await request('PUT', place, {
            body: {
                MaximumRetryAttempts: retries === '' ? undefined : Number(retries),
                MaximumEventAgeInSeconds: age === '' ? undefined : Number(age),
                DestinationConfig: {
                    OnSuccess: onSuccess ? {Destination: destinationOf(onSuccess)} : {},
                    OnFailure: onFailure ? {Destination: destinationOf(onFailure)} : {},
                },
            },
        });
    }
    async function save() {
        replace(said);
        await faults.run(async () => {
            const changes = configuration();
            if (Object.keys(changes).length)
                await request('PUT', path + '/configuration', {body: {...changes, RevisionId: before.RevisionId}});
            await saveConcurrency();
            await saveAsync();
            if (form.loop.value !== recursion.RecursiveLoop)
                await request('PUT', at`/2024-08-31/functions/${name}/recursion-config`, {
                    body: {RecursiveLoop: form.loop.value},
                });
            await openSettings({el, name, signal}); // as it is now
            el.querySelector('.function-saved')?.replaceChildren('Saved.');
        });
    }
    said.className = 'function-saved';
    return {};
}

// Rows of a name and a value.
function environment(variables) {
    const rows = h('div.function-variables');
    const add = (key, value) => {
        const row = h(
            'div.bar',
            input({value: key, 'aria-label': 'Variable', placeholder: 'NAME'}),
            input({value, 'aria-label': key ? `Value of ${key}` : 'Value', class: 'grow'}),
            button('Remove', () => row.remove(), {class: 'small', 'aria-label': key ? `Remove ${key}` : 'Remove'}),
        );
        rows.append(row);
        return row;
    };
    for (const [key, value] of Object.entries(variables)) add(key, value);
    return {
        element: h(
            'div',
            rows,
            button('Add a variable', () => add('', '').querySelector('input').focus()),
        ),
        value: () =>
            Object.fromEntries(
                [...rows.children]
                    .map(row => [...row.querySelectorAll('input')].map(one => one.value))
                    .filter(([key]) => key.trim())
                    .map(([key, value]) => [key.trim(), value]),
            ),
    };
}
