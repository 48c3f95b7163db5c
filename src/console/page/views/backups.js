// A table's backups, and going back to any moment: both make a new table.

import {dynamo, server} from '../api.js';
import {h, replace, text} from '../dom.js';
import {bytes, moment, plural} from '../format.js';
import {
    actionButton,
    changeButton,
    check,
    confirmTyped,
    dialog,
    every,
    exact,
    faultPlace,
    field,
    grid,
    input,
    oneAtATime,
    state,
    teach,
    time,
} from '../parts.js';
import {go} from '../route.js';
import {sdk} from '../sdk.js';

const PAGE = 100;
const STATES = {AVAILABLE: 'ok', CREATING: 'running', DELETED: 'failed'};
const stamp = () => new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
// Of a moment as the field of a form has it, in the viewer's zone.
const local = value => {
    const date = moment(value);
    return date ? new Date(date - date.getTimezoneOffset() * 60e3).toISOString().slice(0, 19) : '';
};

export async function backups({el, table, signal, refresh}) {
    const {name} = table;
    let rows = [],
        next,
        recovery = null;

    // Asks for the name of the new table, and goes there.
    async function restore(title, request, more = null) {
        const target = input({value: `${name}-${stamp()}`});
        const made = await dialog({
            title,
            body: () => [field('Name of the new table', target), more?.element],
            actions: [
                [
                    'Restore',
                    async () => {
                        const [operation, members] = request(target.value.trim(), more?.read());
                        await dynamo(operation, members);
                        return target.value.trim();
                    },
                    'primary',
                ],
            ],
        });
        if (!made) return;
        go(['tables', made]); // at once: later one may have gone elsewhere
        await refresh();
    }

    // ---- backups ----

    const faults = faultPlace();
    const status = h('span.dim', {role: 'status'});
    const more = actionButton('More', () => faults.run(loadMore), {hidden: true});
    const backupName = input({value: `${name}-${stamp()}`, 'aria-label': 'Name of the backup'});
    const make = changeButton('Make a backup', () =>
        faults.run(async () => {
            await dynamo('CreateBackup', {TableName: name, BackupName: backupName.value.trim()});
            backupName.value = `${name}-${stamp()}`;
            await load();
        }),
    );
    const list = grid({
        label: 'Backups',
        steady: false,
        key: one => one.BackupArn,
        columns: [
            {title: 'Backup', cell: one => one.BackupName, sort: one => one.BackupName},
            {title: 'Made', cell: one => time(one.BackupCreationDateTime), sort: one => one.BackupCreationDateTime},
            {
                title: 'State',
                cell: one => state(STATES[one.BackupStatus] ?? 'waiting', one.BackupStatus.toLowerCase()),
            },
            {
                title: 'Bytes',
                right: true,
                cell: one => exact(bytes(one.BackupSizeBytes ?? 0), `${one.BackupSizeBytes ?? 0} bytes`),
            },
            {
                title: 'Do',
                once: true,
                cell: one => [
                    changeButton(
                        'Restore…',
                        () =>
                            restore(`Restore ${one.BackupName}`, target => [
                                'RestoreTableFromBackup',
                                {TargetTableName: target, BackupArn: one.BackupArn},
                            ]),
                        {class: 'small'},
                    ),
                    ' ',
                    changeButton('Delete…', () => remove(one), {class: 'small danger'}),
                ],
            },
        ],
        empty: h('p.dim', 'None of this table.'),
    });
    async function remove(one) {
        const isDone = await confirmTyped({
            title: 'Delete a backup',
            name: one.BackupName,
            sentence: 'What only this backup holds is gone then.',
            words: 'Delete',
            job: () => dynamo('DeleteBackup', {BackupArn: one.BackupArn}),
        });
        if (isDone) await faults.run(load);
    }
    async function readFrom(before, from) {
        const reply = await dynamo(
            'ListBackups',
            {TableName: name, Limit: PAGE, ExclusiveStartBackupArn: from},
            {signal},
        );
        rows = [...before, ...reply.BackupSummaries];
        next = reply.LastEvaluatedBackupArn;
        more.hidden = !next;
        list.update(rows);
        text(status, `${plural(rows.length, 'backup')}${next ? ' so far' : ''}`);
    }
    const loadMore = () => readFrom(rows, next);
    const load = oneAtATime(() => readFrom([], undefined));

    // ---- any moment ----

    const recoveryFaults = faultPlace();
    const about = h('p');
    const days = input({type: 'number', min: 1, max: 35, value: 35});
    const setRecovery = isOn =>
        recoveryFaults.run(async () => {
            await dynamo('UpdateContinuousBackups', {
                TableName: name,
                PointInTimeRecoverySpecification: {
                    PointInTimeRecoveryEnabled: isOn,
                    RecoveryPeriodInDays: isOn ? Number(days.value) : undefined,
                },
            });
            await loadRecovery();
        });
    const on = changeButton('Keep every moment', () => setRecovery(true));
    const off = changeButton('Keep no more', () => setRecovery(false), {class: 'danger'});
    const back = changeButton(
        'Restore a moment…',
        () => {
            const latest = check('as it is now', false, {onchange: () => (at.disabled = latest.box.checked)});
            const at = input({
                type: 'datetime-local',
                step: 1,
                value: local(recovery.LatestRestorableDateTime),
                min: local(recovery.EarliestRestorableDateTime),
            });
            return restore(
                `Restore ${name} as it was`,
                (target, when) => [
                    'RestoreTableToPointInTime',
                    {SourceTableName: name, TargetTableName: target, ...when},
                ],
                {
                    element: [field('As of', at, 'in your zone of time'), latest],
                    read: () =>
                        latest.box.checked
                            ? {UseLatestRestorableTime: true}
                            : {RestoreDateTime: new Date(at.value).getTime() / 1000},
                },
            );
        },
        {class: 'primary'},
    );
    const period = field('Days', days, 'how far back: 1 to 35');
    async function loadRecovery() {
        const reply = await dynamo('DescribeContinuousBackups', {TableName: name}, {signal});
        recovery = reply.ContinuousBackupsDescription.PointInTimeRecoveryDescription;
        const isOn = recovery.PointInTimeRecoveryStatus === 'ENABLED';
        on.hidden = period.hidden = isOn;
        off.hidden = back.hidden = !isOn;
        replace(
            about,
            isOn
                ? [
                      'Each moment from ',
                      time(recovery.EarliestRestorableDateTime),
                      ' to ',
                      time(recovery.LatestRestorableDateTime),
                      ' can be made a new table.',
                  ]
                : 'Off: only what a backup has can be brought back.',
        );
    }

    replace(
        el,
        h(
            'section.tables-setting',
            h('h2', 'Backups'),
            h('div.bar', backupName, make, status),
            faults.element,
            list.element,
            more,
        ),
        h(
            'section.tables-setting',
            h('h2', 'Any moment'),
            about,
            period,
            h('div.bar', on, back, off),
            recoveryFaults.element,
        ),
        teach(sdk('CreateBackup', {TableName: name, BackupName: 'before'}, `quipu table backup ${name}`)),
    );
    try {
        await load();
    } catch (error) {
        if (error.type === 'UnknownOperationException') return tellNone(el, name);
        faults.show(error);
    }
    await recoveryFaults.run(loadRecovery);
    every(
        server.info.engine?.kind === 'remote' ? 30e3 : 5e3,
        async () => {
            if (rows.some(one => one.BackupStatus === 'CREATING')) await faults.run(load);
        },
        signal,
    );
    return {update() {}};
}

// Elsewhere there are databases without them.
function tellNone(el, name) {
    replace(
        el,
        h('h2', 'Backups'),
        h('p', 'The database that holds this table makes no backups. A dump of the table can be loaded again.'),
        teach({CLI: `quipu dump ${name} > ${name}.jsonl`}),
    );
    return {update() {}};
}
