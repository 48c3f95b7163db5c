import {at, request} from '../api.js';
import {h} from '../dom.js';
import {operationDialog} from '../operation.js';
import {button, changeButton, confirmOnce, empty, grid, shell, since, time} from '../parts.js';
import {pagedList, patternView} from '../pattern.js';

export const open = patternView({
    section: 'boards',
    title: 'Boards',
    sentence: 'A board keeps messages in the order in which they came, until somebody clears it.',
    first: ["quipu board post wall 'hello'", 'quipu board ls wall', 'quipu board clear wall'],
    list: {
        path: '/v1/boards',
        member: 'boards',
        key: row => row.name,
        columns: [
            {title: 'Name', cell: row => row.name, sort: row => row.name},
            {title: 'Last message', cell: row => since(row.last), sort: row => row.last ?? ''},
        ],
    },
    make: {id: 'boardPost', words: 'Post a message', open: made => made.values.name},
    remove: {
        words: 'Clear',
        path: name => at`/v1/boards/${name}`,
        sentence: 'All messages that are there now are deleted.',
    },
    teach: name => (name === null ? ['boardList', {}] : ['boardLs', {name}]),
    detail(page, name) {
        const more = button('More', null, {hidden: true});
        const messages = grid({
            label: 'Messages',
            key: row => row.id,
            empty: empty('No messages', 'On this board there is nothing, or not any more.', [
                shell('quipu', 'board', 'post', name, 'hello'),
            ]),
            columns: [
                {title: 'Time', cell: row => time(row.time), sort: row => row.time},
                {title: 'Message', cell: row => row.text, wide: true},
                {
                    title: '',
                    once: true,
                    cell: row =>
                        changeButton('Delete', () => remove(row), {class: 'small', 'aria-label': `Delete ${row.id}`}),
                },
            ],
        });
        const remove = async row => {
            const done = await confirmOnce({
                title: 'Delete the message',
                sentence: `“${String(row.text).slice(0, 200)}” is gone then.`,
                words: 'Delete it',
                job: () => request('DELETE', at`/v1/boards/${name}/${row.id}`),
            });
            if (done) await self.refresh();
        };
        const self = {
            element: h('div.stack', messages.element, more),
            refresh: pagedList(
                async after => {
                    const query = new URLSearchParams({limit: 100, ...(after === undefined ? {} : {after})});
                    const reply = await request('GET', `${at`/v1/boards/${name}`}?${query}`, {signal: page.signal});
                    return {rows: reply.messages, next: reply.next};
                },
                messages,
                more,
            ),
            actions: [
                changeButton('Post', async () => {
                    await operationDialog('boardPost', {name}, {title: `Post on ${name}`, words: 'Post'});
                    await self.refresh();
                }),
            ],
        };
        return self;
    },
});
