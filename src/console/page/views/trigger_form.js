// The settings of a trigger of a table: made and changed by one form.

import {at, dynamo, request, server} from '../api.js';
import {destinationOf, destinationWords, functionOf, functions} from '../calls.js';
import {h} from '../dom.js';
import {parse, print} from '../json.js';
import {check, dialog, field, input, select} from '../parts.js';
import {tableNames} from '../table.js';

const OFFERED = 1000; // names of tables

// member, words, hint, value when it is new
const NUMBERS = [
    ['BatchSize', 'Records in a call', '1 to 10000', 100],
    ['MaximumBatchingWindowInSeconds', 'Wait for a full batch, seconds', '0 to 300', 0],
    ['ParallelizationFactor', 'Batches of a shard at a time', '1 to 10', 1],
    ['MaximumRetryAttempts', 'Further attempts', '-1: no bound', -1],
    ['MaximumRecordAgeInSeconds', 'Give up what is older, seconds', '-1, or 60 to 604800', -1],
    ['TumblingWindowInSeconds', 'Window with a state, seconds', '0 to 900', 0],
    ['MaximumRecursionDepth', 'May start itself so often', '0 to 1000', 0],
];

// One JSON object a line, or one over many lines.
function filtersOf(words) {
    const trimmed = words.trim();
    if (!trimmed) return [];
    try {
        return [print(parse(trimmed), 0)];
    } catch {
        return trimmed.split('\n').filter(line => line.trim());
    }
}

function settingsForm(mapping) {
    const numbers = NUMBERS.map(([member, words, hint, otherwise]) => ({
        member,
        element: input({type: 'number', value: mapping?.[member] ?? otherwise}),
        words,
        hint,
    }));
    const bisect = check('Try a failed batch again in halves', mapping?.BisectBatchOnFunctionError ?? false);
    const partial = check('The function reports which records failed', !!mapping?.FunctionResponseTypes?.length);
    const onFailure = input({value: destinationWords(mapping?.DestinationConfig?.OnFailure?.Destination)});
    const filters = h('textarea.code', {
        rows: 4,
        spellcheck: 'false',
        placeholder: '{"eventName":["INSERT"],"dynamodb":{"NewImage":{"state":{"S":["PAID"]}}}}',
        value: (mapping?.FilterCriteria?.Filters ?? []).map(one => one.Pattern).join('\n'),
    });
    return {
        element: [
            field('Filters', filters, 'event patterns, one a line; one of them must match. Empty: every change'),
            h(
                'div.function-fields',
                numbers.map(one => field(one.words, one.element, one.hint)),
            ),
            field('What was given up goes to', onFailure, 'a queue’s name, an ARN or a URL'),
            h('p', bisect),
            h('p', partial),
        ],
        value: () => ({
            ...Object.fromEntries(numbers.map(one => [one.member, Number(one.element.value)])),
            BisectBatchOnFunctionError: bisect.box.checked,
            FunctionResponseTypes: partial.box.checked ? ['ReportBatchItemFailures'] : [],
            DestinationConfig: {
                OnFailure: onFailure.value.trim() ? {Destination: destinationOf(onFailure.value.trim())} : {},
            },
            FilterCriteria: {Filters: filtersOf(filters.value).map(Pattern => ({Pattern}))},
        }),
    };
}

// Answers the mapping as it is then; undefined when it was left.
export async function changeDialog(mapping) {
    const form = settingsForm(mapping);
    return dialog({
        title: 'Settings of the trigger',
        wide: true,
        body: () => form.element,
        actions: [
            [
                'Save',
                () =>
                    request('PUT', at`/2015-03-31/event-source-mappings/${mapping.UUID}`, {
                        body: changes(mapping, form),
                    }),
                'primary',
            ],
        ],
    });
}

function changes(mapping, form) {
    const before = settingsForm(mapping).value();
    return Object.fromEntries(
        Object.entries(form.value()).filter(([member, value]) => print(value, 0) !== print(before[member], 0)),
    );
}

export async function addDialog(given = {}) {
    const [tables, known] = await Promise.all([tableNames(OFFERED), functions(4)]);
    const options = h(
        'datalist',
        {id: 'trigger-tables'},
        tables.filter(name => !name.startsWith(server.info.prefix)).map(name => h('option', {value: name})),
    );
    const table = input({value: given.table ?? '', list: 'trigger-tables', required: true}),
        target = select(
            known.found.map(one => one.FunctionName),
            given.function,
        ),
        from = select(
            [
                ['LATEST', 'from now on'],
                ['TRIM_HORIZON', 'the oldest that the stream has'],
            ],
            'LATEST',
        ),
        form = settingsForm(null);
    return dialog({
        title: 'Add a trigger',
        wide: true,
        body: () => [
            h('p', 'The function is called with the changes of the table, in batches, in order for each item.'),
            options,
            field('Table', table, 'its stream is switched on where it has none'),
            field('Function', target),
            field('Begin with', from),
            form.element,
        ],
        actions: [
            [
                'Add',
                async () => {
                    const name = table.value.trim();
                    if (!name || !target.value) throw new Error('A trigger needs a table and a function.');
                    const {Table: described} = await dynamo('DescribeTable', {TableName: name});
                    if (!described.StreamSpecification?.StreamEnabled)
                        await dynamo('UpdateTable', {
                            TableName: name,
                            StreamSpecification: {StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES'},
                        });
                    return request('POST', '/2015-03-31/event-source-mappings', {
                        body: {
                            EventSourceArn: name,
                            FunctionName: functionOf(target.value),
                            StartingPosition: from.value,
                            ...form.value(),
                        },
                    });
                },
                'primary',
            ],
        ],
    });
}
