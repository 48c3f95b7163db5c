import {at, request} from '../api.js';
import {h, renew, replace} from '../dom.js';
import {parse, print} from '../json.js';
import {operationDialog} from '../operation.js';
import {bringIntoView, button, changeButton, confirmTyped, dialog, empty, field, grid, json, shell} from '../parts.js';
import {pagedList, patternView} from '../pattern.js';
import {go, href} from '../route.js';

// Saved on the version that was read. Where somebody else was faster, both are shown.
async function edit(collection, key) {
    const read = await request('GET', at`/v1/documents/${collection}/${key}`, {whole: true});
    let version = read.headers.get('etag');
    const words = h('textarea.code', {value: print(read.body), rows: 18, spellcheck: 'false'});
    const theirs = h('div');
    return dialog({
        title: `${collection} / ${key}`,
        wide: true,
        body: () => [field('Document', words), theirs],
        actions: [
            [
                'Save',
                async () => {
                    try {
                        return await request('PUT', at`/v1/documents/${collection}/${key}`, {
                            body: print(parse(words.value), 0),
                            headers: {'If-Match': version, 'Content-Type': 'application/json'},
                        });
                    } catch (error) {
                        if (error.status !== 412 && error.status !== 409) throw error;
                        const now = await request('GET', at`/v1/documents/${collection}/${key}`, {whole: true});
                        replace(
                            theirs,
                            h('h3', 'Somebody has changed it meanwhile; this is there now'),
                            json(now.body),
                            button('Save mine over it', () => {
                                version = now.headers.get('etag');
                                replace(theirs);
                            }),
                            button('Take theirs', () => {
                                version = now.headers.get('etag');
                                words.value = print(now.body);
                                replace(theirs);
                            }),
                        );
                        throw error;
                    }
                },
                'primary',
            ],
        ],
    });
}

export const open = patternView({
    section: 'documents',
    title: 'Documents',
    sentence:
        'A document has a version: whoever saves names the one that was read, so nobody writes over what was not seen.',
    first: [`quipu doc put users u1 '{"name":"Ann"}'`, 'quipu doc edit users u1', 'quipu doc ls users'],
    list: {
        path: '/v1/documents',
        member: 'collections',
        key: row => row.name,
        columns: [{title: 'Collection', cell: row => row.name, sort: row => row.name}],
    },
    make: {id: 'docPut', words: 'Write a document', open: made => made.values.collection},
    teach: (name, route) =>
        name === null
            ? ['docList', {}]
            : route.path[2]
              ? ['docGet', {collection: name, key: route.path[2]}]
              : ['docLs', {collection: name}],
    detail(page, name, route) {
        const more = button('More', null, {hidden: true});
        const head = h('div.bar'),
            shown = h('div');
        let key = route.path[2] ?? null,
            rows = [];
        const documents = grid({
            label: 'Documents',
            key: row => row.key,
            href: row => href(['documents', name, row.key]),
            selected: key,
            empty: empty('No documents', 'This collection has none, or none any more.', [
                shell('quipu', 'doc', 'put', name, 'key', '{"name":"Ann"}'),
            ]),
            columns: [
                {title: 'Key', cell: row => row.key, sort: row => row.key},
                {title: 'Version', cell: row => String(row.version), sort: row => Number(row.version), right: true},
                {title: 'Data', cell: row => print(row.data, 0).slice(0, 200)},
            ],
        });
        const load = pagedList(
            async after => {
                const query = new URLSearchParams({limit: 100, ...(after === undefined ? {} : {after})});
                const reply = await request('GET', `${at`/v1/documents/${name}`}?${query}`, {signal: page.signal});
                rows = after === undefined ? reply.documents : [...rows, ...reply.documents];
                return {rows: reply.documents, next: reply.next};
            },
            documents,
            more,
        );
        // One that stands behind the page that is shown is asked for by itself.
        let apart = null;
        const chosen = () => rows.find(one => one.key === key) ?? (apart?.key === key ? apart : undefined);
        async function readApart() {
            apart = null;
            if (key === null || chosen()) return;
            const wanted = key;
            const reply = await request('GET', at`/v1/documents/${name}/${wanted}`, {whole: true, signal: page.signal});
            apart = {key: wanted, version: reply.headers.get('etag')?.replaceAll('"', '') ?? '', data: reply.body};
        }
        const change = changeButton('Edit', async () => {
            if (await edit(name, key)) await self.refresh();
        });
        const remove = changeButton(
            'Delete',
            async () => {
                const {key: mine, version} = chosen();
                const done = await confirmTyped({
                    title: `Delete ${mine}`,
                    name: mine,
                    sentence: 'The document and its version are gone then.',
                    words: 'Delete',
                    job: () =>
                        request('DELETE', at`/v1/documents/${name}/${mine}`, {headers: {'If-Match': `"${version}"`}}),
                });
                if (done) {
                    go(['documents', name]);
                    await self.refresh();
                }
            },
            {class: 'danger'},
        );
        function show() {
            const row = chosen();
            if (row) renew(head, h('h3.grow', `${key} · version ${row.version}`), change, remove);
            renew(shown, row ? [head, json(row.data)] : null);
        }
        const self = {
            element: h('div.stack', documents.element, more, shown),
            async refresh() {
                await load();
                try {
                    await readApart();
                } finally {
                    show();
                }
            },
            async update(next) {
                key = next.path[2] ?? null;
                documents.select(key);
                show();
                await self.refresh();
                bringIntoView(shown);
            },
            actions: [
                changeButton('Write', async () => {
                    await operationDialog('docPut', {collection: name}, {title: `Write to ${name}`, words: 'Write'});
                    await self.refresh();
                }),
            ],
        };
        return self;
    },
});
