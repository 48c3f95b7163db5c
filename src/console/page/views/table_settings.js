// A table's settings: what it is, and every change of it.

import {dynamo, server} from '../api.js';
import {h, replace} from '../dom.js';
import {bytes, count} from '../format.js';
import {
    changeButton,
    check,
    confirmTyped,
    every,
    facts,
    faultPlace,
    field,
    grid,
    input,
    teach,
    time,
} from '../parts.js';
import {go} from '../route.js';
import {sdk} from '../sdk.js';
import {indexesOf, isOnDemand, keysOf, projectionWords, tableState, ttlWords, viewOf} from '../table.js';
import {billingFields, definitions, indexFields, readTags, streamSelect, whenActive} from './table_new.js';

export async function settings({el, table, signal, refresh}) {
    const {name} = table;
    const arn = table.description.TableArn;
    let ttl, tags;

    // A part of the page with its own button and its own place for faults. shows: fills its fields with what is set.
    function part(title, content, words, job, {shows = null, ...props} = {}) {
        const faults = faultPlace();
        const done = h('span.dim', {role: 'status'});
        const save = words
            ? changeButton(
                  words,
                  () =>
                      faults.run(async () => {
                          replace(done);
                          if ((await job()) === false) return;
                          await load(shows);
                          replace(done, 'done');
                      }),
                  props,
              )
            : null;
        return h('section.tables-setting', h('h2', title), content, h('div.bar', save, done), faults.element);
    }
    const update = async input => {
        await dynamo('UpdateTable', {TableName: name, ...input}, {signal});
        refresh();
    };

    const about = h('div');
    const indexGrid = grid({
        label: 'Indexes',
        key: one => one.IndexName,
        columns: [
            {title: 'Index', cell: one => one.IndexName},
            {title: 'Kind', cell: one => (isGlobal(one) ? 'global' : 'local')},
            {
                title: 'Keys',
                cell: one =>
                    keysOf(table.description, one.IndexName)
                        .map(key => `${key.name} ${key.type}`)
                        .join(', '),
            },
            {title: 'Holds', cell: one => projectionWords(one.Projection)},
            {title: 'Items', right: true, cell: one => count(one.ItemCount ?? 0)},
            {title: 'Bytes', right: true, cell: one => bytes(one.IndexSizeBytes ?? 0)},
            {title: 'State', cell: one => (isGlobal(one) ? tableState(one.IndexStatus) : '')},
            {
                title: '',
                once: true,
                cell: one =>
                    isGlobal(one)
                        ? changeButton('Remove', () => removeIndex(one.IndexName), {class: 'small danger'})
                        : '',
            },
        ],
        empty: h('p.dim', 'none'),
    });
    const isGlobal = one => 'IndexStatus' in one;
    const indexFaults = faultPlace();
    async function removeIndex(index) {
        const isDone = await confirmTyped({
            title: 'Remove an index',
            name: index,
            sentence: 'Queries of it will fail from then on. The items of the table stay.',
            words: 'Remove',
            job: () => update({GlobalSecondaryIndexUpdates: [{Delete: {IndexName: index}}]}),
        });
        if (isDone) await indexFaults.run(() => load());
    }

    const newIndex = indexFields({withLocal: false});
    async function addIndex() {
        const one = newIndex.read();
        const {description} = table;
        await update({
            AttributeDefinitions: definitions([
                ...description.AttributeDefinitions.map(attribute => ({
                    name: attribute.AttributeName,
                    type: attribute.AttributeType,
                })),
                ...one.keys,
            ]),
            GlobalSecondaryIndexUpdates: [
                {
                    Create: {
                        ...one.definition,
                        ProvisionedThroughput: isOnDemand(description)
                            ? undefined
                            : {
                                  ReadCapacityUnits: description.ProvisionedThroughput.ReadCapacityUnits,
                                  WriteCapacityUnits: description.ProvisionedThroughput.WriteCapacityUnits,
                              },
                    },
                },
            ],
        });
    }

    const stream = streamSelect();
    async function setStream() {
        const now = viewOf(table.description);
        if ((now ?? '') === stream.value) return;
        if (now) {
            await update({StreamSpecification: {StreamEnabled: false}});
            await whenActive(name, signal);
        }
        if (stream.value) await update({StreamSpecification: {StreamEnabled: true, StreamViewType: stream.value}});
    }

    const expiry = input({placeholder: 'expires'});
    async function setExpiry() {
        const now = ttlWords(ttl) === 'off' ? null : ttl.AttributeName,
            wanted = expiry.value.trim();
        const set = (attribute, enabled) =>
            dynamo('UpdateTimeToLive', {
                TableName: name,
                TimeToLiveSpecification: {AttributeName: attribute, Enabled: enabled},
            });
        if ((now ?? '') === wanted) return;
        if (now) await set(now, false);
        if (wanted) await set(wanted, true);
    }

    const billingPlace = h('div');
    let billing;
    const protect = check('Refuse to delete it', false);

    const tagLines = h('textarea.tables-tags.code', {rows: 3, placeholder: 'team=orders'});
    async function setTags() {
        const wanted = readTags(tagLines.value);
        const gone = tags.map(tag => tag.Key).filter(key => !wanted.some(tag => tag.Key === key));
        if (gone.length) await dynamo('UntagResource', {ResourceArn: arn, TagKeys: gone});
        if (wanted.length) await dynamo('TagResource', {ResourceArn: arn, Tags: wanted});
    }

    async function drop() {
        const isDone = await confirmTyped({
            title: 'Drop a table',
            name,
            sentence: `Its ${count(table.description.ItemCount)} items go with it.`,
            words: 'Drop',
            job: () => dynamo('DeleteTable', {TableName: name}),
        });
        if (!isDone) return false;
        await refresh(); // so that the list does not ask about it any more
        go(['tables']);
        return false;
    }

    // What each part's fields show. Saving one leaves alone what was typed in the others.
    const fill = {
        stream: description => (stream.value = viewOf(description) ?? ''),
        expiry: () => (expiry.value = ttlWords(ttl) === 'off' ? '' : ttl.AttributeName),
        billing: description => {
            const {ReadCapacityUnits = 0, WriteCapacityUnits = 0} = description.ProvisionedThroughput ?? {};
            billing = billingFields(isOnDemand(description), ReadCapacityUnits || 5, WriteCapacityUnits || 5);
            replace(billingPlace, billing.element);
        },
        protection: description => (protect.box.checked = !!description.DeletionProtectionEnabled),
        tags: () => (tagLines.value = tags.map(tag => `${tag.Key}=${tag.Value}`).join('\n')),
    };
    async function load(...shows) {
        const description = await table.describe();
        ttl = (await dynamo('DescribeTimeToLive', {TableName: name}, {signal})).TimeToLiveDescription;
        tags = (await dynamo('ListTagsOfResource', {ResourceArn: arn}, {signal})).Tags ?? [];
        replace(
            about,
            facts([
                ['ARN', description.TableArn],
                ['Made', time(description.CreationDateTime)],
                ['Id', description.TableId],
                ['Class', description.TableClassSummary?.TableClass],
                ['Stream', description.LatestStreamArn],
            ]),
        );
        indexGrid.update(indexesOf(description));
        for (const one of shows) one?.(description);
    }

    await load(...Object.values(fill));
    replace(
        el,
        about,
        h('section.tables-setting', h('h2', 'Indexes'), indexGrid.element, indexFaults.element),
        part('New index', newIndex.element, 'Add the index', addIndex),
        h(
            'div.tables-settings',
            part('Stream of changes', field('Records show', stream), 'Set the stream', setStream, {
                shows: fill.stream,
            }),
            part(
                'Expiry',
                field('Attribute with the second since 1970', expiry, 'empty: items stay'),
                'Set the expiry',
                setExpiry,
                {shows: fill.expiry},
            ),
            part('Billing', billingPlace, 'Set the billing', () => update(billing.read()), {shows: fill.billing}),
            part('Tags', field('One on each line: NAME=VALUE', tagLines), 'Set the tags', setTags, {
                shows: fill.tags,
            }),
            part(
                'Deletion protection',
                protect,
                'Set the protection',
                () => update({DeletionProtectionEnabled: protect.box.checked}),
                {shows: fill.protection},
            ),
            part('Drop the table', h('p', 'With everything that is in it.'), 'Drop…', drop, {class: 'danger'}),
        ),
        teach(sdk('DescribeTable', {TableName: name}, `quipu table describe ${name}`)),
    );
    // An index that is being made fills by and by.
    const isMaking = () => indexesOf(table.description).some(one => one.IndexStatus && one.IndexStatus !== 'ACTIVE');
    every(
        server.info.engine?.kind === 'remote' ? 15e3 : 3e3,
        async () => {
            if (!isMaking()) return;
            await indexFaults.run(async () => indexGrid.update(indexesOf(await table.describe())));
        },
        signal,
    );
    return {update() {}};
}
