import {request, at} from '../api.js';
import {h, text} from '../dom.js';
import {operationDialog} from '../operation.js';
import {changeButton} from '../parts.js';
import {patternView} from '../pattern.js';

export const open = patternView({
    section: 'counters',
    title: 'Counters',
    sentence:
        'A counter hands out numbers: each to one caller only, without gaps for those who take them one by one.',
    first: ['quipu counter add orders', 'quipu counter add orders --block 100', 'quipu counter get orders'],
    list: {
        path: '/v1/counters',
        member: 'counters',
        key: row => row.name,
        columns: [
            {title: 'Name', cell: row => row.name, sort: row => row.name},
            {title: 'Last number', cell: row => String(row.value), sort: row => row.value, right: true},
        ],
    },
    make: {id: 'counterAdd', words: 'Add to a counter', open: made => made.values.name},
    remove: {
        words: 'Remove',
        path: name => at`/v1/counters/${name}`,
        sentence: 'Its numbers may be given again afterwards.',
    },
    teach: name => (name === null ? ['counterList', {}] : ['counterAdd', {name}]),
    detail(page, name) {
        const value = h('p.counter-value');
        const self = {
            element: h('div', h('p.dim', 'The last number that it gave'), value),
            async refresh() {
                text(value, String((await request('GET', at`/v1/counters/${name}`, {signal: page.signal})).value));
            },
            actions: [
                changeButton('Next', () =>
                    self.faults.run(async () => {
                        await request('POST', at`/v1/counters/${name}`, {body: {}});
                        await self.refresh();
                    }),
                ),
                changeButton('Set', async () => {
                    await operationDialog('counterSet', {name}, {title: `Set ${name}`, words: 'Set'});
                    await self.refresh();
                }),
            ],
        };
        return self;
    },
});
