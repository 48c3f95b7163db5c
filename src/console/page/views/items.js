// A table's items: one line that takes conditions or PartiQL, a list of any length, and the chosen item beside it.

import {dynamo, server} from '../api.js';
import {completing} from '../complete.js';
import {h, replace, text} from '../dom.js';
import {count, duration, plural} from '../format.js';
import {onSample} from '../live.js';
import {
    actionButton,
    bringIntoView,
    button,
    changeButton,
    check,
    dialog,
    empty,
    faultPlace,
    input,
    menu,
    select,
    shell,
    teach,
} from '../parts.js';
import {
    FUNCTIONS,
    KEYWORDS,
    filterWords,
    inOwnWords,
    isChange,
    isStatement,
    keyCommandWords,
    requestOf,
} from '../phrase.js';
import {meter} from '../price.js';
import {rowList} from '../rows.js';
import {go, guardLeaving, href} from '../route.js';
import {sdk} from '../sdk.js';
import {indexesOf, keysOf} from '../table.js';
import {cellText, compareValues, hasKey, keyId, keyOf, keyWords, typeOf} from '../value.js';
import {copyAs, itemPanel} from './item.js';
import {exporter, importer} from './transfer.js';

const PAGE = 200; // items in a page without a filter
const FILTERED_PAGE = 1000; // items read for a page with one: few of them may fit
const COLUMNS = 12; // shown without being asked for
const SEEN = 500; // names that are remembered for completion and columns
const EMPTY_PAGES = 5; // pages without a row that are read on a service before it asks whether to go on
const HELD = 'This statement changes data: “Run” carries it out.';
const AT_ONCE = 8; // deletions at the same time

