import {at, request} from '../api.js';
import {h, renew} from '../dom.js';
import {count} from '../format.js';
import {operate, operationDialog} from '../operation.js';
import {changeButton, grid, json, since, state} from '../parts.js';
import {liveFacts, patternView} from '../pattern.js';

const OWN = 'drive:'; // leases by which servers share what they drive: shown to who asks for them by name
const holding = row => (row.held ? state('running', 'held') : state('waiting', 'free'));

export const open = patternView({
    section: 'leases',
    title: 'Leases',
    sentence:
        'A lease lets one at a time do something, for a time. Its fence grows with each holder: a late one is refused.',
    first: [
        'quipu lease take nightly me --for 30s',
        'quipu lease run nightly -- ./nightly.sh',
        'quipu lease get nightly',
    ],
    list: {
        path: '/v1/leases',
        member: 'leases',
        key: row => row.name,
        keep: (row, route) => !row.name.startsWith(OWN) || (route.query.prefix ?? '').startsWith(OWN),
        columns: [
            {title: 'Name', cell: row => row.name, sort: row => row.name},
            {title: 'State', cell: holding, sort: row => Number(row.held)},
            {title: 'Holder', cell: row => row.owner ?? '', sort: row => row.owner ?? ''},
            {title: 'Until', cell: row => since(row.until), sort: row => row.until ?? ''},
        ],
    },
    make: {id: 'leaseTake', words: 'Take a lease', open: made => made.values.name},
    teach: name => (name === null ? ['leaseList', {}] : ['leaseGet', {name}]),
    detail(page, name) {
        const facts = liveFacts();
        const line = h('div');
        const holders = grid({
            label: 'Holders',
            steady: false,
            key: row => `${row.owner} ${row.fence}`,
            columns: [
                {title: 'Holder', cell: row => row.owner},
                {title: 'Fence', cell: row => String(row.fence), right: true},
                {title: 'Until', cell: row => since(row.until)},
                {title: '', once: true, cell: row => changeButton('Release', () => release(row), {class: 'small'})},
            ],
        });
        const release = row =>
            self.faults.run(async () => {
                await operate('leaseRelease', {name, owner: row.owner, fence: row.fence});
                await self.refresh();
            });
        const self = {
            element: h(
                'div.stack',
                facts.element,
                h('h3', 'Held by'),
                holders.element,
                h('h3', 'Waiting in line'),
                line,
            ),
            async refresh() {
                const lease = await request('GET', at`/v1/leases/${name}`, {signal: page.signal});
                facts.set([
                    ['State', holding(lease)],
                    ['Fence', String(lease.fence ?? '')],
                    ['Until', since(lease.until)],
                    ['Holders at a time', lease.limit],
                    ['What it tells', lease.data === undefined ? '' : json(lease.data)],
                ]);
                holders.update(Array.isArray(lease.holders) ? lease.holders : lease.held ? [lease] : []);
                renew(
                    line,
                    lease.waiting?.length
                        ? [
                              h('p.dim', `${count(lease.waiting.length)} in line`),
                              h(
                                  'ol',
                                  lease.waiting.map(who => h('li', who.owner ?? who)),
                              ),
                          ]
                        : h('p.dim', 'nobody'),
                );
            },
            actions: [
                changeButton('Take', async () => {
                    await operationDialog('leaseTake', {name}, {title: `Take ${name}`, words: 'Take'});
                    await self.refresh();
                }),
            ],
        };
        return self;
    },
});
