// Makes a function: of a folder of the server's machine, an archive, a URL, or a target that needs no process.

import {request} from '../api.js';
import {h} from '../dom.js';
import {dialog, field, input, select} from '../parts.js';

const ARCHIVE_BYTES = 50 * 1024 * 1024; // as Lambda takes them

// kind: words, what it is given, the hint, and the members of Code
const KINDS = {
    Directory: [
        'a folder of the server’s machine',
        'Folder',
        'its absolute path; runs in place, reloaded when it changes',
    ],
    ZipFile: ['an archive', 'Archive', 'a .zip of up to 50 MB'],
    Url: ['a URL', 'URL', 'each event is posted there'],
    Table: ['a copy of a table', 'Table', 'changed items are put into it, removed ones deleted'],
    Queue: ['messages of a queue', 'Queue', 'each record becomes one'],
    Pattern: ['a call of a pattern', 'Call', 'POST /v1/counters/{NewImage.shop}'],
};
const RUNTIMES = ['nodejs20.x', 'python3', 'provided.al2023'];

async function base64Of(file) {
    if (!file) throw new Error('Choose an archive.');
    if (file.size > ARCHIVE_BYTES) throw new Error('An archive has at most 50 MB.');
    const bytes = new Uint8Array(await file.arrayBuffer());
    let text = '';
    for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
    return btoa(text);
}

// Answers its name; undefined when it was left.
export function addDialog() {
    const name = input({required: true}),
        kind = select(
            Object.entries(KINDS).map(([key, [words]]) => [key, words]),
            'Directory',
            {onchange: show},
        ),
        runtime = select(RUNTIMES, 'nodejs20.x', {
            onchange: () =>
                (handler.value = {'nodejs20.x': 'index.handler', python3: 'main.handler'}[runtime.value] ?? ''),
        }),
        handler = input({value: 'index.handler'}),
        about = input(),
        places = Object.fromEntries(
            Object.entries(KINDS).map(([key, [, label, hint]]) => {
                const element = input({
                    type: key === 'ZipFile' ? 'file' : 'text',
                    accept: key === 'ZipFile' ? '.zip' : null,
                });
                return [key, {element, field: field(label, element, hint)}];
            }),
        ),
        process = h('div.function-fields', field('Runtime', runtime), field('Handler', handler));
    const isProcess = () => kind.value === 'Directory' || kind.value === 'ZipFile';
    function show() {
        for (const [key, one] of Object.entries(places)) one.field.hidden = key !== kind.value;
        process.hidden = !isProcess();
    }
    show();
    return dialog({
        title: 'Add a function',
        body: () => [
            field('Name', name),
            field('It runs', kind),
            Object.values(places).map(one => one.field),
            process,
            field('About', about),
        ],
        actions: [
            [
                'Add',
                async () => {
                    const {element} = places[kind.value];
                    const what = kind.value === 'ZipFile' ? await base64Of(element.files[0]) : element.value.trim();
                    await request('POST', '/2015-03-31/functions', {
                        body: {
                            FunctionName: name.value.trim(),
                            Description: about.value || undefined,
                            Role: kind.value === 'ZipFile' ? 'arn:aws:iam::000000000000:role/quipu' : undefined,
                            Runtime: isProcess() ? runtime.value : undefined,
                            Handler: isProcess() ? handler.value.trim() || undefined : undefined,
                            Code: {[kind.value]: what},
                        },
                    });
                    return name.value.trim();
                },
                'primary',
            ],
        ],
    });
}