export async function items({el, route, table, signal}) {
    const {name, description} = table;
    const keys = keysOf(description);
    let query = route.query;

    // ---- the line ----

    const line = input({
        'aria-label': 'Condition or PartiQL',
        placeholder: `${keys[0].name} = "…" and … or SELECT …`,
        class: 'mono',
    });
    const index = select(
        [['', 'the table'], ...indexesOf(description).map(one => [one.IndexName, `index ${one.IndexName}`])],
        '',
        {'aria-label': 'Table or index'},
    );
    const order = select(
        [
            ['', 'ascending'],
            ['desc', 'descending'],
        ],
        '',
        {'aria-label': 'Order'},
    );
    const consistent = check('consistent', false, {title: 'Read what was written last'});
    const runButton = button('Run', submit, {class: 'primary'});
    let asked = null; // the statement that “Run” was pressed for: only that one, and only once, may change data
    function submit() {
        asked = line.value.trim();
        const wanted = {
            ...query,
            q: line.value.trim(),
            index: index.value,
            order: order.value,
            consistent: consistent.box.checked ? 1 : '',
            item: '',
            range: '',
            new: '',
            sort: '',
            down: '',
        };
        if (asksTheSame(query, wanted)) run();
        else go(path, wanted);
    }
    const asksTheSame = (a, b) =>
        ['q', 'index', 'order', 'consistent'].every(one => (a[one] ?? '') === String(b[one] ?? ''));
    const path = ['tables', name, 'items'];
    const orderOf = ({sort, down}) => (sort ? {name: sort, down: !!down} : null);
    line.addEventListener('keydown', event => {
        if (event.key === 'Enter' && !event.defaultPrevented) submit();
    });
    for (const one of [index, order, consistent.box]) one.addEventListener('change', submit);
    const seen = new Map(keys.map(key => [key.name, {width: 0}])); // attributes, in the order in which they came
    for (const one of indexesOf(description))
        for (const key of keysOf(description, one.IndexName)) if (!seen.has(key.name)) seen.set(key.name, {width: 0});
    const lineBox = completing(line, part =>
        [...[...seen.keys()].filter(one => /^[\w.-]+$/.test(one)), ...FUNCTIONS, ...KEYWORDS].filter(one =>
            one.toLowerCase().startsWith(part.toLowerCase()),
        ),
    );

    // ---- what is being looked at ----

    const faults = faultPlace();
    const status = h('p.items-status.dim', {role: 'status'});
    const goOn = button('Go on', () => list.pause(false), {class: 'small', hidden: true});
    const stop = button('Stop', () => pause(true), {class: 'small', hidden: true});
    const lesson = h('div.items-lesson');
    const nothing = h('div', {hidden: true});
    let request = null, // {operation, input, ...} of the line; null where it cannot be read
        costs = meter(),
        scanned = 0,
        emptyPages = 0,
        took = 0,
        ownWrites = 0, // since the last sample
        otherWrites = 0, // since the list was begun, but for the second in which it was
        isJustBegun = true,
        isOrdered = false,
        last = {total: 0, isWhole: false};

    function pause(is) {
        list.pause(is);
        say({...last, isPaused: is});
    }
    function prepare(isAsked) {
        const words = query.q ?? '';
        if (isStatement(words))
            return {
                operation: 'ExecuteStatement',
                input: {Statement: words},
                isChange: isChange(words),
                mayRun: isAsked,
            };
        const searched = keysOf(description, query.index || null);
        const made = requestOf(words, searched);
        const isGlobal = (description.GlobalSecondaryIndexes ?? []).some(one => one.IndexName === query.index);
        return {
            ...made,
            input: {
                TableName: name,
                IndexName: query.index || undefined,
                ...made.input,
                ScanIndexForward: made.operation === 'Query' && query.order === 'desc' ? false : undefined,
                ConsistentRead: query.consistent && !isGlobal ? true : undefined,
            },
        };
    }
    function lineForms() {
        const {operation, input: asked, key = [], filter = []} = request;
        if (operation === 'ExecuteStatement') return sdk(operation, asked, shell('quipu', 'sql', asked.Statement));
        const cli = shell(
            ...['quipu', operation === 'Query' ? 'query' : 'scan', name, ...keyCommandWords(key)],
            ...(query.index ? ['--index', query.index] : []),
            ...(filter.length ? ['--filter', filterWords(filter)] : []),
            asked.ScanIndexForward === false ? '--reverse' : '',
        );
        return sdk(operation, asked, cli);
    }
    // One page: {rows, next}. `start` is an ExclusiveStartKey, or a NextToken of PartiQL.
    async function load(start, ended) {
        const {operation, input: asked, isChange: changes} = request;
        if (changes && !request.mayRun) throw new Error(HELD);
        request.mayRun = false;
        const isSql = operation === 'ExecuteStatement';
        const began = performance.now();
        const limit =
            isSql && !/^\s*select/i.test(asked.Statement) ? undefined : asked.FilterExpression ? FILTERED_PAGE : PAGE;
        const reply = await dynamo(
            operation,
            {
                ...asked,
                ...(isSql ? {NextToken: start} : {ExclusiveStartKey: start}),
                Limit: limit,
                ReturnConsumedCapacity: 'TOTAL',
            },
            {signal: AbortSignal.any([ended, signal])},
        );
        took = performance.now() - began;
        costs.add(reply.ConsumedCapacity, request.isChange);
        scanned += Number(reply.ScannedCount ?? reply.Items?.length ?? 0);
        const rows = reply.Items ?? [];
        learn(rows);
        emptyPages = rows.length ? 0 : emptyPages + 1;
        const next = (isSql ? reply.NextToken : reply.LastEvaluatedKey) ?? null;
        if (next && emptyPages >= EMPTY_PAGES && server.info.engine?.kind === 'remote') {
            emptyPages = 0;
            queueMicrotask(() => pause(true));
        }
        if (request.isChange) refreshSoon();
        return {rows, next};
    }
    const refreshSoon = () => table.describe().catch(() => {});
    function say({total, isWhole, isPaused = false, sorted}) {
        last = {total, isWhole};
        const how = {Query: 'query by key', Scan: 'scan', ExecuteStatement: 'PartiQL'}[request.operation];
        text(
            status,
            [
                sorted === undefined
                    ? `${plural(total, 'item')}${isWhole ? '' : ' so far'}`
                    : `the ${plural(sorted, 'item')} that are loaded, sorted`,
                scanned > total ? `${count(scanned)} read` : '',
                how,
                costs.words(),
                took ? `last page in ${duration(took)}` : '',
                isPaused ? 'stopped' : '',
            ]
                .filter(Boolean)
                .join(' · '),
        );
        const isSearching = !isWhole && !isPaused && !!request.input.FilterExpression;
        stop.hidden = !isSearching;
        goOn.hidden = !isPaused || isWhole;
        const isEmpty = isWhole && !total;
        nothing.hidden = !isEmpty;
        list.element.hidden = isEmpty;
        if (isEmpty)
            replace(
                nothing,
                request.isChange
                    ? h('p', 'Done.')
                    : query.q
                      ? h('p.dim', 'Nothing fits.')
                      : empty('No items', 'An item is a set of attributes, found by its key.', [
                            shell(
                                'quipu',
                                'put',
                                name,
                                ...keys.map(key => `${key.name}${key.type === 'N' ? ':=1' : '=a'}`),
                            ),
                        ]),
            );
    }

    // ---- columns ----

    function learn(rows) {
        let isNew = false;
        for (const row of rows)
            for (const [attribute, value] of Object.entries(row)) {
                let known = seen.get(attribute);
                if (!known && seen.size < SEEN) seen.set(attribute, (known = {width: 0}));
                if (!known) continue;
                if (!known.isShown) isNew = known.isShown = true;
                if (!known.isFixed) known.width = Math.max(known.width, cellText(value).length);
            }
        for (const one of seen.values()) if (one.isShown) one.isFixed = true; // a width stays what it was
        if (isNew) {
            showColumns();
            list.redraw();
        }
    }
    const chosen = () => (query.columns ? query.columns.split(',').map(decodeURIComponent) : null);
    const shownNames = () =>
        chosen() ??
        [...seen]
            .filter(([, one], i) => one.isShown || i < keys.length)
            .slice(0, COLUMNS)
            .map(([one]) => one);
    const columns = () =>
        shownNames().map(one => ({
            name: one,
            title: one,
            width: Math.min(40, Math.max(8, one.length + 3, (seen.get(one)?.width ?? 0) + 3)),
            cell: row => ({words: cellText(row[one]), kind: row[one] ? `items-${typeOf(row[one])}` : ''}),
            sort: (a, b) => compareValues(a[one], b[one]),
        }));
    const columnList = h('div.items-columns-list');
    const columnPicker = h('details.items-columns', h('summary', 'Columns'), columnList);
    const closeColumns = () => (columnPicker.open = false);
    const outside = event => columnPicker.contains(event.target) || closeColumns();
    document.addEventListener('pointerdown', outside, {signal});
    columnPicker.addEventListener('keydown', event => {
        if (event.key !== 'Escape' || !columnPicker.open) return;
        closeColumns();
        columnPicker.firstChild.focus();
    });
    function showColumns() {
        const shown = shownNames();
        replace(
            columnList,
            [...seen.keys()].map(one =>
                check(one, shown.includes(one), {
                    onchange: event => {
                        const now = event.target.checked
                            ? [...shownNames(), one]
                            : shownNames().filter(other => other !== one);
                        go(path, {...query, columns: now.map(encodeURIComponent).join(',')}, {quietly: true});
                    },
                }),
            ),
            button('As at first', () => go(path, {...query, columns: ''}, {quietly: true}), {class: 'small'}),
        );
    }

    // ---- the list ----

    const rowId = row => (hasKey(row, keys) ? keyId(row, keys) : JSON.stringify(row));
    const list = rowList({
        label: `Items of ${name}`,
        load,
        columns,
        id: rowId,
        isLast: (row, start) =>
            typeof start === 'object' &&
            start !== null &&
            hasKey(row, keys) &&
            keyId(row, keys) === keyId(start, keys),
        href: row => (isOpenable(row) ? href(path, {...query, ...itemQuery(row)}) : null),
        onmark: marks,
        onsort: wanted => go(path, {...query, sort: wanted?.name, down: wanted?.down ? 1 : ''}, {quietly: true}),
        onload: told => {
            say(told);
            if (isOrdered || !query.sort || !told.total) return;
            isOrdered = true; // as the URL has it, of what the first page brought
            list.order(orderOf(query));
        },
        onfault: error => {
            if (request) error.message = inOwnWords(error.message, request.input);
            faults.show(error);
            goOn.hidden = request?.isChange ?? true;
            stop.hidden = true;
        },
    });
    signal.addEventListener('abort', () => list.stop());
    const itemQuery = row => {
        const [item, range] = keyWords(row, keys);
        return {item, range};
    };
    const isOpenable = row =>
        hasKey(row, keys) && keys.every(key => typeOf(row[key.name]) === key.type) && isOfThisTable();
    const isOfThisTable = () =>
        request.operation !== 'ExecuteStatement' ||
        new RegExp(`\\bfrom\\s+"?${name.replaceAll('.', '\\.')}"?(\\s|\\.|$)`, 'i').test(request.input.Statement);

    // ---- many at once ----

    const markedWords = h('span.dim', {role: 'status'});
    const deleteButton = changeButton('Delete', () => faults.run(deleteMarked), {class: 'danger'});
    const copyMenu = menu(
        'Copy as',
        copyAs(name, () => [...list.marked.values()]),
    );
    const markedBar = h('span.items-marked', {hidden: true}, markedWords, deleteButton, copyMenu);
    const undoPlace = h('span.items-undo');
    function marks(marked) {
        markedBar.hidden = !marked.size;
        text(markedWords, `${count(marked.size)} marked`);
    }
    async function deleteMarked() {
        const rows = [...list.marked.values()].filter(isOpenable);
        if (!rows.length) throw new Error('These rows are no whole items of the table: nothing to delete.');
        await deleteItems(rows.map(row => keyOf(row, keys)));
        list.clearMarks();
    }
    // Each deletion answers what was there, so that it can be put back exactly.
    async function deleteItems(wanted) {
        const gone = [],
            queue = [...wanted];
        let fault = null;
        const worker = async () => {
            for (let key; !fault && (key = queue.shift());)
                try {
                    const reply = await dynamo('DeleteItem', {
                        TableName: name,
                        Key: key,
                        ReturnValues: 'ALL_OLD',
                        ReturnConsumedCapacity: 'TOTAL',
                    });
                    costs.add(reply.ConsumedCapacity, true);
                    ownWrites++;
                    if (reply.Attributes) gone.push(reply.Attributes);
                    text(markedWords, `${count(gone.length)} of ${count(wanted.length)} deleted`);
                } catch (error) {
                    fault = error;
                }
        };
        await Promise.all(Array.from({length: AT_ONCE}, worker));
        const ids = new Set(gone.map(item => keyId(item, keys)));
        list.change(row => (ids.has(rowId(row)) ? null : row));
        offerUndo(gone);
        refreshSoon();
        say({...last, total: Math.max(0, last.total - gone.length)});
        if (fault) throw fault;
    }
    function offerUndo(gone) {
        if (!gone.length) return;
        replace(
            undoPlace,
            `${plural(gone.length, 'item')} deleted `,
            actionButton('Undo', () => faults.run(() => putBack(gone)), {class: 'small'}),
        );
    }
    // Back on the condition that nothing is there: what others wrote since stays.
    async function putBack(gone) {
        let back = 0,
            kept = 0;
        const queue = [...gone];
        const worker = async () => {
            for (let item; (item = queue.shift());)
                try {
                    await dynamo('PutItem', {
                        TableName: name,
                        Item: item,
                        ConditionExpression: 'attribute_not_exists(#k)',
                        ExpressionAttributeNames: {'#k': keys[0].name},
                    });
                    back++;
                } catch (error) {
                    if (error.type !== 'ConditionalCheckFailedException') throw error;
                    kept++;
                }
        };
        await Promise.all(Array.from({length: AT_ONCE}, worker));
        replace(
            undoPlace,
            `${plural(back, 'item')} put back`,
            kept ? `, ${count(kept)} not: something else is there now` : '',
        );
        refreshSoon();
        run();
    }

    // ---- the chosen item ----

    const panel = h('section.items-panel', {'aria-label': 'Item'});
    let shown = null, // what the panel holds
        isEdited = false,
        asking = null;
    const itemOf = asked =>
        'new' in asked && asked.new ? 'new' : asked.item ? `${asked.item}\u0000${asked.range ?? ''}` : null;
    addEventListener('beforeunload', event => isEdited && event.preventDefault(), {signal});
    guardLeaving(to => {
        if (!isEdited || (href(to.path) === href(path) && itemOf(to.query) === shown)) return null;
        asking ??= dialog({
            title: 'Leave without saving?',
            body: () => h('p', 'What was changed of this item is not saved.'),
            actions: [['Leave', () => ((isEdited = false), true), 'danger']],
        })
            .then(isLeft => {
                if (!isLeft) asked = null;
                return isLeft;
            })
            .finally(() => (asking = null));
        return asking;
    }, signal);
    async function showItem() {
        const wanted = itemOf(query);
        list.select(query.item ? [query.item, ...(keys[1] ? [query.range ?? ''] : [])].join('\u0000') : null);
        main.classList.toggle('items-open', !!wanted);
        if (wanted === shown) return;
        shown = wanted;
        isEdited = false;
        const isShown = () => shown === wanted; // not so when an answer comes after another was opened
        const place = h('div.items-item'); // its own: an item that is read late does not take another's
        replace(panel, place);
        if (!wanted) return;
        const close = () => go(path, {...query, item: '', range: '', new: ''});
        await itemPanel({
            place,
            table,
            keys,
            words: wanted === 'new' ? null : [query.item, query.range],
            close,
            onedit: is => isShown() && (isEdited = is),
            // A saved item changes in place; a new one begins the list anew.
            onsave(item, isNew) {
                ownWrites++;
                learn([item]);
                if (isNew) list.restart();
                else list.change(row => (rowId(row) === keyId(item, keys) ? item : row));
                refreshSoon();
                if (isShown()) go(path, {...query, ...itemQuery(item), new: ''});
            },
            async ondelete(key) {
                await deleteItems([key]);
                if (!isShown()) return;
                isEdited = false;
                close();
            },
        });
        if (isShown()) bringIntoView(panel);
    }

    // ---- all together ----

    const refreshButton = button('Refresh', () => run(), {class: 'small'});
    // What others write does not move the list: it is counted, until one wants to see it.
    const written = h('span.dim', {role: 'status'});
    const sayWritten = () => text(written, otherWrites ? `${plural(otherWrites, 'write')} since` : '');
    onSample(sample => {
        if (!sample) return;
        const writes = sample.tables?.[name]?.w ?? 0;
        if (!isJustBegun) otherWrites += Math.max(0, writes - ownWrites);
        isJustBegun = false;
        ownWrites = 0;
        sayWritten();
    }, signal);
    const main = h('div.items-main', h('div.items-rows', list.element, nothing), panel);
    replace(
        el,
        h('div.bar', index, lineBox, order, consistent, runButton),
        faults.element,
        h('div.bar', status, stop, goOn),
        h(
            'div.bar',
            changeButton('New item', () => go(path, {...query, new: 1, item: '', range: ''})),
            columnPicker,
            refreshButton,
            written,
            importer({table, keys, ondone: () => (refreshSoon(), run())}),
            exporter({name, keys, load: start => load(start, signal), prepared: () => request, columns: shownNames}),
            markedBar,
            undoPlace,
        ),
        main,
        lesson,
    );

    function run() {
        const isAsked = asked !== null && asked === (query.q ?? '');
        asked = null;
        faults.run(() => {
            costs = meter();
            scanned = emptyPages = took = otherWrites = 0;
            isJustBegun = true;
            isOrdered = false;
            sayWritten();
            request = null;
            list.clear();
            replace(lesson);
            text(status, '');
            nothing.hidden = stop.hidden = goOn.hidden = true;
            list.element.hidden = false;
            request = prepare(isAsked);
            replace(lesson, teach(lineForms()));
            order.disabled = request.operation !== 'Query';
            // A statement that changes something runs when it is asked to, never by a link or by going back.
            if (request.isChange && !request.mayRun) {
                text(status, HELD);
                return;
            }
            say({total: 0, isWhole: false});
            list.restart();
        });
    }
    function update(next, again = false) {
        const before = query;
        query = next.query;
        line.value = query.q ?? '';
        index.value = query.index ?? '';
        order.value = query.order ?? '';
        consistent.box.checked = !!query.consistent;
        if (again || !asksTheSame(before, query)) run();
        else if (before.sort !== query.sort || before.down !== query.down) {
            isOrdered = true;
            list.order(orderOf(query));
        }
        if (before.columns !== query.columns) {
            showColumns();
            list.redraw();
        }
        showItem();
    }
    showColumns();
    update({query}, true);
    return {update};
}
